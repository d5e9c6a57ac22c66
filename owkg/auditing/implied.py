"""Strength and full-test metric that a metric on a sparse test implies: the model of Yang et al. inverted."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64
from numpy.typing import ArrayLike
from scipy import special

from owkg import checks
from owkg.auditing.monotone import curves, interpolated
from owkg.auditing.numbers import EVEN, Unevenness, expectations, missing_numbers
from owkg.errors import ArgumentError
from owkg.openworld import conditional_strengths, feasible_correlation
from owkg.rank_weights import RankWeight, checked_metric
from owkg.rank_weights.tables import prefix_sums

# Probability of larger numbers of found missing answers, which are left out.
_LEFT_OUT = 1e-10
# Number of strengths at which means are computed, denser near 0 and 1; a monotone cubic connects them.
_STRENGTHS = 97
# Number of strengths at each end that define the line beyond it.
_END = 8
# Number of odds at which means are computed if many are needed.
_NODES = 129
# Probabilities at which means are computed, denser near 0.
_CHANCES = np.linspace(0, 1, _NODES) ** 3
# Quadrature points of the scores of positive answers, denser near the best, and their weights; then the
# number of grid points that are computed at once.
_SCORES, _SHARES = special.roots_legendre(24)
_SCORES, _SHARES = ((_SCORES + 1) / 2) ** 3, _SHARES * 1.5 * ((_SCORES + 1) / 2) ** 2
_AT_ONCE = 2**14
# A fall of means by less than this share of their range is ignored.
_FALL = 1e-3
# Which means of known answers: the two of a uniform rank, or the one of the rank behind all counted answers.
_UNIFORM, _NEXT = slice(0, 2), slice(2, 3)
# Probabilities are kept this far from 0 and 1.
_CERTAIN = 1e-12


class Answers(NamedTuple):
    """Known test answers of the queries of a metric.

    Attributes:
        counts: numbers of known test answers of a query, each once, at least 1.
        weights: weights of the queries with each number, summing to 1: their answers for micro metrics, their
            queries for macro metrics.
        num_entities: candidates of a query before its test answers are filtered: entities minus the answers
            of other splits.
        queries: number or share of the queries with each number. If given, the numbers of missing answers are
            inferred from them (`owkg.auditing.numbers`). Default: their prior is flat.
        unevenness: unevenness of the missing rates of queries; it has an effect only if `queries` is given.
    """

    counts: np.ndarray
    weights: Float64[np.ndarray, "counts"]
    num_entities: int
    queries: np.ndarray | None = None
    unevenness: Unevenness = EVEN


def missing_answers(answers: Answers, sparsity: ArrayLike) -> Any:
    """Expected missing answers of a query under a flat prior, averaged as the metric weighs queries.

    A query with s known answers has (s + 1) beta / (1 - beta) of them: the mean of a negative binomial with s
    + 1 successes. The numbers inferred from all known answers (`owkg.auditing.numbers`) are smaller. Errors
    of implied metrics are functions of the number returned here.

    Args:
        answers: known answers.
        sparsity: beta, in [0, 1).

    Examples:
        >>> round(float(missing_answers(Answers(np.array([1, 3]), np.array([0.5, 0.5]), 100), 0.5)), 12)
        3.0
    """
    sparsity = np.asarray(sparsity, float)
    known = (answers.weights * (np.asarray(answers.counts) + 1)).sum()
    return known * sparsity / (1 - sparsity)


class Implied(NamedTuple):
    """Strength and full-test metric that a value on the sparse test implies, on a grid.

    Attributes:
        strength: strength at each sparsity and correlation; NaN where no strength gives the value.
        full: full-test metric of that strength.
    """

    strength: Float64[np.ndarray, "*grid"]
    full: Float64[np.ndarray, "*grid"]


def sparse_mean(
    metric: RankWeight | str,
    answers: Answers,
    *,
    strength: ArrayLike,
    sparsity: ArrayLike,
    correlation: ArrayLike = 0.0,
) -> Any:
    """Exact mean of a metric on a sparse test with given known answers and unknown missing answers.

    For a query with s known answers and a flat prior, the number of missing answers is negative binomial (s +
    1 successes, 1 - beta). The number k of missing answers that are classified positive is negative binomial
    as well, with odds beta l1 / (1 - beta). A known answer is positive with probability l2. Its rank is then
    on 1 .. k + 1, and otherwise uniform on k + 1 .. N - s + 1.

    Without correlation the rank of a positive answer is uniform too, as in Yang et al. With a correlation,
    positive answers go missing more or less often depending on their scores, by proportional odds. The odds
    that a missing answer is above a score are the odds of a known answer times l1 (1 - l2) / (l2 (1 - l1)),
    at every score; at the score that separates the classes this gives the correlation.

    Args:
        metric: plain mean of a rank weight, or its name.
        answers: known answers.
        strength, sparsity, correlation: ell in [0, 1], beta in (0, 1), rho; they broadcast. Default
            correlation 0.

    Returns:
        Means of the broadcast shape; NaN where rho is not feasible.

    Raises:
        ValueError: if an argument is out of range.

    References:
        Yang, Lin, Zhang (NeurIPS 2022), section 4; McCullagh (JRSS B 42, 1980), "Regression models for
        ordinal data", for proportional odds.

    Examples:
        >>> one = Answers(np.array([1]), np.array([1.0]), 100)
        >>> round(float(sparse_mean("mrr", one, strength=1.0, sparsity=0.5)), 4)
        0.6931
    """
    _check(answers)
    strength = checks.real("strength", strength, 0, 1)
    sparsity = checks.real("sparsity", sparsity, 0, 1, closed=False)
    correlation = checks.real("correlation", correlation, -1, 1)
    shape = checks.common_shape(strength=strength, sparsity=sparsity, correlation=correlation)
    strength, sparsity, correlation = (np.broadcast_to(x, shape) for x in (strength, sparsity, correlation))
    l1, l2 = conditional_strengths(strength, sparsity, correlation)
    low, high = feasible_correlation(strength, sparsity)
    possible = (correlation >= low - 1e-12) & (correlation <= high + 1e-12)
    l1, l2 = np.clip(l1, 0, 1), np.clip(l2, 0, 1)
    if np.max(answers.counts) >= answers.num_entities:
        raise ArgumentError("answers", "must leave candidates that are not answers.")
    means = _of_flat if answers.queries is None else _of_fitted
    hit, miss = means(answers, checked_metric(metric), sparsity, np.where(possible, l1, 0.0), _UNIFORM)
    found, ordered = np.asarray(l2 * hit), np.flatnonzero(possible & (correlation != 0))
    for first in range(0, len(ordered), _AT_ONCE):
        at = ordered[first : first + _AT_ONCE]
        above, share = _above(l1.flat[at], l2.flat[at])
        each = means(answers, checked_metric(metric), sparsity.flat[at][:, None], above, _NEXT)
        found.flat[at] = (each[0] * share).sum(1)
    return np.where(possible, found + (1 - l2) * miss, np.nan)[()]


def _above(l1: np.ndarray, l2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P(a missing answer is above a positive known one) at points of its score, and weights of the points.

    The weights sum to l2. By proportional odds, the points are of a score midway between both kinds of
    answers.
    """
    l1, l2 = (np.clip(x, _CERTAIN, 1 - _CERTAIN)[:, None] for x in (l1, l2))
    first, second = np.sqrt(l1 / (1 - l1)), np.sqrt(l2 / (1 - l2))
    ratio, most = first / second, first * second / (1 + first * second)
    score = most * _SCORES
    # The share of known answers above the score is score / (ratio (1 - score) + score).
    share = most * _SHARES * ratio / (ratio * (1 - score) + score) ** 2
    return ratio * score / (1 - score + ratio * score), share * l2 / share.sum(1, keepdims=True)


