"""Relations between people as sparse boolean matrices, and what can be done with them.

A row is the first person of a pair, a column the second. A set of people is a diagonal matrix.
All stored values are true: SciPy adds booleans by "or", so nothing can overflow or cancel.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool
from scipy.sparse import csr_array

Matrix: TypeAlias = csr_array


class Apply(NamedTuple):
    """An operation on the matrices of expressions."""

    operation: Callable[..., Matrix]
    parts: "tuple[Expression, ...]"


# The name of a relation, or what is done with others.
Expression: TypeAlias = str | Apply


def value(expression: Expression, known: dict[Expression, Matrix]) -> Matrix:
    """The matrix of an expression, all parts of which are computed once and kept in `known`.

    Args:
        expression: whose names are all in `known`.
        known: matrices of names and expressions; grows.
    """
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
    return left.multiply(right).tocsr()


def either(left: Matrix, right: Matrix) -> Matrix:
    """Pairs in `left` or in `right`."""
    return left + right


def without(left: Matrix, right: Matrix) -> Matrix:
    """Pairs in `left` that are not in `right`."""
    return left > right


def having(matrix: Matrix) -> Matrix:
    """The set of people that are the first of some pair."""
    return among(np.diff(matrix.indptr) > 0)


def among(chosen: Bool[np.ndarray, "people"]) -> Matrix:
    """The set of people for whom `chosen` is true."""
    ids = np.flatnonzero(chosen).astype(np.int32)
    ends = np.concatenate([[0], np.cumsum(chosen, dtype=np.int32)], dtype=np.int32)
    return csr_array((np.ones(len(ids), bool), ids, ends), shape=(len(chosen), len(chosen)))
