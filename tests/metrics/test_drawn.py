"""Drawn chance levels: deterministic, right, with honest standard errors."""

import jax
import jax.numpy as jnp
import numpy as np

from owkg.metrics.drawn import drawn_chance, weighted_mean, weighted_median


def _mean_rank(ranks, weight):
    return weighted_mean(ranks.astype(jnp.float64), weight)


def test_the_mean_of_drawn_ranks_is_that_of_uniform_ranks():
    candidates, weight = np.array([1, 4, 30, 7]), np.array([3.0, 1.0, 2.0, 0.0])
    share = weight / weight.sum()
    found = drawn_chance(jax.random.key(2), _mean_rank, candidates, weight)
    expectation = np.dot(share, (candidates + 1) / 2)
    variance = np.dot(share**2, (candidates**2 - 1) / 12)
    assert abs(found.expectation - expectation) < 4 * found.expectation_standard_error
    assert abs(found.variance - variance) < 4 * found.variance_standard_error
    np.testing.assert_allclose(found.expectation_standard_error, np.sqrt(variance / 2**17), rtol=0.02)
    assert 0.001 < found.variance_standard_error / variance < 0.005


def test_keys_decide():
    one, same, other = (drawn_chance(jax.random.key(k), _mean_rank, np.array([5, 9])) for k in (1, 1, 2))
    assert one == same != other


def test_every_rank_is_drawn_and_no_other():
    def outside(ranks, weight):
        return jnp.sum((ranks[:3] < 1) | (ranks[:3] > jnp.array([1, 2, 3]))).astype(float)

    def last(ranks, weight):
        return (ranks[2] == 3).astype(float)

    candidates = np.array([1, 2, 3])
    assert drawn_chance(jax.random.key(0), outside, candidates)[:2] == (0, 0)
    found = drawn_chance(jax.random.key(0), last, candidates)
    assert abs(found.expectation - 1 / 3) < 4 * found.expectation_standard_error


def test_weighted_median():
    compiled = jax.jit(weighted_median, static_argnums=2)

    def median(ranks, weight, steps=6):
        ranks, weight = np.asarray(ranks, np.int32), np.asarray(weight, float)
        with jax.enable_x64(True):
            weight = jnp.asarray(weight / weight.sum())
            return float(compiled(jnp.asarray(ranks), weight, steps))

    rng = np.random.default_rng(0)
    for count in (1, 2, 3, 10, 11):
        for _ in range(3):
            ranks = rng.integers(1, 60, count)
            assert median(ranks, np.ones(count)) == np.median(ranks)
    assert median([1, 50, 3], [1, 2, 1]) == (3 + 50) / 2
    assert median([1, 50, 3], [1, 2.1, 1]) == 50
    assert median([9, 4], [0, 1]) == 4
    assert median([63, 63], [1, 1]) == 63
