"""AttH: a relation weighs a rotated and a reflected head in a hyperbolic space of its own curvature."""

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
class AttH(euclidean.PairOptions):
    """Options of AttH; a relation has four times as many reals as an entity, plus one."""

    dim: int = 32


def atth_model(config: AttH) -> Model:
    """AttH, an attention over rotations and reflections in hyperbolic space.

        score(h, r, t) = -d(exp0(w R h + (1 - w) S h) (+) exp0 r, exp0 t)^2 + b_h + b_t

    R, S and w are as in AttE. d is the distance, (+) the Moebius addition and exp0 the exponential map at the
    origin in the Poincare ball of curvature c = softplus(c_r) of the relation; all embeddings are tangent
    vectors at the origin. Rows of relations are r, the pairs of R, the pairs of S, the context, and the raw
    curvature. Initial entities, r and contexts are normal with standard deviation 0.001, R and S uniform on
    +-1, biases 0, and raw curvatures 1.

    The presets are the presets of RotH, because the authors publish none for this model.

    References:
        Chami et al. 2020, Low-dimensional hyperbolic knowledge graph embeddings, section 4.
    """

    def form(
        entity: Float[Array, "q d"], parts: list[Float[Array, "q d"]], c: Float[Array, "q 1"]
    ) -> Float[Array, "q d"]:
        shift, rotation, reflection, context = parts
        both = euclidean.rotated(rotation, entity), euclidean.reflected(reflection, entity)
        head = hyperbolic.of_origin(euclidean.attended(*both, context), c)
        return hyperbolic.within(hyperbolic.added(head, hyperbolic.of_origin(shift, c), c), c)

    return hyperbolic.curved_model("atth", config, "nuun", form)


KIND = Kind(
    "atth",
    AttH,
    atth_model,
    "-d((w R h + (1 - w) S h) (+) r, t)^2 + b_h + b_t, hyperbolic",
    "Chami et al. 2020",
    training=CLASSIFIED,
    presets={"fb15k-237": CHAMI_FB15K237, "wn18rr": CHAMI_WN18RR, "small": SMALL_CLASSIFIED | {"dim": 32}},
    peers={
        "kgemb": Peer(arrays=(*KGEMB, "rel_diag.weight", "context_vec.weight", "c"), joined=of_first_half)
    },
)
