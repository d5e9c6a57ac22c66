"""Kernels of ranking: scores are compared with their thresholds and counted in one pass."""

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int32

from owkg.ranks.order import counted, sortable, to_pass, to_reach


@jax.jit(static_argnames="size")
def rows(scores: Float[Array, "queries entities"], begin: int | Int[Array, ""], *, size: int) -> Array:
    """Rows begin, ..., begin + size - 1."""
    return jax.lax.dynamic_slice_in_dim(scores, begin, size)


@jax.jit
@jax.vmap
def score_counts(
    scores: Float[Array, "entities"],
    high: Float[Array, ""],
    low: Float[Array, ""],
    mask: Bool[Array, "entities"] | None = None,
) -> tuple[Int32[Array, ""], ...]:
    """Numbers of scores above `high`, of scores of at least `low`, and of NaN, for one query in one pass."""
    keys = sortable(scores)
    above, level = keys > to_pass(sortable(high)), keys >= to_reach(sortable(low))
    if mask is not None:
        above, level = above & mask, level & mask
    return counted((above, level, scores != scores), (0,))


@jax.jit
def entries(
    scores: Float[Array, "queries entities"],
    row: Int[Array | np.ndarray, "n"],
    entity: Int[Array | np.ndarray, "n"],
) -> Array:
    """Entries scores[row, entity]."""
    return scores.at[row, entity].get(mode="promise_in_bounds")
