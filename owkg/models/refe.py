"""RefE: a relation reflects heads and shifts them, and distances are squared."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.models import euclidean
from owkg.models.kind import (
    CHAMI_FB15K237,
    CHAMI_WN18RR,
    CLASSIFIED,
    KGEMB,
    SMALL_CLASSIFIED,
    Kind,
    Peer,
    with_biases,
)
from owkg.models.model import Model


class RefE(euclidean.PairOptions):
    """Options of RefE; a relation has twice as many reals as an entity."""


def refe_model(config: RefE) -> Model:
    """score(h, r, t) = -|R h + r - t|^2 + b_h + b_t, R of 2 x 2 reflections.

    Rows of relations are r, then the pairs of R, of neighbouring numbers, whose lengths do not count.
    Entities and r start normal with deviation .001, R uniform on +-1, biases at 0.

    The presets are those of RotE: the authors print none of this model.

    References:
        Chami et al. 2020, Low-dimensional hyperbolic knowledge graph embeddings, section 4.
    """

    def form(entity: Float[Array, "q d"], relation: Float[Array, "q d2"]) -> Float[Array, "q d"]:
        shift, pairs = jnp.split(relation, 2, axis=-1)
        return euclidean.reflected(pairs, entity) + shift

    return euclidean.biased_model("refe", config, "nu", form)


KIND = Kind(
    "refe",
    RefE,
    refe_model,
    "-|R h + r - t|^2 + b_h + b_t, reflections",
    "Chami et al. 2020",
    training=CLASSIFIED,
    presets={
        "fb15k-237": CHAMI_FB15K237,
        "wn18rr": CHAMI_WN18RR | {"batch_size": 100, "num_negatives": 250, "epochs": 200},
        "small": SMALL_CLASSIFIED,
    },
    peers={"kgemb": Peer(arrays=(*KGEMB, "rel_diag.weight"), joined=with_biases)},
)
