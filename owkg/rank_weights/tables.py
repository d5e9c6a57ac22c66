"""Tables of a rank weight over the ranks, and their running sums, from which every exact mean is computed."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.files.storage import free_memory
from owkg.keys import settled
from owkg.rank_weights.many import points
from owkg.rank_weights.rank_weight import RankWeight, probed

# Most ranks of a table of sums; a table of this size takes 1.6 GB, and twice as much while it is made.
_LARGEST_RANK = 10**8
# Above this weight, a sum of squares may exceed the range of floats.
_LARGEST_WEIGHT = 1e150


def padded_size(largest: int | np.integer) -> int:
    """Round number of at least `largest`; the few distinct sizes keep compilations few.

    The sizes are powers of two from 16 to 2**20, and multiples of 2**20 above.
    """
    if largest > 2**20:
        return -(-int(largest) // 2**20) * 2**20
    return max(16, 1 << (int(largest) - 1).bit_length())


def on_numpy(function: Callable[[Any], Any], values: ArrayLike) -> Float[np.ndarray, "..."]:
    """Value of an elementwise function in float64, by NumPy if possible, which compiles nothing."""
    values = np.asarray(values, np.float64)
    with ExitStack() as now, np.errstate(all="ignore"):
        if (jax := sys.modules.get("jax")) is not None:
            # Evaluated now, even if the caller is being traced.
            now.enter_context(jax.ensure_compile_time_eval())
            now.enter_context(settled(x64=True, device=False))
        try:
            return np.asarray(function(values), np.float64)
        except Exception:  # the function accepts only JAX arrays
            import jax

            with jax.ensure_compile_time_eval(), settled(x64=True):
                return np.asarray(function(jax.numpy.asarray(values)), np.float64)


def rank_weights(metric: RankWeight, ranks: np.ndarray) -> Float[np.ndarray, "*ranks"]:
    """h of an array of ranks, in float64.

    Raises:
        ValueError: if the weight of some rank is not finite.
    """
    weight = on_numpy(probed(metric).weight, ranks)
    if not np.isfinite(weight).all():
        first = int(np.argmin(np.isfinite(weight)))
        raise ArgumentError(
            "metric",
            f"must weigh every rank with a finite number, got {metric.name!r} with "
            f"{weight[first]} at rank {float(ranks[first]):g}.",
        )
    return weight


def _new_prefix_sums(metric: RankWeight, largest_rank: int) -> np.ndarray:
    weight = rank_weights(metric, np.arange(1, largest_rank + 1))
    if np.abs(weight).max() > _LARGEST_WEIGHT:
        raise ArgumentError(
            "metric",
            f"must weigh ranks up to {largest_rank:,} with numbers below {_LARGEST_WEIGHT:g}, "
            f"got {metric.name!r}.",
        )
    sums = np.zeros((2, padded_size(largest_rank) + 1))
    np.cumsum(weight, out=sums[0, 1 : largest_rank + 1])
    np.cumsum(weight**2, out=sums[1, 1 : largest_rank + 1])
    # No candidate can have these ranks, so any finite number will do.
    sums[:, largest_rank + 1 :] = sums[:, largest_rank : largest_rank + 1]
    sums.flags.writeable = False
    return sums


# (size, number of tables up to this size that are kept); a larger table is made anew each time.
_KEPT = ((2**15, 1024), (2**18, 16), (2**23, 2))
# Number of ranks that are summed at a time if there is no table.
_PART = 2**20
# Bytes per rank that a table takes while it is made.
_BYTES = 32


def kept_by_size(build: Callable[[RankWeight, int], np.ndarray]) -> Callable[[RankWeight, int], np.ndarray]:
    """Cached version of `build(metric, size)` that keeps many small tables and few large ones."""
    kept = [(size, lru_cache(maxsize=count)(build)) for size, count in _KEPT]

    def table(metric: RankWeight, size: int) -> np.ndarray:
        return next((cached for most, cached in kept if size <= most), build)(metric, size)

    return table


_prefix_sums = kept_by_size(_new_prefix_sums)


def prefix_sums(metric: RankWeight, largest_rank: int | np.integer) -> Float[np.ndarray, "2 ranks"]:
    """S1(x) = sum_{j <= x} h(j) and S2(x) = sum_{j <= x} h(j)^2, for x = 0 .. `largest_rank`.

    The table has a round length; its entries behind `largest_rank` are finite and have no meaning.

    Raises:
        ValueError: if the metric's weight is not finite at some rank, or there are more than 10**8 ranks.
    """
    largest_rank = int(largest_rank)
    if largest_rank > _KEPT[-1][0]:
        needed = _BYTES * largest_rank
        checks.memory("num_entities", needed, free_memory(), f"exact sums over {largest_rank:,} ranks")
    if largest_rank > padded_size(_LARGEST_RANK):
        raise ArgumentError(
            "num_entities", f"must be below {_LARGEST_RANK:,} for exact sums, got {largest_rank:,}."
        )
    return _prefix_sums(metric, largest_rank)


def has_table(largest_rank: int | np.integer) -> bool:
    """Whether a table over this many ranks is worth its memory; beyond, weights are computed one by one."""
    return bool(largest_rank <= _KEPT[-1][0])


def sums_at(metric: RankWeight, ranks: Int[np.ndarray, "*shape"]) -> Float[np.ndarray, "2 *shape"]:
    """S1 and S2 of `prefix_sums` at some ranks from 0: from the table, from `points`, or summed in parts."""
    largest = int(ranks.max(initial=1))
    if has_table(largest):
        return prefix_sums(metric, padded_size(largest))[:, ranks]
    places, inverse = np.unique(ranks, return_inverse=True)
    found, total = np.zeros((2, len(places))), np.zeros(2)
    some = places > 0
    if (few := points(metric, places[some])) is not None:
        weight = rank_weights(metric, few.rank)
        found[:, some] = np.cumsum(few.share * np.stack([weight, weight**2]), axis=1)[:, few.last]
        return found[:, inverse.reshape(ranks.shape)]
    for begin in range(0, largest, _PART):
        weight = rank_weights(metric, np.arange(begin + 1, min(begin + _PART, largest) + 1))
        sums = total[:, None] + np.cumsum(np.stack([weight, weight**2]), axis=1)
        here = (places > begin) & (places <= begin + _PART)
        found[:, here] = sums[:, places[here] - begin - 1]
        total = sums[:, -1]
    return found[:, inverse.reshape(ranks.shape)]


def tie_expectation(
    metric: RankWeight, optimistic: ArrayLike, pessimistic: ArrayLike
) -> Float[np.ndarray, "*tasks"]:
    """E[h(rank)] of a rank uniform on optimistic .. pessimistic, for any rank weight, in O(1) time per task.

    Args:
        metric: metric with the weight h; a link is not applied.
        optimistic: first rank of each tie, int, of any shape.
        pessimistic: last rank of each tie, int, of the same shape.

    Raises:
        ValueError: if a rank is not a whole number of at least 1, or a pessimistic rank is below its
            optimistic rank.
    """
    low = checks.integer("optimistic", optimistic, 1)
    high = checks.integer("pessimistic", pessimistic, 1)
    if low.shape != high.shape:
        raise ArgumentError(
            "pessimistic", f"must have the shape of `optimistic`, {low.shape}, got {high.shape}."
        )
    checks.require("pessimistic", high, low <= high, "at least the optimistic rank")
    before, until = sums_at(metric, np.stack([low - 1, high]))[0]
    return (until - before) / (high - low + 1)
