"""Power of the paired t test, against simulated tests, SciPy's inverse and limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from owkg.stats.power import detectable_difference, queries_needed, t_test_power


@pytest.mark.parametrize(
    ("difference", "deviation", "queries", "alpha"),
    [(0.0, 1.0, 5, 0.1), (0.3, 0.5, 10, 0.05), (-0.02, 0.3, 400, 0.01), (1.0, 0.4, 2, 0.05)],
)
def test_simulated_tests_are_significant_as_often(difference, deviation, queries, alpha):
    rng = np.random.default_rng(0)
    tests = 2_000_000 // queries if queries > 100 else 20_000
    samples = rng.normal(difference, deviation, (min(tests, 20_000), queries))
    share = np.mean(stats.ttest_1samp(samples, 0, axis=1).pvalue < alpha)
    expected = t_test_power(difference, deviation, queries, alpha=alpha).item()
    assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / len(samples))


@pytest.mark.parametrize("alpha", [1e-8, 1e-3, 0.05, 0.5])
def test_an_integral_over_the_mean_agrees_wherever_it_is(alpha):
    """P(|Z + shift| > c S), of S by its chi-square distribution given Z."""
    count = np.array([2, 3, 10, 100])[:, None]
    shift = np.array([0, 0.5, 2, 5, 9, 70, 1e3, 1e5, 3e6])
    critical = stats.t.isf(alpha / 2, count - 1)

    def given_mean(z, nu, c, shift):
        return stats.norm.pdf(z) * stats.chi2.cdf(nu * ((z + shift) / c) ** 2, nu)

    found = t_test_power(shift / np.sqrt(count), 1, count, alpha=alpha)
    for (i, j), value in np.ndenumerate(found):
        arguments = (count[i, 0] - 1, critical[i, 0], shift[j])
        expected = integrate.quad(given_mean, -9, 9, args=arguments, points=[max(-9, -shift[j])], limit=400)[
            0
        ]
        assert value == pytest.approx(expected, abs=1e-7, rel=1e-4)


@settings(max_examples=10)
@given(st.floats(0.01, 100), st.integers(2, 10**6), st.floats(0.3, 0.999), st.floats(1e-6, 0.2))
def test_detectable_difference_has_the_power(deviation, queries, wanted, alpha):
    found = detectable_difference(deviation, queries, power=wanted, alpha=alpha)
    assert t_test_power(found, deviation, queries, alpha=alpha) == pytest.approx(wanted, abs=1e-6)


@settings(max_examples=10)
@given(st.floats(1e-4, 30), st.floats(0.3, 0.999), st.floats(1e-6, 0.2))
def test_fewest_queries_have_the_power_and_one_less_has_not(effect, wanted, alpha):
    found = queries_needed(effect, 1, power=wanted, alpha=alpha).item()
    assert t_test_power(effect, 1, found, alpha=alpha) >= wanted
    assert found == 2 or t_test_power(effect, 1, found - 1, alpha=alpha) < wanted


def test_limits():
    # Nothing to find; everything; in large samples, the normal distribution.
    assert t_test_power(0, 1, [2, 10, 10**6]) == pytest.approx(0.05)
    assert t_test_power([1e3, -1e3], 1, 100).tolist() == [1, 1]
    normal = (stats.norm.isf(0.025) + stats.norm.isf(0.2)) / 1000
    assert detectable_difference(1, 10**6) == pytest.approx(normal, rel=1e-4)
    assert queries_needed(0.001, 1) == pytest.approx((1000 * normal / 0.001) ** 2, rel=1e-4)
    assert queries_needed(1e6, 1) == 2
    # A difference is known without its sign, and in any unit.
    assert t_test_power(-0.3, 1, 20) == t_test_power(0.3, 1, 20) == t_test_power(3, 10, 20)
    assert queries_needed([0.1, -0.1], 1).tolist() == [787, 787]


def test_arguments_broadcast():
    found = t_test_power([[0.1], [0.2]], 1, [10, 100, 1000], alpha=0.01)
    assert found.shape == (2, 3)
    assert (np.diff(found, axis=1) > 0).all()
    assert (np.diff(found, axis=0) > 0).all()
    assert detectable_difference([[1.0], [2.0]], [10, 100], power=[0.5, 0.9]).shape == (2, 2)
    assert queries_needed(0.1, [1.0, 2.0], alpha=[[0.05], [0.01]]).shape == (2, 2)


@pytest.mark.parametrize(
    ("function", "arguments", "options", "shown"),
    [
        (t_test_power, (np.nan, 1, 10), {}, "`difference`"),
        (t_test_power, (0.1, 0, 10), {}, "`deviation` must be finite and above 0, got 0"),
        (t_test_power, (0.1, 1, 1), {}, "`queries` must be a whole number of at least 2, got 1"),
        (t_test_power, (0.1, 1, 10), {"alpha": 1}, "`alpha`"),
        (t_test_power, ([0.1, 0.2], [1, 1, 1], 10), {}, "broadcast"),
        (detectable_difference, (1, 10), {"power": 0.01}, "`power` must be at least `alpha`, got 0.01"),
        (detectable_difference, (1, 10), {"power": 1}, "`power`"),
        (detectable_difference, ([1, 2], [5, 6, 7]), {}, "broadcast"),
        (queries_needed, (0, 1), {}, "`difference` must be other than 0"),
        (queries_needed, (1e-9, 1), {}, "2\\^40 queries"),
        (queries_needed, ([1, 2], [1, 2, 3]), {}, "broadcast"),
    ],
)
def test_bad_input(function, arguments, options, shown):
    with pytest.raises(ValueError, match=shown):
        function(*arguments, **options)
