"""SimplE: two factorisations, one of facts and one of inverse facts."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.models import initial, options
from owkg.models.kind import BINARY, FACTORED, SMALL_FACTORED, Kind, Peer
from owkg.models.model import Model, Params, Statistics, entity_rows, sided, stateless
from owkg.models.similarity import DOT


@dataclass(frozen=True)
class SimplE:
    """Options of SimplE.

    Attributes:
        dim: reals per entity as a head, per entity as a tail, per relation, and per inverse relation.
        reciprocal: whether heads are predicted through inverse relations, in addition to the inverses in the
            model.
    """

    dim: int = 200
    reciprocal: bool = False

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim")
        options.flags(self, "reciprocal")


def simple_model(config: SimplE) -> Model:
    """SimplE, the mean of two canonical decompositions.

        score(h, r, t) = (sum_k h_k r_k t'_k + sum_k t_k r'_k h'_k) / 2

    Rows of entities hold the embedding as head, then (with ') as tail; rows of relations hold the relation,
    then its inverse. All parameters start uniform on +-6 / sqrt(dim), as in the authors' code.

    The presets are the authors' presets for FB15k and WN18, of which FB15k-237 and WN18RR are parts. Their
    penalty covers all rows, while the penalty of owkg covers the rows of a step.

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
    presets={
        "fb15k-237": BINARY
        | {
            "optimiser": "adagrad",
            "learning_rate": 0.05,
            "num_negatives": 10,
            "batch_size": 9664,
            "l2": 0.0045,
            "n3": 0.0,
            "epochs": 1000,
        },
        "wn18rr": BINARY
        | {
            "optimiser": "adagrad",
            "learning_rate": 0.1,
            "num_negatives": 1,
            "batch_size": 2830,
            "l2": 0.0075,
            "n3": 0.0,
            "epochs": 1000,
        },
        "small": SMALL_FACTORED | {"dim": 64},
    },
    peers={
        "pykeen": Peer("SimplE", differs="has one embedding of an entity for head and tail"),
        "libkge": Peer(),
    },
)
