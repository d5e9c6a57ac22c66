"""SimplE: two factorisations, one of facts and one of inverse facts."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.models import initial, options
from owkg.models.kind import FACTORED, Kind
from owkg.models.model import Model, Params, Statistics, entity_rows, sided, stateless
from owkg.models.similarity import DOT


@dataclass(frozen=True)
class SimplE:
    """Options of SimplE.

    Attributes:
        dim: reals of an entity as a head, as many as a tail; of a relation, as many of its inverse.
        reciprocal: whether heads are asked for by inverse relations, besides those of the model.
    """

    dim: int = 200
    reciprocal: bool = False

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim")
        options.flags(self, "reciprocal")


def simple_model(config: SimplE) -> Model:
    """score(h, r, t) = (sum_k h_k r_k t'_k + sum_k t_k r'_k h'_k) / 2.

    Rows of entities are what they are as heads, then, with ', as tails; rows of relations the relation, then
    its inverse. All start uniform on +-6 / sqrt(dim), as the authors have it.

    References:
        Kazemi and Poole 2018, SimplE embedding for link prediction in knowledge graphs, section 4.
    """

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        def law(key: Array, shape: tuple[int, int]) -> Array:
            return initial.uniform_within(key, shape, 6 / config.dim**0.5)

        shapes = (num_entities, 2 * config.dim), (num_relations, 2 * config.dim)
        return initial.drawn_embeddings(jax.random.split(key), law, config, *shapes), {}

    def of_tails(head: Float[Array, "q d2"], relation: Float[Array, "q d2"]) -> Float[Array, "q d2"]:
        (as_head, as_tail), (forward, inverse) = (jnp.split(x, 2, axis=-1) for x in (head, relation))
        return jnp.concatenate([as_tail * inverse, as_head * forward], axis=-1) / 2

    def of_heads(tail: Float[Array, "q d2"], relation: Float[Array, "q d2"]) -> Float[Array, "q d2"]:
        (as_head, as_tail), (forward, inverse) = (jnp.split(x, 2, axis=-1) for x in (tail, relation))
        return jnp.concatenate([as_tail * forward, as_head * inverse], axis=-1) / 2

    return Model(
        "simple",
        config,
        init,
        sided(stateless(of_tails), stateless(of_heads), reciprocal=config.reciprocal),
        entity_rows,
        DOT,
    )


KIND = Kind(
    "simple",
    SimplE,
    simple_model,
    "(h r t' + t r' h') / 2",
    "Kazemi and Poole 2018",
    columns=2,
    training=FACTORED,
)
