"""Popularity: in how many triples an entity, a relation, or both together take part."""

import numpy as np
import polars as pl
from jaxtyping import Int64
from numpy.typing import ArrayLike

from owkg import checks
from owkg.kg.categories import relation_categories
from owkg.kg.graph import KnowledgeGraph
from owkg.kg.triples import MOST_IDS, ids, size, triples_checked
from owkg.ordered import distinct, located, searched


def entity_popularity(triples: ArrayLike, num_entities: int) -> Int64[np.ndarray, "entities"]:
    """In how many of `triples`, int [triples, 3], each entity is; a loop counts once, repeated triples often.

    Raises:
        ValueError: if an id is out of range.

    Examples:
        >>> entity_popularity([[0, 0, 1], [1, 0, 1]], 3)
        array([1, 2, 0])
    """
    entities = size("num_entities", num_entities)
    head, _, tail = triples_checked(triples, entities, None).T
    counts = np.bincount(head, minlength=entities) + np.bincount(tail[tail != head], minlength=entities)
    return counts.astype(np.int64, copy=False)


def relation_popularity(triples: ArrayLike, num_relations: int) -> Int64[np.ndarray, "relations"]:
    """How many of `triples` each relation has; ValueError if an id is out of range."""
    relations = size("num_relations", num_relations)
    counts = np.bincount(triples_checked(triples, None, relations)[:, 1], minlength=relations)
    return counts.astype(np.int64, copy=False)


def entity_relation_popularity(
    triples: ArrayLike, entity: ArrayLike, relation: ArrayLike, *, num_relations: int
) -> Int64[np.ndarray, "..."]:
    """In how many triples an entity takes part with a relation, on either side; a loop counts once.

    Args:
        triples: as in `entity_popularity`.
        entity, relation: ids of each query, [queries]; an entity in no triple counts 0.
        num_relations: of the graph.

    Raises:
        ValueError: if an id is out of range or the shapes do not broadcast.

    Examples:
        >>> entity_relation_popularity([[0, 0, 1], [1, 0, 2], [1, 1, 2]], [1, 0], [0, 1], num_relations=2)
        array([2, 0])
    """
    relations = size("num_relations", num_relations)
    head, through, tail = triples_checked(triples, None, relations).T.astype(np.int64)
    entity, relation = ids("entity", entity, MOST_IDS), ids("relation", relation, relations)
    checks.common_shape(entity=entity, relation=relation)
    other = tail != head
    pairs = np.concatenate([head * relations + through, (tail * relations + through)[other]])
    pairs.sort()
    wanted = entity * relations + relation
    found = searched(pairs, wanted, "right") - searched(pairs, wanted)
    return np.asarray(found, np.int64)


def popularity_columns(
    graph: KnowledgeGraph, triples: np.ndarray, side: np.ndarray, *, train: str = "train"
) -> dict[str, pl.Series]:
    """The columns popularity, relation_popularity and category of a rank table, [triples] each.

    Args:
        graph: that the ids are of, with the split `train`.
        triples: int [triples, 3].
        side: that is predicted of each triple; both popularities of a relation are its triples.
        train: the split that is counted.
    """
    facts, relation = graph.splits[train], triples[:, 1]
    answer = np.where(side == "head", triples[:, 0], triples[:, 2])
    popularity = entity_popularity(facts, graph.num_entities)[answer]
    with_relation = entity_relation_popularity(facts, answer, relation, num_relations=graph.num_relations)
    if (here := side == "relation").any():
        of_relation = relation_popularity(facts, graph.num_relations)[relation]
        popularity, with_relation = (np.where(here, of_relation, x) for x in (popularity, with_relation))
    categories = relation_categories(facts, graph.num_relations)[relation]
    return {
        "popularity": pl.Series(popularity, dtype=pl.Int64),
        "relation_popularity": pl.Series(with_relation, dtype=pl.Int64),
        "category": pl.Series(categories, dtype=pl.String),
    }


HALF_LINKS = ("neither seen", "(r, t) seen", "(h, r) seen", "both seen")
"""Which of (h, r) and (r, t) some fact has."""


def half_links(facts: np.ndarray, triples: np.ndarray, num_relations: int) -> pl.Series:
    """Which half-links of each triple, (h, r) and (r, t), some fact has.

    Args:
        facts: int [facts, 3], such as the training triples.
        triples: int [triples, 3].
        num_relations: of the graph.

    Returns:
        An enum: both seen, (h, r) seen, (r, t) seen, neither seen.
    """
    seen = []
    for end in (0, 2):
        known = distinct(facts[:, end].astype(np.int64) * num_relations + facts[:, 1])
        wanted = triples[:, end].astype(np.int64) * num_relations + triples[:, 1]
        seen.append(located(known, wanted)[1])
    return pl.Series("half_link", HALF_LINKS, dtype=pl.Enum(HALF_LINKS)).gather(2 * seen[0] + seen[1])
