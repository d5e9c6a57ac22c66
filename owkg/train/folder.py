"""The files of the folder of a run beside its checkpoints: written, read, and held against each other."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import polars as pl

from owkg import kg, provenance
from owkg.files import written_aside
from owkg.kg.graph import graph_checked
from owkg.train.checkpoints import checkpoint_steps, keep_checkpoints, write_checkpoint
from owkg.train.config import Training, config_text
from owkg.train.loop import Row, Snapshot, best_step

MADE_BY = "owkg train"
CONFIG, PATH, CHECKPOINTS = "config.toml", "path.parquet", "checkpoints"
LABELS = {"entities": "entities.dict", "relations": "relations.dict"}
# What a run's parameters are of, and never changes.
_FIXED = (CONFIG, *LABELS.values())
# Of the training path; validations stand beside them.
_COLUMNS: dict[str, Any] = {
    "step": pl.Int64,
    "epoch": pl.Float64,
    "loss": pl.Float64,
    "seconds": pl.Float64,
    "examples_per_s": pl.Float64,
}
# Checkpoints that are kept beside the best.
_KEPT = 2


@contextmanager
def made_run(
    folder: Path, graph: kg.KnowledgeGraph, config: Training, graph_folder: Path | None, *, overwrite: bool
) -> Iterator[Path]:
    """Yields the folder of a run before its first step, beside `folder`, which it becomes when all went well.

    Until then, a run that is to be replaced stays.
    """
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
                "facts_sha256": facts_checksums(graph),
                "run_sha256": {name: provenance.checksum(new / name) for name in _FIXED},
                "sha256": {} if graph_folder is None else _files(graph_folder),
            },
        )
        yield new


def facts_checksums(graph: Any) -> dict[str, str]:
    """Checksums of what training looks at: the triples of train and valid as ids, little-endian int32.

    Raises:
        ValueError: if `graph` is no KnowledgeGraph.
    """
    graph = graph_checked(graph)
    splits = ((name, graph.splits[name]) for name in ("train", "valid") if name in graph.splits)
    return {name: hashlib.sha256(triples.astype("<i4").tobytes()).hexdigest() for name, triples in splits}


def _files(graph_folder: Path) -> dict[str, str]:
    return {path.name: provenance.checksum(path) for path in sorted(graph_folder.iterdir()) if path.is_file()}


def require_unchanged(folder: Path) -> dict[str, Any]:
    """The metadata of a run.

    Raises:
        ValueError: if `folder` is no run, or its configuration or labels are not as they were written.
    """
    for name in _FIXED:
        if not (folder / name).is_file():
            raise ValueError(f"{folder}: is no folder of a run; it holds no {name}.")
    noted = provenance.read_metadata(folder)
    sums = noted.get("run_sha256")
    for name in _FIXED:
        if not isinstance(sums, dict) or sums.get(name) != provenance.checksum(folder / name):
            raise ValueError(f"{folder / name}: is not as it was written; the run is of what it said then.")
    return noted


def path_table(rows: list[Row]) -> pl.DataFrame:
    """The rows of a training path; its columns are there even if it is empty."""
    return pl.DataFrame(rows, infer_schema_length=None) if rows else pl.DataFrame(schema=_COLUMNS)


def read_rows(folder: Path) -> list[Row]:
    """The rows of the training path that was written; none if none was."""
    path = folder / PATH
    if not path.exists():
        return []
    try:
        table = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ValueError(f"{path}: must be Parquet ({error}).") from None
    wrong = [name for name in _COLUMNS if name not in table.columns or not table[name].dtype.is_numeric()]
    wrong += [name for name in table.columns if name not in _COLUMNS and not table[name].dtype.is_float()]
    if wrong:
        raise ValueError(
            f"{path}: must have numbers in {', '.join(_COLUMNS)} and valid_*; {wrong[0]} is not so."
        )
    return table.to_dicts()


def write_snapshot(folder: Path, config: Training, snapshot: Snapshot) -> None:
    """The path, then the checkpoint if there is to be one, and last the removal of those outlived."""
    step, rows = snapshot.step, snapshot.rows
    if rows:
        with written_aside(folder / PATH) as aside:
            path_table(rows).write_parquet(aside)
    if snapshot.due:
        checkpoints = folder / CHECKPOINTS
        write_checkpoint(checkpoints, step, snapshot.state)
        newest = checkpoint_steps(checkpoints)[-_KEPT:]
        keep_checkpoints(checkpoints, [*newest, best_step(config, rows) or step])
