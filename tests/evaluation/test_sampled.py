"""Unbiased estimates against full evaluation, and what they refuse."""

from dataclasses import replace
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

import owkg
from owkg.evaluation import ranks, sampled, typical_candidates
from owkg.kg import KnowledgeGraph
from owkg.models import Trained, model

ENTITIES, RELATIONS = 700, 5
TIES = ("optimistic", "realistic", "pessimistic")


@pytest.fixture(scope="module")
def graph():
    """Facts between the parts of a graph, so that candidates are typical of relations."""
    rng = np.random.default_rng(0)
    relation = rng.integers(0, RELATIONS, 1500)
    head = (relation * 100 + rng.integers(0, 90, 1500)) % ENTITIES
    tail = (relation * 130 + rng.integers(0, 60, 1500)) % ENTITIES
    facts = np.unique(np.stack([head, relation, tail], 1), axis=0).astype(np.int32)
    rng.shuffle(facts)
    labels = tuple(f"e{i}" for i in range(ENTITIES)), tuple(f"r{i}" for i in range(RELATIONS))
    return KnowledgeGraph(*labels, {"train": facts[:900], "valid": facts[900:1000], "test": facts[1000:]})


@pytest.fixture(scope="module", params=["distmult", "transe", "ties"])
def scorer(request, graph):
    """Scores that know the facts a little; of the last, whole numbers, so that many tie."""
    rng = np.random.default_rng(1)
    name = "distmult" if request.param == "ties" else request.param
    own = model(name, dim=4)
    params, statistics = own.init(jax.random.key(0), ENTITIES, RELATIONS)
    if request.param == "ties":
        shapes = {key: value.shape for key, value in params.items()}
        params = {key: jnp.array(rng.integers(-1, 2, shape), jnp.float32) for key, shape in shapes.items()}
    return Trained(own, params, statistics)


def full(scorer, graph, names, ties, **options):
    table = ranks(scorer, graph, **options)
    found = owkg.evaluate(table, names, ties=ties, side=["head", "tail", "both"], ci=None)
    return {(row["side"], row["metric"]): row["value"] for row in found.iter_rows(named=True)}


@pytest.mark.parametrize("ties", TIES)
def test_the_mean_over_seeds_is_full_evaluation(scorer, graph, ties):
    names = ["mrr", "hits@3", "hits@10", "p-mrr@0.5"]
    truth = full(scorer, graph, names, ties)
    found = [sampled(scorer, graph, names, share=0.05, ties=ties, seed=seed).values for seed in range(50)]
    for (side, metric), value in truth.items():
        own = [table.filter(side=side, metric=metric) for table in found]
        values = np.array([row["value"].item() for row in own])
        error = values.std(ddof=1) / np.sqrt(len(values))
        assert abs(values.mean() - value) < 4.5 * error + 1e-9, (side, metric)
        told = np.sqrt(np.mean([row["sampling_error"].item() ** 2 for row in own]))
        spread = values.std(ddof=1)
        assert told == spread == 0 or spread / 2 < told < 2 * spread, (side, metric)


def test_hits_are_those_of_full_evaluation_where_all_is_looked_at(scorer, graph, monkeypatch):
    """No chance is left: typical candidates, others, filters and ties are counted as full evaluation does."""

    def every(weights, rank, edges, budget):
        return np.ones((len(rank), len(edges) - 1))

    monkeypatch.setattr("owkg.evaluation.estimate.reach_chances", every)
    names = ["hits@1", "hits@3", "hits@10", "hits@50"]
    for ties in TIES:
        for options in ({}, {"filter_splits": []}, {"filter_splits": ["train"]}, {"split": "valid"}):
            truth = full(scorer, graph, names, ties, **options)
            found = sampled(scorer, graph, names, ties=ties, **options)
            for row in found.values.iter_rows(named=True):
                assert row["value"] == pytest.approx(truth[row["side"], row["metric"]], abs=1e-12)
                assert row["sampling_error"] == 0
            assert found.typical_share + found.sampled_share <= 3.1


