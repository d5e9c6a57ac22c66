"""AttE: a relation weighs a rotated and a reflected head, with squared distances."""

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


class AttE(euclidean.PairOptions):
    """Options of AttE; a relation has four times as many reals as an entity."""


def atte_model(config: AttE) -> Model:
    """AttE, an attention over rotations and reflections with squared Euclidean distances.

        score(h, r, t) = -|w R h + (1 - w) S h + r - t|^2 + b_h + b_t

    R is a rotation, S a reflection, and w the softmax of the products of R h and S h with a context vector,
    divided by sqrt(dim). Rows of relations are r, the pairs of R, the pairs of S, and the context. Initial
    entities and r are normal with standard deviation 0.001, R and S uniform on +-1, contexts standard normal,
    and biases 0.

    The presets are the presets of RotE, because the authors publish none for this model.

    References:
        Chami et al. 2020, Low-dimensional hyperbolic knowledge graph embeddings, section 4.
    """

    def form(entity: Float[Array, "q d"], relation: Float[Array, "q d4"]) -> Float[Array, "q d"]:
        shift, rotation, reflection, context = jnp.split(relation, 4, axis=-1)
        both = euclidean.rotated(rotation, entity), euclidean.reflected(reflection, entity)
        return euclidean.attended(*both, context) + shift

    return euclidean.biased_model("atte", config, "nuus", form)


KIND = Kind(
    "atte",
    AttE,
    atte_model,
    "-|w R h + (1 - w) S h + r - t|^2 + b_h + b_t",
    "Chami et al. 2020",
    training=CLASSIFIED,
    presets={
        "fb15k-237": CHAMI_FB15K237,
        "wn18rr": CHAMI_WN18RR | {"batch_size": 100, "num_negatives": 250, "epochs": 200},
        "small": SMALL_CLASSIFIED,
    },
    peers={
        "kgemb": Peer(arrays=(*KGEMB, "rot.weight", "ref.weight", "context_vec.weight"), joined=with_biases)
    },
)
