"""Estimates of one metric for each design: whole queries, prefixes, or candidates."""

from itertools import combinations

import numpy as np

from owkg.estimation.annotators import corrected, rate_variance
from owkg.estimation.betting import exact_of_queries
from owkg.estimation.candidates import contributions, limits
from owkg.estimation.drawing import Unit
from owkg.estimation.gaps import extreme_labels, of_open_queries
from owkg.estimation.judged import Evidence
from owkg.estimation.measures import Measure, values
from owkg.estimation.missing_share import summed, summed_labels
from owkg.estimation.prefixes import reach
from owkg.estimation.proxy import refitted
from owkg.estimation.targets import Limits, contrasts, means, of_prefix_queries, of_queries, prepared
from owkg.estimation.two_phase import expert_limits

REFIT = 30
"""Fewest judged queries for which the free proxy is refitted to the labels of annotators."""
OWN = 50
"""Fewest judged queries for which the values under known answers only are one more covariate."""
_REFITTED = 1_000_000  # most places in lists for which the proxy is refitted


def estimated(evidence: Evidence, of: Measure) -> Limits:
    """Limits of a metric for all systems and pairs, by the design of the draw."""
    how = {Unit.QUERIES: _by_queries, Unit.PREFIXES: _by_prefixes, Unit.CANDIDATES: _by_candidates}
    found = how[evidence.drawn.drawing.unit](evidence, of)
    return _equal_lists(evidence, found) if evidence.pairs else found


def _equal_lists(evidence: Evidence, found: Limits) -> Limits:
    """The limits with a difference of 0 for each pair of systems whose lists are equal."""
    slot = evidence.drawn.people.slot
    systems, method, zero = len(slot), list(found.method), np.ones(len(found.value), bool)
    for i, (a, b) in enumerate(combinations(range(systems), 2), systems):
        if np.array_equal(slot[a], slot[b]):
            zero[i], method[i] = False, "exact"
    ends = {name: np.where(zero, getattr(found, name), 0.0) for name in ("low", "high", "least", "most")}
    value = np.where(zero | np.isnan(found.value), found.value, 0.0)
    return found._replace(**ends, value=value, method=method)


def _by_queries(evidence: Evidence, of: Measure) -> Limits:
    people, sample = evidence.drawn.people, evidence.sample
    expert, labels = evidence.expert, evidence.labels
    judged = len(sample.rows if expert is None else expert.units)
    ready = prepared(of, people, evidence.proxies, own=judged >= OWN)
    said = {"level": evidence.level, "pairs": evidence.pairs}
    if expert is not None:
        said |= {"of_these": evidence.of_these}
        return expert_limits(ready, people, labels, expert.labels, sample, judged, **said)
    if evidence.gaps:
        return of_open_queries(ready, people, labels, sample, of_these=evidence.of_these, **said)
    folds = None
    if judged >= REFIT and people.slot.size <= _REFITTED:
        folds = refitted(people, labels, evidence.proxies[0], sample.rows)
    if evidence.exact:
        drawing = evidence.drawn.drawing
        in_order = drawing.sample(drawing.frame[evidence.units])
        return exact_of_queries(ready, people, labels, in_order, **said)
    options = {"folds": folds, "pairs": evidence.pairs, "of_these": evidence.of_these}
    if evidence.errors is None:
        return of_queries(ready, people, labels, sample, level=evidence.level, **options)
    noise = rate_variance(
        lambda one: means(ready, people, one, sample, **options).mean, people, labels, evidence.errors
    )
    right = corrected(people, labels, evidence.errors)
    return of_queries(ready, people, right, sample, level=evidence.level, noise=noise, **options)


def _by_prefixes(evidence: Evidence, of: Measure) -> Limits:
    people, drawing, sample = evidence.drawn.people, evidence.drawn.drawing, evidence.sample
    assert drawing.deep is not None
    reached = reach(people.depth)
    ready = prepared(of, people, evidence.proxies, reached=reached)
    deep = drawing.deep[np.searchsorted(drawing.frame, sample.rows)]
    return of_prefix_queries(
        ready,
        people,
        evidence.labels,
        evidence.drawn.proxy,
        sample,
        deep,
        reached,
        level=evidence.level,
        pairs=evidence.pairs,
        of_these=evidence.of_these,
    )


def _by_candidates(evidence: Evidence, of: Measure) -> Limits:
    people = evidence.drawn.people
    frame = evidence.drawn.drawing.frame
    systems = len(people.models)
    to = contrasts(systems, pairs=evidence.pairs)
    known = values(of, people, (people.label == 1).astype(float)).mean(1)
    added = to @ contributions(of, people, frame)
    least, most = np.minimum(added, 0).sum(1), np.maximum(added, 0).sum(1)
    base = to @ known
    if evidence.gaps:
        rows = frame[evidence.units]
        bottom, top = extreme_labels(evidence.labels[rows], added[:, evidence.units])
        found = summed_labels(evidence, added, bottom)
        low, _ = limits(found, evidence.level)
        _, high = limits(summed_labels(evidence, added, top), evidence.level)
        value = np.full(len(low), np.nan)
        found = found._replace(r=value)
    else:
        found = summed(evidence, added)
        low, high = limits(found, evidence.level)
        value = np.clip(found.value, least, most)
        low, high = np.minimum(low, value), np.maximum(high, value)
    return Limits(
        base + value,
        base + np.clip(low, least, most),
        base + np.clip(high, least, most),
        ["bounds" if evidence.gaps else "t"] * len(value),
        found.r,
        base + least,
        base + most,
        found.variance,
        found.freedom,
    )
