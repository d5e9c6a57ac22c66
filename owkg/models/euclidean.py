"""What models of squared distances with biases share: biases of entities, rotations, reflections."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.models import initial
from owkg.models.model import Ids, Options, Params, Query, Statistics, entity_rows, sided, stateless

BIASES = ("entity", "head_bias", "tail_bias")
"""The arrays with a row an entity."""
TRAINING = {
    "training_loop": "1vsall",
    "loss": "cross_entropy",
    "batch_size": 500,
    "optimiser": "adam",
    "learning_rate": 1e-3,
}
"""How these models are trained by default: with the full cross-entropy, as Chami et al. 2020 also do."""
SCALE = 1e-3
"""Standard deviation of initial points and translations."""


def biased_init(
    key: Array, config: Options, entities: tuple[int, int], relations: int, parts: str
) -> tuple[Params, Statistics]:
    """Normal points, biases of 0, and rows of relations of several parts of `dim` numbers.

    Args:
        key: of the draws.
        config: options.
        entities: shape of the points.
        relations: how many; twice as many rows where they are reciprocal.
        parts: of a relation, a letter each: n, normal of deviation `SCALE`; u, uniform on +-1; s, standard
            normal.
    """
    first, *keys = jax.random.split(key, 1 + len(parts))
    laws = {"n": (initial.normal, SCALE), "u": (initial.uniform_within, 1.0), "s": (initial.normal, 1.0)}
    rows = relations * (2 if config.reciprocal else 1)
    drawn = []
    for part, own in zip(parts, keys, strict=True):
        law, width = laws[part]
        drawn.append(law(own, (rows, config.dim), width))
    zeros = jnp.zeros(entities[0], jnp.float32)
    return {
        "entity": initial.normal(first, entities, SCALE),
        "relation": jnp.concatenate(drawn, axis=-1),
        "head_bias": zeros,
        "tail_bias": zeros,
    }, {}


def with_ones(rows: Float[Array, "n d"]) -> Float[Array, "n d1"]:
    """Rows with a column of ones behind them."""
    return jnp.concatenate([rows, jnp.ones_like(rows[:, :1])], axis=-1)


def biased_query(form: Callable[[Array, Array], Array]) -> Query:
    """The query of a reciprocal model: the moved point, then the bias of the entity that is given."""
    moved = sided(stateless(form), None, reciprocal=True)

    def query(
        params: Params,
        statistics: Statistics,
        entity: Ids,
        relation: Ids,
        side: str,
        *,
        key: Array | None = None,
    ) -> tuple[Array, Statistics]:
        points, statistics = moved(params, statistics, entity, relation, side, key=key)
        return jnp.concatenate([points, params["head_bias"][entity][:, None]], axis=-1), statistics

    return query


def biased_candidates(params: Params, entity: Ids | None = None) -> Array:
    """Points of entities, then their biases as answers."""
    bias = params["tail_bias"] if entity is None else params["tail_bias"][entity]
    return jnp.concatenate([entity_rows(params, entity), bias[..., None]], axis=-1)


def rotated(rotation: Float[Array, "q d"], x: Float[Array, "q d"]) -> Float[Array, "q d"]:
    """Neighbouring numbers of x rotated by pairs of length 1: (a u - b v, a v + b u)."""
    (a, b), (u, v) = _unit(rotation), _pairs(x)
    return _joined(a * u - b * v, a * v + b * u)


def reflected(reflection: Float[Array, "q d"], x: Float[Array, "q d"]) -> Float[Array, "q d"]:
    """Neighbouring numbers of x reflected by pairs of length 1: (a u + b v, b u - a v)."""
    (a, b), (u, v) = _unit(reflection), _pairs(x)
    return _joined(a * u + b * v, b * u - a * v)


def attended(
    first: Float[Array, "q d"], second: Float[Array, "q d"], context: Float[Array, "q d"]
) -> Float[Array, "q d"]:
    """Both, weighted by the softmax of their products with a context, over the square root of d."""
    both = jnp.stack([first, second], axis=1)
    weights = jax.nn.softmax((both * context[:, None]).sum(-1) / context.shape[-1] ** 0.5, axis=-1)
    return (weights[..., None] * both).sum(1)


def _pairs(x: Array) -> tuple[Array, Array]:
    return x[..., 0::2], x[..., 1::2]


def _joined(first: Array, second: Array) -> Array:
    return jnp.stack([first, second], axis=-1).reshape(*first.shape[:-1], -1)


def _unit(rows: Array) -> tuple[Array, Array]:
    """Pairs divided by their length; (0, 0) stays."""
    a, b = _pairs(rows)
    square = jnp.square(a) + jnp.square(b)
    scale = jnp.where(square > 0, jax.lax.rsqrt(jnp.where(square > 0, square, 1)), 0)
    return a * scale, b * scale
