"""RotatE: relations are rotations of complex numbers."""

import math
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.models import initial, options
from owkg.models.complex import multiplied
from owkg.models.kind import SAMPLED, SMALL_SAMPLED, SUN_FB15K237, SUN_WN18RR, Kind, Peer
from owkg.models.model import Model, Params, Statistics, entity_rows, sided, stateless
from owkg.models.similarity import minus_l2, minus_moduli


@dataclass(frozen=True)
class RotatE:
    """Options of RotatE.

    Attributes:
        dim: complex numbers per entity, as 2 dim reals, real parts first; a relation has dim reals.
        margin: gamma, the constant from which the distance is subtracted; above 0.
        reciprocal: whether heads are predicted through inverse relations.
        norm: norm of the complex difference. 1: the sum of its moduli, as in the authors' code; 2: its
            Euclidean length, as in PyKEEN.
    """

    dim: int = 500
    margin: float = 12.0
    reciprocal: bool = False
    norm: int = 1

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim")
        options.positive(self, "margin")
        options.flags(self, "reciprocal")
        options.one_of(self, "norm", 1, 2)


def rotate_model(config: RotatE) -> Model:
    """RotatE, distances after rotations in the complex plane.

        score(h, r, t) = margin - |h e^(i phase) - t|, with h, t in C^dim and the L1 or L2 norm of moduli

    phase = pi r / width and width = (margin + 2) / dim. The learned parameter is r, as in the authors' code,
    so that one learning rate suits all parameters. Queries for heads use margin - |h - t e^(-i phase)|. All
    parameters start uniform on +-width.

    References:
        Sun et al. 2019, RotatE: knowledge graph embedding by relational rotation in complex space,
        equations 2 and 5.
    """
    width = initial.margin_range(config.margin, config.dim)
    law, unit = partial(initial.uniform_within, half_width=width), math.pi / width

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        shapes = (num_entities, 2 * config.dim), (num_relations, config.dim)
        return initial.drawn_embeddings(jax.random.split(key), law, config, *shapes), {}

    def rotated(entity: Float[Array, "q d2"], relation: Float[Array, "q d"]) -> Float[Array, "q d2"]:
        return multiplied(entity, circle(relation * unit))

    return Model(
        "rotate",
        config,
        init,
        sided(
            stateless(rotated),
            stateless(lambda tail, relation: rotated(tail, -relation)),
            reciprocal=config.reciprocal,
        ),
        entity_rows,
        # The L2 norm of all real and imaginary parts equals the L2 norm of the moduli.
        (minus_moduli if config.norm == 1 else minus_l2)(config.margin),
        complex_params=("entity",),
        phase_unit=unit,
    )


def circle(angle: Float[Array, "*rows d"]) -> Float[Array, "*rows d2"]:
    """Cosines, then sines, of angles: e^(i angle)."""
    return jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], axis=-1)


KIND = Kind(
    "rotate",
    RotatE,
    rotate_model,
    "margin - |h e^(i r) - t|, complex, L1 or L2",
    "Sun et al. 2019",
    columns=2,
    training=SAMPLED,
    presets={"fb15k-237": SUN_FB15K237, "wn18rr": SUN_WN18RR, "small": SMALL_SAMPLED},
    peers={
        "pykeen": Peer("RotatE", layout="interleaved", relation_layout="complex", norm=2),
        "pyg": Peer(
            arrays=("node_emb.weight", "node_emb_im.weight", "rel_emb.weight"),
            relation_layout="phases",
            norm=2,
        ),
        "openke": Peer(layout="real-imaginary", relation_layout="scaled"),
        "libkge": Peer(layout="real-imaginary", relation_layout="phases"),
        "dglke": Peer(layout="real-imaginary", relation_layout="scaled"),
    },
)
