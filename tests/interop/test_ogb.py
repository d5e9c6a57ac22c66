"""Candidate lists of OGB: ranks, and the metrics that its evaluator gives."""

import numpy as np
import pytest

import owkg
from owkg.interop import ogb


def test_metrics_of_the_evaluator():
    """The formula of ogbl-wikikg2: the mean of the best and the worst rank among all candidates."""
    rng = np.random.default_rng(0)
    positive, negative = rng.integers(0, 9, 200) / 8, rng.integers(0, 9, (200, 50)) / 8
    above, ties = (negative > positive[:, None]).sum(1), (negative == positive[:, None]).sum(1)
    rank = 1 + above + ties / 2
    table = ogb.ranks(positive, negative)
    found = dict(
        owkg.evaluate(table, ["mrr", "hits@10"], side="tail", ties="realistic", ci=None)
        .select("metric", "value")
        .rows()
    )
    assert found["mrr"] == pytest.approx((1 / rank).mean())
    assert found["hits@10"] == pytest.approx((rank <= 10).mean())
    assert not table.frame["filtered"].any()


def test_labels_and_sides():
    table = ogb.ranks([0.5], [[0.1, 0.9]], head=["a"], relation=["r"], tail=["b"], side="head").frame
    assert table.select("head", "relation", "tail", "side", "optimistic").rows() == [
        ("a", "r", "b", "head", 2)
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"negative": [[0.1], [0.2]]}, r"`negative` must be \[queries, candidates\] of positive"),
        ({"side": "both"}, "`side` must be head or tail"),
        ({"head": ["a", "b"]}, "`head` must be one of each of 1 queries"),
        ({"negative": [[float("nan")]]}, "NaN"),
    ],
)
def test_bad_input(change, message):
    given = {"positive": [0.5], "negative": [[0.1, 0.9]]} | change
    with pytest.raises(ValueError, match=message):
        ogb.ranks(**given)


@pytest.mark.parametrize(
    ("positive", "negative", "message"),
    [
        (["high"], [[0.1]], "`positive` must be an array of numbers, got list"),
        ({"a": 1}, [[0.1]], "`positive` must be an array of numbers, got dict"),
        ([0.1, 0.2], [[0.1], [0.1, 0.2]], "`negative` must be an array of numbers, got list"),
        ([0.1], np.zeros((1, 0)), "`negative` must be one candidate at least"),
    ],
)
def test_what_is_no_array_of_scores(positive, negative, message):
    with pytest.raises(ValueError, match=message):
        ogb.ranks(positive, negative)
