"""Every metric of a set of ranking tasks, under every tie rule, in one pass over the ranks."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.keys import Seed, checked_key, children
from owkg.metrics import chance, median
from owkg.metrics.chance import Chance, Shapes
from owkg.metrics.estimate import (
    NAN,
    Averaged,
    Estimate,
    adjusted_value,
    averaged_estimate,
    averaged_over_seeds,
    estimate_over_seeds,
    fixed_estimate,
    linked,
    median_over_seeds,
    plain_chance,
    slopes,
    through_cdf,
)
from owkg.metrics.gathered import Averages, Gathered, InMemory
from owkg.metrics.measures import Adjustment, Dispersion, Median, Metric, Spread, Weighting
from owkg.metrics.monte_carlo import DRAWS, Statistic, monte_carlo_chance, weighted_median
from owkg.metrics.query_sums import QuerySums
from owkg.metrics.ties import Ties
from owkg.rank_weights.catalogue import GMR, IGMR, Power
from owkg.rank_weights.rank_weight import RankWeight
from owkg.rank_weights.tables import rank_weights
from owkg.ranks.tasks import MOST_CANDIDATES, Tasks, part_of, weighed
from owkg.stats.bootstrap import bounds, checked_replicates, resampled_sums
from owkg.stats.interval import IntervalMethod, intervals

ALL_TIES = tuple(Ties)

# Number of tasks of equal weight above which `chance.median_chance` is exact enough.
_MANY_TASKS = 512

# Largest number of tasks in files for which a chance level is drawn.
MOST_DRAWN = 2**20
_UNKNOWN = Chance(NAN, NAN, NAN, NAN)

Estimates = dict[Ties, dict[str, Estimate]]


def linked_chance(metric: RankWeight, shapes: Shapes | None, key: Seed, *, draws: int = DRAWS) -> Chance:
    """Chance level of a metric with a link: exact if `owkg.metrics.chance` can compute it, otherwise drawn.

    The level is NaN if it would have to be drawn for more than `MOST_DRAWN` tasks whose ranks are in files.

    Args:
        metric: metric with a link.
        shapes: candidates and weights of the tasks, at least one of weight above 0; None: they were not kept.
        key: seed, or key of `jax.random.key`, for random draws.
        draws: number of draws.
    """
    if shapes is None:
        return _UNKNOWN
    shapes = shapes.unless_equal()
    if metric in (GMR, IGMR):
        return chance.geometric_chance(shapes, inverse=metric == IGMR)
    if shapes.weight is None and isinstance(metric.link, Power) and metric.link.exponent < 0:
        return chance.reciprocal_chance(metric, -metric.link.exponent, shapes)

    def statistic(ranks: np.ndarray, share: np.ndarray) -> np.ndarray:
        return linked(metric, rank_weights(metric, ranks) @ share)

    return _drawn_chance(key, statistic, shapes, draws)


def _drawn_chance(key: Seed, statistic: Statistic, shapes: Shapes, draws: int) -> Chance:
    if shapes.many is not None and shapes.tasks > MOST_DRAWN:
        return _UNKNOWN
    return monte_carlo_chance(key, statistic, shapes, draws=draws)


def chance_of_median(shapes: Shapes | None, key: Seed, *, inverse: bool, draws: int = DRAWS) -> Chance:
    """Chance level of the median or its inverse: drawn for few tasks, otherwise by `chance.median_chance`.

    Args:
        shapes: candidates and weights of the tasks, at least one of weight above 0; None: they were not kept.
        key: seed, or key of `jax.random.key`, for random draws.
        inverse: True for 1 / median, False for the median.
        draws: number of draws.
    """
    if shapes is None:
        return _UNKNOWN
    shapes = shapes.unless_equal()
    # A few heavy tasks count as few tasks, however many light tasks there are.
    once, twice = shapes.by_size(1).sum(), shapes.by_size(2).sum()
    if once**2 / twice > _MANY_TASKS:
        return chance.median_chance(shapes, inverse=inverse)

    def statistic(ranks: np.ndarray, share: np.ndarray) -> np.ndarray:
        found = weighted_median(ranks, share)
        return 1 / found if inverse else found

    return _drawn_chance(key, statistic, shapes, draws)


class _Job(NamedTuple):
    """Averaged metric under a tie rule, to be resampled."""

    rule: Ties
    metric: Metric
    parts: QuerySums
    chance: Chance | None


def evaluate(
    tasks: Tasks,
    metrics: Metric | Iterable[Metric] | None,
    *,
    ties: str | Iterable[str] = ALL_TIES,
    level: float | None = 0.95,
    interval: str = IntervalMethod.ANALYTIC,
    replicates: int = 1000,
    key: Seed | None = None,
    num_entities: int | None = None,
    draws: int = DRAWS,
    seeds: ArrayLike | None = None,
) -> Estimates:
    """Value, chance level, standard error and confidence interval of each metric under each tie rule.

    Args:
        tasks: at least one ranking task, as `Tasks`, each with at most 10**8 candidates.
        metrics: one metric, or several with different names.
        ties: tie rule or rules. Default: all four.
        level: confidence level, in [1e-6, 1 - 1e-6]. Default 0.95. None: no intervals, which is faster.
        interval: "analytic" for mid-P limits on the effective number of queries (`owkg.stats.interval`),
            "percentile" or "bca" for the bootstrap over queries. Default "analytic".
        replicates: number of bootstrap resamples. Default 1000.
        key: seed or key of `jax.random.key` for the bootstrap and for chance levels that have to be drawn;
            equal keys give equal numbers. None: seed 0.
        num_entities: N of PROBE's rank transformer. None: the number of candidates of each task.
        draws: number of random test sets for chance levels that have to be drawn; the variance then has a
            relative standard error of about sqrt(2 / draws).
        seeds: seed of each task, whole numbers; every seed must rank the same tasks. Values are then means
            over seeds, and errors and intervals are over queries and seeds. None: all tasks have one seed.

    Returns:
        Estimates by tie rule and by name. Macro metrics are left out if tasks of one query differ in their
        number of candidates.

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
            "tasks", f"must be a Tasks, as from owkg.metrics.tasks_of, got {type(tasks).__name__}."
        )
    if not len(tasks.optimistic):
        raise ArgumentError("tasks", "must be at least one, got none.")
    refuse_many_candidates(tasks)
    options = checked_options(
        metrics,
        ties=ties,
        level=level,
        interval=interval,
        replicates=replicates,
        key=key,
        num_entities=num_entities,
        draws=draws,
    )

    runs = [] if seeds is None else _runs(tasks, seeds)
    whole, *own = (in_memory(weighed(one), options) for one in (tasks, *runs))
    return estimates(whole, options, own)


