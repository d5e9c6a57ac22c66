"""Lemma 4.1 and Corollaries 4.1 to 4.3: the paper's sums, automatic differentiation, limits."""

import jax
import numpy as np
import pytest
from scipy import stats

from owkg import openworld, theory
from owkg.rank_weights import LOG_MRR, MR, MRR, hits_at, p_mrr

METRICS = (MRR, LOG_MRR, MR, hits_at(3), p_mrr(1 / 3))
SETTINGS = [(0.7, 0.35, 43), (0.6, 0.4, 15), (0.6, 0.4, 16), (0.05, 0.9, 1), (1.0, 0.5, 7), (0.3, 0.01, 200)]


def weigh(metric, ranks):
    with jax.enable_x64(True):
        return np.asarray(metric.weight(jax.numpy.asarray(ranks, float)))


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
@pytest.mark.parametrize(("l", "beta", "n"), SETTINGS)
def test_lemma_equals_the_papers_sum(metric, l, beta, n):
    j = np.arange(n + 1)
    tail = stats.binom.sf(j, n + 1, l * beta)
    paper = (weigh(metric, j + 1) * tail).sum() / (beta * (n + 1))
    exact = theory.lemma_expectation(metric, strength=l, sparsity=beta, num_answers=n, num_entities=5000)
    # With no correlation the factor l2/l1 is 1 and the paper's sum is per positive answer.
    np.testing.assert_allclose(exact, paper, rtol=1e-11)


@pytest.mark.parametrize("rho", [-0.3, 0.2])
def test_lemma_with_correlation(rho):
    l, beta, n = 0.6, 0.4, 20
    l1, l2 = openworld.conditional_strengths(l, beta, rho)
    j = np.arange(n + 1)
    paper = (weigh(MRR, j + 1) * stats.binom.sf(j, n + 1, l1 * beta)).sum()
    exact = theory.lemma_expectation(
        MRR, strength=l, sparsity=beta, num_answers=n, num_entities=50, correlation=rho
    )
    np.testing.assert_allclose(exact, l2 / l1 * paper / (beta * (n + 1)), rtol=1e-12)


@pytest.mark.parametrize(("l", "beta", "n"), SETTINGS)
def test_mrr_closed_form_equals_the_lemma(l, beta, n):
    closed = theory.mrr_lemma_expectation(strength=l, sparsity=beta, num_answers=n)
    setting = {"strength": l, "sparsity": beta, "num_answers": n, "num_entities": 5000}
    np.testing.assert_allclose(closed, theory.lemma_expectation(MRR, **setting), rtol=1e-11)
    harmonic = (1 / np.arange(1, n + 2)).sum()
    j = np.arange(1, n + 2)
    paper = (harmonic - ((1 - l * beta) ** j / j).sum()) / (beta * (n + 1))
    np.testing.assert_allclose(closed, paper, rtol=1e-9)


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
@pytest.mark.parametrize(("l", "beta", "n"), SETTINGS)
def test_derivative_is_corollary_4_1_and_automatic(metric, l, beta, n):
    world = {"sparsity": beta, "num_answers": n, "num_entities": 5000}
    exact = theory.lemma_derivative(metric, strength=l, **world)
    r = np.arange(1, n + 2)
    paper = (stats.binom.pmf(r, n + 1, l * beta) * r * weigh(metric, r)).sum()
    np.testing.assert_allclose(exact, paper / (l * beta * (n + 1)), rtol=1e-10)
    with jax.enable_x64(True):
        automatic = jax.grad(lambda s: theory.lemma_expectation(metric, strength=s, **world))(l)
    np.testing.assert_allclose(exact, automatic, rtol=1e-8)


