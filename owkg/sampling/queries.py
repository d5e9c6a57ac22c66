"""Queries of a closed world: the numbers of their answers in each part, and the drawn ones."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int8, Int32, Int64

PARTS = ("train", "valid", "test_sparse", "missing")
"""Parts of the facts; the part of a fact is the index of its name."""

TRAIN, VALID, SPARSE, MISSING = range(len(PARTS))


class SampledQueries(NamedTuple):
    """Queries (head, relation, ?) and (?, relation, tail), with the numbers of their answers.

    Attributes:
        asks_tail: whether the tail is asked for.
        entity, relation: ids of the known entity and the relation.
        full, sparse, train: numbers of answers in the full test, the sparse test and the training set.
    """

    asks_tail: Bool[np.ndarray, "queries"]
    entity: Int32[np.ndarray, "queries"]
    relation: Int32[np.ndarray, "queries"]
    full: Int32[np.ndarray, "queries"]
    sparse: Int32[np.ndarray, "queries"]
    train: Int32[np.ndarray, "queries"]


def all_queries(
    facts: Int32[np.ndarray, "facts 3"],
    part: Int8[np.ndarray, "facts"],
    num_relations: int,
    *,
    both_sides: bool,
) -> SampledQueries:
    """Queries that some of the sorted facts answers, sorted: first queries for tails, then for heads."""
    asks_tail = (True, False) if both_sides else (True,)
    sides = [_one_side(facts, part, num_relations, tail) for tail in asks_tail]
    return SampledQueries(*(np.concatenate(columns) for columns in zip(*sides, strict=True)))


def eligible(queries: SampledQueries, min_answers: int) -> Bool[np.ndarray, "queries"]:
    """Whether each query has at least `min_answers` full-test answers and at least one sparse-test answer."""
    return (queries.full >= min_answers) & (queries.sparse >= 1)


def drawn(
    queries: SampledQueries,
    priority: Float64[np.ndarray, "queries"],
    *,
    min_answers: int,
    num_queries: int | None,
) -> SampledQueries:
    """Eligible queries with the smallest `priority`, in the order of `queries`.

    Priorities are random numbers, one for each query. If they are shared between similar worlds, mostly equal
    queries are drawn. None for `num_queries` draws all.

    Raises:
        ValueError: if too few queries are eligible, with their number and a `min_answers` that leaves enough.
    """
    can = np.flatnonzero(eligible(queries, min_answers))
    if len(can) < (num_queries or 1):
        raise ValueError(_too_few(queries, len(can), min_answers, num_queries))
    chosen = np.sort(can[np.argsort(priority[can], kind="stable")[:num_queries]])
    return SampledQueries(*(column[chosen] for column in queries))


def answers(
    facts: Int32[np.ndarray, "facts 3"], queries: SampledQueries, num_relations: int
) -> tuple[Int64[np.ndarray, "answers"], Int64[np.ndarray, "answers"]]:
    """Number of the query and number of the fact, sorted, for sorted `facts` that answer drawn `queries`."""
    pairs = []
    for tail in (True, False):
        of_side = np.flatnonzero(queries.asks_tail == tail)
        if of_side.size:
            keys = queries.entity[of_side].astype(np.int64) * num_relations + queries.relation[of_side]
            key = _keys(facts, num_relations, tail)
            position = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            fact = np.flatnonzero(keys[position] == key)
            order = np.argsort(position[fact], kind="stable")
            pairs.append((of_side[position[fact]][order], fact[order]))
    none = (np.empty(0, np.int64), np.empty(0, np.int64))
    query, fact = (np.concatenate(columns) for columns in zip(none, *pairs, strict=True))
    return query, fact


def _keys(facts: np.ndarray, num_relations: int, tail: bool) -> np.ndarray:
    """Key of the query that each fact answers; increasing if tails are asked for."""
    return facts[:, 0 if tail else 2].astype(np.int64) * num_relations + facts[:, 1]


def _one_side(facts: np.ndarray, part: np.ndarray, num_relations: int, tail: bool) -> SampledQueries:
    """Queries on one side."""
    key = _keys(facts, num_relations, tail)
    if not tail:
        order = np.argsort(key, kind="stable")
        key, part = key[order], part[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))

    def count(mask: np.ndarray) -> np.ndarray:
        return np.add.reduceat(mask, first, dtype=np.int32)

    entity, relation = (ids.astype(np.int32) for ids in np.divmod(key[first], num_relations))
    sparse = count(part == SPARSE)
    full = sparse + count(part == MISSING)
    return SampledQueries(np.full(len(first), tail), entity, relation, full, sparse, count(part == TRAIN))


def _too_few(queries: SampledQueries, found: int, min_answers: int, num_queries: int | None) -> str:
    """Message for too few eligible queries."""
    full = np.sort(queries.full[queries.sparse >= 1])[::-1]
    wanted = num_queries or 1
    enough = int(full[wanted - 1]) if len(full) >= wanted else 0
    hint = f"with `min_answers` {enough}" if enough else "whatever `min_answers`"
    return (
        f"`num_queries` must be at most {found}, the number of queries with at least {min_answers} full-test "
        f"answers and a sparse-test answer, got {num_queries or 'all'}; {hint} there are "
        f"{np.count_nonzero(full >= enough)}."
    )
