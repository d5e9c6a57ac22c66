"""The model inverted: means held against the theory's and against draws, and inverted back."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

from owkg.auditing import Answers, implied, sparse_mean
from owkg.auditing.implied import extended
from owkg.openworld import conditional_strengths, feasible_correlation
from owkg.rank_weights import rank_weight
from owkg.rank_weights.tables import prefix_sums
from owkg.theory.grids import log_factorials
from owkg.theory.moments import given_missing

NAMES = ("mrr", "hits@10", "p-mrr@1/2", "log-mrr", "mr")
INDEPENDENT = [(1, 0.7, 0.35, 0.0), (3, 0.2, 0.6, 0.0)]
CORRELATED = [(4, 0.5, 0.5, 0.2), (1, 0.9, 0.4, -0.1), (2, 0.95, 0.7, -0.14), (2, 0.6, 0.9, 0.3)]


@jax.jit
def means_given_missing(sums, log_factorial, l1, l2, count, entities):
    """E[M | s known and m missing answers], m = 0 .. 39."""

    def mean(m):
        return given_missing(sums, log_factorial, l1, l2, count + m, entities)[0][m]

    return jax.vmap(mean)(jnp.arange(40))


def one(count, num_entities=500):
    return Answers(np.array([count]), np.array([1.0]), num_entities)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("count", "strength", "sparsity", "correlation"), INDEPENDENT)
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


@pytest.mark.parametrize(("count", "strength", "sparsity", "correlation"), INDEPENDENT + CORRELATED)
def test_equal_to_draws(count, strength, sparsity, correlation):
    """Every answer has a score of proportional odds; the classes part at one."""
    rng, trials, entities = np.random.default_rng(5), 200_000, 500
    l1, l2 = (float(x) for x in conditional_strengths(strength, sparsity, correlation))
    odds = l1 * (1 - l2) / (l2 * (1 - l1))
    missing = rng.negative_binomial(count + 1, 1 - sparsity, trials)
    # Of a known answer, the score is the share of known answers above it.
    score = rng.random(trials)
    share = rng.random((trials, missing.max()))
    other = share / (share + odds * (1 - share))
    other[np.arange(missing.max()) >= missing[:, None]] = 1
    above, before = (other < l2).sum(1), (other < score[:, None]).sum(1)
    rank = np.where(score < l2, before + 1, above + rng.integers(1, entities - count - above + 2))
    options = {"strength": strength, "sparsity": sparsity, "correlation": correlation}
    assert sparse_mean("mrr", one(count), **options) == pytest.approx((1 / rank).mean(), abs=0.004)
    assert sparse_mean("hits@10", one(count), **options) == pytest.approx((rank <= 10).mean(), abs=0.005)


@pytest.mark.parametrize(("count", "strength", "sparsity", "correlation"), INDEPENDENT + CORRELATED)
def test_equal_to_an_integral_over_the_scores(count, strength, sparsity, correlation):
    """The weight of 1 + k missing answers above, k negative binomial at every score."""
    entities, k = 20_000, np.arange(1000)
    l1, l2 = (float(x) for x in conditional_strengths(strength, sparsity, correlation))
    odds = l1 * (1 - l2) / (l2 * (1 - l1))
    # The logit of the score: at its ends the chance of being above changes fast.
    logits = np.linspace(-30, special.logit(l2), 2001)
    score = special.expit(logits)
    chance = np.append(odds * score / (1 - score + odds * score), l1)
    share = sparsity * chance / (1 - sparsity + sparsity * chance)
    pmf = stats.nbinom.pmf(k, count + 1, 1 - share[:, None])
    last = entities - count + 1
    for name in NAMES:
        sums = prefix_sums(rank_weight(name), entities + 1)[0]
        positive = integrate.simpson(pmf[:-1] @ np.diff(sums)[k] * score * (1 - score), logits)
        negative = pmf[-1] @ ((sums[last] - sums[k]) / (last - k))
        found = sparse_mean(
            name, one(count, entities), strength=strength, sparsity=sparsity, correlation=correlation
        )
        assert found == pytest.approx(positive + (1 - l2) * negative, rel=2e-5), name


def test_without_correlation_scores_are_of_equal_odds():
    """What a correlation of almost 0 gives is what none gives, and what strength 1 gives."""
    answers = Answers(np.array([1, 20, 300]), np.array([0.3, 0.4, 0.3]), 9000, np.array([0.5, 0.4, 0.1]))
    options = {"strength": np.linspace(0.05, 0.95, 7), "sparsity": 0.6}
    for own in (answers, answers._replace(queries=None)):
        for name in NAMES:
            found, none = (sparse_mean(name, own, correlation=rho, **options) for rho in (1e-9, 0.0))
            np.testing.assert_allclose(found, none, rtol=3e-4)
        assert sparse_mean("mrr", own, strength=1, sparsity=0.6, correlation=0.3) == pytest.approx(
            sparse_mean("mrr", own, strength=1, sparsity=0.6), rel=3e-4
        )


def test_missing_answers_that_are_never_found_stand_behind():
    """Where every known answer is positive and hardly any missing one, the sparse metric is the best."""
    low, _ = feasible_correlation(0.5, 0.5)
    found = sparse_mean("mrr", one(3), strength=0.5, sparsity=0.5, correlation=float(low))
    assert found == pytest.approx(1, abs=1e-6)
    # Where every missing one is positive, all are before the known ones that are.
    high = feasible_correlation(0.8, 0.5)[1]
    k = np.arange(200)
    l2 = conditional_strengths(0.8, 0.5, high)[1]
    chances = stats.nbinom.pmf(k, 4, 0.5)
    sums = prefix_sums(rank_weight("mrr"), 501)[0]
    behind = (sums[498] - sums[k]) / (498 - k)
    found = sparse_mean("mrr", one(3), strength=0.8, sparsity=0.5, correlation=float(high))
    assert found == pytest.approx(float(chances @ (l2 / (k + 1) + (1 - l2) * behind)), abs=1e-4)


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
    for sparsity, correlation in ((0.2, 0.0), (0.7, 0.0), (0.5, 0.1), (0.5, -0.1)):
        options = {"sparsity": sparsity, "correlation": correlation}
        value = sparse_mean(name, answers, strength=strength, **options)
        there = np.isfinite(value)
        assert there.sum() >= 3
        ends = extended(name, 0.5, answers, **options)
        there &= (strength >= ends.low) & (strength <= ends.high)
        found = implied(name, value[there], answers, **options)
        np.testing.assert_allclose(found.strength, strength[there], atol=4e-4)


MANY = Answers(np.array([1, 20, 300]), np.array([0.01, 0.1, 0.89]), 14_000, np.array([0.6, 0.3, 0.1]))


@pytest.mark.parametrize("name", ["mrr", "hits@1", "hits@10", "mr"])
@pytest.mark.parametrize("rho", [-0.4, -0.2, -0.05, -0.01, 0.01, 0.1, 0.3, 0.6])
@pytest.mark.parametrize("sparsity", [0.1, 0.5, 0.9])
def test_only_strengths_count_at_which_a_better_model_reads_better(name, rho, sparsity):
    """Between the ends every value is inverted; beyond, the nearest end is implied."""
    options = {"sparsity": sparsity, "correlation": rho}
    ends = extended(name, 0.5, MANY, **options)
    low, high = float(ends.low), float(ends.high)
    assert (
        feasible_correlation(low, sparsity)[0] - 1e-9 <= rho <= feasible_correlation(high, sparsity)[1] + 1e-9
    )
    inner = np.linspace(low, high, 60)[1:-1]
    value = sparse_mean(name, MANY, strength=inner, **options)
    sign = -1 if name == "mr" else 1
    # Falls by less than a thousandth of all that it may read are none.
    assert (np.diff(sign * value) > (-7 if name == "mr" else -1e-3)).all()
    again = sparse_mean(name, MANY, strength=implied(name, value, MANY, **options).strength, **options)
    np.testing.assert_allclose(again, value, rtol=5e-3, atol=5e-4)
    top = 0.5 if name == "mr" else 2.0
    assert implied(name, top, MANY, **options).strength == pytest.approx(high)
    assert implied(name, 14_000 if name == "mr" else -1.0, MANY, **options).strength == pytest.approx(low)


def test_a_metric_that_falls_at_the_end_ends_at_its_peak():
    """With a correlation above 0 found missing answers stand before the known ones."""
    options = {"sparsity": 0.5, "correlation": 0.2}
    strength = np.linspace(0.5, 0.98, 500)
    value = sparse_mean("hits@1", MANY, strength=strength, **options)
    value = np.where(np.isfinite(value), value, -np.inf)
    top = value.argmax()
    ends = extended("hits@1", value[top] + 0.01, MANY, **options)
    assert 0.5 < strength[top] < 0.97
    assert float(ends.high) == pytest.approx(strength[top], abs=0.02)
    assert float(ends.beyond) == pytest.approx(0.01, abs=1e-3)


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
