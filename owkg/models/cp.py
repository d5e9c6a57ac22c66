"""CP: the canonical decomposition, with different embeddings of an entity as head and as tail."""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array

from owkg.models import initial, options
from owkg.models.kind import FACTORED, SMALL_FACTORED, Kind, Peer, of_pykeen
from owkg.models.model import Factors, Ids, Model, Params, Statistics, entity_rows, sided, stateless
from owkg.models.similarity import DOT


@dataclass(frozen=True)
class CP:
    """Options of CP.

    Attributes:
        dim: reals per entity as a head, per entity as a tail, and per relation.
        reciprocal: must be True, because heads are predicted through inverse relations.
        init_scale: standard deviation of initial parameters.
    """

    dim: int = 128
    reciprocal: bool = True
    init_scale: float = 1e-3

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim")
        options.only_reciprocal(self, "cp")
        options.positive(self, "init_scale")


def cp_model(config: CP) -> Model:
    """CP, the canonical polyadic decomposition.

        score(h, r, t) = sum_k h_k r_k t'_k

    The row of an entity holds its embedding in queries, and then its embedding as a candidate (with '). A
    penalty uses the halves that a fact uses. All parameters start normal.

    The presets are the presets of ComplEx by the same authors, who publish none for CP.

    References:
        Lacroix, Usunier and Obozinski 2018, Canonical tensor decomposition for knowledge base completion,
        equations 2 and 7.
    """

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        def law(key: Array, shape: tuple[int, int]) -> Array:
            return initial.normal(key, shape, config.init_scale)

        shapes = (num_entities, 2 * config.dim), (num_relations, config.dim)
        return initial.drawn_embeddings(jax.random.split(key), law, config, *shapes), {}

    def candidates(params: Params, entity: Ids | None = None) -> Array:
        return entity_rows(params, entity)[..., config.dim :]

    def factors(entity: Array, relation: Array, answer: Array) -> Factors:
        return ((entity[:, : config.dim], 1.0), (relation, 1.0), (answer[:, config.dim :], 1.0))

    return Model(
        "cp",
        config,
        init,
        sided(
            stateless(lambda entity, relation: entity[:, : config.dim] * relation),
            None,
            reciprocal=config.reciprocal,
        ),
        candidates,
        DOT,
        factors=factors,
    )


def _of_halves(head: np.ndarray, tail: np.ndarray, relation: np.ndarray) -> dict[str, np.ndarray]:
    """Parameters from arrays that other libraries store separately or as matrices."""
    head, tail, relation = (x.reshape(len(x), -1) for x in (head, tail, relation))
    return {"entity": np.hstack([head, tail]), "relation": relation}


KIND = Kind(
    "cp",
    CP,
    cp_model,
    "sum h r t'",
    "Lacroix et al. 2018",
    columns=2,
    training=FACTORED,
    presets={
        "fb15k-237": FACTORED | {"dim": 1000, "n3": 0.05, "epochs": 100},
        "wn18rr": FACTORED | {"dim": 500, "batch_size": 100, "n3": 0.1, "epochs": 100},
        "small": SMALL_FACTORED,
    },
    peers={
        "pykeen": Peer("CP", of_pykeen(2, 1), joined=_of_halves),
        "libkge": Peer(),
        "kbc": Peer(arrays=("lhs.weight", "rhs.weight", "rel.weight"), joined=_of_halves),
    },
)
