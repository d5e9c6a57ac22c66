"""RotH: relations shift, rotate and shift heads in hyperbolic space, with a curvature per relation."""

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
    with_biases,
)
from owkg.models.model import Model


@dataclass(frozen=True)
class RotH(euclidean.PairOptions):
    """Options of RotH; a relation has three times as many reals as an entity, plus one."""

    dim: int = 32


def roth_model(config: RotH) -> Model:
    """RotH, squared hyperbolic distances with rotated heads.

        score(h, r, t) = -d((R (exp0 h (+) exp0 r)) (+) exp0 r', exp0 t)^2 + b_h + b_t

    R is made of rotations. d is the distance, (+) the Moebius addition and exp0 the exponential map at the
    origin in the Poincare ball of curvature c = softplus(c_r) of the relation; all embeddings are tangent
    vectors at the origin. Rows of relations are r, r', the pairs of R, and the raw curvature. Initial
    entities, r and r' are normal with standard deviation 0.001, R uniform on +-1, biases 0, and raw
    curvatures 1.

    The presets are the authors' scripts. The script for WN18RR corrupts both ends of a fact at once, while
    owkg corrupts one.

    References:
        Chami et al. 2020, Low-dimensional hyperbolic knowledge graph embeddings, section 4.
    """

    def form(
        entity: Float[Array, "q d"], parts: list[Float[Array, "q d"]], c: Float[Array, "q 1"]
    ) -> Float[Array, "q d"]:
        first, second, rotation = parts
        head, before, after = (hyperbolic.of_origin(v, c) for v in (entity, first, second))
        shifted = hyperbolic.within(hyperbolic.added(head, before, c), c)
        return hyperbolic.added(euclidean.rotated(rotation, shifted), after, c)

    return hyperbolic.curved_model("roth", config, "nnu", form)


KIND = Kind(
    "roth",
    RotH,
    roth_model,
    "-d(R (h (+) r) (+) r', t)^2 + b_h + b_t, hyperbolic",
    "Chami et al. 2020",
    training=CLASSIFIED,
    presets={"fb15k-237": CHAMI_FB15K237, "wn18rr": CHAMI_WN18RR, "small": SMALL_CLASSIFIED | {"dim": 32}},
    peers={"kgemb": Peer(arrays=(*KGEMB, "rel_diag.weight", "c"), joined=with_biases)},
)
