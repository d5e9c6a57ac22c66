"""Confidence interval of a mean between two bounds, on the effective number of queries."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import special


class IntervalMethod(StrEnum):
    """How a confidence interval is made."""

    ANALYTIC = "analytic"
    PERCENTILE = "percentile"
    BCA = "bca"


# Queries added at each end of the scale, in effective ones.
_ADDED = 0.1
# How far from the end a query is added where the scale grows with the candidates: see `intervals`.
_NEARER = 0.2


FEW_QUERIES = 30
"""Effective queries below which intervals may cover less than they say."""
HEAVY_QUERY = 0.1
"""Share of the weight of one query above which they may too."""
HEAVY_SHARE = 0.25
"""Share of the variance of a few heavy queries above which they may too, if these score differently."""


class BoundedMean(NamedTuple):
    """A mean over queries, and how it scatters.

    Attributes:
        value: the mean.
        error: its standard error.
        lowest, highest: what the worst and the best ranking get, in either order.
        effective: effective number of queries.
        rises: whether the mean grows as ranks improve; False for the mean rank and what is made of it.
        freedom: degrees of freedom of `error`; None: one less than effective queries.
    """

    value: float
    error: float
    lowest: float
    highest: float
    effective: float
    rises: bool
    freedom: float | None = None


def student(level: float, effective: ArrayLike) -> Any:
    """Student's quantile of a two-sided interval, with one degree of freedom less than effective queries."""
    return special.stdtrit(np.maximum(np.asarray(effective, float) - 1, 0.5), (1 + level) / 2)


def share_limits(
    share: Float[np.ndarray, "n"], size: Float[np.ndarray, "n"], tail: float
) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n"]]:
    """Mid-P limits of a share (Lancaster 1961), for any size above 0 and share, whole counts or not.

    The lower limit is the p with P(X > k) + P(X = k) / 2 = tail, X binomial of n = `size` and p, k = n share,
    by incomplete beta functions. (The limits of Clopper and Pearson count all of P(X = k).)

    Args:
        share: seen, in [0, 1].
        size: n.
        tail: probability outside each limit.
    """
    k = share * size
    above, below = np.maximum(size - k, 1e-300), np.maximum(k, 1e-300)

    def solve(target: float) -> np.ndarray:
        low, high = np.zeros_like(share), np.ones_like(share)
        for _ in range(64):
            p = (low + high) / 2
            found = (special.betainc(below, above + 1, p) + special.betainc(below + 1, above, p)) / 2
            low, high = np.where(found < target, p, low), np.where(found < target, high, p)
        return (low + high) / 2

    return np.where(share <= 0, 0.0, solve(tail)), np.where(share >= 1, 1.0, solve(1 - tail))


def wilson(share: ArrayLike, size: ArrayLike, level: float) -> tuple[Any, Any]:
    """Wilson's limits of shares of `size` draws (JASA 22, 1927), at a level of confidence; they broadcast."""
    share, size = np.asarray(share, float), np.asarray(size, float)
    z2 = special.ndtri((1 + level) / 2) ** 2
    middle = (share + z2 / (2 * size)) / (1 + z2 / size)
    half = np.sqrt(z2 * (share * (1 - share) / size + z2 / (4 * size**2))) / (1 + z2 / size)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def intervals(means: Sequence[BoundedMean], level: float) -> Float[np.ndarray, "n 2"]:
    """A confidence interval for each mean, never beyond the bounds, of width 0 only where these are equal.

    The mean, scaled to x in [0, 1], is taken as the share of n* = x (1 - x) / error^2 draws: as many as
    would scatter as the queries do (Korn and Graubard 1998), and its limits are mid-P limits, so that they
    are skewed as the metric is near its bounds. Two things keep n* honest where queries are few. A tenth of
    an effective query is added at each end, so that queries which all say the same leave n* at their
    effective number. And n* shrinks by (z / t)^2, t Student's with one degree of freedom less than effective
    queries.

    Of the mean rank and its adjustments the worst value grows with the number of candidates, whatever the
    model does. There the added queries are nearer: at s^0.2 b^0.8, b the distance to the end, s the scatter
    that the most extreme of so many queries may have. Coverage: `benchmarks/coverage.py`.

    Args:
        means: the means.
        level: of confidence.
    """
    if not means:
        return np.empty((0, 2))
    columns = (np.array(column, float) for column in zip(*means, strict=True))
    value, error, lowest, highest, effective, rises, freedom = columns
    low, high = np.minimum(lowest, highest), np.maximum(lowest, highest)
    width = np.where(high > low, high - low, 1.0)
    x = np.clip((value - low) / width, 0.0, 1.0)
    scatter = error / width * effective

    def away(bound: np.ndarray) -> np.ndarray:
        nearer = np.minimum(bound, scatter**_NEARER * bound ** (1 - _NEARER))
        return np.where((rises > 0) | (scatter == 0), bound, nearer)

    up, down = away(1 - x), away(x)
    queries = effective + 2 * _ADDED
    middle = x + _ADDED * (up - down) / queries
    variance = (scatter**2 + _ADDED * (up**2 + down**2)) / queries
    counted = np.where(np.isnan(freedom), effective, freedom + 1)
    quantile = special.ndtri((1 + level) / 2) / student(level, counted)
    size = np.maximum(middle * (1 - middle) / variance * effective * quantile**2, 1e-12)
    ends = np.stack(share_limits(x, size, (1 - level) / 2), axis=1)
    ends = np.stack([np.minimum(ends[:, 0], x), np.maximum(ends[:, 1], x)], axis=1)
    found = low[:, None] + ends * width[:, None]
    return np.where((high > low)[:, None], found, value[:, None])
