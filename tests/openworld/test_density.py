"""The share of full-test answers that a sampled graph's test set keeps."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg import openworld

DENSITIES = st.floats(0, 1, exclude_min=True, allow_subnormal=False)
TRAIN_RATES = st.floats(0, 1, exclude_max=True, allow_subnormal=False)


@pytest.mark.parametrize(("density", "train_rate"), [(0.75, 0.7), (0.5, 0.8), (0.9, 0.1), (0.1, 0)])
def test_against_a_simulated_split(density, train_rate):
    rng = np.random.default_rng(0)
    facts = 400_000
    kept = rng.random(facts) < density
    trains = kept & (rng.random(facts) < train_rate)
    full_test = ~trains
    share = (kept & full_test).sum() / full_test.sum()
    alpha = openworld.test_share(density, train_rate)
    assert abs(share - alpha) < 4 * math.sqrt(alpha * (1 - alpha) / full_test.sum())


@given(density=DENSITIES, train_rate=TRAIN_RATES)
def test_is_the_formula_in_exact_arithmetic(density, train_rate):
    d, t = Fraction(density), Fraction(train_rate)
    exact = d * (1 - t) / (1 - d * t)
    assert math.isclose(openworld.test_share(density, train_rate), exact, rel_tol=1e-14)


@pytest.mark.parametrize(
    ("density", "train_rate"),
    [(1 - 1e-9, 1 - 1e-9), (0.9999999842500304, 0.9999999977869546), (1 - 2**-53, 1 - 2**-53)],
)
def test_an_almost_complete_graph_that_almost_all_trains(density, train_rate):
    d, t = Fraction(density), Fraction(train_rate)
    exact = float(d * (1 - t) / (1 - d * t))
    assert math.isclose(openworld.test_share(density, train_rate), exact, rel_tol=1e-12)


@given(density=DENSITIES, train_rate=TRAIN_RATES)
def test_is_a_share_below_the_density(density, train_rate):
    alpha = openworld.test_share(density, train_rate)
    assert 0 < alpha <= density * (1 + 1e-14) <= 1 + 1e-14


@given(density=DENSITIES)
def test_without_training_it_is_the_density(density):
    assert openworld.test_share(density, 0) == density


@given(train_rate=TRAIN_RATES)
def test_a_complete_graph_misses_nothing(train_rate):
    assert openworld.test_share(1, train_rate) == 1


def test_training_on_everything_leaves_only_missing_facts():
    assert openworld.test_share(0.9, 1 - 1e-12) == pytest.approx(9e-12, rel=1e-3)


def test_rises_with_density_and_falls_with_the_train_rate():
    grid = np.linspace(0.05, 0.95, 19)
    alpha = openworld.test_share(grid[:, None], grid)
    assert alpha.shape == (19, 19)
    assert (np.diff(alpha, axis=0) > 0).all()
    assert (np.diff(alpha, axis=1) < 0).all()


def test_one_number_in_one_number_out():
    assert np.shape(openworld.test_share(0.75, 0.7)) == ()
    assert round(float(openworld.test_share(0.75, 0.7)), 4) == 0.4737


@pytest.mark.parametrize(
    "bad", [math.nan, math.inf, -math.inf, -0.1, 1.1, True, "0.5", None, 0.5 + 0j, [], [0.5, 2.0]]
)
@pytest.mark.parametrize("name", ["density", "train_rate"])
def test_bad_input_is_named(name, bad):
    with pytest.raises(ValueError, match=f"`{name}`"):
        openworld.test_share(**({"density": 0.5, "train_rate": 0.5} | {name: bad}))


def test_the_open_ends_are_refused():
    with pytest.raises(ValueError, match=r"`density` must be in \(0, 1\], got 0"):
        openworld.test_share(0, 0.5)
    with pytest.raises(ValueError, match=r"`train_rate` must be in \[0, 1\), got 1"):
        openworld.test_share(0.5, 1)


def test_shapes_that_do_not_broadcast_are_named():
    with pytest.raises(ValueError, match=r"density.*\(2,\).*train_rate.*\(3,\)"):
        openworld.test_share([0.1, 0.2], [0.1, 0.2, 0.3])
