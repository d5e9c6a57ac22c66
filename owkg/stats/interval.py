"""Confidence interval of a mean between two bounds, from the effective number of queries."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import special


class IntervalMethod(StrEnum):
    """Method of a confidence interval."""

    ANALYTIC = "analytic"
    PERCENTILE = "percentile"
    BCA = "bca"


# Effective queries added at each end of the scale.
_ADDED = 0.1
# Exponent of the scatter in the distance at which queries are added if the scale grows with the candidates:
# see `intervals`.
_NEARER = 0.2


FEW_QUERIES = 30
"""Effective queries below which intervals may cover less than their level."""
HEAVY_QUERY = 0.1
"""Share of the weight in one query above which intervals may cover less than their level."""
HEAVY_SHARE = 0.25
"""Share of the variance in a few heavy queries above which intervals may cover less than their level, if
these queries score differently."""


class BoundedMean(NamedTuple):
    """Mean over queries with its scatter.

    Attributes:
        value: the mean.
        error: standard error of the mean.
        lowest, highest: values of the worst and the best ranking, in either order.
        effective: effective number of queries.
        rises: whether the mean grows as ranks improve; False for the mean rank and its adjustments.
        freedom: degrees of freedom of `error`. Default: effective queries minus 1.
    """

    value: float
    error: float
    lowest: float
    highest: float
    effective: float
    rises: bool
    freedom: float | None = None


def student(level: float, effective: ArrayLike) -> Any:
    """Student's quantile of a two-sided interval, with effective queries minus 1 degrees of freedom."""
    return special.stdtrit(np.maximum(np.asarray(effective, float) - 1, 0.5), (1 + level) / 2)


def share_limits(
    share: Float[np.ndarray, "n"], size: Float[np.ndarray, "n"], tail: float
) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n"]]:
    """Mid-P limits of a share (Lancaster 1961), for any size above 0 and any share.

    The lower limit is the p with P(X > k) + P(X = k) / 2 = tail, where X is binomial with n = `size` and p,
    and k = n share. It is computed from incomplete beta functions, so n and k need not be integers. (The
    limits of Clopper and Pearson count all of P(X = k).)

    Args:
        share: observed share, in [0, 1].
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
    """Wilson's limits of shares of `size` draws (JASA 22, 1927), at a confidence level; arrays broadcast."""
    share, size = np.asarray(share, float), np.asarray(size, float)
    z2 = special.ndtri((1 + level) / 2) ** 2
    middle = (share + z2 / (2 * size)) / (1 + z2 / size)
    half = np.sqrt(z2 * (share * (1 - share) / size + z2 / (4 * size**2))) / (1 + z2 / size)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def intervals(means: Sequence[BoundedMean], level: float) -> Float[np.ndarray, "n 2"]:
    """Confidence interval for each mean, never outside the bounds, of width 0 only if the bounds are equal.

    The mean is scaled to x in [0, 1] and treated as the share of n* = x (1 - x) / error^2 draws, which would
    scatter as much as the queries do (Korn and Graubard 1998). The mid-P limits of this share are skewed as
    the metric is near its bounds. Two corrections keep n* honest if there are few queries. First, a tenth of
    an effective query is added at each end, so that n* remains the effective number of queries if all queries
    have the same value. Second, n* shrinks by (z / t)^2, where t is Student's quantile with effective queries
    minus 1 degrees of freedom.

    The worst mean rank (or adjusted mean rank) grows with the number of candidates, whatever the model does.
    For these metrics, the added queries are nearer, at distance s^0.2 b^0.8, where b is the distance to the
    end and s is the scatter that the most extreme of so many queries may have. `benchmarks/coverage.py`
    measures the coverage.

    Args:
        means: means with their scatter and bounds.
        level: confidence level, in (0, 1).
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
