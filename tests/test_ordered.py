"""Arrays in order against NumPy's own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg.ordered import changes, distinct, located, num_distinct, searched

NUMBERS = st.lists(st.integers(-5, 5), max_size=30).map(lambda values: np.array(values, np.int64))


@given(values=NUMBERS)
def test_distinct(values):
    expected = np.unique(values)
    assert distinct(values).tolist() == expected.tolist()
    assert num_distinct(np.sort(values)) == len(expected)
    assert changes(np.sort(values)).sum() == len(expected)


@pytest.mark.parametrize("side", ["left", "right"])
@given(values=NUMBERS, wanted=NUMBERS)
def test_searched(side, values, wanted):
    values.sort()
    assert searched(values, wanted, side).tolist() == np.searchsorted(values, wanted, side).tolist()


@given(values=NUMBERS, wanted=NUMBERS)
def test_located(values, wanted):
    values.sort()
    place, found = located(values, wanted)
    assert found.tolist() == np.isin(wanted, values).tolist()
    assert place.tolist() == np.searchsorted(values, wanted).tolist()


def test_shapes_are_kept():
    place, found = located(np.array([1, 3]), np.array([[3, 2], [1, 4]]))
    assert place.tolist() == [[1, 1], [0, 2]]
    assert found.tolist() == [[True, False], [True, False]]


def test_blocks_change_nothing(monkeypatch):
    monkeypatch.setattr("owkg.ordered._BLOCK", 3)
    values, wanted = np.arange(0, 40, 2), np.random.default_rng(0).integers(-2, 44, (4, 5))
    assert (searched(values, wanted) == np.searchsorted(values, wanted)).all()
