"""Non-deterministic ranks: where a sort happens to put the target among candidates with its score."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Int64

from owkg.errors import ArgumentError

SORTS = ("stable", "quicksort", "heapsort")
"""Algorithms of NumPy; with the prefix "reversed-": ascending, and read from the end."""

# Scores that are sorted at a time.
_CHUNK = 2**22


def sort_checked(sort: object) -> tuple[str, bool]:
    """(the algorithm, whether it sorts ascending and is read from the end); ValueError for others."""
    name = sort.removeprefix("reversed-") if isinstance(sort, str) else None
    if name not in SORTS:
        raise ArgumentError("sort", f"must be one of {', '.join(SORTS)}, or reversed- and one, got {sort!r}.")
    return name, sort != name


def sorted_ranks(
    scores: np.ndarray, target: np.ndarray, left_out: Bool[np.ndarray, "queries entities"], sort: str
) -> Int64[np.ndarray, "queries"]:
    """The index of each target in the sorted list of its candidates (Berrendorf et al. 2020, section 2.2).

    With ties it depends on the algorithm and on the order of the entities: between the optimistic and the
    pessimistic rank, but no property of the model. `owkg.ranks.ranks_from_scores(sort=...)` checks the input.

    Args:
        scores: [queries, entities].
        target: ids [queries].
        left_out: known answers, which are no candidates.
        sort: of `SORTS`, perhaps with "reversed-".
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
