"""Bootstrap over queries: whole queries are resampled with all their ranks."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float
from scipy import special

from owkg import checks
from owkg.files.storage import free_memory
from owkg.keys import Seed, generator
from owkg.stats.interval import IntervalMethod

# Entries of the arrays of one batch of replicates.
_ENTRIES = 2**18


def checked_replicates(replicates: int, width: int = 5) -> int:
    """Number of replicates; ValueError if it is not an integer of at least 2, or memory is short.

    Args:
        replicates: number of replicates.
        width: numbers kept for each replicate. Default 5.
    """
    replicates = checks.whole("replicates", replicates, 2)
    checks.memory("replicates", 8 * width * replicates, free_memory(), f"{replicates:,} of them")
    return replicates


def batches(
    key: Seed, queries: int, replicates: int, width: int
) -> Iterator[tuple[int, Float[np.ndarray, "batch queries"]]]:
    """Batches of replicates: first replicate of the batch, and how often each replicate draws each query."""
    rng = generator(key)
    size = max(1, _ENTRIES // max(queries, width))
    for start in range(0, replicates, size):
        count = min(size, replicates - start)
        picks = rng.integers(0, queries, (count, queries))
        picks += np.arange(count)[:, None] * queries
        drawn = np.bincount(picks.ravel(), minlength=count * queries)
        yield start, drawn.reshape(count, queries).astype(np.float64)


def resampled_sums(
    key: Seed, parts: Float[np.ndarray, "sums queries"], replicates: int
) -> Float[np.ndarray, "replicates sums"]:
    """Sums over resamples of the queries, one resample for each replicate.

    A resample draws as many queries as there are, with replacement. Replicate i of a key draws the same
    queries whatever is summed and for any number of replicates.

    Args:
        key: seed, or key of `jax.random.key`.
        parts: contribution of each query to each sum, [sums, queries].
        replicates: number of replicates.
    """
    sums = np.empty((replicates, len(parts)))
    for start, drawn in batches(key, parts.shape[1], replicates, 0):
        np.matmul(drawn, parts.T, out=sums[start : start + len(drawn)])
    return sums


def bounds(
    interval: IntervalMethod,
    value: float,
    replicates: Float[np.ndarray, "replicates"],
    level: float,
    influence: Float[np.ndarray, "queries"] | None = None,
) -> tuple[float, float]:
    """Ends of a bootstrap interval, NaN if the value or a replicate is NaN.

    BCa (Efron 1987) corrects the percentiles for bias, by the share of replicates below the value, and for
    skewness, by the acceleration sum(u^3) / (6 (sum u^2)^(3/2)) of the influences u.

    Args:
        interval: percentile or BCa.
        value: value of the whole table.
        replicates: values of the resampled tables.
        level: confidence level, in (0, 1).
        influence: influence of each query. Default: acceleration 0.
    """
    if not (np.isfinite(value) and np.isfinite(replicates).all()):
        return np.nan, np.nan
    ends = np.array([(1 - level) / 2, (1 + level) / 2])
    scale = 1e-12 * max(abs(value), 1e-300)
    if interval is IntervalMethod.BCA and np.ptp(replicates) > scale:
        below = np.mean(replicates < value - scale) + np.mean(np.abs(replicates - value) <= scale) / 2
        count = len(replicates)
        shift = special.ndtri(np.clip(below, 0.5 / count, 1 - 0.5 / count))
        acceleration = 0.0
        if influence is not None and influence.any():
            unit = influence / np.abs(influence).max()
            acceleration = float(np.sum(unit**3) / (6 * np.sum(unit**2) ** 1.5))
        z = shift + special.ndtri(ends)
        # Beyond its pole the correction has no meaning, because all replicates lie on one side.
        left = 1 - acceleration * z
        ends = special.ndtr(
            np.where(left > 0, shift + z / np.where(left > 0, left, 1.0), np.sign(z) * np.inf)
        )
    low, high = np.quantile(replicates, ends)
    return float(low), float(high)
