"""The score model's mean: adaptive quadrature on small cases, limits, convergence."""

import numpy as np
import pytest
from scipy import integrate, stats

from owkg import openworld, theory
from owkg.openworld.prediction import shift
from owkg.rank_weights import LOG_MRR, MR, MRR, hits_at
from owkg.theory import scores

WORLD = {"sparsity": 0.35, "num_answers": 43, "num_entities": 14505}


@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_mean_equals_adaptive_quadrature(correlation):
    """N = 2, 5 entities: one or two test answers, and all counts of others ahead written out."""
    strength, sparsity, others = 0.6, 0.4, 3
    l1, l2 = openworld.conditional_strengths(strength, sparsity, correlation)
    mu1, mu2 = (float(shift(np.array(l), np.array(others))) for l in (l1, l2))

    def given(m):
        def integrand(s):
            total = 0.0
            for x in range(m + 1):
                for y in range(others + 1):
                    ahead = stats.binom.pmf(x, m, stats.norm.sf(s - mu1))
                    ahead *= stats.binom.pmf(y, others, stats.norm.sf(s))
                    total += ahead / (1 + x + y)
            return total * stats.norm.pdf(s - mu2)

        return integrate.quad(integrand, mu2 - 10, mu2 + 10, epsabs=1e-12, limit=200)[0]

    none, one = (1 - sparsity) ** 2, 2 * sparsity * (1 - sparsity)
    mean = (none * given(0) + one * given(1)) / (none + one)
    exact = theory.score_expectation(
        MRR,
        strength=strength,
        sparsity=sparsity,
        num_answers=2,
        num_entities=2 + others,
        correlation=correlation,
    )
    assert exact == pytest.approx(mean, rel=1e-8)


def test_strength_is_the_closed_worlds_hits_at_1():
    exact = theory.score_expectation(
        hits_at(1), strength=0.42, sparsity=1e-9, num_answers=7, num_entities=900
    )
    assert exact == pytest.approx(0.42, rel=1e-6)


def test_chance_strength_ranks_uniformly():
    exact = theory.score_expectation(MR, strength=1 / 101, sparsity=1e-9, num_answers=1, num_entities=101)
    assert exact == pytest.approx(51, rel=1e-6)


@pytest.mark.parametrize(
    ("metric", "strength"),
    [(MRR, 0.7), (hits_at(10), 0.7), (hits_at(1000), 0.01), (hits_at(5000), 1e-4)],
    ids=str,
)
def test_quadrature_has_converged(metric, strength, monkeypatch):
    """Hits@K far down the list has an edge a hundredth of a standard deviation wide."""
    setting = WORLD | {"num_answers": 4, "strength": strength}
    found = theory.score_expectation(metric, **setting)
    monkeypatch.setattr(scores, "_STEPS", 5120)
    assert found == pytest.approx(theory.score_expectation(metric, **setting), rel=1e-9)


def test_grids():
    grid = theory.score_expectation(
        LOG_MRR, strength=[[0.2], [0.8]], sparsity=0.3, num_answers=[1, 5, 30], num_entities=[50, 500, 5000]
    )
    assert grid.shape == (2, 3)
    alone = theory.score_expectation(LOG_MRR, strength=0.8, sparsity=0.3, num_answers=5, num_entities=500)
    assert grid[1, 1] == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_no_score_makes_certain(strength):
    with pytest.raises(ValueError, match=r"`strength` must be in \(0, 1\)"):
        theory.score_expectation(MRR, strength=strength, **WORLD)
