"""Ranking tasks as arrays, from which metrics are computed."""

from typing import Any, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.ranks.table import RANKS, RELATION, RankTable, validated

# Up to this rank, twice the sum of two ranks is a 32-bit integer.
NARROW = 2**28
MOST_CANDIDATES = 10**8
"""Largest number of candidates of a task, because chance levels are sums over all its ranks."""


class Tasks(NamedTuple):
    """Ranking tasks, one entry each; a task is one side of one triple.

    Attributes:
        optimistic: 1-based rank with ties counted for the target.
        pessimistic: 1-based rank with ties counted against the target.
        candidates: number of candidates, including the target.
        weight: weight of the task in averages. None: all 1.
        query: id from 0 without gaps of the task's query (known entity, relation, side). Ranks of one query
            are not independent, whatever their model or seed. None: each task has its own query.
        popularity: number of training triples that contain the answer; None if unknown.
        relation_popularity: number of these with the relation of the triple; None if unknown.
        ranking: id of the ranked list of the task, which is one query under one model and seed. None: each
            query has one list.
        filtered: whether the other answers of its query were removed from the candidates. None: they were.
    """

    optimistic: Int[np.ndarray, "n"]
    pessimistic: Int[np.ndarray, "n"]
    candidates: Int[np.ndarray, "n"]
    weight: Float[np.ndarray, "n"] | None = None
    query: Int[np.ndarray, "n"] | None = None
    popularity: Int[np.ndarray, "n"] | None = None
    relation_popularity: Int[np.ndarray, "n"] | None = None
    ranking: Int[np.ndarray, "n"] | None = None
    filtered: Bool[np.ndarray, "n"] | None = None

    @property
    def tied(self) -> bool:
        """Whether some target has the same score as other candidates."""
        same = self.optimistic is self.pessimistic
        return not same and bool((self.optimistic < self.pessimistic).any())

    @property
    def num_queries(self) -> int:
        """Number of queries of the tasks."""
        return len(self.optimistic) if self.query is None else int(self.query.max()) + 1


def tasks(
    optimistic: ArrayLike,
    pessimistic: ArrayLike | None = None,
    candidates: ArrayLike | None = None,
    *,
    weight: ArrayLike | None = None,
    query: ArrayLike | None = None,
    popularity: ArrayLike | None = None,
    relation_popularity: ArrayLike | None = None,
) -> Tasks:
    """Ranking tasks from arrays of one length, checked.

    Args:
        optimistic: 1-based ranks, ties counted for the target.
        pessimistic: 1-based ranks, ties counted against the target. Default: `optimistic` (no ties).
        candidates: number of candidates of each task, or one for all; the target counts. Required.
        weight: weight of each task, finite and at least 0, one above 0. Default: equal weights.
        query: any whole number for each task, equal within a query. Default: each task has its own query.
        popularity: whole numbers from 0 up. Default: unknown.
        relation_popularity: whole numbers from 0 up. Default: unknown.

    Raises:
        ValueError: naming the argument, if an array has another length, a rank is not a whole number in [1,
            candidates], an optimistic rank is above the pessimistic rank, or a weight is invalid.

    Examples:
        >>> tasks([1, 4], [2, 4], 90).candidates.tolist()
        [90, 90]
    """
    low = _whole("optimistic", optimistic, 1)
    if low.ndim != 1:
        raise ArgumentError("optimistic", f"must have one axis, got an array of shape {low.shape}.")
    if candidates is None:
        raise ArgumentError("candidates", "must be given, because chance levels depend on it, got None.")

    def column(name: str, value: ArrayLike, least: int) -> np.ndarray:
        array = _whole(name, value, least)
        if array.shape not in ((), low.shape):
            raise ArgumentError(name, f"must have the shape of `optimistic`, {low.shape}, got {array.shape}.")
        return np.broadcast_to(array, low.shape)

    high = low if pessimistic is None else column("pessimistic", pessimistic, 1)
    count = column("candidates", candidates, 1)
    if high is not low:
        checks.require("optimistic", low, low <= high, "at most the pessimistic rank")
    checks.require("pessimistic", high, high <= count, "at most the number of candidates")
    if weight is not None:
        weight = checks.real("weight", weight, 0, np.inf)
        if weight.shape != low.shape:
            raise ArgumentError(
                "weight", f"must have shape {low.shape}, as `optimistic`, got {weight.shape}."
            )
        if not weight.any():
            raise ArgumentError("weight", "must be above 0 for some task, got zeros only.")
    return Tasks(
        low,
        high,
        count,
        weight,
        None if query is None else dense(column("query", query, -(2**53))),
        None if popularity is None else column("popularity", popularity, 0),
        None if relation_popularity is None else column("relation_popularity", relation_popularity, 0),
    )


