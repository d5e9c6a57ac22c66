"""Running counts over the first axis, many columns at a time."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Integer


def prefix_counts(flags: Bool[Array, "rows columns"], dtype: Any) -> Integer[Array, "rows_plus_1 columns"]:
    """How many of the rows before each row are true, modulo the range of `dtype`.

    Args:
        flags: what is counted.
        dtype: of the counts; unsigned ones wrap, and so do their differences.
    """
    # A CPU adds row after row, at a sixth of the time of `cumsum`; an accelerator would wait for each.
    return jax.lax.platform_dependent(
        flags, cpu=partial(_row_after_row, dtype=dtype), default=partial(_all_at_once, dtype=dtype)
    )


def _row_after_row(flags: Array, *, dtype: Any) -> Array:
    def step(count: Array, row: Array) -> tuple[Array, Array]:
        return count + row.astype(dtype), count

    total, before = jax.lax.scan(step, jnp.zeros(flags.shape[1], dtype), flags)
    return jnp.concatenate([before, total[None]])


def _all_at_once(flags: Array, *, dtype: Any) -> Array:
    counts = jnp.cumsum(flags, axis=0, dtype=dtype)
    return jnp.concatenate([jnp.zeros_like(counts[:1]), counts])
