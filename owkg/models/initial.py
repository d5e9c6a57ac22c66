"""Laws that initial parameters are drawn from."""

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


def relation_rows(config: Any, num_relations: int) -> int:
    """How many rows relations take: two each if they are reciprocal."""
    return 2 * num_relations if config.reciprocal else num_relations
