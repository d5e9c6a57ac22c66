"""Estimates from sums over queries: value, chance level and confidence interval."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import special

from owkg.keys import settled
from owkg.metrics.chance import Chance
from owkg.metrics.measures import Adjustment, Metric, rises
from owkg.metrics.query_sums import QueryMoments
from owkg.rank_weights.catalogue import Exponential, Power
from owkg.rank_weights.rank_weight import RankWeight
from owkg.rank_weights.tables import on_numpy
from owkg.stats.interval import BoundedMean, student
from owkg.stats.nested import nested, seed_spread

NAN = float("nan")


class Estimate(NamedTuple):
    """Value of a metric on a rank table, with its chance level and confidence interval.

    A field without a number is NaN.

    Attributes:
        value: the metric.
        expectation, variance: mean and variance of the metric under random ranking.
        standard_error: standard error of `value` as an estimate for the population from which the queries are
            a sample.
        ci_low, ci_high: confidence interval of `value`.
        expectation_standard_error, variance_standard_error: standard errors of the chance level; 0 if it is
            exact.
        effective_queries: number of queries of equal weight that carry as much information, (sum w)^2 / sum
            w^2 (Kish 1965).
        heaviest_query: largest share of the weight that one query has.
        seeds: number of seeds that `value` is the mean over; NaN with one seed.
        deviation_over_seeds: standard deviation of the metric over seeds; NaN with one seed.
        heavy_share: share of the variance of `value` that its ten heaviest queries carry (at most a tenth of
            all queries), if they score differently from the other queries; otherwise 0. NaN without an
            interval.
    """

    value: float
    expectation: float = NAN
    variance: float = NAN
    standard_error: float = NAN
    ci_low: float = NAN
    ci_high: float = NAN
    expectation_standard_error: float = 0.0
    variance_standard_error: float = 0.0
    effective_queries: float = NAN
    heaviest_query: float = NAN
    seeds: float = NAN
    deviation_over_seeds: float = NAN
    heavy_share: float = NAN


def linked(metric: RankWeight | None, mean):
    """Link of a metric at a mean, in float64; the mean itself if the metric has no link."""
    if metric is None or metric.link is None:
        return mean
    return on_numpy(metric.link, mean)[()]


def _slope(metric: RankWeight, mean: float) -> float:
    """Derivative of the link at a mean."""
    if isinstance(metric.link, Power | Exponential):
        return metric.link.slope(float(mean))
    import jax

    with settled(x64=True):
        return float(jax.grad(metric.link or (lambda x: x))(jax.numpy.asarray(mean, float)))


def plain_chance(totals: np.ndarray) -> Chance:
    """Chance level of a weighted mean, from the sums of weight, value, chance and variance, or arrays."""
    weight, _, chance, variance, _ = totals
    return Chance(chance / weight, variance / weight**2)


def _differ(best, expectation) -> Any:
    """Whether the best value differs from chance by more than rounding."""
    return np.abs(best - expectation) > 1e-12 * np.abs(best)


def _divided(above, below) -> Any:
    """Quotient; NaN if the divisor is 0."""
    return above / np.where(below != 0, below, np.nan)


def adjusted_value(metric: Metric, value, chance: Chance, best) -> Any:
    """Adjusted metric: M, M / E, (M - E) / (B - E), z = (M - E) / sqrt(V), or Phi(z).

    The value is NaN if the divisor is 0, because there is nothing to rank. Adding 0 turns -0 into 0.

    Args:
        metric: metric whose adjustment is applied.
        value: M, value of the plain metric.
        chance: E and V of the plain metric.
        best: B, value of a perfect ranking.
    """
    mean, variance = chance.expectation, chance.variance
    if metric.adjustment is Adjustment.NONE:
        return value
    if metric.adjustment is Adjustment.RATIO:
        return _divided(value, np.asarray(mean))
    if metric.adjustment is Adjustment.INDEX:
        return _divided(value - mean, np.where(_differ(best, mean), best - mean, 0.0)) + 0.0
    z = _divided(value - mean, np.sqrt(variance)) * (1.0 if rises(metric.measure) else -1.0) + 0.0
    return special.ndtr(z) if metric.adjustment is Adjustment.CDF else z


def adjusted_chance(metric: Metric, chance: Chance, best: float) -> Chance:
    """Mean and variance of the adjusted metric under random ranking."""
    mean, variance = chance.expectation, chance.variance
    if metric.adjustment is Adjustment.NONE:
        return chance
    if metric.adjustment is Adjustment.RATIO:
        return Chance(1.0, variance / mean**2)
    if metric.adjustment is Adjustment.INDEX:
        return Chance(0.0, variance / (best - mean) ** 2) if _differ(best, mean) else Chance(NAN, NAN)
    return Chance(0.0, 1.0) if variance > 0 else Chance(NAN, NAN)


def through_cdf(z: Estimate) -> Estimate:
    """Estimate of the normal cdf of a z metric.

    Under random ranking the cdf is about uniform if z is about normal.
    """
    value, low, high = (float(special.ndtr(x)) for x in (z.value, z.ci_low, z.ci_high))
    slope = float(np.exp(-(z.value**2) / 2) / np.sqrt(2 * np.pi))
    level = (0.5, 1 / 12) if np.isfinite(z.expectation) else (NAN, NAN)
    return z._replace(
        value=value,
        expectation=level[0],
        variance=level[1],
        standard_error=slope * z.standard_error,
        ci_low=low,
        ci_high=high,
    )


def slopes(totals: Float[np.ndarray, "5"], metric: Metric | None, value: float) -> Float[np.ndarray, "5"]:
    """Derivatives of the metric with respect to the sums of weight, value, chance, variance and best.

    The chance level depends on the queries as well, because a query that is left out takes its candidates
    with it.

    Args:
        totals: sums of weight, value, chance, variance and best.
        metric: metric without a link; None: the plain mean.
        value: value of the metric.
    """
    adjustment = Adjustment.NONE if metric is None else metric.adjustment
    weight, _, chance, variance, best = totals
    if adjustment is Adjustment.NONE:
        return np.array([-value, 1.0, 0.0, 0.0, 0.0]) / weight
    if adjustment is Adjustment.RATIO:
        return np.array([0.0, 1.0, -value, 0.0, 0.0]) / chance
    if adjustment is Adjustment.INDEX:
        return np.array([0.0, 1.0, value - 1.0, 0.0, -value]) / (best - chance)
    sign = (1.0 if metric is None or rises(metric.measure) else -1.0) / np.sqrt(variance)
    return np.array([0.0, sign, -sign, -value / (2 * variance), 0.0])


def _error(moments: QueryMoments, slope: Float[np.ndarray, "5"]) -> float:
    """Standard error of a function of the sums, by linearisation with queries as sampling units."""
    count = moments.queries
    own = moments.centred(slope)
    square = own @ moments.gram @ own
    # If everything cancels, the rest is rounding, including the rounding of the parts before centring.
    rounding = 1e-14 * (np.abs(own) @ np.abs(moments.gram) @ np.abs(own))
    if square <= rounding + 1e-24 * (np.abs(slope) @ np.abs(moments.totals)) ** 2 / count:
        return 0.0
    return float(np.sqrt(square * count / (count - 1)))


class Averaged(NamedTuple):
    """Averaged metric whose interval is still to be computed.

    Attributes:
        estimate: estimate without its interval.
        mean: quantity that gets the interval: the metric, or the mean that the metric is a function of. None:
            no interval.
        finish: function that returns the estimate with its interval, given the two ends of the interval of
            `mean`.
    """

    estimate: Estimate
    mean: BoundedMean | None
    finish: Callable[[float, float], Estimate]


def averaged_estimate(
    moments: QueryMoments, metric: Metric, chance: Chance | None, level: float | None
) -> Averaged:
    """Value, chance level and standard error of an averaged metric, and the inputs of its interval.

    Queries are independent, but ranks within a query are not, so the standard error is the sandwich
    (linearisation) estimate over queries. If the metric has a link, the interval of its mean is mapped
    through the link.

    Args:
        moments: moments over queries.
        metric: metric to report.
        chance: chance level of a metric with a link, held fixed; None: the chance level of the mean.
        level: confidence level; None: no interval.
    """
    totals, count = moments.totals, moments.queries
    if not totals[0] > 0:
        return Averaged(Estimate(NAN), None, lambda low, high: Estimate(NAN))
    weights = metric.measure if isinstance(metric.measure, RankWeight) else None
    mean, top, bottom = (x / totals[0] for x in (totals[1], totals[4], moments.worst))
    best = float(linked(weights, top))

    def weighed(estimate: Estimate) -> Estimate:
        return estimate._replace(effective_queries=moments.effective, heaviest_query=moments.heaviest)

    if chance is not None:
        value = float(linked(weights, mean))
        plain = weighed(fixed_estimate(metric, value, best, chance, NAN, NAN, NAN))
        if weights is None or level is None or count < 2:
            return Averaged(plain, None, lambda low, high: plain)
        slope = slopes(totals, None, mean)
        width = _error(moments, slope)
        share = moments.heavy_share(slope) if width else 0.0
        error = width * abs(_slope(weights, float(mean)))

        def through_link(low: float, high: float) -> Estimate:
            ends = sorted(float(linked(weights, end)) for end in (low, high))
            found = fixed_estimate(metric, value, best, chance, error, *ends)
            return weighed(found)._replace(heavy_share=share)

        bounded = BoundedMean(float(mean), width, bottom, top, moments.effective, bool(top > bottom))
        return Averaged(through_link(NAN, NAN), bounded, through_link)
    plain = plain_chance(totals)
    value = float(adjusted_value(metric, mean, plain, top))
    estimate = weighed(Estimate(value, *(float(x) for x in adjusted_chance(metric, plain, best)[:2])))
    if level is None or count < 2 or not np.isfinite(value):
        return Averaged(estimate, None, lambda low, high: estimate)
    slope = slopes(totals, metric, value)
    error = _error(moments, slope)
    share = moments.heavy_share(slope) if error else 0.0
    estimate = estimate._replace(standard_error=error, heavy_share=share)
    lowest, highest = (float(adjusted_value(metric, x, plain, top)) for x in (bottom, top))
    bounded = BoundedMean(value, error, lowest, highest, moments.effective, rises(metric.measure))

    def finished(low: float, high: float) -> Estimate:
        if metric.adjustment is Adjustment.Z and low < high:
            # z grows with the number of tasks: with more of them even its best value is larger.
            reach = float(student(level, moments.effective)) * error
            low, high = min(low, value - reach), max(high, value + reach)
        return estimate._replace(ci_low=low, ci_high=high)

    return Averaged(estimate, bounded, finished)


class OverSeeds(NamedTuple):
    """Metric under several seeds, and the standard error of its mean over seeds.

    Attributes:
        own: estimate under each seed.
        error: standard error of the mean over seeds, due to queries and seeds.
        of_queries: standard error of the mean over seeds, due to queries alone.
        freedom: degrees of freedom of `error`.
    """

    own: Sequence[Estimate]
    error: float
    of_queries: float
    freedom: float

    @property
    def extra(self) -> float:
        """Variance that the seeds add."""
        return max(self.error**2 - self.of_queries**2, 0.0)

    def finished(self, pooled: Estimate, low: float, high: float) -> Estimate:
        """Mean over seeds, with an interval."""
        values = np.array([one.value for one in self.own])
        return self.own[0]._replace(
            value=float(values.mean()),
            standard_error=self.error,
            ci_low=low,
            ci_high=high,
            effective_queries=pooled.effective_queries,
            heaviest_query=pooled.heaviest_query,
            seeds=len(values),
            deviation_over_seeds=float(values.std(ddof=1)),
        )


def estimate_over_seeds(pooled: Estimate, own: Sequence[Estimate], scale: float) -> OverSeeds:
    """Mean of a metric over seeds, with its standard error from `owkg.stats.nested`.

    The variance of one seed's metric over queries is the variance of the mean over seeds plus the variance of
    the interaction of seeds and queries. The difference gives the latter, so the scores of single queries are
    not needed.

    Args:
        pooled: estimate from the tasks of all seeds together, whose variance is over queries.
        own: estimate under each seed.
        scale: divisor that turns the error of `pooled` into the error of the mean over seeds.
    """
    seeds, error = len(own), pooled.standard_error / scale
    each = np.mean([one.standard_error**2 for one in own])
    shared = max(float(each - error**2) * seeds / (seeds - 1), 0.0)
    spread = seed_spread(np.array([one.value for one in own]), shared)
    freedom = max(pooled.effective_queries - 1, 0.5)
    variance, freedom = nested(error**2, freedom, *spread)
    return OverSeeds(own, float(np.sqrt(variance)), error, float(freedom))


def averaged_over_seeds(
    made: Averaged, own: Sequence[Estimate], metric: Metric, level: float | None
) -> Averaged:
    """Mean over seeds of an averaged metric; otherwise as `averaged_estimate`.

    Args:
        made: averaged metric from the tasks of all seeds together.
        own: estimate under each seed.
        metric: metric to report.
        level: confidence level; None: no interval.
    """
    # z grows with the root of the number of tasks.
    scale = float(np.sqrt(len(own))) if metric.adjustment is Adjustment.Z else 1.0
    found = estimate_over_seeds(made.estimate, own, scale)
    plain = found.finished(made.estimate, NAN, NAN)
    mean = made.mean
    if mean is None or not np.isfinite(found.error):
        return Averaged(plain, None, lambda low, high: plain)
    slope = made.estimate.standard_error / mean.error if mean.error > 0 else 1.0
    error = float(np.hypot(mean.error, scale * np.sqrt(found.extra) / (slope or 1.0)))

    def finish(low: float, high: float) -> Estimate:
        pooled = made.finish(low, high)
        ends = [plain.value + (end - pooled.value) / scale for end in (pooled.ci_low, pooled.ci_high)]
        if metric.adjustment is Adjustment.Z and level is not None:
            reach = float(student(level, found.freedom + 1)) * found.error
            ends = [min(ends[0], plain.value - reach), max(ends[1], plain.value + reach)]
        return found.finished(pooled, *ends)

    return Averaged(plain, mean._replace(error=error, freedom=found.freedom), finish)


def median_over_seeds(
    pooled: Estimate, own: Sequence[Estimate], level: float | None, limits: tuple[float, float]
) -> Estimate:
    """Mean over seeds of a median, whose interval is not symmetrical; otherwise as `averaged_over_seeds`.

    Args:
        pooled: estimate from the tasks of all seeds together.
        own: estimate under each seed.
        level: confidence level; None: no interval.
        limits: lowest and highest value that an end of the interval can have.
    """
    found = estimate_over_seeds(pooled, own, 1.0)
    if level is None or not np.isfinite(found.error):
        return found.finished(pooled, NAN, NAN)
    t = float(student(level, found.freedom + 1))
    wider = t / float(student(level, pooled.effective_queries))
    value = float(np.mean([one.value for one in own]))
    below, above = (
        float(np.hypot(wider * max(distance, 0.0), t * np.sqrt(found.extra)))
        for distance in (value - pooled.ci_low, pooled.ci_high - value)
    )
    return found.finished(pooled, max(value - below, limits[0]), min(value + above, limits[1]))


def fixed_estimate(
    metric: Metric, value: float, best: float, chance: Chance, error: float, low: float, high: float
) -> Estimate:
    """Estimate of a metric from the plain metric's value and interval, with the chance level held fixed."""
    ends = [float(adjusted_value(metric, x, chance, best)) for x in (value, low, high)]
    # The adjustments are linear: two points give the slope. Points close together would leave few digits.
    step = max(1.0, abs(value), abs(best - float(chance.expectation)))
    far = float(adjusted_value(metric, value + step, chance, best))
    slope = (far - ends[0]) / step
    shifted = adjusted_chance(metric, chance, best)
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
