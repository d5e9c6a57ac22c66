"""Kullback-Leibler divergence against SciPy, and its limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from owkg.stats import divergence

counts = st.lists(st.integers(0, 1000), min_size=4, max_size=4)


@given(one=counts, other=counts, added=st.floats(0.01, 10))
def test_against_scipy(one, other, added):
    p, q = np.array(one) + added, np.array(other) + added
    expected = stats.entropy(p / p.sum(), q / q.sum())
    assert divergence(one, other, added=added) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert divergence(one, one, added=added) == 0


def test_limits():
    assert divergence([1, 0], [1, 1], added=0) == pytest.approx(np.log(2))
    assert divergence([1, 1], [1, 0], added=0) == np.inf
    with pytest.raises(ValueError, match="`other` must be of shape"):
        divergence([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="`one` must have a count above 0"):
        divergence([0, 0], [1, 2], added=0)
    with pytest.raises(ValueError, match="`other` must be finite and at least 0"):
        divergence([0, 0], [1, -2])
