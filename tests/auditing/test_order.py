"""Probabilities of an order: limits, symmetry, draws of the model, the values that break an order."""

import numpy as np
import pytest
from scipy import special

from owkg.auditing import Answers, order, sparse_mean
from owkg.auditing.order import Observed, full_metrics, probabilities
from owkg.rank_weights import rank_weight

ANSWERS = Answers(np.array([1, 2, 5]), np.array([0.5, 0.3, 0.2]), 1000)
SPARSITY = np.array([0.0, 0.3, 0.6])
MRR = rank_weight("mrr")


def seen(values, deviation=0.005, shared=0.0):
    n = len(values)
    return Observed(np.array(values), deviation**2 * ((1 - shared) * np.eye(n) + shared), ANSWERS)


def of_pairs(one, rho=(0.0,), sparsity=SPARSITY, first=0, second=1):
    full = full_metrics("mrr", MRR, one, sparsity, np.array(rho))
    pairs = np.array([first]), np.array([second])
    values, slopes = ((x[pairs[0]], x[pairs[1]]) for x in (full.full, full.slope))
    return probabilities("mrr", one, sparsity, pairs, values, slopes)


def test_observed_is_a_ratio_with_the_deviation_of_resampled_queries():
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 6, 400).astype(float)
    value = np.stack([rng.uniform(0, weight), rng.uniform(0, weight)])
    value[1] = 0.7 * value[0] + 0.3 * value[1]
    found = order.observed(value, weight, ANSWERS)
    np.testing.assert_allclose(found.value, value.sum(1) / weight.sum())
    rows = rng.integers(0, 400, (4000, 400))
    means = value[:, rows].sum(2) / weight[rows].sum(1)
    np.testing.assert_allclose(found.sampling, np.cov(means), rtol=0.12)


def test_full_metric_is_that_of_the_strength_that_gave_the_value():
    truth = np.array([0.3, 0.6])
    for beta, rho in ((0.3, 0.0), (0.6, 0.1)):
        means = sparse_mean("mrr", ANSWERS, strength=truth, sparsity=beta, correlation=rho)
        found = full_metrics("mrr", MRR, seen(means), np.array([beta]), np.array([rho]))
        np.testing.assert_allclose(found.strength[:, 0, 0], truth, atol=2e-4)
        np.testing.assert_allclose(
            found.full[:, 0, 0], truth * found.best + (1 - truth) * found.chance, atol=2e-4
        )


def test_without_missing_facts_the_metric_is_the_value():
    found = full_metrics("mrr", MRR, seen([0.2, 0.4]), np.array([0.0]), np.array([0.0]))
    np.testing.assert_allclose(found.full[:, 0, 0], [0.2, 0.4], atol=1e-4)
    np.testing.assert_allclose(found.slope[:, 0, 0], 1, atol=1e-3)


def test_a_value_far_beyond_strength_1_refutes_the_sparsity():
    top = float(sparse_mean("mrr", ANSWERS, strength=1.0, sparsity=0.6))
    found = full_metrics("mrr", MRR, seen([top + 0.3, top + 0.001]), np.array([0.6]), np.array([0.0]))
    assert np.isnan(found.full[0, 0, 0])
    assert found.strength[1, 0, 0] == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("metric", ["mrr", "hits@1", "hits@10", "p-mrr@1/2"])
def test_what_is_refuted_stays_so_at_larger_sparsities(metric):
    """Also where so many answers are missing that the error of the model is extrapolated."""
    counts = np.array([1, 5, 23, 120])
    answers = Answers(counts, counts / counts.sum(), 15_000, np.ones(4))
    one = Observed(np.array([0.6]), np.array([[1e-6]]), answers)
    sparsity = np.arange(0.05, 0.91, 0.05)
    found = full_metrics(metric, rank_weight(metric), one, sparsity, np.array([0.0]))
    refuted = np.isnan(found.full[0, :, 0])
    assert refuted.any()
    assert (np.diff(refuted.astype(int)) >= 0).all()


