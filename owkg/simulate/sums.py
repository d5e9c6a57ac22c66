"""Sums whose rounding does not depend on how a compiler lays out a reduction."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def pairwise_sum(values: Float[Array, "n ..."]) -> Float[Array, "..."]:
    """Sum over the first axis, by halves: one fixed order of additions, whatever the batch around it."""
    while values.shape[0] > 1:
        if values.shape[0] % 2:
            values = jnp.concatenate([values, jnp.zeros_like(values[:1])])
        values = values[: values.shape[0] // 2] + values[values.shape[0] // 2 :]
    return values[0]
