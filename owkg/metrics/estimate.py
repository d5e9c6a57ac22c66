"""From the sums over questions to a number: value, chance level, and how far it may be off."""

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from owkg.metrics.chance import Chance
from owkg.metrics.measures import Adjustment, Summary, rises
from owkg.metrics.median import student
from owkg.metrics.metric import Metric
from owkg.metrics.parts import Moments

NAN = float("nan")


class Estimate(NamedTuple):
    """A number about a table of ranks.

    NaN stands where there is no such number.

    Attributes:
        value: the metric.
        expectation, variance: of the metric under random ranking.
        standard_error: of `value`, as an estimate for all questions of which these are a sample.
        ci_low, ci_high: confidence interval of `value`.
        expectation_standard_error, variance_standard_error: of the chance level; 0 where it is exact.
    """

    value: float
    expectation: float = NAN
    variance: float = NAN
    standard_error: float = NAN
    ci_low: float = NAN
    ci_high: float = NAN
    expectation_standard_error: float = 0.0
    variance_standard_error: float = 0.0


@lru_cache(maxsize=64)
def _compiled_link(metric: Metric):
    link = metric.link or (lambda mean: mean)
    return jax.jit(link), jax.jit(jax.grad(link))


def linked(metric: Metric | None, mean):
    """The link of a metric at a mean, in float64; the mean itself where there is none."""
    if metric is None or metric.link is None:
        return mean
    with jax.enable_x64(True):
        return np.asarray(_compiled_link(metric)[0](jnp.asarray(mean, jnp.float64)))[()]


def _slope(metric: Metric, mean: float) -> float:
    with jax.enable_x64(True):
        return float(_compiled_link(metric)[1](jnp.asarray(mean, jnp.float64)))


def plain_chance(totals: Any) -> Chance:
    """Chance level of a weighted mean, from the sums of weight, value, chance and variance (or arrays)."""
    weight, _, chance, variance, _ = totals
    return Chance(chance / weight, variance / weight**2)


def _differ(best, expectation) -> Any:
    """Whether the best value is above or below chance by more than rounding."""
    return np.abs(best - expectation) > 1e-12 * np.abs(best)


def _divided(above, below) -> Any:
    """The quotient; NaN where the divisor is 0."""
    return above / np.where(below != 0, below, np.nan)


def adjusted_value(summary: Summary, value, chance: Chance, best) -> Any:
    """M, M / E, (M - E) / (B - E) or (M - E) / sqrt(V); NaN where the divisor is 0: nothing to rank.

    Args:
        summary: says which.
        value: M of the plain metric.
        chance: E and V of the plain metric.
        best: B, what a perfect ranking gets.
    """
    mean, variance = chance.expectation, chance.variance
    if summary.adjustment is Adjustment.NONE:
        return value
    if summary.adjustment is Adjustment.RATIO:
        return _divided(value, np.asarray(mean))
    if summary.adjustment is Adjustment.INDEX:
        return _divided(value - mean, np.where(_differ(best, mean), best - mean, 0.0))
    return _divided(value - mean, np.sqrt(variance)) * (1.0 if rises(summary.measure) else -1.0)


def adjusted_chance(summary: Summary, chance: Chance, best: float) -> Chance:
    """Mean and variance of the adjusted metric under random ranking."""
    mean, variance = chance.expectation, chance.variance
    if summary.adjustment is Adjustment.NONE:
        return chance
    if summary.adjustment is Adjustment.RATIO:
        return Chance(1.0, variance / mean**2)
    if summary.adjustment is Adjustment.INDEX:
        return Chance(0.0, variance / (best - mean) ** 2) if _differ(best, mean) else Chance(NAN, NAN)
    return Chance(0.0, 1.0) if variance > 0 else Chance(NAN, NAN)


