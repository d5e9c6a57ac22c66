"""What docs/evidence/errata.md claims, one test a row."""

import numpy as np
import pytest

from owkg import openworld, theory
from owkg.rank_weights import LOG_MRR, MRR, hits_at, p_mrr
from simulations.yang2022.printed import REPORTED, corrected_ranks
from simulations.yang2022.published import compared_with_published, published_simulations

PAPER = {"sparsity": 0.35, "num_answers": 43, "num_entities": 14505}


def test_worked_example():
    def c(variance, p):
        return float(
            theory.log_required_queries(
                strength=0.7,
                difference=1.0,
                sparsity=0.35,
                num_answers=43,
                variance=variance,
                inconsistency=p,
            )
        )

    exact = theory.moments(MRR, strength=0.7, **PAPER).variance
    assert round(c(7.4e-3, 0.05), 2) == 4.65
    assert round(c(7.4e-3, 0.10), 2) == 2.82
    assert round(float(exact), 5) == 0.00618
    assert round(c(exact, 0.05), 2) == 3.89
    assert round(c(exact, 0.05) / 0.05**2) == 1555
    assert round(c(exact, 0.05) / 0.01**2) == 38867


def test_published_band_is_a_standard_error(owkg_data):
    published = compared_with_published(published_simulations())
    assert published["standard_error_ratio"].mean() == pytest.approx(1, abs=0.01)
    assert set(published["trials"]) == {500}
    assert np.sqrt(500) == pytest.approx(22, abs=0.5)


def test_negative_class():
    n = 14505 - 43 + 1
    harmonic_mean = (1 / np.arange(1, n + 1)).mean()
    assert harmonic_mean > np.log(n) / n
    mean = theory.expectation(MRR, strength=0.0, **(PAPER | {"sparsity": 1e-12}))
    assert mean == pytest.approx(harmonic_mean, rel=1e-9)

    def delta(metric, **setting):
        return theory.expectation(metric, **setting) - theory.lemma_expectation(metric, **setting)

    n = 14505 - 43
    printed = np.log(n) / n
    assert delta(LOG_MRR, strength=0.7, **PAPER) == pytest.approx(0.025, abs=5e-4)
    assert round(delta(LOG_MRR, strength=0.7, **PAPER) / (0.3 * printed)) == 124
    assert round(delta(p_mrr(0.5), strength=0.7, **PAPER) / (0.3 * printed)) == 24
    for metric, strength_, left_out in (
        (LOG_MRR, 0.7, 0.074),
        (LOG_MRR, 0.3, 0.246),
        (p_mrr(0.5), 0.3, 0.056),
    ):
        share = delta(metric, strength=strength_, **PAPER) / theory.expectation(
            metric, strength=strength_, **PAPER
        )
        assert round(float(share), 3) == left_out
    assert abs(delta(MRR, strength=1.0, **PAPER)) < 1e-12
    strength = np.linspace(0.1, 0.9, 9)
    for ahead, holds in ((0.3, False), (0.6, False), (0.7, True), (3.0, True)):
        found = delta(MRR, strength=strength, **(PAPER | {"sparsity": ahead / 43 / strength}))
        assert ((found <= (1 - strength) * printed) == holds).all()


def test_conditioning():
    setting = {"strength": 0.7, "sparsity": 0.5, "num_answers": 1, "num_entities": 10**6}
    assert round(float(theory.expectation(MRR, **setting)), 3) == 0.700
    assert round(float(theory.lemma_expectation(MRR, **setting)), 3) == 0.639


def test_the_slope_falls_with_sparsity():
    slopes = theory.lemma_derivative(MRR, strength=0.7, **(PAPER | {"sparsity": np.array([0.2, 0.8])}))
    assert slopes[0] / slopes[1] == pytest.approx(4, rel=0.01)


def test_the_gain_of_a_correction_is_of_the_same_answers():
    """Table 1, two test answers first, then six missing ones."""
    corrected = corrected_ranks(REPORTED, 2)
    two, eight = ([100 * np.mean(1 / ranks[:n]) for ranks in (REPORTED, corrected)] for n in (2, 8))
    assert np.round(two).tolist() == [20, 100]
    assert np.round(eight).tolist() == [34, 82]


def test_log_mrr_is_not_ndcg():
    def discount(rank):
        return 1 / np.log2(1 + rank)

    first, last = 1, 100
    ndcg = (discount(first) + discount(last)) / (discount(1) + discount(2))
    filtered = np.array([first, last - 1])
    log_mrr = np.asarray(LOG_MRR.weight(filtered.astype(float))).mean()
    assert abs(ndcg - log_mrr) > 0.1


def test_saturated_points(owkg_data):
    published = compared_with_published(published_simulations())
    saturated = published.filter(published["saturated"])
    assert len(published) == 568
    assert len(saturated) == 4
    assert saturated["standardised_difference"].abs().max() < 4
    _, high = openworld.feasible_correlation(
        saturated["strength"].to_numpy(), 1 - saturated["alpha"].to_numpy()
    )
    assert (saturated["rho"].to_numpy() > high).all()


def test_published_points_agree(owkg_data):
    """The contract: over all points, mean within .2 and standard deviation within .9 to 1.1."""
    z = compared_with_published(published_simulations())["standardised_difference"]
    assert abs(z.mean()) < 0.2
    assert 0.9 < z.std() < 1.1


@pytest.mark.parametrize("metric", [MRR, LOG_MRR, hits_at(3), p_mrr(0.25)], ids=str)
def test_correlation_always_lowers_the_mean(metric):
    strength, sparsity, answers = np.meshgrid(
        np.linspace(0.05, 0.95, 9), np.linspace(0.05, 0.95, 9), [1, 2, 10, 60], indexing="ij"
    )
    world = {"sparsity": sparsity, "num_answers": answers, "num_entities": 2000}
    low, high = openworld.feasible_correlation(strength, sparsity)
    steps = np.array([0.001, 0.25, 0.5, 0.75, 0.999])[:, None, None, None]
    rho = low + steps * (high - low)
    setting = {"strength": strength, "correlation": rho, **world}
    for mean in (theory.expectation, theory.lemma_expectation):
        assert np.diff(mean(metric, **setting), axis=0).max() < 1e-13
    logarithm = theory.log_approximation(**setting)
    assert np.diff(logarithm, axis=0).max() > 0.01
