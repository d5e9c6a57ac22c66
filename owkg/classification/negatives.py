"""Negative triples made by corrupting one side, for graphs that have none."""

import numpy as np
from jaxtyping import Int32
from numpy.typing import ArrayLike

from owkg.errors import ArgumentError
from owkg.keys import Seed, generator
from owkg.kg import KnowledgeGraph, entity_popularity, is_known, joined_splits, known_answers
from owkg.kg.triples import triples_checked

NEGATIVES = ("uniform", "frequency")
"""Ways to draw an entity: with equal probability, or in proportion to its number of training triples."""

# After this many draws that all gave a known triple, a triple counts as impossible to corrupt.
_MOST_DRAWS = 1000


def drawn_negatives(
    graph: KnowledgeGraph, split: str, how: str = "uniform", *, seed: Seed = 0, avoid: ArrayLike | None = None
) -> Int32[np.ndarray, "triples 3"]:
    """One negative for every triple of a split, with its head or its tail (equally likely) replaced.

    All negatives are distinct. A draw that is in any split of the graph, except splits of negatives, is drawn
    again. Only in a closed world is every negative false: if facts are missing from the graph, some negatives
    are true.

    Args:
        graph: graph with the split.
        split: split whose triples are corrupted.
        how: "uniform" (default), or "frequency" to draw entities in proportion to their number of training
            triples.
        seed: seed or key; equal seeds give equal negatives. Default 0.
        avoid: further triples that must not be drawn, shape [n, 3], such as the negatives of another split.
            None: no further triples.

    Raises:
        ValueError: if `how` is another word, the split has no triples, or some triple cannot be corrupted.

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
    raise ArgumentError("graph", f"must have an entity to corrupt {' '.join(labels)!r} with, but has none.")


def _is_negative(split: str) -> bool:
    """Whether a split holds negative triples, such as valid_negatives."""
    return split.endswith("_negatives")


def _entities(random: np.random.Generator, n: int, num_entities: int, share: np.ndarray | None) -> np.ndarray:
    if share is None:
        return random.integers(0, num_entities, n)
    return np.minimum(np.searchsorted(share, random.random(n), side="right"), num_entities - 1)