def _check(answers: Answers) -> None:
    counts, weights = (
        checks.integer("answers", answers.counts, 1),
        checks.real("answers", answers.weights, 0, 1),
    )
    if counts.ndim != 1 or counts.shape != weights.shape or abs(weights.sum() - 1) > 1e-6:
        raise ArgumentError("answers", "must have one weight for each count, and weights that sum to 1.")
    checks.integer("answers", answers.num_entities, 2)


def _of_flat(
    answers: Answers, metric: RankWeight, sparsity: np.ndarray, chance: np.ndarray, which: slice
) -> np.ndarray:
    """Mean weights of known answers, if the number of missing answers has a flat prior.

    Each missing answer counts with probability `chance`, and k of them count. A known answer has a uniform
    rank on 1 .. k + 1, a uniform rank on k + 1 .. N - s + 1, or the rank k + 1. The means are functions of
    the odds that an answer is missing and counts. If there are many odds, splines through the means at some
    odds give them.

    Returns:
        [which, *shape]: the chosen ones of these three means, for `sparsity` and `chance` broadcast.
    """
    counts = np.asarray(answers.counts, np.int64)
    sums = prefix_sums(metric, answers.num_entities + 1)[0]
    odds = sparsity * chance / (1 - sparsity)
    each, where = np.unique(odds, return_inverse=True)
    if len(each) <= _NODES:
        found = np.array([_given(counts, answers, sums, float(x))[which] for x in each])
        return found[where.reshape(odds.shape)].transpose(-1, *range(odds.ndim))
    from scipy.interpolate import CubicSpline

    size = float((answers.weights * (counts + 1)).sum())
    nodes = np.linspace(0, np.log1p(size * each[-1]), _NODES)
    line = CubicSpline(nodes, [_given(counts, answers, sums, x)[which] for x in np.expm1(nodes) / size])
    return line(np.log1p(size * odds)).transpose(-1, *range(odds.ndim))


