"""Relation categories by hand, by brute force, and as published."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg.kg import CATEGORIES, joined_splits, read_graph, relation_categories

PUBLISHED = {"one_to_one": "1-1", "one_to_many": "1-N", "many_to_one": "N-1", "many_to_many": "N-N"}

BY_HAND = [
    # relation 0, mother of: two heads with three tails in all, each tail with one head
    *([0, 0, 2], [0, 0, 3], [1, 0, 4]),
    # relation 1, married to: one and one
    *([0, 1, 1], [1, 1, 0]),
    # relation 2, born in: many heads, one tail each
    *([2, 2, 5], [3, 2, 5], [4, 2, 5]),
    # relation 3, knows: everybody everybody
    *([0, 3, 1], [0, 3, 2], [1, 3, 1], [1, 3, 2]),
]


def test_by_hand():
    assert relation_categories(BY_HAND, 5).tolist() == ["1-N", "1-1", "N-1", "N-N", ""]


def test_repeated_triples_count_once():
    assert relation_categories([[0, 0, 1], [0, 0, 1], [2, 0, 3]], 1).tolist() == ["1-1"]
    assert relation_categories(BY_HAND + BY_HAND[:5], 4).tolist() == relation_categories(BY_HAND, 4).tolist()


def test_an_average_at_the_threshold_is_many():
    # Three tails of two heads: 1.5.
    triples = [[0, 0, 2], [0, 0, 3], [1, 0, 4]]
    assert relation_categories(triples, 1).tolist() == ["1-N"]
    assert relation_categories(triples, 1, threshold=np.nextafter(1.5, 2)).tolist() == ["1-1"]
    assert relation_categories(triples, 1, threshold=1).tolist() == ["N-N"]


TRIPLES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), max_size=40)


@given(triples=TRIPLES, threshold=st.floats(1, 4))
def test_by_brute_force(triples, threshold):
    expected = []
    for relation in range(3):
        pairs = {(h, t) for h, r, t in triples if r == relation}
        heads, tails = {h for h, _ in pairs}, {t for _, t in pairs}
        sides = ["N" if pairs and len(pairs) / len(asked) >= threshold else "1" for asked in (tails, heads)]
        expected.append("-".join(sides) if pairs else "")
    assert relation_categories(triples, 3, threshold=threshold).tolist() == expected


@given(triples=TRIPLES)
def test_turning_the_triples_round_turns_the_categories_round(triples):
    turned = relation_categories([triple[::-1] for triple in triples], 3)
    assert [c[::-1] for c in turned] == relation_categories(triples, 3).tolist()


@pytest.mark.parametrize("bad", [0.5, np.nan, np.inf, "x"])
def test_a_bad_threshold_is_refused(bad):
    with pytest.raises(ValueError, match="`threshold`"):
        relation_categories(BY_HAND, 4, threshold=bad)


def test_a_relation_out_of_range_is_refused():
    with pytest.raises(ValueError, match=r"`triples` must hold relation ids in \[0, 3\), got 3"):
        relation_categories(BY_HAND, 3)


def test_the_published_categories_of_fb15k237(owkg_data):
    folder = owkg_data / "kgc_sparsity" / "relation_category"
    published = {
        relation: category
        for name, category in PUBLISHED.items()
        for relation in (folder / f"{name}.txt").read_text().split()
    }
    graph = read_graph(owkg_data / "fb15k237")
    assert set(published) == set(graph.relations)
    expected = [published[relation] for relation in graph.relations]
    # All 237, when training triples are counted; counting all splits would change five.
    found = relation_categories(graph.splits["train"], graph.num_relations)
    assert found.tolist() == expected
    assert [int((found == category).sum()) for category in CATEGORIES] == [17, 26, 86, 108]
    of_all = relation_categories(joined_splits(graph, list(graph.splits)), graph.num_relations)
    assert int((of_all != expected).sum()) == 5
