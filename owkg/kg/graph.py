"""Knowledge graphs: labelled entities and relations, and triples in splits."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int32

from owkg.errors import ArgumentError
from owkg.kg.triples import triple_keys

# End of the names of splits of false triples (CoDEx), which never count as facts.
NEGATIVES = "_negatives"
# Splits hold the facts that a test lacks if their name begins so, or if they share more than this part of it.
_MISSING, _SHARED = "missing", 0.1


class KnowledgeGraph(NamedTuple):
    """Triples as ids, in splits, with the labels of the ids.

    Attributes:
        entities, relations: labels by id, unique.
        splits: triples by name of the split ("train", "valid", "test", or any other), with columns head,
            relation, tail. Splits whose name ends in "_negatives" hold false triples.
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


def graph_checked(graph: object) -> KnowledgeGraph:
    """`graph` if it is a KnowledgeGraph; ArgumentError otherwise."""
    if not isinstance(graph, KnowledgeGraph):
        raise ArgumentError("graph", f"must be a KnowledgeGraph, got {graph!r}.")
    return graph


def fact_splits(graph: KnowledgeGraph) -> dict[str, Int32[np.ndarray, "_ 3"]]:
    """Splits of `graph` that hold facts: all except those whose name ends in "_negatives"."""
    return {name: triples for name, triples in graph.splits.items() if not name.endswith(NEGATIVES)}


def known_splits(graph: KnowledgeGraph, split: str | None) -> list[str]:
    """Splits whose facts are known if `split` is the test: all except those with the truth that it lacks.

    An open-world benchmark has a sparse test, a full test and the missing facts. The truth behind the sparse
    test is in splits whose name begins with "missing", and in splits that share more than a tenth of its
    facts: the full test, or another sparse test drawn from it. Training and validation sets are known, and so
    is a split named test, because it filters the ranks of other splits too.

    Args:
        graph: knowledge graph; splits without facts are left out.
        split: split that is the test. None: unknown.

    Examples:
        >>> facts = np.arange(12, dtype=np.int32).reshape(4, 3)
        >>> splits = {"train": facts[:1], "test_sparse": facts[1:3], "test_full": facts[1:]}
        >>> graph = KnowledgeGraph((), (), splits | {"missing": facts[3:]})
        >>> known_splits(graph, "test_sparse"), known_splits(graph, "test_full")
        (['train', 'test_sparse'], ['train', 'test_full'])
    """
    facts = {name: triples for name, triples in fact_splits(graph).items() if len(triples)}

    def holds_truth(name: str) -> bool:
        if name in (split, "test") or name.startswith(("train", "valid")):
            return False
        if name.startswith(_MISSING):
            return True
        if split not in facts:
            return False
        test, other = triple_keys(facts[split], facts[name])
        return bool(np.isin(test, other).mean() > _SHARED)

    return [name for name in facts if not holds_truth(name)]


def joined_splits(graph: KnowledgeGraph, names: Sequence[str]) -> Int32[np.ndarray, "triples 3"]:
    """Triples of several splits, one after the other; empty for no splits.

    Raises:
        ValueError: if the graph lacks one of the splits; the message lists its splits.
    """
    for name in names:
        if name not in graph.splits:
            raise ArgumentError("split", f"must be one of {', '.join(graph.splits)}, got {name!r}.")
    return np.concatenate([np.empty((0, 3), np.int32), *(graph.splits[name] for name in names)])
