"""RefE: a relation reflects heads and shifts them, and distances are squared."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.models import euclidean, options
from owkg.models.kind import Kind
from owkg.models.model import Model, Params, Statistics
from owkg.models.similarity import MINUS_SQUARES


@dataclass(frozen=True)
class RefE:
    """Options of RefE.

    Attributes:
        dim: reals an entity, an even number; a relation has twice as many.
        reciprocal: True: heads are asked for by inverse relations.
    """

    dim: int = 500
    reciprocal: bool = True

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim")
        options.even(self, "dim")
        options.only_reciprocal(self, "refe")


def refe_model(config: RefE) -> Model:
    """score(h, r, t) = -|R h + r - t|^2 + b_h + b_t, R of 2 x 2 reflections.

    Rows of relations are r, then the pairs of R, of neighbouring numbers, whose lengths do not count.
    Entities and r start normal with deviation .001, R uniform on +-1, biases at 0.

    References:
        Chami et al. 2020, Low-dimensional hyperbolic knowledge graph embeddings, section 4.
    """

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        return euclidean.biased_init(key, config, (num_entities, config.dim), num_relations, "nu")

    def form(entity: Float[Array, "q d"], relation: Float[Array, "q d2"]) -> Float[Array, "q d"]:
        shift, pairs = jnp.split(relation, 2, axis=-1)
        return euclidean.reflected(pairs, entity) + shift

    return Model(
        "refe",
        config,
        init,
        euclidean.biased_query(form),
        euclidean.biased_candidates,
        MINUS_SQUARES,
        entity_params=euclidean.BIASES,
    )


KIND = Kind(
    "refe",
    RefE,
    refe_model,
    "-|R h + r - t|^2 + b_h + b_t, reflections",
    "Chami et al. 2020",
    training=euclidean.TRAINING,
)
