"""DistMult: a diagonal bilinear form."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array

from owkg.models import initial, options
from owkg.models.kind import FACTORED, SAMPLED, SMALL_FACTORED, Kind, Peer
from owkg.models.model import Model, Params, Statistics, entity_rows, sided, stateless
from owkg.models.similarity import DOT


@dataclass(frozen=True)
class DistMult:
    """Options of DistMult.

    Attributes:
        dim: reals per entity and per relation.
        reciprocal: whether heads are predicted through inverse relations.
    """

    dim: int = 128
    reciprocal: bool = True

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim")
        options.flags(self, "reciprocal")


def distmult_model(config: DistMult) -> Model:
    """DistMult, a diagonal bilinear model.

        score(h, r, t) = sum_k h_k r_k t_k

    Queries for heads have the same form. Initial entities and relations are uniform with the variance of
    Glorot and Bengio 2010.

    The presets come from Sun et al. 2019, without their penalty on all rows.

    References:
        Yang et al. 2015, Embedding entities and relations for learning and inference in knowledge bases.
    """

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        shapes = (num_entities, config.dim), (num_relations, config.dim)
        return initial.drawn_embeddings(jax.random.split(key), initial.xavier_uniform, config, *shapes), {}

    form = stateless(jnp.multiply)
    return Model("distmult", config, init, sided(form, form, reciprocal=config.reciprocal), entity_rows, DOT)


_SUN = SAMPLED | {"n3": 0.0, "schedule": "drop", "reciprocal": False}
KIND = Kind(
    "distmult",
    DistMult,
    distmult_model,
    "sum h r t",
    "Yang et al. 2015",
    training=FACTORED,
    presets={
        "fb15k-237": _SUN | {"dim": 2000, "num_negatives": 256, "learning_rate": 1e-3, "steps": 100_000},
        "wn18rr": _SUN
        | {"dim": 1000, "batch_size": 512, "num_negatives": 1024, "learning_rate": 2e-3, "steps": 80_000},
        "small": SMALL_FACTORED,
    },
    peers={"pykeen": Peer("DistMult")}
    | dict.fromkeys(("pyg", "torchkge", "openke", "libkge", "dglke"), Peer()),
)
