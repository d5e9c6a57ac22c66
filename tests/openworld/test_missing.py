"""The missing-fact models: their parameters are solved so that the mean sparsity is the one asked for."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from owkg.openworld import Independent, NodeBased, PopularityBased
from owkg.openworld.missing import node_location, popularity_probabilities

BAD_NUMBERS = [math.nan, math.inf, -math.inf, True, "0.2", None, 0.2 + 0j, [], object()]


# --- the models as data


@pytest.mark.parametrize("bad", [*BAD_NUMBERS, 0, 0.0, -0.2])
def test_bad_spread(bad):
    with pytest.raises(ValueError, match="`spread`"):
        NodeBased(bad)


@pytest.mark.parametrize("bad", BAD_NUMBERS)
def test_bad_exponent(bad):
    with pytest.raises(ValueError, match="`exponent`"):
        PopularityBased(bad)


@pytest.mark.parametrize("many", [[0.2, 0.3], np.array([0.2, 0.3])], ids=repr)
def test_a_model_has_one_parameter_not_many(many):
    # An unhashable parameter would only be found out under jit.
    with pytest.raises(ValueError, match="`spread`"):
        NodeBased(many)
    with pytest.raises(ValueError, match="`exponent`"):
        PopularityBased(many)


@pytest.mark.parametrize("number", [np.array(0.3), jnp.float32(0.3), np.float32(0.3)], ids=repr)
@pytest.mark.parametrize("model", [NodeBased, PopularityBased])
def test_a_number_of_any_kind_makes_a_hashable_model_or_is_refused(model, number):
    # The models are static arguments of jitted functions.
    try:
        made = model(number)
    except ValueError:
        return
    assert hash(made) == hash(model(float(number)))
    assert made == model(float(number))


def test_models_are_hashable_and_told_apart():
    models = [Independent(), NodeBased(0.2), NodeBased(0.3), PopularityBased(1), PopularityBased(0)]
    assert len(set(models)) == 5
    assert NodeBased() == NodeBased(0.2)
    assert PopularityBased() == PopularityBased(1.0)
    with pytest.raises(AttributeError):
        NodeBased().spread = 1.0


# --- node based


def _mean_after_the_cut(location: float, spread: float) -> float:
    """E[clip(N(location, spread), 0, 1)], the integral of P(X > x) over 0 .. 1."""
    steps = location + spread * np.linspace(-9, 9, 19)
    points = np.unique(np.clip(steps, 0, 1))
    return integrate.quad(
        lambda x: stats.norm.sf(x, location, spread),
        0,
        1,
        points=points,
        limit=400,
        epsabs=1e-14,
        epsrel=1e-13,
    )[0]


@pytest.mark.parametrize("spread", [1e-6, 1e-3, 0.05, 0.2, 1.0, 5.0, 100.0, 1e4])
@pytest.mark.parametrize("sparsity", [1e-6, 1e-3, 0.1, 0.35, 0.5, 0.9, 0.999, 1 - 1e-6])
def test_a_fact_survives_with_one_minus_sparsity(sparsity, spread):
    location = float(node_location(np.array(sparsity), spread))
    expected = math.sqrt(1 - sparsity)
    assert _mean_after_the_cut(location, spread) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("sparsity", "spread"),
    [
        (1e-9, 1e6),
        (1e-16, 100.0),
        (0.35, 1e9),
        (0.35, 1e12),
        (0.35, 1e300),
        (0.35, 1e-12),
        (0.35, 1e-300),
        (1 - 2**-53, 0.2),
    ],
)
def test_extreme_spreads_are_solved_or_refused(sparsity, spread):
    try:
        location = float(node_location(np.array(sparsity), NodeBased(spread).spread))
    except ValueError:
        return  # as good: what may not come out is a NaN, a warning, or a wrong sparsity
    assert math.isfinite(location)
    expected = math.sqrt(1 - sparsity)
    assert _mean_after_the_cut(location, spread) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(sparsity=st.floats(0.01, 0.99), spread=st.floats(0.01, 3))
def test_two_entities_leave_the_asked_share_of_facts(sparsity, spread):
    location = float(node_location(np.array(sparsity), spread))
    assert 1 - _mean_after_the_cut(location, spread) ** 2 == pytest.approx(sparsity, abs=1e-8)


def test_node_location_against_a_simulated_graph():
    rng = np.random.default_rng(0)
    location = float(node_location(np.array(0.35), 0.2))
    head, tail = np.clip(location + 0.2 * rng.standard_normal((2, 200_000)), 0, 1)
    survives = rng.random(200_000) < head * tail
    assert abs(survives.mean() - 0.65) < 4 * math.sqrt(0.65 * 0.35 / 200_000)


def test_the_cut_is_why_the_location_is_not_the_published_one():
    # mu = sqrt(alpha) would leave a mean below sqrt(alpha) above one half, and above it below.
    assert node_location(np.array(0.1), 0.2) > math.sqrt(0.9) + 0.01
    assert node_location(np.array(0.99), 0.2) < math.sqrt(0.01) - 0.01
    assert float(node_location(np.array(0.75), 0.2)) == pytest.approx(0.5, abs=1e-9)


def test_node_location_of_a_narrow_spread_is_the_mean_itself():
    sparsity = np.array([0.2, 0.5, 0.8])
    np.testing.assert_allclose(node_location(sparsity, 1e-4), np.sqrt(1 - sparsity), rtol=1e-7)


def test_node_location_falls_with_sparsity_on_any_grid():
    sparsity = np.linspace(0.01, 0.99, 21)
    location = node_location(sparsity, 0.2)
    assert location.shape == (21,)
    assert (np.diff(location) < 0).all()
    reshaped = node_location(sparsity.reshape(3, 7), 0.2)
    np.testing.assert_allclose(reshaped, location.reshape(3, 7), rtol=1e-12)


# --- popularity based


def _probabilities(sparsity, num_answers, exponent, size):
    return popularity_probabilities(np.array(sparsity), np.array(num_answers), exponent, size)


@pytest.mark.parametrize("exponent", [-50.0, -5.0, -1.0, -0.1, 0.0, 0.1, 1.0, 2.0, 5.0, 50.0])
@pytest.mark.parametrize(("num_answers", "size"), [(1, 16), (2, 2), (43, 64), (500, 512)])
@pytest.mark.parametrize("sparsity", [1e-6, 0.1, 0.35, 0.5, 0.9, 1 - 1e-6])
def test_the_mean_over_the_answers_is_the_sparsity(sparsity, num_answers, size, exponent):
    table = _probabilities(sparsity, num_answers, exponent, size)
    assert table.shape == (size,)
    assert ((table >= 0) & (table <= 1)).all()
    assert table[:num_answers].mean() == pytest.approx(sparsity, rel=0, abs=1e-13)
    assert (table[num_answers:] == 1).all()


@pytest.mark.parametrize("exponent", [-1e308, -1e300, -1000.0, 1000.0, 1e300, 1e308])
@pytest.mark.parametrize("sparsity", [0.1, 0.35, 0.9])
def test_extreme_exponents_are_solved_or_refused(sparsity, exponent):
    try:
        table = _probabilities(sparsity, 10, PopularityBased(exponent).exponent, 16)
    except ValueError:
        return  # as good: what may not come out is a warning or a wrong sparsity
    assert table[:10].mean() == pytest.approx(sparsity, abs=1e-9)


@given(sparsity=st.floats(0.05, 0.95), num_answers=st.integers(2, 60), exponent=st.floats(-3, 3))
def test_the_odds_of_missing_grow_like_the_rank_to_the_exponent(sparsity, num_answers, exponent):
    table = _probabilities(sparsity, num_answers, exponent, 64)[:num_answers]
    odds = table / (1 - table)
    ranks = np.arange(1, num_answers + 1)
    np.testing.assert_allclose(odds / odds[0], ranks**exponent, rtol=1e-9)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 3.0])
def test_popular_answers_are_missing_less_often(exponent):
    assert (np.diff(_probabilities(0.35, 43, exponent, 64)[:43]) > 0).all()
    assert (np.diff(_probabilities(0.35, 43, -exponent, 64)[:43]) < 0).all()


@given(sparsity=st.floats(0.001, 0.999), num_answers=st.integers(1, 64))
def test_exponent_zero_is_independence(sparsity, num_answers):
    table = _probabilities(sparsity, num_answers, 0.0, 64)
    np.testing.assert_allclose(table[:num_answers], sparsity, rtol=0, atol=1e-13)
    assert (table[num_answers:] == 1).all()


def test_two_answers_with_inverse_odds_by_hand():
    # Odds o and 2 o, probabilities 1/3 and 1/2 at o = 1/2: mean 5/12.
    np.testing.assert_allclose(_probabilities(5 / 12, 2, 1.0, 2), [1 / 3, 1 / 2], rtol=1e-12)


def test_a_grid_of_settings_is_each_setting_on_its_own():
    sparsity = np.array([[0.1, 0.5, 0.9], [0.2, 0.6, 0.3]])
    num_answers = np.array([[1, 5, 16], [2, 7, 11]])
    table = popularity_probabilities(sparsity, num_answers, 1.5, 16)
    assert table.shape == (2, 3, 16)
    for index in np.ndindex(2, 3):
        alone = _probabilities(sparsity[index], num_answers[index], 1.5, 16)
        np.testing.assert_allclose(table[index], alone, rtol=1e-12)


@pytest.mark.parametrize("size", [43, 64, 1024])
def test_padding_changes_nothing(size):
    shortest = _probabilities(0.35, 43, 1.0, 43)
    np.testing.assert_allclose(_probabilities(0.35, 43, 1.0, size)[:43], shortest, rtol=1e-11)
