"""Unbiased estimates of rank metrics that score a small share of all candidates."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Float, Int, UInt32

from owkg import checks
from owkg.errors import ArgumentError
from owkg.evaluation.correction import Clocks, Weight, block_edges, corrections, reach_chances, weights_named
from owkg.evaluation.jobs import COLUMNS, ROWS, Job, JobScorer, tiles
from owkg.evaluation.random_order import RandomOrder
from owkg.evaluation.table import asked_sides, check_sizes
from owkg.evaluation.typical import TypicalCandidates, typical_candidates
from owkg.files.storage import free_memory
from owkg.keys import settled
from owkg.kg import KnownAnswers, answer_ranges, joined_splits, known_answers
from owkg.kg.graph import KnowledgeGraph, graph_checked
from owkg.kg.triples import query_ids
from owkg.models import SIDES, Trained
from owkg.ranks.build import default_filters, filter_facts
from owkg.stats.interval import student

_TIED = {"optimistic": 0.0, "realistic": 0.5, "pessimistic": 1.0}

# Ranking tasks per batch, which share an order of the candidates: at most, number of batches aimed at, and at
# least.
_BATCH, _BATCHES, _FEWEST = 1024, 16, 64
_HALVES = 2
_NO_PAIRS = np.empty((2, 0), np.int64)


class SampledEvaluation(NamedTuple):
    """Estimates of metrics, and the share of scores that they cost.

    Attributes:
        values: one row per side (head, tail, both) and metric, with columns side, ties, metric, value,
            ci_low, ci_high, full_low, full_high, standard_error, sampling_error (from the candidates that are
            not scored), query_error (from the choice of queries), tasks and queries. The interval [ci_low,
            ci_high] is for other queries of the same kind and uses standard_error, which combines both
            errors. The interval [full_low, full_high] is for full evaluation of these queries and uses the
            sampling error alone; it is null if that error is 0 because the search found nothing. An unbiased
            estimate may be below 0 or above 1.
        typical_share: scores computed for typical candidates, as a share of all scores.
        sampled_share: scores computed for other candidates, as a share of all scores.
    """

    values: pl.DataFrame
    typical_share: float
    sampled_share: float


class _Tasks(NamedTuple):
    """Ranking tasks of one side, ordered by relation and query.

    Attributes:
        side: side to rank, "head" or "tail".
        entity, relation, answer: ids, [tasks].
        query: numbers of the queries, increasing, [tasks].
        batch: numbers of the batches, increasing, [tasks]; all tasks of a query are in one batch.
        known: known answers to remove from the candidates.
        typical: typical candidates, including all known answers.
        score: scorer of jobs.
    """

    side: str
    entity: Int[np.ndarray, "tasks"]
    relation: Int[np.ndarray, "tasks"]
    answer: Int[np.ndarray, "tasks"]
    query: Int[np.ndarray, "tasks"]
    batch: Int[np.ndarray, "tasks"]
    known: KnownAnswers
    typical: TypicalCandidates
    score: JobScorer


@settled()
def sampled(
    trained: Trained,
    graph: KnowledgeGraph,
    metrics: str | Sequence[str] = ("mrr", "hits@10"),
    *,
    share: float = 0.01,
    more: float = 0.02,
    split: str = "test",
    filter_splits: Sequence[str] | None = None,
    sides: str | Sequence[str] = SIDES,
    ties: str = "realistic",
    ci: float = 0.95,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> SampledEvaluation:
    """Unbiased estimates of rank metrics over all candidates, from a small share of the scores.

    The model scores all candidates that are typical of a relation and side. The contribution of the other
    candidates to a metric is estimated by a search through them in random order with random stopping
    (`owkg.evaluation.correction`). The mean over seeds is the metric of full evaluation, whatever the model
    and whichever candidates are typical. Each batch of ranking tasks is sampled twice, with independent
    orders; the difference of the two results gives the sampling error.

    Args:
        trained: model with its parameters.
        graph: KnowledgeGraph with the ids of the parameters.
        metrics: names of metrics: mrr, p-mrr@P, log-mrr, hits@K. Default mrr and hits@10.
        share: approximate share of the scores to compute outside the typical candidates, in (0, 1]. Default
            0.01.
        more: number of typical candidates in addition to the entities that a fact has at the relation and
            side, as a share of all entities. Default 0.02.
        split: split to rank. Default "test".
        filter_splits: splits whose other answers leave the candidates; an empty list gives raw ranks. None:
            train, valid and test, where the graph has them, and `split`.
        sides: sides to rank, "head", "tail" or both (default).
        ties: tie rule, "optimistic", "realistic" (default) or "pessimistic".
        ci: level of the intervals. Default 0.95.
        seed: seed of the orders and of the stopping.
        on_progress: function called with (done, total), in thousandths of a pass.

    Raises:
        ValueError: if a metric has no such estimate, an argument is out of range, the parameters do not have
            the size of the graph, the typical candidates do not fit in memory, or a score is not finite.
    """
    graph = graph_checked(graph)
    check_sizes(trained, graph)
    weights = weights_named(checks.names("metrics", metrics))
    if not isinstance(share, int | float) or not 0 < share <= 1:
        raise ArgumentError("share", f"must be in (0, 1], got {share!r}.")
    if ties not in _TIED:
        raise ArgumentError("ties", f"must be one of {', '.join(_TIED)}, got {ties!r}.")
    more = checks.real_number("more", more, 0, 1)
    checks.level("ci", ci)
    number = checks.seed("seed", seed)
    filters = default_filters(graph, split) if filter_splits is None else filter_splits
    sides = asked_sides(sides)
    triples, facts = joined_splits(graph, [split]), filter_facts(graph, filters)
    if not len(triples):
        raise ArgumentError("split", f"must have triples to rank, got {split!r}, which has none.")
    seen = np.concatenate([facts, triples, graph.splits.get("train", triples[:0])])
    _require_memory(graph, triples, more)
    typical = typical_candidates(seen, more=more, relations=np.unique(triples[:, 1]), **graph.sizes)
    edges = block_edges(graph.num_entities)
    trained, found, full, some = trained.encoded(), [], 0, 0
    for i, side in enumerate(sides):
        known = known_answers(facts if filters else facts[:0], side, **graph.sizes, asked=triples)
        tasks = _tasks(trained, triples, side, known, typical)
        rank, scored = _typical_ranks(tasks, ties)
        full += scored
        chances = reach_chances(weights, rank, edges, share / _HALVES)
        halves = []
        for half in range(_HALVES):
            told = partial(_told, on_progress, i * _HALVES + half, len(sides) * _HALVES)
            seeds = np.random.SeedSequence([number, SIDES.index(side), half])
            clocks, scored = _searched(tasks, seeds, chances, edges, rank, weights, ties, told)
            some += scored
            lost = [corrections(one, rank, clocks, chances, ties) for one in weights]
            halves.append([one.at(rank) - own for one, own in zip(weights, lost, strict=True)])
        found.append((side, tasks, np.array(halves)))
    total = graph.num_entities * len(triples) * len(sides)
    groups = [[one] for one in found] + ([found] if len(found) > 1 else [])
    rows = []
    for group in groups:
        name = group[0][0] if len(group) == 1 else "both"
        for m, weight in enumerate(weights):
            parts = [(tasks.query, tasks.batch, halves[:, m]) for _, tasks, halves in group]
            rows.append({"side": name, "ties": ties, "metric": weight.name} | _summary(parts, ci))
    ends = pl.Schema({"full_low": pl.Float64, "full_high": pl.Float64})
    return SampledEvaluation(pl.DataFrame(rows, schema_overrides=ends), full / total, some / total)


def _require_memory(graph: KnowledgeGraph, triples: np.ndarray, more: float) -> None:
    """Raises ValueError if the typical candidates, as lists and as bits, do not fit in memory."""
    slots, free = len(SIDES) * len(np.unique(triples[:, 1])), free_memory()
    needed = slots * int(more * graph.num_entities) * 4 + graph.num_relations * graph.num_entities // 8
    checks.memory("more", needed, free, f"the typical candidates of {slots:,} relations and sides")


def _told(on_progress: Callable[[int, int], None] | None, part: int, parts: int, done: float) -> None:
    if on_progress is not None:
        on_progress(round(1000 * (part + done)), 1000 * parts)


def _tasks(
    trained: Trained, triples: np.ndarray, side: str, known: KnownAnswers, typical: TypicalCandidates
) -> _Tasks:
    entity, relation, _ = query_ids(triples, side)
    parts = query_ids(triples[np.lexsort((entity, relation))], side)
    entity, relation, answer = parts
    new = np.append(True, (np.diff(relation) != 0) | (np.diff(entity) != 0))
    begins = np.flatnonzero(new)
    batch = _batches(begins, len(answer))
    score = JobScorer(trained, side, *parts)
    return _Tasks(side, *parts, np.cumsum(new) - 1, batch, known, typical, score)


def _batches(begins: Int[np.ndarray, "queries"], tasks: int) -> Int[np.ndarray, "tasks"]:
    """Batch of each task; a batch begins with the first query at or after each multiple of the batch size.

    Args:
        begins: first task of each query.
        tasks: number of tasks.
    """
    size = min(_BATCH, max(_FEWEST, tasks // _BATCHES))
    marks = np.searchsorted(begins, np.arange(0, tasks, size))
    starts = np.unique(begins[marks[marks < len(begins)]])
    return np.searchsorted(starts, np.arange(tasks), "right") - 1


def _typical_ranks(tasks: _Tasks, ties: str) -> tuple[Float[np.ndarray, "tasks"], int]:
    """(Rank of each answer among the typical candidates, number of computed scores)."""
    rank, scored = np.ones(len(tasks.answer)), 0
    for job, found in tasks.score(_typical_jobs(tasks)):
        rank[job.rows] += found.higher + _TIED[ties] * found.tied
        scored += len(job.rows) * len(job.columns)
    return rank, scored


def _typical_jobs(tasks: _Tasks) -> Iterator[Job]:
    """Jobs of every task against the typical candidates of its relation, without known answers and itself."""
    start, stop = answer_ranges(tasks.known, tasks.entity, tasks.relation)
    bounds = np.flatnonzero(np.append(True, np.diff(tasks.relation) != 0))
    for own in np.split(np.arange(len(tasks.answer)), bounds[1:]):
        inside = tasks.typical.of(int(tasks.relation[own[0]]), tasks.side)
        for _, rows in tiles(own, ROWS):
            sizes = stop[rows] - start[rows]
            within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            known = tasks.known.answers[np.repeat(start[rows], sizes) + within]
            row = np.append(np.arange(len(rows)), np.repeat(np.arange(len(rows)), sizes))
            place = np.searchsorted(inside, np.append(tasks.answer[rows], known))
            for begin, columns in tiles(inside, COLUMNS):
                here = (place >= begin) & (place < begin + len(columns))
                yield Job(rows, columns, np.stack([row[here], place[here] - begin]))


def _searched(
    tasks: _Tasks,
    seeds: np.random.SeedSequence,
    chances: Float[np.ndarray, "tasks blocks"],
    edges: Int[np.ndarray, "edges"],
    rank: Float[np.ndarray, "tasks"],
    weights: Sequence[Weight],
    ties: str,
    told: Callable[[float], None],
) -> tuple[Clocks, int]:
    """Candidates found among those that are not typical, and the number of computed scores."""
    size = int(edges[-1])
    stops, *own = seeds.spawn(int(tasks.batch[-1]) + 2)
    orders = [RandomOrder(np.random.default_rng(one), size) for one in own]
    reach = (chances > np.random.default_rng(stops).random(len(rank))[:, None]).sum(1)
    excluded = _bits(tasks)
    higher, tied, passed = np.full(len(rank), np.inf), np.full(len(rank), np.inf), rank.copy()
    higher_block, tied_block = np.zeros((2, len(rank)), np.int64)
    hit = {one.hits: np.full(len(rank), -1) for one in weights if one.hits}
    mixtures = len(hit) < len(weights)
    scored = 0
    for block, (begin, end) in enumerate(pairwise(edges)):
        told(float(begin) / size)
        wanted = np.zeros(len(rank), bool)
        if mixtures:
            wanted = _open(higher, tied, float(begin) / size, ties)
        for k, crossed in hit.items():
            wanted |= (rank <= k) & (crossed < 0)
        active = np.flatnonzero((reach > block) & wanted)
        drawn = {}
        for batch in np.unique(tasks.batch[active]):
            orders[batch].skip_to(int(begin))
            drawn[int(batch)] = orders[batch].next(int(end - begin))
        jobs = _block_jobs(tasks, active, {batch: ids for batch, (ids, _) in drawn.items()})
        places: list[tuple[int, int]] = []
        for job, found in tasks.score(_noted(jobs, places), excluded):
            batch, offset = places.pop(0)
            clocks = drawn[batch][1]
            for first, clock, number in (
                (found.first_higher, higher, higher_block),
                (found.first_tied, tied, tied_block),
            ):
                there = (first < COLUMNS) & np.isinf(clock[job.rows])
                at = job.rows[there]
                clock[at], number[at] = clocks[offset + first[there]], block
            passed[job.rows] += found.higher + _TIED[ties] * found.tied
            scored += len(job.rows) * len(job.columns)
        for k, crossed in hit.items():
            crossed[active[(rank[active] <= k) & (crossed[active] < 0) & (passed[active] > k)]] = block
    told(1.0)
    return Clocks(higher, tied, higher_block, tied_block, hit), scored


def _open(higher: np.ndarray, tied: np.ndarray, begin: float, ties: str) -> np.ndarray:
    """Whether candidates with clocks above `begin` can still contribute to a mixture."""
    if ties == "optimistic":
        return np.isinf(higher)
    if ties == "pessimistic":
        return np.isinf(higher) & np.isinf(tied)
    return np.isinf(higher) & (np.isinf(tied) | ((1 - np.minimum(tied, 1)) ** 2 < 1 - begin))


def _bits(tasks: _Tasks) -> UInt32[np.ndarray, "relations words"]:
    """Typical candidates of each relation among the tasks, as bits."""
    relations, size = tasks.typical.num_relations, tasks.typical.num_entities
    bits = np.zeros((relations, -(-size // 32)), np.uint32)
    for relation in np.unique(tasks.relation):
        inside = tasks.typical.of(int(relation), tasks.side).astype(np.int64)
        np.bitwise_or.at(bits[relation], inside // 32, np.uint32(1) << (inside % 32).astype(np.uint32))
    return bits


def _block_jobs(
    tasks: _Tasks, active: np.ndarray, drawn: dict[int, np.ndarray]
) -> Iterator[tuple[Job, tuple[int, int]]]:
    """Jobs of the active tasks of each batch against its drawn entities, and (batch, start of columns)."""
    batch_of = tasks.batch[active]
    for batch, entities in drawn.items():
        for _, rows in tiles(active[batch_of == batch], ROWS):
            for begin, columns in tiles(entities, COLUMNS):
                yield Job(rows, columns, _NO_PAIRS), (batch, begin)


def _noted(jobs: Iterator[tuple[Job, tuple[int, int]]], places: list[tuple[int, int]]) -> Iterator[Job]:
    """Jobs; the (batch, start) of each is appended to `places`."""
    for job, place in jobs:
        places.append(place)
        yield job


def _summary(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], ci: float) -> dict[str, Any]:
    """Value, errors and interval of a metric, from its parts: (query, batch, both halves) of the tasks."""
    mean = np.concatenate([halves.mean(0) for *_, halves in parts])
    value, size = float(mean.mean()), len(mean)
    sampling, scatter, fourth, noise, queries = [], 0.0, 0.0, 0.0, 0
    for query, batch, halves in parts:
        apart = (halves[0] - halves[1]) / 2
        sampling.append(np.bincount(batch, apart) ** 2)
        own = np.bincount(query, halves.mean(0) - value) ** 2
        scatter += float(own.sum())
        fourth += float((own**2).sum())
        noise += float((np.bincount(query, apart) ** 2).sum())
        queries += len(own)
    each = np.concatenate(sampling)
    of_sampling = float(each.sum()) / size**2
    of_queries = max(0.0, scatter * queries / max(queries - 1, 1) - noise) / size**2
    error = np.sqrt(of_sampling + of_queries)
    # Degrees of freedom of a sum of squares: twice its square over the sum of fourth powers, which bounds its
    # variance. Few batches find anything, so their degrees of freedom are halved: the result is 2 if exactly
    # two batches contribute, equally.
    of_batches = float(each.sum()) ** 2 / max(float((each**2).sum()), 1e-300)
    of_others = min(2 * scatter**2 / max(fourth, 1e-300), max(queries - 1, 1))
    # Satterthwaite's degrees of freedom for both errors together.
    parts_squared = of_sampling**2 / max(of_batches, 1e-300) + of_queries**2 / max(of_others, 1e-300)
    freedom = (of_sampling + of_queries) ** 2 / max(parts_squared, 1e-300)
    reach = float(student(ci, freedom + 1)) * error
    alone = min(reach, float(student(ci, of_batches + 1)) * np.sqrt(of_sampling)) if of_sampling else None
    return {
        "value": value,
        "ci_low": value - reach,
        "ci_high": value + reach,
        "full_low": None if alone is None else value - alone,
        "full_high": None if alone is None else value + alone,
        "standard_error": float(error),
        "sampling_error": float(np.sqrt(of_sampling)),
        "query_error": float(np.sqrt(of_queries)),
        "tasks": size,
        "queries": queries,
    }
