"""Probability that one model is better than another on the full test, by sparsity and correlation."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy import special

from owkg.auditing.calibration import difference_error, full_error, most_missing, order_probability
from owkg.auditing.implied import Answers, extended, full_ends, missing_answers
from owkg.judge.significance import unseen_variance
from owkg.rank_weights import RankWeight
from owkg.stats.nested import NO_SEEDS, SeedSpread, nested

# Number of standard errors beyond strengths 0 and 1 at which a value is impossible under a sparsity.
_REFUTED = 2.0
# Errors smaller than this are rounding.
_LEAST = 1e-6


class Observed(NamedTuple):
    """One metric of several systems on the same queries.

    Attributes:
        value: value of each system.
        sampling: covariance of the values over samples of queries.
        answers: known answers of the queries.
        freedom: degrees of freedom of `sampling`: effective queries (Kish) minus one.
        unseen: additional variance of the difference of two systems, because queries that were not drawn may
            differ where the drawn ones do not. One number for all systems, or one for each.
        spread: variance that the seeds of each system add to its value, [systems]; None for single seeds.
    """

    value: Float64[np.ndarray, "systems"]
    sampling: Float64[np.ndarray, "systems systems"]
    answers: Answers
    freedom: float = np.inf
    unseen: float | Float64[np.ndarray, "systems"] = 0.0
    spread: SeedSpread | None = None

    @property
    def errors(self) -> tuple[Float64[np.ndarray, "systems"], Float64[np.ndarray, "systems"]]:
        """(standard error of each value over queries and seeds, its degrees of freedom)."""
        variance, freedom = nested(np.diag(self.sampling), self.freedom, *(self.spread or NO_SEEDS))
        return np.sqrt(variance), freedom


class Full(NamedTuple):
    """Implied full-test metric at each sparsity and correlation of a grid; NaN where the value is impossible.

    Attributes:
        strength: strength that the value implies. A value beyond the last strength (`Extended`) by at
            most two errors has the last strength.
        full: full-test metric of that strength; at a sparsity of 0, the value itself.
        slope: change of `full` per change of the value.
        inside: whether some strength gives the value itself.
        chance: full-test metric of strength 0.
        best: full-test metric of strength 1.
        reached: `full`, or where the value is impossible, the full-test metric of the nearest strength.
    """

    strength: Float64[np.ndarray, "systems sparsities correlations"]
    full: Float64[np.ndarray, "systems sparsities correlations"]
    slope: Float64[np.ndarray, "systems sparsities correlations"]
    inside: Bool[np.ndarray, "systems sparsities correlations"]
    chance: float
    best: float
    reached: Float64[np.ndarray, "systems sparsities correlations"]


def observed(
    value: Float64[np.ndarray, "systems queries"],
    weight: Float64[np.ndarray, "queries"],
    answers: Answers,
    spread: SeedSpread | None = None,
    seeds: int | Int64[np.ndarray, "systems"] = 1,
) -> Observed:
    """Metric sum(value) / sum(weight) of each system, its covariance over queries, and variance over seeds.

    The covariance is the covariance of a ratio of means (Cochran 1977, section 6.4).
    """
    total, queries = weight.sum(), len(weight)
    mean = value.sum(1) / total
    apart = value - mean[:, None] * weight
    effective = float(total**2 / (weight @ weight))
    covariance = apart @ apart.T * queries / max(queries - 1, 1) / total**2
    return Observed(
        mean,
        covariance,
        answers,
        max(effective - 1, 1.0),
        unseen_variance(value / weight, effective) / seeds**2,
        spread,
    )


def _errors(seen: Observed) -> Float64[np.ndarray, "systems"]:
    """Standard errors of the values over queries.

    If all queries have the same value, they do not scatter, but other queries may. The variance is then
    computed from a tenth of one more query at each end of the scale, which intervals add as well
    (`owkg.stats.interval`).
    """
    variance, value = seen.errors[0] ** 2, seen.value
    least = 0.1 * (value**2 + (1 - value) ** 2) / (seen.freedom + 1.2) ** 2
    return np.sqrt(np.where(variance <= _LEAST**2, least, variance))


def full_metrics(
    name: str,
    metric: RankWeight,
    seen: Observed,
    sparsity: Float64[np.ndarray, "sparsities"],
    correlation: Float64[np.ndarray, "correlations"],
) -> Full:
    """Full-test metric that each system's value implies.

    A value slightly beyond the value of the last strength, as sampling and the error of the model may give,
    has the last strength. A value further away is impossible under the sparsity and implies no strength.

    Args:
        name: name of the metric.
        metric: rank weight whose plain mean the metric is.
        seen: observed values.
        sparsity: sparsities in [0, 1), [sparsities]; 0 means that the test is full.
        correlation: correlations of being missing and being found, [correlations].
    """
    error = _errors(seen)
    values = np.stack([seen.value, seen.value - error, seen.value + error])
    grid = np.maximum(sparsity, _LEAST)[:, None]
    implied = extended(metric, values, seen.answers, sparsity=grid, correlation=correlation)
    chance, best = full_ends(metric, seen.answers)
    span, strength = best - chance, implied.strength
    error = error[:, None, None]
    slope = np.maximum(strength[0] - strength[1], strength[2] - strength[0]) / error * span
    # The full metric changes with strength no less than the sparse one. The error is not extrapolated here,
    # because no value would then be impossible.
    missing = np.minimum(missing_answers(seen.answers, sparsity[:, None]), most_missing(name))
    model = full_error(name, missing, 0.5) / np.maximum(slope, 1)
    beyond, zero = implied.beyond[0], (sparsity == 0)[:, None]
    possible = zero | (beyond <= _REFUTED * np.hypot(error, model))
    ended = np.clip(strength[0], implied.low, implied.high)
    found = np.where(possible, ended, np.nan)
    reached = np.where(zero, seen.value[:, None, None], chance + ended * span)
    full = np.where(zero | possible, reached, np.nan)
    slope = np.where(zero, 1.0, np.where(possible, slope, np.nan))
    return Full(found, full, slope, zero | (beyond <= _LEAST), chance, best, reached)


def full_intervals(
    name: str,
    seen: Observed,
    full: Full,
    sparsity: Float64[np.ndarray, "sparsities"],
    level: float,
    limits: Float64[np.ndarray, "systems 2"],
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals (low, high) of each `full`, from the interval of the value and the error of the model.

    The distances of both limits from the value are multiplied by the slope, and combined with the error of
    the model as a root of summed squares (Zou and Donner 2008). With nothing missing, the result is the
    interval of the value.

    Args:
        name: name of the metric.
        seen: observed values.
        full: implied metrics, as returned by `full_metrics`.
        sparsity: sparsities of the grid.
        level: level of the intervals.
        limits: (low, high) of each value at this level, [systems, 2].

    References:
        Zou and Donner (Statistics in Medicine 27, 2008), "Construction of confidence limits about effect
        measures: a general approach".
    """
    model = full_error(name, missing_answers(seen.answers, sparsity[:, None]), full.full)
    model = special.ndtri((1 + level) / 2) * model
    below, above = (full.slope * np.abs(seen.value - limits[:, i])[:, None, None] for i in range(2))
    # Only an observed value can be below chance: no strength gives it.
    bottom = np.where(sparsity[:, None] == 0, min(full.chance, 0.0), full.chance)
    low, high = full.full - np.hypot(model, below), full.full + np.hypot(model, above)
    return np.clip(low, bottom, full.best), np.clip(high, bottom, full.best)


