"""Summaries as data: directions, factories, bad parameters."""

import numpy as np
import pytest

from owkg.metrics import (
    Adjustment,
    macro,
    macro_map,
    macro_ndcg,
    metric,
    micro,
    probe,
    stratified,
    stratified_mrr,
)
from owkg.metrics.measures import BestAnswer, Median, Metric, Probe, Weighting, probe_loss
from owkg.rank_weights import GMR, IMR, MRR, power_mean
from owkg.rank_weights.tables import rank_weights


@pytest.mark.parametrize(
    ("name", "larger"),
    [
        *((name, True) for name in ("mrr", "hits@10", "imr", "igmr", "inverse_median_rank", "log-mrr")),
        *(
            (name, False)
            for name in ("mr", "hmr", "gmr", "median_rank", "wgmr", "power-mean@2", "strat-mr@1")
        ),
        *((name, False) for name in ("amr", "agmr", "ahmr", "amedian_rank", "macro-mr", "power-mean@2")),
        *((name, True) for name in ("amri", "agmri", "amrr", "zmr", "zgmr", "zmrr", "zmedian_rank")),
        *((name, True) for name in ("probe@1,0", "macro-mrr", "macro-map@5", "macro-ndcg@5", "zmacro-mr")),
    ],
)
def test_direction(name, larger):
    assert metric(name).larger_is_better is larger


def test_factories():
    assert micro(MRR) == Metric("mrr", MRR, Weighting(), Adjustment.NONE)
    assert probe(0.5, 0.25) == Metric("probe@0.5,0.25", Probe(0.5), Weighting(popularity=0.25))
    assert probe(np.float32(2), 0).name == "probe@2,0"
    assert probe(1, 0.5, epsilon=0.01).name == "probe@1,0.5,0,0.01"
    assert probe(1, 0, 0.5).weighting == Weighting(relation_popularity=0.5)
    assert probe(float("inf")).measure == Probe(float("inf"))
    assert stratified_mrr(0.5) == stratified(MRR, 0.5)
    assert stratified_mrr(0.5).weighting == Weighting(popularity=0.5)
    assert macro(MRR).measure == BestAnswer(MRR)
    assert macro_map(20).name == "macro-map@20"
    assert macro_ndcg(20.0).name == "macro-ndcg@20"
    assert metric("median_rank").measure == Median()


@pytest.mark.parametrize(
    ("argument", "arguments"),
    [
        ("sharpness", (-1.01,)),
        ("sharpness", (float("nan"),)),
        ("sharpness", ("1",)),
        ("sharpness", (None,)),
        ("sharpness", (-float("inf"),)),
        ("sharpness", ([1, 2],)),
        ("robustness", (1, -0.1)),
        ("robustness", (1, float("inf"))),
        ("robustness", (1, float("nan"))),
        ("relation_robustness", (1, 0, -0.1)),
        ("relation_robustness", (1, 0, float("inf"))),
        ("epsilon", (1, 0.5, 0, 0)),
        ("epsilon", (1, 0.5, 0, float("inf"))),
    ],
)
def test_bad_probe(argument, arguments):
    with pytest.raises(ValueError, match=f"`{argument}`"):
        probe(*arguments)


@pytest.mark.parametrize("exponent", [-1, float("nan"), float("inf"), "1", None])
def test_bad_stratified(exponent):
    with pytest.raises(ValueError, match="`exponent`"):
        stratified_mrr(exponent)


@pytest.mark.parametrize("factory", [macro_map, macro_ndcg])
@pytest.mark.parametrize("k", [0, -1, 1.5, float("nan"), "3", None, True])
def test_bad_cutoff(factory, k):
    with pytest.raises(ValueError, match="`k`"):
        factory(k)


@pytest.mark.parametrize("metric", [GMR, IMR, power_mean(3)], ids=str)
def test_macro_of_a_link_is_refused(metric):
    with pytest.raises(ValueError, match=metric.name):
        macro(metric)


RANKS = np.arange(1.0, 2001)


@pytest.mark.parametrize("sharpness", [1e-9, 0.01, 0.5, 1.0, 3.0, 40.0])
def test_probe_loss(sharpness):
    loss = rank_weights(probe_loss(sharpness), RANKS)
    np.testing.assert_allclose(loss, -np.expm1(-sharpness * np.log(RANKS)), rtol=1e-13)
    np.testing.assert_allclose(1 - loss, RANKS**-sharpness, rtol=1e-12, atol=1e-15)
    assert not probe_loss(sharpness).larger_is_better


def test_probe_loss_at_its_limits():
    np.testing.assert_allclose(rank_weights(probe_loss(0.0), RANKS), np.log(RANKS), rtol=1e-14)
    small = rank_weights(probe_loss(1e-9), RANKS) / 1e-9
    np.testing.assert_allclose(small, np.log(RANKS), rtol=1e-7)
    np.testing.assert_array_equal(rank_weights(probe_loss(np.inf), RANKS), RANKS > 1)
    assert probe_loss(0.5) is probe_loss(0.5)


@pytest.mark.parametrize(
    ("names", "properties"),
    [
        ("mrr hits@10 p-mrr@1/2 log-mrr", {"is_plain_mean", "falls_with_rank", "is_mean"}),
        ("mr", {"is_plain_mean", "is_mean"}),
        ("gmr hmr power-mean@2", set()),
        ("amri ahits@10 strat-mrr@0.5 probe@1,0.5", {"is_mean"}),
        ("macro-mrr macro-map@20 macro-ndcg@20", {"is_mean", "needs_lists"}),
        ("zmr amr median_rank count cdf-zmr", set()),
    ],
)
def test_a_metric_says_what_it_is(names, properties):
    of_weights = ("mrr", "hits@10", "p-mrr@1/2", "log-mrr", "mr", "gmr", "hmr", "power-mean@2")
    every = ("is_plain_mean", "falls_with_rank", "is_mean", "needs_lists")
    for name in names.split():
        one = metric(name)
        assert {of for of in every if getattr(one, of)} == properties, name
        assert (one.rank_weight is not None) == (name in of_weights)
