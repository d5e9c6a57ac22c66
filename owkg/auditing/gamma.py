"""Sensitivity to missing facts whose choice favours a system, with odds of at most Gamma."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64
from numpy.typing import ArrayLike

from owkg import checks
from owkg.auditing.breakdown import Pair, single_changes


class Sensitivity(NamedTuple):
    """Effect of facts drawn from the lists on "A is ahead of B".

    Attributes:
        odds: largest odds of one candidate against another, Gamma, [odds].
        change: worst expected change of the sum (or macro mean) of A minus B by one fact, at each Gamma.
        facts: expected number of facts that reverse the order, to first order; infinite where `change` is not
            below 0.
        gamma: smallest Gamma at which `change` is below 0; 1 if a blind choice is enough, infinite if no
            candidate hurts A, NaN without candidates.
    """

    odds: Float64[np.ndarray, "odds"]
    change: Float64[np.ndarray, "odds"]
    facts: Float64[np.ndarray, "odds"]
    gamma: float


def sensitivity(
    pair: Pair, weights: Float[np.ndarray, "ranks"], odds: ArrayLike = (1.0, 2.0, 5.0), *, macro: bool = False
) -> Sensitivity:
    """Sensitivity of "A is ahead of B" to a choice of missing facts that favours B.

    Facts are drawn one after another among the unlabelled candidates that A or B lists. In a blind choice
    each is equally likely. An adversary may weigh candidates by 1 to Gamma (as in Rosenbaum's bounds); the
    worst expected change gives weight Gamma to all candidates whose own change is below a threshold. If a
    system does not list a candidate, its place is the worst for A. Effects of several facts of one query on
    each other are left out.

    Args:
        pair: ranks of both systems.
        weights: h at index rank, falling, [ranks].
        odds: Gammas, at least 1. Default 1, 2 and 5.
        macro: whether every query has the same weight (True) or every answer (False, default).

    Raises:
        ValueError: if odds are below 1.

    References:
        Rosenbaum (2002), "Observational studies", chapter 4.
    """
    gammas = np.atleast_1d(checks.real("odds", odds, 1, np.inf))
    known = pair.known[0] > 0
    start = np.where(known, weights[pair.known[0]] - weights[pair.known[1]], 0.0).sum(1)
    ahead = float((start / np.maximum(known.sum(1), 1) if macro else start).sum())
    changes = single_changes(pair, weights, macro=macro)
    own = np.sort(changes[np.isfinite(changes)])
    if not own.size:
        nothing = np.full(len(gammas), np.nan)
        return Sensitivity(gammas, nothing, nothing, float("nan"))
    # With Gamma on the first k of n: (Gamma S_k + S_n - S_k) / (Gamma k + n - k).
    count, total = np.arange(1, own.size + 1), np.cumsum(own)
    change = np.array([np.min((total[-1] + (g - 1) * total) / (own.size + (g - 1) * count)) for g in gammas])
    with np.errstate(divide="ignore"):
        facts = np.where(change < 0, ahead / np.where(change < 0, -change, 1.0), np.inf)
    below = total[own < 0]
    if total[-1] < 0:
        gamma = 1.0
    elif below.size:
        # With Gamma on all candidates that hurt A, the change is 0 where total - below + Gamma below = 0.
        gamma = float((total[-1] - below[-1]) / -below[-1])
    else:
        gamma = float("inf")
    return Sensitivity(gammas, change, np.maximum(facts, 0.0), gamma)
