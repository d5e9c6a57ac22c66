"""Plans: how wide intervals will be, and how many judgements they take, before anything is judged."""

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl
from scipy import special

from owkg import checks
from owkg.estimation.candidates import STRATA, allocation, contributions, equal_strata, importance
from owkg.estimation.drawing import Unit
from owkg.estimation.measures import Measure, Needs, measures
from owkg.estimation.population import Population
from owkg.estimation.prefixes import reach
from owkg.estimation.proxy import Probabilities
from owkg.estimation.spread import prefix_spread, spread
from owkg.estimation.targets import contrasts

QUERIES = (20, 30, 50, 100, 200, 400)
CANDIDATES = (100, 200, 400, 800, 1600)
# How much wider than under the free proxy intervals turn out, in the median of 24 targets in four worlds.
_WIDER, _WIDER_PAIR, _WIDER_CANDIDATES = 1.10, 1.04, 1.10
SECONDS_ENTITY, SECONDS_FACT = 45.0, 25.0
"""Seconds for a new entity and for each fact of it (Marchesin and Silvello, KGAccuracyEval)."""


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

    The proxy says how much labels may vary; no judgement is used. For a pilot's residuals the same formulas
    hold.

    Args:
        people: the population.
        proxy: probabilities of the candidates.
        metrics: names as of `owkg.estimation.measures.measure`.
        ci: level of the intervals.
        queries: numbers of queries to draw, whole or as prefixes.
        candidates: numbers of candidates to draw.

    Returns:
        Columns metric, unit, count, width (of a system, the median), width_pair (of a difference, the
        median), judgements and hours expected.

    Raises:
        ValueError: naming `metric`, if a metric is unknown.
    """
    level = checks.level("ci", ci)
    rows = []
    size = len(people.queries)
    for one in measures(metrics, people.depth):
        deviations = _deviations(spread(one, people, proxy), len(people.models))
        per_query = len(people.unknown) / size
        rows += [
            (one.name, "queries", n, *_widths(deviations, n, size, level), round(n * per_query))
            for n in queries
            if n <= size
        ]
        if one.needs is Needs.PREFIX:
            covariance, used = prefix_spread(one, people, proxy, reach(people.depth))
            deviations = _deviations(covariance, len(people.models))
            rows += [
                (one.name, "prefixes", n, *_widths(deviations, n, None, level), round(n * used))
                for n in queries
                if n <= size
            ]
        if one.needs is Needs.CANDIDATES:
            rows += [
                (one.name, "candidates", n, *found, n)
                for n, found in _candidate_widths(one, people, proxy, candidates, level)
            ]
    names = {
        "metric": pl.String,
        "unit": pl.String,
        "count": pl.Int64,
        "width": pl.Float64,
        "width_pair": pl.Float64,
        "judgements": pl.Int64,
    }
    frame = pl.DataFrame(rows, names, orient="row")
    facts = pl.col("judgements") * SECONDS_FACT
    entities = pl.when(pl.col("unit") == "candidates").then("judgements").otherwise("count") * SECONDS_ENTITY
    return frame.with_columns(hours=(facts + entities) / 3600)


def _deviations(covariance: np.ndarray, systems: int) -> tuple[float, float | None]:
    """Median deviation of a query's value: of systems, and of pairs."""
    to = contrasts(systems, pairs=True)
    each = np.sqrt(np.maximum(np.einsum("ts,su,tu->t", to, covariance, to), 0))
    return float(np.median(each[:systems])), float(np.median(each[systems:])) if systems > 1 else None


def _widths(
    deviations: tuple[float, float | None], n: int, size: int | None, level: float
) -> tuple[float, float | None]:
    half = special.stdtrit(n - 1, (1 + level) / 2) * np.sqrt((1 - n / size if size else 1.0) / n)
    single, pair = deviations
    return 2 * half * single * _WIDER, None if pair is None else 2 * half * pair * _WIDER_PAIR


def _candidate_widths(
    of: Measure, people: Population, proxy: Probabilities, sizes: Sequence[int], level: float
) -> list[tuple[int, tuple[float, float | None]]]:
    frame = people.unknown
    systems = len(people.models)
    each = contributions(of, people, frame)
    weight = importance(each, proxy[frame])
    stratum = equal_strata(weight, STRATA)
    counts = np.bincount(stratum)
    variances = (contrasts(systems, pairs=True) @ each) ** 2 * proxy[frame] * (1 - proxy[frame])
    found = []
    for n in sizes:
        if n > len(frame):
            continue
        share = counts / allocation(n, counts, np.bincount(stratum, weight))
        deviation = np.sqrt((variances * (share - 1)[stratum]).sum(1))
        width = 2 * special.ndtri((1 + level) / 2) * deviation * _WIDER_CANDIDATES
        pair = float(np.median(width[systems:])) if systems > 1 else None
        found.append((n, (float(np.median(width[:systems])), pair)))
    return found


def designs(of: Measure) -> list[Unit]:
    """The designs that answer a metric, cheapest first."""
    cheap = {Needs.CANDIDATES: [Unit.CANDIDATES], Needs.PREFIX: [Unit.PREFIXES], Needs.QUERY: []}[of.needs]
    return [*cheap, Unit.QUERIES]
