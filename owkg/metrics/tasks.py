"""Ranking tasks as arrays: what the metrics are computed from."""

from typing import Any, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Bool, Float, Int

from owkg import checks
from owkg.ranks import validated


class Tasks(NamedTuple):
    """Ranking tasks, one entry each; a task is one side of one triple.

    Attributes:
        optimistic: 1-based rank with ties counted for the target.
        pessimistic: 1-based rank with ties counted against it.
        candidates: number of candidates, the target among them.
        weight: of the task in averages; None: all 1.
        question: id from 0 up, without gaps, of the question (known entity, relation, side) that the task
            belongs to: its ranks are not independent, whatever model or seed they are of. None: each task
            is a question of its own.
        popularity: training triples in which the answer appears; None if not known.
        relation_popularity: those of them with the relation of the triple; None if not known.
        ranking: id of the one list that the task is of: its question's under one model and seed. None: each
            question has one list.
        filtered: whether the other answers of its question left the candidates; None: they did.
    """

    optimistic: Int[np.ndarray, "n"]
    pessimistic: Int[np.ndarray, "n"]
    candidates: Int[np.ndarray, "n"]
    weight: Float[np.ndarray, "n"] | None = None
    question: Int[np.ndarray, "n"] | None = None
    popularity: Int[np.ndarray, "n"] | None = None
    relation_popularity: Int[np.ndarray, "n"] | None = None
    ranking: Int[np.ndarray, "n"] | None = None
    filtered: Bool[np.ndarray, "n"] | None = None

    @property
    def tied(self) -> bool:
        """Whether some task shares its score with other candidates."""
        same = self.optimistic is self.pessimistic
        return not same and bool((self.optimistic < self.pessimistic).any())

    @property
    def num_questions(self) -> int:
        """How many questions the tasks belong to."""
        return len(self.optimistic) if self.question is None else int(self.question.max()) + 1


def tasks(
    optimistic: Any,
    pessimistic: Any = None,
    candidates: Any = None,
    *,
    weight: Any = None,
    question: Any = None,
    popularity: Any = None,
    relation_popularity: Any = None,
) -> Tasks:
    """Ranking tasks from arrays of one length, checked.

    Args:
        optimistic: 1-based ranks, ties counted for the target.
        pessimistic: 1-based ranks, ties counted against it; those of `optimistic` when None (no ties).
        candidates: a number of candidates for each task, or one for all; the target counts.
        weight: of each task, finite and at least 0, some above; equal when None.
        question: any whole number for each task, equal within a question; each task its own when None.
        popularity: whole numbers from 0 up, or None.
        relation_popularity: whole numbers from 0 up, or None.

    Raises:
        ValueError: naming the argument, if one has another length, a rank is not a whole number in
            [1, candidates], an optimistic rank is above the pessimistic one, or a weight is no such number.

    Examples:
        >>> tasks([1, 4], [2, 4], 90).candidates.tolist()
        [90, 90]
    """
    low = _whole("optimistic", optimistic, 1)
    if low.ndim != 1:
        raise ValueError(f"`optimistic` must have one axis, got an array of shape {low.shape}.")
    if candidates is None:
        raise ValueError("`candidates` must be given: chance levels depend on it, got None.")

    def column(name: str, value: Any, least: int) -> np.ndarray:
        array = _whole(name, value, least)
        if array.shape not in ((), low.shape):
            raise ValueError(f"`{name}` must have the shape of `optimistic`, {low.shape}, got {array.shape}.")
        return np.broadcast_to(array, low.shape)

    high = low if pessimistic is None else column("pessimistic", pessimistic, 1)
    count = column("candidates", candidates, 1)
    if high is not low:
        checks.require("optimistic", low, low <= high, "at most the pessimistic rank")
    checks.require("pessimistic", high, high <= count, "at most the number of candidates")
    if weight is not None:
        weight = checks.real("weight", weight, 0, np.inf)
        if weight.shape != low.shape:
            raise ValueError(f"`weight` must have shape {low.shape}, as `optimistic`, got {weight.shape}.")
        if not weight.any():
            raise ValueError("`weight` must be above 0 for some task, got zeros only.")
    return Tasks(
        low,
        high,
        count,
        weight,
        None if question is None else _dense(column("question", question, -(2**53))),
        None if popularity is None else column("popularity", popularity, 0),
        None if relation_popularity is None else column("relation_popularity", relation_popularity, 0),
    )