def refuse_many_candidates(tasks: Tasks) -> None:
    """Raises ValueError if a task has more candidates than ranks can be summed over."""
    if len(tasks.candidates) and (most := int(tasks.candidates.max())) > MOST_CANDIDATES:
        text = f"must have at most {MOST_CANDIDATES:,} candidates in a row, got {most:,}"
        raise ArgumentError("ranks", f"{text}.")


def in_memory(tasks: Tasks, options: "EvaluationOptions") -> InMemory:
    """Sums for metrics of tasks that are in memory, as the options require."""
    return InMemory(
        tasks,
        options.rules,
        by_query=options.level is not None,
        keep=options.resampled,
        num_entities=options.num_entities,
    )


def _runs(tasks: Tasks, seeds: ArrayLike) -> list[Tasks]:
    """Tasks of each seed; an empty list if there is one seed."""
    of = checks.integer("seeds", seeds, -(2**63))
    if of.shape != tasks.optimistic.shape:
        raise ArgumentError("seeds", f"must have shape {tasks.optimistic.shape}, got {of.shape}.")
    different = np.unique(of)
    if len(different) < 2:
        return []
    runs = [np.flatnonzero(of == seed) for seed in different]
    if tasks.query is not None:
        counts = [np.bincount(tasks.query[run], minlength=tasks.num_queries) for run in runs]
        for seed, count in zip(different, counts, strict=True):
            if (count != counts[0]).any():
                text = f"must each rank the same tasks: seeds {seed} and {different[0]} rank different tasks."
                raise ArgumentError("seeds", text)
    return [part_of(tasks, run) for run in runs]


