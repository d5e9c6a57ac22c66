"""What a knowledge graph is: labelled entities and relations, and triples in splits."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int32

from owkg.checks import ArgumentError

# Splits of false triples (CoDEx): kept beside the others, never counted as facts.
_NEGATIVES = "_negatives"


class KnowledgeGraph(NamedTuple):
    """Triples as ids, in splits, with the labels of the ids.

    Attributes:
        entities, relations: labels of their ids, unique.
        splits: by name ("train", "valid", "test", or any other) the triples, columns head, relation,
            tail. Splits whose name ends in "_negatives" hold false triples.
    """

    entities: tuple[str, ...]
    relations: tuple[str, ...]
    splits: dict[str, Int32[np.ndarray, "_ 3"]]

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {len(triples):,}" for name, triples in self.splits.items())
        of = f"{len(self.entities):,} entities, {len(self.relations):,} relations"
        return f"KnowledgeGraph({of}; triples: {sizes or 'none'})"

    @property
    def num_entities(self) -> int:
        """Number of entities."""
        return len(self.entities)

    @property
    def num_relations(self) -> int:
        """Number of relations."""
        return len(self.relations)

    @property
    def sizes(self) -> dict[str, int]:
        """`num_entities` and `num_relations` as keyword arguments."""
        return {"num_entities": self.num_entities, "num_relations": self.num_relations}


def graph_checked(graph: Any) -> KnowledgeGraph:
    """`graph` if it is a KnowledgeGraph; ValueError otherwise."""
    if not isinstance(graph, KnowledgeGraph):
        raise ArgumentError("graph", f"must be a KnowledgeGraph, got {graph!r}.")
    return graph


def fact_splits(graph: KnowledgeGraph) -> dict[str, Int32[np.ndarray, "_ 3"]]:
    """The splits of `graph` that hold facts: all but those whose name ends in "_negatives"."""
    return {name: triples for name, triples in graph.splits.items() if not name.endswith(_NEGATIVES)}


def joined_splits(graph: KnowledgeGraph, names: Sequence[str]) -> Int32[np.ndarray, "triples 3"]:
    """The triples of several splits, one after the other; of no splits, no triples.

    Raises:
        ValueError: if the graph has no split of a name; the message lists those it has.
    """
    for name in names:
        if name not in graph.splits:
            raise ArgumentError("split", f"must be one of {', '.join(graph.splits)}, got {name!r}.")
    return np.concatenate([np.empty((0, 3), np.int32), *(graph.splits[name] for name in names)])
