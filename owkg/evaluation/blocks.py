"""Distinct queries of triples, in blocks of one shape."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int32, Int64

from owkg.kg import KnownAnswers
from owkg.kg.triples import query_ids
from owkg.ranks import EntitySets, known_sets


class QueryBlock(NamedTuple):
    """Some queries of one side, with the answers to rank and the known answers.

    All blocks of a side have one shape, so that they share compiled code. Padding repeats query 0 and its
    first answer; padded known answers belong to a query after the last.

    Attributes:
        entity, relation: entity and relation given by each query, [q].
        row: query of each ranked answer, [p].
        answer: entity id of each ranked answer, [p].
        known_row: query of each known answer, [k].
        known: entity id of each known answer, [k].
        copy: number of the copied tile in which the column of each ranked answer is its own, [p].
    """

    entity: Int32[np.ndarray, "q"]
    relation: Int32[np.ndarray, "q"]
    row: Int32[np.ndarray, "p"]
    answer: Int32[np.ndarray, "p"]
    known_row: Int32[np.ndarray, "k"]
    known: Int32[np.ndarray, "k"]
    copy: Int32[np.ndarray, "p"]


def query_blocks(
    triples: Int32[np.ndarray, "triples 3"],
    side: str,
    known: KnownAnswers | None,
    *,
    most: int,
    tile: int | None = None,
) -> list[tuple[Int64[np.ndarray, "p"], QueryBlock]]:
    """List of (rows of triples, block), with at most `most` queries per block, for one `side`.

    A block may rank more answers than it has rows of triples, because of padding; the real answers come
    first. The answers in `known` leave the candidates. `tile` is the number of entities in a tile if answers
    are copied; without it, all numbers of copies are 0.
    """
    if not len(triples):
        return []
    entity, relation, answer = query_ids(triples, side)
    # One number for each query, in the same order, is found much faster than distinct rows of two.
    width = int(relation.max()) + 1
    keys, of = np.unique(entity.astype(np.int64) * width + relation, return_inverse=True)
    queries = np.stack(np.divmod(keys, width), axis=1).astype(np.int32)
    none = np.zeros(len(queries), np.int64)
    sets = EntitySets(none, none, np.empty(0, np.int32)) if known is None else known_sets(known, *queries.T)
    numbers = -(-len(queries) // most)
    # Queries are dealt like cards, most known answers first, so that no block has many more known answers
    # than another.
    hands = np.argsort(sets.start - sets.stop, kind="stable")
    number, place = np.empty((2, len(queries)), np.int64)
    number[hands], place[hands] = np.arange(len(hands)) % numbers, np.arange(len(hands)) // numbers
    rows = [np.flatnonzero(number[of] == i) for i in range(numbers)]
    asked = [hands[i::numbers] for i in range(numbers)]
    # At least two queries, because the product of a single row is rounded differently from the same row among
    # others.
    q, p = max(2, *map(len, asked)), max(map(len, rows))
    k = max(int((sets.stop - sets.start)[hand].sum()) for hand in asked)
    blocks = []
    for own, hand in zip(rows, asked, strict=True):
        entity, relation = _padded(queries[hand].T, q, queries[hand[0]])
        row, ranked = _padded([place[of[own]], answer[own]], p, (0, int(answer[own[0]])))
        known_row, entities = _padded(flat_known(sets, hand), k, (q, 0))
        copy = np.zeros(p, np.int32) if tile is None else _copies(ranked, tile)
        block = QueryBlock(entity, relation, row, ranked, known_row, entities, copy)
        blocks.append((own, block))
    return blocks


def _copies(answer: Int32[np.ndarray, "p"], tile: int) -> Int32[np.ndarray, "p"]:
    """Numbers by which no two different answers have both the number and the column of a tile in common."""
    ids, of = np.unique(answer, return_inverse=True)
    column = ids % tile
    order = np.argsort(column, kind="stable")
    ordered = column[order]
    number = np.empty(len(ids), np.int32)
    number[order] = np.arange(len(ids)) - np.searchsorted(ordered, ordered)
    return number[of]


def flat_known(sets: EntitySets, hand: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(Place in `hand`, entity) of every known answer to the queries whose numbers are in `hand`."""
    sizes = (sets.stop - sets.start)[hand]
    place = np.repeat(np.arange(len(hand)), sizes)
    within = np.arange(len(place)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return place, sets.ids[np.repeat(sets.start[hand], sizes) + within]


def _padded(
    columns: Sequence[np.ndarray] | np.ndarray, size: int, filler: Sequence[int] | np.ndarray
) -> Int32[np.ndarray, "columns size"]:
    """Columns as int32, each padded to `size` with its filler."""
    filled = np.empty((len(columns), size), np.int32)
    for column, values, last in zip(filled, columns, filler, strict=True):
        column[: len(values)], column[len(values) :] = values, last
    return filled
