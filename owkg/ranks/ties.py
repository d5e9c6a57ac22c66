"""Single ranks from the optimistic and the pessimistic rank: their mean, or a random draw."""

import numpy as np
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.keys import Seed, generator


def realistic(optimistic: ArrayLike, pessimistic: ArrayLike) -> np.ndarray:
    """Realistic rank: the mean of the optimistic and the pessimistic rank, which ends in .0 or .5.

    Args:
        optimistic, pessimistic: 1-based ranks of one shape, optimistic at most pessimistic.

    Returns:
        float64 ranks of that shape.

    Raises:
        ValueError: if a rank is not a whole number of at least 1, or the ranks are out of order.

    Examples:
        >>> realistic([1, 4], [2, 4]).tolist()
        [1.5, 4.0]
    """
    low, high = _bounds(optimistic, pessimistic)
    return (low + high) / 2


def random_ranks(key: Seed, optimistic: ArrayLike, pessimistic: ArrayLike) -> np.ndarray:
    """Ranks drawn uniformly from the whole numbers optimistic, ..., pessimistic: ties broken at random.

    Each draw takes 128 random bits modulo the number of tied ranks, so that the probability of a rank has a
    relative error of at most 2^-64. Ties are broken independently in each row.

    Args:
        key: seed, or key of `jax.random.key`. Equal keys and ranks give equal results.
        optimistic, pessimistic: 1-based ranks of one shape, optimistic at most pessimistic.

    Returns:
        int64 ranks of that shape.

    Raises:
        ValueError: as `realistic`, or if `key` is neither a seed nor a key.

    Examples:
        >>> drawn = random_ranks(0, [3] * 1000, [5] * 1000)
        >>> sorted(set(drawn.tolist()))
        [3, 4, 5]
    """
    low, high = _bounds(optimistic, pessimistic)
    return np.asarray(generator(key).integers(low, high + 1))


def _bounds(optimistic: ArrayLike, pessimistic: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Both ranks, checked."""
    low = checks.integer("optimistic", optimistic, 1)
    high = checks.integer("pessimistic", pessimistic, 1)
    if low.shape != high.shape:
        raise ArgumentError(
            "optimistic", f"must have the shape of `pessimistic`, {high.shape}, got shape {low.shape}."
        )
    checks.require("optimistic", low, low <= high, "at most the pessimistic rank")
    return low, high