class EvaluationOptions(NamedTuple):
    """Checked options of `evaluate`; the fields have the names of its arguments.

    `mapped` holds the names of the cdf metrics, which are computed as z metrics and mapped at the end.
    """

    metrics: tuple[Metric, ...]
    mapped: frozenset[str]
    rules: tuple[Ties, ...]
    level: float | None
    interval: IntervalMethod
    replicates: int
    key: Any
    num_entities: int | None
    draws: int

    @property
    def resampled(self) -> bool:
        """Whether intervals come from the bootstrap."""
        return self.level is not None and self.interval is not IntervalMethod.ANALYTIC

    @property
    def groups(self) -> dict[Averages, list[Metric]]:
        """Metrics by measure and weighting."""
        groups: dict[Averages, list[Metric]] = {}
        for metric in self.metrics:
            groups.setdefault((metric.measure, metric.weighting), []).append(metric)
        return groups

    @property
    def averaged(self) -> list[Averages]:
        """Measures that are averages."""
        return [one for one in self.groups if not isinstance(one[0], Median | Dispersion)]


def checked_options(
    metrics: Metric | Iterable[Metric] | None,
    *,
    ties: str | Iterable[str] = ALL_TIES,
    level: float | None = 0.95,
    interval: str = IntervalMethod.ANALYTIC,
    replicates: int = 1000,
    key: Seed | None = None,
    num_entities: int | None = None,
    draws: int = DRAWS,
) -> EvaluationOptions:
    """Checked arguments of `evaluate`, except its tasks and seeds.

    Raises:
        ValueError: naming the argument.
    """
    several: list[Metric] = []
    for metric in metrics if isinstance(metrics, Iterable) else [metrics]:
        if not isinstance(metric, Metric):
            raise ArgumentError("metrics", f"must be metrics, as from owkg.metrics.metric, got {metric!r}.")
        several.append(metric)
    ties = (ties,) if isinstance(ties, str) else ties
    rules = tuple(_member("ties", Ties, rule) for rule in ties)
    if not rules:
        raise ArgumentError("ties", "must name at least one rule, got none.")
    method = _member("interval", IntervalMethod, interval)
    if level is not None:
        level = checks.level("level", level)
    resampled = level is not None and method is not IntervalMethod.ANALYTIC
    replicates = checked_replicates(replicates, 5 if resampled else 0)
    draws = checks.whole("draws", draws, 2)
    if num_entities is not None:
        num_entities = checks.whole("num_entities", num_entities, 1)
        if num_entities > MOST_CANDIDATES:
            raise ArgumentError("num_entities", f"must be at most {MOST_CANDIDATES:,}, got {num_entities:,}.")
    key = checked_key(0 if key is None else key)
    mapped = frozenset(metric.name for metric in several if metric.adjustment is Adjustment.CDF)
    # Cdf metrics keep their names, but are z metrics until the end.
    chosen = tuple(replace(m, adjustment=Adjustment.Z) if m.name in mapped else m for m in several)
    return EvaluationOptions(chosen, mapped, rules, level, method, replicates, key, num_entities, draws)


