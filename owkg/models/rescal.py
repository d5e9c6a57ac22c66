"""RESCAL: a bilinear form."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.models import initial, options
from owkg.models.kind import FACTORED, SMALL_FACTORED, Kind, Peer
from owkg.models.model import Model, Params, Statistics, entity_rows, sided, stateless
from owkg.models.similarity import DOT, HIGHEST


@dataclass(frozen=True)
class Rescal:
    """Options of RESCAL.

    Attributes:
        dim: reals per entity; a relation has dim^2, its matrix row by row.
        reciprocal: whether heads are predicted through inverse relations.
    """

    dim: int = 64
    reciprocal: bool = True

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim")
        options.flags(self, "reciprocal")


def rescal_model(config: Rescal) -> Model:
    """RESCAL, a full bilinear model.

        score(h, r, t) = h^T R t, with R in R^(dim x dim)

    Queries for heads use h^T (R t). Initial entities and relations are normal, with the variance of Glorot
    and Bengio 2010 for their arrays.

    The presets come from Ali et al. 2022 (PyKEEN), whose cross-entropy has one weight per answer of a query,
    while the cross-entropy of owkg has one weight per query.

    References:
        Nickel et al. 2011, A three-way model for collective learning on multi-relational data, equation 2.
    """

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        shapes = (num_entities, config.dim), (num_relations, config.dim**2)
        return initial.drawn_embeddings(jax.random.split(key), initial.xavier_normal, config, *shapes), {}

    def matrix(relation: Float[Array, "q d2"]) -> Float[Array, "q d d"]:
        return relation.reshape(-1, config.dim, config.dim)

    return Model(
        "rescal",
        config,
        init,
        sided(
            stateless(
                lambda head, relation: jnp.einsum("qi,qij->qj", head, matrix(relation), precision=HIGHEST)
            ),
            stateless(
                lambda tail, relation: jnp.einsum("qij,qj->qi", matrix(relation), tail, precision=HIGHEST)
            ),
            reciprocal=config.reciprocal,
        ),
        entity_rows,
        DOT,
    )


_ALI = {"dim": 256, "training_loop": "kvsall", "loss": "cross_entropy", "optimiser": "adam", "epochs": 1000}
KIND = Kind(
    "rescal",
    Rescal,
    rescal_model,
    "h^T R t",
    "Nickel et al. 2011",
    training=FACTORED | {"n3": 0.0},
    presets={
        "fb15k-237": _ALI | {"batch_size": 512, "learning_rate": 3.44e-3, "label_smoothing": 0.0112},
        "wn18rr": _ALI | {"batch_size": 256, "learning_rate": 1.33e-3, "label_smoothing": 0.436},
        "small": SMALL_FACTORED | {"dim": 64, "n3": 0.0},
    },
    peers={
        "pykeen": Peer("RESCAL"),
        "torchkge": Peer(arrays=("ent_emb.weight", "rel_mat.weight")),
        "openke": Peer(arrays=("ent_embeddings.weight", "rel_matrices.weight")),
        "libkge": Peer(),
        "dglke": Peer(),
    },
)