def _whole(name: str, value: Any, least: int) -> np.ndarray:
    """`value` as int64, without a copy where it is an array of them already."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "i" and value.size:
        checks.require(name, value, value >= least, f"a whole number of at least {least}")
        return value.astype(np.int64, copy=False)  # sums of two small integers may not fit their type
    return checks.integer(name, value, least)


def _dense(codes: np.ndarray) -> np.ndarray:
    """The codes renamed 0, 1, ... without gaps, in their order."""
    largest = int(codes.max())
    # A table of small codes is cheaper than sorting them.
    if codes.min() >= 0 and largest < 4 * len(codes) + 64:
        seen = np.zeros(largest + 1, bool)
        seen[codes] = True
        if seen.all():
            return codes
        return (np.cumsum(seen) - 1)[codes]
    return np.unique(codes, return_inverse=True)[1]


def part_of(tasks: Any, where: Any) -> Tasks:
    """The tasks that `where`, a mask, a slice or an index array, chooses.

    Raises:
        ValueError: if `tasks` is no Tasks.
    """
    if not isinstance(tasks, Tasks):
        raise ValueError(f"`tasks` must be Tasks, got {tasks!r}.")
    columns: Any = (None if column is None else column[where] for column in tasks)
    cut = Tasks(*columns)
    if tasks.optimistic is tasks.pessimistic:
        cut = cut._replace(pessimistic=cut.optimistic)
    if cut.question is None or not cut.question.size:
        return cut
    return cut._replace(question=_dense(cut.question))


def _codes(column: pl.Series) -> tuple[np.ndarray, int]:
    """Whole numbers from 0 up that tell the entries of a column apart, and how many there may be."""
    if not column.dtype.is_integer():
        column = column.cast(pl.Categorical).to_physical()
    codes = column.to_numpy().astype(np.int64)
    low = codes.min()
    if low < 0 or codes.max() > 4 * len(codes) + 64:
        codes = np.unique(codes, return_inverse=True)[1]
    return codes, int(codes.max()) + 1


def _joined(*columns: tuple[np.ndarray, int]) -> tuple[np.ndarray, int]:
    """One code for each combination of the codes of several columns."""
    codes, size = columns[0]
    for more, count in columns[1:]:
        if size * count >= 2**62:
            codes = np.unique(codes, return_inverse=True)[1]
            size = int(codes.max()) + 1
        codes, size = codes * count + more, size * count
    return codes, size


def tasks_of(table: Any) -> tuple[Tasks, pl.DataFrame]:
    """The tasks of a rank table, and the rows that they come from.

    Tasks with the same side, relation and known entity are of one question, and under the same model and
    seed of one ranked list. Rows that say the same thing twice, the same task with the same ranks, are one
    task with the sum of their weights.

    Args:
        table: a rank table (`owkg.ranks`); checked.

    Returns:
        Tasks, and the table with one row for each of them.

    Raises:
        ValueError: as `owkg.ranks.validated`, or if two rows rank one task of one model and seed differently.
    """
    table = validated(table)
    # Labels of heads and tails in one column: the same entity has the same code.
    entities, count = _codes(pl.concat([table["head"], table["tail"].rename("head")]))
    heads, tails = np.split(entities, 2)
    is_tail = (table["side"] == "tail").to_numpy()
    known, answer = np.where(is_tail, heads, tails), np.where(is_tail, tails, heads)
    runs = [_codes(table[name]) for name in ("model", "seed") if name in table.columns]
    sides = (is_tail.astype(np.int64), 2)
    asked = _joined(sides, _codes(table["relation"]), (known, count))
    ranking = _dense(_joined(asked, *runs)[0])
    task, _ = _joined((ranking, int(ranking.max()) + 1), (answer, count))
    ids = pl.DataFrame({"_task": task, "_question": _dense(asked[0]), "_ranking": ranking})
    if ids["_task"].n_unique() < len(ids):
        table, ids = _merged(table, ids)
    columns: dict[str, Any] = {
        name: table[name].to_numpy() for name in Tasks._fields if name in table.columns and name not in _IDS
    }
    question = ids["_question"].to_numpy()
    return Tasks(**columns, question=question, ranking=ids["_ranking"].to_numpy() if runs else None), table


# Columns that are made here, whatever a table calls so.
_IDS = ("question", "ranking")


def _merged(table: pl.DataFrame, ids: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The table with repeated rows as one, their weights added, and the ids of each row."""
    weight = pl.col("weight") if "weight" in table.columns else pl.lit(1.0).alias("weight")
    same = ["_task", "optimistic", "pessimistic", "candidates"] + ["score"] * ("score" in table.columns)
    merged = (
        table.with_columns(weight, *ids)
        .with_row_index("_row")
        .group_by(same, maintain_order=True)
        .agg(pl.col("weight").sum(), pl.exclude("weight", *same).first())
    )
    again = merged["_task"].is_duplicated()
    if again.any():
        first, second = merged.filter(again).sort("_task", "_row")["_row"][:2]
        raise ValueError(
            f"rows {first + 1} and {second + 1} rank the same task differently; a column model or seed "
            "tells runs apart."
        )
    columns = table.columns if "weight" in table.columns else [*table.columns, "weight"]
    return merged.select(columns), merged.select(ids.columns)
