"""Theorems 4.1 and 4.3, the error bound, and Corollary 4.5."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg import openworld, theory
from owkg.rank_weights import MRR

PROBABILITY = st.floats(0.02, 0.98)


@given(strength=PROBABILITY, sparsity=PROBABILITY, n=st.integers(1, 300), t=st.floats(-0.9, 0.9))
def test_error_stays_within_the_bound(strength, sparsity, n, t):
    low, high = openworld.feasible_correlation(strength, sparsity)
    setting = {
        "strength": strength,
        "sparsity": sparsity,
        "num_answers": n,
        "num_entities": 1000,
        "correlation": t * (high if t > 0 else -low),
    }
    error = theory.log_approximation(**setting) - theory.lemma_expectation(MRR, **setting)
    bound = theory.log_approximation_error_bound(**setting)
    assert abs(error) <= bound * (1 + 1e-9)


def test_bound_is_not_idle():
    """Within a few per cent of the error where the logarithm holds."""
    setting = {"strength": 0.7, "sparsity": 0.35, "num_answers": 43, "num_entities": 14505}
    error = theory.log_approximation(**setting) - theory.lemma_expectation(MRR, **setting)
    assert abs(error) > theory.log_approximation_error_bound(**setting) / 1.05


def test_the_printed_bound_holds_and_is_the_larger_one():
    """Theorem 4.1's, wherever it is: the logarithm's own bound is below it."""
    strength, sparsity, n = np.meshgrid(
        np.linspace(0.02, 1, 33), np.linspace(0.02, 0.98, 33), [1, 2, 5, 12, 43, 200], indexing="ij"
    )
    setting = {"strength": strength, "sparsity": sparsity, "num_answers": n}
    error = theory.log_approximation(num_entities=10**4, **setting) - theory.lemma_expectation(
        MRR, num_entities=10**4, **setting
    )
    printed = theory.printed_error_bound(**setting)
    assert (np.abs(error) <= printed * (1 + 1e-9)).all()
    assert (theory.log_approximation_error_bound(num_entities=10**4, **setting) < printed).all()
    p = 0.7 * 0.02
    few = (1 - p) ** 44 / (1 - (1 - p) ** 44) * np.log(1 / p) / (0.02 * 44)
    given = {"strength": 0.7, "num_answers": 43}
    assert theory.printed_error_bound(sparsity=0.02, **given) == pytest.approx(few, rel=1e-12)
    assert theory.printed_error_bound(sparsity=0.9, **given) == pytest.approx(
        1 / (2 * 0.9 * 44**2), rel=1e-12
    )
    with pytest.raises(ValueError, match=r"`strength` must be in \(0, 1\]"):
        theory.printed_error_bound(strength=0.0, sparsity=0.3, num_answers=9)


def test_the_papers_formula():
    l, beta, n, rho = 0.6, 0.4, 30, 0.2
    l1, l2 = openworld.conditional_strengths(l, beta, rho)
    paper = l2 / l1 * (np.log(l1) + np.log(beta) + np.log(n + 2) + 0.5772156649015329)
    setting = {"strength": l, "sparsity": beta, "num_answers": n, "num_entities": 99}
    np.testing.assert_allclose(
        theory.log_approximation(correlation=rho, **setting), paper / (beta * (n + 1)), rtol=1e-13
    )


def test_the_logarithm_fails_where_few_answers_are_missing():
    setting = {"strength": 0.3, "sparsity": 0.15, "num_answers": 12, "num_entities": 1000}
    lemma = theory.lemma_expectation(MRR, **setting)
    assert theory.log_approximation(**setting) < lemma / 2
    assert theory.log_approximation_error_bound(**setting) > lemma / 2


def test_no_logarithm_of_no_strength():
    setting = {"strength": 0.0, "sparsity": 0.3, "num_answers": 12, "num_entities": 100}
    assert np.isnan(theory.log_approximation(**setting))
    assert np.isnan(theory.log_approximation_error_bound(**setting))


@given(strength=PROBABILITY, sparsity=PROBABILITY, n=st.integers(2, 500), t=st.floats(-0.9, 0.9))
def test_corollary_4_5_is_the_sign_of_the_slope(strength, sparsity, n, t):
    low, high = openworld.feasible_correlation(strength, sparsity)
    rho = t * (high if t > 0 else -low)
    setting = {"strength": strength, "sparsity": sparsity, "num_answers": n, "num_entities": 1000}
    step = 1e-6 * (high - low)
    up, down = (theory.log_approximation(correlation=rho + s, **setting) for s in (step, -step))
    slope = (up - down) / (2 * step)
    logarithm_is_positive = theory.log_approximation(correlation=rho, **setting) > 0
    if logarithm_is_positive and abs(slope) > 1e-7:
        lowers = theory.correlation_lowers_log_approximation(correlation=rho, **setting)
        assert lowers == (slope < 0)


def test_simple_sufficient_condition_of_corollary_4_5():
    grid = np.linspace(0.02, 0.98, 25)
    strength, sparsity = np.meshgrid(grid, grid)
    low, high = openworld.feasible_correlation(strength, sparsity)
    for t in (-0.99, 0.0, 0.99):
        rho = t * np.where(t > 0, high, -low)
        setting = {"strength": strength, "sparsity": sparsity, "correlation": rho}
        l1, _ = openworld.conditional_strengths(strength, sparsity, rho)
        enough = l1 * sparsity * (40 + 2) > np.exp(1 - np.euler_gamma)
        lowers = theory.correlation_lowers_log_approximation(num_answers=40, num_entities=100, **setting)
        assert enough.any()
        assert lowers[enough].all()


def test_the_printed_condition_of_corollary_4_5_suffices():
    """It is stricter than the exact one, and the same at the least correlation."""
    strength, sparsity, n = np.meshgrid(
        np.linspace(0.02, 0.98, 25), np.linspace(0.02, 0.98, 25), [1, 2, 5, 12, 43], indexing="ij"
    )
    low, high = openworld.feasible_correlation(strength, sparsity)
    world = {"strength": strength, "sparsity": sparsity, "num_answers": n, "num_entities": 1000}
    for t in (-0.99, -0.3, 0.0, 0.3, 0.99):
        rho = t * np.where(t > 0, high, -low)
        printed = theory.printed_correlation_condition(correlation=rho, **world)
        exact = theory.correlation_lowers_log_approximation(correlation=rho, **world)
        assert printed.any()
        assert exact[printed].all()
        assert exact.sum() > printed.sum()
        l1, _ = openworld.conditional_strengths(strength, sparsity, rho)
        alpha = 1 - sparsity
        right = np.exp(alpha + np.sqrt(alpha * sparsity * (1 - strength) / strength) - np.euler_gamma)
        np.testing.assert_array_equal(printed, l1 * sparsity * (n + 2) >= right)
    # A correlation of -1 is feasible where the strength is the share of known answers: then l1 = 0, l2 = 1.
    at = {"strength": 0.6, "sparsity": 0.4, "num_entities": 1000, "num_answers": np.arange(1, 900)}
    near = {"correlation": -1 + 1e-9} | at
    conditions = theory.printed_correlation_condition, theory.correlation_lowers_log_approximation
    np.testing.assert_array_equal(*(condition(**near) for condition in conditions))


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_nothing_to_correlate(strength):
    setting = {"strength": strength, "sparsity": 0.3, "num_answers": 40, "num_entities": 100}
    assert not theory.correlation_lowers_log_approximation(**setting)
    assert not theory.printed_correlation_condition(**setting)


def test_the_least_sparsity_gives_no_number_and_no_warning():
    setting = {"strength": 0.7, "sparsity": 5e-324, "num_answers": 43, "num_entities": 14_505}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(theory.log_approximation(**setting))
        assert np.isnan(theory.log_approximation_error_bound(**setting))
