"""Training of a model with its full-test ranks recorded along the way."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import polars as pl
from jaxtyping import Float32, Int32, Int64

from owkg.evaluation import rank_arrays
from owkg.files.parquet import read_parquet
from owkg.files.storage import written_aside
from owkg.models import Trained
from owkg.train import Training, config_file, config_text, facts_checksums, train
from simulations.open_world.world import ClosedWorld

RUN = "run"
"""Name of the folder of the run, next to its ranks."""

_RANKS, _PARTS = "ranks.parquet", "parts"
_CONTENT = "content"
_COLUMNS: dict[str, Any] = {
    "step": pl.Int64,
    "optimistic": pl.Int32,
    "pessimistic": pl.Int32,
    "score": pl.Float32,
}


class Record(NamedTuple):
    """Results of the checkpoints of one run on the full test.

    Attributes:
        step: step of each checkpoint, increasing, [checkpoints].
        optimistic: rank of each answer, filtered by train and by the other full answers, with ties counted
            for the answer, [checkpoints, answers].
        pessimistic: the same rank, with ties counted against the answer.
        score: score of each answer, [checkpoints, answers].
    """

    step: Int64[np.ndarray, "checkpoints"]
    optimistic: Int32[np.ndarray, "checkpoints answers"]
    pessimistic: Int32[np.ndarray, "checkpoints answers"]
    score: Float32[np.ndarray, "checkpoints answers"]


def is_recorded(world: ClosedWorld, config: Training, folder: Path) -> bool:
    """Whether `folder` holds the whole record of this world and training.

    Raises:
        ValueError: if it holds a record of another world or training, or an unfinished run of another
            training.
    """
    path = folder / _RANKS
    if not path.is_file():
        begun = folder / RUN
        if begun.is_dir() and config_file(begun).read_text(encoding="utf-8") != config_text(config):
            raise ValueError(f"{begun}: belongs to another training; choose another folder for the results.")
        return False
    try:
        held = pl.read_parquet_metadata(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise ValueError(f"{path}: must be Parquet ({error}).") from None
    for name, asked in _signature(world, config).items():
        if held.get(name) != asked:
            raise ValueError(f"{path}: belongs to another {name}; choose another folder for the results.")
    return True


def record(
    world: ClosedWorld,
    config: Training,
    steps: tuple[int, ...],
    folder: Path,
    *,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> Record:
    """Trains, ranks all full answers after each of `steps`, and writes the record to `folder`.

    Scoring a checkpoint once gives everything that the sparse test sets need. If the call is interrupted at
    any moment, the same call resumes and ends with the same record. A finished record is read.

    Args:
        world: world to learn and to query.
        config: training settings; `checkpoint_every` sets where an interrupted run resumes.
        steps: numbers of steps after which to rank, increasing; training still runs to its own end.
        folder: folder for the run and the record.
        on_progress: called with steps done, steps in all, and a text of loss and speed.

    Raises:
        ValueError: if `steps` is empty or beyond the training, `folder` holds another run or record, or
            training diverges.
    """
    if not steps:
        raise ValueError("`steps` must be at least one number, got none.")
    parts, run = folder / _PARTS, folder / RUN
    if is_recorded(world, config, folder):
        shutil.rmtree(parts, ignore_errors=True)
        found = read_record(world, config, folder)
        if found.step.tolist() != list(steps):
            raise ValueError(
                f"{folder / _RANKS}: was recorded at other steps; choose another folder for the results."
            )
        return found
    parts.mkdir(parents=True, exist_ok=True)

    def look(step: int, trained: Trained) -> None:
        found = rank_arrays(trained, world.triples, "tail", known=world.known)
        columns = (np.full(len(found.score), step), found.optimistic, found.pessimistic, found.score)
        table = pl.DataFrame(dict(zip(_COLUMNS, columns, strict=True)), schema_overrides=_COLUMNS)
        with written_aside(parts / f"{step:09}.parquet") as aside:
            table.write_parquet(aside)

    train(world.graph, config, run, resume=run.is_dir(), watch=look, watched=steps, on_progress=on_progress)
    jax.clear_caches()  # hundreds of programs of other runs would use up a process's memory maps
    paths = [parts / f"{step:09}.parquet" for step in steps]
    with written_aside(folder / _RANKS) as aside:
        table = pl.concat(map(read_parquet, paths))
        table.write_parquet(aside, metadata=_signature(world, config) | {_CONTENT: _digest(table)})
    shutil.rmtree(parts)
    return read_record(world, config, folder)


def read_record(world: ClosedWorld, config: Training, folder: Path) -> Record:
    """Record in `folder`.

    Raises:
        ValueError: if there is none, it belongs to another world or training, or the file was changed.
    """
    if not is_recorded(world, config, folder):
        raise ValueError(f"{folder / _RANKS}: is missing; the run has not finished.")
    path = folder / _RANKS
    table = read_parquet(path)
    if pl.read_parquet_metadata(path).get(_CONTENT, _digest(table)) != _digest(table):
        raise ValueError(
            f"{path}: was changed after it was written; the run in the same folder has the parameters."
        )
    answers = len(world.triples)
    columns = (table[name].to_numpy().reshape(-1, answers) for name in _COLUMNS)
    step, *ranked = columns
    return Record(step[:, 0], *ranked)


def some_of(record: Record, most: int) -> Record:
    """At most `most` of the checkpoints, evenly spread, including the first and the last."""
    if len(record.step) <= most:
        return record
    chosen = np.unique(np.linspace(0, len(record.step) - 1, most).round().astype(int))
    return Record(*(column[chosen] for column in record))


def _digest(table: pl.DataFrame) -> str:
    """Checksum of the columns of a record."""
    digest = hashlib.sha256()
    for name in _COLUMNS:
        digest.update(table[name].to_numpy().tobytes() if name in table.columns else b"")
    return digest.hexdigest()


def _signature(world: ClosedWorld, config: Training) -> dict[str, str]:
    """Signature of a record: checksums of the training facts, the asked facts and the training."""
    asked = hashlib.sha256(world.triples.astype("<i4").tobytes()).hexdigest()
    training = hashlib.sha256(config_text(config).encode()).hexdigest()
    return facts_checksums(world.graph) | {"full test": asked, "training": training}