def _whole(name: str, value: ArrayLike, least: int) -> np.ndarray:
    """`value` as int64, without a copy if it is such an array already."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "i" and value.size:
        checks.require(name, value, value >= least, f"a whole number of at least {least}")
        return value.astype(np.int64, copy=False)  # sums of two small integers may not fit their type
    return checks.integer(name, value, least)


def weighed(tasks: Tasks) -> Tasks:
    """Tasks with positive weight, because other tasks have no effect; all tasks if no weight is positive."""
    if tasks.weight is None or (kept := tasks.weight > 0).all() or not kept.any():
        return tasks
    columns = {
        name: None if values is None else values[kept]
        for name, values in zip(Tasks._fields, tasks, strict=True)
    }
    columns |= {name: dense(ids) for name in _IDS if (ids := columns[name]) is not None}
    return Tasks(**columns)  # type: ignore[arg-type]


def dense(codes: np.ndarray) -> np.ndarray:
    """Codes renumbered 0, 1, ... without gaps, in their order."""
    narrow = np.int32 if len(codes) < 2**31 else np.int64
    largest = int(codes.max())
    # A table of small codes is cheaper than sorting them.
    if codes.min() >= 0 and largest < 4 * len(codes) + 64:
        seen = np.zeros(largest + 1, bool)
        seen[codes] = True
        if seen.all():
            return codes
        return (np.cumsum(seen, dtype=narrow) - narrow(1))[codes]
    order = np.argsort(codes)
    ascending = codes[order]
    new = np.ones(len(codes), bool)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    del ascending
    names = np.empty(len(codes), narrow)
    names[order] = np.cumsum(new, dtype=narrow) - narrow(1)
    return names


def part_of(tasks: Tasks, where: slice | np.ndarray) -> Tasks:
    """Tasks that `where`, a mask, a slice or an index array, selects.

    Raises:
        ValueError: if `tasks` is not Tasks.
    """
    if not isinstance(tasks, Tasks):
        raise ArgumentError("tasks", f"must be Tasks, got {type(tasks).__name__}.")
    columns: Any = (None if column is None else column[where] for column in tasks)
    cut = Tasks(*columns)
    if tasks.optimistic is tasks.pessimistic:
        cut = cut._replace(pessimistic=cut.optimistic)
    if cut.query is None or not cut.query.size:
        return cut
    return cut._replace(query=dense(cut.query))


def _codes(*columns: pl.Series) -> tuple[list[np.ndarray], int]:
    """Whole numbers from 0 for the distinct entries of the columns, in their order, and how many there are.

    They depend only on the entries, not on the order of the rows.
    """
    if not columns[0].dtype.is_integer():
        entries = pl.concat([column.unique().rename("") for column in columns]).unique().sort()
        kind = pl.Enum(entries)
        return [column.cast(kind).to_physical().to_numpy() for column in columns], len(entries)
    codes = [column.to_numpy() for column in columns]
    low, high = min(int(own.min()) for own in codes), max(int(own.max()) for own in codes)
    if low < 0 or high > 4 * len(codes[0]) + 64:
        names = dense(np.concatenate(codes))
        codes, high = np.split(names, len(codes)), int(names.max())
    return codes, high + 1


def _of_one(column: pl.Series) -> tuple[np.ndarray, int]:
    """Codes of one column, and their number."""
    (codes,), count = _codes(column)
    return codes, count


def _joined(*columns: tuple[np.ndarray, int]) -> tuple[np.ndarray, int]:
    """One code for each combination of the codes of several columns, in their order, and an upper bound."""
    codes, size = columns[0][0].astype(np.int64), columns[0][1]
    for more, count in columns[1:]:
        if size * count >= 2**62:
            codes = dense(codes).astype(np.int64)
            size = int(codes.max()) + 1
        codes *= count
        codes += more
        size *= count
    return codes, size


def tasks_of(table: RankTable | pl.DataFrame) -> tuple[Tasks, pl.DataFrame]:
    """Tasks of a rank table, and the rows from which they come.

    Tasks with the same side, relation and known entity (or, if relations are predicted, the same head and
    tail) belong to one query, and with the same model and seed to one ranked list. Repeated rows, the same
    task with the same ranks, are one task with the sum of their weights. The ids of queries do not depend on
    the order of the rows.

    Args:
        table: rank table (`owkg.ranks`); it is validated.

    Returns:
        Tasks, and the table with one row for each of them.

    Raises:
        ValueError: as `owkg.ranks.validated`; if two rows rank one task of one model and seed differently, or
            a task has too many candidates.
    """
    table = validated(table)
    for row in (table["candidates"] > MOST_CANDIDATES).arg_true().head(1):
        raise ValueError(
            f"row {row + 1}: candidates must be at most {MOST_CANDIDATES:,}, because chance levels are sums "
            f"over all ranks, got {table['candidates'][row]:,}."
        )
    (heads, tails), count = _codes(table["head"], table["tail"])
    is_tail = (table["side"] == "tail").to_numpy()
    narrow = np.int32 if count < 2**31 else np.int64
    heads, tails = heads.astype(narrow, copy=False), tails.astype(narrow, copy=False)
    known, answer = np.where(is_tail, heads, tails), np.where(is_tail, tails, heads)
    given, side = _of_one(table["relation"]), (is_tail, 2)
    if (here := (table["side"] == RELATION).to_numpy()).any():
        # Relation and tail are swapped.
        known, answer = np.where(here, heads, known), np.where(here, given[0], answer)
        count = max(count, given[1])
        given, side = (np.where(here, tails, given[0]), count), (is_tail + 2 * here, 3)
    del heads, tails
    runs = [_of_one(table[name]) for name in _RUN if name in table.columns]
    asked = _joined(side, given, (known, count))
    task, _ = _joined(asked, *runs, (answer, count))
    task.sort()
    again = (task[1:] == task[:-1]).any()
    del task
    query = dense(asked[0])
    ranking = dense(_joined(asked, *runs)[0]) if runs else None
    if again:
        ids = pl.DataFrame({"_query": query, "_ranking": query if ranking is None else ranking})
        table, ids = _merged(table, ids.with_columns(_answer=answer))
        query = ids["_query"].to_numpy()
        ranking = ids["_ranking"].to_numpy() if runs else None
    narrow = pl.Int32 if int(table["candidates"].max()) <= NARROW else pl.Int64  # type: ignore[arg-type]
    columns: dict[str, Any] = {
        name: (table[name].cast(narrow) if name in RANKS else table[name]).to_numpy()
        for name in Tasks._fields
        if name in table.columns and name not in _IDS
    }
    return Tasks(**columns, query=query, ranking=ranking), table


# Columns that tell runs apart.
_RUN = ("model", "seed")
# Columns that are made here, even if a table has columns with these names.
_IDS = ("query", "ranking")


def _merged(table: pl.DataFrame, ids: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Table with repeated rows merged and their weights added, and the ids of each row."""
    weight = pl.col("weight") if "weight" in table.columns else pl.lit(1.0).alias("weight")
    task = ["_ranking", "_answer"]
    same = [*task, "optimistic", "pessimistic", "candidates"] + ["score"] * ("score" in table.columns)
    merged = (
        table.with_columns(weight, *ids)
        .with_row_index("_row")
        .group_by(same, maintain_order=True)
        .agg(pl.col("weight").sum(), pl.exclude("weight", *same).first())
    )
    again = merged.select(task).is_duplicated()
    if again.any():
        first, second = merged.filter(again).sort(*task, "_row")["_row"][:2]
        raise ValueError(
            f"rows {first + 1} and {second + 1} rank the same task differently; a column model or seed "
            "tells runs apart."
        )
    columns = table.columns if "weight" in table.columns else [*table.columns, "weight"]
    return merged.select(columns), merged.select(ids.columns)