def _of_fitted(
    answers: Answers, metric: RankWeight, sparsity: np.ndarray, chance: np.ndarray, which: slice
) -> np.ndarray:
    """`_of_flat` for inferred numbers of missing answers.

    Negative known answers are assumed to be ranked among the same number of candidates in every query. If
    there are many probabilities, splines through the means at some of them give the means.
    """
    from scipy.interpolate import CubicSpline

    assert answers.queries is not None
    counts = np.asarray(answers.counts, np.int64)
    queries = np.asarray(answers.queries, np.float64)
    each, where = np.unique(sparsity, return_inverse=True)
    where = where.reshape(sparsity.shape)
    if sparsity.shape != chance.shape:  # several probabilities of one sparsity
        where = where[..., 0]
    told = [missing_numbers(counts, queries, float(beta), answers.unevenness) for beta in each]
    last = answers.num_entities - round(float((answers.weights * counts).sum())) + 1
    most = max(int(one.numbers[-1]) for one in told)
    # The next power of two, so that one table serves many sparsities and kinds of unevenness.
    of_number = _of_numbers(metric, answers.num_entities, last, 1 << most.bit_length())
    of_number = of_number[which]
    found, roots = np.empty((len(of_number), *chance.shape)), np.cbrt(chance)
    for i, one in enumerate(told):
        weight = answers.weights @ one.chance
        line = CubicSpline(np.cbrt(_CHANCES), (weight @ of_number[:, : len(weight)]).T)
        here = where == i
        found[:, here] = np.moveaxis(line(roots[here]), -1, 0)
    return found


@lru_cache(maxsize=32)
def _of_numbers(metric: RankWeight, num_entities: int, last: int, most: int) -> np.ndarray:
    """Means of known answers as in `_of_flat`, by number of missing answers up to `most` and by probability.

    They are cached, because an audit needs the same means for every system and every point of the range.
    """
    sums, k = prefix_sums(metric, num_entities + 1)[0], np.arange(last - 1)
    values = np.stack([sums[k + 1] / (k + 1), (sums[last] - sums[k]) / (last - k), sums[k + 1] - sums[k]])
    return expectations(values, most, _CHANCES)


