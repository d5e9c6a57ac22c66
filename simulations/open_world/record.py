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
"""Name of the folder of the run beside its ranks."""

_RANKS, _PARTS = "ranks.parquet", "parts"
_CONTENT = "content"
_COLUMNS: dict[str, Any] = {
    "step": pl.Int64,
    "optimistic": pl.Int32,
    "pessimistic": pl.Int32,
    "score": pl.Float32,
}


class Record(NamedTuple):
    """What the checkpoints of one run say of the full test.

    Attributes:
        step: of each checkpoint, increasing, [checkpoints].
        optimistic: rank of each answer, filtered by train and by the other full answers, ties for it,
            [checkpoints, answers].
        pessimistic: the same, ties against it.
        score: of each answer, [checkpoints, answers].
    """

    step: Int64[np.ndarray, "checkpoints"]
    optimistic: Int32[np.ndarray, "checkpoints answers"]
    pessimistic: Int32[np.ndarray, "checkpoints answers"]
    score: Float32[np.ndarray, "checkpoints answers"]


def is_recorded(world: ClosedWorld, config: Training, folder: Path) -> bool:
    """Whether `folder` holds the whole record of this world and training.

    Raises:
        ValueError: if it holds that of another, or a run of another training that has not come to its end.
    """
    path = folder / _RANKS
    if not path.is_file():
        begun = folder / RUN
        if begun.is_dir() and config_file(begun).read_text(encoding="utf-8") != config_text(config):
            raise ValueError(f"{begun}: is of another training; choose another folder for the results.")
        return False
    try:
        held = pl.read_parquet_metadata(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise ValueError(f"{path}: must be Parquet ({error}).") from None
    for name, asked in _signature(world, config).items():
        if held.get(name) != asked:
            raise ValueError(f"{path}: is of another {name}; choose another folder for the results.")
    return True


def record(
    world: ClosedWorld,
    config: Training,
    steps: tuple[int, ...],
    folder: Path,
    *,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> Record:
    """Trains, ranks all full answers after each of `steps`, and writes that to `folder`.

    One scoring of a checkpoint gives what every sparse test set needs. Cut short at any moment, the same call
    goes on, and ends with the same record; where it is whole, it is read.

    Args:
        world: to learn and to be asked.
        config: how to train; it says where a run goes on from, by `checkpoint_every`.
        steps: numbers of steps after which to look, increasing; training ends at its own end.
        folder: for the run and the record.
        on_progress: told how many steps are done, of how many, and loss and speed in words.

    Raises:
        ValueError: if `steps` are none, or beyond the training, `folder` holds another run or record, or
            training goes astray.
    """
    if not steps:
        raise ValueError("`steps` must be at least one number, got none.")
    parts, run = folder / _PARTS, folder / RUN
    if is_recorded(world, config, folder):
        shutil.rmtree(parts, ignore_errors=True)
        found = read_record(world, config, folder)
        if found.step.tolist() != list(steps):
            raise ValueError(f"{folder / _RANKS}: is of other looks; choose another folder for the results.")
        return found
    parts.mkdir(parents=True, exist_ok=True)

    def look(step: int, trained: Trained) -> None:
        found = rank_arrays(trained, world.triples, "tail", known=world.known)
        columns = (np.full(len(found.score), step), found.optimistic, found.pessimistic, found.score)
        table = pl.DataFrame(dict(zip(_COLUMNS, columns, strict=True)), schema_overrides=_COLUMNS)
        with written_aside(parts / f"{step:09}.parquet") as aside:
            table.write_parquet(aside)

    train(world.graph, config, run, resume=run.is_dir(), watch=look, watched=steps, on_progress=on_progress)
    jax.clear_caches()  # programs of another run are others; hundreds would use up a process's memory maps
    paths = [parts / f"{step:09}.parquet" for step in steps]
    with written_aside(folder / _RANKS) as aside:
        table = pl.concat(map(read_parquet, paths))
        table.write_parquet(aside, metadata=_signature(world, config) | {_CONTENT: _digest(table)})
    shutil.rmtree(parts)
    return read_record(world, config, folder)


def read_record(world: ClosedWorld, config: Training, folder: Path) -> Record:
    """The record in `folder`.

    Raises:
        ValueError: if there is none, it is of another world or training, or is not as it was written.
    """
    if not is_recorded(world, config, folder):
        raise ValueError(f"{folder / _RANKS}: is not there; the run has not come to its end.")
    path = folder / _RANKS
    table = read_parquet(path)
    if pl.read_parquet_metadata(path).get(_CONTENT, _digest(table)) != _digest(table):
        raise ValueError(f"{path}: is not as it was written; the run beside it has the parameters.")
    answers = len(world.triples)
    columns = (table[name].to_numpy().reshape(-1, answers) for name in _COLUMNS)
    step, *ranked = columns
    return Record(step[:, 0], *ranked)


def some_of(record: Record, most: int) -> Record:
    """At most so many of the checkpoints, the first and the last among them, evenly spread."""
    if len(record.step) <= most:
        return record
    chosen = np.unique(np.linspace(0, len(record.step) - 1, most).round().astype(int))
    return Record(*(column[chosen] for column in record))


def _digest(table: pl.DataFrame) -> str:
    """A checksum of the columns of a record."""
    digest = hashlib.sha256()
    for name in _COLUMNS:
        digest.update(table[name].to_numpy().tobytes() if name in table.columns else b"")
    return digest.hexdigest()


def _signature(world: ClosedWorld, config: Training) -> dict[str, str]:
    """What a record is of: checksums of the training facts, the asked facts and the training."""
    asked = hashlib.sha256(world.triples.astype("<i4").tobytes()).hexdigest()
    training = hashlib.sha256(config_text(config).encode()).hexdigest()
    return facts_checksums(world.graph) | {"full test": asked, "training": training}