def slopes(totals: Float[np.ndarray, "5"], summary: Summary | None, value: Any) -> Float[np.ndarray, "5"]:
    """How fast the number changes with the sums of weight, value, chance, variance and best.

    The chance level is a function of the questions too: a question that is left out takes its candidates
    along.

    Args:
        totals: the sums.
        summary: without a link; None: the plain mean.
        value: of the summary.
    """
    adjustment = Adjustment.NONE if summary is None else summary.adjustment
    weight, _, chance, variance, best = totals
    if adjustment is Adjustment.NONE:
        return np.array([-value, 1.0, 0.0, 0.0, 0.0]) / weight
    if adjustment is Adjustment.RATIO:
        return np.array([0.0, 1.0, -value, 0.0, 0.0]) / chance
    if adjustment is Adjustment.INDEX:
        return np.array([0.0, 1.0, value - 1.0, 0.0, -value]) / (best - chance)
    sign = (1.0 if summary is None or rises(summary.measure) else -1.0) / np.sqrt(variance)
    return np.array([0.0, sign, -sign, -value / (2 * variance), 0.0])


def _error(moments: Moments, slope: Float[np.ndarray, "5"]) -> float:
    """Standard error of a function of the sums, by linearisation; questions are the sampling units."""
    count = moments.questions
    square = slope @ moments.gram @ slope
    size = np.abs(moments.gram) + np.outer(np.abs(moments.totals), np.abs(moments.totals)) / count
    # What is left when everything cancels is rounding.
    if square <= 1e-14 * (np.abs(slope) @ size @ np.abs(slope)):
        return 0.0
    return float(np.sqrt(square * count / (count - 1)))


def averaged_estimate(
    moments: Moments, summary: Summary, chance: Chance | None, level: float | None
) -> Estimate:
    """What an averaged metric gives, its chance level, and its interval by the central limit theorem.

    Questions are independent, ranks within one are not: the standard error is the sandwich (linearisation)
    estimate over questions, the interval Student's with one degree of freedom less than questions.
    Metrics with a link have the interval of their mean mapped through it. Intervals of plain metrics stay
    between the values of the worst and the best ranking, those of an index below 1.

    Args:
        moments: over questions.
        summary: what is shown.
        chance: level of a metric with a link, held fixed; None: that of the mean.
        level: of confidence; None: no interval.
    """
    totals, count = moments.totals, moments.questions
    if not totals[0] > 0:
        return Estimate(NAN)
    metric = summary.measure if isinstance(summary.measure, Metric) else None
    mean, top, bottom = (x / totals[0] for x in (totals[1], totals[4], moments.worst))
    best = float(linked(metric, top))
    if chance is not None:
        value, error, ends = float(linked(metric, mean)), NAN, (NAN, NAN)
        if metric is not None and level is not None and count > 1:
            width = _error(moments, slopes(totals, None, mean))
            reach = student(level, count) * width
            ends = (max(mean - reach, min(top, bottom)), min(mean + reach, max(top, bottom)))
            ends = sorted(float(linked(metric, end)) for end in ends)
            error = width * abs(_slope(metric, float(mean)))
        return fixed_estimate(summary, value, best, chance, error, *ends)
    plain = plain_chance(totals)
    value = float(adjusted_value(summary, mean, plain, top))
    estimate = Estimate(value, *(float(x) for x in adjusted_chance(summary, plain, best)[:2]))
    if level is None or count < 2 or not np.isfinite(value):
        return estimate
    error = _error(moments, slopes(totals, summary, value))
    low, high = (value + sign * student(level, count) * error for sign in (-1, 1))
    if summary.adjustment is Adjustment.NONE:
        low, high = max(low, min(top, bottom)), min(high, max(top, bottom))
    elif summary.adjustment is Adjustment.INDEX:
        high = min(high, 1.0)
    return estimate._replace(standard_error=error, ci_low=float(low), ci_high=float(high))


def fixed_estimate(
    summary: Summary, value: float, best: float, chance: Chance, error: float, low: float, high: float
) -> Estimate:
    """The estimate of a summary from the plain metric's value and interval, its chance level held fixed."""
    ends = [float(adjusted_value(summary, x, chance, best)) for x in (value, low, high)]
    # The adjustments are straight lines: two points give the slope.
    slope = float(
        adjusted_value(summary, value + 1.0, chance, best) - adjusted_value(summary, value, chance, best)
    )
    shifted = adjusted_chance(summary, chance, best)
    return Estimate(
        ends[0],
        float(shifted.expectation),
        float(shifted.variance),
        abs(slope) * error,
        min(ends[1:]),
        max(ends[1:]),
        float(shifted.expectation_standard_error),
        float(shifted.variance_standard_error),
    )
