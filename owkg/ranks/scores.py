"""Ranks from scores: the number of candidates above the target of each query, and level with it."""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int64
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.keys import settled
from owkg.ranks.sets import EntitySets, Sets, as_array, members, sets_checked
from owkg.ranks.sorting import sort_checked, sorted_ranks

# Bytes of scores in one call: enough to outweigh the call, few enough to stay in the processor's caches.
_CHUNK_BYTES = 2**23
# Bytes of the floats that are compared exactly, as integers.
_WIDTHS = (2, 4, 8)


class Ranks(NamedTuple):
    """1-based ranks of the target of each query, and the number of candidates.

    Attributes:
        optimistic: rank if all candidates that tie with the target rank below it.
        pessimistic: rank if all of them rank above it.
        candidates: number of candidates, including the target.
    """

    optimistic: Int64[np.ndarray, "queries"]
    pessimistic: Int64[np.ndarray, "queries"]
    candidates: Int64[np.ndarray, "queries"]


@settled()
def ranks_from_scores(
    scores: ArrayLike,
    target: ArrayLike,
    *,
    known: Sets | None = None,
    candidates: Sets | None = None,
    tolerance: float = 0.0,
    chunk: int | None = None,
    named: Callable[[int], str] | None = None,
    sort: str | None = None,
) -> Ranks:
    """Rank of the target of each query among its candidates; a larger score is better.

        optimistic  = 1 + #{candidates with score > target's score + tolerance}
        pessimistic =     #{candidates with score >= target's score - tolerance}

    Both are exact, in the precision of the scores. The target is always a candidate, known or not. Known
    answers cost O(answers); without `candidates`, no array of the size of the scores is made.

    Args:
        scores: floats of 16, 32 or 64 bits, [queries, entities]. Infinities are allowed.
        target: entity id of each query's answer, [queries].
        known: known answers of each query, which are removed from its candidates: `known_sets`, a pair
            (offsets [queries + 1], ids), or a boolean mask [queries, entities]. Default: raw ranks.
        candidates: entities that each query ranks, in one of the same forms. Default: all.
        tolerance: largest absolute difference from the target's score that counts as a tie, at least 0.
            Default 0.
        chunk: number of queries in one call; it changes memory and time, never the result. Default: chosen by
            size.
        named: function from a query to a name, such as its triple, that messages add to its number. Default:
            none.
        sort: non-deterministic rank instead, as both optimistic and pessimistic: the index of the target
            after a descending sort by "stable", "quicksort" or "heapsort", or with the prefix "reversed-"
            after an ascending sort that is read from its end. Not with `candidates` or a tolerance. Default:
            tie-aware ranks.

    Raises:
        ValueError: naming the query if a score is NaN, also the score of an entity that is not a candidate;
            or if an argument has the wrong shape, or an id is out of range.

    Examples:
        >>> ranks_from_scores([[0.1, 0.7, 0.7, 0.9]], [1])
        Ranks(optimistic=array([2]), pessimistic=array([3]), candidates=array([4]))
        >>> ranks_from_scores([[0.1, 0.7, 0.7, 0.9]], [1], known=([0, 2], [1, 3]))
        Ranks(optimistic=array([1]), pessimistic=array([2]), candidates=array([3]))
    """
    array = _scores_checked(scores)
    queries, entities = array.shape
    target = checks.integer("target", target, 0)
    if target.shape != (queries,):
        raise ArgumentError(
            "target", f"must have one id for each of {queries} queries, got shape {target.shape}."
        )
    checks.require("target", target, target < entities, f"entity ids below {entities}")
    left_out = None if known is None else sets_checked("known", known, queries, entities)
    ranked = None if candidates is None else sets_checked("candidates", candidates, queries, entities)
    high, low = _thresholds(array, target, tolerance)
    if sort is not None:
        sort_checked(sort)
        if ranked is not None or np.any(tolerance):
            raise ArgumentError("sort", f"must be None with `candidates` or a tolerance, got {sort!r}.")
    if chunk is None:
        chunk = max(1, _CHUNK_BYTES // (entities * array.dtype.itemsize))
    else:
        chunk = checks.whole("chunk", chunk, 1)
    result = Ranks(*(np.empty(queries, np.int64) for _ in Ranks._fields))
    import jax  # noqa: F401

    with settled(x64=True):
        for begin in range(0, queries, chunk):
            # All chunks have one size: the last one overlaps the one before.
            begin = max(0, min(begin, queries - chunk))
            end = min(begin + chunk, queries)
            part = _rows(array, begin, end, chunk)
            own = slice(begin, end)
            answer = np.arange(end - begin) * entities + target[own]
            known_keys = _without(_members(left_out, begin, end, entities), answer)
            if ranked is None:
                above, level = _among_all(part, high[own], low[own], begin, named)
                fewer_above, fewer_level, fewer = _among(part, known_keys, high[own], low[own])
                parts = 1 + above - fewer_above, level - fewer_level, entities - fewer
            else:
                mask = np.zeros((len(part), entities), bool)
                flat = mask.reshape(-1)
                if isinstance(ranked, EntitySets):
                    flat[members(ranked, begin, end, entities)] = True
                else:
                    mask[: end - begin] = ranked[begin:end]
                flat[answer] = True
                flat[known_keys] = False
                above, level = _among_all(part, high[own], low[own], begin, named, mask)
                parts = 1 + above, level, mask[: end - begin].sum(axis=1)
            for column, values in zip(result, parts, strict=True):
                column[own] = values
    if sort is None:
        return result
    gone = np.zeros((queries, entities), bool)
    gone.reshape(-1)[
        _without(_members(left_out, 0, queries, entities), np.arange(queries) * entities + target)
    ] = True
    at = sorted_ranks(np.asarray(array), target, gone, sort)
    return Ranks(at, at, result.candidates)


def is_jax(array: object) -> bool:
    """Whether an object is a JAX array; JAX is not imported for this."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(array, jax.Array)


def _scores_checked(scores: ArrayLike) -> Any:
    """Scores as a NumPy array, or unchanged if they are a JAX array."""
    array: Any = scores if is_jax(scores) else as_array(scores)
    # NumPy lacks bfloat16 and gives its kind as V.
    named = array.dtype.kind == "f" or "float" in array.dtype.name
    is_float = named and array.dtype.itemsize in _WIDTHS
    if isinstance(scores, np.ma.MaskedArray):
        raise ArgumentError("scores", "must not be masked; give candidates that are left out the score -inf.")
    if not is_float:
        raise ArgumentError(
            "scores",
            f"must be floating-point numbers of 16, 32 or 64 bits, got values of type {array.dtype}.",
        )
    if array.ndim != 2 or not array.size:
        raise ArgumentError("scores", f"must be of shape [queries, entities], got shape {array.shape}.")
    return array


def _thresholds(
    scores: Float[Any, "queries entities"], target: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Score of each target plus and minus the tolerance, in the precision of the scores."""
    exact = checks.real_number("tolerance", tolerance, 0, np.inf)
    with np.errstate(over="ignore"):  # overflow gives infinity, which compares correctly
        width = np.asarray(exact).astype(scores.dtype)
        if not np.isfinite(width):
            raise ArgumentError("tolerance", f"must be finite as {scores.dtype}, got {exact!r}.")
        own = gathered(scores, np.arange(target.size), target)
        return own + width, own - width


# --- all entities


def _rows(scores: Float[Any, "queries entities"], begin: int, end: int, chunk: int) -> Any:
    """Rows begin, ..., end - 1, padded with zeros so that few numbers of rows occur."""
    if is_jax(scores):
        from owkg.ranks import kernels

        return kernels.rows(scores, begin, size=end - begin)
    rows = scores[begin:end]
    if end - begin == chunk:
        return rows
    padded = min(chunk, 1 << (end - begin - 1).bit_length())
    return np.concatenate([rows, np.zeros((padded - len(rows), rows.shape[1]), rows.dtype)])


def _among_all(
    part: Float[Any, "rows entities"],
    high: np.ndarray,
    low: np.ndarray,
    begin: int,
    named: Callable[[int], str] | None,
    mask: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Number of all entities, or of the mask, that score above `high` and at least `low`, by query."""
    from owkg.ranks.kernels import score_counts

    size, padding = len(high), len(part) - len(high)
    bounds = (np.concatenate([bound, np.zeros(padding, bound.dtype)]) for bound in (high, low))
    found = score_counts(part, *bounds) if mask is None else score_counts(part, *bounds, mask)
    above, level, nan = (np.asarray(count)[:size].astype(np.int64) for count in found)
    if nan.any():
        query = int(np.argmax(nan > 0))
        entity = int(np.argmax(np.isnan(np.asarray(part[query]))))
        name = f" ({named(begin + query)})" if named else ""
        raise ArgumentError(
            "scores", f"must not be NaN, got NaN for query {begin + query}{name}, entity {entity}."
        )
    return above, level


# --- some entities


def _members(
    sets: EntitySets | Bool[np.ndarray, "queries entities"] | None, begin: int, end: int, entities: int
) -> Int64[np.ndarray, "members"]:
    """Members of the sets of some queries; empty if there are no sets."""
    return np.empty(0, np.int64) if sets is None else members(sets, begin, end, entities)


def _without(keys: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Keys that are not among `others`; both are increasing."""
    if not (keys.size and others.size):
        return keys
    place = np.minimum(np.searchsorted(others, keys), others.size - 1)
    return keys[others[place] != keys]


def _among(
    part: Float[Any, "rows entities"], keys: np.ndarray, high: np.ndarray, low: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number of the entities in `keys` that score above `high` and at least `low`, and of all in `keys`."""
    row, entity = np.divmod(keys, part.shape[1])
    values = gathered(part, row, entity)
    above, level = row[values > high[row]], row[values >= low[row]]
    count = len(high)
    numbers = [np.bincount(rows, minlength=count) for rows in (above, level, row)]
    return numbers[0], numbers[1], numbers[2]


def gathered(scores: Float[Any, "queries entities"], row: np.ndarray, entity: np.ndarray) -> np.ndarray:
    """Entries scores[row, entity] as a NumPy array."""
    if not is_jax(scores):
        return scores[row, entity]
    from owkg.ranks.kernels import entries

    # Indices are padded, so that few lengths are compiled.
    room = np.zeros((2, 1 << max(row.size - 1, 0).bit_length()), np.int64)
    room[:, : row.size] = row, entity
    return np.asarray(entries(scores, *room))[: row.size]
