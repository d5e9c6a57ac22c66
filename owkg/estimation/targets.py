"""Metrics of systems and of pairs of systems, from drawn and completely judged queries."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from owkg.estimation.candidates import few_limits
from owkg.estimation.measures import Measure, bounds, values
from owkg.estimation.population import Population
from owkg.estimation.prefixes import cut_variance, of_prefixes
from owkg.estimation.regression import FEW_CHANGES, Fitted, Sample, fitted, most_changed, t_quantile, wilson
from owkg.estimation.spread import prefix_spread, spread

Estimates = Float[np.ndarray, "targets"]
_SAME = 1e-12  # largest difference between equal values
_SAME_VALUE = 1e-8  # largest difference between equal rounded values
_FEW_FAILURES = 10  # fewest lists without a relevant answer for limits without gamma ones


class Limits(NamedTuple):
    """Estimates of one metric: for each system, then for each pair of systems.

    Attributes:
        value, low, high: the estimates and the limits of their intervals.
        method: method of each interval: wilson, t, exact, gamma, betting or bounds.
        r: correlation between values and their prediction.
        least, most: bounds that hold whatever the unknown labels are.
        variance, freedom: variance and degrees of freedom of the estimates.
    """

    value: Estimates
    low: Estimates
    high: Estimates
    method: list[str]
    r: Estimates
    least: Estimates
    most: Estimates
    variance: Estimates
    freedom: Estimates


def contrasts(systems: int, *, pairs: bool) -> Float[np.ndarray, "targets systems"]:
    """Matrix from values of systems to targets: each system, then first minus second of each pair."""
    each = np.eye(systems)
    if not pairs or systems < 2:
        return each
    return np.concatenate([each, [each[i] - each[j] for i, j in combinations(range(systems), 2)]])


class Prepared(NamedTuple):
    """Quantities of a metric that depend only on the population, whichever queries are drawn.

    Attributes:
        of: the metric.
        x: covariates of all queries minus their means, [covariates, systems, queries].
        before: values under the labels known before the draw.
        low, high: smallest and largest values that the unknown labels allow.
        floor: covariances of the values between systems under the proxy, averaged over the queries.
        answers, every: number of relevant answers of each query, without and with all unknown candidates.
        is_open: whether each query has an unknown candidate.
    """

    of: Measure
    x: Float[np.ndarray, "covariates systems queries"]
    before: Float[np.ndarray, "systems queries"]
    low: Float[np.ndarray, "systems queries"]
    high: Float[np.ndarray, "systems queries"]
    floor: Float[np.ndarray, "systems systems"]
    answers: Float[np.ndarray, "queries"]
    every: Float[np.ndarray, "queries"]
    is_open: Bool[np.ndarray, "queries"]


def prepared(
    of: Measure,
    people: Population,
    proxies: Sequence[Float[np.ndarray, "candidates"]],
    *,
    own: bool = False,
    reached: Float[np.ndarray, "depth"] | None = None,
) -> Prepared:
    """Quantities of a metric that depend only on the population, computed once for all samples.

    Args:
        of: the metric.
        people: the population, with the labels that were known before the draw.
        proxies: probabilities of the candidates. Each vector gives one covariate, and the first one also
            gives the floor of the variance.
        own: whether the values under known answers only are one more covariate. Default False.
        reached: pi_r, if lists are judged to random depths. Default None: whole queries are judged.
    """
    known = (people.label == 1).astype(float)
    low, high = bounds(of, people)
    covariates = [_covariate(of, people, one) for one in [*proxies, *([known] if own else [])]]
    systems, queries = low.shape
    floor = np.zeros((systems, systems))
    if proxies:
        first = proxies[0]
        floor = spread(of, people, first) if reached is None else prefix_spread(of, people, first, reached)[0]
    return Prepared(
        of,
        np.stack(covariates) if covariates else np.zeros((0, systems, queries)),
        values(of, people, known),
        low,
        high,
        floor,
        people.relevant(known),
        people.relevant((people.label != 0).astype(float)),
        np.bincount(people.query[people.unknown], minlength=queries) > 0,
    )


Folds = tuple[Sequence[Float[np.ndarray, "candidates"]], Int[np.ndarray, "n"]]


class _Values(NamedTuple):
    """Means of the targets, and the change of the values of each system by judging."""

    fit: Fitted
    change: Float[np.ndarray, "systems n"]


def truths(
    labels: Int[np.ndarray, "candidates"] | Float[np.ndarray, "candidates"],
) -> Float[np.ndarray, "candidates"]:
    """Labels as metrics take them: unknown integer labels become 0, floats (corrected labels) stay."""
    real = np.issubdtype(labels.dtype, np.floating)
    return np.asarray(labels if real else np.maximum(labels, 0), np.float64)


def means(
    ready: Prepared,
    people: Population,
    labels: Int[np.ndarray, "candidates"] | Float[np.ndarray, "candidates"],
    sample: Sample,
    *,
    folds: Folds | None = None,
    pairs: bool = True,
    of_these: bool = True,
) -> Fitted:
    """Means of a metric for all systems and pairs from completely judged queries, without limits.

    Args: as `of_queries`.
    """
    return _values(ready, people, labels, sample, folds, pairs=pairs, of_these=of_these).fit


def of_queries(
    ready: Prepared,
    people: Population,
    labels: Int[np.ndarray, "candidates"] | Float[np.ndarray, "candidates"],
    sample: Sample,
    *,
    folds: Folds | None = None,
    level: float = 0.95,
    pairs: bool = True,
    of_these: bool = True,
    noise: Float[np.ndarray, "targets"] | None = None,
) -> Limits:
    """Limits of a metric for all systems and pairs, from completely judged queries.

    Args:
        ready: result of `prepared`.
        people: the population, with the labels that were known before the draw.
        labels: labels of the candidates of drawn queries; labels of other candidates are ignored. Floats are
            used unchanged: corrected labels may be below 0 or above 1.
        sample: the drawn queries.
        folds: probabilities refitted to judged queries, one array per fold, without the queries of the fold;
            and the fold of each drawn query. They replace the first proxy as a covariate. Default None.
        level: confidence level of the intervals. Default 0.95.
        pairs: whether pairs are estimated. Default True.
        of_these: True (default): the values are for these queries; False: for queries like these.
        noise: for corrected labels, the variance that estimated error rates add to each target, 0 for known
            rates. Default None: labels have no errors.
    """
    if noise is not None:
        said = {"pairs": pairs, "of_these": of_these}
        return _corrected_limits(ready, people, labels, sample, folds, level, noise, **said)
    fit, change = _values(ready, people, labels, sample, folds, pairs=pairs, of_these=of_these)
    systems = len(people.models)
    to = contrasts(systems, pairs=pairs)
    least, most = population_bounds(to, ready)
    if of_these and len(sample.rows) == len(ready.is_open):
        return all_known(fit, least, most)
    limits = interval_limits(fit, systems, least, most, level, len(sample.rows))
    limits = with_exact(limits, to, np.abs(to @ change) > _SAME, ready, sample, level)
    return with_few_others(limits, to, to @ (change + ready.before[:, sample.rows]), ready, sample, level)


def _values(
    ready: Prepared,
    people: Population,
    labels: Int[np.ndarray, "candidates"] | Float[np.ndarray, "candidates"],
    sample: Sample,
    folds: Folds | None,
    *,
    pairs: bool,
    of_these: bool,
    finite: bool = True,
) -> _Values:
    rows, of = sample.rows, ready.of
    to = contrasts(len(people.models), pairs=pairs)
    true = truths(labels)
    relevant = people.relevant(true)
    found = values(of, people, true, rows, relevant)
    y, ratio, covered = centred(ready, found, relevant[rows], sample)
    x = ready.x[:, :, rows]
    if folds is not None:
        x = x.copy()
        x[0] = _of_folds(of, people, folds, sample)
    how = {"of_these": of_these, "finite": finite}
    fit = fitted_targets(ready, to @ y, np.einsum("ts,ksn->ktn", to, x), sample, to, **how)
    fit = fit._replace(mean=fit.mean + to @ ratio, freedom=np.minimum(fit.freedom, covered))
    return _Values(fit, found - ready.before[:, rows])


def centred(
    ready: Prepared, found: Float[np.ndarray, "systems n"], relevant: Float[np.ndarray, "n"], sample: Sample
) -> tuple[Float[np.ndarray, "systems n"], Float[np.ndarray, "systems"], float]:
    """Values whose means are estimated, the constants to add, and a limit of the degrees of freedom.

    For most metrics these are the values themselves. For a micro metric they are the linearised values of the
    ratio, and the degrees of freedom are limited by Kish's effective number of queries.

    Args:
        ready: result of `prepared`.
        found: values of the drawn queries.
        relevant: number of relevant answers of each drawn query.
        sample: the drawn queries and their strata.
    """
    if not ready.of.micro:
        return found, np.zeros(len(found)), np.inf
    weight = sample.weights
    mean = float(relevant @ weight)
    ratio = found @ weight / mean
    covered = (weight * relevant).sum() ** 2 / ((weight * relevant) ** 2).sum() - len(sample.sizes)
    return (found - ratio[:, None] * relevant) / mean, ratio, max(float(covered), 1.0)


def floor_of(ready: Prepared, to: Float[np.ndarray, "targets systems"]) -> Estimates:
    """Variance of each target under the proxy."""
    return np.maximum(np.einsum("ts,su,tu->t", to, ready.floor, to), 0)


def fitted_targets(
    ready: Prepared,
    y: Float[np.ndarray, "targets n"],
    x: Float[np.ndarray, "covariates targets n"],
    sample: Sample,
    to: Float[np.ndarray, "targets systems"],
    *,
    of_these: bool,
    finite: bool = True,
) -> Fitted:
    """Means of targets over the population, with variance 0 once every query is drawn."""
    fit = fitted(y, x, sample, floor_of(ready, to), of_these=of_these, finite=finite)
    if of_these and finite and len(sample.rows) == len(ready.is_open):
        return fit._replace(mean=y @ sample.weights, variance=np.zeros(len(to)))
    return fit


def _corrected_limits(
    ready: Prepared,
    people: Population,
    labels: Int[np.ndarray, "candidates"] | Float[np.ndarray, "candidates"],
    sample: Sample,
    folds: Folds | None,
    level: float,
    noise: np.ndarray,
    *,
    pairs: bool,
    of_these: bool,
) -> Limits:
    """Limits from corrected labels: Wilson's for systems and Student's for pairs.

    Corrected values scatter near 0 and 1 as much as elsewhere. If Student's limits pass the bounds of what is
    possible, the interval is widened to include them, centred at the nearest possible value. Errors of labels
    do not shrink as the sample nears the population, so there is no correction for a finite population.
    """
    systems, n = len(people.models), len(sample.rows)
    fit, _ = _values(ready, people, labels, sample, folds, pairs=pairs, of_these=of_these, finite=False)
    fit = fit._replace(variance=fit.variance + noise)
    least, most = population_bounds(contrasts(systems, pairs=pairs), ready)
    half = t_quantile(fit.freedom, level) * np.sqrt(fit.variance)
    beyond = (fit.mean - half < least) | (fit.mean + half > most)
    fit = fit._replace(mean=np.clip(fit.mean, least, most))
    found, plain = (interval_limits(fit, wilsons, least, most, level, n) for wilsons in (systems, 0))
    low, high = np.minimum(found.low, plain.low), np.maximum(found.high, plain.high)
    return found._replace(low=np.where(beyond, low, found.low), high=np.where(beyond, high, found.high))


def _covariate(of: Measure, people: Population, probabilities: np.ndarray) -> np.ndarray:
    """Expected values of the queries minus their mean, [systems, queries]."""
    total = people.relevant(probabilities)
    x = values(of, people, probabilities, None, total)
    if of.micro:
        x = (x - (x.sum(1) / total.sum())[:, None] * total) / total.mean()
    return x - x.mean(1, keepdims=True)


def _of_folds(of: Measure, people: Population, folds: tuple, sample: Sample) -> np.ndarray:
    tables, fold = folds
    each = np.stack([_covariate(of, people, one)[:, sample.rows] for one in tables])
    return np.take_along_axis(each, np.asarray(fold)[None, None, :], axis=0)[0]


def population_bounds(to: np.ndarray, ready: Prepared) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest values of the targets over the population."""
    low, high = ready.low, ready.high
    if ready.of.micro:
        is_open = high.sum(1) > low.sum(1)
        bottom = np.where(is_open, 0.0, low.sum(1) / max(ready.every.sum(), 1.0))
        top = np.where(is_open, 1.0, low.sum(1) / max(ready.answers.sum(), 1.0))
    else:
        bottom, top = low.mean(1), high.mean(1)
    plus, minus = np.maximum(to, 0), np.maximum(-to, 0)
    return plus @ bottom - minus @ top, plus @ top - minus @ bottom


