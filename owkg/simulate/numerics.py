"""Random bits at half the usual cost, random numbers made from them, sums and running counts."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int, Integer, Key, UInt32


def random_bits(key: Key[Array, ""], count: int) -> UInt32[Array, "count"]:
    """`count` independent words of 32 random bits.

    One evaluation of threefry makes 64 bits, and `jax.random` discards half of them for 32-bit words. Needs
    64-bit types to be enabled.
    """
    pairs = jax.random.bits(key, ((count + 1) // 2,), jnp.uint64)
    halves = jnp.concatenate([pairs >> 32, pairs & 0xFFFFFFFF])
    return halves[:count].astype(jnp.uint32)


def unit_uniform(words: UInt32[Array, "*n"]) -> Float[Array, "*n"]:
    """Float32 numbers, uniform on the multiples of 2^-24 in [0, 1), one for each word."""
    return (words >> 8).astype(jnp.float32) * jnp.float32(2**-24)


def bounded(words: UInt32[Array, "*n"], bound: Int[Array, "*n"], *, small: bool = False) -> Int[Array, "*n"]:
    """Integers uniform on 0 .. bound-1, computed as the high word of word times bound.

    The probability of each value is off by at most 2^-32. With `small`, which needs bounds of at most 2^16,
    the same numbers come from products of 32 bits.
    """
    if small:
        bound = bound.astype(jnp.uint32)
        return (((words >> 16) * bound + (((words & 0xFFFF) * bound) >> 16)) >> 16).astype(jnp.int32)
    return ((words.astype(jnp.uint64) * bound.astype(jnp.uint64)) >> 32).astype(jnp.int32)


def pairwise_sum(values: Float[Array, "n ..."]) -> Float[Array, "..."]:
    """Sum over the first axis by halves, in one fixed order of additions for any batch size."""
    while values.shape[0] > 1:
        if values.shape[0] % 2:
            values = jnp.concatenate([values, jnp.zeros_like(values[:1])])
        values = values[: values.shape[0] // 2] + values[values.shape[0] // 2 :]
    return values[0]


def prefix_counts(
    flags: Bool[Array, "rows columns"], dtype: DTypeLike
) -> Integer[Array, "rows_plus_1 columns"]:
    """Number of true rows before each row, modulo the range of `dtype` (unsigned counts wrap)."""
    # A CPU adds row after row in a sixth of the time of `cumsum`; an accelerator would wait for each row.
    return jax.lax.platform_dependent(
        flags, cpu=partial(_row_after_row, dtype=dtype), default=partial(_all_at_once, dtype=dtype)
    )


def _row_after_row(flags: Array, *, dtype: DTypeLike) -> Array:
    def step(count: Array, row: Array) -> tuple[Array, Array]:
        return count + row.astype(dtype), count

    total, before = jax.lax.scan(step, jnp.zeros(flags.shape[1], dtype), flags)
    return jnp.concatenate([before, total[None]])


def _all_at_once(flags: Array, *, dtype: DTypeLike) -> Array:
    counts = jnp.cumsum(flags, axis=0, dtype=dtype)
    return jnp.concatenate([jnp.zeros_like(counts[:1]), counts])