def _given(counts: np.ndarray, answers: Answers, sums: np.ndarray, odds: float) -> tuple[float, ...]:
    share = odds / (1 + odds)  # P(k + 1) = share (k + s + 1) / (k + 1) P(k)
    most = 0
    if odds:
        quantile = special.nbdtrik(1 - _LEFT_OUT, counts.max() + 1, 1 - share) + 2
        most = int(min(quantile, answers.num_entities - counts.max()))
    k = np.arange(max(most, 0) + 1)
    if odds:
        factorial = special.gammaln(np.arange(len(k) + counts.max()) + 1)
        log = factorial[k + counts[:, None]] + (k * np.log(share) - factorial[k])
        pmf = np.exp(log + ((counts + 1) * np.log1p(-share) - factorial[counts])[:, None])
        pmf /= pmf.sum(1, keepdims=True)
    else:
        pmf = np.ones((len(counts), 1))
    last = answers.num_entities - counts[:, None] + 1
    hit, miss = sums[k + 1] / (k + 1), (sums[last] - sums[k]) / np.maximum(last - k, 1)
    weighted = answers.weights[:, None] * pmf
    return tuple(float((weighted * mean).sum()) for mean in (hit, miss, sums[k + 1] - sums[k]))


def implied(
    metric: RankWeight | str,
    value: ArrayLike,
    answers: Answers,
    *,
    sparsity: ArrayLike,
    correlation: ArrayLike = 0.0,
) -> Implied:
    """Strength whose exact mean on the sparse test is a value, and the full-test metric of that strength.

    On the full test nothing is missing: a positive answer has rank 1, and any other answer a uniform rank.

    Args:
        metric: plain mean of a rank weight, or its name.
        value: values of the metric on the sparse test, [*values].
        answers: known answers of the test.
        sparsity, correlation: in (0, 1) and [-1, 1]; they broadcast, [*grid]. Default correlation 0.

    Returns:
        Arrays [*values, *grid]. A value beyond the values of all strengths, as sampling may give, has the
        strength at that end. With a correlation, only strengths between which a better model scores better
        count, because the metric may fall near the first and the last feasible strength. NaN where there are
        none.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> one = Answers(np.array([1]), np.array([1.0]), 100)
        >>> found = implied("mrr", 0.59621, one, sparsity=0.5)
        >>> round(float(found.strength), 3), round(float(found.full), 3)
        (0.8, 0.81)
    """
    found = extended(metric, value, answers, sparsity=sparsity, correlation=correlation)
    strength = np.clip(found.strength, found.low, found.high)
    chance, best = full_ends(checked_metric(metric), answers)
    return Implied(strength[()], (strength * best + (1 - strength) * chance)[()])


class Extended(NamedTuple):
    """Strengths of values, extrapolated where no strength gives the value.

    Attributes:
        strength: strength of each value; beyond the last strengths along a straight line.
        low, high: strengths between which the correlation is feasible and a better model scores better.
        beyond: distance of a value from the values that strengths in this range give; 0 for a value among
            them.
    """

    strength: np.ndarray
    low: np.ndarray
    high: np.ndarray
    beyond: np.ndarray


def full_ends(metric: RankWeight, answers: Answers) -> tuple[float, float]:
    """Full-test metric of strength 0 (all ranks equally likely) and of strength 1 (each answer first)."""
    sums = prefix_sums(metric, answers.num_entities + 1)[0]
    last = answers.num_entities - np.asarray(answers.counts) + 1
    return float((answers.weights * sums[last] / last).sum()), float(sums[1])


