"""Relations between people as sparse boolean matrices, and operations on them.

A row is the first person of a pair, a column the second. A set of people is a diagonal matrix. All stored
values are true: SciPy adds booleans by "or", so nothing can overflow or cancel.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool, Int64
from scipy.sparse import csr_array

Matrix: TypeAlias = csr_array
# Searching for one pair takes as long as passing this many pairs.
_FEW = 64


class Apply(NamedTuple):
    """Operation on the matrices of expressions."""

    operation: Callable[..., Matrix]
    parts: "tuple[Expression, ...]"


# Name of a relation, or an operation on other expressions.
Expression: TypeAlias = str | Apply


def value(expression: Expression, known: dict[Expression, Matrix]) -> Matrix:
    """Matrix of an expression over the names in `known`, which also stores the matrices of all its parts."""
    if isinstance(expression, Apply) and expression not in known:
        known[expression] = expression.operation(*(value(part, known) for part in expression.parts))
    return known[expression]


def product(left: Matrix, right: Matrix) -> Matrix:
    """Pairs (a, c) with some b such that (a, b) is in `left` and (b, c) in `right`."""
    return left @ right


def inverse(matrix: Matrix) -> Matrix:
    """Pairs (b, a) for all (a, b)."""
    return matrix.T.tocsr()


def both(left: Matrix, right: Matrix) -> Matrix:
    """Pairs in `left` and in `right`."""
    small, large = sorted((left, right), key=lambda matrix: matrix.nnz)
    if small.nnz * _FEW < large.nnz:
        return _chosen(small, _in(small, large))
    return left.multiply(right).tocsr()


def either(left: Matrix, right: Matrix) -> Matrix:
    """Pairs in `left` or in `right`."""
    return left + right


def without(left: Matrix, right: Matrix) -> Matrix:
    """Pairs in `left` that are not in `right`."""
    if left.nnz * _FEW < right.nnz:
        return _chosen(left, ~_in(left, right))
    return left > right


def _in(few: Matrix, many: Matrix) -> Bool[np.ndarray, "pairs"]:
    """Whether each of a few pairs is among many, in a time that grows only with the logarithm of the many."""
    many.sort_indices()  # sorts only once, because a matrix stores that it is sorted
    row = np.repeat(np.arange(len(few.indptr) - 1), np.diff(few.indptr))
    low, end = many.indptr[row], many.indptr[row + 1]
    high = end
    while (open_ := low < high).any():
        middle = low + (high - low) // 2
        before = open_ & (many.indices[np.minimum(middle, many.nnz - 1)] < few.indices)
        low, high = np.where(before, middle + 1, low), np.where(open_ & ~before, middle, high)
    return (low < end) & (many.indices[np.minimum(low, many.nnz - 1)] == few.indices)


def _chosen(matrix: Matrix, chosen: Bool[np.ndarray, "pairs"]) -> Matrix:
    ends = np.concatenate([[0], np.cumsum(chosen)])[matrix.indptr]
    indices = matrix.indices[chosen]
    return csr_array((np.ones(len(indices), bool), indices, ends), shape=matrix.shape)


def pairs(matrix: Matrix) -> Int64[np.ndarray, "pairs"]:
    """Pairs (a, b) in a matrix of n people, as numbers a n + b in increasing order."""
    size = len(matrix.indptr) - 1
    rows = np.repeat(np.arange(size, dtype=np.int64) * size, np.diff(matrix.indptr))
    return np.sort(rows + matrix.indices)


def of_pairs(numbers: Int64[np.ndarray, "pairs"], size: int) -> Matrix:
    """Matrix of `size` people with the given `pairs`, in increasing order."""
    row, column = np.divmod(numbers, size)
    ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=size))])
    return csr_array((np.ones(len(numbers), bool), column, ends), shape=(size, size))


def having(matrix: Matrix) -> Matrix:
    """Set of people that are the first of some pair."""
    return among(np.diff(matrix.indptr) > 0)


def among(chosen: Bool[np.ndarray, "people"]) -> Matrix:
    """Set of people for whom `chosen` is true."""
    ids = np.flatnonzero(chosen).astype(np.int32)
    ends = np.concatenate([[0], np.cumsum(chosen, dtype=np.int32)], dtype=np.int32)
    return csr_array((np.ones(len(ids), bool), ids, ends), shape=(len(chosen), len(chosen)))
