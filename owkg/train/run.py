"""Training into the folder of a run, resuming the run, and reading it."""

import json
import re
import signal
import warnings
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from owkg import checks, kg, plugins
from owkg.errors import ArgumentError
from owkg.keys import reproducible
from owkg.kg.graph import graph_checked
from owkg.kg.labels import read_labels
from owkg.kg.read import Reading
from owkg.models import MODELS, Trained
from owkg.train.checkpoints import (
    Checkpoint,
    Put,
    checkpoint_steps,
    keep_checkpoints,
    newest_checkpoint,
    put_by,
    read_checkpoint,
    require_like,
)
from owkg.train.config import Training, config_text, read_config
from owkg.train.folder import (
    CHECKPOINTS,
    CONFIG,
    RUN_LABELS,
    facts_checksums,
    made_run,
    noted_reading,
    path_table,
    read_rows,
    require_unchanged,
    write_snapshot,
)
from owkg.train.hosts import by_each, by_first, largest, require_equal
from owkg.train.layout import layout_of, unpadded_on_all
from owkg.train.loop import Row, best_step, snapshots
from owkg.train.queries import require_trainable
from owkg.train.run_lock import alone, interrupts
from owkg.train.state import State, state_shape

if TYPE_CHECKING:
    import matplotlib.figure


class Run(NamedTuple):
    """Trained model, as read from the folder of a run.

    Attributes:
        trained: model with its parameters.
        step: step of the checkpoint that the parameters come from.
        config: configuration of the training.
        entities, relations: labels, in the order of the ids.
        graph_folder: folder of the graph, or None if it was not read from one.
        reading: options with which the graph was read.
        path: rows of the training path.
    """

    trained: Trained
    step: int
    config: Training
    entities: tuple[str, ...]
    relations: tuple[str, ...]
    graph_folder: Path | None
    reading: Reading
    path: pl.DataFrame

    def plot(self, metric: str | None = None) -> "matplotlib.figure.Figure":
        """Figure of the learning curves: loss and validation metric by epoch, with the best step marked.

        Args:
            metric: validation metric to draw, such as "hits@10". Default: the metric that chooses the best
                step.

        Raises:
            ValueError: if the training recorded nothing.
        """
        from owkg.plots.learning import learning_curves

        return learning_curves(self.path, metric=metric or self.config.valid_metric, best=self.step)


