"""Initial parameters: large arrays are drawn in blocks, by the same law."""

import jax
import numpy as np
import pytest

from owkg.models import initial

LAWS = {"normal": initial.normal, "uniform": initial.uniform_within}


@pytest.fixture(params=LAWS)
def law(request, monkeypatch):
    monkeypatch.setattr(initial, "_AT_ONCE", 1000)
    monkeypatch.setattr(initial, "_BLOCK", 64)
    return request.param, LAWS[request.param]


@pytest.mark.parametrize("shape", [(501, 4), (500, 7), (30, 5, 10)])
def test_blocks_have_the_law(law, shape):
    name, draw = law
    drawn = np.asarray(draw(jax.random.key(0), shape, 2.0)).ravel()
    deviation = 2.0 if name == "normal" else 2 / 3**0.5
    assert abs(drawn.mean()) < 4 * deviation / drawn.size**0.5
    # The variance of a square is at most twice that of the normal.
    assert abs(np.square(drawn).mean() - deviation**2) < 4 * deviation**2 * (2 / drawn.size) ** 0.5
    assert len(np.unique(drawn)) == drawn.size


def test_small_arrays_are_drawn_at_once(law):
    name, draw = law
    key = jax.random.key(0)
    whole = 2 * jax.random.normal(key, (250, 4)) if name == "normal" else None
    expected = jax.random.uniform(key, (250, 4), minval=-2.0, maxval=2.0) if whole is None else whole
    np.testing.assert_array_equal(draw(key, (250, 4), 2.0), expected)
