"""Ranks under fewer labels: those that ranking all scores again gives."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg.judge.relabelled import relabelled
from owkg.judge.scores import scores as scores_of
from owkg.metrics import metric

ENTITIES, QUERIES = 12, 6


def ranked(scores, relevant):
    """The rank table of the relevant answers to queries h0|r|?, h1|r|?, ..., filtered by each other."""
    rows = []
    for query, row in enumerate(scores):
        others = row[~relevant[query]]
        for answer in np.flatnonzero(relevant[query]):
            low, high = 1 + (others > row[answer]).sum(), 1 + (others >= row[answer]).sum()
            rows.append((f"h{query}", "r", f"e{answer}", "tail", low, high, len(others) + 1))
    names = ["head", "relation", "tail", "side", "optimistic", "pessimistic", "candidates"]
    return pl.DataFrame(rows, schema=names, orient="row")


def labels(relevant, relevance=1):
    query, answer = np.nonzero(relevant)
    return pl.DataFrame(
        {
            "side": ["tail"] * len(query),
            "entity": [f"h{q}" for q in query],
            "relation": ["r"] * len(query),
            "answer": [f"e{a}" for a in answer],
            "relevance": [relevance] * len(query),
        },
        schema_overrides={"relevance": pl.Int64, "entity": pl.String, "answer": pl.String},
    )


@given(seed=st.integers(0, 2**32 - 1))
def test_as_ranked_again(seed):
    rng = np.random.default_rng(seed)
    scores = rng.permuted(np.tile(np.arange(ENTITIES), (QUERIES, 1)), axis=1)
    full = rng.random((QUERIES, ENTITIES)) < 0.4
    full[:, 0] = True
    sparse = full & (rng.random(full.shape) < 0.6)
    sparse[0, 0] = True
    found, unlabelled, undetermined = relabelled(ranked(scores, full), labels(sparse))
    again = ranked(scores, sparse)
    assert undetermined == pytest.approx((found["optimistic"] < found["pessimistic"]).mean())
    # With scores nothing is left open.
    known = ranked(scores, full).with_columns(score=scores[full].astype(float))
    told = relabelled(known, labels(sparse))
    assert told.undetermined == 0
    assert told.table.drop("score").equals(again)
    assert unlabelled == (~sparse.any(1)).sum()
    assert found.select("head", "tail", "candidates").equals(again.select("head", "tail", "candidates"))
    # Of answers of equal rank it is not known which one scores more: ranks lie around the true one.
    assert (found["optimistic"] <= again["optimistic"]).all()
    assert (found["pessimistic"] >= again["pessimistic"]).all()
    apart = ~ranked(scores, full).select(pl.struct("head", "optimistic").is_duplicated()).to_series()
    keeps = apart.filter(pl.Series(sparse[full]))
    assert (found["optimistic"] == again["optimistic"]).filter(keeps).all()
    assert (found["pessimistic"] == again["pessimistic"]).filter(keeps).all()


@given(seed=st.integers(0, 2**32 - 1))
def test_equal_scores_are_ties_and_leave_nothing_open(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 4, (QUERIES, ENTITIES)).astype(float)
    full = rng.random((QUERIES, ENTITIES)) < 0.5
    full[:, 0] = True
    sparse = full & (rng.random(full.shape) < 0.6)
    sparse[0, 0] = True
    told = relabelled(ranked(scores, full).with_columns(score=scores[full]), labels(sparse))
    assert told.undetermined == 0
    assert told.table.drop("score").equals(ranked(scores, sparse))


def test_metrics_are_expectations_over_the_order_that_is_open():
    """Of good systems most answers are first: their order is drawn, and metrics read again."""
    wanted = [metric(name) for name in ("mrr", "hits@1", "macro-mrr", "macro-map@20")]

    def means(table, **ties):
        return scores_of({"a": table}, wanted, **ties)[0].mean[:, 0]

    rng = np.random.default_rng(3)
    queries, draws = 60, 400
    full = np.zeros((queries, ENTITIES), bool)
    full[:, :5] = True
    scores = rng.random((queries, ENTITIES)) + 0.8 * full
    sparse = full & (rng.random(full.shape) < 0.5)
    sparse[:, 0] = True
    found = relabelled(ranked(scores, full), labels(sparse))
    assert found.undetermined > 0.3
    own = means(found.table, ties="exact")
    # Answers of one rank change places at random, as among equals.
    table = ranked(scores, full)["optimistic"].to_numpy().reshape(queries, 5)
    read = []
    for _ in range(draws):
        drawn = np.where(full, 0.0, scores)
        others = np.sort(np.where(full, -np.inf, scores), axis=1)[:, ::-1]
        padded = np.concatenate([np.full((queries, 1), 9.0), others], axis=1)
        low = np.take_along_axis(padded, table, 1)
        high = np.take_along_axis(padded, table - 1, 1)
        drawn[:, :5] = low + (high - low) * rng.uniform(0.001, 0.999, low.shape)
        read.append(means(ranked(drawn, sparse)))
    error = np.std(read, axis=0) / draws**0.5
    assert (abs(own - np.mean(read, axis=0)) < 4 * error).all()
    realistic = means(found.table, ties="realistic")
    assert (abs(realistic - own) > 10 * error).all()


def test_several_systems_in_one_table():
    rng = np.random.default_rng(0)
    full = rng.random((QUERIES, ENTITIES)) < 0.5
    sparse = full & (rng.random(full.shape) < 0.5)
    parts = [ranked(rng.random((QUERIES, ENTITIES)), full).with_columns(model=pl.lit(m)) for m in "ab"]
    found = relabelled(pl.concat(parts), labels(sparse)).table
    for part, name in zip(parts, "ab", strict=True):
        one = relabelled(part, labels(sparse)).table
        assert found.filter(model=name).equals(one)


def test_the_same_labels_change_nothing_and_unjudged_ones_do_not_count():
    full = np.ones((2, 3), bool)
    table = ranked(np.arange(24).reshape(2, 12) % 7, np.pad(full, ((0, 0), (0, 9))))
    both = pl.concat([labels(full), labels(np.array([[False] * 5 + [True]]), relevance=0)])
    assert relabelled(table, both).table.equals(table)
    with pytest.raises(ValueError, match="`qrels` must call at least one answer relevant"):
        relabelled(table, both, level=2)


def test_refused():
    full = np.ones((2, 3), bool)
    table = ranked(np.arange(6.0).reshape(2, 3), full)
    with pytest.raises(ValueError, match=r"2 of them are not ranked, such as 'e3' to h0\|r\|\?"):
        relabelled(table, labels(np.ones((2, 4), bool)))
    with pytest.raises(ValueError, match="`qrels` must have the columns side, entity"):
        relabelled(table, pl.DataFrame({"query": ["q"]}))
    scores = np.tile([6.0, 4.0, 2.0, 5.0, 3.0, 1.0], (2, 1))
    turned = ranked(scores, np.pad(full, ((0, 0), (0, 3)))).with_columns(score=np.arange(6.0))
    message = (
        r"by one scoring, .* it has 'e2' to h0\|r\|\?, score 2, at rank 3, but 'e1' to h0\|r\|\?, score 1, at"
    )
    with pytest.raises(ValueError, match=message):
        relabelled(turned, labels(full))
    for level in (0, "x", 1.5):
        with pytest.raises(ValueError, match="`level` must be"):
            relabelled(table, labels(full), level=level)
    with pytest.raises(ValueError, match="`qrels` must hold each relevance as a whole number, got String"):
        relabelled(table, labels(full).with_columns(pl.col("relevance").cast(pl.String)))
    with pytest.raises(ValueError, match="`table` must hold ranks filtered"):
        relabelled(table.with_columns(filtered=False), labels(full))
