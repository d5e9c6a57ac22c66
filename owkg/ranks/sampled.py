"""Ranks among sampled negatives, from the inputs of the evaluators of OGB and TGB (arrays and .npz files)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError, naming
from owkg.ranks.table import validated

ARRAYS = ("y_pred_pos", "y_pred_neg", "num_neg", "t_pred_top10", "t", "head", "relation", "tail", "side")
"""Names of the arrays that a file may hold."""

_MARKS = ("y_pred_pos", "t_pred_top10")
_BLOCK = 2**24  # number of scores compared at a time


class _Negatives(NamedTuple):
    """Scores of the negatives of all queries, one after the other, and the number of each query.

    If `shared`, all queries have the same negatives.
    """

    scores: np.ndarray
    counts: np.ndarray
    shared: bool


def ranks_among(
    positive: ArrayLike,
    negative: ArrayLike | Sequence[ArrayLike],
    *,
    head: ArrayLike | None = None,
    relation: ArrayLike | None = None,
    tail: ArrayLike | None = None,
    side: str | ArrayLike = "tail",
) -> pl.DataFrame:
    """Rank table of answers among given negatives; arguments as for `owkg.interop.ogb.ranks`."""
    one = _numbers("positive", positive)
    one = one.reshape(-1) if one.ndim == 0 or (one.ndim == 2 and one.shape[1] == 1) else one
    if one.ndim != 1 or not len(one):
        raise ArgumentError("positive", f"must be one score for each query, got shape {one.shape}.")
    checks.require("positive", one, ~np.isnan(one), "scores that are not NaN")
    above, level, counts = _counted(one, _negatives(negative, len(one)))
    columns = {"optimistic": 1 + above, "pessimistic": 1 + level, "candidates": 1 + counts}
    return _table(len(one), columns, head, relation, tail, side)


def ranks_of_top(
    top: ArrayLike,
    answer: ArrayLike,
    num_entities: int | None,
    *,
    head: ArrayLike | None = None,
    relation: ArrayLike | None = None,
    side: str | ArrayLike = "tail",
) -> pl.DataFrame:
    """Rank table of answers in lists of the best entities, such as OGB-LSC's `t_pred_top10`.

    Args:
        top: ids, best first, each once in a row, [queries, depth].
        answer: ids of the right answers, [queries].
        num_entities: number of candidates.
        head, relation: ids or labels of the queries. Default: the number of the query, and 0.
        side: predicted side. Default "tail".

    Returns:
        Rank table. The rank of an answer that is not listed is between the depth plus one and the number of
        candidates, and the column bounded is true for it.

    Raises:
        ValueError: if shapes do not fit, or an id is out of range or repeated in a row.
    """
    if num_entities is None:
        raise ArgumentError("num_entities", "must give the number of candidates for lists of the best.")
    size = checks.whole("num_entities", num_entities, 2)
    ids, right = checks.integer("top", top, 0), checks.integer("answer", answer, 0)
    if ids.ndim != 2 or right.shape != ids.shape[:1]:
        text = f"must be [queries, depth] with one answer each, got {ids.shape} and {right.shape}."
        raise ArgumentError("top", text)
    for name, array in (("top", ids), ("answer", right)):
        checks.require(name, array, array < size, f"ids below {size}, the number of entities")
    ordered = np.sort(ids, axis=1)
    if (again := (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)).any():
        raise ArgumentError("top", f"must list each id once, got one twice for query {int(again.argmax())}.")
    hit = ids == right[:, None]
    found, depth = hit.any(axis=1), ids.shape[1]
    place = 1 + hit.argmax(axis=1)
    columns = {
        "optimistic": np.where(found, place, min(depth + 1, size)),
        "pessimistic": np.where(found, place, size),
        "candidates": np.full(len(right), size),
    }
    table = _table(len(right), columns, head, relation, right, side)
    return table if found.all() else table.with_columns(bounded=pl.Series(~found))


def input_of(held: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays in the input of an evaluator, possibly under "h,r->t"; ArgumentError for other input."""
    inner = held["h,r->t"] if set(held) == {"h,r->t"} else held
    if not isinstance(inner, Mapping) or not any(name in inner for name in _MARKS):
        got = ", ".join(map(str, inner)) if isinstance(inner, Mapping) else type(inner).__name__
        raise ArgumentError("positive", f"must hold {' or '.join(_MARKS)}, got {got or 'nothing'}.")
    return {name: inner[name] for name in ARRAYS if name in inner}