def extended(
    metric: RankWeight | str,
    value: ArrayLike,
    answers: Answers,
    *,
    sparsity: ArrayLike,
    correlation: ArrayLike = 0.0,
) -> Extended:
    """`implied`, also for values that no strength gives.

    Returns:
        Arrays [*values, *grid], and [*grid] for `low` and `high`. NaN where the correlation leaves no
        strengths.
    """
    weight = checked_metric(metric)
    values = checks.real("value", value, -np.inf, np.inf)
    sparsity = checks.real("sparsity", sparsity, 0, 1, closed=False)
    correlation = checks.real("correlation", correlation, -1, 1)
    shape = checks.common_shape(sparsity=sparsity, correlation=correlation)
    sparsity, correlation = (np.broadcast_to(x, shape) for x in (sparsity, correlation))
    low, high = _feasible_strengths(sparsity, correlation)
    nodes = (1 - np.cos(np.linspace(0, np.pi, _STRENGTHS))) / 2
    strengths = low[..., None] + (high - low)[..., None] * nodes
    means = sparse_mean(
        weight, answers, strength=strengths, sparsity=sparsity[..., None], correlation=correlation[..., None]
    )
    chance, best = full_ends(weight, answers)
    sign = 1 if best >= chance else -1
    wanted = np.asarray(sign * values)
    used = np.isfinite(means)
    possible = (used.sum(-1) > 1) & (low < high)
    found, beyond = (np.full((values.size, possible.size), np.nan) for _ in range(2))
    ends = np.full((2, possible.size), np.nan)
    at = np.flatnonzero(possible)
    own, mean, used = (x[possible] for x in (strengths, sign * means, used))
    used = np.where((correlation != 0)[possible][:, None], _rising(mean, used), used)
    found[:, at], beyond[:, at] = _inverted(own, mean, used, wanted.reshape(-1, 1))
    ends[:, at] = np.where(used, own, np.inf).min(1), np.where(used, own, -np.inf).max(1)
    strength, beyond = (x.reshape((*values.shape, *shape)) for x in (found, beyond))
    first, last = ends.reshape((2, *shape))
    return Extended(strength, first, last, beyond)


def _feasible_strengths(sparsity: np.ndarray, correlation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and last strength for which a correlation is feasible: the inverse of `feasible_correlation`."""
    odds, square = sparsity / (1 - sparsity), correlation**2
    with np.errstate(divide="ignore"):
        first = np.where(correlation > 0, square * odds, square / odds)
        last = np.where(correlation > 0, odds / square, 1 / (square * odds))
    return np.asarray(first / (1 + first)), np.asarray(1 - 1 / (1 + last))


def _rising(
    means: Float64[np.ndarray, "curves points"], there: Bool[np.ndarray, "curves points"]
) -> Bool[np.ndarray, "curves points"]:
    """Last stretch of rising means, up to the largest; with a correlation they may fall elsewhere."""
    point = np.arange(means.shape[1])
    low, high = np.where(there, means, np.inf), np.where(there, means, -np.inf)
    top = high.argmax(1, keepdims=True)
    there = there & (point <= top)
    so_far = np.where(there, np.maximum.accumulate(high, axis=1), 0.0)
    fall = _FALL * (high.max(1) - low.min(1))[:, None]
    fallen = there & (so_far - np.where(there, means, 0.0) > fall)
    last = np.where(fallen, point, -1).max(1, keepdims=True)
    peak = np.where(point <= last, high, -np.inf).argmax(1, keepdims=True)
    begin = np.where(there & (point >= peak), means, np.inf).argmin(1, keepdims=True)
    return there & (point >= np.where(last < 0, 0, begin))


def _inverted(
    strengths: Float64[np.ndarray, "curves points"],
    means: Float64[np.ndarray, "curves points"],
    used: Bool[np.ndarray, "curves points"],
    values: Float64[np.ndarray, "values 1"],
) -> tuple[Float64[np.ndarray, "values curves"], Float64[np.ndarray, "values curves"]]:
    """Strengths of values, by monotone cubics through the rising means and by lines beyond them.

    The second result is the distance of the values from the means.
    """
    low, high = np.where(used, means, np.inf).min(1), np.where(used, means, -np.inf).max(1)
    before = np.maximum.accumulate(np.where(used, means, -np.inf), axis=1)
    apart = used.copy()
    apart[:, 1:] &= means[:, 1:] > before[:, :-1]
    line = curves(means, strengths, apart)
    rows, last = np.arange(len(means)), line.number - 1
    few = np.minimum(_END, last)
    first, x0, x1 = np.zeros_like(last), line.x[:, 0], line.x[rows, last]

    def slope(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):  # a curve of one point has no line
            return (line.y[rows, end] - line.y[rows, begin]) / (line.x[rows, end] - line.x[rows, begin])

    inside = interpolated(line, np.clip(values, x0, x1))
    below, above = np.minimum(values - x0, 0), np.maximum(values - x1, 0)
    beyond = slope(first, few) * below + slope(last - few, last) * above
    return inside + np.where(last > 0, beyond, 0.0), np.maximum(np.maximum(low - values, values - high), 0)
