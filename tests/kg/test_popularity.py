"""Popularity against counting one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg.kg import entity_popularity, entity_relation_popularity, relation_popularity

ENTITIES, RELATIONS = 5, 3
TRIPLES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 4)), max_size=30)


@given(triples=TRIPLES)
def test_entities(triples):
    found = entity_popularity(triples, ENTITIES)
    assert found.tolist() == [sum(e in (h, t) for h, _, t in triples) for e in range(ENTITIES)]
    assert found.dtype == np.int64


@given(triples=TRIPLES)
def test_relations(triples):
    found = relation_popularity(triples, RELATIONS)
    assert found.tolist() == [sum(r == s for _, r, _ in triples) for s in range(RELATIONS)]
    assert found.dtype == np.int64


@given(triples=TRIPLES)
def test_entities_with_relations(triples):
    entity, relation = np.divmod(np.arange(ENTITIES * RELATIONS), RELATIONS)
    found = entity_relation_popularity(triples, entity, relation, num_relations=RELATIONS)
    expected = [
        sum(r == s and e in (h, t) for h, r, t in triples) for e, s in zip(entity, relation, strict=True)
    ]
    assert found.tolist() == expected
    assert found.dtype == np.int64


@given(triples=TRIPLES)
def test_an_entity_is_as_popular_as_with_all_relations_together(triples):
    entity, relation = np.divmod(np.arange(ENTITIES * RELATIONS), RELATIONS)
    pairs = entity_relation_popularity(triples, entity, relation, num_relations=RELATIONS)
    assert (
        pairs.reshape(ENTITIES, RELATIONS).sum(axis=1).tolist()
        == entity_popularity(triples, ENTITIES).tolist()
    )


def test_a_loop_counts_once():
    assert entity_popularity([[1, 0, 1]], 2).tolist() == [0, 1]
    assert entity_relation_popularity([[1, 0, 1]], [1], [0], num_relations=1).tolist() == [1]


def test_an_entity_in_no_triple_counts_nothing():
    assert entity_relation_popularity([[1, 0, 1]], [10**6], [0], num_relations=1).tolist() == [0]


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: entity_popularity([[0, 0, 5]], 5), "`triples` must hold tail ids"),
        (lambda: relation_popularity([[0, 3, 0]], 3), "`triples` must hold relation ids"),
        (lambda: entity_popularity([[0, 0, 1]], -1), "`num_entities`"),
        (lambda: relation_popularity([[0, 0, 1]], 0), "`num_relations`"),
        (lambda: entity_relation_popularity([[0, 0, 0]], [-1], [0], num_relations=1), "`entity`"),
        (lambda: entity_relation_popularity([[0, 0, 0]], [0], [1], num_relations=1), "`relation`"),
        (lambda: entity_relation_popularity([[0, 0, 0]], [0], [0.5], num_relations=1), "`relation`"),
        (lambda: entity_relation_popularity([[0, 0, 0]], [0, 1], [0, 0, 0], num_relations=1), "broadcast"),
    ],
)
def test_wrong_input_is_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()
