"""Monotone cubics of many curves at once, as scipy has them of each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import PchipInterpolator

from owkg.auditing.monotone import curves, interpolated


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.sampled_from(["any", "flat", "rising"]))
def test_as_one_by_one(seed, points, kind):
    """Also for curves of two or three points, turning points, and level pieces."""
    rng = np.random.default_rng(seed)
    x = np.cumsum(10.0 ** rng.uniform(-3, 1, (6, points)), axis=1)
    y = {"any": rng.normal, "flat": lambda size: rng.integers(0, 3, size) * 1.0, "rising": rng.random}[kind](
        size=(6, points)
    )
    y = np.cumsum(y, axis=1) if kind == "rising" else y
    used = rng.random((6, points)) < 0.7
    used[np.arange(6), rng.integers(0, points, 6)] = True
    # Values between the ends, on points, and at the ends themselves.
    low, high = np.where(used, x, np.inf).min(1), np.where(used, x, -np.inf).max(1)
    at = np.concatenate([rng.random((20, 6)), np.zeros((1, 6)), np.ones((1, 6))]) * (high - low) + low
    at = np.clip(np.concatenate([at, x.T]), low, high)
    found = interpolated(curves(x, y, used), at)
    for own, (a, b, there) in enumerate(zip(x, y, used, strict=True)):
        one = there.sum() == 1
        wanted = np.full(len(at), b[there][0]) if one else PchipInterpolator(a[there], b[there])(at[:, own])
        np.testing.assert_allclose(found[:, own], wanted, rtol=1e-9, atol=1e-9 * np.abs(b).max())


def test_pieces_of_many_curves_are_found_a_part_at_a_time(monkeypatch):
    rng = np.random.default_rng(0)
    x, y = np.cumsum(rng.random((50, 8)), axis=1), rng.random((50, 8))
    at = np.clip(rng.random((30, 50)) * x[:, -1], x[:, 0], None)
    line = curves(x, y, np.ones((50, 8), bool))
    whole = interpolated(line, at)
    monkeypatch.setattr("owkg.auditing.monotone._AT_ONCE", 1)
    np.testing.assert_array_equal(interpolated(line, at), whole)


def test_what_is_not_used_has_no_effect():
    x, y = np.array([[0.0, np.nan, 1.0, 2.0]]), np.array([[0.0, np.inf, 1.0, 8.0]])
    line = curves(x, y, np.array([[True, False, True, True]]))
    found = interpolated(line, np.array([[0.5], [1.5]]))
    assert found[:, 0] == pytest.approx(PchipInterpolator([0, 1, 2], [0, 1, 8])([0.5, 1.5]))