@reproducible
def train(
    graph: kg.KnowledgeGraph,
    config: Training,
    folder: Path,
    *,
    graph_folder: Path | None = None,
    reading: Reading | None = None,
    devices: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    chunk_steps: int | None = None,
    watch: Callable[[int, Trained], None] | None = None,
    watched: Iterable[int] = (),
    on_progress: Callable[[int, int, str], None] | None = None,
) -> Run:
    """Trains a model into the folder of a run.

    A run that is interrupted at any moment and resumed gives exactly the same parameters as an uninterrupted
    run on the same machine with the same number of devices; on other devices it differs by rounding. On
    SIGINT (Ctrl-C), SIGTERM and SIGHUP, owkg writes a checkpoint and then lets the signal take its usual
    effect, or raises KeyboardInterrupt. Nothing is written to `folder` before the first checkpoint.

    Several devices share the entity embeddings by rows and, with negatives, the queries of a step. All
    processes that `owkg.train.connect` has connected must call this function together; the first one writes
    `folder`, and all must see it.

    Args:
        graph: graph whose split train is learned; the split valid chooses the best step and when to stop.
        config: configuration of the training.
        folder: folder of the run to write.
        graph_folder: folder of the graph; its checksums are recorded. None: the graph was not read from a
            folder.
        reading: options with which the graph was read, recorded as well. None: detected from the files.
        devices: number of devices to use of those that JAX sees. None: one, or all if several processes are
            connected.
        resume: continue the run in `folder` from its newest checkpoint.
        overwrite: allow replacing an existing run.
        chunk_steps: steps per call of the device. None: as many as take half a second.
        watch: function called with (step, trained model) after each step in `watched`, before the checkpoint
            of that step. A resumed run repeats the calls after its newest checkpoint.
        watched: numbers of steps, in [1, steps of the training].
        on_progress: function called with steps done, all steps, and a text with loss and speed.

    Returns:
        The run at its best step, or at its last step without validations.

    Raises:
        ValueError: if the graph, the configuration and the folder do not fit each other, or the loss is not
            finite.
        OSError: if a file cannot be written; existing checkpoints are kept.
    """
    if resume and overwrite:
        raise ArgumentError("overwrite", "must not be given with `resume`, which continues the run.")
    require_trainable(config)
    moments = frozenset(watched)
    layout = layout_of(config, graph_checked(graph).num_entities, devices)
    require_equal("configuration or graph", config_text(config) + json.dumps(facts_checksums(graph)))
    number = 0

    def interrupted() -> int:
        nonlocal number
        number = largest(came())
        return number

    with ExitStack() as held:
        by_first(lambda: held.enter_context(alone(folder)))
        came, making = held.enter_context(interrupts()), held.enter_context(ExitStack())
        start, rows = None, []
        if resume:
            # The first process renames damaged checkpoints before the other processes look.
            begin = partial(_begin, folder, graph, config, put_by(layout))
            begun = by_first(begin)
            start, rows = by_each(lambda: begun or begin())
        walk = snapshots(
            graph,
            config,
            layout=layout,
            start=start,
            rows=rows,
            chunk_steps=chunk_steps,
            watched=moments,
            on_progress=on_progress,
            interrupted=interrupted,
        )
        place = folder
        if not resume:
            count = 1 if layout is None else layout.mesh.size
            new = made_run(
                folder, graph, config, graph_folder, reading or Reading(), overwrite=overwrite, devices=count
            )
            place = by_first(lambda: making.enter_context(new)) or folder
        while (snapshot := next(walk, None)) is not None:
            if watch is not None and snapshot.step in moments:
                watch(snapshot.step, unpadded_on_all(layout, snapshot.state.trained(config.built())))
            write_snapshot(place, config, snapshot, layout)
            if snapshot.due:
                by_first(making.close)
                place = folder
        interrupted()
    if number:
        signal.raise_signal(number)
        raise KeyboardInterrupt
    # If one device may not hold the tables, they stay on the host.
    return by_each(lambda: _loaded(folder, "best", None if layout is None else lambda array, _: array))


def config_file(folder: Path) -> Path:
    """Configuration file of a run.

    Raises:
        ValueError: if `folder` is not the folder of a run.
    """
    if not (folder / CONFIG).is_file():
        raise ValueError(f"{folder}: is not the folder of a run, because it has no {CONFIG}.")
    return folder / CONFIG


def run_config(folder: Path, **settings: object) -> Training:
    """Configuration for resuming a run, with some values replaced by `settings`.

    Raises:
        ValueError: if `folder` is not the folder of a run, its configuration is invalid, or `settings` name
            another model.
    """
    path = config_file(folder)
    text = path.read_text(encoding="utf-8", errors="replace")
    said = re.search(r'^model = "([^"]*)"$', text, re.MULTILINE)
    if said and said[1] not in MODELS:
        raise ValueError(
            f"{path}: model {said[1]!r} is unknown; to import a model of your own, set "
            f"{plugins.VARIABLE}=module."
        )
    if "model" in settings and (held := read_config(path).model) != str(settings["model"]).lower():
        raise ArgumentError("model", f"must be {held} as in the run {folder}, got {settings['model']}.")
    # Runs that do not record how tables were updated come from a version with one way only.
    before = {} if re.search(r"^updates\b", text, re.MULTILINE) else {"updates": "dense"}
    return read_config(path, **(before | settings))


def run_reading(folder: Path) -> Reading:
    """Options with which the graph of a run was read; ValueError if `folder` is not the folder of a run."""
    return noted_reading(require_unchanged(folder))


def saved_steps(folder: Path) -> list[int]:
    """Steps of a run that have a checkpoint, increasing; empty if `folder` is not a run."""
    return checkpoint_steps(folder / CHECKPOINTS)


def run_path(folder: Path) -> pl.DataFrame:
    """Training path of a run, as `Run.path`, without reading the parameters.

    Raises:
        ValueError: if `folder` is not the folder of a run, has no checkpoint yet, or its path was changed.
    """
    place = config_file(checks.path("folder", folder)).parent
    if not (steps := saved_steps(place)):
        raise ValueError(f"{place}: has no checkpoint yet.")
    return path_table(read_rows(place, steps[-1]))


