"""Chance levels by Monte Carlo: deterministic, right, with honest standard errors."""

import numpy as np

from owkg.metrics.chance import Shapes
from owkg.metrics.monte_carlo import monte_carlo_chance, weighted_median


def _mean_rank(ranks, share):
    return ranks @ share


def test_the_mean_of_drawn_ranks_is_that_of_uniform_ranks():
    candidates, weight = np.array([1, 4, 30, 7]), np.array([3.0, 1.0, 2.0, 0.0])
    share = weight / weight.sum()
    found = monte_carlo_chance(2, _mean_rank, Shapes(candidates, weight))
    expectation = np.dot(share, (candidates + 1) / 2)
    variance = np.dot(share**2, (candidates**2 - 1) / 12)
    assert abs(found.expectation - expectation) < 4 * found.expectation_standard_error
    assert abs(found.variance - variance) < 4 * found.variance_standard_error
    np.testing.assert_allclose(found.expectation_standard_error, np.sqrt(variance / 2**17), rtol=0.02)
    assert 0.001 < found.variance_standard_error / variance < 0.005


def test_keys_decide():
    one, same, other = (monte_carlo_chance(k, _mean_rank, Shapes(np.array([5, 9]))) for k in (1, 1, 2))
    assert one == same != other


def test_every_rank_is_drawn_and_no_other():
    def outside(ranks, share):
        return ((ranks < 1) | (ranks > np.array([1, 2, 3]))).sum(1)

    def last(ranks, share):
        return ranks[:, 2] == 3

    candidates = np.array([1, 2, 3])
    assert monte_carlo_chance(0, outside, Shapes(candidates))[:2] == (0, 0)
    found = monte_carlo_chance(0, last, Shapes(candidates))
    assert abs(found.expectation - 1 / 3) < 4 * found.expectation_standard_error


def test_weighted_median():
    def median(ranks, weight):
        return weighted_median(np.array([ranks]), np.asarray(weight, float) / np.sum(weight))[0]

    rng = np.random.default_rng(0)
    for count in (1, 2, 3, 10, 11):
        for _ in range(3):
            ranks = rng.integers(1, 60, count)
            assert median(ranks, np.ones(count)) == np.median(ranks)
    assert median([1, 50, 3], [1, 2, 1]) == (3 + 50) / 2
    assert median([1, 50, 3], [1, 2.1, 1]) == 50
    assert median([9, 4], [0, 1]) == 4
    assert median([63, 63], [1, 1]) == 63
