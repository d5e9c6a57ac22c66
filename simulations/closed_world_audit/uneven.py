"""Intervals of full-test metrics when the missing rate differs between queries."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import special

from owkg.auditing.implied import Answers
from owkg.auditing.numbers import EVEN, Unevenness
from owkg.auditing.order import full_metrics, full_ranges, observed
from owkg.auditing.tables import UNEVEN, unevenness_points
from owkg.kg import num_candidates
from owkg.rank_weights import rank_weight, tie_expectation
from owkg.simulate import FullTest, full_test, thin
from owkg.stats.interval import BoundedMean, intervals
from simulations.closed_world_audit.graphs import GRAPHS
from simulations.closed_world_audit.worlds import Setting, trained, trained_on
from simulations.open_world.query_values import joined
from simulations.open_world.record import Record
from simulations.open_world.world import ClosedWorld

METRICS = ("mrr", "hits@1", "hits@10")
DEVIATIONS = (0.5, 1.0, 1.5)
SPARSITIES = (0.2, 0.5, 0.8)
_LABELS = ("ComplEx 32", "DistMult 32", "TransE 32", "RotatE 16")
KINDS = ("edge", "query", "entity", "relation", "larger", "smaller", "popularity", "model")
"""Ways in which facts go missing: at one rate; by a rate of each query, of both entities, or of the relation;
more from larger or from smaller queries; more for unpopular answers; more for answers that a model scores
low.
"""

_FAMILIES = {
    "family 1": Setting(8, 80, 1, (0.95,), 1, _LABELS),
    "family 2": Setting(15, 100, 2, (0.9,), 14, _LABELS),
}
# Mean scores that a scorer gives to answers, in standard deviations of one score.
_STRENGTHS = (2.0, 2.8, 3.6, 4.5, 5.5)
# Full metrics below this value are about chance level.
_LEAST = 0.02
# Distance within which a correlation counts as 0, and half width of the stated range around the truth.
NEAR = 0.05
_CORRELATIONS = np.round(np.arange(-0.4, 0.401, 0.05), 2)
# Smallest number of queries of a test.
_QUERIES = 100


def uneven_worlds(out: Path, quick: bool) -> Iterator[tuple[str, ClosedWorld, list[Record]]]:
    """Yields the closed worlds by name, each with the records of its models, trained or read."""
    for number, (name, closed) in enumerate(GRAPHS.items()):
        setting = Setting(0, 0, 1, (0.9,), number + 1, _LABELS)
        place = name.replace(" ", "-")
        yield name, *trained_on(place, closed, setting, out, quick=quick)[0]
    for name, setting in _FAMILIES.items():
        yield name, *trained(name.replace(" ", "-"), setting, out, quick=quick)[0]


def uneven_rows(
    name: str, world: ClosedWorld, recorded: list[Record], *, quick: bool, seed: int = 0
) -> Iterator[tuple[float, pl.DataFrame]]:
    """Yields audits of tests of every kind, deviation and sparsity, with the share of the work that is done.

    Args:
        name: name of the world.
        world, recorded: a world and its records from `uneven_worlds`.
        quick: whether to use one deviation and one sparsity only.
        seed: seed of the missing facts.
    """
    found = systems(world, recorded, seed)
    chooser = recorded[0].score[-1].astype(float)
    deviations, sparsities = ((1.0,), (0.5,)) if quick else (DEVIATIONS, SPARSITIES)
    every = [
        (kind, deviation, sparsity)
        for kind in KINDS
        for deviation in ((0.0,) if kind == "edge" else deviations)
        for sparsity in sparsities
    ]
    for done, (kind, deviation, sparsity) in enumerate(every, 1):
        there = present(world, chooser, kind, deviation, sparsity, seed)
        rows = [] if there is None else measured(world, found, there)
        named = {"world": name, "missing": kind, "deviation": deviation, "asked": sparsity}
        yield done / len(every), pl.DataFrame([named | row for row in rows], infer_schema_length=None)


class Systems(NamedTuple):
    """Models of a world.

    Attributes:
        full: ranks of the models on the full test.
        trained: whether each model was trained; otherwise it is a scorer.
    """

    full: FullTest
    trained: np.ndarray


def systems(world: ClosedWorld, recorded: list[Record], seed: int = 0) -> Systems:
    """Three checkpoints of each trained model, and scorers that know only the answers of a query.

    A scorer gives each candidate a normal score, and a higher mean to answers. Whether it retrieves an answer
    has no correlation with the number of answers, but the answers to one query share their competing
    candidates.
    """
    every = joined(world, recorded)
    lengths = [len(one.step) for one in recorded]
    last = np.cumsum(lengths) - 1
    chosen = np.concatenate(
        [
            end - np.arange(length)[:: max(length // 3, 1)][:3]
            for end, length in zip(last, lengths, strict=True)
        ]
    )
    rng = np.random.default_rng(seed)
    others = np.sort(rng.normal(size=(world.num_queries, world.graph.num_entities)), axis=1)
    low, score = [], []
    for strength in _STRENGTHS:
        own = rng.normal(strength, size=len(world.query))
        behind = np.empty(len(own), np.int64)
        for query in np.split(np.arange(len(own)), np.flatnonzero(np.diff(world.query)) + 1):
            behind[query] = np.searchsorted(others[world.query[query[0]]], own[query])
        low.append(others.shape[1] - behind + 1)
        score.append(own)
    full = full_test(
        world.query,
        np.concatenate([every.optimistic[chosen], np.stack(low)]),
        np.concatenate([every.pessimistic[chosen], np.stack(low)]),
        np.concatenate([every.score[chosen], np.stack(score)]),
        fact=world.triples,
    )
    return Systems(full, np.arange(len(full.optimistic)) < len(chosen))


def present(
    world: ClosedWorld, chooser: np.ndarray, kind: str, deviation: float, sparsity: float, seed: int
) -> np.ndarray | None:
    """Mask of the answers that a test of some sparsity has; None if no rates give that sparsity.

    Args:
        world: world of the queries.
        chooser: score of each answer by the model that chooses.
        kind: one of `KINDS`.
        deviation: standard deviation of the logits of the missing rates.
        sparsity: share of missing answers over the queries that keep an answer.
        seed: seed of the draws.
    """
    rng = np.random.default_rng([seed, KINDS.index(kind), round(10 * deviation), round(100 * sparsity)])
    query, size = world.query, np.bincount(world.query)
    apart = deviation * _effect(world, chooser, kind, size, rng)
    uniform = rng.uniform(size=len(query))

    def gone(level: float) -> tuple[np.ndarray, float]:
        missing = uniform < special.expit(level + apart)
        asked = (np.bincount(query, ~missing) > 0)[query]
        return missing, (missing & asked).sum() / max(asked.sum(), 1) - sparsity

    # At levels where most queries lose all answers, the sparsity of the rest falls again; take the first
    # level.
    levels = np.linspace(-8, 8, 65)
    enough = next((level for level in levels if gone(level)[1] >= 0), None)
    if enough is None:
        return None
    low, high = enough - (levels[1] - levels[0]), enough
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if gone(middle)[1] < 0 else (low, middle)
    found = ~gone(high)[0]
    return found if (np.bincount(query, found) > 0).sum() >= _QUERIES else None


def _effect(
    world: ClosedWorld, chooser: np.ndarray, kind: str, size: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Effect of each answer on the logit of its missing rate, with unit variance."""
    query, (head, relation, tail) = world.query, world.triples.T
    if kind == "query":
        return rng.normal(size=len(size))[query]
    if kind == "entity":
        own = rng.normal(size=world.graph.num_entities)
        return (own[head] + own[tail]) / np.sqrt(2)
    if kind == "relation":
        return _standard(rng.normal(size=world.graph.num_relations))[relation]
    if kind in ("larger", "smaller"):
        return (1 if kind == "larger" else -1) * _standard(np.log(size))[query]
    if kind == "popularity":
        facts = np.concatenate([world.graph.splits["train"], world.triples])
        degree = np.bincount(facts[:, [0, 2]].ravel(), minlength=world.graph.num_entities)
        return -_standard(np.log(degree[tail]))
    if kind == "model":
        place = np.lexsort((chooser, query))
        rank = np.empty(len(place))
        rank[place] = np.arange(len(place))
        within = (rank - (np.cumsum(size) - size)[query] + 0.5) / size[query]
        return -_standard(within)
    return np.zeros(len(query))


