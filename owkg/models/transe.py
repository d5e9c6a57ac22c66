"""TransE: relations are translations."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array

from owkg.models import initial, options
from owkg.models.kind import SAMPLED, SMALL_CLASSIFIED, SUN_FB15K237, SUN_WN18RR, Kind, Peer
from owkg.models.model import Model, Params, Statistics, entity_rows, sided, stateless
from owkg.models.similarity import minus_l1, minus_l2


@dataclass(frozen=True)
class TransE:
    """Options of TransE.

    Attributes:
        dim: reals per entity and per relation.
        norm: norm of the distance, 1 or 2.
        reciprocal: whether heads are predicted through inverse relations.
        margin: gamma, the constant from which the distance is subtracted; 0 in the paper.
    """

    dim: int = 128
    norm: int = 1
    reciprocal: bool = False
    margin: float = 0.0

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim")
        options.one_of(self, "norm", 1, 2)
        options.flags(self, "reciprocal")
        options.nonnegative(self, "margin")


def transe_model(config: TransE) -> Model:
    """TransE, distances after translations.

        score(h, r, t) = margin - |h + r - t|, with the L1 or L2 norm

    Queries for heads use margin - |h - (t - r)|. Initial entities and relations are uniform on +-6 /
    sqrt(dim), and relations are then scaled to length 1, as in the paper. With a margin, all are uniform on
    +-(margin + 2) / dim, as in Sun et al. 2019.

    References:
        Bordes et al. 2013, Translating embeddings for modeling multi-relational data, section 2.
    """

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        width = initial.margin_range(config.margin, config.dim) if config.margin else 6 / config.dim**0.5
        law = partial(initial.uniform_within, half_width=width)
        shapes = (num_entities, config.dim), (num_relations, config.dim)
        params = initial.drawn_embeddings(jax.random.split(key), law, config, *shapes)
        if not config.margin:
            params["relation"] /= jnp.linalg.norm(params["relation"], axis=-1, keepdims=True)
        return params, {}

    return Model(
        "transe",
        config,
        init,
        sided(stateless(jnp.add), stateless(jnp.subtract), reciprocal=config.reciprocal),
        entity_rows,
        (minus_l1 if config.norm == 1 else minus_l2)(config.margin),
    )


KIND = Kind(
    "transe",
    TransE,
    transe_model,
    "margin - |h + r - t|, L1 or L2",
    "Bordes et al. 2013",
    training=SAMPLED | {"margin": 9.0},
    presets={"fb15k-237": SUN_FB15K237, "wn18rr": SUN_WN18RR, "small": SMALL_CLASSIFIED},
    peers={
        "pykeen": Peer("TransE", norm=0),
        "pyg": Peer(unit=(("entity",), 0)),
        "torchkge": Peer(norm=2),
        "openke": Peer(unit=(("entity", "relation"), 2)),
        "dglke": Peer(norm=2),
        "libkge": Peer(),
    },
)