@reproducible
def load_run(folder: Path, *, step: int | str = "best") -> Run:
    """Trained model from the folder of a run.

    Args:
        folder: folder that `train` wrote.
        step: step of the checkpoint: a number, "last", or "best" (default), the best by the validation
            metric, or the last without validations.

    Raises:
        ValueError: if `folder` is not the folder of a run, has no such checkpoint, or has one of another
            model or shape.
    """
    return _loaded(checks.path("folder", folder), step, None)


def _loaded(folder: Path, step: int | str, put: Put | None) -> Run:
    """Result of `load_run`, with arrays converted by `put` (see `owkg.train.checkpoints.read_checkpoint`)."""
    noted = require_unchanged(folder)
    config = run_config(folder)
    entities, relations = (read_labels(folder / name) for name in RUN_LABELS.values())
    steps = checkpoint_steps(folder / CHECKPOINTS)
    if not steps:
        raise ValueError(f"{folder}: has no checkpoint yet.")
    like = state_shape(
        config, len(entities), len(relations), noted.get("predictions", noted.get("train_facts", 1))
    )
    require_like(folder / CHECKPOINTS, steps[-1], like)
    rows = read_rows(folder, steps[-1])
    if step == "best":
        step = best_step(config, rows) or steps[-1]
        if step not in steps:
            raise ValueError(
                f"{folder}: the checkpoint of the best step, {step}, is missing; resumed training "
                f"makes it again. `step` must be one of: {', '.join(map(str, steps))}."
            )
    elif step == "last":
        step = steps[-1]
    if not isinstance(step, int) or isinstance(step, bool):
        raise ValueError(f'`step` must be "best", "last", or a whole number, got {step!r}.')
    state: State = read_checkpoint(folder / CHECKPOINTS, step, like, put)
    graph_folder = noted["graph_folder"]
    return Run(
        state.trained(config.built()),
        step,
        config,
        entities,
        relations,
        None if graph_folder is None else Path(graph_folder),
        noted_reading(noted),
        path_table(rows),
    )


def _begin(
    folder: Path, graph: kg.KnowledgeGraph, config: Training, put: Put | None
) -> tuple[Checkpoint | None, list[Row]]:
    """(Checkpoint, rows up to it) from which to resume the run in `folder`, usually the newest checkpoint.

    If the best step so far has no complete checkpoint, training resumes from the newest checkpoint before
    that step, so that it is made again, and a warning is printed.

    Raises:
        ValueError: if the run has another graph or configuration, or its path has changed since it was
            written.
    """
    noted = require_unchanged(folder)
    held, asked = config_text(run_config(folder)), config_text(config)
    if held != asked:
        pairs = zip_longest(held.splitlines(), asked.splitlines(), fillvalue="nothing")
        was, now = next(pair for pair in pairs if pair[0] != pair[1])
        raise ValueError(f"{folder / CONFIG}: is of another training: must have {now!r}, got {was!r}.")
    for kind, name in RUN_LABELS.items():
        if read_labels(folder / name) != getattr(graph, kind):
            raise ValueError(f"{folder / name}: must have the labels of the graph, got others.")
    if noted.get("facts_sha256") != facts_checksums(graph):
        raise ValueError(f"{folder}: was trained on other facts than the graph has.")
    like = state_shape(config, **graph.sizes, num_facts=len(graph.splits["train"]))
    checkpoints = folder / CHECKPOINTS
    start = newest_checkpoint(checkpoints, like, put)
    rows = read_rows(folder, start.step) if start else []
    best, steps = best_step(config, rows), checkpoint_steps(checkpoints)
    if start is None or best is None or best in steps or best > start.step:
        return start, _until(start, rows)
    before = [step for step in steps if step < best]
    start = Checkpoint(before[-1], read_checkpoint(checkpoints, before[-1], like, put)) if before else None
    keep_checkpoints(checkpoints, before)
    warnings.warn(
        f"{checkpoints / str(best)}: the best step is missing; training resumes from step "
        f"{start.step if start else 0}.",
        UserWarning,
        stacklevel=2,
    )
    return start, _until(start, rows)


def _until(start: Checkpoint | None, rows: list[Row]) -> list[Row]:
    """Rows up to a checkpoint."""
    return [row for row in rows if start is not None and int(row["step"] or 0) <= start.step]
