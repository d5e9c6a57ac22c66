"""Shared parts of models with squared distances and biases: entity biases, rotations and reflections."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.models import initial, options
from owkg.models.model import Ids, Model, Options, Params, Statistics, rows_with, sided, stateless
from owkg.models.similarity import MINUS_SQUARES, Similarity

SCALE = 1e-3
"""Standard deviation of initial points and translations."""


@dataclass(frozen=True)
class PairOptions:
    """Options of a reciprocal model that rotates or reflects pairs of numbers; each kind has a subclass.

    Attributes:
        dim: reals per entity, an even number.
        reciprocal: must be True, because heads are predicted through inverse relations.
    """

    dim: int = 500
    reciprocal: bool = True

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim")
        options.even(self, "dim")
        options.only_reciprocal(self, type(self).__name__.lower())


def biased_init(key: Array, config: Options, entities: int, relations: int, parts: str) -> Params:
    """Initial parameters: normal points, biases of 0, and relation rows with several parts of `dim` numbers.

    Args:
        key: random key.
        config: options of the model.
        entities: number of entities.
        relations: number of relations; reciprocal relations have two rows each.
        parts: one letter per part of a relation: n, normal with standard deviation `SCALE`; u, uniform on
            +-1; s, standard normal.
    """
    first, *keys = jax.random.split(key, 1 + len(parts))
    laws = {"n": (initial.normal, SCALE), "u": (initial.uniform_within, 1.0), "s": (initial.normal, 1.0)}
    rows = relations * (2 if config.reciprocal else 1)
    drawn = []
    for part, own in zip(parts, keys, strict=True):
        law, width = laws[part]
        drawn.append(law(own, (rows, config.dim), width))
    zeros = jnp.zeros(entities, jnp.float32)
    return {
        "entity": initial.normal(first, (entities, config.dim), SCALE),
        "relation": jnp.concatenate(drawn, axis=-1),
        "head_bias": zeros,
        "tail_bias": zeros,
    }


def biased_model(
    name: str,
    config: Options,
    parts: str,
    form: Callable[[Array, Array], Array],
    similarity: Similarity = MINUS_SQUARES,
    *,
    ones: bool = False,
) -> Model:
    """Reciprocal model of moved points, with a bias of the given entity and a bias of the answer.

    Args:
        name: name of the model.
        config: options of the model.
        parts: parts of the rows of relations, as in `biased_init`.
        form: function from rows of entities and rows of relations to moved points.
        similarity: similarity of points and candidates, each followed by its bias.
        ones: whether rows of relations end in one more number, initially 1.
    """

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        params = biased_init(key, config, num_entities, num_relations, parts)
        relation = params["relation"]
        last = jnp.ones_like(relation[:, : int(ones)])
        return params | {"relation": jnp.concatenate([relation, last], axis=-1)}, {}

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

    return Model(
        name,
        config,
        init,
        query,
        rows_with("tail_bias"),
        similarity,
        entity_params=("entity", "head_bias", "tail_bias"),
    )


def rotated(rotation: Float[Array, "q d"], x: Float[Array, "q d"]) -> Float[Array, "q d"]:
    """Adjacent pairs (u, v) of x, rotated by pairs (a, b) scaled to length 1: (a u - b v, a v + b u)."""
    (a, b), (u, v) = _unit(rotation), _pairs(x)
    return _joined(a * u - b * v, a * v + b * u)


def reflected(reflection: Float[Array, "q d"], x: Float[Array, "q d"]) -> Float[Array, "q d"]:
    """Adjacent pairs (u, v) of x, reflected by pairs (a, b) scaled to length 1: (a u + b v, b u - a v)."""
    (a, b), (u, v) = _unit(reflection), _pairs(x)
    return _joined(a * u + b * v, b * u - a * v)


def attended(
    first: Float[Array, "q d"], second: Float[Array, "q d"], context: Float[Array, "q d"]
) -> Float[Array, "q d"]:
    """Sum weighted by the softmax of the products with a context, divided by the square root of d."""
    both = jnp.stack([first, second], axis=1)
    weights = jax.nn.softmax((both * context[:, None]).sum(-1) / context.shape[-1] ** 0.5, axis=-1)
    return (weights[..., None] * both).sum(1)


def _pairs(x: Array) -> tuple[Array, Array]:
    return x[..., 0::2], x[..., 1::2]


def _joined(first: Array, second: Array) -> Array:
    return jnp.stack([first, second], axis=-1).reshape(*first.shape[:-1], -1)


def _unit(rows: Array) -> tuple[Array, Array]:
    """Pairs divided by their length; (0, 0) stays unchanged."""
    a, b = _pairs(rows)
    square = jnp.square(a) + jnp.square(b)
    scale = jnp.where(square > 0, jax.lax.rsqrt(jnp.where(square > 0, square, 1)), 0)
    return a * scale, b * scale