def estimates(source: Gathered, options: EvaluationOptions, seeds: Sequence[Gathered] = ()) -> Estimates:
    """Estimates of `evaluate`, from the sums gathered of the tasks.

    Args:
        source: sums of at least one task; must be `InMemory` if intervals come from the bootstrap.
        options: metrics, tie rules and intervals that are wanted.
        seeds: sums of each seed's tasks, if `source` covers several seeds.
    """
    if seeds and options.resampled:
        text = (
            "must be analytic if a model has several seeds, as a bootstrap over queries treats seeds as fixed"
        )
        raise ArgumentError("interval", f"{text}; got {options.interval.value}.")
    levels: dict[Averages, Chance] = {}
    own = [_unmapped(one, options, (), levels) for one in seeds]
    found = _unmapped(source, options, own, levels)
    for rule, by in found.items():
        for name in options.mapped & set(by):
            by[name] = through_cdf(by[name])
            if own:
                values = [through_cdf(one[rule][name]).value for one in own]
                by[name] = by[name]._replace(
                    value=float(np.mean(values)), deviation_over_seeds=float(np.std(values, ddof=1))
                )
    return found


def _unmapped(
    source: Gathered, options: EvaluationOptions, own: Sequence[Estimates], levels: dict[Averages, Chance]
) -> Estimates:
    """Estimates before z metrics are mapped through the normal cdf.

    Args:
        source: sums of the tasks, as in `estimates`.
        options: options, as in `estimates`.
        own: estimates of each seed, if `source` covers several seeds.
        levels: chance levels of functions of means, which all seeds share.
    """
    metrics, _, rules, level, interval, replicates, key, _, draws = options
    bootstrap_key, chance_key = children(key, 2)
    found: Estimates = {rule: {} for rule in rules}
    jobs: list[_Job] = []
    averaged = source.moments(options.averaged)
    kept = source.parts if isinstance(source, InMemory) else {}
    pending: list[tuple[Ties, str, Averaged]] = []
    for (measure, weighting), group in options.groups.items():
        if isinstance(measure, Dispersion):
            for rule in rules:
                value = Estimate(
                    float(source.tasks)
                    if measure.kind is Spread.COUNT
                    else median.scatter(measure.kind, source.on_ranks(weighting, rule))
                )
                found[rule] |= {metric.name: value for metric in group}
                if own:
                    found[rule] |= {
                        metric.name: estimate_over_seeds(
                            value, [one[rule][metric.name] for one in own], 1.0
                        ).finished(value, NAN, NAN)
                        for metric in group
                    }
            continue
        if isinstance(measure, Median):
            if (measure, weighting) not in levels:
                levels[measure, weighting] = chance_of_median(
                    source.shapes(weighting), key, inverse=measure.inverse, draws=draws
                )
            level_of_chance = levels[measure, weighting]
            of_medians = _medians(measure, weighting, group, source, level_of_chance, options, bootstrap_key)
            for rule in rules:
                found[rule] |= of_medians[rule]
                for metric in group if own else ():
                    of_seeds = [one[rule][metric.name] for one in own]
                    plain = metric.adjustment is Adjustment.NONE
                    bounds_of = (0.0, 1.0) if measure.inverse else (1.0, np.inf)
                    found[rule][metric.name] = median_over_seeds(
                        of_medians[rule][metric.name],
                        of_seeds,
                        level,
                        bounds_of if plain else (-np.inf, np.inf),
                    )
            continue
        if (measure, weighting) not in averaged:
            continue
        chance_of_all = None
        if isinstance(measure, RankWeight) and measure.link is not None:
            if (measure, weighting) not in levels:
                shapes = source.shapes(weighting)
                levels[measure, weighting] = linked_chance(measure, shapes, chance_key, draws=draws)
            chance_of_all = levels[measure, weighting]
        moments, parts = averaged[measure, weighting], kept.get((measure, weighting))
        for rule in rules:
            for metric in group:
                made = averaged_estimate(moments[rule], metric, chance_of_all, level)
                if own:
                    of_seeds = [one[rule][metric.name] for one in own]
                    made = averaged_over_seeds(made, of_seeds, metric, level)
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
    if options.resampled and level is not None:
        for job, (low, high) in zip(
            jobs, _resampled_bounds(bootstrap_key, jobs, replicates, interval, level), strict=True
        ):
            estimate = found[job.rule][job.metric.name]
            # If all replicates are equal, the analytic interval on the effective queries is kept.
            if np.isnan(low) or high - low > 1e-9 * abs(estimate.value):
                found[job.rule][job.metric.name] = estimate._replace(ci_low=low, ci_high=high)
    names = [metric.name for metric in metrics]
    return {rule: {name: by[name] for name in names if name in by} for rule, by in found.items()}


