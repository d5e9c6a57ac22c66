"""Looks: known critical values, the error that is spent, and Monte Carlo of the process."""

from itertools import permutations

import numpy as np
import pytest
from scipy import integrate, stats

from owkg.errors import ArgumentError
from owkg.estimation.looks import critical_values, information, look_levels, looks, spent

# Lan and DeMets' boundaries of O'Brien and Fleming's kind, two-sided error .05, as published for WinLD and
# ldbounds, whose second value of five is 1e-4 too small.
KNOWN = {
    2: [2.9626, 1.9686],
    3: [3.7103, 2.5114, 1.9930],
    4: [4.3326, 2.9631, 2.3590, 2.0141],
    5: [4.8769, 3.3569, 2.6803, 2.2898, 2.0310],
}


@pytest.mark.parametrize("count", KNOWN)
def test_critical_values_are_the_published_ones(count):
    found = critical_values(np.arange(1, count + 1) / count)
    np.testing.assert_allclose(found, KNOWN[count], atol=1.5e-4)


def test_one_look_is_the_quantile():
    for level in (0.8, 0.95, 0.99):
        assert critical_values([1.0], level)[0] == pytest.approx(stats.norm.ppf((1 + level) / 2), abs=1e-8)


def test_each_look_leaves_what_is_spent_by_adaptive_quadrature():
    t = np.array([0.2, 0.4])
    c = critical_values(t)
    bound = c * np.sqrt(t)

    def leaves(u):
        out = stats.norm.sf((bound[1] - u) / np.sqrt(0.2)) + stats.norm.sf((bound[1] + u) / np.sqrt(0.2))
        return stats.norm.pdf(u, scale=np.sqrt(0.2)) * out

    found = integrate.quad(leaves, -bound[0], bound[0], epsabs=1e-14)[0]
    assert found == pytest.approx(np.diff(spent(t))[0], rel=1e-8)


def test_two_looks_agree_with_the_bivariate_normal():
    t = np.array([0.4, 1.0])
    c = critical_values(t, 0.9)
    both = stats.multivariate_normal(cov=[[1, np.sqrt(0.4)], [np.sqrt(0.4), 1]])
    a, b = c
    inside = both.cdf([a, b]) - both.cdf([-a, b]) - both.cdf([a, -b]) + both.cdf([-a, -b])
    assert 1 - inside == pytest.approx(0.1, abs=1e-5)


@pytest.mark.parametrize("t", [[0.2, 0.25, 0.7, 1.0], (np.arange(30, 201, 10) / 200).tolist()])
def test_paths_cross_as_often_as_is_spent(t):
    random = np.random.default_rng(1)
    found = looks(t, 0.9)
    steps = np.sqrt(np.diff([0.0, *t]))
    z = np.cumsum(random.normal(size=(200_000, len(t))) * steps, axis=1) / np.sqrt(t)
    out = np.logical_or.accumulate(np.abs(z) > critical_values(t, 0.9), axis=1).mean(0)
    wanted = np.array([look.spent for look in found])
    np.testing.assert_array_less(np.abs(out - wanted), 4 * np.sqrt(wanted / 200_000) + 1e-5)
    assert found[-1].spent == pytest.approx(0.1, abs=1e-9)


def test_many_early_looks_end_with_the_whole_error():
    found = looks(np.arange(1, 101) / 100)
    assert found[-1].spent == pytest.approx(0.05, abs=1e-9)
    assert max(look.critical for look in found) < 4.9  # so that levels stay below 1
    assert all(look.level < 1 for look in found)


def test_later_looks_do_not_change_earlier_ones():
    np.testing.assert_allclose(critical_values([0.3, 0.6, 1.0])[:2], critical_values([0.3, 0.6, 0.7])[:2])


def test_spending_ends_at_the_error_and_grows():
    assert spent([1.0], 0.9)[0] == pytest.approx(0.1)
    assert (np.diff(spent(np.linspace(0.1, 1, 10))) > 0).all()


def test_information_makes_nested_means_independent_increments():
    """Corr(Z_1, Z_2) of nested samples of a finite population is sqrt(t_1), by all orders of a small one."""
    people = np.array([0.0, 0.2, 0.4, 1.0, 0.9, 0.1])
    orders = np.array(list(permutations(people)))
    first, second = orders[:, :2].mean(1), orders[:, :4].mean(1)
    assert np.corrcoef(first, second)[0, 1] ** 2 == pytest.approx(information([2, 4], 6)[0])


def test_information_of_a_large_population_is_the_share_of_draws():
    np.testing.assert_allclose(information([50, 100, 200], 10**9), [0.25, 0.5, 1], rtol=1e-6)


def test_levels_of_a_census_leave_the_error_to_the_others():
    found = look_levels([50, 100, 300], 300)
    np.testing.assert_allclose(found[:2], look_levels([50, 100], 300))
    assert found[2] == 0.95
    assert look_levels([300], 300).tolist() == [0.95]


def test_looks_of_means_are_wrong_as_often_as_promised():
    random = np.random.default_rng(2)
    people = random.normal(size=400)
    sizes = np.array([50, 100, 150, 200])
    orders = np.stack([random.permutation(people)[:200] for _ in range(4000)])
    means = np.cumsum(orders, axis=1)[:, sizes - 1] / sizes
    error = (means - people.mean()) / (people.std(ddof=1) * np.sqrt(1 / sizes - 1 / 400))
    ever = (np.abs(error) > stats.norm.ppf((1 + look_levels(sizes, 400)) / 2)).any(1).mean()
    naive = (np.abs(error) > 1.96).any(1).mean()
    assert ever == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 4000))
    assert naive > 0.1


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: look_levels([100, 50]), "sizes"),
        (lambda: look_levels([50, 400], 300), "sizes"),
        (lambda: look_levels([0, 50]), "sizes"),
        (lambda: information([50, 300], 300), "sizes"),
        (lambda: critical_values([0.5, 0.5]), "fractions"),
        (lambda: critical_values([0.0, 0.5]), "fractions"),
        (lambda: critical_values([0.5, 1.1]), "fractions"),
        (lambda: critical_values([1.0], 1.0), "level"),
    ],
)
def test_bad_arguments_are_named(call, name):
    with pytest.raises(ArgumentError, match=f"`{name}`"):
        call()
