"""The closure in blocks: whole families, the same facts for any size, sorted, each once."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from family_tree import People, closed_graph, closure, fact_counts, ontology, sample_people
from family_tree.closure import family_blocks

PUBLISHED = ontology("published")


def rows(people, block_size, relations=PUBLISHED):
    return np.concatenate(
        [np.stack(facts) for facts in closure(people, relations, block_size=block_size)], 1
    ).T


def family_of_three(*, shift: int = 0) -> list[list[int]]:
    return [[shift, shift + 2], [shift + 1, shift + 2]]


@pytest.mark.parametrize("name", ["published", "hohenecker"])
def test_any_block_size_gives_the_same_sorted_facts(name):
    people = sample_people(num_trees=7, max_tree_size=60, seed=1)
    whole = rows(people, 10**9, ontology(name))
    assert (np.lexsort(whole.T[::-1]) == np.arange(len(whole))).all()
    assert len(np.unique(whole, axis=0)) == len(whole)
    for block_size in (1, 59, 60, 61, 200):
        np.testing.assert_array_equal(rows(people, block_size, ontology(name)), whole)


@given(seed=st.integers(0, 2**32 - 1), block_size=st.integers(1, 80))
def test_families_whose_ids_are_mixed(seed, block_size, make_people):
    people = make_people(seed, 60, reach=3)
    np.testing.assert_array_equal(rows(people, block_size), rows(people, 60))


def test_blocks_hold_whole_families_and_no_more_than_asked():
    edges = family_of_three() + family_of_three(shift=4) + family_of_three(shift=7)  # 3 is alone
    people = People(pl.Series([str(i) for i in range(10)]), np.arange(10) % 2 == 0, np.array(edges, np.int32))
    assert list(family_blocks(people, 1)) == [(0, 3), (3, 4), (4, 7), (7, 10)]
    assert list(family_blocks(people, 4)) == [(0, 4), (4, 10)]
    assert list(family_blocks(people, 100)) == [(0, 10)]
    mixed = people._replace(parents=np.array([[0, 5], [1, 5], [2, 3], [7, 8]], np.int32))
    assert list(family_blocks(mixed, 1)) == [(0, 6), (6, 7), (7, 9), (9, 10)]


def test_counts_are_those_of_the_facts(make_people):
    people = make_people(0, 80)
    for name in ("published", "hohenecker"):
        relations = ontology(name)
        counts = np.bincount(rows(people, 1, relations)[:, 1], minlength=len(relations.relations))
        assert fact_counts(people, relations) == dict(zip(relations.relations, counts.tolist(), strict=True))


def test_people_without_parents_have_no_facts():
    people = People(pl.Series(["ann", "bob"]), np.array([True, False]), np.empty((0, 2), np.int32))
    assert rows(people, 1).shape == (0, 3)
    assert not any(fact_counts(people, PUBLISHED).values())


def test_an_ontology_may_be_named(make_people, tmp_path):
    people = make_people(0, 40)
    path = tmp_path / "mine.toml"
    path.write_text('[childOf]\nrules = ["parentOf(Y, X)"]\n')
    for source in ("hohenecker", path, str(path)):
        relations = ontology(source)
        np.testing.assert_array_equal(rows(people, 10, source), rows(people, 10, relations))
        assert fact_counts(people, source) == fact_counts(people, relations)
        graph = closed_graph(people, source)
        assert graph.relations == relations.relations
        np.testing.assert_array_equal(graph.splits["train"], rows(people, 10, relations))
    for take in (closure, fact_counts, closed_graph):
        for bad in ("Published", "nowhere.toml", None, 3):
            with pytest.raises(
                ValueError, match="`ontology` must be published, hohenecker or a TOML file, got"
            ):
                take(people, bad)


@pytest.mark.parametrize("block_size", [0, -1, 2.5, "many", None, [3, 4]])
def test_block_sizes_that_are_none(block_size, make_people):
    with pytest.raises(ValueError, match="`block_size` must be"):
        closure(make_people(0, 5), PUBLISHED, block_size=block_size)


def test_people_that_cannot_be(make_people):
    people = make_people(0, 20)
    with pytest.raises(ValueError, match="`parents` must be rows in increasing order"):
        closure(people._replace(parents=people.parents[::-1]), PUBLISHED)
