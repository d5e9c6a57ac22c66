"""The folder of a run: what was trained, from what, how it went, and its checkpoints."""

import hashlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import polars as pl

from owkg import kg, provenance
from owkg.files import written_aside
from owkg.kg.labels import read_labels
from owkg.models import Model, Params, Statistics
from owkg.train.checkpoints import (
    checkpoint_steps,
    keep_checkpoints,
    newest_checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from owkg.train.config import Training, config_text, read_config
from owkg.train.loop import Row, Snapshot, best_step, snapshots
from owkg.train.step import State, begun_shape

MADE_BY = "owkg train"
CONFIG, PATH, CHECKPOINTS = "config.toml", "path.parquet", "checkpoints"
LABELS = {"entities": "entities.dict", "relations": "relations.dict"}
# Checkpoints that are kept beside the best.
_KEPT = 2


class Run(NamedTuple):
    """A trained model.

    Attributes:
        model: what was trained.
        params: of the model.
        statistics: of the model.
        step: of the checkpoint that they come from.
        config: how it was trained.
        entities: the labels of the rows of the entities.
        relations: the labels of the relations.
        graph_folder: where the graph was read, if it was.
        path: the rows of the training path.
    """

    model: Model
    params: Params
    statistics: Statistics
    step: int
    config: Training
    entities: tuple[str, ...]
    relations: tuple[str, ...]
    graph_folder: Path | None
    path: pl.DataFrame


def train(
    graph: kg.KnowledgeGraph,
    config: Training,
    folder: Path,
    *,
    graph_folder: Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    chunk_steps: int | None = None,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> Run:
    """Trains a model into the folder of a run.

    A run that ends at any moment, however it ends, and is resumed gives the same parameters to the bit as
    one that was not disturbed, on one machine. An interrupt (Ctrl-C) writes a checkpoint first.

    Args:
        graph: whose split train is learned; the split valid chooses the best step and when to stop.
        config: how.
        folder: to write.
        graph_folder: where the graph comes from; its checksums are noted.
        resume: whether to go on with the run in `folder`, from its newest checkpoint.
        overwrite: whether a run that is there may be replaced.
        chunk_steps: steps a call of the device; None: as many as take half a second.
        on_progress: told how many steps are done, of how many, and loss and speed in words.

    Returns:
        The run at its best step, or its last if nothing was validated.

    Raises:
        ValueError: if the graph, the configuration and the folder do not suit each other, or the loss is not
            finite.
        OSError: if something cannot be written; the checkpoints that are there stay.
    """
    start = None
    if resume:
        _require_same(folder, graph, config)
        like = begun_shape(config, graph.num_entities, graph.num_relations)
        start = newest_checkpoint(folder / CHECKPOINTS, like)
    reached = start.step if start else -1
    rows = [row for row in _read_rows(folder) if (row["step"] or 0) <= reached]
    with _interrupts() as interrupted:
        walk = snapshots(
            graph,
            config,
            start=start,
            rows=rows,
            chunk_steps=chunk_steps,
            on_progress=on_progress,
            interrupted=interrupted,
        )
        if not resume:
            _make(folder, graph, config, graph_folder, overwrite=overwrite)
        for snapshot in walk:
            _write(folder, config, snapshot)
        if interrupted():
            raise KeyboardInterrupt
    return load_run(folder)


def config_file(folder: Path) -> Path:
    """The file of the configuration of a run.

    Raises:
        ValueError: if `folder` is no folder of a run.
    """
    if not (folder / CONFIG).is_file():
        raise ValueError(f"{folder}: is no folder of a run; it holds no {CONFIG}.")
    return folder / CONFIG


def load_run(folder: Path, *, step: int | str = "best") -> Run:
    """Reads the folder of a run.

    Args:
        folder: that `train` wrote.
        step: of the checkpoint: a number, "last", or "best": by the validation metric; the last if nothing
            was validated.

    Raises:
        ValueError: if it is no such folder, has no such checkpoint, or holds one of another model or shape.
    """
    for name in (CONFIG, *LABELS.values()):
        if not (folder / name).is_file():
            raise ValueError(f"{folder}: is no folder of a run; it holds no {name}.")
    config = read_config(folder / CONFIG)
    entities, relations = (read_labels(folder / name, openke=False) for name in LABELS.values())
    rows = _read_rows(folder)
    steps = checkpoint_steps(folder / CHECKPOINTS)
    if not steps:
        raise ValueError(f"{folder}: holds no checkpoint yet.")
    if step == "best":
        # Rows are written before their checkpoint: a run that was cut short may lack it.
        step = best_step(config, [row for row in rows if row["step"] in steps]) or steps[-1]
    elif step == "last":
        step = steps[-1]
    if not isinstance(step, int) or isinstance(step, bool):
        raise ValueError(f'`step` must be "best", "last", or a whole number, got {step!r}.')
    like = begun_shape(config, len(entities), len(relations))
    state: State = read_checkpoint(folder / CHECKPOINTS, step, like)
    noted = provenance.read_metadata(folder).get("graph_folder")
    graph_folder = None if noted is None else Path(noted)
    return Run(
        config.built(),
        state.params,
        state.statistics,
        step,
        config,
        entities,
        relations,
        graph_folder,
        pl.DataFrame(rows, infer_schema_length=None),
    )


def _make(
    folder: Path, graph: kg.KnowledgeGraph, config: Training, graph_folder: Path | None, *, overwrite: bool
) -> None:
    """The folder of a run before its first step."""
    inputs = [] if graph_folder is None else list(graph_folder.iterdir())
    with provenance.made_folder(folder, made_by=MADE_BY, inputs=inputs, overwrite=overwrite) as new:
        (new / CONFIG).write_text(config_text(config), encoding="utf-8")
        for kind, name in LABELS.items():
            lines = (f"{i}\t{label}\n" for i, label in enumerate(getattr(graph, kind)))
            (new / name).write_text("".join(lines), encoding="utf-8")
        (new / CHECKPOINTS).mkdir()
        device = jax.devices()[0]
        packages = ("jax", "jaxlib", "optax", "orbax-checkpoint")
        provenance.write_metadata(
            new,
            {
                "made_by": MADE_BY,
                "versions": provenance.versions() | {package: version(package) for package in packages},
                "device": {"platform": device.platform, "kind": device.device_kind},
                "graph_folder": None if graph_folder is None else str(graph_folder.absolute()),
                "facts_sha256": _facts(graph),
                "sha256": {} if graph_folder is None else _files(graph_folder),
            },
        )


def _facts(graph: kg.KnowledgeGraph) -> dict[str, str]:
    """Checksums of what training looks at: the triples as ids, little-endian int32."""
    splits = ((name, graph.splits[name]) for name in ("train", "valid") if name in graph.splits)
    return {name: hashlib.sha256(triples.astype("<i4").tobytes()).hexdigest() for name, triples in splits}


def _files(graph_folder: Path) -> dict[str, str]:
    return {path.name: provenance.checksum(path) for path in sorted(graph_folder.iterdir()) if path.is_file()}


def _require_same(folder: Path, graph: kg.KnowledgeGraph, config: Training) -> None:
    """Stops unless `folder` holds a run of this graph and configuration."""
    text = config_file(folder).read_text(encoding="utf-8")
    if text != config_text(config):
        pairs = zip(text.splitlines(), config_text(config).splitlines(), strict=False)
        was, now = next(pair for pair in pairs if pair[0] != pair[1])
        raise ValueError(f"{folder / CONFIG}: is of another training: {was!r} there, {now!r} asked for.")
    for kind, name in LABELS.items():
        if read_labels(folder / name, openke=False) != getattr(graph, kind):
            raise ValueError(f"{folder / name}: are other labels than the graph's.")
    if provenance.read_metadata(folder).get("facts_sha256") != _facts(graph):
        raise ValueError(f"{folder}: was trained on other facts than those of the graph.")


def _read_rows(folder: Path) -> list[Row]:
    path = folder / PATH
    try:
        return pl.read_parquet(path).to_dicts() if path.is_file() else []
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path}: must be Parquet ({error}).") from None


def _write(folder: Path, config: Training, snapshot: Snapshot) -> None:
    """The path, then the checkpoint if there is to be one, and last the removal of those outlived."""
    step, rows = snapshot.step, snapshot.rows
    if rows:
        with written_aside(folder / PATH) as aside:
            pl.DataFrame(rows, infer_schema_length=None).write_parquet(aside)
    if snapshot.due:
        checkpoints = folder / CHECKPOINTS
        write_checkpoint(checkpoints, step, snapshot.state)
        newest = checkpoint_steps(checkpoints)[-_KEPT:]
        keep_checkpoints(checkpoints, [*newest, best_step(config, rows) or step])


@contextmanager
def _interrupts() -> Iterator[Callable[[], bool]]:
    """Yields whether Ctrl-C was pressed; pressed again, it interrupts at once."""
    pressed: list[Any] = []

    def press(*signal_: Any) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(signal_)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, press)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)
