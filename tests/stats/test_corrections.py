"""P-values corrected for their number, against the definitions and SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from owkg.stats.corrections import benjamini_hochberg, holm

P_VALUES = st.lists(
    st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.01, 0.05, 1.0])), min_size=1, max_size=12
)


def _rejected_by_holm(p, alpha):
    """The smallest is compared with alpha / m, the next with alpha / (m - 1), until one fails."""
    rejected = np.zeros(len(p), bool)
    for step, i in enumerate(np.argsort(p)):
        if p[i] * (len(p) - step) > alpha:
            break
        rejected[i] = True
    return rejected


@given(P_VALUES, st.floats(0.001, 0.999))
def test_holm_rejects_what_the_steps_reject(p, alpha):
    found = holm(p)
    assert ((found <= alpha) == _rejected_by_holm(np.array(p), alpha)).all()
    assert (found >= p).all()
    assert (found <= np.minimum(1, len(p) * np.array(p))).all()


@given(P_VALUES)
def test_benjamini_hochberg_is_the_definition(p):
    order = np.sort(p)
    size = len(p)
    expected = [min(min(1, size * order[j] / (j + 1)) for j in range(size) if order[j] >= one) for one in p]
    assert benjamini_hochberg(p) == pytest.approx(expected, abs=1e-12)
    assert benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p), abs=1e-12)


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
@pytest.mark.parametrize("diagonal", [1.0, np.nan])
def test_each_pair_of_a_matrix_counts_once(correct, diagonal):
    rng = np.random.default_rng(0)
    pairs = np.triu_indices(5, 1)
    p = rng.random(10) ** 3
    matrix = np.full((5, 5), diagonal)
    matrix[pairs] = p
    matrix.T[pairs] = p
    found = correct(matrix)
    assert found[pairs] == pytest.approx(correct(p))
    assert found.T[pairs] == pytest.approx(correct(p))
    assert np.array_equal(np.diagonal(found), np.full(5, diagonal), equal_nan=True)
    assert np.isnan(matrix).any() == np.isnan(diagonal)


def test_holm_keeps_the_errors_within_alpha():
    rng = np.random.default_rng(0)
    p = rng.random((4000, 10))
    p[:, 7:] **= 20  # true differences
    errors = np.mean([(holm(row)[:7] <= 0.1).any() for row in p[:1000]])
    assert 0.02 < errors < 0.1 + 4 * np.sqrt(0.09 / 1000)


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
@pytest.mark.parametrize(
    ("p", "shown"),
    [
        ([0.1, 1.1], "in \\[0, 1\\], got 1.1"),
        ([0.1, np.nan], "got nan"),
        (0.1, "a vector or a matrix"),
        ([], "empty"),
        (np.ones((2, 3)), "a row and a column"),
        ([[1.0]], "two systems"),
        ([[1, 0.2], [0.3, 1]], "symmetric"),
        ([[0.5, 0.2], [0.2, 0.5]], "diagonal"),
        ([[np.nan, np.nan], [np.nan, np.nan]], "got nan"),
        (np.ones((2, 2, 2)), "shape"),
    ],
)
def test_bad_input(correct, p, shown):
    with pytest.raises(ValueError, match=shown):
        correct(p)
