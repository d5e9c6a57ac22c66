"""What is done with matrices, whichever way is taken: a few pairs are looked for, many passed by."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from family_tree import matrices
from family_tree.matrices import both, of_pairs, pairs, product, without

SHARES = st.sampled_from([0.0, 0.02, 0.3, 0.9, 1.0])


def drawn(rng: np.random.Generator, size: int, share: float) -> csr_array:
    return csr_array(rng.random((size, size)) < share)


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), SHARES, SHARES, st.sampled_from([0, 3, 64]))
def test_few_pairs_and_many(seed, size, left, right, few):
    rng = np.random.default_rng(seed)
    left, right = drawn(rng, size, left), drawn(rng, size, right)
    # A product gives columns in no order.
    shuffled = product(right, csr_array(np.eye(size, dtype=bool)[rng.permutation(size)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrices, "_FEW", few)
        for other in (right, shuffled):
            for found, expected in (
                (both(left, other), left.toarray() & other.toarray()),
                (without(left, other), left.toarray() & ~other.toarray()),
            ):
                np.testing.assert_array_equal(found.toarray(), expected)
                assert found.nnz == expected.sum()  # nothing that is false is stored
                assert found.dtype == bool


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), SHARES)
def test_pairs_there_and_back(seed, size, share):
    matrix = drawn(np.random.default_rng(seed), size, share)
    numbers = pairs(matrix)
    assert numbers.tolist() == np.flatnonzero(matrix.toarray()).tolist()
    back = of_pairs(numbers, size)
    np.testing.assert_array_equal(back.toarray(), matrix.toarray())
    assert back.nnz == matrix.nnz
