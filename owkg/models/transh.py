"""TransH: relations shift entities within a hyperplane per relation."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.models import initial, options
from owkg.models.kind import CLASSIFIED, SMALL_CLASSIFIED, Kind, Peer
from owkg.models.model import Model, Params, Statistics, entity_rows, sided, stateless
from owkg.models.similarity import by_products


@dataclass(frozen=True)
class TransH:
    """Options of TransH.

    Attributes:
        dim: reals per entity; a relation has twice as many.
        reciprocal: whether heads are predicted through inverse relations.
    """

    dim: int = 100
    reciprocal: bool = False

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim")
        options.flags(self, "reciprocal")


def transh_model(config: TransH) -> Model:
    """TransH, squared distances within the hyperplane of a relation.

        score(h, r, t) = -|h' + d - t'|^2, with x' = x - (w.x) w and w of length 1

    Rows of relations are d, then w; w is divided by its length here and after each step. The distance is
    computed from products: with q = h' + d and t' = t - (w.t) w, |q - t'|^2 = |q|^2 - 2 q.t + |t|^2 + (w.t)
    (2 w.q - w.t). Initial entities and relations are uniform with the variance of Glorot and Bengio 2010.

    The authors also penalise entities longer than 1 and shifts d that leave the hyperplane; owkg does
    neither.

    The presets are the authors' presets for FB15k and WN18, of which FB15k-237 and WN18RR are parts, without
    these penalties. The authors' losses are sums over 4,800 facts and owkg's losses are means, so their
    learning rates are multiplied by 4,800.

    References:
        Wang, Zhang, Feng and Chen 2014, Knowledge graph embedding by translating on hyperplanes, equation 1.
    """

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        shapes = (num_entities, config.dim), (num_relations, 2 * config.dim)
        return initial.drawn_embeddings(jax.random.split(key), initial.xavier_uniform, config, *shapes), {}

    def moved(sign: int, entity: Float[Array, "q d"], relation: Float[Array, "q d2"]) -> Float[Array, "q d2"]:
        shift, normal = jnp.split(relation, 2, axis=-1)
        normal = of_length_one(normal)
        within = entity - jnp.sum(normal * entity, axis=-1, keepdims=True) * normal
        return jnp.concatenate([within + sign * shift, normal], axis=-1)

    return Model(
        "transh",
        config,
        init,
        sided(
            stateless(lambda head, relation: moved(1, head, relation)),
            stateless(lambda tail, relation: moved(-1, tail, relation)),
            reciprocal=config.reciprocal,
        ),
        entity_rows,
        _WITHIN,
        retract=unit_normals,
    )


def unit_normals(params: Params) -> Params:
    """Parameters with normals scaled to length 1."""
    if "relation" not in params:
        return params
    shift, normal = jnp.split(params["relation"], 2, axis=-1)
    return params | {"relation": jnp.concatenate([shift, of_length_one(normal)], axis=-1)}


def of_length_one(rows: Float[Array, "... d"]) -> Float[Array, "... d"]:
    """Rows divided by their length; rows of zeros stay unchanged."""
    square = jnp.sum(jnp.square(rows), axis=-1, keepdims=True)
    return rows * jnp.where(square > 0, jax.lax.rsqrt(jnp.where(square > 0, square, 1)), 0)


def _of_query(rows: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    point, normal = jnp.split(rows, 2, axis=-1)
    return (point, normal), (jnp.sum(jnp.square(point), axis=-1), jnp.sum(normal * point, axis=-1))


def _of_candidate(rows: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    return (rows, rows), (jnp.sum(jnp.square(rows), axis=-1),)


def _minus_square(dots: tuple[Array, ...], own: tuple[Array, ...], others: tuple[Array, ...]) -> Array:
    product, along = dots
    return -(own[0] - 2 * product + others[0] + along * (2 * own[1] - along))


_WITHIN = by_products(_of_query, _of_candidate, _minus_square)

_WANG = {
    "training_loop": "negatives",
    "loss": "margin",
    "sides": "bernoulli",
    "num_negatives": 1,
    "filtered_negatives": False,
    "batch_size": 9600,
    "optimiser": "sgd",
    "epochs": 500,
}
KIND = Kind(
    "transh",
    TransH,
    transh_model,
    "-|h' + d - t'|^2, x' = x - (w x) w",
    "Wang et al. 2014",
    training=CLASSIFIED,
    presets={
        "fb15k-237": _WANG | {"dim": 100, "loss_margin": 0.25, "learning_rate": 0.005 * 4800},
        "wn18rr": _WANG | {"dim": 50, "learning_rate": 0.01 * 4800},
        "small": SMALL_CLASSIFIED | {"reciprocal": True},
    },
    peers={
        "pykeen": Peer("TransH", differs="exchanges shifts and normals"),
        "libkge": Peer(differs="scores by the distance, by default of norm 1, not by its square"),
    },
)
