"""Products of a sparse and a dense matrix, fast on every device and equally fast in reverse mode."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import linear_call
from jaxtyping import Array, Float, Int32
from scipy import sparse

# Number of entries of a row that are handled together; longer rows are cut, and their parts summed.
_WIDTH = 16


class _Part(NamedTuple):
    """Rows of one width: the index, columns and weights of each row, padded with weights of 0."""

    row: Int32[Array, "rows"]
    column: Int32[Array, "rows width"]
    weight: Float[Array, "rows width"]


class SparseMatrix(NamedTuple):
    """Square sparse matrix by rows and by columns, in rows of few widths."""

    rows: tuple[_Part, ...]
    columns: tuple[_Part, ...]


def sparse_matrix(matrix: sparse.csr_array) -> SparseMatrix:
    """SciPy matrix as float32."""
    return SparseMatrix(_parts(sparse.csr_array(matrix)), _parts(sparse.csr_array(matrix.T)))


def _parts(matrix: sparse.csr_array) -> tuple[_Part, ...]:
    """Rows of a matrix, cut and grouped by width."""
    pieces = -(-np.diff(matrix.indptr) // _WIDTH)
    row = np.repeat(np.arange(len(pieces)), pieces)
    piece = np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    start = matrix.indptr[row] + piece * _WIDTH
    length = np.minimum(_WIDTH, matrix.indptr[row + 1] - start)
    width = 2 ** np.ceil(np.log2(length)).astype(int)
    parts = []
    for size in np.unique(width):
        own = width == size
        inside = np.arange(size) < length[own, None]
        entry = np.where(inside, start[own, None] + np.arange(size), 0)
        column = np.where(inside, matrix.indices[entry], 0).astype(np.int32)
        weight = np.where(inside, matrix.data[entry], 0).astype(np.float32)
        parts.append(_Part(*map(jnp.asarray, (row[own].astype(np.int32), column, weight))))
    return tuple(parts)


def sparse_product(matrix: SparseMatrix, dense: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """Product matrix @ dense; its derivative is a product with the transpose, also in rows of few widths."""
    return linear_call(
        lambda matrix, dense: _times(matrix.rows, dense),
        lambda matrix, slope: _times(matrix.columns, slope),
        matrix,
        dense,
    )


def _times(parts: tuple[_Part, ...], dense: Array) -> Array:
    """Product of a matrix in parts with a dense one."""
    sums = [
        sum(part.weight[:, k, None] * dense[part.column[:, k]] for k in range(part.weight.shape[1]))
        for part in parts
    ]
    rows = jnp.concatenate([part.row for part in parts])
    return jax.ops.segment_sum(jnp.concatenate(sums), rows, len(dense))