def full_ranges(
    name: str,
    each: list[Observed],
    fulls: list[Full],
    sparsity: Float64[np.ndarray, "sparsities"],
    level: float,
    limits: Float64[np.ndarray, "systems 2"],
) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest ends of full-test intervals over kinds of unevenness.

    NaN where the value is impossible under every kind of unevenness.

    Args:
        name: name of the metric.
        each: observed values under each unevenness.
        fulls: implied metrics under each unevenness, as returned by `full_metrics`.
        sparsity: sparsities of the grid.
        level: level of the intervals.
        limits: (low, high) of each value at this level, [systems, 2].
    """
    possible = np.any([np.isfinite(full.full) for full in fulls], axis=0)
    low, high = np.full((2, *possible.shape), np.nan)
    for seen, full in zip(each, fulls, strict=True):
        ends = full_intervals(name, seen, full, sparsity, level, limits)
        # The end lies between an unevenness that is impossible and one that is possible.
        below, above = (np.where(np.isfinite(end), end, full.reached) for end in ends)
        low, high = np.fmin(low, below), np.fmax(high, above)
    return np.where(possible, low, np.nan), np.where(possible, high, np.nan)


def probabilities(
    name: str,
    seen: Observed,
    sparsity: Float64[np.ndarray, "sparsities"],
    pairs: tuple[Int64[np.ndarray, "pairs"], Int64[np.ndarray, "pairs"]],
    full: tuple[np.ndarray, np.ndarray],
    slope: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """Probability that the first system of each pair has the larger full-test metric.

    The prior is flat, and the probability follows from the difference of the implied metrics and its error
    over queries and of the model. If both systems are at their best, neither is better, and it is one half.

    Args:
        name: name of the metric.
        seen: observed values.
        sparsity: sparsities of the grid.
        pairs: indices of the first and of the second system of each pair.
        full, slope: values for the first and for the second, [pairs, sparsities, *correlations]; they
            broadcast.

    Returns:
        [pairs, sparsities, *correlations]; NaN where a correlation is not feasible.
    """
    more = (1,) * (full[0].ndim - 2)
    (one, other), over = pairs, seen.sampling
    own = (over[one, one], over[other, other], over[one, other])
    of_first, of_second, shared = (x.reshape(-1, 1, *more) for x in own)
    variance = slope[0] ** 2 * of_first + slope[1] ** 2 * of_second - 2 * slope[0] * slope[1] * shared
    unseen = np.broadcast_to(seen.unseen, seen.value.shape)
    half = [slope[i] ** 2 * unseen[at].reshape(-1, 1, *more) for i, at in enumerate(pairs)]
    variance = np.maximum(variance, 0) + (half[0] + half[1]) / 2
    freedom: Any = seen.freedom
    if seen.spread is not None:
        parts = [
            sum(slope[i] ** k * of[at].reshape(-1, 1, *more) for i, at in enumerate(pairs))
            for k, of in zip((2, 4), seen.spread, strict=True)
        ]
        variance, freedom = nested(variance, freedom, *parts)
    missing = missing_answers(seen.answers, sparsity.reshape(-1, *more))
    model = difference_error(name, missing, full[0], full[1])
    return order_probability(name, full[0] - full[1], np.sqrt(variance), model, freedom)


def breaking_sparsity(
    sparsity: Float64[np.ndarray, "sparsities"], least: Float64[np.ndarray, "pairs sparsities"], level: float
) -> Float64[np.ndarray, "pairs"]:
    """Smallest sparsity at which a probability falls below a level; NaN if it never does on the grid."""
    below = ~(least >= level)
    at = below.argmax(1)
    rows = np.arange(len(least))
    before = np.maximum(at - 1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        drop = least[rows, before] - least[rows, at]
        share = np.where(drop > 0, (least[rows, before] - level) / drop, 1.0)
    found = sparsity[before] + np.clip(np.nan_to_num(share, nan=1.0), 0, 1) * (
        sparsity[at] - sparsity[before]
    )
    return np.where(below.any(1), np.where(at > 0, found, sparsity[0]), np.nan)


def breaking_correlation(
    first: Float64[np.ndarray, "pairs sparsities own"],
    second: Float64[np.ndarray, "pairs sparsities correlations"],
    own: Float64[np.ndarray, "own"],
    correlation: Float64[np.ndarray, "correlations"],
) -> Float64[np.ndarray, "pairs"]:
    """Least difference of correlations, second minus first, at which the full metrics of a pair are equal.

    Args:
        first, second: full metrics at each correlation, of which larger is better; NaN where there is none.
        own, correlation: correlations of the first and of the second, increasing.

    Returns:
        The least difference over all sparsities and correlations of the first, at least 0, [pairs]; NaN if no
        difference makes them equal.
    """
    best = np.full(len(first), np.inf)
    for i, rho in enumerate(own):
        gap = second - first[:, :, i, None]
        reached = (gap >= 0) & (correlation >= rho - 1e-9)
        at = reached.argmax(2)
        before = np.maximum(at - 1, 0)
        high, low = (np.take_along_axis(gap, x[..., None], 2)[..., 0] for x in (at, before))
        inside = (at > 0) & (low < 0) & (high > low)
        share = np.where(inside, -low / np.where(inside, high - low, 1.0), 1.0)
        found = correlation[before] + share * (correlation[at] - correlation[before]) - rho
        best = np.minimum(best, np.where(reached.any(2), np.maximum(found, 0), np.inf).min(1))
    return np.where(np.isfinite(best), best, np.nan)
