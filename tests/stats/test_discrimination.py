"""Discriminative power and ASL curves, against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from owkg.stats.discrimination import asl_area, asl_curve, discriminative_power

P_VALUES = st.lists(st.floats(0, 1), min_size=2, max_size=9)


@given(P_VALUES, st.floats(0.01, 0.99))
def test_share_curve_and_area(p, alpha):
    assert discriminative_power(p, alpha) == sum(one < alpha for one in p) / len(p)
    curve = asl_curve(p).tolist()
    assert curve == sorted(p, reverse=True)
    steps = sum(height / len(p) for height in curve)
    assert asl_area(p) == pytest.approx(steps, abs=1e-15)
    joined = integrate.trapezoid(curve, np.linspace(0, 1, len(p)))
    assert asl_area(p, trapezoid=True) == pytest.approx(joined, abs=1e-12)


def test_leading_axes_are_metrics():
    p = np.random.default_rng(0).random((3, 2, 78))
    assert asl_curve(p).shape == (3, 2, 78)
    for function in (discriminative_power, asl_area):
        assert function(p).tolist() == [[function(row).item() for row in rows] for rows in p]


def test_limits():
    assert asl_area(np.zeros(5)) == 0
    assert asl_area(np.ones(5), trapezoid=True) == 1
    assert asl_area([0.3]) == 0.3
    assert discriminative_power(np.zeros(5)) == 1
    # p < alpha, not p <= alpha.
    assert discriminative_power([0.05, 0.05]) == 0


def test_of_systems_alike_a_share_alpha_is_told_apart():
    p = np.random.default_rng(0).random(100_000)
    assert discriminative_power(p) == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 1e5))
    assert asl_area(p) == pytest.approx(0.5, abs=4 / np.sqrt(12e5))


@pytest.mark.parametrize("function", [discriminative_power, asl_curve, asl_area])
@pytest.mark.parametrize(
    ("p", "shown"), [([0.1, 2], "got 2"), ([np.nan], "nan"), ([], "empty"), (0.5, "axis of pairs")]
)
def test_bad_p_values(function, p, shown):
    with pytest.raises(ValueError, match=shown):
        function(p)


def test_bad_options():
    with pytest.raises(ValueError, match="`alpha`"):
        discriminative_power([0.1], 0)
    with pytest.raises(ValueError, match="`trapezoid`"):
        asl_area([0.1, 0.2], trapezoid=1)
    with pytest.raises(ValueError, match="at least two pairs"):
        asl_area([0.1], trapezoid=True)
