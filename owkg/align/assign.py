"""One-to-one assignment of the entities of a test alignment."""

import numpy as np
from jaxtyping import Bool
from numpy.typing import ArrayLike

from owkg.errors import ArgumentError


def assigned(similarity: ArrayLike) -> Bool[np.ndarray, "pairs"]:
    """Whether each pair is matched by the assignment of largest total similarity (Hungarian algorithm).

    Args:
        similarity: similarities of the left entity of each pair (row) and the right entity of each pair
            (column), finite floats [pairs, pairs].

    Raises:
        ValueError: naming the argument, if it is not square, or a number is not finite.

    References:
        Kuhn, Naval Research Logistics Quarterly 1955; Berrendorf et al. (2020), section 1.
    """
    from scipy.optimize import linear_sum_assignment

    matrix = np.asarray(similarity)
    if matrix.dtype.kind != "f" or matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        text = f"must be floats of shape [pairs, pairs], got {matrix.dtype} of shape {matrix.shape}."
        raise ArgumentError("similarity", text)
    if not np.isfinite(matrix).all():
        raise ArgumentError("similarity", "must be finite, got NaN or infinity.")
    _, column = linear_sum_assignment(matrix, maximize=True)
    return column == np.arange(len(matrix))
