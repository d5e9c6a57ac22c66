"""Share of true answers that are missing from the known ones, beta: for the whole pool and by category."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Bool, Float, Int

from owkg.estimation.annotators import corrected, rate_variance
from owkg.estimation.candidates import Sums, few_limits, limits, of_candidates
from owkg.estimation.drawing import Unit
from owkg.estimation.gaps import extreme_labels
from owkg.estimation.judged import Evidence
from owkg.estimation.population import UNKNOWN
from owkg.estimation.regression import FEW_CHANGES, Fitted, Sample, fitted, t_quantile
from owkg.estimation.targets import largest_sum, most_moved, truths
from owkg.estimation.two_phase import two_phase

FEW_UNITS = 20
"""Fewest judged units of a relation category for an estimate."""

_CATEGORY = {
    "category": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "known": pl.Int64,
    "judged": pl.Int64,
}  # fmt: skip
_NO_FACTS = "no training facts"

Counted = tuple[float, float, float]
"""Number of missing answers and its limits; the number is NaN if there are only bounds."""


class Missing(NamedTuple):
    """Share of the true answers that are not known, beta.

    Attributes:
        value, low, high: estimate and limits of its interval; value is None if there are only bounds.
        scope: which answers are counted, in words.
        found: estimated number of missing answers, and its limits.
        known: number of known answers.
        by_category: table with one row for each relation category: category, value, low, high (null if fewer
            than 20 of its units are judged), known, judged (number of its judged units); None if categories
            are not known or the design does not answer them.
    """

    value: float | None
    low: float
    high: float
    scope: str
    found: Counted
    known: int
    by_category: pl.DataFrame | None = None


def missing_share(evidence: Evidence) -> Missing | None:
    """Share of missing answers among the true ones; None if the design does not answer it.

    The number of missing answers is linear in the labels. For a category, it is estimated from the drawn
    queries of the category, which are a random sample of its queries; or from all drawn candidates, where
    candidates of other categories count 0.
    """
    drawn = evidence.drawn
    people, unit = drawn.people, drawn.drawing.unit
    if unit is Unit.PREFIXES:
        return None
    every = np.ones(len(people.queries), bool)
    counted = {Unit.QUERIES: _of_queries, Unit.CANDIDATES: _of_candidates, Unit.BELOW: _below}[unit]
    (count,) = counted(evidence, [every])
    assert count is not None
    scope = f"the pool of depth {drawn.depth}, with known answers"
    if unit is Unit.BELOW:
        scope = f"ranks {drawn.depth + 1} to {people.depth}, with known answers"
    known = int(_known(evidence).sum())
    value, low, high, found = _share(count, known, len(people.unknown))
    return Missing(value, low, high, scope, found, known, _by_category(evidence))


def _known(evidence: Evidence) -> Int[np.ndarray, "queries"]:
    """Number of known answers of each query."""
    people = evidence.drawn.people
    return people.outside + np.bincount(people.query[people.label == 1], minlength=len(people.queries))


def _share(count: Counted, known: int, unknown: int) -> tuple[float | None, float, float, Counted]:
    """Share and number of missing answers, each with its limits, clipped to what is possible."""
    number, low, high = (float(np.clip(one, 0, unknown)) for one in count)

    def share(missing: float) -> float:
        return missing / (missing + known) if missing + known else 0.0

    return None if np.isnan(number) else share(number), share(low), share(high), (number, low, high)


def _by_category(evidence: Evidence) -> pl.DataFrame | None:
    drawn = evidence.drawn
    people, unit = drawn.people, drawn.drawing.unit
    if drawn.categories is None or unit not in (Unit.QUERIES, Unit.CANDIDATES):
        return None
    category = people.queries["relation"].replace_strict(drawn.categories, default="", return_dtype=pl.String)
    names = sorted(set(category.to_list()), key=lambda name: (not name, name))
    masks = [(category == name).to_numpy() for name in names]
    counted = _of_queries if unit is Unit.QUERIES else _of_candidates
    query = people.query if unit is Unit.CANDIDATES else np.arange(len(people.queries))
    judged = query[drawn.drawing.frame[evidence.units]]
    known = _known(evidence)
    rows = []
    for name, inside, count in zip(names, masks, counted(evidence, masks), strict=True):
        own = int(known[inside].sum())
        unknown = int(inside[people.query[people.unknown]].sum())
        shares = (None, None, None) if count is None else _share(count, own, unknown)[:3]
        rows.append((name or _NO_FACTS, *shares, own, int(inside[judged].sum())))
    return pl.DataFrame(rows, _CATEGORY, orient="row")


def _of_candidates(evidence: Evidence, masks: Sequence[Bool[np.ndarray, "queries"]]) -> list[Counted | None]:
    """Number of missing answers to the queries of each mask, from drawn candidates."""
    people, drawing = evidence.drawn.people, evidence.drawn.drawing
    added = np.stack([inside[people.query[drawing.frame]] for inside in masks]).astype(float)
    rows = drawing.frame[evidence.units]
    at = drawing.stratum[evidence.units]
    weights = (drawing.sizes / np.maximum(np.bincount(at, minlength=len(drawing.sizes)), 1))[at]
    judged = added[:, evidence.units]

    def limited(found: Sums, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Student's limits, widened by gamma limits if few relevant candidates were drawn."""
        low, high = limits(found, evidence.level)
        if evidence.errors is not None or (drawing.counts == drawing.sizes).all():
            return low, high
        said = judged * labels
        ends = np.array([few_limits(one, weights, evidence.level) for one in said])
        few = said.sum(1) < FEW_CHANGES
        return np.where(few, np.minimum(low, ends[:, 0]), low), np.where(
            few, np.maximum(high, ends[:, 1]), high
        )

    if evidence.gaps:
        least, most = extreme_labels(evidence.labels[rows], judged)
        low, _ = limited(summed_labels(evidence, added, least), least)
        _, high = limited(summed_labels(evidence, added, most), most)
        value = np.full(len(low), np.nan)
    else:
        found = summed(evidence, added)
        value = found.value
        low, high = limited(found, np.maximum(evidence.labels[rows], 0).astype(float))
    enough = (judged.sum(1) >= FEW_UNITS) | (added.sum(1) == len(drawing.frame))
    return [
        (float(a), float(b), float(c)) if is_enough else None
        for a, b, c, is_enough in zip(value, low, high, enough, strict=True)
    ]


