"""Training into the folder of a run, going on with it, and reading it."""

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
    """A trained model.

    Attributes:
        trained: the model and its arrays.
        step: of the checkpoint that they come from.
        config: how it was trained.
        entities, relations: labels of their ids.
        graph_folder: where the graph was read, if it was.
        reading: how it was read there.
        path: the rows of the training path.
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
        """The figure of the learning curves: loss and validation metric by epoch, the best step marked.

        Args:
            metric: validation metric to draw, such as "hits@10". Default: the one that chooses the best step.

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

    A run that is cut short at any moment and resumed gives the same parameters to the bit as an undisturbed
    one, on one machine and as many devices; on others it differs by rounding. SIGINT (Ctrl-C), SIGTERM
    and SIGHUP write a checkpoint, and then do what they did before, or interrupt. `folder` is not written
    before the first checkpoint.

    Several devices share out the embeddings of entities by rows, and the queries of a step against negatives.
    Processes that `owkg.train.connect` has connected call this together; the first one writes `folder`, and
    all must see it.

    Args:
        graph: whose split train is learned; the split valid chooses the best step and when to stop.
        config: how.
        folder: to write.
        graph_folder: where the graph comes from; its checksums are noted.
        reading: how it was read there, which is noted too; None: by the files.
        devices: how many of those that JAX sees; None: one, or all where several processes are connected.
        resume: whether to go on with the run in `folder`, from its newest checkpoint.
        overwrite: whether a run that is there may be replaced.
        chunk_steps: steps a call of the device; None: as many as take half a second.
        watch: told (step, model with its arrays) after each of the `watched` numbers of steps, before the
            checkpoint of that step; a resumed run tells again what came after its newest checkpoint.
        watched: numbers of steps, in [1, steps of the training].
        on_progress: told how many steps are done, of how many, and loss and speed in words.

    Returns:
        The run at its best step, or its last if nothing was validated.

    Raises:
        ValueError: if the graph, the configuration and the folder do not suit each other, or the loss is not
            finite.
        OSError: if something cannot be written; the checkpoints that are there stay.
    """
    if resume and overwrite:
        raise ArgumentError("overwrite", "must not be given with `resume`: the run is gone on with.")
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
            # The first process puts aside what is damaged, before the others look.
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
    # Of tables that one device may not hold, those of the run stay on the host.
    return by_each(lambda: _loaded(folder, "best", None if layout is None else lambda array, _: array))


def config_file(folder: Path) -> Path:
    """The file of the configuration of a run.

    Raises:
        ValueError: if `folder` is no folder of a run.
    """
    if not (folder / CONFIG).is_file():
        raise ValueError(f"{folder}: is no folder of a run; it holds no {CONFIG}.")
    return folder / CONFIG


def run_config(folder: Path, **settings: object) -> Training:
    """The configuration of a run, some of it replaced by `settings`, to go on with it.

    Raises:
        ValueError: if `folder` is no folder of a run, its configuration is none, or it is of another model.
    """
    path = config_file(folder)
    text = path.read_text(encoding="utf-8", errors="replace")
    said = re.search(r'^model = "([^"]*)"$', text, re.MULTILINE)
    if said and said[1] not in MODELS:
        raise ValueError(
            f"{path}: model {said[1]!r} is not known; a model of your own is imported with "
            f"{plugins.VARIABLE}=module."
        )
    if "model" in settings and (held := read_config(path).model) != str(settings["model"]).lower():
        raise ArgumentError("model", f"must be {held} as in the run {folder}, got {settings['model']}.")
    # Updates of runs that do not say how: there was one way.
    before = {} if re.search(r"^updates\b", text, re.MULTILINE) else {"updates": "dense"}
    return read_config(path, **(before | settings))


def run_reading(folder: Path) -> Reading:
    """How the graph of a run was read; ValueError if `folder` is no folder of a run."""
    return noted_reading(require_unchanged(folder))


def saved_steps(folder: Path) -> list[int]:
    """The steps of a run that have a checkpoint, increasing; none if `folder` is no run."""
    return checkpoint_steps(folder / CHECKPOINTS)


@reproducible
def load_run(folder: Path, *, step: int | str = "best") -> Run:
    """Reads the folder of a run.

    Args:
        folder: that `train` wrote.
        step: of the checkpoint: a number, "last", or "best": by the validation metric; the last if nothing
            was validated.

    Raises:
        ValueError: if it is no such folder, has no such checkpoint, or holds one of another model or shape.
    """
    return _loaded(checks.path("folder", folder), step, None)


def _loaded(folder: Path, step: int | str, put: Put | None) -> Run:
    """As `load_run`, with arrays as `put` makes them (`owkg.train.checkpoints.read_checkpoint`)."""
    noted = require_unchanged(folder)
    config = run_config(folder)
    entities, relations = (read_labels(folder / name) for name in RUN_LABELS.values())
    steps = checkpoint_steps(folder / CHECKPOINTS)
    if not steps:
        raise ValueError(f"{folder}: holds no checkpoint yet.")
    like = state_shape(
        config, len(entities), len(relations), noted.get("predictions", noted.get("train_facts", 1))
    )
    require_like(folder / CHECKPOINTS, steps[-1], like)
    rows = read_rows(folder, steps[-1])
    if step == "best":
        step = best_step(config, rows) or steps[-1]
        if step not in steps:
            raise ValueError(
                f"{folder}: the checkpoint of its best step, {step}, is not there; resumed training "
                f"makes it again. `step` can be one of: {', '.join(map(str, steps))}."
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
    """(checkpoint, rows until then) from which the run in `folder` goes on: the newest.

    Where the best step until then has no whole checkpoint, it is the newest before that step, so that it is
    made again; a warning says so.

    Raises:
        ValueError: if it is not of this graph and configuration, or its path is not as it was written.
    """
    noted = require_unchanged(folder)
    held, asked = config_text(run_config(folder)), config_text(config)
    if held != asked:
        pairs = zip_longest(held.splitlines(), asked.splitlines(), fillvalue="nothing")
        was, now = next(pair for pair in pairs if pair[0] != pair[1])
        raise ValueError(f"{folder / CONFIG}: is of another training: {was!r} there, {now!r} asked for.")
    for kind, name in RUN_LABELS.items():
        if read_labels(folder / name) != getattr(graph, kind):
            raise ValueError(f"{folder / name}: are other labels than the graph's.")
    if noted.get("facts_sha256") != facts_checksums(graph):
        raise ValueError(f"{folder}: was trained on other facts than those of the graph.")
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
        f"{checkpoints / str(best)}: the best step is not there; trained again from step "
        f"{start.step if start else 0}.",
        UserWarning,
        stacklevel=2,
    )
    return start, _until(start, rows)


def _until(start: Checkpoint | None, rows: list[Row]) -> list[Row]:
    """The rows until a checkpoint."""
    return [row for row in rows if start is not None and int(row["step"] or 0) <= start.step]
