"""Random words: as many as asked for, in their ranges, evenly spread, and different from each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from owkg.simulate.numerics import bounded, random_bits, unit_uniform


@pytest.mark.parametrize("count", [1, 2, 3, 86, 129])
def test_count_and_type(count):
    with jax.enable_x64(True):
        words = random_bits(jax.random.key(0), count)
    assert words.shape == (count,)
    assert words.dtype == jnp.uint32
    assert len(set(np.asarray(words).tolist())) == count


def test_every_bit_is_fair():
    with jax.enable_x64(True):
        words = np.asarray(random_bits(jax.random.key(1), 100_001))
    ones = [(words >> bit & 1).sum() for bit in range(32)]
    z = (np.array(ones) - len(words) / 2) / np.sqrt(len(words) / 4)
    assert np.abs(z).max() < 4.5


def test_uniform_is_uniform_and_below_one():
    with jax.enable_x64(True):
        drawn = np.asarray(unit_uniform(random_bits(jax.random.key(2), 100_000)))
    assert stats.kstest(drawn, "uniform").pvalue > 1e-4
    assert float(unit_uniform(jnp.array([2**32 - 1], jnp.uint32))[0]) == 1 - 2**-24


@pytest.mark.parametrize("bound", [1, 2, 7, 14_463])
def test_below_is_even_and_in_range(bound):
    n = 200_000
    with jax.enable_x64(True):
        drawn = np.asarray(bounded(random_bits(jax.random.key(3), n), jnp.full(n, bound, jnp.int32)))
    assert drawn.min() >= 0
    assert drawn.max() < bound
    if bound > 1:
        assert stats.chisquare(np.bincount(drawn, minlength=bound)).pvalue > 1e-4


def test_below_at_its_ends():
    with jax.enable_x64(True):
        words = jnp.array([0, 2**32 - 1], jnp.uint32)
        bound = jnp.full(2, 2**31 - 1, jnp.int32)
        assert bounded(words, bound).tolist() == [0, 2**31 - 2]


def test_small_bounds_give_the_same_numbers():
    bound = np.array([1, 2, 3, 43, 14_505, 65_535, 65_536], np.int32)
    with jax.enable_x64(True):
        words = jnp.concatenate([random_bits(jax.random.key(4), 1000), jnp.array([0, 2**32 - 1], jnp.uint32)])
        every, bounds = (
            part.reshape(-1) for part in jnp.broadcast_arrays(words[:, None], jnp.asarray(bound))
        )
        np.testing.assert_array_equal(bounded(every, bounds, small=True), bounded(every, bounds))
