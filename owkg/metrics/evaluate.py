"""Every metric of a set of ranking tasks, under every tie rule, in one pass over the ranks."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from owkg import checks
from owkg.checks import ArgumentError
from owkg.keys import checked_key, children
from owkg.metrics import chance, median
from owkg.metrics.blocks import Block, whole_block
from owkg.metrics.chance import Chance
from owkg.metrics.estimate import (
    NAN,
    Averaged,
    Estimate,
    adjusted_value,
    averaged_estimate,
    fixed_estimate,
    linked,
    plain_chance,
    slopes,
    through_cdf,
)
from owkg.metrics.measures import Adjustment, Dispersion, Measure, Median, Metric, Weighting
from owkg.metrics.monte_carlo import DRAWS, monte_carlo_chance, weighted_median
from owkg.metrics.query_sums import (
    Moments,
    QuerySums,
    moments_by_block,
    moments_of,
    query_sums_by_ties,
    reader,
    task_weight,
)
from owkg.metrics.ties import Ties
from owkg.rank_weights.catalogue import GMR, IGMR, Power
from owkg.rank_weights.rank_weight import RankWeight
from owkg.rank_weights.tables import padded_size, rank_weights
from owkg.ranks.tasks import Tasks
from owkg.stats.bootstrap import bounds, resampled_sums
from owkg.stats.interval import Interval, intervals

ALL_TIES = tuple(Ties)

# Tasks of equal weight from which on the normal distribution of `chance.median_chance` is exact enough.
_MANY_TASKS = 512

# Candidates of one task, whose weights of ranks are all summed.
_MOST = 10**8

Estimates = dict[Ties, dict[str, Estimate]]


def _unless_equal(weight: np.ndarray | None) -> np.ndarray | None:
    return None if weight is None or (weight == weight[0]).all() else weight


def linked_chance(
    metric: RankWeight, candidates: np.ndarray, weight: np.ndarray | None, key: Any, *, draws: int = DRAWS
) -> Chance:
    """Chance level of a metric with a link: exact where `owkg.metrics.chance` has it, else drawn.

    Args:
        metric: with a link.
        candidates: of each task.
        weight: of each task, some above 0; None: equal.
        key: a seed, or a key of `jax.random.key`, for what has to be drawn.
        draws: how often.
    """
    weight = _unless_equal(weight)
    if metric in (GMR, IGMR):
        return chance.geometric_chance(candidates, weight, inverse=metric == IGMR)
    if weight is None and isinstance(metric.link, Power) and metric.link.exponent < 0:
        return chance.reciprocal_chance(metric, -metric.link.exponent, candidates)

    def statistic(ranks: np.ndarray, share: np.ndarray) -> np.ndarray:
        return linked(metric, rank_weights(metric, ranks) @ share)

    return monte_carlo_chance(key, statistic, candidates, weight, draws=draws)


def median_chance(
    candidates: np.ndarray, weight: np.ndarray | None, key: Any, *, inverse: bool, draws: int = DRAWS
) -> Chance:
    """Chance level of the median, or its inverse: drawn for few tasks, by a normal distribution for many.

    Args:
        candidates: of each task.
        weight: of each task, some above 0; None: equal.
        key: a seed, or a key of `jax.random.key`, for what has to be drawn.
        inverse: of 1 / median.
        draws: how often.
    """
    weight = _unless_equal(weight)
    # A few heavy tasks are few tasks, however many light ones there are.
    effective = len(candidates) if weight is None else weight.sum() ** 2 / np.dot(weight, weight)
    if effective > _MANY_TASKS:
        return chance.median_chance(candidates, weight, inverse=inverse)

    def statistic(ranks: np.ndarray, share: np.ndarray) -> np.ndarray:
        found = weighted_median(ranks, share)
        return 1 / found if inverse else found

    return monte_carlo_chance(key, statistic, candidates, weight, draws=draws)


class _Job(NamedTuple):
    """An averaged metric under a tie rule, to be resampled."""

    rule: Ties
    metric: Metric
    parts: QuerySums
    chance: Chance | None


def evaluate(
    tasks: Any,
    metrics: Any,
    *,
    ties: Any = ALL_TIES,
    level: Any = 0.95,
    interval: Any = Interval.ANALYTIC,
    replicates: Any = 1000,
    key: Any = None,
    num_entities: Any = None,
    draws: Any = DRAWS,
) -> Estimates:
    """Value, chance level, standard error and confidence interval of each metric under each tie rule.

    Args:
        tasks: `Tasks`, at least one, each with at most 10**8 candidates.
        metrics: one, or several of different names.
        ties: the rule or rules.
        level: of confidence, in [1e-6, 1 - 1e-6]; None: no intervals, which is faster.
        interval: mid-P limits on the effective number of queries (`owkg.stats.interval`), or the
            bootstrap over queries.
        replicates: of the bootstrap.
        key: a seed, or a key of `jax.random.key`, for the bootstrap and for chance levels that have to be
            drawn; equal keys give equal numbers. None: seed 0.
        num_entities: N of PROBE's rank transformer; each task's candidates when None.
        draws: random test sets for chance levels that have to be drawn: their variance has a relative
            standard error of about sqrt(2 / draws).

    Returns:
        Estimates by tie rule and by name. Metrics that the tasks do not have are left out: macro metrics
        of queries whose tasks differ in their number of candidates.

    Raises:
        ValueError: if a metric needs a popularity that the tasks lack, or an argument is out of range.

    Examples:
        >>> from owkg.metrics import metric, tasks
        >>> ranks = tasks([1, 4, 2], candidates=90)
        >>> found = evaluate(ranks, [metric("mrr"), metric("amri")])
        >>> round(found[Ties.REALISTIC]["mrr"].value, 4), round(found[Ties.EXACT]["amri"].value, 4)
        (0.5833, 0.97)
    """
    if not isinstance(tasks, Tasks):
        raise ArgumentError(
            "tasks", f"must be the first that owkg.metrics.tasks_of gives, got {type(tasks).__name__}."
        )
    if not len(tasks.optimistic):
        raise ArgumentError("tasks", "must be at least one, got none.")
    checks.require("candidates", tasks.candidates, tasks.candidates <= _MOST, f"at most {_MOST:,}")
    metrics = (metrics,) if isinstance(metrics, Metric) or metrics is None else tuple(metrics)
    for metric in metrics:
        if not isinstance(metric, Metric):
            raise ArgumentError("metrics", f"must be of owkg.metrics.metric, got {metric!r}.")
    ties = (ties,) if isinstance(ties, str) else ties
    rules = tuple(_member("ties", Ties, rule) for rule in ties)
    if not rules:
        raise ArgumentError("ties", "must name at least one rule, got none.")
    interval = _member("interval", Interval, interval)
    if level is not None:
        level = checks.level("level", level)
    replicates = checks.whole("replicates", replicates, 2)
    draws = checks.whole("draws", draws, 2)
    if num_entities is not None:
        num_entities = checks.whole("num_entities", num_entities, 1)
        if num_entities > _MOST:
            raise ArgumentError("num_entities", f"must be at most {_MOST:,}, got {num_entities:,}.")
    key = checked_key(0 if key is None else key)
    bootstrap_key, chance_key = children(key, 2)
    resampled = level is not None and interval is not Interval.ANALYTIC

    mapped = {metric.name for metric in metrics if metric.adjustment is Adjustment.CDF}
    # Under their own names, but z until the end.
    metrics = tuple(replace(m, adjustment=Adjustment.Z) if m.name in mapped else m for m in metrics)
    groups: dict[tuple[Measure, Weighting], list[Metric]] = {}
    for metric in metrics:
        groups.setdefault((metric.measure, metric.weighting), []).append(metric)
    # In the order of the queries where sums over each are asked for.
    whole = tasks if level is None else whole_block(tasks)
    tasks = whole.tasks if isinstance(whole, Block) else whole
    found: Estimates = {rule: {} for rule in rules}
    jobs: list[_Job] = []
    histograms: dict[Weighting, dict[Any, np.ndarray]] = {}
    averaged: dict[tuple[Measure, Weighting], tuple[dict[Ties, Moments], dict[Ties, QuerySums] | None]] = (
        _moments(whole, list(groups), rules, resampled, num_entities, histograms)
    )
    pending: list[tuple[Ties, str, Averaged]] = []
    for (measure, weighting), group in groups.items():
        if isinstance(measure, Dispersion):
            for rule in rules:
                value = Estimate(median.scatter(measure.kind, tasks, rule))
                found[rule] |= {metric.name: value for metric in group}
            continue
        if not isinstance(measure, Median) and (measure, weighting) not in averaged:
            continue
        chance_of_all = None
        if isinstance(measure, Median) or (isinstance(measure, RankWeight) and measure.link is not None):
            weight = task_weight(tasks, weighting)
            chance_of_all = (
                median_chance(tasks.candidates, weight, key, inverse=measure.inverse, draws=draws)
                if isinstance(measure, Median)
                else linked_chance(measure, tasks.candidates, weight, chance_key, draws=draws)
            )
            if isinstance(measure, Median):
                histogram = histograms.setdefault(weighting, {})
                found = _with_medians(
                    found, measure, group, tasks, rules, weight, histogram, chance_of_all, level, interval,
                    replicates if resampled else None, bootstrap_key,
                )  # fmt: skip
                continue
        moments, parts = averaged[measure, weighting]
        for rule in rules:
            for metric in group:
                made = averaged_estimate(moments[rule], metric, chance_of_all, level)
                pending.append((rule, metric.name, made))
                if parts is not None:
                    jobs.append(_Job(rule, metric, parts[rule], chance_of_all))
    ends: dict[int, tuple[float, float]] = {}
    if level is not None:
        wanted = [i for i, (_, _, made) in enumerate(pending) if made.mean is not None]
        means = [mean for _, _, made in pending if (mean := made.mean) is not None]
        ends = {i: (float(a), float(b)) for i, (a, b) in zip(wanted, intervals(means, level), strict=True)}
    for i, (rule, name, made) in enumerate(pending):
        found[rule][name] = made.finish(*ends[i]) if i in ends else made.estimate
    if resampled:
        for job, (low, high) in zip(
            jobs, _resampled_bounds(bootstrap_key, jobs, replicates, interval, level), strict=True
        ):
            estimate = found[job.rule][job.metric.name]
            # Replicates that are all alike say nothing: the interval stays that of the effective queries.
            if np.isnan(low) or high - low > 1e-9 * abs(estimate.value):
                found[job.rule][job.metric.name] = estimate._replace(ci_low=low, ci_high=high)
    for by in found.values():
        by |= {name: through_cdf(by[name]) for name in mapped if name in by}
    names = [metric.name for metric in metrics]
    return {rule: {name: by[name] for name in names if name in by} for rule, by in found.items()}


# Entries of the tables of ranks that are in memory at a time.
_TABLE_ENTRIES = 2**24


def _moments(
    whole: Block | Tasks,
    measures: list[tuple[Measure, Weighting]],
    rules: tuple[Ties, ...],
    keep: bool,
    num_entities: int | None,
    histograms: dict[Weighting, dict[Any, np.ndarray]],
) -> dict[tuple[Measure, Weighting], tuple[dict[Ties, Moments], dict[Ties, QuerySums] | None]]:
    """The moments of every averaged measure that the tasks have, and its parts where they are kept.

    Args:
        whole: all tasks; in a block, for sums over queries, else only totals are asked for.
        measures: with their weightings.
        rules: of ties.
        keep: whether the parts of each query are kept, for the bootstrap.
        num_entities: N of PROBE's rank transformer.
        histograms: how much weight lies on each rank, by weighting, counted once.
    """
    wanted = [one for one in measures if not isinstance(one[0], Median | Dispersion)]
    if keep or not isinstance(whole, Block):
        result = {}
        for measure, weighting in wanted:
            if not isinstance(measure, RankWeight) and not isinstance(whole, Block):
                whole = whole_block(whole)  # lists are sorted for all measures together
            parts = query_sums_by_ties(
                measure,
                weighting,
                whole,
                rules,
                by_query=keep,
                num_entities=num_entities,
                histograms=histograms.setdefault(weighting, {}),
            )
            if parts is not None:
                result[measure, weighting] = moments_of(parts), parts if keep else None
        return result
    together = max(1, _TABLE_ENTRIES // (3 * padded_size(int(whole.cases.candidates.max()))))
    result = {}
    for begin in range(0, len(wanted), together):
        part = wanted[begin : begin + together]
        readers = {
            one: read for one in part if (read := reader(*one, whole, rules, num_entities=num_entities))
        }
        for one, moments in zip(readers, moments_by_block(list(readers.values()), whole), strict=True):
            result[one] = {rule: moments.get(rule, moments[rules[0]]) for rule in rules}, None
    return result


def _with_medians(
    found: Estimates,
    measure: Median,
    group: list[Metric],
    tasks: Tasks,
    rules: tuple[Ties, ...],
    weight: np.ndarray | None,
    histogram: dict[Any, np.ndarray],
    level_of_chance: Chance,
    level: Any,
    interval: Interval,
    replicates: int | None,
    key: Any,
) -> Estimates:
    """`found` with the metrics of the median rank."""
    weights = median.query_weights(tasks, weight)
    total = weights.sum()
    for rule in rules if tasks.tied else rules[:1]:
        if rule not in histogram:
            histogram[rule] = median.rank_histogram(tasks, rule, weight)
        medians = None
        if replicates is not None:
            medians = median.resampled_medians(key, tasks, rule, weight, replicates)
        value, *uncertainty = _median_estimate(
            measure, tasks, rule, weight, histogram[rule], level, interval, medians
        )
        for metric in group:
            found[rule][metric.name] = (
                Estimate(NAN)  # no weight
                if np.isnan(value)
                else fixed_estimate(metric, value, 1.0, level_of_chance, *uncertainty)._replace(
                    effective_queries=float(total**2 / np.dot(weights, weights)),
                    heaviest_query=float(weights.max() / total),
                )
            )
    for rule in () if tasks.tied else rules[1:]:
        found[rule] |= {metric.name: found[rules[0]][metric.name] for metric in group}
    return found


def _member(name: str, kind: Any, value: Any) -> Any:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(member.value for member in kind)
        raise ArgumentError(name, f"must be one of {known}, got {value!r}.") from None


def _median_estimate(
    measure: Median,
    tasks: Tasks,
    rule: Ties,
    weight: np.ndarray | None,
    on_ranks: np.ndarray,
    level: Any,
    interval: Interval,
    draws: np.ndarray | None,
) -> tuple[float, float, float, float]:
    """Value, standard error and interval of the median or its inverse."""

    def shown(rank: Any) -> Any:
        return 1 / rank if measure.inverse else rank

    by_rank = median.distribution(on_ranks)
    if by_rank.rank.size == 0:
        return NAN, NAN, NAN, NAN
    value = shown(median.quantile(by_rank, 0.5))
    if level is None or tasks.num_queries < 2:
        return value, NAN, NAN, NAN
    error, ends = median.woodruff(tasks, rule, weight, by_rank, level)
    low, high = sorted(shown(end) for end in ends)
    if draws is not None:
        low, high = bounds(interval, value, shown(draws), level)
    return value, error * (value**2 if measure.inverse else 1.0), low, high


def _resampled_bounds(
    key: Any, jobs: list[_Job], replicates: int, interval: Interval, level: Any
) -> list[tuple[float, float]]:
    """Bootstrap intervals of averaged metrics; all are computed on the same replicates."""
    distinct = {id(array): array for job in jobs for array in job.parts[:-1]}
    if not distinct:
        return []
    rows = dict(zip(distinct, range(len(distinct)), strict=True))
    parts = np.stack(list(distinct.values()))
    sums = resampled_sums(key, parts, replicates)
    result = []
    for job in jobs:
        at = [rows[id(array)] for array in job.parts[:-1]]
        totals = parts[at].sum(axis=1)
        value = float(_value(job, totals))
        if not np.isfinite(value):  # no weight, or nothing to rank: no influence either
            result.append((NAN, NAN))
            continue
        moved = slopes(
            totals, None if job.chance else job.metric, totals[1] / totals[0] if job.chance else value
        )
        # Of a metric with a link: the same up to a factor, whose sign is that of a step.
        sign = np.sign(_value(job, totals * [1, 1 + 1e-6, 1, 1, 1]) - value) if job.chance else 1.0
        influence = sign * (moved @ parts[at])
        result.append(
            bounds(interval, value, _value(job, sums[:, at].T), level, influence - influence.mean())
        )
    return result


def _value(job: _Job, totals: np.ndarray) -> Any:
    """The metric's value at the sums of weight, value, chance, variance and best, or at arrays of them."""
    measure = job.metric.measure
    metric = measure if isinstance(measure, RankWeight) else None
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, best = totals[1] / totals[0], totals[4] / totals[0]
        level = job.chance or plain_chance(totals)
        return adjusted_value(job.metric, linked(metric, mean), level, linked(metric, best))
