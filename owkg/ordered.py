"""Sorted arrays: distinct numbers and positions of numbers, by sorting.

For arrays that do not fit the caches, sorting first is many times faster than hashing or searching in any
order.
"""

from typing import Literal

import numpy as np
from jaxtyping import Bool, Int64, Shaped
from numpy.typing import ArrayLike

# Values that are sorted at a time before the search.
_BLOCK = 2**20


def changes(ordered: Shaped[np.ndarray, "_"]) -> Bool[np.ndarray, "_"]:
    """Whether each value of an array differs from the previous one; False for the first."""
    new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return new


def num_distinct(ordered: Int64[np.ndarray, "_"]) -> int:
    """Number of distinct values of an increasing array."""
    return int(np.count_nonzero(changes(ordered)))


def distinct(values: ArrayLike) -> np.ndarray:
    """Distinct values of an array, increasing."""
    ordered = np.sort(values, axis=None)
    return ordered[changes(ordered)]


def searched(
    increasing: np.ndarray, wanted: np.ndarray, side: Literal["left", "right"] = "left"
) -> Int64[np.ndarray, "..."]:
    """Position of each wanted value in an increasing array, or where to insert it, as `np.searchsorted`."""
    asked, place = wanted.ravel(), np.empty(wanted.size, np.int64)
    for begin in range(0, wanted.size, _BLOCK):
        own = slice(begin, begin + _BLOCK)
        order = np.argsort(asked[own])
        place[own][order] = np.searchsorted(increasing, asked[own][order], side)
    return place.reshape(wanted.shape)


def located(
    increasing: np.ndarray, wanted: np.ndarray
) -> tuple[Int64[np.ndarray, "..."], Bool[np.ndarray, "..."]]:
    """Position of each wanted value in an increasing array, as in `searched`, and whether it is there."""
    place = searched(increasing, wanted)
    if not increasing.size:
        return place, np.zeros(wanted.shape, bool)
    return place, np.asarray(increasing[np.minimum(place, increasing.size - 1)] == wanted)
