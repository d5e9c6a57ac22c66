"""Popularity and category columns of a rank table, counted in a split."""

import numpy as np
import polars as pl

from owkg.kg import KnowledgeGraph, entity_popularity, entity_relation_popularity, relation_categories


def popularity_columns(
    graph: KnowledgeGraph, triples: np.ndarray, answer: np.ndarray, *, train: str = "train"
) -> dict[str, pl.Series]:
    """The columns popularity, relation_popularity and category of a rank table, [triples] each.

    Args:
        graph: that the ids are of, with the split `train`.
        triples: int [triples, 3].
        answer: the entity that is predicted of each triple.
        train: the split that is counted.
    """
    facts, relation = graph.splits[train], triples[:, 1]
    with_relation = entity_relation_popularity(facts, answer, relation, num_relations=graph.num_relations)
    categories = relation_categories(facts, graph.num_relations)[relation]
    return {
        "popularity": pl.Series(entity_popularity(facts, graph.num_entities)[answer], dtype=pl.Int64),
        "relation_popularity": pl.Series(with_relation, dtype=pl.Int64),
        "category": pl.Series(categories, dtype=pl.String),
    }
