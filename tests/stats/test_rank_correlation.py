"""Agreement of two rankings of systems, against SciPy and against every order of tied systems."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from owkg.stats.rank_correlation import (
    COEFFICIENTS,
    kendall_tau,
    round_ties,
    spearman,
    symmetric_tau_ap,
    tau_ap,
)

VALUES = st.integers(2, 9).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 6), min_size=n, max_size=n)] * 2)
)


def _untied_tau_ap(truth, estimate):
    """The definition, word by word: `truth` and `estimate` list systems, best first."""
    systems = len(estimate)
    place = {system: i for i, system in enumerate(truth)}
    total = 0.0
    for i in range(1, systems):
        correct = sum(place[above] < place[estimate[i]] for above in estimate[:i])
        total += correct / i
    return 2 / (systems - 1) * total - 1


def _orders(values):
    """Every list of the systems that the values allow, best first."""
    return [
        order
        for order in permutations(range(len(values)))
        if all(values[a] >= values[b] for a, b in pairwise(order))
    ]


@given(VALUES)
def test_scipy_agrees(values):
    first, second = values
    for ours, peer in ((kendall_tau, stats.kendalltau), (spearman, stats.spearmanr)):
        found = ours(first, second)
        if len(set(first)) == 1 or len(set(second)) == 1:
            assert np.isnan(found)
        else:
            assert found == pytest.approx(peer(first, second).statistic, abs=1e-12)


@given(
    st.integers(2, 5).flatmap(lambda n: st.tuples(*[st.lists(st.integers(0, 3), min_size=n, max_size=n)] * 2))
)
def test_tau_ap_is_the_mean_over_all_orders_of_tied_systems(values):
    truth, estimate = values
    found = tau_ap(truth, estimate)
    if len(set(truth)) == 1 or len(set(estimate)) == 1:
        assert np.isnan(found)
        return
    expected = np.mean([_untied_tau_ap(one, two) for one in _orders(truth) for two in _orders(estimate)])
    assert found == pytest.approx(expected, abs=1e-12)


def test_tau_ap_weighs_the_top_and_its_ranks_are_those_of_the_estimate():
    truth = np.array([5, 4, 3, 2, 1])
    top, bottom = np.array([4, 5, 3, 2, 1]), np.array([5, 4, 3, 1, 2])
    assert kendall_tau(truth, top) == kendall_tau(truth, bottom) == pytest.approx(0.8)
    assert tau_ap(truth, top) == pytest.approx(2 / 4 * (0 + 1 + 1 + 1) - 1)
    assert tau_ap(truth, bottom) == pytest.approx(2 / 4 * (1 + 1 + 1 + 3 / 4) - 1)
    # The worst system is thought the best: each of the others has one wrong above it.
    lifted = np.array([5, 4, 3, 2, 6])
    assert tau_ap(truth, lifted) == pytest.approx(2 / 4 * (0 + 1 / 2 + 2 / 3 + 3 / 4) - 1)
    assert tau_ap(lifted, truth) == pytest.approx(2 / 4 * (1 + 1 + 1 + 0) - 1)
    mean = (tau_ap(truth, lifted) + tau_ap(lifted, truth)) / 2
    assert symmetric_tau_ap(truth, lifted) == symmetric_tau_ap(lifted, truth) == mean


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_limits(name):
    coefficient = COEFFICIENTS[name]
    values = np.array([0.1, 0.5, 0.3, 1e308, -1e308])
    assert coefficient(values, values) == pytest.approx(1, abs=1e-15)
    assert coefficient(values, -values) == pytest.approx(-1, abs=1e-15)
    assert coefficient([0.5, 0.4], [2, 1]) == 1
    assert coefficient([1, 2, 3, 4, 5], np.exp([1, 2, 3, 4, 5])) == pytest.approx(1)
    assert np.isnan(coefficient(values, np.ones(5)))
    assert np.isnan(coefficient(np.ones(5), values))


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_leading_axes_broadcast(name, monkeypatch):
    coefficient = COEFFICIENTS[name]
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 9, (4, 1, 6)), rng.integers(0, 9, (5, 6))
    expected = [[coefficient(one[0], two).item() for two in second] for one in first]
    assert coefficient(first, second).tolist() == expected
    assert coefficient(first[0, 0], second).tolist() == expected[0]
    assert coefficient(second, second).shape == (5,)
    # Some at a time.
    monkeypatch.setattr("owkg.stats.rank_correlation._CHUNK", 3 * 6**2)
    assert coefficient(first, second).tolist() == expected


def test_random_rankings_have_no_correlation():
    rng = np.random.default_rng(0)
    first, second = rng.random((2, 20_000, 7))
    for coefficient in COEFFICIENTS.values():
        found = coefficient(first, second)
        assert abs(found.mean()) < 4 * found.std() / np.sqrt(len(found))
    # Kendall: variance 2 (2 n + 5) / (9 n (n - 1)).
    assert kendall_tau(first, second).var() == pytest.approx(2 * 19 / (9 * 7 * 6), rel=0.05)


@pytest.mark.parametrize("coefficient", [*COEFFICIENTS.values(), symmetric_tau_ap])
@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        ([0.5], [0.5], "at least two systems: 1 alone cannot be ranked"),
        (0.5, 0.5, "at least two systems"),
        ([0.5, np.nan], [1, 2], "finite, got nan at index"),
        ([1, 2], [0.5, np.inf], "finite, got inf at index"),
        ([1, 2, 3], [1, 2], "same systems, got 3 and 2"),
        (["a", "b"], [1, 2], "must be finite"),
        (np.ones((2, 3)), np.ones((4, 3)), "broadcast"),
        (np.ones((0, 3)), np.ones(3), "empty"),
    ],
)
def test_bad_input(coefficient, first, second, shown):
    with pytest.raises(ValueError, match=shown):
        coefficient(first, second)


def test_settled_values_tie_where_only_the_order_of_the_sum_differs():
    rng = np.random.default_rng(0)
    terms = 1 / rng.integers(1, 50, 300)
    sums = np.array([sum(rng.permutation(terms).tolist()) for _ in range(20)])
    assert len(np.unique(sums)) > 1
    assert len(np.unique(round_ties(sums))) == 1
    assert round_ties(sums) == pytest.approx(sums, rel=1e-11)
    # Real differences stay, rankings do not see each other, nothing is of no size.
    values = np.array([[1.0, 1 + 1e-11, 0.0], [1e-9, 2e-9, -1e-9], [0.0, 0.0, 0.0]])
    assert (np.argsort(round_ties(values)) == np.argsort(values)).all()
    assert round_ties(values) == pytest.approx(values, rel=1e-11, abs=0)
