"""RefH: relations reflect and shift heads in hyperbolic space, with a curvature per relation."""

from dataclasses import dataclass

from jaxtyping import Array, Float

from owkg.models import euclidean, hyperbolic
from owkg.models.kind import (
    CHAMI_FB15K237,
    CHAMI_WN18RR,
    CLASSIFIED,
    KGEMB,
    SMALL_CLASSIFIED,
    Kind,
    Peer,
    of_first_half,
)
from owkg.models.model import Model


@dataclass(frozen=True)
class RefH(euclidean.PairOptions):
    """Options of RefH; a relation has twice as many reals as an entity, plus one."""

    dim: int = 32


def refh_model(config: RefH) -> Model:
    """RefH, squared hyperbolic distances with reflected heads.

        score(h, r, t) = -d(exp0(R h) (+) exp0 r, exp0 t)^2 + b_h + b_t, with R made of reflections

    d is the distance, (+) the Moebius addition and exp0 the exponential map at the origin in the Poincare
    ball of curvature c = softplus(c_r) of the relation; all embeddings are tangent vectors at the origin.
    Rows of relations are r, the pairs of R, and the raw curvature. Initial entities and r are normal with
    standard deviation 0.001, R uniform on +-1, biases 0, and raw curvatures 1.

    The presets are the presets of RotH, because the authors publish none for this model.

    References:
        Chami et al. 2020, Low-dimensional hyperbolic knowledge graph embeddings, section 4.
    """

    def form(
        entity: Float[Array, "q d"], parts: list[Float[Array, "q d"]], c: Float[Array, "q 1"]
    ) -> Float[Array, "q d"]:
        shift, reflection = parts
        head = hyperbolic.of_origin(euclidean.reflected(reflection, entity), c)
        return hyperbolic.within(hyperbolic.added(head, hyperbolic.of_origin(shift, c), c), c)

    return hyperbolic.curved_model("refh", config, "nu", form)


KIND = Kind(
    "refh",
    RefH,
    refh_model,
    "-d(R h (+) r, t)^2 + b_h + b_t, hyperbolic",
    "Chami et al. 2020",
    training=CLASSIFIED,
    presets={"fb15k-237": CHAMI_FB15K237, "wn18rr": CHAMI_WN18RR, "small": SMALL_CLASSIFIED | {"dim": 32}},
    peers={"kgemb": Peer(arrays=(*KGEMB, "rel_diag.weight", "c"), joined=of_first_half)},
)
