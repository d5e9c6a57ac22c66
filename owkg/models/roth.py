"""RotH: relations shift, rotate and shift heads in a hyperbolic space whose curvature each relation has."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.models import euclidean, hyperbolic, options
from owkg.models.kind import Kind
from owkg.models.model import Model, Params, Statistics


@dataclass(frozen=True)
class RotH:
    """Options of RotH.

    Attributes:
        dim: reals an entity, an even number; a relation has three times as many and one.
        reciprocal: True: heads are asked for by inverse relations.
    """

    dim: int = 32
    reciprocal: bool = True

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim")
        options.even(self, "dim")
        options.only_reciprocal(self, "roth")


def roth_model(config: RotH) -> Model:
    """score(h, r, t) = -d((R (exp0 h (+) exp0 r)) (+) exp0 r', exp0 t)^2 + b_h + b_t, R of rotations.

    d is the distance, (+) the addition and exp0 the map of the origin in the Poincare ball of curvature c =
    softplus(c_r) of the relation; all embeddings are tangent vectors at the origin. Rows of relations are
    r, r', the pairs of R, and the raw curvature. Entities, r and r' start normal with
    deviation .001, R uniform on +-1, biases at 0, raw curvatures at 1.

    References:
        Chami et al. 2020, Low-dimensional hyperbolic knowledge graph embeddings, section 4.
    """

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        shapes = (num_entities, config.dim), num_relations
        params, statistics = euclidean.biased_init(key, config, *shapes, "nnu")
        return params | {"relation": euclidean.with_ones(params["relation"])}, statistics

    def form(entity: Float[Array, "q d"], relation: Float[Array, "q d31"]) -> Float[Array, "q d1"]:
        entity, relation = hyperbolic.widened(entity), hyperbolic.widened(relation)
        c = jax.nn.softplus(relation[:, -1:])
        first, second, rotation = jnp.split(relation[:, :-1], 3, axis=-1)
        head, before, after = (hyperbolic.of_origin(v, c) for v in (entity, first, second))
        shifted = hyperbolic.within(hyperbolic.added(head, before, c), c)
        x = hyperbolic.added(euclidean.rotated(rotation, shifted), after, c)
        return jnp.concatenate([x, c], axis=-1)

    return Model(
        "roth",
        config,
        init,
        euclidean.biased_query(form),
        euclidean.biased_candidates,
        hyperbolic.MINUS_HYPERBOLIC_SQUARES,
        entity_params=euclidean.BIASES,
    )


KIND = Kind(
    "roth",
    RotH,
    roth_model,
    "-d(R (h (+) r) (+) r', t)^2 + b_h + b_t, hyperbolic",
    "Chami et al. 2020",
    training=euclidean.TRAINING,
)
