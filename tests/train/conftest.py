"""A small graph, learnable: who stands how far behind whom in a ring."""

import numpy as np
import pytest

from owkg.kg import KnowledgeGraph


@pytest.fixture(scope="session")
def ring() -> KnowledgeGraph:
    """20 entities in a ring, "next", "after next" and "near"; some facts left for valid and test."""
    i = np.arange(20)
    facts = [
        np.stack([i, np.full(20, r), (i + step) % 20], 1) for r, step in ((0, 1), (1, 2), (2, 1), (2, 2))
    ]
    order = np.random.default_rng(0).permutation(80)
    train, valid, test = np.split(np.concatenate(facts)[order].astype(np.int32), [60, 70])
    labels = tuple(f"entity {n:02}" for n in i)
    splits = {"train": train, "valid": valid, "test": test}
    return KnowledgeGraph(labels, ("next", "after next", "near"), splits)


@pytest.fixture(scope="session")
def chain() -> KnowledgeGraph:
    """Relation r leads from entity i of 0 to 7 to 8 + i + r: what every model can say."""
    facts = np.array([[i, r, 8 + i + r] for i in range(8) for r in range(3)], np.int32)
    return KnowledgeGraph(tuple(f"entity {n:02}" for n in range(18)), ("0", "1", "2"), {"train": facts})
