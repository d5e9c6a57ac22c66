"""Popularity: the number of triples of an entity, of a relation, or of both together."""

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
    """Number of triples of each entity; a loop counts once, repeated triples each time.

    Args:
        triples: head, relation and tail ids, int [triples, 3].
        num_entities: number of entities.

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
    """Number of `triples` of each relation; ValueError if an id is out of range."""
    relations = size("num_relations", num_relations)
    counts = np.bincount(triples_checked(triples, None, relations)[:, 1], minlength=relations)
    return counts.astype(np.int64, copy=False)


def entity_relation_popularity(
    triples: ArrayLike, entity: ArrayLike, relation: ArrayLike, *, num_relations: int
) -> Int64[np.ndarray, "..."]:
    """Number of triples that contain an entity, on either side, and a relation; a loop counts once.

    Args:
        triples: head, relation and tail ids, int [triples, 3].
        entity, relation: ids of each query, [queries]; an entity in no triple counts 0.
        num_relations: number of relations.

    Raises:
        ValueError: if an id is out of range, or the shapes do not broadcast.

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
    """Columns popularity, relation_popularity and category of a rank table, [triples] each.

    Args:
        graph: knowledge graph of the ids, with the split `train`.
        triples: ids, int [triples, 3].
        side: predicted side of each triple; both popularities of a predicted relation are its number of
            triples.
        train: split that is counted. Default "train".
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
"""Half-links of a triple, (h, r) and (r, t), that occur in some fact."""


def half_links(facts: np.ndarray, triples: np.ndarray, num_relations: int) -> pl.Series:
    """Half-links of each triple, (h, r) and (r, t), that occur in some fact.

    Args:
        facts: facts, int [facts, 3], such as the training triples.
        triples: ids, int [triples, 3].
        num_relations: number of relations.

    Returns:
        Enum column: both seen, (h, r) seen, (r, t) seen, neither seen.
    """
    seen = []
    for end in (0, 2):
        known = distinct(facts[:, end].astype(np.int64) * num_relations + facts[:, 1])
        wanted = triples[:, end].astype(np.int64) * num_relations + triples[:, 1]
        seen.append(located(known, wanted)[1])
    return pl.Series("half_link", HALF_LINKS, dtype=pl.Enum(HALF_LINKS)).gather(2 * seen[0] + seen[1])