def interval_limits(
    fit: Fitted, systems: int, least: np.ndarray, most: np.ndarray, level: float, queries: int
) -> Limits:
    """Wilson's limits for systems and Student's for pairs, clipped to what is possible."""
    half = t_quantile(fit.freedom, level) * np.sqrt(fit.variance)
    low, high = fit.mean - half, fit.mean + half
    bottom, top = wilson(fit, level, queries)
    single = np.arange(len(fit.mean)) < systems
    low, high = np.where(single, bottom, low), np.where(single, top, high)
    value = np.clip(fit.mean, least, most)
    low, high = np.clip(np.minimum(low, value), least, most), np.clip(np.maximum(high, value), least, most)
    method = ["wilson"] * systems + ["t"] * (len(fit.mean) - systems)
    return Limits(value, low, high, method, fit.r, least, most, fit.variance, fit.freedom)


def all_known(fit: Fitted, least: np.ndarray, most: np.ndarray) -> Limits:
    """The values themselves as limits, once every query is judged."""
    method = ["exact"] * len(fit.mean)
    return Limits(fit.mean, fit.mean, fit.mean, method, fit.r, least, most, fit.variance, fit.freedom)


def with_exact(
    limits: Limits,
    to: Float[np.ndarray, "targets systems"],
    moved: Bool[np.ndarray, "targets n"],
    ready: Prepared,
    sample: Sample,
    level: float,
) -> Limits:
    """The limits, widened by exact ones if judging changed fewer than `FEW_CHANGES` drawn queries.

    A query counts as changed if judging changed its value or may have changed it. The number of changed
    queries in the population has an exact limit; the worst case is that the changed queries are the ones
    whose values can change most.

    Args:
        limits: limits of systems and pairs.
        to: rows of `contrasts`.
        moved: whether each drawn query counts as changed, [targets, n].
        ready: result of `prepared`.
        sample: the drawn queries.
        level: confidence level of the intervals.
    """
    plus, minus = np.maximum(to, 0), np.maximum(-to, 0)
    count = moved.sum(1)
    lows, highs, method = limits.low.copy(), limits.high.copy(), list(limits.method)
    rise, fall = ready.high - ready.before, ready.before - ready.low
    for i in np.flatnonzero((count < FEW_CHANGES) & (limits.most > limits.least)):
        at_most = most_moved(moved[i], ready.is_open, sample, level)

        def room(values: np.ndarray, at_most: int = at_most) -> float:
            return largest_sum(values[ready.is_open], at_most)

        if ready.of.micro:
            bottoms, tops = np.array([_worst_ratio(ready, s, room) for s in range(len(rise))]).T
            bottom, top = plus[i] @ bottoms - minus[i] @ tops, plus[i] @ tops - minus[i] @ bottoms
        else:
            base = float((to[i] @ ready.before).mean())
            bottom = base - room(plus[i] @ fall + minus[i] @ rise) / len(ready.is_open)
            top = base + room(plus[i] @ rise + minus[i] @ fall) / len(ready.is_open)
        lows[i] = max(min(lows[i], bottom), limits.least[i])
        highs[i] = min(max(highs[i], top), limits.most[i])
        method[i] = "exact"
    return limits._replace(low=lows, high=highs, method=method)


