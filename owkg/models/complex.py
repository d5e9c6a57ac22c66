"""ComplEx: a diagonal bilinear form over complex numbers."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.models import initial, options
from owkg.models.kind import FACTORED, SMALL_FACTORED, Kind, Peer
from owkg.models.model import Model, Params, Statistics, entity_rows, sided, stateless
from owkg.models.similarity import DOT


@dataclass(frozen=True)
class ComplEx:
    """Options of ComplEx.

    Attributes:
        dim: complex numbers per entity and per relation, as 2 dim reals, real parts first.
        reciprocal: whether heads are predicted through inverse relations.
        init_law: distribution of initial parameters, "normal" (Lacroix et al. 2018) or "uniform" (Sun et al.
            2019).
        init_scale: standard deviation, or half-width, of this distribution; (margin + 2) / dim in Sun et al.
    """

    dim: int = 128
    reciprocal: bool = True
    init_law: str = "normal"
    init_scale: float = 1e-3

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim")
        options.flags(self, "reciprocal")
        options.one_of(self, "init_law", "normal", "uniform")
        options.positive(self, "init_scale")


def complex_model(config: ComplEx) -> Model:
    """ComplEx, a diagonal bilinear model over complex numbers.

        score(h, r, t) = Re sum_k h_k r_k conj(t_k), with h, r, t in C^dim

    For heads, the score is computed as Re sum_k h_k conj(conj(r_k) t_k).

    References:
        Trouillon et al. 2016, Complex embeddings for simple link prediction, equation 11; reciprocal
        relations and initialisation: Lacroix et al. 2018, Canonical tensor decomposition for knowledge
        base completion.
    """

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        def law(key: Array, shape: tuple[int, int]) -> Array:
            drawn = initial.normal if config.init_law == "normal" else initial.uniform_within
            return drawn(key, shape, config.init_scale)

        shapes = (num_entities, 2 * config.dim), (num_relations, 2 * config.dim)
        return initial.drawn_embeddings(jax.random.split(key), law, config, *shapes), {}

    return Model(
        "complex",
        config,
        init,
        sided(
            stateless(multiplied),
            stateless(lambda tail, relation: multiplied(tail, conjugated(relation))),
            reciprocal=config.reciprocal,
        ),
        entity_rows,
        DOT,
        complex_params=("entity", "relation"),
    )


def multiplied(a: Float[Array, "q d"], b: Float[Array, "q d"]) -> Float[Array, "q d"]:
    """Elementwise products of complex vectors; rows hold real parts, then imaginary parts."""
    (a_re, a_im), (b_re, b_im) = jnp.split(a, 2, axis=-1), jnp.split(b, 2, axis=-1)
    return jnp.concatenate([a_re * b_re - a_im * b_im, a_re * b_im + a_im * b_re], axis=-1)


def conjugated(a: Float[Array, "q d"]) -> Float[Array, "q d"]:
    """Complex conjugates; rows hold real parts, then imaginary parts."""
    real, imaginary = jnp.split(a, 2, axis=-1)
    return jnp.concatenate([real, -imaginary], axis=-1)


KIND = Kind(
    "complex",
    ComplEx,
    complex_model,
    "Re sum h r conj(t), complex",
    "Trouillon et al. 2016",
    columns=2,
    training=FACTORED,
    presets={
        "fb15k-237": FACTORED | {"dim": 1000, "n3": 0.05, "epochs": 100},
        "wn18rr": FACTORED | {"dim": 500, "batch_size": 100, "n3": 0.1, "epochs": 100},
        "small": SMALL_FACTORED | {"dim": 256, "batch_size": 1000},
    },
    peers={
        "pykeen": Peer("ComplEx", layout="interleaved"),
        "pyg": Peer(arrays=("node_emb.weight", "node_emb_im.weight", "rel_emb.weight", "rel_emb_im.weight")),
        "torchkge": Peer(
            arrays=("re_ent_emb.weight", "im_ent_emb.weight", "re_rel_emb.weight", "im_rel_emb.weight")
        ),
        "openke": Peer(
            arrays=(
                "ent_re_embeddings.weight",
                "ent_im_embeddings.weight",
                "rel_re_embeddings.weight",
                "rel_im_embeddings.weight",
            )
        ),
        "libkge": Peer(layout="real-imaginary"),
        "dglke": Peer(layout="real-imaginary"),
        "kbc": Peer(layout="real-imaginary"),
    },
)
