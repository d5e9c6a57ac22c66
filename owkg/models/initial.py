"""Laws that initial parameters are drawn from."""

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def uniform(key: Array, shape: tuple[int, ...], half_width: float) -> Float[Array, "..."]:
    """Uniform on [-half_width, half_width)."""
    return jax.random.uniform(key, shape, jnp.float32, -half_width, half_width)


def normal(key: Array, shape: tuple[int, ...], deviation: float) -> Float[Array, "..."]:
    """Normal of mean 0."""
    return deviation * jax.random.normal(key, shape, jnp.float32)


def xavier_normal(key: Array, shape: tuple[int, int]) -> Float[Array, "rows columns"]:
    """Normal of variance 2 / (rows + columns) (Glorot and Bengio 2010)."""
    return normal(key, shape, (2 / sum(shape)) ** 0.5)


def xavier_uniform(key: Array, shape: tuple[int, int]) -> Float[Array, "rows columns"]:
    """Uniform of variance 2 / (rows + columns) (Glorot and Bengio 2010)."""
    return uniform(key, shape, (6 / sum(shape)) ** 0.5)


def margin_range(margin: float, dim: int) -> float:
    """(margin + 2) / dim: half the width of the uniform distribution of Sun et al. 2019."""
    return (margin + 2) / dim


def embeddings(
    keys: Array | Iterable[Array],
    law: Callable[[Array, tuple[int, int]], Array],
    config: Any,
    entity: tuple[int, int],
    relation: tuple[int, int],
) -> dict[str, Array]:
    """The parameters `entity` and `relation` of the given shapes; reciprocal relations have two rows each."""
    entity_key, relation_key = keys
    rows = relation[0] * (2 if config.reciprocal else 1)
    return {"entity": law(entity_key, entity), "relation": law(relation_key, (rows, relation[1]))}