def with_few_others(
    limits: Limits,
    to: Float[np.ndarray, "targets systems"],
    y: Float[np.ndarray, "targets n"],
    ready: Prepared,
    sample: Sample,
    level: float,
) -> Limits:
    """The limits, widened by exact ones if nearly all open drawn queries have the same value.

    A mean that depends on few queries is not normally distributed, such as Success near 1 or a difference
    near 0. If fewer than `FEW_CHANGES` drawn queries differ from the most common value, the number of such
    queries in the population has an exact limit; the worst case is that they are the queries whose values can
    differ most.

    Args:
        limits: limits of systems and pairs. Limits of a micro metric stay unchanged.
        to: rows of `contrasts`.
        y: values of the drawn queries.
        ready: result of `prepared`.
        sample: the drawn queries.
        level: confidence level of the intervals.
    """
    drawn = ready.is_open[sample.rows]
    if ready.of.micro or not drawn.any():
        return limits
    lows, highs, method = limits.low.copy(), limits.high.copy(), list(limits.method)
    plus, minus = np.maximum(to, 0), np.maximum(-to, 0)
    size = len(ready.is_open)
    for i in np.flatnonzero(limits.most > limits.least):
        values, counts = np.unique(np.round(y[i, drawn], 9), return_counts=True)
        if drawn.sum() - counts.max() >= FEW_CHANGES:
            continue
        common = values[counts.argmax()]
        differs = drawn & (np.abs(y[i] - common) > _SAME_VALUE)
        at_most = most_moved(differs, ready.is_open, sample, level)
        low, high = (end[ready.is_open] for end in _room(plus[i], minus[i], ready))
        middle = np.clip(common, low, high)
        base = to[i] @ ready.before[:, ~ready.is_open].sum(1) + middle.sum()
        bottom = (base - largest_sum(middle - low, at_most)) / size
        top = (base + largest_sum(high - middle, at_most)) / size
        lows[i] = max(min(lows[i], bottom), limits.least[i])
        highs[i] = min(max(highs[i], top), limits.most[i])
        method[i] = "exact"
    return limits._replace(low=lows, high=highs, method=method)


