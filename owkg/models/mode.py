"""ModE: relations stretch moduli; HAKE without its phases."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.models import initial, options
from owkg.models.kind import SAMPLED, SMALL_SAMPLED, SUN_FB15K237, SUN_WN18RR, Kind, Peer
from owkg.models.model import Model, Params, Statistics, entity_rows, sided, stateless
from owkg.models.similarity import minus_scaled


@dataclass(frozen=True)
class ModE:
    """Options of ModE.

    Attributes:
        dim: reals per entity and per relation.
        margin: gamma, the constant from which the distance is subtracted; above 0.
        reciprocal: whether heads are predicted through inverse relations.
    """

    dim: int = 500
    margin: float = 6.0
    reciprocal: bool = False

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim")
        options.positive(self, "margin")
        options.flags(self, "reciprocal")


def mode_model(config: ModE) -> Model:
    """ModE, distances of moduli.

        score(h, r, t) = margin - sum |h r - t|

    Initial entities and relations are uniform on +-(margin + 2) / dim.

    References:
        Zhang et al. 2020, Learning hierarchy-aware knowledge graph embeddings for link prediction, section 4.
    """
    law = partial(initial.uniform_within, half_width=initial.margin_range(config.margin, config.dim))

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        shapes = (num_entities, config.dim), (num_relations, config.dim)
        return initial.drawn_embeddings(jax.random.split(key), law, config, *shapes), {}

    def of_tails(head: Float[Array, "q d"], relation: Float[Array, "q d"]) -> Float[Array, "q d2"]:
        return jnp.concatenate([head * relation, jnp.ones_like(head)], axis=-1)

    def of_heads(tail: Float[Array, "q d"], relation: Float[Array, "q d"]) -> Float[Array, "q d2"]:
        return jnp.concatenate([tail, relation], axis=-1)

    return Model(
        "mode",
        config,
        init,
        sided(stateless(of_tails), stateless(of_heads), reciprocal=config.reciprocal),
        entity_rows,
        minus_scaled(config.margin, 1),
    )


KIND = Kind(
    "mode",
    ModE,
    mode_model,
    "margin - sum |h r - t|",
    "Zhang et al. 2020",
    training=SAMPLED,
    presets={
        "fb15k-237": SUN_FB15K237 | {"learning_rate": 1e-4},
        "wn18rr": SUN_WN18RR | {"learning_rate": 1e-4, "schedule": "constant"},
        "small": SMALL_SAMPLED,
    },
    peers={"hake": Peer()},
)
