"""The rank table of a model's scores over a knowledge graph."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from owkg.kg import (
    KnowledgeGraph,
    entity_popularity,
    entity_relation_popularity,
    fact_splits,
    joined_splits,
    known_answers,
    relation_categories,
)
from owkg.kg.triples import side_checked, triples_checked
from owkg.ranks.scores import Ranks, ranks_from_scores
from owkg.ranks.sets import known_sets
from owkg.ranks.table import RANKS, TRIPLE, validated

FILTER_SPLITS = ("train", "valid", "test")


def rank_table(
    graph: KnowledgeGraph,
    scores: Any,
    triples: Any,
    side: str,
    *,
    filter_splits: Sequence[str] = FILTER_SPLITS,
    tolerance: float = 0.0,
    model: str | None = None,
    popularity: bool = True,
    chunk: int | None = None,
) -> pl.DataFrame:
    """Ranks the answer of each triple on one side among all entities, and describes it.

    Args:
        graph: that the triples are of.
        scores: floats [triples, entities], of all entities in the place of the answer; larger is better.
        triples: int [triples, 3], head, relation, tail.
        side: the side that is predicted, "head" or "tail".
        filter_splits: the other answers that these splits know leave the candidates; none: raw ranks.
        tolerance: scores that differ from the answer's by at most this are ties; absolute.
        model: name for the column `model`; None: no such column.
        popularity: add the columns popularity, relation_popularity and category, from the split train.
        chunk: queries in one call; changes memory and time, never the result.

    Returns:
        A rank table (`validated`), one row a triple, in their order, with labels.

    Raises:
        ValueError: as `ranks_from_scores`; if an id is out of range, or the graph has no such split.
    """
    side = side_checked(side)
    triples = triples_checked(triples, graph.num_entities, graph.num_relations)
    shape = (len(triples), graph.num_entities)
    if np.shape(scores) != shape:
        raise ValueError(
            f"`scores` must be of shape [triples, entities], {shape}, got shape {np.shape(scores)}."
        )
    head, relation, tail = triples.T
    entity, answer = (head, tail) if side == "tail" else (tail, head)
    known = None
    if filter_splits:
        facts = filter_facts(graph, filter_splits)
        index = known_answers(facts, side, num_entities=graph.num_entities, num_relations=graph.num_relations)
        known = known_sets(index, entity, relation)
    ranks = ranks_from_scores(scores, answer, known=known, tolerance=tolerance, chunk=chunk)
    return validated(described(graph, triples, side, ranks, model=model, popularity=popularity))


def filter_facts(graph: KnowledgeGraph, filter_splits: Sequence[str]) -> np.ndarray:
    """The triples of the splits whose answers are filtered, int32 [triples, 3].

    Raises:
        ValueError: if the graph has no facts under such a name; the message lists the splits.
    """
    facts = fact_splits(graph)
    for name in filter_splits:
        if name not in facts:
            raise ValueError(f"`filter_splits` must be among {', '.join(facts)}, got {name!r}.")
    return joined_splits(graph, list(filter_splits))


def described(
    graph: KnowledgeGraph,
    triples: np.ndarray,
    side: str,
    ranks: Ranks,
    *,
    model: str | pl.Series | None,
    popularity: bool,
) -> pl.DataFrame:
    """The rank table of `triples`, not yet validated, with labels and what train says of the answers.

    Args:
        graph: that the ids are of.
        triples: int [triples, 3].
        side: the side that is predicted.
        ranks: of their answers.
        model: one name, or one for each triple; None: no column `model`.
        popularity: add the columns popularity, relation_popularity and category.
    """
    entities = pl.Series(graph.entities, dtype=pl.String)
    relations = pl.Series(graph.relations, dtype=pl.String)
    names = (entities, relations, entities)
    columns: dict[str, Any] = {
        column: of.gather(ids) for column, of, ids in zip(TRIPLE, names, triples.T, strict=True)
    }
    columns["side"] = pl.repeat(side, len(triples), eager=True)
    columns |= {column: getattr(ranks, column) for column in RANKS}
    if model is not None:
        columns["model"] = pl.repeat(model, len(triples), eager=True) if isinstance(model, str) else model
    if popularity:
        columns |= _popularity(graph, triples, side)
    return pl.DataFrame(columns)


def _popularity(graph: KnowledgeGraph, triples: np.ndarray, side: str) -> dict[str, Any]:
    if "train" not in graph.splits:
        raise ValueError(f"`popularity` needs a split train, got {', '.join(graph.splits)}.")
    train, relation = graph.splits["train"], triples[:, 1]
    answer = triples[:, 2 if side == "tail" else 0]
    return {
        "popularity": entity_popularity(train, graph.num_entities)[answer],
        "relation_popularity": entity_relation_popularity(
            train, answer, relation, num_relations=graph.num_relations
        ),
        "category": pl.Series(relation_categories(train, graph.num_relations)[relation], dtype=pl.String),
    }
