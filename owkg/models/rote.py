"""RotE: a relation rotates heads and shifts them, and distances are squared."""

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


class RotE(euclidean.PairOptions):
    """Options of RotE; a relation has twice as many reals as an entity."""


def rote_model(config: RotE) -> Model:
    """score(h, r, t) = -|R h + r - t|^2 + b_h + b_t, R of 2 x 2 rotations.

    Rows of relations are r, then the pairs of R, of neighbouring numbers, whose lengths do not count.
    Entities and r start normal with deviation .001, R uniform on +-1, biases at 0.

    The preset for WN18RR is the authors' script, which corrupts both ends of a fact at once, where here
    one is; that for FB15k-237 is their script of RotH.

    References:
        Chami et al. 2020, Low-dimensional hyperbolic knowledge graph embeddings, section 4.
    """

    def form(entity: Float[Array, "q d"], relation: Float[Array, "q d2"]) -> Float[Array, "q d"]:
        shift, pairs = jnp.split(relation, 2, axis=-1)
        return euclidean.rotated(pairs, entity) + shift

    return euclidean.biased_model("rote", config, "nu", form)


KIND = Kind(
    "rote",
    RotE,
    rote_model,
    "-|R h + r - t|^2 + b_h + b_t, rotations",
    "Chami et al. 2020",
    training=CLASSIFIED,
    presets={
        "fb15k-237": CHAMI_FB15K237,
        "wn18rr": CHAMI_WN18RR | {"batch_size": 100, "num_negatives": 250, "epochs": 200},
        "small": SMALL_CLASSIFIED,
    },
    peers={"kgemb": Peer(arrays=(*KGEMB, "rel_diag.weight"), joined=with_biases)},
)
