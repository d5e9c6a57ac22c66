"""HAKE: relations rotate phases and stretch moduli."""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from owkg.models import initial, options
from owkg.models.kind import SAMPLED, SMALL_SAMPLED, SUN_FB15K237, SUN_WN18RR, Kind, Peer
from owkg.models.model import Form, Ids, Model, Params, Statistics, entity_rows, sided
from owkg.models.rotate import circle
from owkg.models.similarity import beside, minus_scaled, minus_sines


@dataclass(frozen=True)
class HAKE:
    """Options of HAKE.

    Attributes:
        dim: phases per entity, and as many moduli; a relation also has as many biases.
        margin: gamma, the constant from which the distance is subtracted; above 0.
        modulus_weight: initial weight of the moduli.
        phase_weight: initial weight of the phases, in units of the half-width of the uniform distribution.
        reciprocal: whether heads are predicted through inverse relations.
    """

    dim: int = 500
    margin: float = 6.0
    modulus_weight: float = 0.5
    phase_weight: float = 0.5
    reciprocal: bool = False

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim")
        options.positive(self, "margin", "modulus_weight", "phase_weight")
        options.flags(self, "reciprocal")


def hake_model(config: HAKE) -> Model:
    """HAKE, distances of phases and of moduli.

        score(h, r, t) = margin - p sum |sin((h_p + r_p - t_p) / 2)| - m |h_m (|r_m| + b) - t_m (1 - b)|_2

    h_p are phases, h_m moduli, and b biases of the relation, clipped to [-|r_m|, 1]. The weights p and m are
    learned (`phase_weight`, `modulus_weight`). A phase is pi x / width, where x is the learned number and
    width = (margin + 2) / dim. Rows of entities are phases, then moduli; rows of relations are phases,
    moduli, biases. All embeddings start uniform on +-width, except that the moduli of relations start at 1
    and the biases at 0.

    References:
        Zhang et al. 2020, Learning hierarchy-aware knowledge graph embeddings for link prediction, equation
        7, and the authors' code for the biases.
    """
    width = initial.margin_range(config.margin, config.dim)
    half_turn = math.pi / width / 2

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        entity_key, relation_key = jax.random.split(key)
        rows = num_relations * (2 if config.reciprocal else 1)
        phases = initial.uniform_within(relation_key, (rows, config.dim), width)
        moduli = jnp.ones((rows, config.dim), jnp.float32)
        return {
            "entity": initial.uniform_within(entity_key, (num_entities, 2 * config.dim), width),
            "relation": jnp.concatenate([phases, moduli, jnp.zeros_like(moduli)], axis=-1),
            "phase_weight": jnp.full(1, config.phase_weight * width, jnp.float32),
            "modulus_weight": jnp.full(1, config.modulus_weight, jnp.float32),
        }, {}

    def form(sign: int) -> Form:
        def asked(
            params: Params,
            statistics: Statistics,
            entity: Float[Array, "q d2"],
            relation: Float[Array, "q d3"],
            key: Array | None,
        ) -> tuple[Float[Array, "q d4"], Statistics]:
            phase, modulus = jnp.split(entity, 2, axis=-1)
            turn, stretch, bias = jnp.split(relation, 3, axis=-1)
            stretch = jnp.abs(stretch)
            bias = jnp.clip(bias, -stretch, 1)
            sides = (stretch + bias, 1 - bias) if sign > 0 else (1 - bias, stretch + bias)
            turned = params["phase_weight"] * circle(half_turn * (phase + sign * turn))
            moduli = (params["modulus_weight"] * x for x in (modulus * sides[0], sides[1]))
            return jnp.concatenate([turned, *moduli], axis=-1), statistics

        return asked

    def candidates(params: Params, entity: Ids | None = None) -> Array:
        phase, modulus = jnp.split(entity_rows(params, entity), 2, axis=-1)
        return jnp.concatenate([circle(half_turn * phase), modulus], axis=-1)

    columns = 2 * config.dim, 2 * config.dim
    return Model(
        "hake",
        config,
        init,
        sided(form(1), form(-1), reciprocal=config.reciprocal),
        candidates,
        beside(minus_sines(config.margin), minus_scaled(0.0, 2), columns),
    )


def _weighted(
    entity: np.ndarray, relation: np.ndarray, phase_weight: np.ndarray, modulus_weight: np.ndarray
) -> dict[str, np.ndarray]:
    weights = {"phase_weight": phase_weight.reshape(-1), "modulus_weight": modulus_weight.reshape(-1)}
    return {"entity": entity, "relation": relation, **weights}


KIND = Kind(
    "hake",
    HAKE,
    hake_model,
    "margin - p sum |sin((h + r - t) / 2)| - m |h (|r| + b) - t (1 - b)|",
    "Zhang et al. 2020",
    columns=2,
    training=SAMPLED,
    presets={
        "fb15k-237": SUN_FB15K237 | {"modulus_weight": 3.5, "phase_weight": 1.0},
        "wn18rr": SUN_WN18RR | {"modulus_weight": 0.5, "phase_weight": 0.5},
        "small": SMALL_SAMPLED,
    },
    peers={
        "hake": Peer(
            arrays=("entity_embedding", "relation_embedding", "phase_weight", "modulus_weight"),
            relation_layout="scaled",
            joined=_weighted,
        )
    },
)
