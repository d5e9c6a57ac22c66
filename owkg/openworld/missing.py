"""Missing-fact models, each one frozen dataclass of its parameters.

In the three models of `MissingModel`, an answer is missing with probability `sparsity`, taken over the
model's own randomness. The models differ in how the answers of one query depend on each other. In all three,
the setting's correlation ties "predicted positive" to "missing". `RelationBased` is not among the three,
because it needs facts with relations.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import special

from owkg import checks


def _check(model: "NodeBased | PopularityBased | RelationBased", name: str, low: float, high: float) -> None:
    """Requires a parameter in [low, high] and stores it as a plain, hashable number."""
    object.__setattr__(model, name, checks.real_number(name, getattr(model, name), low, high))


@dataclass(frozen=True)
class Independent:
    """Model in which every answer is missing with probability beta, independently (Yang et al., 2022)."""


@dataclass(frozen=True)
class NodeBased:
    """Model in which a fact survives with the product of its two entities' probabilities.

    Each entity's probability is N(mu, spread) cut to [0, 1], as in the code of Yang et al. (2022). The
    published generator takes mu = sqrt(d), and the cut then shifts the mean away from sqrt(d). owkg chooses
    mu so that the mean after the cut is exactly sqrt(alpha); a fact therefore survives with probability
    alpha. All answers share the query entity, so the number of missing answers is over-dispersed.

    Attributes:
        spread: standard deviation before the cut, in [1e-6, 10]. Default 0.2, as published.
    """

    spread: float = 0.2

    def __post_init__(self) -> None:
        _check(self, "spread", 1e-6, 10)


@dataclass(frozen=True)
class PopularityBased:
    """Model in which the odds that a query's j-th most popular answer is missing grow like j ** exponent.

    It describes graphs in which facts about popular entities are recorded first. The scale of the odds is
    chosen so that the mean over the N answers is exactly beta.

    Attributes:
        exponent: exponent in [-100, 100]. 0 equals `Independent`; with 1, the odds are inversely proportional
            to a Zipf popularity 1/j. Default 1.
    """

    exponent: float = 1.0

    def __post_init__(self) -> None:
        _check(self, "exponent", -100, 100)


@dataclass(frozen=True)
class RelationBased:
    """Model in which a fact survives with its relation's probability, N(mu, spread) cut to [0, 1].

    Attributes:
        spread: standard deviation before the cut, in [1e-6, 10]. Default 0.2.
    """

    spread: float = 0.2

    def __post_init__(self) -> None:
        _check(self, "spread", 1e-6, 10)


INDEPENDENT = Independent()

MissingModel = Independent | NodeBased | PopularityBased


def _root(gap: Callable, reach: float, sparsity: np.ndarray, *more: np.ndarray) -> np.ndarray:
    """Root of the increasing function `gap(x, sparsity, *more)` in |x| <= reach."""
    from scipy.optimize import elementwise  # slow to import; few need it

    found = elementwise.find_root(gap, (-reach, reach), args=(np.asarray(sparsity), *more))
    # The sparsity may be so close to 0 or 1 that float64 has no parameter for it.
    solvable = "far enough from 0 and 1 for the missing-fact model to have a parameter"
    checks.require("sparsity", np.broadcast_to(sparsity, np.shape(found.x)), found.success, solvable)
    return np.asarray(found.x)


def node_location(sparsity: np.ndarray, spread: float) -> np.ndarray:
    """mu for which N(mu, spread) cut to [0, 1] has mean sqrt(1 - sparsity).

    With G(z) = E[max(Z - z, 0)], Z standard normal, the cut variable has mean
    spread (G(-mu/spread) - G((1-mu)/spread)), increasing in mu. The result has the shape of `sparsity`.
    """

    def excess(z: Float[np.ndarray, "..."] | np.floating) -> Any:
        return np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) - z * special.ndtr(-z)

    def gap(mu: Float[np.ndarray, "..."], beta: Float[np.ndarray, "..."]) -> Any:
        return spread * (excess(-mu / spread) - excess((1 - mu) / spread)) - np.sqrt(1 - beta)

    return _root(gap, 40 * spread + 1, sparsity)


def popularity_probabilities(
    sparsity: np.ndarray, num_answers: np.ndarray, exponent: float, size: int
) -> np.ndarray:
    """P(missing) of each answer, most popular first, `[*grid, size]`; its mean over the first N is beta.

    Args:
        sparsity: beta, shape `[*grid]`.
        num_answers: N, shape `[*grid]`.
        exponent: exponent of `PopularityBased`.
        size: length of the answer axis. Entries from N on are 1 (never in the test set).
    """
    slope = exponent * np.log(np.arange(1, size + 1))
    reach = np.abs(slope).max() + 700

    def probabilities(
        offset: Float[np.ndarray, "..."], answers: Float[np.ndarray, "..."], absent: float
    ) -> np.ndarray:
        exists = np.arange(size) < answers[..., None]
        return np.where(exists, special.expit(offset[..., None] + slope), absent)

    def gap(
        offset: Float[np.ndarray, "..."], beta: Float[np.ndarray, "..."], answers: Float[np.ndarray, "..."]
    ) -> np.ndarray | np.floating:
        return probabilities(offset, answers, 0.0).sum(-1) / answers - beta

    answers = np.asarray(num_answers, np.float64)
    return probabilities(_root(gap, reach, sparsity, answers), answers, 1.0)
