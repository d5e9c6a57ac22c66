"""Weights of ranks, and running sums of them, kept only for the ranks that resamples can reach."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Int

from owkg.rank_weights import RankWeight
from owkg.rank_weights.tables import padded_size, prefix_sums, rank_weights


def reachable(first: Int[np.ndarray, "..."], length: Int[np.ndarray, "..."]) -> np.ndarray:
    """The whole numbers in first .. first + length - 1 of any entry, ascending.

    Args:
        first: at least 0.
        length: at least 1; broadcasts with `first`.
    """
    first, length = np.broadcast_arrays(first, length)
    steps = np.zeros(int((first + length).max()) + 1, np.int32)
    np.add.at(steps, first, 1)
    np.add.at(steps, first + length, -1)
    return np.flatnonzero(np.cumsum(steps) > 0)


def weights_at(metrics: tuple[RankWeight, ...], ranks: np.ndarray) -> np.ndarray:
    """h of each rank, float32 [metrics, ranks or more], as long as few other tables."""
    return _stacked(metrics, ranks, rank_weights, np.float32)


def sums_at(metrics: tuple[RankWeight, ...], ranks: np.ndarray) -> np.ndarray:
    """S1 of each rank, the sum of h up to it, float64 [metrics, ranks or more]."""
    return _stacked(
        metrics, ranks, lambda metric, ranks: prefix_sums(metric, max(1, ranks.max()))[0, ranks], np.float64
    )


def _stacked(
    metrics: tuple[RankWeight, ...],
    ranks: np.ndarray,
    values: Callable[[RankWeight, np.ndarray], np.ndarray],
    dtype: type,
) -> np.ndarray:
    padded = np.pad(ranks, (0, padded_size(len(ranks)) - len(ranks)), mode="edge")
    return np.stack([values(metric, padded).astype(dtype) for metric in metrics])