def ranks_of_input(held: Mapping[str, Any], *, num_entities: int | None = None) -> pl.DataFrame:
    """Rank table of the input of an evaluator.

    Args:
        held: `y_pred_pos` and `y_pred_neg`, with `num_neg`, one number for each query, if `y_pred_neg` is
            flat because the numbers of negatives differ; or `t_pred_top10` and `t`. Optional: head, relation,
            tail and side.
        num_entities: number of candidates, for `t_pred_top10`.

    Raises:
        ValueError: naming the array.
    """
    arrays = input_of(held)
    named = {name: arrays[name] for name in ("head", "relation", "tail", "side") if name in arrays}
    top = "t_pred_top10" in arrays
    needed = ("t_pred_top10", "t") if top else ("y_pred_pos", "y_pred_neg")
    if lacking := [name for name in needed if name not in arrays]:
        raise ArgumentError(lacking[0], f"must be given with {needed[0]}, got {', '.join(arrays)}.")
    if top:
        named.pop("tail", None)
        with naming({"top": "`t_pred_top10`", "answer": "`t`"}):
            return ranks_of_top(arrays["t_pred_top10"], arrays["t"], num_entities, **named)
    if num_entities is not None:
        raise ArgumentError(
            "num_entities", "has no effect on y_pred_neg, whose negatives are the candidates."
        )
    negative = arrays["y_pred_neg"]
    with naming({"positive": "`y_pred_pos`", "negative": "`y_pred_neg`"}):
        if "num_neg" in arrays:
            negative = _parted(negative, arrays["num_neg"])
        return ranks_among(arrays["y_pred_pos"], negative, **named)


def is_sampled(names: Sequence[str]) -> bool:
    """Whether the arrays of a file belong to an evaluator."""
    return any(name in names for name in _MARKS)


def shares_negatives(held: Mapping[str, Any]) -> bool:
    """Whether several queries share one list of negatives."""
    negative = held.get("y_pred_neg")
    shape = np.shape(negative) if isinstance(negative, np.ndarray) else ()
    one = len(shape) == 1 or (len(shape) == 2 and shape[0] == 1)
    return one and "num_neg" not in held and np.size(held.get("y_pred_pos", ())) > 1


def _parted(scores: ArrayLike, counts: ArrayLike) -> list[np.ndarray]:
    """Flat scores as one array for each query."""
    flat, sizes = _numbers("negative", scores), checks.integer("num_neg", counts, 0)
    if flat.ndim != 1 or sizes.ndim != 1 or sizes.sum() != len(flat):
        text = f"must add up to the {flat.size:,} scores of a flat y_pred_neg, got {int(sizes.sum()):,}."
        raise ArgumentError("num_neg", text)
    return np.split(flat, np.cumsum(sizes)[:-1])


def _negatives(negative: Any, queries: int) -> _Negatives:
    """Negatives of `queries` queries: a matrix, one list for all, or a list for each."""
    rows = negative if isinstance(negative, list | tuple) else None
    if isinstance(negative, np.ndarray) and negative.dtype == object:
        rows = list(negative)
    several = rows is not None and any(np.ndim(row) for row in rows)
    if several and len({np.shape(row) for row in rows or ()}) > 1:
        parts = [_numbers("negative", row) for row in rows or ()]
        if len(parts) != queries or any(part.ndim != 1 for part in parts):
            text = f"must be one list of scores for each of {queries} queries, got {len(parts)} lists."
            raise ArgumentError("negative", text)
        found = _Negatives(np.concatenate(parts), np.array([len(part) for part in parts]), False)
    else:
        scores = _numbers("negative", negative)
        if scores.ndim == 1 and len(scores) == queries > 1:
            raise ArgumentError(
                "negative",
                f"must be [{queries}, 1] for one negative each, or [1, {queries}] for negatives that all "
                f"queries share, got the ambiguous shape [{queries}].",
            )
        matrix = scores.reshape(1, -1) if scores.ndim == 1 else scores
        if matrix.ndim != 2 or len(matrix) not in (1, queries):
            raise ArgumentError(
                "negative",
                f"must be [queries, candidates] for positive [queries], got {scores.shape}, ({queries},).",
            )
        shared = len(matrix) < queries
        counts = np.full(queries, matrix.shape[1])
        found = _Negatives(matrix.reshape(-1), counts, shared)
    if (found.counts == 0).any():
        where = f" for query {int(found.counts.argmin())}" if queries > 1 else ""
        raise ArgumentError("negative", f"must be at least one candidate, got none{where}.")
    if (bad := np.isnan(found.scores)).any():
        at = int(bad.argmax())
        row = 0 if found.shared else int(np.searchsorted(np.cumsum(found.counts), at, side="right"))
        raise ArgumentError("negative", f"must be scores that are not NaN, got NaN for query {row}.")
    return found