def test_a_seed_gives_the_same_again(scorer, graph):
    one, other, third = (sampled(scorer, graph, seed=seed) for seed in (3, 3, 4))
    assert one.values.equals(other.values)
    assert not one.values.equals(third.values)
    assert one[1:] == other[1:]


def test_shares_and_errors(scorer, graph):
    costs = {}
    for share in (0.01, 0.1, 0.5):
        seen: list[tuple[int, int]] = []
        found = sampled(scorer, graph, share=share, on_progress=lambda *told, seen=seen: seen.append(told))
        costs[share] = found.sampled_share
        assert seen == sorted(seen)
        assert seen[-1][0] == seen[-1][1]
        some = found.values.filter(pl.col("sampling_error") > 0)
        assert (found.values["full_low"].is_null() == (found.values["sampling_error"] == 0)).all()
        for low, high in pairwise(["ci_low", "full_low", "value", "full_high", "ci_high"]):
            assert (some[low] <= some[high]).all()
        both = found.values["sampling_error"] ** 2 + found.values["query_error"] ** 2
        np.testing.assert_allclose(found.values["standard_error"] ** 2, both, rtol=1e-12)
    assert costs[0.01] < costs[0.1] < costs[0.5] < 0.6


def test_query_errors_are_those_of_full_evaluation(scorer, graph):
    truth = owkg.evaluate(ranks(scorer, graph), ["mrr"], side=["head", "tail", "both"])
    found = [sampled(scorer, graph, ["mrr"], share=0.9, seed=seed).values for seed in range(20)]
    for row in truth.iter_rows(named=True):
        own = [table.filter(side=row["side"])["query_error"].item() for table in found]
        assert np.sqrt(np.mean(np.square(own))) == pytest.approx(row["standard_error"], rel=0.1)


def test_typical_candidates_hold_all_that_facts_have(graph):
    facts = np.concatenate(list(graph.splits.values()))
    for more in (0.0, 0.1, 1.0):
        found = typical_candidates(facts, more=more, **graph.sizes)
        for relation in range(RELATIONS):
            for side, column in (("head", 0), ("tail", 2)):
                own, seen = found.of(relation, side), set(facts[facts[:, 1] == relation][:, column].tolist())
                assert (np.diff(own) > 0).all()
                assert seen <= set(own.tolist())
                assert len(own) == min(ENTITIES, len(seen) + int(more * ENTITIES))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": "mr"}, "`metrics` must be one of mrr"),
        ({"metrics": []}, "`metrics` must"),
        ({"share": 0}, r"`share` must be in \(0, 1\], got 0"),
        ({"share": float("nan")}, "`share` must be"),
        ({"more": -1}, r"`more` must be in \[0, 1\]"),
        ({"ties": "exact"}, "`ties` must be one of optimistic, realistic, pessimistic"),
        ({"ci": 1}, "`ci` must"),
        ({"split": "none"}, "none"),
        ({"sides": ["left"]}, "`sides` must"),
        ({"seed": -1}, "`seed` must"),
    ],
)
def test_bad_arguments(scorer, graph, options, message):
    with pytest.raises(ValueError, match=message):
        sampled(scorer, graph, **options)


def test_scores_must_be_finite(scorer, graph):
    for entity in graph.splits["test"][0, [0, 2]].tolist():
        broken = scorer.params | {"entity": scorer.params["entity"].at[entity].set(jnp.nan)}
        with pytest.raises(ValueError, match="`trained` must give scores that are finite"):
            sampled(replace(scorer, params=broken), graph, share=0.1)


def test_too_little_memory_is_told_before_scoring(scorer, graph, monkeypatch):
    monkeypatch.setattr("owkg.evaluation.estimate.free_memory", lambda: 2**9)
    with pytest.raises(ValueError, match=r"`more` must leave memory for the typical candidates of \d+"):
        sampled(scorer, graph)
    monkeypatch.setattr("owkg.evaluation.estimate.free_memory", lambda: None)
    assert sampled(scorer, graph, share=0.02).values.height
