"""RefE: a relation reflects and shifts heads, with squared distances."""

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
    """RefE, squared Euclidean distances with reflected heads.

        score(h, r, t) = -|R h + r - t|^2 + b_h + b_t, with R made of 2 x 2 reflections

    Rows of relations are r, then the pairs of R for adjacent numbers; the lengths of the pairs have no
    effect. Initial entities and r are normal with standard deviation 0.001, R uniform on +-1, and biases 0.

    The presets are the presets of RotE, because the authors publish none for this model.

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
