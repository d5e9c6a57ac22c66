"""Files in the folder of a run, except its checkpoints: writing, reading and checking them."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import polars as pl

from owkg import kg
from owkg.files import storage
from owkg.files.storage import written_aside
from owkg.kg.graph import graph_checked
from owkg.kg.read import Reading
from owkg.train.checkpoints import checkpoint_steps, keep_checkpoints, noted_path, write_checkpoint
from owkg.train.config import Training, config_text
from owkg.train.hosts import by_first
from owkg.train.layout import MeshLayout
from owkg.train.loop import Row, Snapshot, best_step

RUN_MADE_BY = "owkg train"
CONFIG, PATH, CHECKPOINTS = "config.toml", "path.parquet", "checkpoints"
RUN_LABELS = {"entities": "entities.dict", "relations": "relations.dict"}
# Files that define a run and never change.
_FIXED = (CONFIG, *RUN_LABELS.values())
# Name of the checksum of everything else in the metadata.
_OWN = "metadata_sha256"
# Columns of the training path; the columns of validations follow them.
_COLUMNS: dict[str, type[pl.DataType]] = {
    "step": pl.Int64,
    "epoch": pl.Float64,
    "loss": pl.Float64,
    "seconds": pl.Float64,
    "examples_per_s": pl.Float64,
}
# Number of newest checkpoints to keep, in addition to the best.
_KEPT = 2


@contextmanager
def made_run(
    folder: Path,
    graph: kg.KnowledgeGraph,
    config: Training,
    graph_folder: Path | None,
    reading: Reading,
    *,
    overwrite: bool,
    devices: int,
    more: Mapping[str, object] | None = None,
) -> Iterator[Path]:
    """Yields a new folder of a run before its first step; on success it becomes `folder`.

    A run that is to be replaced stays until then. `more` goes into the metadata and may be filled until the
    end.
    """
    inputs = [] if graph_folder is None else list(graph_folder.iterdir())
    with storage.made_folder(folder, made_by=RUN_MADE_BY, inputs=inputs, overwrite=overwrite) as new:
        (new / CONFIG).write_text(config_text(config), encoding="utf-8")
        for kind, name in RUN_LABELS.items():
            lines = (f"{i}\t{label}\n" for i, label in enumerate(getattr(graph, kind)))
            (new / name).write_text("".join(lines), encoding="utf-8")
        (new / CHECKPOINTS).mkdir()
        device = jax.devices()[0]
        packages = ("jax", "jaxlib", "optax")
        content = {
            "made_by": RUN_MADE_BY,
            "versions": storage.versions() | {package: version(package) for package in packages},
            "device": {"platform": device.platform, "kind": device.device_kind, "count": devices},
            "processes": jax.process_count(),
            "graph_folder": None if graph_folder is None else str(graph_folder.absolute()),
            "graph_reading": reading._asdict(),
            "train_facts": len(graph.splits["train"]),
            "facts_sha256": facts_checksums(graph),
            "run_sha256": {name: storage.checksum(new / name) for name in _FIXED},
            "sha256": {} if graph_folder is None else _files(graph_folder),
        }
        yield new
        content |= more or {}
        storage.write_metadata(new, content | {_OWN: _json_checksum(content)})


def noted_reading(noted: dict[str, Any]) -> Reading:
    """How the graph of a run was read, from its metadata; earlier versions did not record this."""
    return Reading(**noted.get("graph_reading", {}))


def facts_checksums(graph: object) -> dict[str, str]:
    """Checksums of the facts that training uses: the triples of train and valid as ids, little-endian int32.

    Raises:
        ValueError: if `graph` is not a KnowledgeGraph.
    """
    graph = graph_checked(graph)
    splits = ((name, graph.splits[name]) for name in ("train", "valid") if name in graph.splits)
    return {name: hashlib.sha256(triples.astype("<i4").tobytes()).hexdigest() for name, triples in splits}


def _files(graph_folder: Path) -> dict[str, str]:
    return {path.name: storage.checksum(path) for path in sorted(graph_folder.iterdir()) if path.is_file()}


def require_unchanged(folder: Path) -> dict[str, Any]:
    """Metadata of a run.

    Raises:
        ValueError: if `folder` is not a run, or its metadata, configuration or labels have changed since they
            were written.
    """
    for name in _FIXED:
        if not (folder / name).is_file():
            raise ValueError(f"{folder}: is not the folder of a run, because it has no {name}.")
    noted = storage.read_metadata(folder)
    if noted.pop(_OWN, None) != _json_checksum(noted):
        raise ValueError(f"{folder / storage.METADATA_FILE}: is not as it was written.")
    for name in _FIXED:
        if noted["run_sha256"][name] != storage.checksum(folder / name):
            raise ValueError(f"{folder / name}: is not as it was written, and the run needs the original.")
    return noted


def _json_checksum(content: dict[str, Any] | list[Row]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def path_checksum(rows: list[Row], step: int) -> str:
    """Checksum of the rows of a training path up to `step`; null values are left out."""
    until = (row for row in rows if (row["step"] or 0) <= step)
    return _json_checksum([{k: v for k, v in row.items() if v is not None} for row in until])


def path_table(rows: list[Row]) -> pl.DataFrame:
    """Rows of a training path as a table, which has its columns even if it is empty."""
    if not rows:
        return pl.DataFrame(schema=_COLUMNS)
    return pl.DataFrame(rows, infer_schema_length=None, schema_overrides=_COLUMNS)


def read_rows(folder: Path, step: int) -> list[Row]:
    """Rows of the training path.

    Raises:
        ValueError: if there is no such file, or the rows do not have the checksum recorded in checkpoint
            `step`.
    """
    path = folder / PATH
    rows = _rows(path) if path.exists() else []
    if path_checksum(rows, step) != noted_path(folder / CHECKPOINTS, step):
        how = "is not as it was written" if path.exists() else "is not there"
        raise ValueError(f"{path}: {how}; it records which step is the best.")
    return rows


def _rows(path: Path) -> list[Row]:
    try:
        table = pl.read_parquet(path, glob=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise ValueError(f"{path}: must be Parquet ({str(error).splitlines()[0]}).") from None
    wrong = [name for name in _COLUMNS if name not in table.columns or not table[name].dtype.is_numeric()]
    # A run of rules has no loss.
    wrong = wrong or [name for name in _COLUMNS if name != "loss" and table[name].null_count()]
    wrong += [name for name in table.columns if name not in _COLUMNS and not table[name].dtype.is_float()]
    if wrong:
        raise ValueError(
            f"{path}: must have numbers in {', '.join(_COLUMNS)} and valid_*, got other values in {wrong[0]}."
        )
    return table.to_dicts()


def write_snapshot(
    folder: Path, config: Training, snapshot: Snapshot, layout: MeshLayout | None = None
) -> None:
    """Writes the training path and, if it is due, the checkpoint, and then removes outdated checkpoints.

    All processes take part, and the first one writes.
    """
    step, rows = snapshot.step, snapshot.rows

    def write_path() -> None:
        with written_aside(folder / PATH) as aside:
            path_table(rows).write_parquet(aside)

    def remove() -> None:
        newest = checkpoint_steps(checkpoints)[-_KEPT:]
        keep_checkpoints(checkpoints, [*newest, best_step(config, rows) or step])

    if rows:
        by_first(write_path)
    if snapshot.due:
        checkpoints = folder / CHECKPOINTS
        write_checkpoint(checkpoints, step, snapshot.state, path_checksum(rows, step), layout)
        by_first(remove)
