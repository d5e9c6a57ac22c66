"""Known answers of every query, which filtering removes from the candidates."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int32, Int64
from numpy.typing import ArrayLike

from owkg import checks
from owkg.kg.triples import ids, query_ids, side_checked, size, triples_checked
from owkg.ordered import changes, located

# Entries of a table of queries for each query, and the logarithm of its largest size.
_ENTRIES, _MOST_BITS = 64, 26


class KnownAnswers(NamedTuple):
    """Distinct answers of every query (head, relation, ?) or (?, relation, tail), in CSR form.

    The answers of query i are `answers[offsets[i]:offsets[i + 1]]`. Memory is linear in the number of facts.

    Attributes:
        side: predicted side, "head" or "tail".
        keys: keys of the queries, increasing: known entity * num_relations + relation.
        offsets: index of the first answer of each query, and finally the number of facts.
        answers: entity ids, increasing within a query.
        num_entities, num_relations: sizes of the graph.
    """

    side: str
    keys: Int64[np.ndarray, "queries"]
    offsets: Int64[np.ndarray, "queries+1"]
    answers: Int32[np.ndarray, "facts"]
    num_entities: int
    num_relations: int


def known_answers(
    triples: ArrayLike, side: str, *, num_entities: int, num_relations: int, asked: ArrayLike | None = None
) -> KnownAnswers:
    """Answers of every query that some triple answers; repeated triples count once.

    Args:
        triples: head, relation and tail ids, int [triples, 3].
        side: predicted side, "head" or "tail".
        num_entities, num_relations: sizes of the graph.
        asked: int [asked, 3], triples whose queries have all their answers. Most other queries are then left
            out, as if nothing answered them, which is faster if few of many queries are asked. Default: all
            queries.

    Raises:
        ValueError: if an id is out of range, or `side` is neither.

    Examples:
        >>> known = known_answers([[0, 0, 1], [0, 0, 2]], "tail", num_entities=3, num_relations=1)
        >>> known.keys, known.offsets, known.answers
        (array([0]), array([0, 2]), array([1, 2], dtype=int32))
    """
    side = side_checked(side)
    entities, relations = size("num_entities", num_entities), size("num_relations", num_relations)
    entity, relation, answer = query_ids(triples_checked(triples, entities, relations), side)
    query = _keys(entity, relation, relations)
    if asked is not None:
        wanted = query_ids(triples_checked(asked, entities, relations, name="asked"), side)
        kept = _may_be_among(query, _keys(*wanted[:2], relations))
        query, answer = query[kept], answer[kept]
    query, answer = _distinct(query, answer)
    begins = np.flatnonzero(changes(query))
    offsets = np.append(begins, len(query))
    return KnownAnswers(side, query[begins], offsets, answer, entities, relations)


def answer_ranges(
    known: KnownAnswers, entity: ArrayLike, relation: ArrayLike
) -> tuple[Int64[np.ndarray, "..."], Int64[np.ndarray, "..."]]:
    """Ranges (start, stop) of the answers of each query in `known.answers`; equal if none is known.

    Args:
        known: known answers.
        entity, relation: ids of each query, [queries].

    Raises:
        ValueError: if an id is out of range, or the shapes do not broadcast.
    """
    position, found = _positions(known, entity, relation)
    start = np.asarray(known.offsets[position])
    return start, np.where(found, known.offsets[np.minimum(position + 1, len(known.keys))], start)


def is_known(known: KnownAnswers, triples: ArrayLike) -> Bool[np.ndarray, "triples"]:
    """Whether each of `triples`, int [triples, 3], is among the facts of `known`."""
    return filtered_candidates(known, triples)[1]


def num_candidates(known: KnownAnswers, triples: ArrayLike) -> Int64[np.ndarray, "triples"]:
    """Number of filtered candidates of each of `triples`, int [triples, 3].

    Candidates are all entities except the other known answers of the query; the answer counts, known or not.

    Raises:
        ValueError: if an id is out of range.

    Examples:
        >>> known = known_answers([[0, 0, 1], [0, 0, 2]], "tail", num_entities=5, num_relations=1)
        >>> num_candidates(known, [[0, 0, 1], [0, 0, 3], [1, 0, 3]])
        array([4, 3, 5])
    """
    return filtered_candidates(known, triples)[0]


def filtered_candidates(
    known: KnownAnswers, triples: ArrayLike
) -> tuple[Int64[np.ndarray, "triples"], Bool[np.ndarray, "triples"]]:
    """`num_candidates` and `is_known` of the same triples, found once."""
    triples = triples_checked(triples, known.num_entities, known.num_relations)
    entity, relation, answer = query_ids(triples, known.side)
    start, stop = answer_ranges(known, entity, relation)
    stands = _stands(known.answers, start, stop, answer)
    return known.num_entities - (stop - start) + stands, stands


def _keys(entity: np.ndarray, relation: np.ndarray, relations: int) -> Int64[np.ndarray, "triples"]:
    """Key of each query, as in `KnownAnswers.keys`."""
    keys = entity.astype(np.int64)
    keys *= relations
    keys += relation
    return keys


def _may_be_among(keys: Int64[np.ndarray, "keys"], asked: Int64[np.ndarray, "asked"]) -> np.ndarray:
    """Whether each key is in `asked`; true as well for about one in 64 of the others.

    A key is looked up by a hash of it, in a table with 64 times as many entries as are asked. The table has
    at most 2^26 entries, so that of more than 2^20 asked keys more others are kept.
    """
    bits = min(max(_ENTRIES * len(asked), 1).bit_length(), _MOST_BITS)
    there = np.zeros(1 << bits, bool)
    there[_hashed(asked, bits)] = True
    return there[_hashed(keys, bits)]


def _hashed(keys: Int64[np.ndarray, "keys"], bits: int) -> np.ndarray:
    """Numbers below 2^bits: the first bits of the keys times the golden ratio (Knuth, volume 3, 6.4)."""
    mixed = keys.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed >>= np.uint64(64 - bits)
    return mixed.view(np.int64)


def _distinct(query: np.ndarray, answer: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct pairs, ordered by query and answer; `query`, int64, is overwritten."""
    below = int(answer.max(initial=0)) + 1
    if (int(query.max(initial=0)) + 1) * below < 2**63:
        # One number for each pair sorts several times faster than two.
        query *= below
        query += answer
        query.sort()
        pairs = query[changes(query)]
        query = pairs // below
        pairs -= query * below
        return query, pairs.astype(np.int32)
    order = np.lexsort((answer, query))
    query, answer = query[order], answer[order]
    new = changes(query) | changes(answer)
    return query[new], answer[new].astype(np.int32)


def _stands(answers: np.ndarray, start: np.ndarray, stop: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Whether each wanted value is in its increasing range of `answers`, by simultaneous bisection."""
    if not answers.size:
        return np.zeros(np.shape(wanted), bool)
    low, high, last = start, stop, answers.size - 1
    while (searching := low < high).any():
        middle = (low + high) // 2
        below = searching & (answers[np.minimum(middle, last)] < wanted)
        high = np.where(searching & ~below, middle, high)
        low = np.where(below, middle + 1, low)
    return (low < stop) & (answers[np.minimum(low, last)] == wanted)


def _positions(known: KnownAnswers, entity: ArrayLike, relation: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Index of each query in `known.keys`, or where it would be inserted, and whether it is there."""
    entity = ids("entity", entity, known.num_entities)
    relation = ids("relation", relation, known.num_relations)
    checks.common_shape(entity=entity, relation=relation)
    return located(known.keys, np.asarray(entity * known.num_relations + relation))
