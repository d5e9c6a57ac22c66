"""The model inverted: means held against the theory's and against draws, and inverted back."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from owkg.auditing import Answers, implied, sparse_mean
from owkg.openworld import conditional_strengths
from owkg.rank_weights import rank_weight
from owkg.rank_weights.tables import prefix_sums
from owkg.theory.grids import log_factorials
from owkg.theory.moments import given_missing

NAMES = ("mrr", "hits@10", "p-mrr@1/2", "log-mrr", "mr")
SETTINGS = [(1, 0.7, 0.35, 0.0), (3, 0.2, 0.6, 0.0), (4, 0.5, 0.5, 0.2), (1, 0.9, 0.4, -0.1)]


@jax.jit
def means_given_missing(sums, log_factorial, l1, l2, count, entities):
    """E[M | s known and m missing answers], m = 0 .. 39."""

    def mean(m):
        return given_missing(sums, log_factorial, l1, l2, count + m, entities)[0][m]

    return jax.vmap(mean)(jnp.arange(40))


def one(count, num_entities=500):
    return Answers(np.array([count]), np.array([1.0]), num_entities)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("count", "strength", "sparsity", "correlation"), SETTINGS)
def test_equal_to_the_theory_summed_over_the_missing(name, count, strength, sparsity, correlation):
    """Sum over m of P(m | s) E[M | n = s + m, m], with the theory's mean given m."""
    size, entities = 128, 500
    l1, l2 = (float(x) for x in conditional_strengths(strength, sparsity, correlation))
    sums = prefix_sums(rank_weight(name), entities)
    chances = stats.nbinom.pmf(np.arange(size - count), count + 1, 1 - sparsity)
    assert chances.sum() == pytest.approx(1)
    with jax.enable_x64(True):
        shared = jnp.asarray(sums), jnp.asarray(log_factorials(size + 1)), jnp.float64(l1), jnp.float64(l2)
        means = np.asarray(means_given_missing(*shared, count, entities))
    rest = chances[40:].sum()
    found = sparse_mean(name, one(count), strength=strength, sparsity=sparsity, correlation=correlation)
    expected = float(np.dot(chances[:40], means))
    assert found == pytest.approx(expected, rel=1e-4, abs=rest * (500 if name == "mr" else 1) + 1e-6)


@pytest.mark.parametrize(("count", "strength", "sparsity", "correlation"), SETTINGS)
def test_equal_to_draws(count, strength, sparsity, correlation):
    rng, trials, entities = np.random.default_rng(5), 200_000, 500
    l1, l2 = (float(x) for x in conditional_strengths(strength, sparsity, correlation))
    missing = rng.negative_binomial(count + 1, 1 - sparsity, trials)
    above = rng.binomial(missing, l1)
    positive = rng.random(trials) < l2
    rank = np.where(
        positive, rng.integers(1, above + 2), above + rng.integers(1, entities - count - above + 2)
    )
    options = {"strength": strength, "sparsity": sparsity, "correlation": correlation}
    assert sparse_mean("mrr", one(count), **options) == pytest.approx((1 / rank).mean(), abs=0.004)
    assert sparse_mean("hits@10", one(count), **options) == pytest.approx((rank <= 10).mean(), abs=0.005)


def test_limits():
    """Where nothing is missing the sparse test is the full one; where all are wrong it is chance."""
    answers = Answers(np.array([1, 5]), np.array([0.5, 0.5]), 100)
    almost = implied("mrr", 0.6, answers, sparsity=1e-9)
    assert almost.full == pytest.approx(0.6, abs=1e-6)
    chance = np.mean([(1 / np.arange(1, n + 1)).mean() for n in (100, 96)])
    assert sparse_mean("mrr", answers, strength=0.0, sparsity=0.5) == pytest.approx(chance)
    assert implied("mrr", 0.0, answers, sparsity=0.5).full == pytest.approx(chance)
    # All are found, half are missing: k + 1 is geometric with one answer, and 1/(k + 1) of it log 2 / ...
    found = sparse_mean("hits@1", one(1), strength=1.0, sparsity=0.5)
    k = np.arange(200)
    assert found == pytest.approx(((k + 1) * 0.5 ** (k + 2) / (k + 1)).sum())


@pytest.mark.parametrize("name", NAMES)
def test_inverted_back(name):
    answers = Answers(np.array([1, 3, 20]), np.array([0.5, 0.3, 0.2]), 2000)
    strength = np.array([0.03, 0.2, 0.5, 0.8, 0.97])
    for sparsity, correlation in ((0.2, 0.0), (0.7, 0.0), (0.5, 0.1)):
        options = {"sparsity": sparsity, "correlation": correlation}
        value = sparse_mean(name, answers, strength=strength, **options)
        there = np.isfinite(value)
        assert there.sum() >= 3
        found = implied(name, value[there], answers, **options)
        np.testing.assert_allclose(found.strength, strength[there], atol=2e-4)


def test_shapes_and_what_is_not_feasible():
    found = implied("mrr", [[0.1], [0.2]], one(2), sparsity=[[0.3], [0.6]], correlation=[0.0, 0.1, 0.2])
    assert found.strength.shape == found.full.shape == (2, 1, 2, 3)
    assert (np.diff(found.strength[:, 0], axis=0) > 0).all()
    assert np.isnan(sparse_mean("mrr", one(2), strength=0.05, sparsity=0.9, correlation=0.9))


@pytest.mark.parametrize(
    "options",
    [{"sparsity": 0.0}, {"sparsity": 1.0}, {"sparsity": 0.5, "correlation": 2}, {"sparsity": "half"}],
)
def test_bad_arguments(options):
    with pytest.raises(ValueError, match=r"`(sparsity|correlation)` must be"):
        implied("mrr", 0.2, one(1), **options)
    with pytest.raises(ValueError, match="must leave candidates"):
        sparse_mean("mrr", one(9, 9), strength=0.5, sparsity=0.5)


@pytest.mark.parametrize(
    ("counts", "weights"), [([1, 2], [1.0]), ([1, 2], [1.0, 1.0]), ([0], [1.0]), ([1.5], [1.0]), ([], [])]
)
def test_malformed_answers(counts, weights):
    with pytest.raises(ValueError, match="`answers` must"):
        sparse_mean("mrr", Answers(np.array(counts), np.array(weights), 50), strength=0.5, sparsity=0.5)
