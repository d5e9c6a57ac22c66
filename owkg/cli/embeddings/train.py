"""`owkg train`: training of an embedding model on a graph, written to the folder of a run."""

import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from owkg.cli.commands import Given
from owkg.cli.inputs import collected, noted
from owkg.cli.options import Format, GraphOptions, OutputFormat, named_values, naming_options, split_list
from owkg.cli.output import Table, cell, number, show, show_metrics
from owkg.terminal.tables import one_line

if TYPE_CHECKING:
    import polars as pl

    from owkg.kg.read import Reading
    from owkg.train import Run, Training
    from owkg.train.workers import Where

# Options that are not settings of a training.
_OTHERS = (
    *("config", "resume", "overwrite", "out", "devices"),
    *("distributed", "coordinator", "num_processes", "process_id", "timeout_s"),
    *("layout", "duplicates"),
)
_OF_ONE_RUN = (
    *("seed", "resume", "overwrite", "devices"),
    *("coordinator", "distributed", "num_processes", "process_id"),
)


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Settings of a training and options of its model; None if not given.

    Attributes:
        model (NAME): Model to train; owkg models lists them. Default: complex.
        preset (fb15k-237|wn18rr|small): Published recipe of the model for that graph, or a recipe for small
            graphs on a CPU. Other options override it.
        dim (N): Dimension of the embeddings; for complex, rotate and protate counted in complex numbers.
        epochs (N): Number of epochs. Each uses every fact as a query on both sides. Default: as owkg models
            lists it, mostly 100.
        learning_rate (NUMBER): Learning rate at its peak.
        batch_size (N): Number of queries in a step.
        seed (N): Seed of the initial embeddings and of all random choices. Equal seeds give equal parameters.

    Loss and regularisation:
        training_loop (NAME): Entities that answers are compared with: all, with one answer at a time (1vsall)
            or with all known answers (kvsall), or randomly drawn ones (negatives).
        loss (NAME): Loss function: cross_entropy or bce; with negatives margin, logistic, binary or
            self_adversarial.
        num_negatives (N): Number of entities drawn for each query, with --training-loop negatives.
        label_smoothing (NUMBER): Label smoothing, in [0, 1).
        n3 (NUMBER): Weight of the N3 penalty, the cubes of the embeddings.
        l2 (NUMBER): Weight of the L2 penalty, the squares of the embeddings.

    Optimiser:
        optimiser (NAME): Optimiser: adagrad, adam, adamax or sgd.
        schedule (NAME): Schedule of the learning rate: constant, linear, cosine, exponential or drop.
        steps (N): Number of steps, instead of --epochs.

    Validation and checkpoints:
        valid_every (N): Epochs between validations. 0: no validation.
        valid_metric (METRIC): Metric that chooses the best step: mrr, hits@K, or another mean over ranks.
        patience (N): Number of validations without a new best after which training stops. 0: never.
        checkpoint_every (N): Number of epochs between checkpoints.

    Rarely needed:
        precision (float32|bfloat16): Floating-point precision of the computation.
        updates (dense|rows|auto): How the optimiser updates embeddings: whole tables (dense), only the
            entities of a step (rows, with negatives), or chosen by the size of the graph (auto).
        option (NAME=VALUE): An option of the model, such as margin=9, or another setting: shared_negatives,
            filtered_negatives, subsampling, sides, answer_frequency, temperature, loss_margin, decay,
            warmup_steps, gradient_clip, weight_decay, record_every. Repeat the option for several.
    """

    model: str | None = None
    preset: str | None = None
    dim: int | None = None
    training_loop: str | None = None
    loss: str | None = None
    batch_size: int | None = None
    num_negatives: int | None = None
    label_smoothing: float | None = None
    optimiser: str | None = None
    learning_rate: float | None = None
    schedule: str | None = None
    epochs: int | None = None
    steps: int | None = None
    n3: float | None = None
    l2: float | None = None
    precision: str | None = None
    updates: str | None = None
    seed: int | None = None
    valid_every: int | None = None
    valid_metric: str | None = None
    patience: int | None = None
    checkpoint_every: int | None = None
    option: list[str] | None = None

    def given(self) -> dict[str, Any]:
        """Settings that are given, by name."""
        settings = {name: value for name, value in asdict(self).items() if value is not None}
        pairs = settings.pop("option", [])
        return settings | named_values(pairs, taken=settings)


@dataclass(frozen=True, kw_only=True)
class Processes:
    """Devices and processes that train together.

    Several devices or machines:
        devices (N): Number of devices that share the embeddings of entities, by rows, and the queries of a
            step. Default: 1; with several processes all.
        distributed: Train together with the other processes of the cluster: SLURM, Open MPI, Kubernetes or a
            TPU pod.
        coordinator (HOST:PORT): Address of process 0, to train together with other processes. Each process
            gets the same command, except for --process-id.
        num_processes (N): Number of processes that train together. Only with --coordinator or --distributed.
        process_id (I): Number of this process, from 0. Only with --coordinator or --distributed.
        timeout_s (SECONDS): Seconds until all processes must have joined. Default: 300.
    """

    devices: int | None = None
    coordinator: str | None = None
    num_processes: int | None = None
    process_id: int | None = None
    distributed: bool = False
    timeout_s: int | None = None

    def numbers(self) -> dict[str, int]:
        """Numbers of processes that are given, by name."""
        numbers = {name: getattr(self, name) for name in ("num_processes", "process_id", "timeout_s")}
        return {name: number for name, number in numbers.items() if number is not None}

    def words(self) -> list[str]:
        """Options that a command to resume the run needs, because the run does not store them."""
        given = {name: value for name, value in asdict(self).items() if name != "timeout_s"}
        return [
            f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}")
            for name, value in given.items()
            if value is not None and value is not False
        ]


def train(
    kg: Path,
    *,
    given: Given,
    out: Path,
    config: Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    options: TrainingOptions,
    how: GraphOptions,
    together: Processes,
    seeds: str | None = None,
    workers: Annotated[int | None, typer.Option(min=1)] = None,
    scheduler: str | None = None,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Train an embedding model on the split train, and keep the step that is best on the split valid.

    Settings that you leave out have the defaults of the model, which owkg models --format json lists. RUN
    holds config.toml, metadata.json, path.parquet (loss, speed and validation along the training),
    learning_curves.png and checkpoints. Ctrl-C writes a checkpoint; --resume continues from it and ends with
    exactly the same parameters.

    Args:
        kg (DIR): Folder of the graph, in any layout that owkg kg info reads.
        out (RUN): Folder of the run, which is created.
        config (FILE): Settings as TOML, such as RUN/config.toml. Other options override them.
        resume: Continue RUN from its newest checkpoint, with its own settings.
        overwrite: Replace RUN, if it is a run. Default: stop with an error.

    Several seeds:
        seeds (S,S,...): Train a run for each of these seeds, in RUN/seed-S, and draw their learning curves
            with the mean. The same command again continues the runs that are not finished.
        workers (N): Number of runs at the same time on this machine. Only with --seeds.
        scheduler (ADDRESS): Address of a Dask scheduler, such as tcp://host:8786, whose workers can read DIR
            and write RUN. Only with --seeds.

    Examples:
        owkg train data/nations --model complex --dim 128 --out run
        owkg train data/fb15k237 --model rotate --num-negatives 256 --option margin=9 --out run
        owkg train data/wn18rr --model rotate --preset wn18rr --out run
        owkg train data/fb15k237 --config run.toml --seed 1 --out run1
        owkg train data/fb15k237 --out run1 --resume
    """
    from owkg import train as training
    from owkg.kg import read_graph
    from owkg.terminal.progress import progress
    from owkg.train.workers import where

    settings = options.given()
    if options.steps is not None:
        given.refuse(["epochs"], "has no effect with --steps")
    how.reading()
    if resume:
        given.refuse(["overwrite"], "cannot be combined with --resume")
        given.refuse(["config"], "has no effect with --resume: the run has its own settings")
    if seeds is not None:
        given.refuse(_OF_ONE_RUN, "cannot be combined with --seeds")
        chosen = training.training(**settings) if config is None else training.read_config(config, **settings)
        _train_seeds(kg, how.reading(), chosen, seeds, out, where(scheduler, workers), form)
        return
    given.refuse(["workers", "scheduler"], "needs --seeds")
    if together.coordinator is None and not together.distributed:
        why = "has no effect without --coordinator or --distributed"
        given.refuse(["num_processes", "process_id", "timeout_s"], why)
    with (
        naming_options((*(field.name for field in fields(options)), *_OTHERS)),
        collected() as notes,
        _connected(together) as speaks,
        progress("training", "steps") if speaks else nullcontext(_unheard) as on_progress,
        _stopped(kg, out, together, on_progress) as told,
    ):
        if resume:
            chosen = training.run_config(out, **settings)
        elif config is not None:
            chosen = training.read_config(config, **settings)
        else:
            chosen = training.training(**settings)
        reading = how.reading(training.run_reading(out) if resume else None)
        graph = read_graph(kg, **reading._asdict())
        # Every fact gives at most two queries.
        most = 2 * len(graph.splits.get("train", ()))
        if (size := settings.get("batch_size", 0)) > most > 0:
            text = f"--batch-size {size:,} is more than the {most:,} queries of train: each step uses all."
            warnings.warn(text, UserWarning, stacklevel=2)
        run = training.train(
            graph,
            chosen,
            out,
            graph_folder=kg,
            reading=reading,
            devices=together.devices,
            resume=resume,
            overwrite=overwrite,
            on_progress=told,
        )
    if speaks:
        _draw(run, out)
        _show(run, out, notes, training.updates_of(chosen, len(run.entities)).why, form)


