"""Estimates from candidates drawn one by one: linear metrics, and the number of missing answers.

Unknown candidates are divided into strata of about equal importance. The difference estimator, with one slope
for all strata, estimates sums over the population.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from owkg.estimation.measures import Measure
from owkg.estimation.population import Population

STRATA = 12
_FLOOR = 5  # pseudo-draws from the proxy in the residual variance of a stratum
_RIDGE = 0.02  # ridge of the slopes, if there are several proxies
_LEAST = 2  # fewest drawn candidates in a stratum


class Drawn(NamedTuple):
    """Candidates drawn by stratum from a population of candidates.

    Attributes:
        frame: candidates that could be drawn.
        stratum: stratum of each candidate of the frame.
        drawn: places in `frame` of the drawn candidates.
    """

    frame: Int[np.ndarray, "units"]
    stratum: Int[np.ndarray, "units"]
    drawn: Int[np.ndarray, "n"]

    @property
    def sizes(self) -> Int[np.ndarray, "strata"]:
        """N_h, number of candidates in each stratum."""
        return np.bincount(self.stratum)

    @property
    def counts(self) -> Int[np.ndarray, "strata"]:
        """n_h, number of drawn candidates in each stratum."""
        return np.bincount(self.stratum[self.drawn], minlength=len(self.sizes))


class Sums(NamedTuple):
    """Estimated sums over a population of candidates.

    Attributes:
        value: estimate for each target.
        variance: variance of each estimate.
        freedom: degrees of freedom of each variance.
        r: correlation between contributions and their prediction by the proxies.
    """

    value: Float[np.ndarray, "targets"]
    variance: Float[np.ndarray, "targets"]
    freedom: Float[np.ndarray, "targets"]
    r: Float[np.ndarray, "targets"]


def contributions(
    of: Measure, people: Population, candidates: Int[np.ndarray, "n"]
) -> Float[np.ndarray, "systems n"]:
    """Amount that each candidate adds to the mean of a linear metric of each system, if it is relevant."""
    assert of.weights is not None
    weights = np.append(0.0, of.weights(people.depth))
    return weights[people.places[:, candidates]] / len(people.queries)


def importance(
    added: Float[np.ndarray, "targets n"], probabilities: Float[np.ndarray, "n"]
) -> Float[np.ndarray, "n"]:
    """Importance of judging each candidate: norm of its contributions times the deviation of its label."""
    return np.sqrt((added**2).sum(0) * probabilities * (1 - probabilities))


def equal_strata(importance: Float[np.ndarray, "n"], strata: int = STRATA) -> Int[np.ndarray, "n"]:
    """Strata of equal sums of importance, from the least important candidates; each has at least two."""
    order = np.argsort(importance, kind="stable")
    total = np.cumsum(importance[order])
    if not len(order) or total[-1] <= 0:
        return np.zeros(len(order), np.int64)
    cut = np.minimum((total / total[-1] * strata - 1e-9).astype(np.int64), strata - 1)
    found = np.empty(len(order), np.int64)
    found[order] = np.maximum(cut, 0)
    # A stratum of one candidate joins the stratum below it.
    sizes = np.bincount(found, minlength=strata)
    to = np.arange(strata)
    for h in range(strata - 1, 0, -1):
        if 0 < sizes[h] < _LEAST:
            below = max((j for j in range(h) if sizes[j]), default=None)
            if below is not None:
                to[to == h] = below
                sizes[below] += sizes[h]
                sizes[h] = 0
    return np.unique(to[found], return_inverse=True)[1]


def allocation(
    total: int,
    sizes: Int[np.ndarray, "strata"],
    shares: Float[np.ndarray, "strata"],
    least: int | Int[np.ndarray, "strata"] = _LEAST,
) -> Int[np.ndarray, "strata"]:
    """Number of units to draw from each stratum: proportional to `shares`, at least `least`, at most all."""
    sizes = np.asarray(sizes)
    total = min(total, int(sizes.sum()))
    found = np.minimum(least, sizes)
    shares = np.where(sizes > 0, np.maximum(shares, 1e-12), 0.0)
    while (left := total - int(found.sum())) > 0:
        room = found < sizes
        wanted = np.where(room, shares, 0.0)
        wish = wanted / wanted.sum() * left
        more = np.minimum(np.floor(wish).astype(np.int64), sizes - found)
        if more.sum() == 0:
            order = np.argsort(-(wish - np.floor(wish)) * room - room * 1e-9, kind="stable")
            more = np.zeros_like(found)
            more[order[:left]] = room[order[:left]]
        found = found + more
    return found


def of_candidates(
    added: Float[np.ndarray, "targets units"],
    labels: Float[np.ndarray, "... n"],
    probabilities: Float[np.ndarray, "proxies units"],
    drawn: Drawn,
) -> Sums:
    """Sums of what relevant candidates add, estimated from the labels of drawn candidates.

    The estimate is the sum of l a p over the population, plus the drawn residuals a y - l a p expanded
    stratum by stratum. The slopes l, one for each proxy, are pooled over the strata.

    Args:
        added: what each candidate of `drawn.frame` adds to each target.
        labels: labels of the drawn candidates, one vector for all targets or one row for each target.
        probabilities: probability of each candidate of `drawn.frame` under each proxy. The first proxy sets
            the floor of the variance.
        drawn: the design.
    """
    sizes, counts = drawn.sizes, drawn.counts
    at = drawn.stratum[drawn.drawn]
    chosen = added[:, drawn.drawn]
    y, x = chosen * labels, chosen * probabilities[:, None, drawn.drawn]
    member = (at[:, None] == np.arange(len(sizes))).astype(float)
    n = np.maximum(counts, 1)

    def centred(values: np.ndarray) -> np.ndarray:
        return values - ((values @ member) / n)[..., at]

    cy, cx = centred(y), centred(x)
    gain = (sizes.astype(float) ** 2 * (1 - counts / sizes) / n / np.maximum(counts - 1, 1))[at]
    slope = _slopes(cx, cy, gain)
    left = y - np.einsum("tk,ktn->tn", slope, x)
    expanded = (left @ member) / n * sizes
    value = np.einsum("tk,kt->t", slope, probabilities @ added.T) + expanded.sum(1)
    squares = (centred(left) ** 2) @ member
    deviation = added**2 * probabilities[0] * (1 - probabilities[0])
    whole = (drawn.stratum[:, None] == np.arange(len(sizes))).astype(float)
    model = (deviation @ whole) / np.maximum(sizes, 1)
    each = np.maximum(
        squares / np.maximum(counts - 1, 1), (squares + _FLOOR * model) / np.maximum(counts - 1 + _FLOOR, 1)
    )
    parts = sizes.astype(float) ** 2 * (1 - counts / sizes) / n * each
    variance = parts.sum(1)
    free = (parts**2 / np.maximum(counts - 1, 1)).sum(1)
    freedom = np.where(free > 0, variance**2 / np.where(free > 0, free, 1), len(at))
    raw = (cy**2 * gain).sum(1)
    kept = (centred(left) ** 2 * gain).sum(1)
    r = np.sqrt(np.clip(1 - kept / np.where(raw > 0, raw, 1), 0, 1)) * (raw > 0)
    return Sums(value, variance, np.clip(freedom, 1, max(len(at) - len(sizes), 1)), r)


def _slopes(x: np.ndarray, y: np.ndarray, gain: np.ndarray) -> Float[np.ndarray, "targets proxies"]:
    """Slopes that minimise the variance, with a small ridge if there are several proxies."""
    gram = np.einsum("ktn,ltn,n->tkl", x, x, gain)
    diagonal = np.einsum("tkk->tk", gram)
    ridge = np.where(diagonal > 0, _RIDGE * diagonal if len(x) > 1 else 0.0, 1.0)
    return np.linalg.solve(
        gram + ridge[..., None] * np.eye(len(x)), np.einsum("ktn,tn,n->tk", x, y, gain)[..., None]
    )[..., 0]


def horvitz_thompson(values: Float[np.ndarray, "targets n"], drawn: Drawn) -> Float[np.ndarray, "targets"]:
    """Horvitz-Thompson sums over the population: drawn values divided by their inclusion probabilities."""
    at = drawn.stratum[drawn.drawn]
    return values @ (drawn.sizes / np.maximum(drawn.counts, 1))[at]


def limits(found: Sums, level: float) -> tuple[Float[np.ndarray, "targets"], Float[np.ndarray, "targets"]]:
    """Confidence limits of the sums by Student's t."""
    half = special.stdtrit(found.freedom, (1 + level) / 2) * np.sqrt(found.variance)
    return found.value - half, found.value + half


def few_limits(
    counts: Float[np.ndarray, "n"], weights: Float[np.ndarray, "n"], level: float
) -> tuple[float, float]:
    """Confidence limits of a weighted sum of rare counts, by the gamma distribution (Fay and Feuer 1997).

    Args:
        counts: 1 for each drawn candidate that is relevant, otherwise 0.
        weights: N_h / n_h of each drawn candidate.
        level: confidence level of the interval.
    """
    tail = (1 - level) / 2
    total, variance = float(counts @ weights), float(counts @ weights**2)
    most = float(weights.max())
    low = 0.0
    if total > 0:
        low = variance / total * float(special.gammaincinv(total**2 / variance, tail))
    above, spread = total + most, variance + most**2
    return low, spread / above * float(special.gammaincinv(above**2 / spread, 1 - tail))
