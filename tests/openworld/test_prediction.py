"""The score model's shift: an answer beats every non-answer with the strength that was asked for."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from owkg.openworld import Classification, Score
from owkg.openworld.prediction import shift

STRENGTHS = [1e-6, 1e-3, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999, 1 - 1e-6]


def _strength(mu: float, num_non_answers: int) -> float:
    """E[Phi(mu + Z)^n], by adaptive quadrature."""

    def integrand(z: float) -> float:
        return math.exp(num_non_answers * stats.norm.logcdf(mu + z)) * stats.norm.pdf(z)

    points = [-8, -6, -4, -2, 0, 2, 4, 6, 8]
    return integrate.quad(integrand, -12, 12, points=points, limit=300, epsrel=1e-12)[0]


@pytest.mark.parametrize("num_non_answers", [1, 2, 10, 1000, 14_462])
@pytest.mark.parametrize("strength", STRENGTHS)
def test_an_answer_beats_all_non_answers_with_that_strength(strength, num_non_answers):
    mu = float(shift(np.array(strength), np.array(num_non_answers)))
    assert _strength(mu, num_non_answers) == pytest.approx(strength, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("num_non_answers", [10**6, 10**9])
@pytest.mark.parametrize("strength", [1e-6, 0.3, 0.999])
def test_among_a_great_many_non_answers(strength, num_non_answers):
    mu = float(shift(np.array(strength), np.array(num_non_answers)))
    assert _strength(mu, num_non_answers) == pytest.approx(strength, rel=1e-8)


def test_one_non_answer_has_a_closed_form():
    # P(N(mu, 1) > N(0, 1)) = Phi(mu / sqrt 2).
    strength = np.array(STRENGTHS)
    expected = math.sqrt(2) * stats.norm.ppf(strength)
    np.testing.assert_allclose(shift(strength, np.array(1)), expected, rtol=1e-9, atol=1e-12)


@given(num_non_answers=st.integers(1, 10**6))
def test_an_answer_like_any_other_needs_no_shift(num_non_answers):
    strength = np.array(1 / (num_non_answers + 1))
    assert abs(float(shift(strength, np.array(num_non_answers)))) < 1e-8


def test_against_simulated_scores():
    rng = np.random.default_rng(0)
    draws, others = 200_000, 14_462
    mu = float(shift(np.array(0.7), np.array(others)))
    # The best of n standard normal scores: its distribution function is Phi^n.
    best = stats.norm.isf(-np.expm1(np.log(rng.random(draws)) / others))
    won = (mu + rng.standard_normal(draws) > best).mean()
    assert abs(won - 0.7) < 4 * math.sqrt(0.7 * 0.3 / draws)


def test_rises_with_strength_and_with_the_number_to_beat():
    mu = shift(np.array(STRENGTHS)[:, None], np.array([1, 2, 10, 100, 10_000]))
    assert mu.shape == (9, 5)
    assert (np.diff(mu, axis=0) > 0).all()
    assert (np.diff(mu, axis=1) > 0).all()


def test_a_grid_is_each_setting_on_its_own():
    strength, others = np.array([[0.2], [0.8]]), np.array([1, 50, 5000])
    together = shift(strength, others)
    for i, j in np.ndindex(2, 3):
        np.testing.assert_allclose(together[i, j], shift(strength[i, 0], others[j]), rtol=1e-9)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, 1.1, math.nan, math.inf])
def test_no_finite_shift_is_refused_by_name(bad):
    with pytest.raises(ValueError, match="`strength` must be in") as error:
        shift(np.array([0.5, bad]), np.array(10))
    assert ",," not in str(error.value)
    assert repr(bad) in str(error.value)


def test_models_are_hashable_and_told_apart():
    assert len({Classification(), Score(), Score()}) == 2
    with pytest.raises(AttributeError):
        Score().strength = 1.0
