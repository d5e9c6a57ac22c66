"""MuRE: relations stretch heads and shift tails, with squared distances."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from owkg.models import euclidean, options
from owkg.models.kind import (
    BALAZEVIC_FB15K237,
    BALAZEVIC_WN18RR,
    CLASSIFIED,
    KGEMB,
    SMALL_CLASSIFIED,
    Kind,
    Peer,
    of_pykeen,
    with_biases,
)
from owkg.models.model import Model


@dataclass(frozen=True)
class MuRE:
    """Options of MuRE.

    Attributes:
        dim: reals per entity; a relation has twice as many.
        reciprocal: must be True, because heads are predicted through inverse relations.
    """

    dim: int = 200
    reciprocal: bool = True

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim")
        options.only_reciprocal(self, "mure")


def mure_model(config: MuRE) -> Model:
    """MuRE, squared Euclidean distances with a diagonal map of heads.

        score(h, r, t) = -|R h - (t + r)|^2 + b_h + b_t, with R diagonal

    Rows of relations are r, then R. Entities have one bias as the given entity and another as the answer:
    `head_bias` and `tail_bias`. Initial entities and r are normal with standard deviation 0.001, R uniform on
    +-1, and biases 0.

    References:
        Balazevic, Allen and Hospedales 2019, Multi-relational Poincare graph embeddings, equation 3.
    """

    def form(entity: Float[Array, "q d"], relation: Float[Array, "q d2"]) -> Float[Array, "q d"]:
        shift, scale = jnp.split(relation, 2, axis=-1)
        return scale * entity - shift

    return euclidean.biased_model("mure", config, "nu", form)


def _turned(
    entity: np.ndarray, head_bias: np.ndarray, tail_bias: np.ndarray, shift: np.ndarray, scale: np.ndarray
) -> dict[str, np.ndarray]:
    """Parameters from arrays of the score -|R h + r - t|^2 + b_h + b_t, which other libraries use."""
    return with_biases(entity, head_bias, tail_bias, -shift, scale)


KIND = Kind(
    "mure",
    MuRE,
    mure_model,
    "-|R h - t - r|^2 + b_h + b_t",
    "Balazevic et al. 2019",
    training=CLASSIFIED,
    presets={
        "fb15k-237": BALAZEVIC_FB15K237,
        "wn18rr": BALAZEVIC_WN18RR,
        "small": SMALL_CLASSIFIED | {"dim": 128},
    },
    peers={
        "pykeen": Peer("MuRE", of_pykeen(3, 2), joined=_turned, settings=(("p", 2), ("power_norm", True))),
        "kgemb": Peer(arrays=(*KGEMB, "rel_diag.weight"), joined=_turned),
    },
)