@pytest.mark.parametrize(("l", "beta", "n"), SETTINGS)
def test_corollaries_4_2_and_4_3(l, beta, n):
    setting = {"strength": l, "sparsity": beta, "num_answers": n}
    general = theory.lemma_derivative(MRR, num_entities=5000, **setting)
    np.testing.assert_allclose(theory.mrr_derivative(**setting), general, rtol=1e-11)
    for k in (1, 3, 10):
        general = theory.lemma_derivative(hits_at(k), num_entities=5000, **setting)
        np.testing.assert_allclose(theory.hits_derivative(k, **setting), general, rtol=1e-9)


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
@pytest.mark.parametrize("rho", [-0.3, 0.15])
def test_derivatives_with_correlation_are_automatic(metric, rho):
    world = {"sparsity": 0.4, "num_answers": 25, "num_entities": 900}
    setting = {"strength": 0.6, "correlation": rho, **world}

    def lemma(l, r):
        return theory.lemma_expectation(metric, strength=l, correlation=r, **world)

    with jax.enable_x64(True):
        by_strength, by_rho = jax.grad(lemma, argnums=(0, 1))(0.6, rho)
    np.testing.assert_allclose(theory.lemma_derivative(metric, **setting), by_strength, rtol=1e-8)
    np.testing.assert_allclose(theory.lemma_correlation_derivative(metric, **setting), by_rho, rtol=1e-8)


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
def test_at_strength_zero(metric):
    setting = {"strength": 0.0, "sparsity": 0.4, "num_answers": 9, "num_entities": 90}
    assert theory.lemma_expectation(metric, **setting) == 0
    np.testing.assert_allclose(
        theory.lemma_derivative(metric, **setting), weigh(metric, [1.0])[0], rtol=1e-13
    )
    with jax.enable_x64(True):
        world = {k: v for k, v in setting.items() if k != "strength"}
        slope = jax.grad(lambda l: theory.lemma_expectation(metric, strength=l, **world))(0.0)
    np.testing.assert_allclose(slope, weigh(metric, [1.0])[0], rtol=1e-13)


def test_limits_of_the_special_forms():
    assert theory.mrr_derivative(strength=0.0, sparsity=0.3, num_answers=9) == 1
    assert theory.hits_derivative(10, strength=0.9, sparsity=0.3, num_answers=9) == 1
    assert theory.mrr_lemma_expectation(strength=0.0, sparsity=0.3, num_answers=9) == 0
    dense = theory.mrr_lemma_expectation(strength=0.8, sparsity=1e-12, num_answers=9)
    assert dense == pytest.approx(0.8, rel=1e-9)


def test_lemma_and_exact_mean_of_the_published_example():
    setting = {"strength": 0.7, "sparsity": 0.35, "num_answers": 43, "num_entities": 14505}
    assert round(float(theory.lemma_expectation(MRR, **setting)), 6) == 0.192612


def test_exact_mean_is_the_lemma_plus_negatives_given_a_test_answer():
    """Many answers, endless candidates: the negative class and the conditioning both vanish."""
    setting = {"strength": 0.5, "sparsity": 0.3, "num_answers": 60, "num_entities": 5_000_000}
    exact = theory.expectation(MRR, **setting)
    np.testing.assert_allclose(exact, theory.lemma_expectation(MRR, **setting), rtol=1e-4)


@pytest.mark.parametrize("call", [theory.mrr_derivative, theory.mrr_lemma_expectation])
def test_bad_input_is_named(call):
    with pytest.raises(ValueError, match="`sparsity` must be in"):
        call(strength=0.5, sparsity=1.0, num_answers=3)
    with pytest.raises(ValueError, match="`num_answers` must be a whole number"):
        call(strength=0.5, sparsity=0.5, num_answers=2.5)


def test_bad_k_is_named():
    with pytest.raises(ValueError, match="`k` must be a whole number of at least 1"):
        theory.hits_derivative(0, strength=0.5, sparsity=0.5, num_answers=2)


def test_slope_of_a_saturated_metric_keeps_its_digits():
    setting = {"strength": 1.0, "sparsity": 0.6, "num_answers": 43, "num_entities": 14505}
    slope = theory.lemma_derivative(hits_at(1), **setting)
    np.testing.assert_allclose(slope, 0.4**43, rtol=1e-10)


def test_slope_in_the_correlation_exists_where_there_is_none():
    world = {"strength": 0.7, "sparsity": 0.35, "num_answers": 43, "num_entities": 14505}
    with jax.enable_x64(True):
        for mean in (theory.lemma_expectation, theory.expectation):
            slope = jax.grad(lambda r, mean=mean: mean(MRR, correlation=r, **world))(0.0)
            near = [float(mean(MRR, correlation=r, **world)) for r in (-1e-5, 1e-5)]
            np.testing.assert_allclose(slope, (near[1] - near[0]) / 2e-5, rtol=1e-5)
    closed = theory.lemma_correlation_derivative(MRR, correlation=0.0, **world)
    assert closed == pytest.approx(-0.206434, abs=1e-6)
