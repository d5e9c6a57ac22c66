"""Pools against sets in loops; what each system brings in; judged@k."""

from collections import defaultdict

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from owkg.ir import POOLED, judge, reciprocal_rank
from owkg.judge.runs import run_from_lists
from owkg.pools.pool import judged_pool, judged_share, leave_one_out, pool, pool_sizes, unique_contributions

ENTITIES = tuple("abcdefgh")


seeds = st.integers(0, 2**32 - 1)


def by_hand(run, depth):
    """{(query, answer): (depth, models)}."""
    lists = defaultdict(list)
    for row in run.rows(named=True):
        lists[row["model"], row["query"]].append((row["score"], row["answer"]))
    found = defaultdict(dict)
    for (model, query), answers in lists.items():
        for rank, (_, answer) in enumerate(sorted(answers, reverse=True)[:depth], 1):
            found[query, answer][model] = rank
    return {key: (min(ranks.values()), sorted(ranks)) for key, ranks in found.items()}


@settings(max_examples=20)
@given(seed=seeds, depth=st.integers(1, 6))
def test_pools_against_a_loop(world, seed, depth):
    run, judgements = world(seed)
    found = pool(run.sample(fraction=1, shuffle=True, seed=depth), depth)
    expected = by_hand(run, depth)
    assert {(r["query"], r["answer"]): (r["depth"], r["models"]) for r in found.rows(named=True)} == expected
    assert found["systems"].to_list() == found["models"].list.len().to_list()
    relevances = {(r["query"], r["answer"]): r["relevance"] for r in judgements.rows(named=True)}
    sizes = pool_sizes(found, judgements)
    for row in sizes.rows(named=True):
        shallow = by_hand(run, row["depth"])
        assert row["candidates"] == len(shallow)
        assert row["queries"] == len({query for query, _ in shallow})
        assert row["judged"] == sum(relevances.get(key, -1) >= 0 for key in shallow)
        assert row["relevant"] == sum(relevances.get(key, -1) > 0 for key in shallow)
    assert pool_sizes(found).equals(sizes.select("depth", "candidates", "queries"))


@settings(max_examples=20)
@given(seed=seeds, depth=st.integers(1, 5))
def test_what_each_system_brings_in(world, seed, depth):
    run, judgements = world(seed)
    relevances = {(r["query"], r["answer"]): r["relevance"] for r in judgements.rows(named=True)}
    expected = by_hand(run, depth)
    counts = unique_contributions(run, judgements, depth).rows_by_key("model", named=True, unique=True)
    for model, without in leave_one_out(run, judgements, depth):
        own = {key for key, (_, models) in expected.items() if models == [model]}
        assert counts[model]["pooled"] == sum(model in models for _, models in expected.values())
        assert counts[model]["unique"] == len(own)
        assert counts[model]["unique_relevant"] == sum(relevances.get(key, -1) > 0 for key in own)
        # As if it had not been pooled: the pool of the others, and what no list holds.
        others = by_hand(run.filter(pl.col("model") != model), depth)
        left = {key for key in relevances if key in others or key not in expected}
        asked = {query for query, _ in left}
        rows = {(r["query"], r["answer"]): r["relevance"] for r in without.rows(named=True)}
        assert {key: rows[key] for key in left} == {key: relevances[key] for key in left}
        assert all(rows[key] == POOLED and key[0] not in asked for key in rows.keys() - left)
        assert set(without["query"]) == set(judgements["query"])
    assert list(counts) == sorted(counts)


def test_a_query_that_loses_all_its_judgements_is_still_measured():
    labels = {"entities": ENTITIES, "relations": ["r"]}
    run = pl.concat(
        [
            run_from_lists("one", "tail", [0], [0], [[1]], [[1.0]], **labels),
            run_from_lists("two", "tail", [0], [0], [[2]], [[1.0]], **labels),
        ]
    )
    judgements = judged_pool(pool(run, 1), qrels_of({"b": 1}))
    assert judgements.select("answer", "relevance").rows() == [("b", 1), ("c", 0)]
    left = dict(leave_one_out(run, judgements.filter(answer="b"), 1))
    assert left["one"]["relevance"].to_list() == [POOLED]
    own = run.filter(model="one")
    assert reciprocal_rank(judge(own, left["one"])).tolist() == [0]
    assert reciprocal_rank(judge(own, left["two"])).tolist() == [1]
    kept = dict(leave_one_out(run, judgements, 1, kept=qrels_of({"b": 1})))
    assert kept["one"].equals(judgements)


def qrels_of(relevances):
    asked = {"query": "a|r|?", "side": "tail", "entity": "a", "relation": "r"}
    return pl.DataFrame([asked | {"answer": a, "relevance": g} for a, g in relevances.items()])


@settings(max_examples=20)
@given(seed=seeds)
def test_a_closed_world_judges_the_whole_pool(world, seed):
    run, judgements = world(seed)
    candidates = pool(run, 3)
    found = judged_pool(candidates, judgements)
    true = {(r["query"], r["answer"]) for r in judgements.rows(named=True) if r["relevance"] > 0}
    assert {(r["query"], r["answer"]) for r in found.rows(named=True) if r["relevance"] == 1} == true & set(
        by_hand(run, 3)
    )
    assert set(found["relevance"]) <= {0, 1}
    assert found.select("query", "answer").equals(candidates.select("query", "answer"))


@settings(max_examples=20)
@given(seed=seeds, k=st.integers(1, 6))
def test_judged_share_against_a_loop(world, seed, k):
    run, judgements = world(seed)
    relevances = {(r["query"], r["answer"]): r["relevance"] for r in judgements.rows(named=True)}
    shares = dict(judged_share(run, judgements, k).rows())
    assert list(shares) == ["one", "three", "two"]
    for model, share in shares.items():
        listed = by_hand(run.filter(model=model), k)
        judged = sum(relevances.get(key, -1) >= 0 for key in listed)
        assert share == pytest.approx(judged / k / 4)


def test_a_query_without_judgement_is_refused():
    labels = {"entities": ENTITIES, "relations": ["r"]}
    run = run_from_lists("one", "tail", [0, 1], [0, 0], [[1], [2]], [[1.0], [1.0]], **labels)
    with pytest.raises(ValueError, match=r"'b\|r\|\?'"):
        judged_share(run, qrels_of({"b": 1}), 1)
    # A system that does not answer a judged query has judged nothing there.
    two = pl.concat([run, run[:1].with_columns(model=pl.lit("two"))])
    more = pl.concat([qrels_of({"b": 1}), qrels_of({"c": 0}).with_columns(query=pl.lit("b|r|?"))])
    assert judged_share(two, more, 1)["judged"].to_list() == [1, 0.5]


@pytest.mark.parametrize("depth", [0, -1, 1.5, None])
def test_bad_depth(depth):
    labels = {"entities": ENTITIES, "relations": ["r"]}
    run = run_from_lists("one", "tail", [0], [0], [[1]], [[1.0]], **labels)
    with pytest.raises(ValueError, match="`depth`"):
        pool(run, depth)
    with pytest.raises(ValueError, match="at least one row"):
        pool(run[:0], 3)
    with pytest.raises(ValueError, match="column depth"):
        pool_sizes(pool(run, 3).drop("depth"))