def _room(
    plus: Float[np.ndarray, "systems"], minus: Float[np.ndarray, "systems"], ready: Prepared
) -> tuple[Float[np.ndarray, "queries"], Float[np.ndarray, "queries"]]:
    """Smallest and largest value of a target for each query."""
    return plus @ ready.low - minus @ ready.high, plus @ ready.high - minus @ ready.low


def _worst_ratio(ready: Prepared, s: int, room: Callable[[np.ndarray], float]) -> tuple[float, float]:
    """Limits of a micro metric of a system if few queries may have changed."""
    total, known = ready.before[s].sum(), max(ready.answers.sum(), 1.0)
    least = max(total - room(ready.before[s] - ready.low[s]), 0.0) / (
        known + room(ready.every - ready.answers)
    )
    return least, min((total + room(ready.high[s] - ready.before[s])) / known, 1.0)


def most_moved(moved: np.ndarray, is_open: np.ndarray, sample: Sample, level: float) -> int:
    """Upper limit of the number of changed queries: sum of the limits of the strata, at a shared level."""
    own = 1 - (1 - level) / len(sample.sizes)
    total = 0
    for h, size in enumerate(sample.sizes):
        here = sample.stratum == h
        drawn = int(is_open[sample.rows[here]].sum()) if len(sample.sizes) == 1 else int(here.sum())
        whole = int(is_open.sum()) if len(sample.sizes) == 1 else int(size)
        total += most_changed(int(moved[here].sum()), drawn, whole, own)
    return min(total, int(is_open.sum()))


