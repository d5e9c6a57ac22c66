"""pRotatE: RotatE with entities that are phases only."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array

from owkg.models import initial, options
from owkg.models.kind import SAMPLED, SMALL_SAMPLED, SUN_FB15K237, SUN_WN18RR, Kind
from owkg.models.model import Form, Ids, Model, Params, Statistics, entity_rows, sided
from owkg.models.rotate import circle
from owkg.models.similarity import minus_sines


@dataclass(frozen=True)
class PRotatE:
    """Options of pRotatE.

    Attributes:
        dim: phases per entity and per relation.
        margin: gamma, the constant from which the distance is subtracted; above 0.
        half_angle: whether to take the sine of half the angle, as in the paper. False: the sine of the angle,
            as in the authors' code and published results.
        reciprocal: whether heads are predicted through inverse relations.
    """

    dim: int = 500
    margin: float = 12.0
    half_angle: bool = False
    reciprocal: bool = False

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim")
        options.positive(self, "margin")
        options.flags(self, "half_angle", "reciprocal")


def protate_model(config: PRotatE) -> Model:
    """pRotatE, distances of phases.

        score(h, r, t) = margin - |modulus| sum_k |sin(phase of h + phase of r - phase of t)|

    phase = pi x / width, or half of this with `half_angle`; width = (margin + 2) / dim. The paper's 2 C
    |sin(angle / 2)| corresponds to modulus = 2 C with `half_angle`. Queries for heads use phase of h - (phase
    of t - phase of r). Initial entities and relations are uniform on +-width; `modulus`, one learned number
    [1], starts at width / 2.

    References:
        Sun et al. 2019, RotatE: knowledge graph embedding by relational rotation in complex space,
        section 4.2 (pRotatE).
    """
    width = initial.margin_range(config.margin, config.dim)
    unit = jnp.pi / width / (2 if config.half_angle else 1)

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        law = partial(initial.uniform_within, half_width=width)
        shapes = (num_entities, config.dim), (num_relations, config.dim)
        params = initial.drawn_embeddings(jax.random.split(key), law, config, *shapes)
        return params | {"modulus": jnp.full(1, width / 2, jnp.float32)}, {}

    def form(sign: int) -> Form:
        return lambda params, statistics, entity, relation, key: (
            params["modulus"] * circle(unit * (entity + sign * relation)),
            statistics,
        )

    def candidates(params: Params, entity: Ids | None = None) -> Array:
        return circle(unit * entity_rows(params, entity))

    return Model(
        "protate",
        config,
        init,
        sided(form(1), form(-1), reciprocal=config.reciprocal),
        candidates,
        minus_sines(config.margin),
    )


KIND = Kind(
    "protate",
    PRotatE,
    protate_model,
    "margin - |modulus| sum |sin(h + r - t)|",
    "Sun et al. 2019",
    training=SAMPLED,
    presets={"fb15k-237": SUN_FB15K237, "wn18rr": SUN_WN18RR, "small": SMALL_SAMPLED},
)
