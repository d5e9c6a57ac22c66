"""Full test sets whose answers are facts."""

import numpy as np
import pytest

from owkg.simulate import full_test


def facts_of(rng):
    """A full test whose answers are facts, and of some facts both sides are asked for."""
    heads, relations, people = 6, 3, 12
    triples = np.argwhere(rng.random((heads, relations, people)) < 0.25)
    # To (head, relation, ?) by the tail; and to (?, relation, tail) by the head.
    forward = triples[:, 0] * relations + triples[:, 1]
    backward = 1000 + triples[:, 2] * relations + triples[:, 1]
    fact = np.concatenate([triples, triples])
    query = np.concatenate([forward, backward])
    score = rng.random(len(query))
    order = np.lexsort((-score, query))
    ranks = np.empty(len(query), np.int64)
    ranks[order] = 1 + np.arange(len(query))  # falling scores, so rising ranks
    popularity = np.bincount(triples[:, [0, 2]].reshape(-1), minlength=people)
    return full_test(query, ranks, ranks, score, fact=fact, popularity=popularity)


@pytest.fixture
def with_facts():
    return facts_of
