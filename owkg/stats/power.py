"""Power of the paired t test: differences between two systems that a number of queries can show.

The contributions of the queries to the difference are treated as normal, with mean `difference` and standard
deviation `deviation` (`owkg.judge.significance.Pairwise` has both). Then t follows the noncentral t
distribution with n - 1 degrees of freedom and noncentrality difference / deviation * sqrt(n). Arguments
broadcast.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Float64, Int64, Shaped
from numpy.typing import ArrayLike
from scipy import special

from owkg import checks

# More queries than any test set has.
_MOST = 2**40
# SciPy 1.17 is wrong at larger noncentralities (at 3e5 and 1 degree of freedom, 0.27 instead of 0.36).
_LARGEST_SHIFT = 3e4
# Bisection steps from 2^k to the last digit of a number above 2^-10.
_HALVINGS = 70


def t_test_power(
    difference: ArrayLike, deviation: ArrayLike, queries: ArrayLike, *, alpha: ArrayLike = 0.05
) -> Float64[np.ndarray, "*shape"]:
    """Probability that a difference is significant: P(|t| > t_{1 - alpha/2, n-1}).

    Args:
        difference: difference between the metrics of two systems, of either sign. If it is 0, the power is
            alpha.
        deviation: standard deviation of the queries' contributions to the difference, above 0.
        queries: n, at least 2.
        alpha: two-sided significance level, in (0, 1). Default 0.05.

    Raises:
        ValueError: if an argument is out of range, or the shapes do not broadcast.

    Examples:
        >>> t_test_power(0.01, 0.2, [1000, 3000]).round(2).tolist()
        [0.35, 0.78]

    References:
        Johnson, Kotz, Balakrishnan, "Continuous univariate distributions", volume 2, chapter 31; Sakai
        (Information Retrieval Journal 19, 2016), "Topic set size design".
    """
    gap = _size(difference)
    deviation, count, level = _checked(deviation, queries, alpha)
    checks.common_shape(difference=gap, deviation=deviation, queries=count, alpha=level)
    return _power(gap / deviation, count, level)


def detectable_difference(
    deviation: ArrayLike, queries: ArrayLike, *, power: ArrayLike = 0.8, alpha: ArrayLike = 0.05
) -> Float64[np.ndarray, "*shape"]:
    """Smallest difference that is significant with the given power.

    Args:
        deviation: standard deviation of the queries' contributions to the difference, above 0.
        queries: n, at least 2.
        power: probability of significance, in [alpha, 1). Default 0.8.
        alpha: two-sided significance level, in (0, 1). Default 0.05.

    Raises:
        ValueError: if an argument is out of range, or the shapes do not broadcast.

    Examples:
        >>> detectable_difference(0.2, [1000, 4000]).round(4).tolist()
        [0.0177, 0.0089]
    """
    deviation, count, level = _checked(deviation, queries, alpha)
    wanted = _wanted(power, level, deviation=deviation, queries=count)
    count, level, wanted = (np.asarray(a, np.float64) for a in np.broadcast_arrays(count, level, wanted))
    # In units of the deviation.
    low = np.zeros(count.shape)
    high = np.full(count.shape, 1e-3)
    while (short := _power(high, count, level) < wanted).any():
        high = np.where(short, 2 * high, high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = _power(middle, count, level) >= wanted
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.asarray(deviation * high)


def queries_needed(
    difference: ArrayLike, deviation: ArrayLike, *, power: ArrayLike = 0.8, alpha: ArrayLike = 0.05
) -> Int64[np.ndarray, "*shape"]:
    """Fewest queries, at least 2, with which a difference is significant with the given power.

    Args:
        difference: difference between the metrics of two systems, of either sign, not 0.
        deviation: standard deviation of the queries' contributions to the difference, above 0.
        power: probability of significance, in [alpha, 1). Default 0.8.
        alpha: two-sided significance level, in (0, 1). Default 0.05.

    Raises:
        ValueError: if an argument is out of range, more than 2^40 queries are needed, or the shapes do
            not broadcast.

    Examples:
        >>> queries_needed([0.01, 0.005], 0.2).tolist()
        [3142, 12561]
    """
    gap = _size(difference)
    checks.require("difference", gap, gap > 0, "other than 0")
    deviation, _, level = _checked(deviation, 2, alpha)
    wanted = _wanted(power, level, difference=gap, deviation=deviation)
    effect, level, wanted = np.broadcast_arrays(gap / deviation, level, wanted)
    low, high = np.ones(effect.shape, np.int64), np.full(effect.shape, 2, np.int64)
    while (short := _power(effect, high, level) < wanted).any():
        checks.require("difference", gap, (high < _MOST).all(), "large enough for 2^40 queries to show it")
        low, high = np.where(short, high, low), np.where(short, 2 * high, high)
    while (high - low > 1).any():
        middle = np.maximum((low + high) // 2, 2)
        enough = _power(effect, middle, level) >= wanted
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.asarray(high)


def _size(difference: ArrayLike) -> np.ndarray:
    return np.asarray(np.abs(checks.real("difference", difference, -np.inf, np.inf)))


def _power(effect: Float[Any, "..."], queries: Shaped[Any, "..."], level: Float[Any, "..."]) -> np.ndarray:
    freedom = queries - 1.0
    shift = effect * np.sqrt(queries)
    critical = -special.stdtrit(freedom, level / 2)
    near = np.minimum(shift, _LARGEST_SHIFT)
    # The upper tail of a shift is the lower tail of the opposite shift.
    upper, lower = (special.nctdtr(freedom, sign * near, -critical) for sign in (-1, 1))
    # If the shift is that large, only the sample deviation is still random.
    limit = special.chdtr(freedom, freedom * (shift / critical) ** 2)
    upper = np.where(shift > _LARGEST_SHIFT, limit, upper)
    # SciPy's lower tail is occasionally NaN, but only if it is too small to matter.
    return np.asarray(np.minimum(upper + np.nan_to_num(lower, nan=0.0), 1))


def _checked(
    deviation: ArrayLike, queries: ArrayLike, alpha: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return (
        checks.real("deviation", deviation, 0, np.inf, closed=False),
        checks.integer("queries", queries, 2),
        checks.real("alpha", alpha, 0, 1, closed=False),
    )


def _wanted(power: ArrayLike, level: np.ndarray, **others: np.ndarray) -> np.ndarray:
    wanted = checks.real("power", power, 0, 1, closed=False)
    shape = checks.common_shape(power=wanted, alpha=level, **others)
    wanted = np.broadcast_to(wanted, shape)
    checks.require("power", wanted, wanted >= level, "at least `alpha`")
    return wanted
