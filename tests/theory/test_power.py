"""Theorem 4.2 and Corollary 4.4: the contract figures, inversion, Monte Carlo over whole test sets."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from owkg import openworld, simulate, theory
from owkg.rank_weights import MR, MRR, RankWeight, hits_at, p_mrr

WORLD = {"sparsity": 0.35, "num_answers": 43, "num_entities": 14505}
PAIR = {"strength": 0.7, "other_strength": 0.75}


@pytest.mark.parametrize(
    ("metric", "alone", "paired"), [(MRR, 1692, 1482), (p_mrr(0.5), 150, 129)], ids=["mrr", "sqrt-mrr"]
)
def test_required_queries_of_the_published_setting(metric, alone, paired):
    setting = PAIR | WORLD | {"inconsistency": 0.05}
    assert theory.required_queries(metric, **setting) == alone
    assert theory.required_queries(metric, **setting, paired=True) == paired


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("metric", [MRR, MR, hits_at(10)], ids=str)
def test_required_queries_invert_the_probability(metric, paired):
    setting = PAIR | WORLD | {"paired": paired}
    needed = int(theory.required_queries(metric, **setting, inconsistency=0.05))
    enough = theory.inconsistency_probability(metric, **setting, num_queries=needed)
    assert enough <= 0.05
    if needed > 1:
        fewer = theory.inconsistency_probability(metric, **setting, num_queries=needed - 1)
        assert fewer > 0.05


def test_probability_by_simulation_of_test_sets():
    """4,000 test sets of 60 queries each: how often the weaker model shows the higher mean."""
    sets, queries = 4000, 60
    setting = {"strength": 0.4, "other_strength": 0.5, "sparsity": 0.3}
    setting |= {"num_answers": 12, "num_entities": 200}
    result = simulate.estimate_pair(
        jax.random.key(3), MRR, trials=queries, **(setting | {"sparsity": [0.3] * sets})
    )
    share = np.mean(result.mean[:, 0, 0] > result.mean[:, 1, 0])
    predicted = theory.inconsistency_probability(MRR, **setting, num_queries=queries, paired=True)
    error = np.sqrt(predicted * (1 - predicted) / sets)
    assert 0.01 < predicted < 0.4
    # Four standard errors, and 0.005 for the normal approximation at 60 queries.
    assert abs(share - predicted) < 4 * error + 0.005


def test_order_of_the_two_models_does_not_matter():
    swapped = {"strength": 0.75, "other_strength": 0.7}
    for paired in (False, True):
        one, two = (
            theory.inconsistency_probability(MRR, **pair, **WORLD, num_queries=500, paired=paired)
            for pair in (PAIR, swapped)
        )
        np.testing.assert_allclose(one, two, rtol=1e-10)


def test_correlation_that_reverses_the_order_needs_infinitely_many_queries():
    setting = PAIR | WORLD | {"correlation": 0.0, "other_correlation": 0.3}
    assert theory.required_queries(MRR, **setting, inconsistency=0.05) == np.inf
    chance = theory.inconsistency_probability(MRR, **setting, num_queries=1000)
    assert chance > 0.5


def test_metric_that_sees_nothing_is_a_coin_toss():
    setting = PAIR | WORLD | {"num_entities": 50}
    blind = hits_at(50)
    assert theory.required_queries(blind, **setting, inconsistency=0.05) == np.inf
    assert theory.inconsistency_probability(blind, **setting, num_queries=9) == 0.5


def test_grids_and_histograms():
    answers = np.array([12, 43])
    setting = PAIR | WORLD | {"num_answers": answers}
    each = theory.required_queries(MRR, **setting, inconsistency=0.05)
    assert each.shape == (2,)
    only_last = theory.required_queries(MRR, **setting, inconsistency=0.05, answer_weights=[0, 1])
    assert only_last == each[1] == 1692
    mixed = theory.required_queries(MRR, **setting, inconsistency=0.05, answer_weights=[1, 1], paired=True)
    assert np.isfinite(mixed)
    spread = np.array([[0.75], [0.8]])
    grid = theory.required_queries(
        MRR, **(setting | {"other_strength": spread}), inconsistency=0.05, answer_weights=[1, 3]
    )
    assert grid.shape == (2,)
    assert grid[1] < grid[0]


def test_the_papers_forms():
    c = theory.log_required_queries(
        strength=0.7, difference=1.0, sparsity=0.35, num_answers=43, variance=7.4e-3, inconsistency=0.05
    )
    assert round(float(c), 2) == 4.65
    exact = theory.moments(MRR, strength=0.7, **WORLD).variance
    corrected = {
        d: theory.log_required_queries(
            strength=0.7, difference=d, sparsity=0.35, num_answers=43, variance=exact, inconsistency=0.05
        )
        for d in (0.05, 0.01)
    }
    assert {d: round(float(q)) for d, q in corrected.items()} == {0.05: 1555, 0.01: 38867}


def test_theorem_4_2_is_the_normal_law_of_the_logarithms():
    setting = PAIR | {"sparsity": 0.35, "num_answers": 43, "num_queries": 500, "variance": 0.006}
    gap = np.log(0.75 / 0.7) / (0.35 * 44)
    for other, both in ((None, 0.012), (0.01, 0.016)):
        p = theory.log_inconsistency_probability(**setting, other_variance=other)
        assert p == pytest.approx(stats.norm.cdf(-gap / np.sqrt(both / 500)), rel=1e-12)
    one, two = (theory.moments(MRR, strength=l, **WORLD).variance for l in PAIR.values())
    p = theory.log_inconsistency_probability(**(setting | {"variance": one}), other_variance=two)
    assert p == pytest.approx(
        theory.inconsistency_probability(MRR, **PAIR, **WORLD, num_queries=500), abs=0.005
    )


@pytest.mark.parametrize("missing", [openworld.NodeBased(), openworld.PopularityBased()], ids=str)
def test_other_missing_models_are_carried_through(missing):
    setting = PAIR | WORLD | {"inconsistency": 0.05}
    alone = theory.required_queries(MRR, **setting, missing=missing)
    paired = theory.required_queries(MRR, **setting, missing=missing, paired=True)
    assert paired < alone
    assert alone != 1692


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inconsistency": 0.5}, "`inconsistency` must be in"),
        ({"other_strength": 0.7}, "`other_strength` must differ from `strength`"),
        ({"other_strength": 1.7}, "`other_strength` must be in"),
        ({"other_strength": 0.99, "other_correlation": 0.5}, "`other_correlation` must be in the feasible"),
    ],
)
def test_bad_input_is_named(change, message):
    setting = PAIR | WORLD | {"inconsistency": 0.05} | change
    with pytest.raises(ValueError, match=message):
        theory.required_queries(MRR, **setting)


def test_bad_number_of_queries_is_named():
    with pytest.raises(ValueError, match="`num_queries` must be a whole number of at least 1"):
        theory.inconsistency_probability(MRR, **PAIR, **WORLD, num_queries=0)


# --- the least power of p-MRR: what it tells is in its last digits

LEAST = p_mrr(0.001)
# 1 - r^-p without cancellation: p-MRR upside down.
STEEP = RankWeight("steep", lambda rank: -jnp.expm1(-0.001 * jnp.log(rank)), larger_is_better=False)
LOG_RANK = RankWeight("log-rank", jnp.log, larger_is_better=False)


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("other_strength", [0.1, 0.65, 0.71, 0.9])
def test_the_least_power_needs_as_many_queries_as_its_limit(paired, other_strength):
    pair = {"strength": 0.7, "other_strength": other_strength, "inconsistency": 0.05, "paired": paired}
    needed = [theory.required_queries(metric, **pair, **WORLD) for metric in (LEAST, STEEP, LOG_RANK)]
    assert needed[0] == needed[1]
    assert needed[0] == pytest.approx(needed[2], rel=0.02, abs=1)


def test_the_least_power_has_the_moments_of_every_world(enumerated):
    mean, variance, _ = enumerated(lambda r: -np.expm1(-0.001 * np.log(r)), [(0.7, 0.7)], [0.4] * 3, 6)
    found = theory.moments(LEAST, strength=0.7, sparsity=0.4, num_answers=3, num_entities=6)
    assert 1 - found.expectation == pytest.approx(mean[0], rel=1e-11)
    assert found.variance == pytest.approx(variance[0], rel=1e-7)


def test_the_least_power_is_what_simulation_gives():
    run = simulate.estimate(jax.random.key(0), [LEAST, STEEP], trials=200_000, strength=0.7, **WORLD)
    exact = theory.moments(LEAST, strength=0.7, **WORLD)
    assert np.all(np.abs(run.mean - [exact.expectation, 1 - exact.expectation]) < 4 * run.standard_error)
    assert np.all(np.abs(run.variance - exact.variance) < 4 * run.variance_standard_error)
    # On the same draws: float32 weights leave the variance its digits.
    assert run.variance[0] == pytest.approx(run.variance[1], rel=1e-4)