@contextmanager
def _connected(together: Processes) -> Iterator[bool]:
    """Context that joins other processes; yields whether this process prints the output, as only one does."""
    if together.coordinator is None and not together.distributed:
        yield True
        return
    from owkg.train.hosts import connect, is_first

    if together.distributed and together.coordinator is not None:
        raise ValueError("`coordinator` cannot be combined with --distributed, which finds its own.")
    connect(together.coordinator, **together.numbers())
    # Communication libraries write to standard output, which is for results.
    sys.stdout.flush()
    output = os.dup(1)
    os.dup2(2, 1)
    try:
        yield is_first()
    finally:
        os.dup2(output, 1)
        os.close(output)


def _train_seeds(
    kg: Path,
    reading: "Reading",
    config: "Training",
    seeds: str,
    out: Path,
    place: "Where | None",
    form: Format,
) -> None:
    """Trains a run for each seed and prints their validation metrics with mean and standard deviation."""
    from owkg.terminal.progress import progress
    from owkg.train.seeds import train_seeds

    numbers = split_list(seeds)
    if not all(number.isdecimal() for number in numbers):
        raise ValueError(f"`seeds` must be whole numbers, separated by commas, got {seeds!r}.")
    was_there = out.exists()
    try:
        with noted(), progress("training", "steps") as update:
            found = train_seeds(
                kg, config, [int(x) for x in numbers], out, place=place, reading=reading, on_progress=update
            )
    except (KeyboardInterrupt, SystemExit):
        if not was_there:
            with suppress(OSError):  # fails if it holds runs
                out.rmdir()
        how = f"continues the runs in {out}" if out.exists() else "starts again, because no step was saved"
        print(one_line(f"owkg: training stopped; the same command {how}"), file=sys.stderr)
        raise
    _draw_seeds(found, out)
    measured = found.drop("seed", "run", "step", "loss")
    spread = {
        "mean": {name: number(measured[name].mean()) for name in measured.columns},
        "standard_deviation": {name: number(measured[name].std()) for name in measured.columns},
    }
    rows = [{"seed": str(row["seed"])} | row for row in found.drop("run").to_dicts()]
    rows += [{"seed": name.replace("_", " "), "step": None, "loss": None} | of for name, of in spread.items()]
    cells = [["" if value is None else cell(value) for value in row.values()] for row in rows]
    title = f"{config.model}: validation metrics of the best step"
    show(
        form,
        {"out": out, "model": config.model, "runs": found, **spread},
        [Table(title, list(rows[0]), cells)],
        [f"wrote {out}: {', '.join(f'seed-{x}' for x in numbers)}"],
    )