def largest_sum(values: np.ndarray, count: int) -> float:
    """Sum of the `count` largest values."""
    if count >= len(values):
        return float(values.sum())
    return float(np.partition(values, len(values) - count)[len(values) - count :].sum()) if count > 0 else 0.0


def of_prefix_queries(
    ready: Prepared,
    people: Population,
    labels: Shaped[np.ndarray, "candidates"],
    proxy: Float[np.ndarray, "candidates"],
    sample: Sample,
    deep: Int[np.ndarray, "n"],
    reached: Float[np.ndarray, "depth"],
    *,
    level: float = 0.95,
    pairs: bool = True,
    of_these: bool = True,
) -> Limits:
    """Limits of a metric of the first relevant answer for all systems and pairs, from randomised prefixes.

    Args:
        ready: result of `prepared`.
        people: the population, with the labels that were known before the draw.
        labels: labels of the candidates of drawn prefixes; labels of other candidates are ignored.
        proxy: probability of each candidate.
        sample: the drawn queries.
        deep: depth to which each drawn query may be judged.
        reached: pi_r.
        level: confidence level of the intervals. Default 0.95.
        pairs: whether pairs are estimated. Default True.
        of_these: True (default): the values are for these queries; False: for queries like these.
    """
    systems = len(people.models)
    to = contrasts(systems, pairs=pairs)
    y = of_prefixes(ready.of, people, labels, proxy, sample.rows, deep, reached)
    x = ready.x[:, :, sample.rows]
    x = np.einsum("ts,ksn->ktn", to, x)
    fit = fitted(to @ y, x, sample, floor_of(ready, to), of_these=of_these)
    # The value of a query is itself an estimate if its prefix was cut. The finite population correction holds
    # for the values, not for their estimates.
    cut = cut_variance(ready.of, people, labels, proxy, sample.rows, deep, reached, to) @ sample.weights
    fit = fit._replace(variance=fit.variance + cut / len(people.queries) * of_these)
    least, most = population_bounds(to, ready)
    limits = interval_limits(fit, systems, least, most, level, len(sample.rows))
    assert ready.of.first is not None
    weights = ready.of.first(people.depth)
    if set(weights.tolist()) - {0.0, 1.0}:
        return limits
    last = int(weights.sum())
    seen = np.append(np.maximum(labels, 0), 0.0)[people.slot[:, sample.rows, :last]]
    failed = (seen.max(-1) == 0) & (deep >= last)
    chance = reached[last - 1]
    return _with_failures(limits, to, failed, sample.weights / chance, level, cut=bool(chance < 1))


def _with_failures(
    limits: Limits,
    to: np.ndarray,
    failed: Bool[np.ndarray, "systems n"],
    weight: np.ndarray,
    level: float,
    *,
    cut: bool,
) -> Limits:
    """The limits of Success, widened by gamma limits of the share of failures if few are seen.

    A failure is seen only if a list is judged to its end, and it counts 1 / (pi n / N) of N.
    """
    ends = np.array([few_limits(one.astype(float), weight, level) for one in failed])
    low, high = np.maximum(1 - ends[:, 1], 0), np.minimum(1 - ends[:, 0], 1)
    few = failed.sum(1) < (_FEW_FAILURES if cut else FEW_CHANGES)
    plus, minus = np.maximum(to, 0), np.maximum(-to, 0)
    joined = (np.abs(to) @ few) > 0
    bottom = np.where(joined, np.minimum(limits.low, plus @ low - minus @ high), limits.low)
    top = np.where(joined, np.maximum(limits.high, plus @ high - minus @ low), limits.high)
    method = ["gamma" if one else name for one, name in zip(joined, limits.method, strict=True)]
    return limits._replace(
        low=np.maximum(bottom, limits.least), high=np.minimum(top, limits.most), method=method
    )
