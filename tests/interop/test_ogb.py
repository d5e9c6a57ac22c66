"""Candidate lists of OGB: ranks, and the metrics that its evaluator gives."""

import numpy as np
import polars as pl
import pytest

import owkg
from owkg.interop import ogb
from owkg.ranks import convert


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
        ({"negative": [[0.1], [0.2]]}, r"`negative` must be \[queries, candidates\] for positive"),
        ({"side": "both"}, "`side` must be head or tail"),
        ({"head": ["a", "b"]}, "`head` must be one for each of 1 queries"),
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
        ({"a": 1}, None, "`positive` must hold y_pred_pos or t_pred_top10, got a"),
        ({"y_pred_pos": [1.0]}, None, "`y_pred_neg` must be given"),
        ({"y_pred_pos": [1.0], "y_pred_neg": [0.5]}, [[0.1]], "`negative` must be left out"),
        ([0.1], None, "`negative` must be the scores"),
        ([0.1, 0.2], [[0.1], [0.1, np.nan]], "not NaN, got NaN for query 1"),
        ([0.1, 0.2], [[0.1], []], "must be at least one candidate, got none for query 1"),
        ([0.1, 0.2], [[0.1], [0.1, 0.2], [0.3]], "one list of scores for each of 2 queries, got 3"),
        ([0.1, 0.2], [0.1, 0.2], r"must be \[2, 1\] for one negative each, or \[1, 2\]"),
        ([0.1, np.nan], [[0.1], [0.2]], "`positive` must be scores that are not NaN"),
        ([0.1], np.zeros((1, 0)), "`negative` must be at least one candidate"),
    ],
)
def test_what_is_no_array_of_scores(positive, negative, message):
    with pytest.raises(ValueError, match=message):
        ogb.ranks(positive, negative)


def ranks(positive, negative, **more):
    return (
        ogb.ranks(positive, negative, **more).frame.select("optimistic", "pessimistic", "candidates").rows()
    )


def test_lists_of_different_lengths_and_shared_ones():
    ragged = [[0.1, 0.5, 0.9], [0.2], [0.3, 0.3]]
    assert ranks([0.5, 0.1, 0.4], ragged) == [(2, 3, 4), (2, 2, 2), (1, 1, 3)]
    assert ranks([0.5, 0.1, 0.4], [0.5, 0.2]) == [(1, 2, 3), (3, 3, 3), (2, 2, 3)]
    assert ranks([0.5, 0.1], [[0.5, 0.2]]) == [(1, 2, 3), (3, 3, 3)]
    assert ranks(0.5, [0.9, 0.5]) == ranks([0.5], [0.9, 0.5]) == [(2, 3, 3)]
    rng = np.random.default_rng(1)
    many = [rng.integers(0, 5, size) for size in rng.integers(1, 9, 300)]
    one = rng.integers(0, 5, 300)
    expected = [
        (1 + (row > x).sum(), 1 + (row >= x).sum(), 1 + len(row)) for x, row in zip(one, many, strict=True)
    ]
    assert ranks(one, many) == expected


def test_inputs_of_evaluators_and_their_files(tmp_path):
    tgb = {"y_pred_pos": np.array([0.5, 0.1]), "y_pred_neg": np.array([[0.9, 0.5], [0.0, 0.2]])}
    assert ranks({**tgb, "eval_metric": ["mrr"]}, None) == [(2, 3, 3), (2, 2, 3)]
    np.savez(tmp_path / "tgb.npz", **tgb)
    assert convert(tmp_path / "tgb.npz").table["pessimistic"].to_list() == [3, 2]
    flat = {
        "y_pred_pos": [0.5, 0.1],
        "y_pred_neg": [0.9, 0.5, 0.2],
        "num_neg": [2, 1],
        "side": ["head", "tail"],
    }
    np.savez(tmp_path / "flat.npz", **flat)
    found = convert(tmp_path / "flat.npz")
    assert found.table.select("side", "optimistic", "candidates").rows() == [("head", 2, 3), ("tail", 2, 2)]
    assert not found.notes
    np.savez(tmp_path / "shared.npz", y_pred_pos=[0.5, 0.1], y_pred_neg=[0.9, 0.5, 0.2])
    assert "all queries share 3 negatives" in convert(tmp_path / "shared.npz").notes[0]
    np.savez(tmp_path / "matrix.npz", y_pred_pos=[0.5, 0.1], y_pred_neg=[[0.9, 0.5, 0.2]])
    (note,) = convert(tmp_path / "matrix.npz").notes
    assert "all queries share 3 negatives, because y_pred_neg is of shape [1, 3]" in note
    np.savez(tmp_path / "own.npz", y_pred_pos=[0.5], y_pred_neg=[[0.9, 0.5, 0.2]])
    assert not convert(tmp_path / "own.npz").notes


def test_lists_of_the_best_ten():
    top, right = np.arange(20).reshape(2, 10), np.array([3, 5])
    for held in ({"t_pred_top10": top, "t": right}, {"h,r->t": {"t_pred_top10": top, "t": right}}):
        frame = ogb.ranks(held, num_entities=50).frame
        assert frame.select("optimistic", "pessimistic", "candidates", "bounded").rows() == [
            (4, 4, 50, False),
            (11, 50, 50, True),
        ]
    for change, message in (
        ({"t": right[:1]}, "`t_pred_top10` must be"),
        ({"t": [3, 50]}, "`t` must be ids below 50"),
        ({"t_pred_top10": np.zeros((2, 10), int)}, "must list each id once, got one twice for query 0"),
    ):
        with pytest.raises(ValueError, match=message):
            ogb.ranks({"t_pred_top10": top, "t": right} | change, num_entities=50)
    with pytest.raises(ValueError, match="`num_entities` must give the number"):
        ogb.ranks({"t_pred_top10": top, "t": right})


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y_pred_pos": [0.5, np.nan], "y_pred_neg": [[0.1], [0.1]]}, r"x\.npz: y_pred_pos must be scores"),
        ({"y_pred_pos": [0.5], "y_pred_neg": [0.1, 0.2], "num_neg": [3]}, "num_neg must add up to the 2"),
        ({"y_pred_pos": [0.5]}, r"x\.npz: y_pred_neg must be given"),
        ({"y_pred_pos": [0.5], "y_pred_neg": np.array([[1], None], object)}, "flat y_pred_neg"),
        ({"y_pred_pos": ["a"], "y_pred_neg": [0.1]}, r"x\.npz: y_pred_pos must be an array of numbers"),
    ],
)
def test_bad_files(arrays, message, tmp_path):
    np.savez(tmp_path / "x.npz", **{name: np.asarray(value) for name, value in arrays.items()})
    with pytest.raises(ValueError, match=message):
        convert(tmp_path / "x.npz")


def test_a_dictionary_takes_labels():
    held = {"y_pred_pos": [0.5], "y_pred_neg": [[0.1, 0.9]]}
    frame = ogb.ranks(held, head=["a"], relation=["r"], tail=["b"], side="head").frame
    assert frame.select(pl.col("head", "relation", "tail", "side")).rows() == [("a", "r", "b", "head")]
