"""Ranks of triples with an entity or a relation that the model has not seen."""

from typing import Any

import numpy as np

from owkg.errors import ArgumentError
from owkg.kg import KnowledgeGraph, known_answers, num_candidates
from owkg.kg.seen import seen_ids, with_ids
from owkg.ranks.scores import Ranks

UNSEEN = ("error", "drop", "last")


def unseen_checked(unseen: object) -> str:
    """`unseen` if it names a treatment of unseen triples; ArgumentError otherwise."""
    if unseen not in UNSEEN:
        raise ArgumentError("unseen", f"must be one of {', '.join(UNSEEN)}, got {unseen!r}.")
    return unseen


def about_unseen(
    graph: KnowledgeGraph, seen: KnowledgeGraph, triples: np.ndarray, unseen: str
) -> dict[str, Any]:
    """Record for a rank table of what the model has not seen: entities, relations and triples of a split."""
    return {
        "policy": unseen,
        "entities": graph.num_entities - seen.num_entities,
        "relations": graph.num_relations - seen.num_relations,
        "triples": int((~is_seen(graph, seen, triples)).sum()),
        "candidates": seen.num_entities,
    }


def is_seen(graph: KnowledgeGraph, seen: KnowledgeGraph, triples: np.ndarray) -> np.ndarray:
    """Whether `seen`, a `seen_part` of the graph, has the entities and the relation of each triple."""
    ids = with_ids(triples, *seen_ids(graph, seen.entities, seen.relations))
    return np.asarray((ids >= 0).all(axis=1))


def last_ranks(
    graph: KnowledgeGraph, seen: KnowledgeGraph, triples: np.ndarray, side: str, facts: np.ndarray | None
) -> Ranks:
    """Last rank for each triple: below all candidates, without ties.

    Candidates are the entities that the model has seen, except the other known answers of the query, and the
    answer itself, seen or not.

    Args:
        graph: knowledge graph of the ids.
        seen: part of it that the model has seen.
        triples: ids, int [triples, 3].
        side: predicted side.
        facts: triples whose answers are removed from the candidates. None: no filtering.
    """
    answer = 2 if side == "tail" else 0
    of_entity, _ = seen_ids(graph, seen.entities, seen.relations)
    facts = triples[:0] if facts is None else facts
    inside = facts[of_entity[facts[:, answer]] >= 0]
    known = known_answers(inside, side, **graph.sizes, asked=triples)
    count = num_candidates(known, triples) - (graph.num_entities - seen.num_entities)
    count += of_entity[triples[:, answer]] < 0
    return Ranks(count, count, count)
