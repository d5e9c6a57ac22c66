"""What models of squared distances with biases share: biases of entities, rotations, reflections."""

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
    """Options of a reciprocal model that rotates or reflects pairs of numbers; a kind has its own class.

    Attributes:
        dim: reals an entity, an even number.
        reciprocal: True: heads are asked for by inverse relations.
    """

    dim: int = 500
    reciprocal: bool = True

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim")
        options.even(self, "dim")
        options.only_reciprocal(self, type(self).__name__.lower())


def biased_init(key: Array, config: Options, entities: int, relations: int, parts: str) -> Params:
    """Normal points, biases of 0, and rows of relations of several parts of `dim` numbers.

    Args:
        key: of the draws.
        config: options.
        entities: how many.
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
    """A reciprocal model of moved points, with a bias of what is given and one of the answer.

    Args:
        name: of the model.
        config: its options.
        parts: of the rows of relations, as `biased_init` takes them.
        form: from rows of entities and of relations to moved points.
        similarity: of points and candidates, each with its bias behind it.
        ones: whether rows of relations end in one more number, 1 at the start.
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
