"""HolE: circular correlations of heads and tails."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.models import initial, options
from owkg.models.kind import FACTORED, SAMPLED, SMALL_FACTORED, Kind, Peer
from owkg.models.model import Model, Params, Statistics, entity_rows, sided, stateless
from owkg.models.similarity import DOT


@dataclass(frozen=True)
class HolE:
    """Options of HolE.

    Attributes:
        dim: reals per entity and per relation.
        reciprocal: whether heads are predicted through inverse relations.
        bounded: whether entities have length at most 1, as in the paper; this bounds the scores, so it suits
            only margin losses.
    """

    dim: int = 150
    reciprocal: bool = False
    bounded: bool = False

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim")
        options.flags(self, "reciprocal", "bounded")


def hole_model(config: HolE) -> Model:
    """HolE, a circular correlation of head and tail.

        score(h, r, t) = sum_k r_k sum_i h_i t_(k + i mod dim)

    The score is computed by Fourier transforms F: the query for tails is F^-1(F h F r), the query for heads
    F^-1(conj(F r) F t). ComplEx with dim / 2 numbers is the same model up to a transform of its parameters
    (Hayashi and Shimbo 2017). Initial entities and relations are uniform with the variance of Glorot and
    Bengio 2010.

    The presets come from AmpliGraph, whose HolE is ComplEx divided by dim / 4. The preset for FB15k-237 uses
    all entities instead of 50 negatives and no L2 penalty on all rows; the preset for WN18RR has no margin.
    The authors' own recipe, for other graphs, ranks pairs by sigmoids of scores, which no loss in owkg does.

    References:
        Nickel, Rosasco and Poggio 2016, Holographic embeddings of knowledge graphs, equations 3 and 12.
    """

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        shapes = (num_entities, config.dim), (num_relations, config.dim)
        return initial.drawn_embeddings(jax.random.split(key), initial.xavier_uniform, config, *shapes), {}

    return Model(
        "hole",
        config,
        init,
        sided(stateless(convolved), stateless(correlated), reciprocal=config.reciprocal),
        entity_rows,
        DOT,
        retract=in_unit_ball if config.bounded else None,
    )


def in_unit_ball(params: Params) -> Params:
    """Parameters with entities scaled to length at most 1."""
    if "entity" not in params:
        return params
    square = jnp.sum(jnp.square(params["entity"]), axis=-1, keepdims=True)
    return params | {"entity": params["entity"] * jax.lax.rsqrt(jnp.maximum(square, 1))}


def convolved(a: Float[Array, "q d"], b: Float[Array, "q d"]) -> Float[Array, "q d"]:
    """Circular convolutions, sum_i a_i b_(k - i)."""
    return _of_transforms(jnp.multiply, a, b)


def correlated(a: Float[Array, "q d"], b: Float[Array, "q d"]) -> Float[Array, "q d"]:
    """Circular correlations, sum_i b_i a_(i + k)."""
    return _of_transforms(lambda x, y: x * jnp.conj(y), a, b)


def _of_transforms(product, a: Array, b: Array) -> Array:
    wide = jnp.result_type(a, jnp.float32)
    both = (jnp.fft.rfft(x.astype(wide)) for x in (a, b))
    return jnp.fft.irfft(product(*both), n=a.shape[-1]).astype(a.dtype)


KIND = Kind(
    "hole",
    HolE,
    hole_model,
    "r (h * t), circular correlation",
    "Nickel et al. 2016",
    training=FACTORED | {"n3": 0.0},
    presets={
        "fb15k-237": {
            "training_loop": "1vsall",
            "loss": "cross_entropy",
            "dim": 700,
            "optimiser": "adam",
            "learning_rate": 1e-4,
            "batch_size": 8504,
            "epochs": 4000,
        },
        "wn18rr": SAMPLED
        | {
            "dim": 400,
            "temperature": 0.5,
            "num_negatives": 20,
            "subsampling": False,
            "learning_rate": 5e-4,
            "batch_size": 3474,
            "epochs": 4000,
        },
        "small": SMALL_FACTORED | {"n3": 0.0},
    },
    peers={"pykeen": Peer("HolE")},
)