def _standard(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / max(values.std(), 1e-9)


def measured(world: ClosedWorld, found: Systems, there: np.ndarray) -> list[dict[str, Any]]:
    """An audit of each system on a test, and the truth.

    The audit is told the sparsity and a correlation of 0, and once more a correlation known to `NEAR`. The
    missing rates are either the same for all queries, or within the range of an audit that knows nothing of
    them.
    """
    full, query = found.full, world.query
    low, high = thin(full, there)
    known = np.bincount(query[there], minlength=world.num_queries)
    whole = (known > 0)[query]
    counts = known[known > 0]
    sizes = np.bincount(query[whole], minlength=world.num_queries)[known > 0]
    missing = whole & ~there
    sparsity = missing.sum() / whole.sum()
    first = full.optimistic == 1
    l1, l2, strength = (first[:, part].mean(1) for part in (missing, there, whole))
    with np.errstate(invalid="ignore", divide="ignore"):
        rho = (l1 - l2) * np.sqrt(sparsity * (1 - sparsity) / (strength * (1 - strength)))
    rho = np.nan_to_num(rho)
    candidates = num_candidates(world.known, world.triples)[whole]
    entities = int(np.median(candidates) + np.median(np.repeat(sizes, sizes))) - 1
    numbers, queries = np.unique(counts, return_counts=True)
    rows = []
    for name in METRICS:
        weight = rank_weight(name)
        sparse = _sums(tie_expectation(weight, low, high), counts)
        truth = _sums(tie_expectation(weight, full.optimistic[:, whole], full.pessimistic[:, whole]), sizes)
        for average in ("answers", "queries"):
            by_answer = average == "answers"
            value, of = (
                (sparse, counts.astype(float)) if by_answer else (sparse / counts, np.ones(len(counts)))
            )
            true = truth.sum(1) / sizes.sum() if by_answer else (truth / sizes).mean(1)
            share = queries * numbers if by_answer else queries
            answers = Answers(numbers, share / share.sum(), entities, queries)
            told = {
                "even": _told(name, value, of, answers, sparsity, (EVEN,), np.zeros(len(rho))),
                "range": _told(name, value, of, answers, sparsity, _RANGE, np.zeros(len(rho))),
            }
            if (np.abs(rho) > NEAR / 2).any():
                told["known"] = _told(name, value, of, answers, sparsity, _RANGE, rho, NEAR)
            for i in np.flatnonzero(true > _LEAST):
                row: dict[str, Any] = {"metric": name, "average": average, "system": int(i), "true": true[i]}
                row |= {"trained": bool(found.trained[i]), "correlation": rho[i], "sparsity": sparsity}
                for label, (below, above) in told.items():
                    possible = bool(np.isfinite(below[i]))
                    held = below[i] - 1e-9 <= true[i] <= above[i] + 1e-9
                    row |= {f"{label}_possible": possible, f"{label}_held": bool(held) if possible else None}
                    row |= {f"{label}_width": above[i] - below[i] if possible else None}
                rows.append(row)
    return rows


_RANGE = unevenness_points(*UNEVEN)


def _sums(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return np.add.reduceat(values, np.cumsum(counts) - counts, axis=1)


def _told(
    name: str,
    value: np.ndarray,
    weight: np.ndarray,
    answers: Answers,
    sparsity: float,
    unevenness: tuple[Unevenness, ...],
    rho: np.ndarray,
    near: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the full-test interval of each system, over correlations within `near` of its own."""
    each = [observed(value, weight, answers._replace(unevenness=one)) for one in unevenness]
    effective = float(weight.sum() ** 2 / (weight @ weight))
    errors = np.sqrt(np.diag(each[0].sampling)).tolist()
    means = [
        BoundedMean(mean, error, 0.0, 1.0, effective, True)
        for mean, error in zip(each[0].value.tolist(), errors, strict=True)
    ]
    limits = intervals(means, 0.95)
    grid = _CORRELATIONS if near else np.zeros(1)
    metric = rank_weight(name)
    fulls = [full_metrics(name, metric, one, np.array([sparsity]), grid) for one in each]
    low, high = full_ranges(name, each, fulls, np.array([sparsity]), 0.95, limits)
    within = np.abs(grid - rho[:, None]) <= near + 1e-9
    low, high = (np.where(within, ends[:, 0], np.nan) for ends in (low, high))
    return np.fmin.reduce(low, 1), np.fmax.reduce(high, 1)


def cells(rows: pl.DataFrame) -> pl.DataFrame:
    """Coverage of the full metric by the intervals, by world, kind, deviation, metric and average.

    `independent` counts the systems whose true correlation is within `NEAR` of 0. For these systems,
    `impossible` is the share for which the audit calls the true sparsity impossible; `held` and `width`
    describe the intervals of an audit that knows only the sparsity, `held_even` and `width_even` those of an
    audit that is also told that all queries have one missing rate. `held_known` and `width_known` describe
    all systems, with an audit that knows the correlation to `NEAR`.
    """
    near = pl.col("correlation").abs() <= NEAR
    return rows.group_by("world", "missing", "deviation", "metric", "average", maintain_order=True).agg(
        pl.len().alias("systems"),
        near.sum().alias("independent"),
        pl.col("correlation").mean(),
        (~pl.col("range_possible")).filter(near).mean().alias("impossible"),
        pl.col("range_held").filter(near).mean().alias("held"),
        pl.col("range_width").filter(near).median().alias("width"),
        pl.col("even_held").filter(near).mean().alias("held_even"),
        pl.col("even_width").filter(near).median().alias("width_even"),
        pl.col("known_held").mean().alias("held_known"),
        pl.col("known_width").median().alias("width_known"),
    )
