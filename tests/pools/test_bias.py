"""What systems gain from their own pool, against loops."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from owkg.ir import POOLED, average_precision, bpref, judge
from owkg.judge.runs import run_from_lists, top
from owkg.pools.bias import pool_bias
from owkg.pools.pool import judged_share, leave_one_out, unique_contributions


def ordered(run, model, query):
    """The answers of a list: higher scores first, of equal ones the name that is last in the alphabet."""
    rows = run.filter(model=model, query=query).select("score", "answer").rows()
    return [answer for _, answer in sorted(rows, reverse=True)]


def by_hand(run, qrels, depth, model, *, without, kept=()):
    """(mean AP, mean bpref) of a system, perhaps without the judgements of what it alone lists."""
    models = run["model"].unique().to_list()
    ap, bpref = [], []
    for query in qrels["query"].unique().to_list():
        relevance = {row["answer"]: row["relevance"] for row in qrels.filter(query=query).rows(named=True)}
        own = ordered(run, model, query)[:depth]
        if without:
            others = {a for m in models if m != model for a in ordered(run, m, query)[:depth]}
            gone = {a for a in own if a not in others and (query, a) not in kept}
            left = {a: g for a, g in relevance.items() if a not in gone}
            relevance = left or dict.fromkeys(relevance, POOLED)
        relevant = sum(g > 0 for g in relevance.values())
        wrong = sum(g == 0 for g in relevance.values())
        hits = above = 0
        precision = preferred = 0.0
        for place, answer in enumerate(own, start=1):
            if relevance.get(answer, POOLED) > 0:
                hits += 1
                precision += hits / place
                preferred += 1 - min(above, relevant) / min(relevant, wrong) if above else 1.0
            above += relevance.get(answer, POOLED) == 0
        ap.append(precision / relevant if relevant else 0.0)
        bpref.append(preferred / relevant if relevant else 0.0)
    return np.mean(ap), np.mean(bpref)


@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 4]), st.booleans())
def test_against_a_loop(world, seed, depth, some):
    run, qrels = world(seed)
    kept = qrels.sample(fraction=0.4, seed=seed % 2**31) if some else None
    found = pool_bias(run, qrels, depth, kept=kept)
    assert found["model"].to_list() == ["one", "three", "two"]
    stay = set() if kept is None else set(kept.select("query", "answer").rows())
    for row in found.rows(named=True):
        for name, without in (("", False), ("_without", True)):
            expected = by_hand(run, qrels, depth, row["model"], without=without, kept=stay)
            np.testing.assert_allclose((row[f"map{name}"], row[f"bpref{name}"]), expected, atol=1e-6)
    alone = unique_contributions(run, qrels, depth, kept=kept)
    assert found.select(alone.columns).equals(alone)
    assert found["judged"].equals(judged_share(run, qrels, depth)["judged"])


@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 3]), st.booleans())
def test_without_is_what_the_judgements_that_are_left_say(world, seed, depth, some):
    run, qrels = world(seed)
    kept = qrels.sample(fraction=0.4, seed=seed % 2**31) if some else None
    found = pool_bias(run, qrels, depth, kept=kept).rows_by_key("model", named=True, unique=True)
    for model, left in leave_one_out(run, qrels, depth, kept=kept):
        judged = judge(top(run.filter(model=model), depth), left)
        assert found[model]["map_without"] == pytest.approx(average_precision(judged).mean())
        assert found[model]["bpref_without"] == pytest.approx(bpref(judged).mean())


def test_what_is_kept_and_not_judged_protects_nobody(world):
    run, qrels = world(1)
    nobody = qrels.with_columns(relevance=pl.lit(POOLED, pl.Int64))
    assert pool_bias(run, qrels, 3, kept=nobody).equals(pool_bias(run, qrels, 3))


def test_what_all_list_is_no_gain(world):
    run, qrels = world(3)
    same = run.filter(model="one")
    both = same.vstack(same.with_columns(model=same["model"].str.replace("one", "two")))
    found = pool_bias(both, qrels, 5)
    assert found["map"].equals(found["map_without"])
    assert found["unique"].to_list() == [0, 0]


def test_bad_input(world):
    run, qrels = world(0)
    with pytest.raises(ValueError, match="`run` must hold at least two systems, got 1"):
        pool_bias(run.filter(model="one"), qrels, 2)
    with pytest.raises(ValueError, match="`qrels` must have at least one row"):
        pool_bias(run, qrels.clear(), 2)
    with pytest.raises(ValueError, match="`kept` must"):
        pool_bias(run, qrels, 2, kept=[1])
    with pytest.raises(ValueError, match="`depth` must be"):
        pool_bias(run, qrels, 0)
    other = run_from_lists("x", "tail", [7], [0], [[1]], [[0.0]], entities=tuple("abcdefgh"), relations=["r"])
    with pytest.raises(ValueError, match="`run` must answer queries that `qrels` judges"):
        pool_bias(run.vstack(other), qrels, 2)
