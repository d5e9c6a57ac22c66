"""MuRP: relations stretch heads and shift tails in the Poincare ball."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.models import euclidean, hyperbolic, options
from owkg.models.kind import BALAZEVIC_FB15K237, BALAZEVIC_WN18RR, CLASSIFIED, SMALL_CLASSIFIED, Kind
from owkg.models.model import Model
from owkg.models.similarity import by_products


@dataclass(frozen=True)
class MuRP:
    """Options of MuRP.

    Attributes:
        dim: reals per entity; a relation has twice as many.
        reciprocal: must be True, because heads are predicted through inverse relations.
    """

    dim: int = 40
    reciprocal: bool = True

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim")
        options.only_reciprocal(self, "murp")


def murp_model(config: MuRP) -> Model:
    """MuRP, squared distances in the Poincare ball of radius 1.

        score(h, r, t) = -d(exp0(R h), exp0 t (+) exp0 r)^2 + b_h + b_t, with R diagonal

    Entities and r are tangent vectors at the origin, so that any optimiser can update them; the authors store
    points of the ball and update them by its metric. Rows of relations are r, then R. Initial entities and r
    are normal with standard deviation 0.001, R uniform on +-1, and biases 0.

    The distance is computed from products of a candidate with exp0(R h) and with exp0 r, because (+) does not
    cancel under the distance. The presets take plain steps where the authors take steps of the metric of the
    ball.

    References:
        Balazevic, Allen and Hospedales 2019, Multi-relational Poincare graph embeddings, equation 4.
    """

    def form(entity: Float[Array, "q d"], relation: Float[Array, "q d2"]) -> Float[Array, "q d2"]:
        entity, relation = hyperbolic.widened(entity), hyperbolic.widened(relation)
        shift, scale = jnp.split(relation, 2, axis=-1)
        one = jnp.ones_like(entity[:, :1])
        return jnp.concatenate([hyperbolic.of_origin(v, one) for v in (scale * entity, shift)], axis=-1)

    return euclidean.biased_model("murp", config, "nu", form, _MINUS_SQUARES)


def _of_query(rows: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    u, r = jnp.split(rows[..., :-1], 2, axis=-1)
    return (u, r), (*(jnp.sum(a * b, axis=-1) for a, b in ((u, u), (r, r), (u, r))), rows[..., -1])


def _of_candidate(rows: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    v = rows[..., :-1]
    return (v, v), (jnp.sum(jnp.square(v), axis=-1), rows[..., -1])


def _minus_square(dots: tuple[Array, ...], own: tuple[Array, ...], others: tuple[Array, ...]) -> Array:
    """Minus the squared distance plus biases.

    With y = exp0(v) (+) r = (a exp0(v) + b r) / over, and 1 - |y|^2 = b (1 - |r|^2) / over.
    """
    uu, rr, ur, bias = own
    vv, other = others
    ratio = hyperbolic.tanh_ratio(vv)
    uv, rv = (ratio * product for product in dots)
    b = 1 / hyperbolic.square_of_cosh(vv)
    tt = jnp.square(ratio) * vv
    a, over = 1 + 2 * rv + rr, 1 + 2 * rv + tt * rr
    yy = (jnp.square(a) * tt + 2 * a * b * rv + jnp.square(b) * rr) / jnp.square(over)
    apart = jnp.maximum(uu - 2 * (a * uv + b * ur) / over + yy, 0)
    tiny = jnp.finfo(uu.dtype).eps
    room = jnp.maximum(1 - uu, tiny) * b * jnp.maximum(1 - rr, tiny)
    return bias + other - 4 * hyperbolic.square_of_asinh(apart * over / room)


_MINUS_SQUARES = by_products(_of_query, _of_candidate, _minus_square)

KIND = Kind(
    "murp",
    MuRP,
    murp_model,
    "-d(R h, t (+) r)^2 + b_h + b_t, hyperbolic",
    "Balazevic et al. 2019",
    training=CLASSIFIED,
    presets={
        "fb15k-237": BALAZEVIC_FB15K237,
        "wn18rr": BALAZEVIC_WN18RR,
        "small": SMALL_CLASSIFIED | {"dim": 32},
    },
)
