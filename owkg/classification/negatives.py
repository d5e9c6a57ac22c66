"""Negative triples by corruption of one side, for graphs that come without any."""

import numpy as np
from jaxtyping import Int32
from numpy.typing import ArrayLike

from owkg.errors import ArgumentError
from owkg.keys import Seed, generator
from owkg.kg import KnowledgeGraph, entity_popularity, is_known, joined_splits, known_answers
from owkg.kg.triples import triples_checked

NEGATIVES = ("uniform", "frequency")
"""How an entity is drawn: each alike, or by the number of its training triples."""

# A triple that is drawn so often and always known has nothing to be corrupted to.
_MOST_DRAWS = 1000


def drawn_negatives(
    graph: KnowledgeGraph, split: str, how: str = "uniform", *, seed: Seed = 0, avoid: ArrayLike | None = None
) -> Int32[np.ndarray, "triples 3"]:
    """One negative of every triple of a split: its head or its tail, with equal chance, is replaced.

    All are distinct. A draw that stands in any split of the graph but those of negatives is drawn again. That
    no fact is among them is sure only in a closed world: where facts are missing, some negatives are true.

    Args:
        graph: with the split.
        split: whose triples are corrupted.
        how: "uniform", or "frequency": in proportion to the entity's number of training triples.
        seed: a seed or a key; equal ones give equal negatives.
        avoid: triples that are not drawn either, [n, 3], such as the negatives of another split.

    Raises:
        ValueError: if `how` is neither, the split has no triples, or some triple cannot be corrupted.

    Examples:
        >>> triples = np.array([[0, 0, 1]], np.int32)
        >>> graph = KnowledgeGraph(("a", "b", "c"), ("r",), {"train": triples, "test": triples})
        >>> bool((drawn_negatives(graph, "test") == triples).all())
        False
    """
    if how not in NEGATIVES:
        raise ArgumentError("how", f"must be one of {', '.join(NEGATIVES)}, got {how!r}.")
    triples = joined_splits(graph, [split])
    if not len(triples):
        raise ArgumentError("split", f"must have triples, got {split!r}, which has none.")
    facts = joined_splits(graph, [name for name in graph.splits if not _is_negative(name)])
    if avoid is not None:
        facts = np.concatenate([facts, triples_checked(avoid, graph.num_entities, graph.num_relations)])
    known = known_answers(facts, "tail", **graph.sizes)
    random = generator(seed)
    share = None
    if how == "frequency":
        counts = entity_popularity(graph.splits["train"], graph.num_entities)
        share = np.cumsum(counts / counts.sum())
    found = triples.copy()
    left = np.arange(len(triples))
    for _ in range(_MOST_DRAWS):
        column = np.where(random.random(len(left)) < 0.5, 0, 2)
        found[left] = triples[left]
        found[left, column] = _entities(random, len(left), graph.num_entities, share)
        first = np.zeros(len(found), bool)
        first[np.unique(found, axis=0, return_index=True)[1]] = True
        drawn = np.zeros(len(found), bool)
        drawn[left] = True
        left = np.flatnonzero(drawn & is_known(known, found) | ~first)
        if not len(left):
            return found
    labels = (
        graph.entities[triples[left[0], 0]],
        graph.relations[triples[left[0], 1]],
        graph.entities[triples[left[0], 2]],
    )
    raise ArgumentError("graph", f"must leave entities to corrupt {' '.join(labels)!r} with, and does not.")


def _is_negative(split: str) -> bool:
    """Whether the name is of a split of negative triples, such as valid_negatives."""
    return split.endswith("_negatives")


def _entities(random: np.random.Generator, n: int, num_entities: int, share: np.ndarray | None) -> np.ndarray:
    if share is None:
        return random.integers(0, num_entities, n)
    return np.minimum(np.searchsorted(share, random.random(n), side="right"), num_entities - 1)
