"""Copies of the rows of a dataset on disk, divided into parts of whole queries that fit in memory."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from owkg import checks
from owkg.errors import ArgumentError
from owkg.files.begun import temporary_folder
from owkg.files.storage import free_memory
from owkg.ranks.dataset import RankDataset
from owkg.ranks.table import RANKS, RELATION, SIDES, TRIPLE, RankTable
from owkg.ranks.tasks import MOST_CANDIDATES, Tasks, tasks_of

# Bytes that a row takes in memory, and bytes that are taken before any row.
_ROW, _BASE = 200, 2**28
# Largest and smallest number of rows of a part.
_ROWS, _FEWEST_ROWS = 2**22, 2**16
_SIDES = (*SIDES, RELATION)
# Columns of text, which are stored as the numbers of their entries.
_TEXT = ("model", "category", "half_link")
_FLOATS, _FLAGS = ("weight",), ("filtered", "bounded", "averaged")
_MIX = np.uint64(0x9E3779B97F4A7C15)

Progress = Callable[[int, int], None] | None


@dataclass(frozen=True, eq=False)
class Partitions:
    """Rows of a dataset in parts of whole queries.

    Attributes:
        dataset: dataset of the rows.
        folder: folder of the files of the parts.
        kind: type of a row in the files.
        count: number of parts.
        entries: labels of each column that is stored as numbers.
        largest: largest entry of each column of numbers.
        sides: sides that occur.
    """

    dataset: RankDataset
    folder: Path
    kind: np.dtype
    count: int
    entries: dict[str, pl.Series]
    largest: dict[str, float]
    sides: tuple[str, ...]

    def frame(self, number: int) -> pl.DataFrame:
        """Rows of one part, with labels as numbers, and the number of the `file` of each row."""
        rows = np.fromfile(self.folder / str(number), self.kind)
        columns = {name: np.ascontiguousarray(rows[name]) for name in self.kind.names or ()}
        side = pl.Series("side", _SIDES).gather(columns.pop("side"))
        return pl.DataFrame(columns).with_columns(side)

    def labelled(self, column: pl.Series) -> pl.Series:
        """Labels of a column that is stored as numbers; other columns are unchanged."""
        known = self.entries.get(column.name)
        return column if known is None else known.gather(column).alias(column.name)

    def tasks(self, number: int) -> tuple[Tasks, pl.DataFrame] | None:
        """Tasks of one part, as from `owkg.ranks.tasks.tasks_of`, and their rows; None if the part is empty.

        Repeated rows of one file are one task, with the sum of their weights.

        Raises:
            ValueError: naming the task and its files, if two files rank it, or one file ranks it differently.
        """
        frame = self.frame(number)
        if frame.is_empty():
            return None
        try:
            tasks, rows = tasks_of(RankTable.trusted(frame))
        except ValueError:
            _refuse_twice(frame, self.dataset, self.labelled, differently=True)
            raise
        if len(rows) < len(frame):
            _refuse_twice(frame, self.dataset, self.labelled)
        return tasks, rows


def rows_of_part(rows: int) -> int:
    """Approximate number of rows in memory at a time.

    Raises:
        ValueError: if memory has no room for the smallest part.
    """
    free = free_memory()
    if free is None:
        return _ROWS
    needed = _BASE + _ROW * min(rows, _FEWEST_ROWS)
    checks.memory("ranks", needed, free, f"parts of {min(rows, _FEWEST_ROWS):,} of {rows:,} rows")
    return int(np.clip((free - _BASE) // (2 * _ROW), _FEWEST_ROWS, _ROWS))


def in_parts(rows: int, *, needed_by: str | None = None) -> bool:
    """Whether a dataset with so many rows is read in parts, because it does not fit in one.

    Args:
        rows: number of rows of all datasets together.
        needed_by: argument that needs all ranks at once. Default: none.

    Raises:
        ValueError: naming that argument, if all ranks do not fit in memory.
    """
    if rows <= rows_of_part(rows):
        return False
    if needed_by is None:
        return True
    checks.memory(needed_by, _BASE + _ROW * rows, free_memory(), f"all {rows:,} ranks at once")
    return False


def _refuse_twice(
    frame: pl.DataFrame,
    dataset: RankDataset,
    labelled: Callable[[pl.Series], pl.Series] = lambda column: column,
    *,
    differently: bool = False,
) -> None:
    """ValueError naming the task and its files, if two files rank it, or one file ranks it differently.

    Args:
        frame: rows of a rank table, and the number of the `file` of each.
        dataset: dataset of the files.
        labelled: function from a column to its labels, for messages.
        differently: whether a task that one file ranks twice is an error.
    """
    keys = [*TRIPLE, "side", *(name for name in ("model", "seed") if name in frame.columns)]
    files = pl.col("file").unique().sort()
    found = frame.group_by(keys, maintain_order=True).agg(
        files, ranks=pl.struct(RANKS).n_unique(), rows=pl.len()
    )
    both = found.filter(pl.col("file").list.len() > 1)
    if both.is_empty() and differently:
        both = found.filter(pl.col("ranks") > 1)
    for row in both.head(1).iter_rows(named=True):
        names = [dataset.files[i].path for i in row["file"]]
        said = ", ".join(f"{key} {labelled(pl.Series(key, [row[key]]))[0]!r}" for key in keys)
        where = f"{names[0]} and {names[1]} both rank" if len(names) > 1 else f"{names[0]} ranks twice"
        more = f", and {len(both) - 1:,} more in a part of the rows" if len(both) > 1 else ""
        raise ValueError(f"`ranks` must have each task once: {where} the task {said}{more}.")


def whole_table(dataset: RankDataset, on_progress: Progress = None) -> RankTable:
    """All rows of a dataset as a rank table in memory.

    Args:
        dataset: dataset whose files are read once.
        on_progress: function called with (done, total) rows.

    Raises:
        ValueError: as `owkg.ranks.validated`, naming file and row; if two files rank a task.
    """
    batches = dataset.batches(on_progress, others=True)
    parts = [rows.with_columns(_file=pl.lit(file, pl.Int32)) for file, rows in batches]
    frame = pl.concat([part.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String)) for part in parts])
    if len(dataset.files) > 1:
        keys = [*TRIPLE, "side", *(name for name in ("model", "seed") if name in frame.columns)]
        if frame.select(pl.struct(keys).hash()).to_series().n_unique() < len(frame):
            _refuse_twice(frame.drop("file", strict=False).rename({"_file": "file"}), dataset)
    if dataset.lacks_candidates:
        frame = frame.drop("candidates")
    return RankTable.trusted(frame.drop("_file"), {"source": dataset.source})


@contextmanager
def partitions(
    dataset: RankDataset,
    prepared: Callable[[pl.DataFrame], pl.DataFrame] | None = None,
    *,
    labels: Mapping[str, Sequence[str]] | None = None,
    rows_of_part: int = _ROWS,
    on_progress: Progress = None,
) -> Iterator[Partitions]:
    """Rows of a dataset in parts of whole queries, in a temporary folder that is removed at the end.

    Memory grows with the number of entities and the answers of the largest query, not with the rows. A row
    takes about 40 bytes on the disk.

    Args:
        dataset: dataset; it is read twice, once for its labels.
        prepared: function that is called with some rows at a time and adds columns. Default: none.
        labels: labels of the columns of text that `prepared` adds.
        rows_of_part: approximate number of rows in memory at a time.
        on_progress: function called with (done, total) rows.

    Raises:
        ValueError: as `owkg.ranks.validated`, naming file and row; if there is not enough room on the disk.
        OSError: if a file cannot be read, or the temporary folder cannot be written.
    """
    entries = {name: pl.Series(sorted(several)) for name, several in (labels or {}).items()} | _entries(
        dataset
    )
    count = -(-dataset.rows // rows_of_part)
    named = os.environ.get("TMPDIR")
    if named and not os.access(named, os.W_OK):
        raise ValueError(f"the variable TMPDIR must name a folder that can be written to, got {named!r}.")
    with temporary_folder("owkg-ranks-") as folder:
        largest, seen, kind = {}, set(), np.dtype([])
        for file, rows in dataset.batches(on_progress):
            batch = rows if prepared is None else prepared(rows)
            columns = _columns(batch, entries, file)
            if not kind.names:
                kind = np.dtype([(key, column.dtype) for key, column in columns.items()])
                _require_room(folder, dataset.rows * kind.itemsize)
            for key in set(columns) & {*RANKS, "weight", "popularity", "relation_popularity"}:
                largest[key] = max(largest.get(key, 0), columns[key].max().item())
            seen.update(np.unique(columns["side"]).tolist())
            _append(folder, columns, kind, count)
        if largest.get("weight", 1) <= 0:
            raise ArgumentError(
                "ranks", f"must have a weight above 0 in some row, got 0 in all {dataset.rows:,}."
            )
        sides = tuple(_SIDES[i] for i in sorted(seen))
        yield Partitions(dataset, folder, kind, count, entries, largest, sides)


def _entries(dataset: RankDataset) -> dict[str, pl.Series]:
    """Labels of each column of text, sorted; heads and tails share theirs."""
    schema, found = dataset.files[0].schema, {}
    groups = [("head", "tail"), ("relation",), *((name,) for name in _TEXT if name in dataset.columns)]
    for columns in groups:
        if schema.get(columns[0], pl.String()).is_integer():
            continue
        sorted_labels = pl.Series(sorted(map(str, dataset.unique(*columns))), dtype=pl.String)
        found |= dict.fromkeys(columns, sorted_labels)
    return found


def _columns(rows: pl.DataFrame, entries: dict[str, pl.Series], file: int) -> dict[str, np.ndarray]:
    """Columns as numbers, in the types in which they are stored."""
    columns: dict[str, np.ndarray] = {}
    for name in rows.columns:
        column = rows[name]
        if name == "side":
            columns[name] = column.cast(pl.Enum(_SIDES)).to_physical().to_numpy().astype(np.int8)
        elif name in _TEXT or name in TRIPLE:
            columns[name] = _numbered(column, entries[name]) if name in entries else column.to_numpy()
        elif name in RANKS:
            if (most := int(column.max())) > MOST_CANDIDATES:  # type: ignore[arg-type]
                text = f"must be at most {MOST_CANDIDATES:,}, got {most:,} in the column {name}"
                raise ArgumentError("ranks", f"{text}.")
            columns[name] = column.to_numpy().astype(np.int32)
        else:
            kind = np.float64 if name in _FLOATS else np.bool_ if name in _FLAGS else np.int64
            columns[name] = column.to_numpy().astype(kind, copy=False)
    columns["file"] = np.full(len(rows), file, np.int32)
    return columns


def _numbered(column: pl.Series, entries: pl.Series) -> np.ndarray:
    """Numbers of the labels among `entities`, int32; a label of a categorical column is looked up once."""
    kind = pl.Enum(entries)
    if column.dtype not in (pl.Categorical, pl.Enum):
        return column.cast(kind).to_physical().to_numpy().astype(np.int32)
    labels = column.unique()
    codes = labels.to_physical().to_numpy()
    numbers = np.zeros(int(codes.max()) + 1, np.int32)
    numbers[codes] = labels.cast(pl.String).cast(kind).to_physical().to_numpy()
    return numbers[column.to_physical().to_numpy()]


def _append(folder: Path, columns: dict[str, np.ndarray], kind: np.dtype, count: int) -> None:
    """Appends rows to the files of their parts."""
    part = _part(columns, count)
    order = np.argsort(part, kind="stable")
    rows = np.empty(len(part), kind)
    for name, column in columns.items():
        rows[name] = column[order]
    ends = np.cumsum(np.bincount(part, minlength=count))
    for number, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        with (folder / str(number)).open("ab") as file:
            rows[start:end].tofile(file)


def _part(columns: dict[str, np.ndarray], count: int) -> np.ndarray:
    """Part of each row, equal for all rows of a query, whatever their model."""
    side = columns["side"]
    tail, relation = side == _SIDES.index("tail"), side == _SIDES.index(RELATION)
    known = np.where(tail | relation, columns["head"], columns["tail"]).astype(np.uint64)
    given = np.where(relation, columns["tail"], columns["relation"]).astype(np.uint64)
    mixed = (known * _MIX + given) * _MIX + side.astype(np.uint64)
    mixed ^= mixed >> np.uint64(32)
    mixed *= _MIX
    return ((mixed >> np.uint64(40)) % np.uint64(count)).astype(np.uint16 if count < 2**16 else np.uint32)


def disk_free(folder: Path) -> int:
    """Number of free bytes on the disk of a folder."""
    return shutil.disk_usage(folder).free


def _require_room(folder: Path, needed: int) -> None:
    """ArgumentError if the disk of a folder has no room for so many bytes."""
    free = disk_free(folder)
    if needed > free:
        raise ArgumentError(
            "ranks",
            f"must fit on the disk once more: they need {needed / 2**30:,.1f} GiB in {folder.parent}, "
            f"which has {free / 2**30:,.1f} GiB; the variable TMPDIR names another folder.",
        )
