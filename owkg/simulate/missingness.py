"""Missing facts of a full test set, drawn for many sparse test sets at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key
from scipy import special

from owkg import checks
from owkg.errors import ArgumentError
from owkg.openworld import Independent, NodeBased, PopularityBased, RelationBased
from owkg.openworld.missing import node_location
from owkg.simulate.full_test import FullTest, score_order
from owkg.simulate.numerics import prefix_counts, random_bits, unit_uniform


@dataclass(frozen=True, eq=False)
class Correlated:
    """Model in which the answers that a predictor ranks worst are missing.

    Yang et al. (2022) let a model choose the missing facts (section 6.2, as in their released code). For a
    query with n answers, the min(Binomial(n, sparsity), n - 1) answers with the smallest scores are missing;
    among equal scores, the later answers. Every query keeps at least one answer.

    Attributes:
        score: the model's score of each answer, larger is better, [answers].
    """

    score: Any

    def __post_init__(self) -> None:
        score = checks.real("score", self.score, -np.inf, np.inf)
        if score.ndim != 1:
            raise ArgumentError(
                "score", f"must have one axis (answers), got an array of shape {score.shape}."
            )
        object.__setattr__(self, "score", score)


_OfFacts = Independent | NodeBased | RelationBased | PopularityBased
ThinningModel = _OfFacts | Correlated


class Missingness(NamedTuple):
    """Draw of missing facts.

    `draw(key, size, draws, *parameters)` is whether each source is missing, [sources, draws].

    Attributes:
        draw: one of the functions below; static.
        size: size of the draw; static.
        parameters: arrays of parameters.
        source: source that decides whether each answer is missing, [answers].
    """

    draw: Callable
    size: int
    parameters: tuple
    source: np.ndarray


def missingness(full: FullTest, missing: ThinningModel, sparsity: float) -> Missingness:
    """`Missingness` of a full test set under a model and a sparsity.

    Raises:
        ValueError: if `missing` is not such a model, or `full` lacks the facts or the popularity that it
            needs.
    """
    answers = len(full.query)
    if isinstance(missing, Correlated):
        return _correlated(full, missing, sparsity)
    if not isinstance(missing, _OfFacts):
        raise ArgumentError(
            "missing",
            f"must be Independent, NodeBased, RelationBased, PopularityBased or Correlated, got {missing!r}.",
        )
    if full.fact is None:
        if not isinstance(missing, Independent):
            raise ArgumentError("full", f"must have a fact for each answer under {missing!r}, got None.")
        return Missingness(_with_chances, answers, (np.float32(sparsity),), np.arange(answers))
    facts, source = np.unique(full.fact, axis=0, return_inverse=True)
    source = source.reshape(-1)
    if isinstance(missing, Independent) or sparsity == 0:
        return Missingness(_with_chances, len(facts), (np.float32(sparsity),), source)
    if isinstance(missing, PopularityBased):
        chances = _popularity_chances(full, facts, missing, sparsity).astype(np.float32)
        return Missingness(_with_chances, len(facts), (chances[:, None],), source)
    spread = np.float32(missing.spread)
    if isinstance(missing, NodeBased):
        entities, ends = np.unique(facts[:, [0, 2]], return_inverse=True)
        ends = ends.reshape(-1, 2).astype(np.int32)
        location = np.float32(node_location(np.asarray(sparsity), missing.spread))
        return Missingness(_by_groups, len(entities), (ends, location, spread), source)
    relations, relation = np.unique(facts[:, 1], return_inverse=True)
    # The function is meant for two ends, each with the root of the fact's survival; here there is one end.
    location = np.float32(node_location(np.asarray(sparsity * (2 - sparsity)), missing.spread))
    groups = relation.reshape(-1, 1).astype(np.int32)
    return Missingness(_by_groups, len(relations), (groups, location, spread), source)


def _popularity_chances(
    full: FullTest, facts: np.ndarray, missing: PopularityBased, sparsity: float
) -> np.ndarray:
    """P(missing) of facts with survival odds proportional to (popularity of head * of tail) ** exponent."""
    if full.popularity is None:
        raise ArgumentError("full", f"must have the popularity of entities under {missing!r}, got None.")
    log = np.log(np.maximum(full.popularity, 1))
    slope = -missing.exponent * log[facts[:, [0, 2]]].sum(1)
    reach = 750  # beyond it, expit is 0 or 1
    from scipy import optimize  # slow to import; few need it

    found = optimize.root_scalar(
        lambda x: special.expit(x + slope).mean() - sparsity,
        method="toms748",
        bracket=(-reach - slope.max(), reach - slope.min()),
    )
    return special.expit(found.root + slope)


def _correlated(full: FullTest, missing: Correlated, sparsity: float) -> Missingness:
    if missing.score.shape != full.query.shape:
        raise ArgumentError(
            "missing", f"must score each of {len(full.query)} answers, got {len(missing.score)} scores."
        )
    order = score_order(full.query, missing.score)
    begin = np.flatnonzero(order.begin == np.arange(len(order.begin)))
    bounds = np.append(begin, len(order.begin)).astype(np.int32)
    row = np.empty(len(order.answer), np.int64)
    row[order.answer] = np.arange(len(row))
    return Missingness(_worst, len(row), (np.float32(sparsity), bounds), row)


def _uniform(key: Key[Array, ""], size: int, draws: int) -> Float[Array, "size draws"]:
    return unit_uniform(random_bits(key, size * draws)).reshape(size, draws)


def _with_chances(
    key: Key[Array, ""], size: int, draws: int, chances: Float[Array, "..."]
) -> Bool[Array, "size draws"]:
    """Independent facts that are missing with the probability `chances`, one number or [facts, 1]."""
    return _uniform(key, size, draws) < chances


def _by_groups(
    key: Key[Array, ""],
    size: int,
    draws: int,
    groups: Int[Array, "facts ends"],
    location: Float[Array, ""],
    spread: Float[Array, ""],
) -> Bool[Array, "facts draws"]:
    """Facts that survive with the product of their groups' probabilities, drawn anew in every draw."""
    of_groups, of_facts = jax.random.split(key)
    normal = jax.random.normal(of_groups, (size, draws), jnp.float32)
    survival = jnp.clip(location + spread * normal, 0, 1)
    chance = survival[groups[:, 0]]
    for end in range(1, groups.shape[1]):
        chance = chance * survival[groups[:, end]]
    return _uniform(of_facts, groups.shape[0], draws) >= chance


def _worst(
    key: Key[Array, ""],
    size: int,
    draws: int,
    sparsity: Float[Array, ""],
    bounds: Int[Array, "queries_plus_1"],
) -> Bool[Array, "size draws"]:
    """Last min(Binomial(n, sparsity), n - 1) of the n rows of each query."""
    failed = prefix_counts(_uniform(key, size, draws) < sparsity, jnp.int32)
    answers = jnp.diff(bounds)[:, None]
    missing = jnp.minimum(failed[bounds[1:]] - failed[bounds[:-1]], answers - 1)
    keep_to = bounds[1:, None] - missing
    row = jnp.arange(size, dtype=jnp.int32)
    query = jnp.searchsorted(bounds, row, side="right") - 1
    return row[:, None] >= keep_to[query]
