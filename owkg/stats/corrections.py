"""P-values of many pairs of systems, corrected for their number: Holm, and Benjamini and Hochberg.

P-values are a vector, or a symmetric matrix of all pairs of systems. The diagonal of a matrix is 1 or NaN and
stays unchanged; each pair counts once.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError


def holm(p: ArrayLike) -> Float64[np.ndarray, "*pairs"]:
    """P-values after Holm, which limit the probability of any false discovery to alpha under any dependence.

    For m sorted p-values, p'_(i) = max over j <= i of min(1, (m - j + 1) p_(j)).

    Args:
        p: p-values, a vector or a matrix of pairs.

    Raises:
        ValueError: if a p-value is outside [0, 1], or a matrix is not a matrix of pairs.

    Examples:
        >>> holm([0.01, 0.04, 0.03]).tolist()
        [0.03, 0.06, 0.06]

    References:
        Holm (Scandinavian Journal of Statistics 6, 1979), "A simple sequentially rejective multiple test
        procedure".
    """
    return _corrected(p, _holm)


def benjamini_hochberg(p: ArrayLike) -> Float64[np.ndarray, "*pairs"]:
    """P-values after Benjamini and Hochberg, which limit the expected share of false discoveries to alpha.

    For m sorted p-values, p'_(i) = min over j >= i of min(1, m p_(j) / j). The limit holds if the tests are
    independent or positively dependent; the tests of all pairs of systems are not quite positively dependent.

    Args:
        p: p-values, a vector or a matrix of pairs.

    Raises:
        ValueError: if a p-value is outside [0, 1], or a matrix is not a matrix of pairs.

    Examples:
        >>> benjamini_hochberg([0.01, 0.04, 0.03]).tolist()
        [0.03, 0.04, 0.04]

    References:
        Benjamini, Hochberg (Journal of the Royal Statistical Society B 57, 1995), "Controlling the false
        discovery rate".
    """
    from scipy import stats  # a quarter of a second

    return _corrected(p, stats.false_discovery_control)


def _holm(p: np.ndarray) -> np.ndarray:
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.maximum.accumulate(np.minimum(p[order] * np.arange(len(p), 0, -1), 1))
    return corrected


def _corrected(p: ArrayLike, correct: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    if np.ndim(p) != 2:
        vector = checks.real("p", p, 0, 1)
        if vector.ndim != 1:
            raise ArgumentError("p", f"must be a vector or a matrix, got an array of shape {vector.shape}.")
        return correct(vector)
    shape = np.shape(p)
    if shape[0] != shape[1] or shape[0] < 2:
        raise ArgumentError(
            "p", f"must have a row and a column for each of two systems or more, got {shape}."
        )
    pairs = np.triu_indices(shape[0], 1)
    matrix = np.array(p)
    diagonal = np.diagonal(matrix)
    if matrix.dtype.kind == "f" and np.isnan(diagonal).any():
        filled = np.where(np.isnan(diagonal), 1, diagonal)
        matrix[np.diag_indices(len(matrix))] = filled
    matrix = checks.real("p", matrix, 0, 1)
    checks.require("p", matrix, matrix == matrix.T, "symmetric")
    checks.require("p", matrix.diagonal(), matrix.diagonal() == 1, "1 or nan on the diagonal")
    found = np.zeros(shape)
    found[pairs] = correct(matrix[pairs])
    found += found.T
    np.fill_diagonal(found, np.diagonal(np.asarray(p)))
    return found
