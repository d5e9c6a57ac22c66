"""RotE: a relation rotates and shifts heads, with squared distances."""

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
    """RotE, squared Euclidean distances with rotated heads.

        score(h, r, t) = -|R h + r - t|^2 + b_h + b_t, with R made of 2 x 2 rotations

    Rows of relations are r, then the pairs of R for adjacent numbers; the lengths of the pairs have no
    effect. Initial entities and r are normal with standard deviation 0.001, R uniform on +-1, and biases 0.

    The preset for WN18RR is the authors' script, which corrupts both ends of a fact at once, while owkg
    corrupts one. The preset for FB15k-237 is their script for RotH.

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
