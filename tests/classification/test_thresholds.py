"""Thresholds: held against enumeration of all of them."""

import numpy as np
import polars as pl
import pytest

from owkg.classification import fitted, predicted
from owkg.errors import ArgumentError

CUTS = np.arange(-3.5, 12)


def right(score, label, lower, upper):
    called = np.where(score >= upper, "positive", np.where(score < lower, "negative", "unknown"))
    return int((called == label).sum())


def best(score, label):
    return max(right(score, label, low, high) for low in CUTS for high in CUTS if low <= high)


@pytest.mark.parametrize("labels", [("positive", "negative"), ("positive", "negative", "unknown")])
def test_no_threshold_is_right_more_often(rng, scored, labels):
    for _ in range(100):
        table = scored(rng, int(rng.integers(1, 16)), labels=labels, levels=6)
        for kind in ("relation", "global"):
            found = fitted(table, kind)
            assert (found["lower"] <= found["upper"]).all()
            called = predicted(table, found).to_numpy()
            groups = [table["relation"] == name for name in table["relation"].unique()]
            for group in groups if kind == "relation" else [pl.Series([True] * len(table))]:
                part = table.filter(group)
                score, label = part["score"].to_numpy(), part["label"].to_numpy()
                assert (called[group.to_numpy()] == label).sum() == best(score, label)
        if len(labels) == 2:
            assert (found["lower"] == found["upper"]).all()


def test_of_equal_thresholds_the_one_nearest_to_the_global():
    rows = [("a", "negative", x) for x in (0.0, 1.0, 2.0)] + [("a", "positive", x) for x in (6.0, 7.0)]
    rows += [("b", "positive", 5.0), ("c", "negative", 1.0), ("d", "positive", 3.0)]
    table = pl.DataFrame(rows, ["relation", "label", "score"], orient="row")
    found = fitted(table)
    assert found.row(0) == (None, 2.5, 2.5, 8)
    # All are right at 2.5 already.
    assert set(found["lower"]) == {2.5}


def test_a_relation_of_one_class_moves_no_further_than_it_must():
    rows = [("a", "negative", 0.0), ("a", "positive", 2.0)] * 5 + [
        ("b", "negative", 3.0),
        ("c", "positive", -1.0),
    ]
    found = fitted(pl.DataFrame(rows, ["relation", "label", "score"], orient="row"))
    by = {name: upper for name, _, upper, _ in found.iter_rows()}
    assert by[None] == by["a"] == 1.0
    assert by["b"] == np.nextafter(3.0, np.inf)
    assert by["c"] == -1.0


def test_relations_without_validation_triples_have_the_global_threshold():
    valid = pl.DataFrame({"relation": ["a", "a"], "label": ["negative", "positive"], "score": [0.0, 1.0]})
    test = pl.DataFrame({"relation": ["b", "b", "b"], "score": [0.4, 0.5, 0.6]})
    assert predicted(test, fitted(valid)).to_list() == ["negative", "positive", "positive"]


def test_scores_without_a_number_between_them():
    near = np.nextafter(1.0, 2.0)
    valid = pl.DataFrame({"relation": ["a", "a"], "label": ["negative", "positive"], "score": [1.0, near]})
    found = fitted(valid)
    assert predicted(valid, found).to_list() == ["negative", "positive"]


def test_bad_arguments():
    table = pl.DataFrame({"relation": ["a"], "label": ["positive"], "score": [0.0]})
    with pytest.raises(ArgumentError, match="`thresholds` must be relation or global, got 'each'"):
        fitted(table, "each")
    with pytest.raises(ArgumentError, match="`triples` must hold validation triples, got none"):
        fitted(table.clear())
