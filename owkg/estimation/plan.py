"""Plans: expected widths of intervals, and the number of judgements for a wished width."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Float, Int
from scipy import special

from owkg import checks
from owkg.errors import ArgumentError
from owkg.estimation.candidates import STRATA, allocation, contributions, equal_strata, importance
from owkg.estimation.drawing import Drawing, Unit
from owkg.estimation.estimate import FEW_QUERIES, LEAST_QUERIES, DrawnPool, Estimate
from owkg.estimation.measures import Measure, Needs, measure, measures
from owkg.estimation.population import Population
from owkg.estimation.prefixes import reach
from owkg.estimation.proxy import Probabilities
from owkg.estimation.spread import prefix_spread, spread
from owkg.estimation.targets import contrasts

QUERIES = (20, 30, 50, 100, 200, 400)
CANDIDATES = (100, 200, 400, 800, 1600)
# Ratio of the width of intervals to the width under the free proxy, median of 24 targets in four worlds.
_WIDER, _WIDER_PAIR, _WIDER_CANDIDATES = 1.10, 1.04, 1.10
SECONDS_ENTITY, SECONDS_FACT = 45.0, 25.0
"""Seconds to look up a new entity and to judge each of its facts (Marchesin and Silvello, KGAccuracyEval)."""

_COLUMNS = {
    "metric": pl.String,
    "wish": pl.Float64,
    "unit": pl.String,
    "count": pl.Int64,
    "more": pl.Int64,
    "width": pl.Float64,
    "width_pair": pl.Float64,
    "judgements": pl.Int64,
    "hours": pl.Float64,
}
_Pair = tuple[float, float | None]


class _Design(NamedTuple):
    """Widths of intervals as a function of the number of units, for one design.

    Attributes:
        unit: kind of unit that is drawn.
        most: number of units in the population.
        widths: function from a number of units to the median width for a system and for a difference.
        each: expected number of judgements for one unit.
    """

    unit: Unit
    most: int
    widths: Callable[[int], _Pair]
    each: float


def plan(
    people: Population,
    proxy: Probabilities,
    metrics: str | Iterable[str],
    *,
    ci: float = 0.95,
    queries: Sequence[int] = QUERIES,
    candidates: Sequence[int] = CANDIDATES,
) -> pl.DataFrame:
    """Expected widths of intervals for each metric, design and size.

    The free proxy supplies the variance of the labels; no judgement is used.

    Args:
        people: the population.
        proxy: probability of each candidate.
        metrics: names of metrics, as `owkg.estimation.measures.measure` accepts them.
        ci: confidence level of the intervals. Default 0.95.
        queries: numbers of queries to draw, whole or as prefixes.
        candidates: numbers of candidates to draw.

    Returns:
        Columns metric, unit, count, width (median over systems), width_pair (median over differences),
        expected judgements and hours.

    Raises:
        ValueError: naming `metric`, if a metric is unknown.
    """
    level = checks.level("ci", ci)
    rows = []
    for one in measures(metrics, people.depth):
        for design in _designs(one, people, proxy, level):
            sizes = candidates if design.unit is Unit.CANDIDATES else queries
            rows += [_row(one, design, n) for n in sizes if n <= design.most]
    return pl.DataFrame(rows, _COLUMNS).drop("wish", "more")


def units_for(
    people: Population, proxy: Probabilities, widths: Mapping[str, float], *, ci: float = 0.95
) -> pl.DataFrame:
    """Smallest number of units of each design that gives intervals of a wished width, before any judgement.

    Args:
        people: the population.
        proxy: probability of each candidate.
        widths: wished width of the interval of a system, by name of the metric.
        ci: confidence level of the intervals. Default 0.95.

    Returns:
        Columns metric, wish, unit, count, width, width_pair, judgements and hours. If no number of units is
        enough, count, judgements and hours are null, and the widths are for all units.

    Raises:
        ValueError: naming `metric` or `width`, if a metric is unknown or a width is not above 0.
    """
    level = checks.level("ci", ci)
    rows = []
    for one, wish in wished(widths, people.depth):
        for design in _designs(one, people, proxy, level):
            least = LEAST_QUERIES if design.unit is Unit.QUERIES else FEW_QUERIES
            rows.append(_row(one, design, _fewest(design, wish, least), wish=wish))
    return pl.DataFrame(rows, _COLUMNS).drop("more")


def after_pilot(
    drawn: DrawnPool, found: Estimate, widths: Mapping[str, float] | None = None, *, ci: float = 0.95
) -> pl.DataFrame:
    """Total number of units to draw, planned from the intervals of the judged units.

    The width falls with the number n of units as t(n - 1) sqrt(g(n)). Here g is the variance under the
    allocation of the design: 1/n - 1/N for whole queries, 1/n for prefixes, and the variance under the proxy
    for candidates. The judged units are the first units of the whole sample.

    Args:
        drawn: the pool with its design.
        found: the estimate from the judged units, with the differences of systems.
        widths: wished width of the interval of a system, by name of the metric. Default None: report the
            widths for several numbers of units.
        ci: confidence level of the intervals of `found`. Default 0.95.

    Returns:
        Columns metric, wish (null without `widths`), unit, count (total number of units; null if no number is
        enough), more (units to draw in addition to the drawn ones), width, width_pair, judgements and hours
        (both for the remaining work). Without `widths`, the first row of each metric is for the judged units.

    Raises:
        ValueError: naming `judged`, if fewer than 20 units or all units are judged; `width` or `metric`, if a
            wish is not above 0 or its metric is not in `found`; `plan`, if candidates below the pool or for a
            difference were drawn.
    """
    level, done = checks.level("ci", ci), found.judged
    _require_pilot(drawn.drawing, done)
    if drawn.asked is not None and drawn.asked.pair is not None:
        raise ArgumentError("plan", "must be left out if candidates were drawn for a difference.")
    chosen = {one.name: one for one in measures(found.metrics["metric"].unique().to_list(), drawn.depth)}
    wishes = [] if widths is None else [(one.name, wish) for one, wish in wished(widths, drawn.depth)]
    if lacking := [name for name, _ in wishes if name not in chosen]:
        raise ArgumentError("width", f"must name metrics that are estimated, got {lacking[0]}.")
    sizes = CANDIDATES if drawn.drawing.unit is Unit.CANDIDATES else QUERIES
    rows = []
    for name, wish in wishes or [
        (name, None) for name in found.metrics["metric"].unique(maintain_order=True)
    ]:
        design = _piloted(chosen[name], drawn, found, level)
        if wish is not None:
            counts = [_fewest(design, wish, done)]
        else:
            counts = [done, *(n for n in sizes if done < n <= design.most)]
        rows += [_row(chosen[name], design, n, wish=wish, done=done) for n in counts]
    there = int(drawn.drawing.counts.sum())
    return pl.DataFrame(rows, _COLUMNS).with_columns(more=(pl.col("count") - there).clip(0))


def wished(widths: Mapping[str, float], depth: int) -> list[tuple[Measure, float]]:
    """Metrics with their wished widths.

    Args:
        widths: wished widths, above 0, by name of the metric.
        depth: depth of the pool.

    Raises:
        ValueError: naming `metric` or `width`, if a metric is unknown or wished for twice, or a width is not
            above 0.
    """
    found = [
        (measure(name, depth), checks.real_number("width", wish, 0, np.inf, closed=False))
        for name, wish in widths.items()
    ]
    names = [one.name for one, _ in found]
    if not names:
        raise ArgumentError("width", "must name at least one metric, got none.")
    if again := [name for name in names if names.count(name) > 1]:
        raise ArgumentError("width", f"must name each metric once, got {again[0]} twice.")
    return found


def _row(
    of: Measure, design: _Design, count: int | None, *, wish: float | None = None, done: int = 0
) -> dict[str, object]:
    """A row of a plan; if no number of units is enough, with the widths for all units."""
    width, pair = design.widths(design.most if count is None else count)
    row: dict[str, object] = {"metric": of.name, "wish": wish, "unit": str(design.unit), "count": count}
    judgements = hours = None
    if count is not None:
        judgements = round((count - done) * design.each)
        entities = judgements if design.unit is Unit.CANDIDATES else count - done
        hours = (judgements * SECONDS_FACT + entities * SECONDS_ENTITY) / 3600
    return row | {
        "more": None, "width": width, "width_pair": pair, "judgements": judgements, "hours": hours
    }  # fmt: skip


def _fewest(design: _Design, wish: float, least: int) -> int | None:
    """Smallest number of units, from `least`, with at most the wished width; None if no number is enough."""
    low, high = least, design.most
    if low > high or design.widths(high)[0] > wish:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if design.widths(middle)[0] <= wish else (middle + 1, high)
    return low


def _designs(of: Measure, people: Population, proxy: Probabilities, level: float) -> list[_Design]:
    """Designs that answer a metric, with widths predicted by the free proxy."""
    size, systems = len(people.queries), len(people.models)
    whole = _deviations(spread(of, people, proxy), systems)
    found = [
        _Design(Unit.QUERIES, size, lambda n: _widths(whole, n, size, level), len(people.unknown) / size)
    ]
    if of.needs is Needs.PREFIX:
        covariance, used = prefix_spread(of, people, proxy, reach(people.depth))
        cut = _deviations(covariance, systems)
        found.append(_Design(Unit.PREFIXES, size, lambda n: _widths(cut, n, None, level), used))
    if of.needs is Needs.CANDIDATES:
        frame = people.unknown
        each = contributions(of, people, frame)
        weight = importance(each, proxy[frame])
        stratum = equal_strata(weight, STRATA)
        variances, sizes = _variances(of, people, proxy, frame, stratum), np.bincount(stratum)
        shares = np.bincount(stratum, weight)
        half = special.ndtri((1 + level) / 2) * _WIDER_CANDIDATES

        def widths(n: int) -> _Pair:
            left = sizes / allocation(n, sizes, shares) - 1
            return _medians(2 * half * np.sqrt(variances @ left), systems)

        found.append(_Design(Unit.CANDIDATES, len(frame), widths, 1.0))
    return found


def _piloted(of: Measure, drawn: DrawnPool, found: Estimate, level: float) -> _Design:
    """A design with widths predicted from the intervals of its judged units."""
    people, drawing, done = drawn.people, drawn.drawing, found.judged
    now = np.concatenate(
        [
            table.filter(metric=of.name).select(pl.col("ci_high") - pl.col("ci_low")).to_series().to_numpy()
            for table in (found.metrics, found.differences)
        ]
    )
    if drawing.unit is Unit.CANDIDATES:
        variances = _variances(of, people, drawn.proxy, drawing.frame, drawing.stratum)[: len(now)]
    else:
        variances = np.ones((len(now), 1)) * (drawing.sizes / drawing.sizes.sum()) ** 2 / drawing.sizes
    is_cut = 0.0 if drawing.unit is Unit.PREFIXES else 1.0

    def deviations(n: int) -> Float[np.ndarray, "targets"]:
        left = drawing.sizes / np.maximum(drawing.allocated(n), 1) - is_cut
        return special.stdtrit(n - 1, (1 + level) / 2) * np.sqrt(variances @ left)

    at_first = np.maximum(deviations(done), 1e-300)
    each = 1.0 if drawing.unit is Unit.CANDIDATES else found.metrics["judgements"][0] / done
    return _Design(
        drawing.unit,
        len(drawing.frame),
        lambda n: _medians(now * (deviations(n) / at_first), len(people.models)),
        each,
    )


def _require_pilot(drawing: Drawing, judged: int) -> None:
    """Raise ValueError naming `plan` or `judged`, if the judged units do not allow a plan."""
    if drawing.unit is Unit.BELOW:
        raise ArgumentError("plan", "must be left out if answers below the pool are drawn.")
    if judged < FEW_QUERIES:
        raise ArgumentError(
            "judged",
            f"must cover at least {FEW_QUERIES} drawn {drawing.unit} for a plan, got {judged}, because the "
            "intervals from fewer are too uncertain.",
        )
    if judged == len(drawing.frame):
        raise ArgumentError("judged", f"must leave something to judge: all {judged:,} {drawing.unit} are.")


def _deviations(covariance: np.ndarray, systems: int) -> _Pair:
    """Median standard deviation of the value of a query: over systems, and over pairs."""
    to = contrasts(systems, pairs=True)
    return _medians(np.sqrt(np.maximum(np.einsum("ts,su,tu->t", to, covariance, to), 0)), systems)


def _medians(each: Float[np.ndarray, "targets"], systems: int) -> _Pair:
    """Median over the systems, and over the pairs (None if there are no pairs)."""
    pairs = each[systems:]
    return float(np.median(each[:systems])), float(np.median(pairs)) if len(pairs) else None


def _widths(deviations: _Pair, n: int, size: int | None, level: float) -> _Pair:
    half = special.stdtrit(n - 1, (1 + level) / 2) * np.sqrt((1 - n / size if size else 1.0) / n)
    single, pair = deviations
    return float(2 * half * single * _WIDER), None if pair is None else float(2 * half * pair * _WIDER_PAIR)


def _variances(
    of: Measure,
    people: Population,
    proxy: Probabilities,
    frame: Int[np.ndarray, "units"],
    stratum: Int[np.ndarray, "units"],
) -> Float[np.ndarray, "targets strata"]:
    """Variances under the proxy of what candidates add to systems and pairs, summed over each stratum."""
    added = contrasts(len(people.models), pairs=True) @ contributions(of, people, frame)
    each = added**2 * proxy[frame] * (1 - proxy[frame])
    return np.stack([np.bincount(stratum, one) for one in each])
