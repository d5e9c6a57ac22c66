"""`owkg train`: an embedding model of a graph, into the folder of a run."""

import json
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from owkg.cli.options import Format, OutputFormat, named_values, naming_options
from owkg.cli.output import number, show
from owkg.cli.systems import split_list

if TYPE_CHECKING:
    from owkg.train.workers import Where

# Options that are no settings of a training.
_OTHERS = (
    *("config", "resume", "overwrite", "option", "out", "devices"),
    *("distributed", "coordinator", "num_processes", "process_id", "timeout_s"),
)
_SEVERAL = "Several seeds"


def train(
    kg: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of the graph, in a layout of owkg kg info.")
    ],
    out: Annotated[Path, typer.Option(metavar="RUN", help="Folder of the run.")],
    model: Annotated[str | None, typer.Option(help="owkg models lists them.", show_default="complex")] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TOML, such as RUN/config.toml; options stand above it."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with RUN from its newest checkpoint, as it was begun.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace RUN, if it is a run.")] = False,
    dim: Annotated[
        int | None,
        typer.Option(help="Dimension of the model; of complex, rotate and protate in complex numbers."),
    ] = None,
    training_loop: Annotated[
        str | None,
        typer.Option(
            "--training-loop",
            help="What answers are compared with: all entities, one answer (1vsall) or all known "
            "answers (kvsall) at a time, or entities drawn at random (negatives).",
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(help="cross_entropy or bce; with negatives: margin, logistic or self_adversarial."),
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Queries a step.")] = None,
    num_negatives: Annotated[int | None, typer.Option(help="Drawn for each query.")] = None,
    label_smoothing: Annotated[float | None, typer.Option(help="In [0, 1).")] = None,
    optimiser: Annotated[str | None, typer.Option(help="adagrad, adam or sgd.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="At its peak.")] = None,
    schedule: Annotated[
        str | None, typer.Option(help="Of the learning rate: constant, linear, cosine, exponential or drop.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Each asks every fact on both sides; as a rule 100.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Instead of epochs.")] = None,
    n3: Annotated[
        float | None, typer.Option(help="Weight of the N3 penalty, the cubes of embeddings.")
    ] = None,
    l2: Annotated[float | None, typer.Option(help="Weight of the L2 penalty, their squares.")] = None,
    precision: Annotated[str | None, typer.Option(help="float32 or bfloat16, to compute in.")] = None,
    updates: Annotated[
        str | None,
        typer.Option(
            help="Of the optimiser: dense (whole tables), rows (of the entities of a step alone, with "
            "negatives), or auto, by the size of the graph."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Equal seeds give equal parameters.")] = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="S,S,...",
            help="A run for each of these seeds, in RUN/seed-S. Called again, it goes on with those that are "
            "not at their end.",
            rich_help_panel=_SEVERAL,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="With --seeds: runs at once on this machine.", rich_help_panel=_SEVERAL
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="With --seeds: of a Dask scheduler, such as tcp://host:8786, whose workers see DIR and RUN.",
            rich_help_panel=_SEVERAL,
        ),
    ] = None,
    valid_every: Annotated[int | None, typer.Option(help="Epochs between validations; 0: none.")] = None,
    valid_metric: Annotated[
        str | None, typer.Option(help="Chooses the best step: mrr, hits@K, or another mean over ranks.")
    ] = None,
    patience: Annotated[
        int | None, typer.Option(help="Validations without a new best after which to stop; 0: never.")
    ] = None,
    checkpoint_every: Annotated[int | None, typer.Option(help="Epochs between checkpoints.")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="An option of the model, such as margin=9, or another setting: shared_negatives, "
            "filtered_negatives, subsampling, temperature, loss_margin, decay, warmup_steps, record_every; "
            "repeatable.",
        ),
    ] = None,
    devices: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Devices that share the embeddings of entities, by rows, and the queries of a step.",
            show_default="1; with several processes: all",
        ),
    ] = None,
    coordinator: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Train together with other processes: the address of process 0. Each process is given the "
            "same command but for --process-id.",
        ),
    ] = None,
    num_processes: Annotated[int | None, typer.Option(metavar="N", help="With --coordinator.")] = None,
    process_id: Annotated[
        int | None, typer.Option(metavar="I", help="With --coordinator: of this process, from 0.")
    ] = None,
    distributed: Annotated[
        bool,
        typer.Option(
            "--distributed",
            help="Train together with the other processes of the cluster: SLURM, Open MPI, Kubernetes or a "
            "TPU pod.",
        ),
    ] = False,
    timeout: Annotated[
        int | None,
        typer.Option("--timeout-s", help="Seconds until all processes must be there.", show_default="300"),
    ] = None,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Trains an embedding model on the split train; the split valid chooses the best step.

    What is not given is as the model is trained by default: owkg models --format json lists it. RUN holds
    config.toml, metadata.json, path.parquet (loss, speed and validation along the training) and checkpoints.
    Ctrl-C writes a checkpoint; --resume goes on, and ends with the same parameters to the bit.
    """
    given = {
        "model": model,
        "dim": dim,
        "training_loop": training_loop,
        "loss": loss,
        "batch_size": batch_size,
        "num_negatives": num_negatives,
        "label_smoothing": label_smoothing,
        "optimiser": optimiser,
        "learning_rate": learning_rate,
        "schedule": schedule,
        "epochs": epochs,
        "steps": steps,
        "n3": n3,
        "l2": l2,
        "precision": precision,
        "updates": updates,
        "seed": seed,
        "valid_every": valid_every,
        "valid_metric": valid_metric,
        "patience": patience,
        "checkpoint_every": checkpoint_every,
    }
    settings = {name: value for name, value in given.items() if value is not None}
    settings |= named_values(option or [], taken=settings)
    from owkg import train as training
    from owkg.kg import read_graph
    from owkg.terminal.progress import progress
    from owkg.train.workers import where

    if resume and overwrite:
        raise ValueError("`overwrite` cannot be combined with --resume.")
    if resume and config is not None:
        raise ValueError("`config` has no effect with --resume: the run has its own.")
    if seeds is not None:
        others = {"seed": seed, "resume": resume, "overwrite": overwrite, "devices": devices}
        others |= {"coordinator": coordinator, "distributed": distributed}
        others |= {"num_processes": num_processes, "process_id": process_id}
        for name, value in others.items():
            if value is not None and value is not False:
                raise ValueError(f"`{name}` cannot be combined with --seeds.")
        chosen = training.training(**settings) if config is None else training.read_config(config, **settings)
        _train_seeds(kg, chosen, seeds, out, where(scheduler, workers), form)
        return
    for name, value in (("workers", workers), ("scheduler", scheduler)):
        if value is not None:
            raise ValueError(f"`{name}` needs --seeds.")
    together = {
        "devices": devices,
        "distributed": distributed,
        "coordinator": coordinator,
        "num_processes": num_processes,
        "process_id": process_id,
    }
    with (
        naming_options((*given, *_OTHERS)),
        warnings.catch_warnings(record=True) as caught,
        _connected(coordinator, num_processes, process_id, timeout, distributed=distributed) as speaks,
        progress("training", "steps") if speaks else nullcontext(_unheard) as on_progress,
        _stopped(kg, out, together, on_progress) as told,
    ):
        if resume:
            chosen = training.run_config(out, **settings)
        elif config is not None:
            chosen = training.read_config(config, **settings)
        else:
            chosen = training.training(**settings)
        warnings.simplefilter("always", UserWarning)
        run = training.train(
            read_graph(kg),
            chosen,
            out,
            graph_folder=kg,
            devices=devices,
            resume=resume,
            overwrite=overwrite,
            on_progress=told,
        )
    if not speaks:
        return
    notes = [str(warning.message) for warning in caught if warning.category is UserWarning]
    _show(run, out, notes, training.updates_of(chosen, len(run.entities)).why, form)


@contextmanager
def _connected(
    coordinator: str | None,
    num_processes: int | None,
    process_id: int | None,
    timeout_s: int | None,
    *,
    distributed: bool,
) -> Iterator[bool]:
    """Yields whether this process tells what is done: one of those that train together does."""
    numbers = {"num_processes": num_processes, "process_id": process_id, "timeout_s": timeout_s}
    given = {name: number for name, number in numbers.items() if number is not None}
    if coordinator is None and not distributed:
        for name in given:
            raise ValueError(f"`{name}` has no effect without --coordinator or --distributed.")
        yield True
        return
    from owkg.train.hosts import connect, is_first

    if distributed and coordinator is not None:
        raise ValueError("`coordinator` cannot be combined with --distributed, which finds its own.")
    connect(coordinator, **given)
    # Libraries that carry what devices tell each other write on standard output, which is for results.
    sys.stdout.flush()
    output = os.dup(1)
    os.dup2(2, 1)
    try:
        yield is_first()
    finally:
        os.dup2(output, 1)
        os.close(output)


def _train_seeds(kg: Path, config: Any, seeds: str, out: Path, place: "Where | None", form: Format) -> None:
    """A run for each seed, and a table of them with mean and standard deviation of what was validated."""
    from owkg.terminal.progress import progress
    from owkg.terminal.tables import printed
    from owkg.train.seeds import train_seeds

    numbers = split_list(seeds)
    if not all(number.isdecimal() for number in numbers):
        raise ValueError(f"`seeds` must be whole numbers, separated by commas, got {seeds!r}.")
    was_there = out.exists()
    try:
        with progress("training", "steps") as update:
            found = train_seeds(kg, config, [int(x) for x in numbers], out, place=place, on_progress=update)
    except (KeyboardInterrupt, SystemExit):
        if not was_there:
            with suppress(OSError):  # where it holds runs
                out.rmdir()
        how = f"goes on with the runs in {out}" if out.exists() else "begins anew: no step was saved"
        print(f"owkg: training stopped; the same command {how}", file=sys.stderr)
        raise
    measured = found.drop("seed", "run", "step", "loss")
    spread = {
        "mean": {name: number(measured[name].mean()) for name in measured.columns},
        "standard_deviation": {name: number(measured[name].std()) for name in measured.columns},
    }
    if form is Format.JSON:
        print(
            json.dumps({"out": str(out), "model": config.model, "runs": found.to_dicts()} | spread, indent=2)
        )
        return
    rows = [{"seed": str(row["seed"])} | row for row in found.drop("run").to_dicts()]
    rows += [{"seed": name.replace("_", " "), "step": None, "loss": None} | of for name, of in spread.items()]
    cells = [
        ["" if x is None else f"{x:.4f}" if isinstance(x, float) else str(x) for x in row.values()]
        for row in rows
    ]
    printed(f"{config.model}: validation metrics of the best step", list(rows[0]), cells)
    print(f"wrote {out}: {', '.join(f'seed-{x}' for x in numbers)}")


def _unheard(*_: object) -> None:
    pass


@contextmanager
def _stopped(
    kg: Path, out: Path, together: dict[str, Any], on_progress: Callable[..., None]
) -> Iterator[Callable[[int, int, str], None]]:
    """Yields `on_progress`, heard; a signal ends with the step at which training stopped and how to go on.

    `together`: options of the devices and processes, which the run does not hold.
    """
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
        options = [
            f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}")
            for name, value in together.items()
            if value is not None and value is not False
        ]
        command = shlex.join(["owkg", "train", str(kg), "--out", str(out), "--resume", *options])
        if at is None:
            print("owkg: training stopped before its first step; nothing was written", file=sys.stderr)
        elif saved:
            line = f"at step {at:,}; {out} holds step {saved[-1]:,}; go on with: {command}"
            print(f"owkg: training stopped {line}", file=sys.stderr)
        raise


def _show(run: Any, out: Path, notes: list[str], updates: str, form: Format) -> None:
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
        ends = {"updates": updates, "valid": measured, "notes": notes}
        print(json.dumps({"run": str(out)} | setting | ends, indent=2))
        return
    show(
        f"{run.config.model}, "
        + (f"best on valid at step {run.step:,}" if measured else f"step {steps:,}, nothing validated"),
        {name: value for name, value in setting.items() if name != "model"},
        [{"metric": name, "value": value} for name, value in measured.items()],
        form,
    )
    for text in (f"updates: {updates}", f"wrote {out}", *(f"note: {note}" for note in notes)):
        print(text)
