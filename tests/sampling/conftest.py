"""A closed world with popular and rare entities and relations."""

import numpy as np
import pytest

from owkg.kg import KnowledgeGraph


@pytest.fixture(scope="session")
def closed() -> KnowledgeGraph:
    """Some 5,700 facts of 120 entities and 3 relations, every entity in some fact."""
    rng = np.random.default_rng(0)
    likely = np.linspace(0.05, 0.95, 120)
    chance = np.array([1, 0.5, 0.1])[:, None, None] * likely[:, None] * likely[None, :]
    relation, head, tail = np.nonzero(rng.random(chance.shape) < chance)
    facts = np.stack([head, relation, tail], axis=1).astype(np.int32)
    assert len(np.unique(facts[:, [0, 2]])) == 120
    labels = tuple(f"person {i:03}" for i in range(120))
    return KnowledgeGraph(labels, ("knows", "likes", "marries"), {"facts": facts})