def summed(evidence: Evidence, added: Float[np.ndarray, "targets units"]) -> Sums:
    """Sums of what relevant candidates of the frame add, estimated from drawn candidates."""
    rows = evidence.drawn.drawing.frame[evidence.units]

    def of(labels: Float[np.ndarray, "candidates"]) -> Sums:
        return summed_labels(evidence, added, labels[rows])

    if evidence.errors is None:
        return of(truths(evidence.labels))
    people = evidence.drawn.people
    noise = rate_variance(lambda labels: of(labels).value, people, evidence.labels, evidence.errors)
    found = of(corrected(people, evidence.labels, evidence.errors))
    return found._replace(variance=found.variance + noise)


def summed_labels(
    evidence: Evidence, added: Float[np.ndarray, "targets units"], labels: Float[np.ndarray, "... n"]
) -> Sums:
    """Sums as in `summed`, for given labels of the drawn candidates."""
    drawing = evidence.drawn.drawing
    proxy = np.stack([one[drawing.frame] for one in evidence.proxies])
    return of_candidates(added, labels, proxy, drawing.drawn(evidence.units))


def _below(evidence: Evidence, masks: Sequence[Bool[np.ndarray, "queries"]]) -> list[Counted | None]:
    """Number of missing answers below the pool, which are rare."""
    drawing = evidence.drawn.drawing
    at = drawing.stratum[evidence.units]
    weights = (drawing.sizes / np.maximum(np.bincount(at, minlength=len(drawing.sizes)), 1))[at]
    labels = evidence.labels[drawing.frame[evidence.units]]
    least, most = ((labels == 1).astype(float), (labels != 0).astype(float))
    low, _ = few_limits(least, weights, evidence.level)
    _, high = few_limits(most, weights, evidence.level)
    return [(np.nan if evidence.gaps else float(least @ weights), low, high) for _ in masks]


def _of_queries(evidence: Evidence, masks: Sequence[Bool[np.ndarray, "queries"]]) -> list[Counted | None]:
    """Number of missing answers to the queries of each mask, from its completely judged queries."""
    return [_of_part(evidence, inside) for inside in masks]


