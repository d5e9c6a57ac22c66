"""Running counts against NumPy, on either way to them."""

import jax.numpy as jnp
import numpy as np
import pytest

from owkg.simulate import numerics


@pytest.mark.parametrize("count", [numerics.prefix_counts, numerics._row_after_row, numerics._all_at_once])
@pytest.mark.parametrize("rows", [1, 17, 300])
def test_counts_are_those_of_numpy(count, rows):
    flags = np.random.default_rng(rows).random((rows, 5)) < 0.9
    if count is numerics.prefix_counts:
        found = count(jnp.asarray(flags), jnp.uint8)
    else:
        found = count(jnp.asarray(flags), dtype=jnp.uint8)
    exact = np.concatenate([np.zeros((1, 5), int), np.cumsum(flags, axis=0)])
    np.testing.assert_array_equal(np.asarray(found), exact % 256)
    # Differences are right though the counts wrap.
    assert np.all(np.diff(np.asarray(found), axis=0) == flags)
