"""Distributions of initial parameters."""

import math
from collections.abc import Callable, Iterable
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.models.model import Options

# Drawing takes several times the memory of the result, so larger arrays are drawn in blocks.
_AT_ONCE, _BLOCK = 2**24, 2**22


def uniform_within(key: Array, shape: tuple[int, ...], half_width: float) -> Float[Array, "..."]:
    """Uniform numbers on [-half_width, half_width)."""
    law = partial(jax.random.uniform, dtype=jnp.float32, minval=-half_width, maxval=half_width)
    return _in_blocks(law, key, shape)


def normal(key: Array, shape: tuple[int, ...], deviation: float) -> Float[Array, "..."]:
    """Normal numbers with mean 0."""
    return _in_blocks(lambda key, shape: deviation * jax.random.normal(key, shape, jnp.float32), key, shape)


def xavier_normal(key: Array, shape: tuple[int, int]) -> Float[Array, "rows columns"]:
    """Normal numbers with variance 2 / (rows + columns) (Glorot and Bengio 2010)."""
    return normal(key, shape, (2 / sum(shape)) ** 0.5)


def xavier_uniform(key: Array, shape: tuple[int, int]) -> Float[Array, "rows columns"]:
    """Uniform numbers with variance 2 / (rows + columns) (Glorot and Bengio 2010)."""
    return uniform_within(key, shape, (6 / sum(shape)) ** 0.5)


def margin_range(margin: float, dim: int) -> float:
    """Half-width of the uniform distribution of Sun et al. 2019, (margin + 2) / dim."""
    return (margin + 2) / dim


def drawn_embeddings(
    keys: Array | Iterable[Array],
    law: Callable[[Array, tuple[int, int]], Array],
    config: Options,
    entity: tuple[int, int],
    relation: tuple[int, int],
) -> dict[str, Array]:
    """Parameters `entity` and `relation` of the given shapes; reciprocal relations have two rows each."""
    entity_key, relation_key = keys
    rows = relation[0] * (2 if config.reciprocal else 1)
    return {"entity": law(entity_key, entity), "relation": law(relation_key, (rows, relation[1]))}


def _in_blocks(
    law: Callable[[Array, tuple[int, ...]], Array], key: Array, shape: tuple[int, ...]
) -> Float[Array, "..."]:
    """law(key, shape); large arrays are drawn in blocks of rows, each with its own key."""
    if math.prod(shape) <= _AT_ONCE:
        return law(key, shape)
    rows = max(1, min(shape[0], _BLOCK // math.prod(shape[1:])))

    def one(i: Array, array: Array) -> Array:
        # The last block starts earlier so that it is full, and overwrites the end of the block before.
        block = law(jax.random.fold_in(key, i), (rows, *shape[1:]))
        at = jnp.minimum(i * rows, shape[0] - rows) + jnp.arange(rows)
        # Written by rows, so that several devices that share the array each write their own rows and no
        # device ever holds the whole array.
        return array.at[at].set(block, mode="promise_in_bounds", unique_indices=True, indices_are_sorted=True)

    return jax.lax.fori_loop(0, -(-shape[0] // rows), one, jnp.zeros(shape, jnp.float32))
