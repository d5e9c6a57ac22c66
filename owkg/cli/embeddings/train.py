"""`owkg train`: an embedding model of a graph, into the folder of a run."""

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
    from owkg.kg.read import Reading
    from owkg.train import Run, Training
    from owkg.train.workers import Where

# Options that are no settings of a training.
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
    """Settings of a training, and options of its model; None for what is not given.

    Attributes:
        model: owkg models lists them. [default: complex]
        preset (fb15k-237|wn18rr|small): The published recipe of the model for that graph, or one for
            small graphs on a CPU; options stand above it.
        dim: Dimension of the model; of complex, rotate and protate in complex numbers.
        training_loop: What answers are compared with: all entities, one answer (1vsall) or all known answers
            (kvsall) at a time, or entities drawn at random (negatives).
        loss: cross_entropy or bce; with negatives: margin, logistic, binary or self_adversarial.
        batch_size: Queries a step.
        num_negatives: Drawn for each query.
        label_smoothing: In [0, 1).
        optimiser: adagrad, adam, adamax or sgd.
        learning_rate: At its peak.
        schedule: Of the learning rate: constant, linear, cosine, exponential or drop.
        epochs: Each asks every fact on both sides; as a rule 100.
        steps: Instead of epochs.
        n3: Weight of the N3 penalty, the cubes of embeddings.
        l2: Weight of the L2 penalty, their squares.
        precision: float32 or bfloat16, to compute in.
        updates: Of the optimiser: dense (whole tables), rows (of the entities of a step alone, with
            negatives), or auto, by the size of the graph.
        seed: Equal seeds give equal parameters.
        valid_every: Epochs between validations; 0: none.
        valid_metric: Chooses the best step: mrr, hits@K, or another mean over ranks.
        patience: Validations without a new best after which to stop; 0: never.
        checkpoint_every: Epochs between checkpoints.
        option (NAME=VALUE): An option of the model, such as margin=9, or another setting: shared_negatives,
            filtered_negatives, subsampling, sides, answer_frequency, temperature, loss_margin, decay,
            warmup_steps, gradient_clip, weight_decay, record_every; repeatable.
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
        """The settings that are given, by name."""
        settings = {name: value for name, value in asdict(self).items() if value is not None}
        pairs = settings.pop("option", [])
        return settings | named_values(pairs, taken=settings)


@dataclass(frozen=True, kw_only=True)
class Processes:
    """The devices and processes that train together.

    Attributes:
        devices (N): Devices that share the embeddings of entities, by rows, and the queries of a step.
            [default: 1; with several processes: all]
        coordinator (HOST:PORT): Train together with other processes: the address of process 0. Each process
            is given the same command but for --process-id.
        num_processes (N): With --coordinator.
        process_id (I): With --coordinator: of this process, from 0.
        distributed: Train together with the other processes of the cluster: SLURM, Open MPI, Kubernetes or a
            TPU pod.
        timeout_s: Seconds until all processes must be there. [default: 300]
    """

    devices: int | None = None
    coordinator: str | None = None
    num_processes: int | None = None
    process_id: int | None = None
    distributed: bool = False
    timeout_s: int | None = None

    def numbers(self) -> dict[str, int]:
        """The numbers of processes that are given, by name."""
        numbers = {name: getattr(self, name) for name in ("num_processes", "process_id", "timeout_s")}
        return {name: number for name, number in numbers.items() if number is not None}

    def words(self) -> list[str]:
        """The options that a command needs which goes on with the run; it does not hold them."""
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
    """Trains an embedding model on the split train; the split valid chooses the best step.

    What is not given is as the model is trained by default: owkg models --format json lists it. RUN holds
    config.toml, metadata.json, path.parquet (loss, speed and validation along the training),
    learning_curves.png and checkpoints.
    Ctrl-C writes a checkpoint; --resume goes on, and ends with the same parameters to the bit.

    Args:
        kg (DIR): Folder of the graph, in a layout of owkg kg info.
        out (RUN): Folder of the run.
        config (FILE): TOML, such as RUN/config.toml; options stand above it.
        resume: Go on with RUN from its newest checkpoint, as it was begun.
        overwrite: Replace RUN, if it is a run.

    Several seeds:
        seeds (S,S,...): A run for each of these seeds, in RUN/seed-S. Called again, it goes on with those
            that are not at their end.
        workers (N): With --seeds: runs at once on this machine.
        scheduler (ADDRESS): With --seeds: of a Dask scheduler, such as tcp://host:8786, whose workers see DIR
            and RUN.

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
        given.refuse(["config"], "has no effect with --resume: the run has its own")
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
        # Of each fact no more than two are asked.
        most = 2 * len(graph.splits.get("train", ()))
        if (size := settings.get("batch_size", 0)) > most > 0:
            text = f"--batch-size {size:,} is more than the {most:,} queries of train: a step takes all."
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
    """Yields whether this process tells what is done: one of those that train together does."""
    if together.coordinator is None and not together.distributed:
        yield True
        return
    from owkg.train.hosts import connect, is_first

    if together.distributed and together.coordinator is not None:
        raise ValueError("`coordinator` cannot be combined with --distributed, which finds its own.")
    connect(together.coordinator, **together.numbers())
    # Libraries that carry what devices tell each other write on standard output, which is for results.
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
    """A run for each seed, and a table of them with mean and standard deviation of what was validated."""
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
            with suppress(OSError):  # where it holds runs
                out.rmdir()
        how = f"goes on with the runs in {out}" if out.exists() else "begins anew: no step was saved"
        print(one_line(f"owkg: training stopped; the same command {how}"), file=sys.stderr)
        raise
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
    """Yields `on_progress`, heard; a signal ends with the step at which training stopped and how to go on."""
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
            line = f"at step {at:,}; {out} holds step {saved[-1]:,}; go on with: {command}"
            print(one_line(f"owkg: training stopped {line}"), file=sys.stderr)
        raise


def _draw(run: "Run", out: Path) -> None:
    """The learning curves, into the folder of the run; nothing where the training recorded nothing."""
    if len(run.path):
        from owkg.plots import save_figure

        save_figure(run.plot(), out / "learning_curves.png")


def _show(run: "Run", out: Path, notes: list[str], updates: str, form: Format) -> None:
    """The end of the training path, how updates were made, and the row of the best step."""
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