def _counted(one: np.ndarray, found: _Negatives) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number of negatives above each positive, of negatives that score at least as much, and of all."""
    if found.shared:
        ordered = np.sort(found.scores)
        above, level = (len(ordered) - np.searchsorted(ordered, one, side=side) for side in ("right", "left"))
        return above, level, found.counts
    above, level = np.zeros(len(one), np.int64), np.zeros(len(one), np.int64)
    stops = np.cumsum(found.counts)
    first = 0
    while first < len(one):  # whole queries at a time
        begin = int(stops[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(stops, begin + _BLOCK, side="right")))
        scores = found.scores[begin : stops[last - 1]]
        own = np.repeat(one[first:last], found.counts[first:last])
        starts = stops[first:last] - found.counts[first:last] - begin
        above[first:last] = np.add.reduceat((scores > own).astype(np.int64), starts)
        level[first:last] = np.add.reduceat((scores >= own).astype(np.int64), starts)
        first = last
    return above, level, found.counts


def _table(
    queries: int,
    ranks: dict[str, np.ndarray],
    head: ArrayLike | None,
    relation: ArrayLike | None,
    tail: ArrayLike | None,
    side: str | ArrayLike,
) -> pl.DataFrame:
    """Validated rank table from ranks, labels and sides."""
    columns: dict[str, Any] = {}
    for name, labels in (("head", head), ("relation", relation), ("tail", tail)):
        usual = np.zeros(queries, np.int64) if name == "relation" else np.arange(queries)
        given = usual if labels is None else np.asarray(labels)
        if given.shape != (queries,):
            raise ArgumentError(name, f"must be one for each of {queries} queries, got shape {given.shape}.")
        columns[name] = pl.Series(given.tolist()).cast(pl.String)
    sides = np.asarray(side)
    if (
        sides.dtype.kind != "U"
        or sides.shape not in ((), (1,), (queries,))
        or not np.isin(sides, ("head", "tail")).all()
    ):
        raise ArgumentError("side", f"must be head or tail, or one of these for each query, got {side!r}.")
    columns["side"] = np.broadcast_to(sides, queries).tolist()
    columns |= {name: np.asarray(values, np.int64) for name, values in ranks.items()}
    return validated(pl.DataFrame(columns).with_columns(filtered=pl.lit(False)))


def _numbers(name: str, given: Any) -> np.ndarray:
    """Array of scores; a tensor of torch, of any precision, is moved to the CPU."""
    try:
        detach = getattr(given, "detach", None)
        array = np.asarray(given if detach is None else detach().cpu().double())
    except (TypeError, ValueError):
        raise ArgumentError(name, f"must be an array of numbers, got {type(given).__name__}.") from None
    if array.size and array.dtype.kind not in "iuf" and array.dtype != object:
        got = array.dtype if isinstance(given, np.ndarray) else type(given).__name__
        raise ArgumentError(name, f"must be an array of numbers, got {got}.")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(name, f"must be an array of numbers, got {type(given).__name__}.") from None


def converted_sampled(path: Path, arrays: Mapping[str, np.ndarray], num_entities: int | None) -> pl.DataFrame:
    """Rank table of the arrays in a file; errors begin with the file."""
    if bad := next(
        (name for name in ("head", "relation", "tail") if arrays.get(name, np.empty(0)).ndim != 1), None
    ):
        raise ValueError(f"{path}: {bad} must be one for each query.")
    with naming({name: name for name in ARRAYS}, f"{path}: "):
        return ranks_of_input(arrays, num_entities=num_entities)
