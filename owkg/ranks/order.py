"""Integers in the order of floats, so that scores compare exactly on every device."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

_WHOLE = {2: jnp.int16, 4: jnp.int32, 8: jnp.int64}
_FLOAT = {2: jnp.float16, 4: jnp.float32, 8: jnp.float64}


def sortable(x: Float[Array, "..."]) -> Int[Array, "..."]:
    """Integers in the order of floats; XLA treats subnormal floats as zero, which would create ties."""
    return _mirrored(jax.lax.bitcast_convert_type(x, _WHOLE[x.dtype.itemsize]))


def unsortable(key: Int[Array, "..."]) -> Float[Array, "..."]:
    """Floats of `sortable` integers."""
    return jax.lax.bitcast_convert_type(_mirrored(key), _FLOAT[key.dtype.itemsize])


def to_pass(key: Int[Array, "..."]) -> Int[Array, "..."]:
    """Threshold key that only keys of floats above the float of `key` exceed; 0 is not above -0 (key -1)."""
    return jnp.where(key == -1, 0, key)


def to_reach(key: Int[Array, "..."]) -> Int[Array, "..."]:
    """Threshold key that only keys of floats of at least the float of `key` reach; -0 (key -1) reaches 0."""
    return jnp.where(key == 0, -1, key)


def counted(flags: tuple[Array, ...], axes: tuple[int, ...]) -> tuple[Int[Array, "..."], ...]:
    """Number of true entries of each of `flags`, over `axes`.

    One reduction of several numbers reads their inputs once; separate reductions take 30 times as long.
    """
    whole = tuple(flag.astype(jnp.int32) for flag in flags)
    start = (jnp.int32(0),) * len(flags)
    return tuple(
        jax.lax.reduce(whole, start, lambda a, b: tuple(x + y for x, y in zip(a, b, strict=True)), axes)
    )


def _mirrored(bits: Int[Array, "..."]) -> Int[Array, "..."]:
    """Bits with the order of negative numbers reversed; applying it twice restores them."""
    kind = jnp.iinfo(bits.dtype)
    return bits ^ ((bits >> (kind.bits - 1)) & kind.max)