def test_probabilities_are_symmetric_and_one_half_for_equals():
    np.testing.assert_allclose(of_pairs(seen([0.3, 0.3])), 0.5)
    one = seen([0.32, 0.30], shared=0.5)
    np.testing.assert_allclose(of_pairs(one) + of_pairs(one, first=1, second=0), 1)
    assert (of_pairs(one) > 0.5).all()


def test_without_missing_facts_probabilities_are_those_of_the_queries():
    one = seen([0.32, 0.30], deviation=0.02, shared=0.25)
    error = 0.02 * np.sqrt(2 * 0.75)
    found = of_pairs(one, sparsity=np.array([0.0]))[0, 0, 0]
    assert found == pytest.approx(special.ndtr(0.02 / error), abs=0.02)


def test_the_posterior_is_calibrated_in_the_model(monkeypatch):
    """Strengths from a flat prior, values with error: the order is right as often as it says."""
    monkeypatch.setattr(order, "difference_error", lambda *_: 0.0)
    monkeypatch.setattr(order, "full_error", lambda *_: 0.02)
    rng, n = np.random.default_rng(3), 4000
    strength = rng.uniform(0.35, 0.65, n)
    strength = np.stack([strength, strength + rng.normal(0, 0.03, n)], 1)
    beta = np.array([0.5])
    means = sparse_mean("mrr", ANSWERS, strength=strength, sparsity=0.5)
    values = means + rng.normal(0, 0.006, means.shape)
    one = Observed(values.ravel(), 0.006**2 * np.eye(2), ANSWERS)
    # All pairs by one inversion: the sampling error is that of each value alone.
    full = full_metrics("mrr", MRR, one._replace(sampling=0.006**2 * np.eye(2 * n)), beta, np.array([0.0]))
    pairs = np.arange(0, 2 * n, 2), np.arange(1, 2 * n, 2)
    told = probabilities(
        "mrr",
        one._replace(sampling=0.006**2 * np.eye(2 * n)),
        beta,
        pairs,
        (full.full[pairs[0]], full.full[pairs[1]]),
        (full.slope[pairs[0]], full.slope[pairs[1]]),
    )[:, 0, 0]
    right = strength[:, 0] > strength[:, 1]
    # The prior of differences is not flat, so the order is a little less sure than it says.
    for low in np.arange(0, 1, 0.2):
        within = (told >= low) & (told <= low + 0.2)
        assert abs(right[within].mean() - told[within].mean()) < 0.07


def test_breaking_sparsity():
    grid = np.array([0.0, 0.1, 0.2])
    least = np.array([[0.99, 0.97, 0.93], [0.9, 0.8, 0.7], [0.99, 0.99, 0.99], [np.inf, 0.97, 0.93]])
    found = order.breaking_sparsity(grid, least, 0.95)
    np.testing.assert_allclose(found[:2], [0.15, 0.0])
    assert np.isnan(found[2])
    assert found[3] == pytest.approx(0.15)


def test_breaking_correlation():
    """Full metrics that are lines in the correlation meet where they should."""
    rho = np.linspace(-0.5, 0.5, 21)
    first = np.array([[[0.40]], [[0.40]], [[0.9]]])
    second = np.stack([0.35 + 0.2 * rho, 0.30 + 0.5 * rho, 0.1 + 0 * rho])[:, None]
    found = order.breaking_correlation(first, second, np.zeros(1), rho)
    np.testing.assert_allclose(found[:2], [0.25, 0.2])
    assert np.isnan(found[2])


def test_breaking_correlation_makes_the_two_equal():
    one = seen([0.35, 0.33])
    rho = np.round(np.arange(-0.4, 0.401, 0.05), 2)
    full = full_metrics("mrr", MRR, one, np.array([0.5]), rho).full
    found = float(order.breaking_correlation(full[:1, :, 8:9], full[1:], np.zeros(1), rho)[0])
    assert 0 < found < 0.4
    at = full_metrics("mrr", MRR, one, np.array([0.5]), np.array([0.0, found])).full[:, 0]
    assert at[1, 1] == pytest.approx(at[0, 0], abs=2e-3)