def _unheard(*_: object) -> None:
    pass


@contextmanager
def _stopped(
    kg: Path, out: Path, together: Processes, on_progress: Callable[..., None]
) -> Iterator[Callable[[int, int, str], None]]:
    """Context that yields `on_progress`; if a signal stops training, prints the step and how to continue."""
    at = None

    def told(step: int, total: int, note: str) -> None:
        nonlocal at
        at = step
        on_progress(step, total, note)

    try:
        yield told
    except (KeyboardInterrupt, SystemExit):
        from owkg.train import saved_steps

        saved = saved_steps(out)
        command = shlex.join(["owkg", "train", str(kg), "--out", str(out), "--resume", *together.words()])
        if at is None:
            print("owkg: training stopped before its first step; nothing was written", file=sys.stderr)
        elif saved:
            line = f"at step {at:,}; {out} holds step {saved[-1]:,}; continue with: {command}"
            print(one_line(f"owkg: training stopped {line}"), file=sys.stderr)
        raise


def _draw(run: "Run", out: Path) -> None:
    """Draws the learning curves into the folder of the run, if the training recorded any."""
    if len(run.path):
        from owkg.plots import save_figure

        save_figure(run.plot(), out / "learning_curves.png")


def _draw_seeds(found: "pl.DataFrame", out: Path) -> None:
    """Draws the learning curves of all seeds with their mean, if every training recorded some."""
    from owkg.plots import learning_curves, save_figure
    from owkg.train import run_config, run_path

    folders = [Path(run) for run in found["run"]]
    paths = {f"seed {seed}": run_path(run) for seed, run in zip(found["seed"], folders, strict=True)}
    if all(map(len, paths.values())):
        fig = learning_curves(paths, metric=run_config(folders[0]).valid_metric, mean=True)
        save_figure(fig, out / "learning_curves.png")


def _show(run: "Run", out: Path, notes: list[str], updates: str, form: Format) -> None:
    """Prints the end of the training, how updates were made, and the metrics of the best step."""
    end, best = (
        run.path.filter(run.path["step"] == step).to_dicts() for step in (run.path["step"].max(), run.step)
    )
    measured = {
        name.removeprefix("valid_"): number(value)
        for name, value in (best[0] if best else {}).items()
        if name.startswith("valid_") and value is not None
    }
    last = end[0] if end else {}
    steps = last.get("step", run.step)
    setting = {"model": run.config.model, "best_step": run.step if measured else None, "steps": steps}
    setting |= {name: number(last[name]) for name in ("epoch", "loss", "seconds", "examples_per_s") if last}
    if form is Format.JSON:
        show(form, {"run": out, **setting, "updates": updates, "valid": measured}, notes=notes)
        return
    best_step = f"best on valid at step {run.step:,}" if measured else f"step {steps:,}, nothing validated"
    show_metrics(
        f"{setting.pop('model')}, {best_step}",
        setting,
        [{"metric": name, "value": value} for name, value in measured.items()],
        form,
        [f"updates: {updates}", f"wrote {out}"],
        notes=notes,
    )
