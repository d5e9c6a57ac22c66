"""Missing facts whose choice favours a system somewhat, with odds of at most Gamma."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64
from numpy.typing import ArrayLike

from owkg import checks
from owkg.auditing.breakdown import Pair, single_changes


class Sensitivity(NamedTuple):
    """What facts that are drawn from the lists do to "A is ahead of B".

    Attributes:
        odds: largest odds of one candidate against another, Gamma.
        change: worst expected change of the sum (or macro mean) of A less B by one fact, of each Gamma.
        facts: expected number of facts that turn the order, to first order; infinite where `change` is not
            below 0.
        gamma: the smallest Gamma at which `change` is below 0; 1 if blind chance is enough, infinite if no
            candidate hurts A, NaN without candidates.
    """

    odds: Float64[np.ndarray, "odds"]
    change: Float64[np.ndarray, "odds"]
    facts: Float64[np.ndarray, "odds"]
    gamma: float


def sensitivity(
    pair: Pair, weights: Float[np.ndarray, "ranks"], odds: ArrayLike = (1.0, 2.0, 5.0), *, macro: bool = False
) -> Sensitivity:
    """How far from blind the choice of missing facts must be to turn "A is ahead of B".

    One fact after another is drawn among the unlabelled candidates that A or B lists. Under blind chance
    each is equally likely. An adversary may weigh candidates by 1 to Gamma (as Rosenbaum's bounds do); the
    worst expected change gives Gamma to all candidates whose own change is below a threshold. Where a system
    does not list a candidate, its place is the worst for A. What several facts of one query do to each other
    is left out.

    Args:
        pair: the ranks.
        weights: h at index rank, falling.
        odds: Gammas, at least 1.
        macro: whether queries weigh alike and not their answers.

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
        # Gamma on all that hurt is the worst sign: total - below + Gamma below = 0.
        gamma = float((total[-1] - below[-1]) / -below[-1])
    else:
        gamma = float("inf")
    return Sensitivity(gammas, change, np.maximum(facts, 0.0), gamma)