def _medians(
    measure: Median,
    weighting: Weighting,
    group: list[Metric],
    source: Gathered,
    level_of_chance: Chance,
    options: EvaluationOptions,
    key: Seed,
) -> Estimates:
    """Metrics of the median rank, under each tie rule."""
    rules = options.rules
    found: Estimates = {}
    for rule in rules if source.tied else rules[:1]:
        by_rank = median.distribution(source.on_ranks(weighting, rule))
        middle = median.quantile(by_rank, 0.5)
        sums = median.ONE_QUERY if options.level is None else source.below(weighting, rule, middle)
        if np.isnan(middle):  # no weight
            found[rule] = {metric.name: Estimate(NAN) for metric in group}
            continue
        draws = None
        if options.resampled and isinstance(source, InMemory):
            weight = source.weight(weighting)
            draws = median.resampled_medians(key, source.all, rule, weight, options.replicates)
        uncertainty = _median_estimate(measure, by_rank, sums, options, draws)
        value = _shown(measure, middle)
        found[rule] = {
            metric.name: fixed_estimate(metric, value, 1.0, level_of_chance, *uncertainty)._replace(
                effective_queries=float(sums.effective), heaviest_query=float(sums.heaviest / sums.weight)
            )
            for metric in group
        }
    return {rule: found.get(rule, found[rules[0]]) for rule in rules}


def _shown(measure: Median, rank: float | np.ndarray) -> Any:
    return 1 / rank if measure.inverse else rank


def _member(name: str, kind: Any, value: object) -> Any:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(member.value for member in kind)
        raise ArgumentError(name, f"must be one of {known}, got {value!r}.") from None


def _median_estimate(
    measure: Median,
    by_rank: median.Distribution,
    sums: median.Below,
    options: EvaluationOptions,
    draws: np.ndarray | None,
) -> tuple[float, float, float]:
    """Standard error and interval of the median or its inverse."""
    level = options.level
    if level is None or sums.queries < 2:
        return NAN, NAN, NAN
    value = _shown(measure, median.quantile(by_rank, 0.5))
    error, ends = median.woodruff(sums, by_rank, level)
    low, high = sorted(_shown(measure, end) for end in ends)
    if draws is not None:
        low, high = bounds(options.interval, value, _shown(measure, draws), level)
    return error * (value**2 if measure.inverse else 1.0), low, high


def _resampled_bounds(
    key: Seed, jobs: list[_Job], replicates: int, interval: IntervalMethod, level: float
) -> list[tuple[float, float]]:
    """Bootstrap intervals of averaged metrics, all from the same replicates."""
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
        # If the metric has a link, the influence is correct up to a factor; a small step gives its sign.
        sign = np.sign(_value(job, totals * [1, 1 + 1e-6, 1, 1, 1]) - value) if job.chance else 1.0
        influence = sign * (moved @ parts[at])
        result.append(
            bounds(interval, value, _value(job, sums[:, at].T), level, influence - influence.mean())
        )
    return result


def _value(job: _Job, totals: np.ndarray) -> Any:
    """Value of the metric at the sums of weight, value, chance, variance and best, or at arrays of sums."""
    measure = job.metric.measure
    metric = measure if isinstance(measure, RankWeight) else None
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, best = totals[1] / totals[0], totals[4] / totals[0]
        level = job.chance or plain_chance(totals)
        return adjusted_value(job.metric, linked(metric, mean), level, linked(metric, best))
