"""Part of a graph that a model has seen."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int32, Int64

from owkg.errors import ArgumentError
from owkg.kg.graph import KnowledgeGraph, graph_checked


def seen_part(graph: KnowledgeGraph, entities: Sequence[str], relations: Sequence[str]) -> KnowledgeGraph:
    """Graph with the ids of a model, and only triples of entities and relations that the model has.

    Args:
        graph: knowledge graph, possibly with further entities and relations.
        entities, relations: labels of the ids of the model.

    Raises:
        ValueError: if a label is not in the graph, or is repeated.

    Examples:
        >>> train, test = np.array([[0, 0, 1]], np.int32), np.array([[1, 0, 0], [0, 0, 2]], np.int32)
        >>> graph = KnowledgeGraph(("a", "b", "c"), ("r",), {"train": train, "test": test})
        >>> seen_part(graph, ["b", "a"], ["r"]).splits["test"].tolist()
        [[0, 0, 1]]
    """
    graph = graph_checked(graph)
    of_entity, of_relation = seen_ids(graph, entities, relations)
    splits = {}
    for name, triples in graph.splits.items():
        own = with_ids(triples, of_entity, of_relation)
        splits[name] = own[(own >= 0).all(axis=1)]
    return KnowledgeGraph(tuple(entities), tuple(relations), splits)


def seen_ids(
    graph: KnowledgeGraph, entities: Sequence[str], relations: Sequence[str]
) -> tuple[Int64[np.ndarray, "entities"], Int64[np.ndarray, "relations"]]:
    """Ids in the model of the graph's entities and of its relations, -1 for unseen ones.

    Raises:
        ValueError: as `seen_part`.
    """
    found = []
    for what, known, labels in (
        ("entities", graph.entities, entities),
        ("relations", graph.relations, relations),
    ):
        place = {label: row for row, label in enumerate(labels)}
        if len(place) < len(labels):
            raise ArgumentError(what, "must be distinct labels, got one twice.")
        if strangers := place.keys() - set(known):
            raise ArgumentError(what, f"must be in the graph, got {min(strangers)!r}, which is not.")
        found.append(np.array([place.get(label, -1) for label in known], np.int64))
    return found[0], found[1]


def with_ids(
    triples: Int32[np.ndarray, "triples 3"],
    of_entity: Int64[np.ndarray, "entities"],
    of_relation: Int64[np.ndarray, "relations"],
) -> Int32[np.ndarray, "triples 3"]:
    """Triples with the ids of `seen_ids`."""
    head, relation, tail = triples.T
    return np.stack([of_entity[head], of_relation[relation], of_entity[tail]], axis=1).astype(np.int32)