def _of_part(evidence: Evidence, inside: Bool[np.ndarray, "queries"]) -> Counted | None:
    people, whole = evidence.drawn.people, evidence.sample
    size = int(inside.sum())
    kept = inside[whole.rows]
    sample = _part(evidence, whole.rows[kept], inside)
    first = len(sample.rows) if evidence.expert is None else int(kept[: len(evidence.expert.units)].sum())
    chosen = Sample(sample.rows[:first], sample.stratum[:first], sample.sizes)
    least = 1 if inside.all() else FEW_UNITS
    if first < least or (chosen.drawn < (1 if evidence.expert is None else 2)).any():
        return None
    unknown = people.label == UNKNOWN
    count = len(inside)
    p = np.where(unknown, np.stack(evidence.proxies), 0.0)
    x = np.stack([np.bincount(people.query, one, count) for one in p])
    spread = np.array([np.bincount(people.query, p[0] * (1 - p[0]), count)[inside].mean()])
    centred = (x - x[:, inside].mean(1, keepdims=True))[:, None, sample.rows]
    of_these = evidence.of_these

    def numbers(labels: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.bincount(people.query, unknown * truths(labels), count)[rows]

    def plain(labels: np.ndarray) -> Fitted:
        y = numbers(labels, sample.rows)[None]
        fit = fitted(y, centred, sample, spread, of_these=of_these)
        if of_these and len(sample.rows) == size:
            return fit._replace(mean=y @ sample.weights, variance=np.zeros(1))
        return fit

    labels, expert = evidence.labels, evidence.expert
    if expert is not None:
        y, cheap = numbers(expert.labels, chosen.rows)[None], numbers(labels, sample.rows)[None]
        fit = two_phase(y, cheap, centred, sample, spread, of_these=of_these)
        return _limited(evidence, fit, fit, y[0] > 0, chosen, inside)
    if evidence.gaps:
        least_, most = (plain((labels == 1) * 1.0), plain((labels != 0) * 1.0))
        moved = numbers((labels != 0) * 1.0, sample.rows) > 0
        return (np.nan, *_limited(evidence, least_, most, moved, sample, inside)[1:])
    if evidence.errors is None:
        fit = plain(labels)
        return _limited(evidence, fit, fit, numbers(labels, sample.rows) > 0, sample, inside)
    noise = rate_variance(lambda one: plain(one).mean, people, labels, evidence.errors)
    fit = plain(corrected(people, labels, evidence.errors))
    fit = fit._replace(variance=fit.variance + noise)
    return _limited(evidence, fit, fit, None, sample, inside)


def _part(evidence: Evidence, rows: Int[np.ndarray, "n"], inside: Bool[np.ndarray, "queries"]) -> Sample:
    """Drawn queries as a sample of the queries inside a mask, with the strata that occur there."""
    stratum = evidence.drawn.drawing.stratum
    held, sizes = np.unique(stratum[inside], return_counts=True)
    return Sample(rows, np.searchsorted(held, stratum[rows]), sizes)


def _limited(
    evidence: Evidence,
    lower: Fitted,
    upper: Fitted,
    moved: Bool[np.ndarray, "n"] | None,
    sample: Sample,
    inside: Bool[np.ndarray, "queries"],
) -> Counted:
    """Estimated number with Student's limits, widened by an exact limit if few drawn queries lack an answer.

    Args:
        evidence: labels, sample and options of all estimates.
        lower, upper: fitted means of the queries for the lower and the upper limit.
        moved: whether each drawn query lacks an answer; None if this is unknown because labels have errors.
        sample: the drawn queries.
        inside: mask of the queries that are meant.
    """
    size = int(inside.sum())
    low, high = (
        float((fit.mean + sign * t_quantile(fit.freedom, evidence.level) * np.sqrt(fit.variance))[0] * size)
        for fit, sign in ((lower, -1), (upper, 1))
    )
    if moved is not None and moved.sum() < FEW_CHANGES and len(sample.rows) < size:
        people = evidence.drawn.people
        unknown = np.bincount(people.query[people.unknown], minlength=len(inside))
        is_open = (unknown > 0) & inside
        most = most_moved(moved, is_open, sample, evidence.level)
        low, high = min(low, 0.0), max(high, largest_sum(unknown[is_open].astype(float), most))
    return float(lower.mean[0] * size), low, high
