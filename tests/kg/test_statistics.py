"""The statistics of a graph by hand, and those of published data sets."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg.kg import KnowledgeGraph, gini, graph_statistics, read_graph
from owkg.kg.triples import distinct_triples, triple_keys


def _array(*triples):
    return np.array(triples, np.int32)


GRAPH = KnowledgeGraph(
    ("a", "b", "c", "d", "e", "f"),
    ("r", "s", "t"),
    {
        "train": _array([0, 0, 1], [0, 0, 1], [0, 0, 2], [2, 1, 2]),
        "valid": _array([0, 0, 1], [3, 1, 0], [3, 1, 0]),
        "test": _array([1, 1, 0], [3, 1, 0], [4, 2, 0], [0, 0, 1]),
        "test_negatives": _array([5, 0, 0], [0, 0, 2]),
    },
)


def test_by_hand():
    assert graph_statistics(GRAPH) == {
        "entities": 6,
        "relations": 3,
        "in_no_triple": {"entities": 1, "relations": 0},
        "triples": {"train": 4, "valid": 3, "test": 4, "test_negatives": 2},
        "duplicates": {"train": 1, "valid": 1, "test": 0, "test_negatives": 0},
        "leakage": {"valid": {"train": 1}, "test": {"train": 1, "valid": 2}},
        "reversed_in_train": {"valid": {"triples": 0, "share": 0.0}, "test": {"triples": 1, "share": 0.25}},
        "unseen_in_train": {
            "valid": {"entities": 1, "relations": 0, "triples": 2},
            "test": {"entities": 2, "relations": 1, "triples": 2},
        },
        "false_triples": {"test_negatives": {"triples": 2, "also_facts": 1}},
        "categories": {
            "1-1": {"relations": 1, "triples": 1},
            "1-N": {"relations": 1, "triples": 3},
            "N-1": {"relations": 0, "triples": 0},
            "N-N": {"relations": 0, "triples": 0},
            "no_training_triple": {"relations": 1, "triples": 0},
        },
        # Six distinct facts: a r b, a r c, c s c, d s a, b s a, e t a.
        "answers_per_query": {
            "head": {"queries": 5, "mean": 1.2, "max": 2},
            "tail": {"queries": 5, "mean": 1.2, "max": 2},
        },
        "popularity": {
            "entities": {"min": 0, "median": 1.0, "max": 3, "gini": pytest.approx(23 / 42)},
            "relations": {"min": 0, "median": 1.0, "max": 3, "gini": pytest.approx(1 / 2)},
        },
    }


def test_it_is_plain_json():
    found = graph_statistics(GRAPH)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_a_graph_with_training_triples_alone():
    found = graph_statistics(GRAPH._replace(splits={"train": GRAPH.splits["train"]}))
    assert found["leakage"] == found["unseen_in_train"] == found["false_triples"] == {}


def test_an_empty_split_has_no_share():
    splits = GRAPH.splits | {"test": np.empty((0, 3), np.int32)}
    assert graph_statistics(GRAPH._replace(splits=splits))["reversed_in_train"]["test"]["share"] is None


def test_parts_of_train_are_no_leakage():
    splits = {"train": GRAPH.splits["train"], "train_sample": GRAPH.splits["train"][:1]}
    assert graph_statistics(GRAPH._replace(splits=splits))["leakage"] == {}


@pytest.mark.parametrize(
    "splits", [{}, {"test": GRAPH.splits["test"]}, {"train": np.empty((0, 3), np.int32)}]
)
def test_without_training_triples_there_are_none(splits):
    with pytest.raises(ValueError, match="training triples"):
        graph_statistics(GRAPH._replace(splits=splits))


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20).filter(any))
def test_gini_is_half_the_relative_mean_difference(values):
    x = np.array(values, float)
    expected = np.abs(x[:, None] - x).mean() / (2 * x.mean())
    assert gini(values) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("bad", [[0, 0], [-1, 2], [np.nan], []])
def test_gini_refuses(bad):
    with pytest.raises(ValueError, match="`values`"):
        gini(bad)


def test_fb15k237_was_made_without_leakage(owkg_data):
    found = graph_statistics(read_graph(owkg_data / "fb15k237"))
    assert found["duplicates"] == {"train": 0, "valid": 0, "test": 0}
    assert found["leakage"] == {"valid": {"train": 0}, "test": {"train": 0, "valid": 0}}
    assert [found["reversed_in_train"][split]["triples"] for split in ("valid", "test")] == [0, 0]
    assert found["unseen_in_train"] == {
        "valid": {"entities": 8, "relations": 0, "triples": 9},
        "test": {"entities": 29, "relations": 0, "triples": 28},
    }


def test_wn18rr_keeps_its_symmetric_relations(owkg_data):
    found = graph_statistics(read_graph(owkg_data / "wn18rr"))
    assert found["leakage"] == {"valid": {"train": 0}, "test": {"train": 0, "valid": 0}}
    assert found["reversed_in_train"]["test"]["triples"] == 1_095
    assert found["unseen_in_train"]["test"] == {"entities": 209, "relations": 0, "triples": 210}
    assert [c["relations"] for c in found["categories"].values()] == [2, 4, 3, 2, 0]


def test_the_false_triples_of_codex_are_false(owkg_data):
    found = graph_statistics(read_graph(owkg_data / "codex-s"))["false_triples"]
    assert found == {
        "test_negatives": {"triples": 1_828, "also_facts": 0},
        "valid_negatives": {"triples": 1_827, "also_facts": 0},
    }


@pytest.mark.parametrize("graph", [None, "graph"])
def test_anything_but_a_graph_is_refused(graph):
    with pytest.raises(ValueError, match="`graph` must be a KnowledgeGraph, got"):
        graph_statistics(graph)


@pytest.mark.parametrize("most", [5, 2**31 - 2])
def test_keys_are_equal_where_triples_are(most):
    """Also where 64 bits hold no number for every triple of these sizes."""
    rng = np.random.default_rng(1)
    first, second = (rng.choice([0, 1, most - 1, most], (40, 3)).astype(np.int32) for _ in range(2))
    keys = triple_keys(first, second)
    both = np.concatenate([first, second]).tolist()
    numbers = np.concatenate(keys).tolist()
    assert len(set(numbers)) == len(set(map(tuple, both)))
    assert len(set(zip(numbers, map(tuple, both), strict=True))) == len(set(numbers))
    once = distinct_triples(first)
    assert sorted(once.tolist()) == sorted(map(list, set(map(tuple, first.tolist()))))
    assert distinct_triples(once).tolist() == once.tolist()
