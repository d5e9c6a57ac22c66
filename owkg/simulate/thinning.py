"""Ranks on a sparse test set from ranks on the full one: nothing is scored again."""

from typing import Any

import numpy as np
from jaxtyping import Int64

from owkg.checks import ArgumentError
from owkg.simulate.full_test import FullTest
from owkg.simulate.order import ordered


def thin(
    full: FullTest, present: Any
) -> tuple[Int64[np.ndarray, "models present"], Int64[np.ndarray, "models present"]]:
    """Ranks of the answers that remain when others are missing from the test set, exactly.

    An answer that is missing is not filtered any more; it is a candidate like those that are wrong:

        optimistic  = optimistic on the full test  + #{missing answers with a larger score}
        pessimistic = pessimistic on the full test + #{missing answers with no smaller score}

    Args:
        full: of `full_test`.
        present: whether each answer is in the sparse test set, bool [answers].

    Returns:
        (optimistic, pessimistic), of the present answers in their order, [models, present].

    Raises:
        ValueError: if `present` is not of that shape, or nothing is present.

    Examples:
        >>> from owkg.simulate import full_test
        >>> full = full_test([0, 0, 1], [1, 4, 2], [1, 4, 2], [0.9, 0.2, 0.5])
        >>> [ranks.tolist() for ranks in thin(full, [False, True, True])]
        [[[5, 2]], [[5, 2]]]
    """
    present = np.asarray(present)
    if present.dtype != bool or present.shape != full.query.shape:
        raise ArgumentError(
            "present",
            f"must be true or false for each of {len(full.query)} answers, "
            f"got {present.dtype} of shape {present.shape}.",
        )
    if not present.any():
        raise ArgumentError("present", "must leave some answer, got none.")
    low, high = full.optimistic.copy(), full.pessimistic.copy()
    for model, score in enumerate(full.score):
        order = ordered(full.query, score)
        missing_before = np.append(0, np.cumsum(~present[order.answer]))
        at_query = missing_before[order.begin]
        low[model, order.answer] += missing_before[order.first] - at_query
        high[model, order.answer] += missing_before[order.last] - at_query
    return low[:, present], high[:, present]
