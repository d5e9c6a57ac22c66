"""Non-deterministic ranks: the index of the target after a sort, which breaks ties arbitrarily."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Int64

from owkg.errors import ArgumentError

SORTS = ("stable", "quicksort", "heapsort")
"""Sorting algorithms of NumPy; with the prefix "reversed-" they sort ascending and are read from the end."""

# Number of scores sorted at a time.
_CHUNK = 2**22


def sort_checked(sort: object) -> tuple[str, bool]:
    """Algorithm, and whether it sorts ascending and is read from the end; ArgumentError for other names."""
    name = sort.removeprefix("reversed-") if isinstance(sort, str) else None
    if name not in SORTS:
        raise ArgumentError("sort", f"must be one of {', '.join(SORTS)}, or reversed- and one, got {sort!r}.")
    return name, sort != name


def sorted_ranks(
    scores: np.ndarray, target: np.ndarray, left_out: Bool[np.ndarray, "queries entities"], sort: str
) -> Int64[np.ndarray, "queries"]:
    """Index of each target in the sorted list of its candidates (Berrendorf et al. 2020, section 2.2).

    With ties it depends on the algorithm and on the order of the entities: it is between the optimistic and
    the pessimistic rank, but not a property of the model. `owkg.ranks.ranks_from_scores(sort=...)` checks the
    input.

    Args:
        scores: scores, [queries, entities].
        target: ids of the targets, [queries].
        left_out: whether each entity is a known answer and therefore not a candidate, [queries, entities].
        sort: one of `SORTS`, possibly with "reversed-".
    """
    algorithm, ascending = sort_checked(sort)
    kind: Any = algorithm
    rows = max(1, _CHUNK // scores.shape[1])
    found = [np.empty(0, np.int64)]
    for begin in range(0, len(scores), rows):
        part = np.asarray(scores[begin : begin + rows])
        order = (
            np.argsort(part, axis=1, kind=kind)[:, ::-1]
            if ascending
            else np.argsort(-part, axis=1, kind=kind)
        )
        at = (order == target[begin : begin + rows, None]).argmax(1)
        gone = np.take_along_axis(left_out[begin : begin + rows], order, 1)
        before = np.where(np.arange(part.shape[1]) < at[:, None], gone, False).sum(1)
        found.append(1 + at - before)
    return np.concatenate(found)
