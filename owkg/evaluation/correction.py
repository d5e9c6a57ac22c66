"""Unbiased correction of a metric for candidates that are not all scored.

Each such candidate has a clock u, uniform on (0, 1). A completely monotone rank weight is a mixture: f(1 + b)
is the integral of t^b over some measure on (0, 1), and t^b is the probability that none of b candidates has a
clock below 1 - t. Let T be the smallest clock of the candidates that score higher, and c the rank among the
candidates that are all scored. Then the measure of t below 1 - T has the mean f(c) - f(c + b). For MRR this
means that 1/(b + 1) is the expected share of the candidates that come before the first one that scores
higher.

The search takes candidates in the order of their clocks, in blocks. It reaches a block with a known
probability q, and the contribution of the block is divided by q. The mean is therefore right for any q above
0; q decides only cost and error.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from owkg.errors import ArgumentError
from owkg.rank_weights import rank_weight

NAMES = "mrr, p-mrr@P, log-mrr, hits@K"
"""Metrics with an unbiased estimate here."""

# Number of Gauss-Legendre points for log-mrr, a mixture of powers; accurate to 1e-12.
_NODES = 200
_GROWTH = 1.5
_FIRST = 64


@cache
def _points() -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(_NODES)


class Weight(NamedTuple):
    """Rank weight in the form that the correction needs.

    Attributes:
        name: name of the metric.
        power: P of r^-P; 0 for log 2 / log(1 + r).
        hits: K of Hits@K; 0 for other metrics.
    """

    name: str
    power: float = 0.0
    hits: int = 0

    def at(self, rank: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
        """Rank weight f at ranks of at least 1, which may be halves."""
        if self.hits:
            return (rank <= self.hits).astype(float)
        return rank**-self.power if self.power else np.log(2) / np.log1p(rank)

    def below(self, t: Float[np.ndarray, "..."], rank: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Measure of (0, t) in the mixture that gives f(rank); f(rank) itself at t = 1. Not for Hits@K."""
        t, rank = np.broadcast_arrays(np.asarray(t, float), np.asarray(rank, float))
        if self.power == 1:
            return t**rank / rank
        clock = -np.log(np.maximum(t, np.finfo(float).tiny))
        if self.power:
            return rank**-self.power * special.gammaincc(self.power, rank * clock)
        # 1/log(1 + r) is the integral of (1 + r)^-p over p; the part beyond the last p is below 1e-17.
        last = 40 / np.log1p(rank)
        nodes, weights = _points()
        p = last[..., None] * (nodes + 1) / 2
        inner = (1 + rank[..., None]) ** -p * special.gammaincc(p, (1 + rank[..., None]) * clock[..., None])
        return np.log(2) * last / 2 * (inner @ weights)


def weights_named(names: Sequence[str]) -> list[Weight]:
    """Rank weights of metrics, by name.

    Raises:
        ValueError: if a metric is unknown or has no unbiased estimate here.
    """
    found: list[Weight] = []
    if not names:
        raise ArgumentError("metrics", f"must name at least one of {NAMES}, got none.")
    for name in names:
        try:
            one = rank_weight(name)
        except ValueError:
            raise ArgumentError("metrics", f"must be one of {NAMES}, got {name!r}.") from None
        if one.name == "log-mrr":
            found.append(Weight(one.name))
        elif one.name == "mrr":
            found.append(Weight(one.name, power=1.0))
        elif one.name.startswith("p-mrr@") and one.link is None:
            found.append(Weight(one.name, power=float(one.name.partition("@")[2])))
        elif one.name.startswith("hits@"):
            found.append(Weight(one.name, hits=int(one.name.partition("@")[2])))
        else:
            raise ArgumentError(
                "metrics",
                f"must be one of {NAMES}, which have an unbiased estimate from samples, got {name}.",
            )
    return list(dict.fromkeys(found))


def block_edges(num_entities: int) -> Int[np.ndarray, "edges"]:
    """Starts of the blocks of an order, and its end: 0, 64, 160, ...; the width grows by half each time."""
    edges, width = [0], float(_FIRST)
    while edges[-1] < num_entities:
        edges.append(min(num_entities, edges[-1] + round(width)))
        width *= _GROWTH
    return np.array(edges)


def reach_chances(
    weights: Sequence[Weight], rank: Float[np.ndarray, "n"], edges: Int[np.ndarray, "edges"], budget: float
) -> Float[np.ndarray, "n blocks"]:
    """Probability of reaching each block, decreasing along the order, [n, blocks].

    The probability is proportional to the amount that the block can change the metrics, with equal weight on
    each metric, divided by the square root of the place of the block. This is close to the smallest error at
    equal cost. The factor is chosen so that the mean share of scored candidates is about `budget`.

    Args:
        weights: rank weights of the metrics.
        rank: rank of each answer among the candidates that are all scored.
        edges: edges of the blocks.
        budget: share of all candidates to score, in (0, 1].
    """
    size = edges[-1]
    begin, width = edges[:-1] / size, np.diff(edges) / size
    ranks, of, count = np.unique(rank, return_inverse=True, return_counts=True)
    squared, survives = np.zeros((2, len(ranks), len(begin)))
    for weight in weights:
        if weight.hits:
            missing = np.maximum(weight.hits + 1 - ranks, 1)
            worth = np.where(ranks <= weight.hits, missing**-2.0, 0)[:, None]
        else:
            worth = weight.below(1 - begin, ranks[:, None]) ** 2
        worth = worth / (begin + _FIRST / size)
        goes_on = _survives(weight, begin, ranks[:, None])
        # Each metric has equal weight, as if it had the whole budget.
        alone = float(count @ (np.sqrt(worth) * goes_on @ width))
        if alone > 0:
            squared += worth / alone**2
        survives = np.maximum(survives, goes_on)
    score = np.sqrt(squared / (squared.max() or 1.0))

    def cost(factor: float) -> float:
        return float(count @ (np.minimum(1, factor * score) * survives @ width)) / len(rank)

    low, high = 0.0, 1.0
    while cost(high) < budget and high < 1e9:
        high *= 4
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if cost(middle) < budget else (low, middle)
    return np.minimum(1, high * score)[of]


def _survives(
    weight: Weight, begin: Float[np.ndarray, "blocks"], ranks: Float[np.ndarray, "ranks 1"]
) -> Float[np.ndarray, "ranks blocks"]:
    """Probability that the candidates found before `begin` have not ended a search.

    It assumes that as many of the remaining candidates as of the typical ones score higher. A search for a
    mixture ends at the first of these, and a search for Hits@K at the one that moves the answer to rank K +
    1. A rank above K needs no search.
    """
    if not weight.hits:
        return (1 - begin) ** (ranks - 1)
    allowed = np.maximum(weight.hits - ranks, 0)  # number that can be found while the answer is still a hit
    beyond = np.maximum(ranks - 1 - allowed, 0)
    going = np.where(beyond > 0, special.betainc(np.maximum(beyond, 1e-9), allowed + 1, 1 - begin), 1.0)
    return np.where(ranks <= weight.hits, going, 0.0)


class Clocks(NamedTuple):
    """Candidates found in the blocks that the search reached.

    Attributes:
        higher: clock of the first candidate that scores higher, [n]; infinity if none does.
        tied: clock of the first candidate that ties, [n]; infinity if none does.
        higher_block, tied_block: blocks of these two candidates, [n]; 0 if there is none.
        hit: for each K, the block in which the rank passes K, [n]; -1 if it does so in none.
    """

    higher: Float[np.ndarray, "n"]
    tied: Float[np.ndarray, "n"]
    higher_block: Int[np.ndarray, "n"]
    tied_block: Int[np.ndarray, "n"]
    hit: dict[int, Int[np.ndarray, "n"]]


def corrections(
    weight: Weight,
    rank: Float[np.ndarray, "n"],
    clocks: Clocks,
    chances: Float[np.ndarray, "n blocks"],
    ties: str,
) -> Float[np.ndarray, "n"]:
    """Unbiased estimate of the amount by which the candidates outside the pool lower f, [n].

    Args:
        weight: rank weight f.
        rank: rank of each answer in the pool, that is, among the candidates that are all scored.
        clocks: candidates that the search found.
        chances: probabilities from `reach_chances`.
        ties: "optimistic", "realistic" or "pessimistic".
    """
    rows = np.arange(len(rank))
    if weight.hits:
        crossed = clocks.hit[weight.hits]
        return _over((crossed >= 0).astype(float), chances[rows, crossed])
    higher, at_higher = clocks.higher, clocks.higher_block
    if ties == "pessimistic":
        first = clocks.tied < higher
        higher = np.where(first, clocks.tied, higher)
        at_higher = np.where(first, clocks.tied_block, at_higher)
    lost = _below(weight, np.where(np.isfinite(higher), 1 - higher, 0), rank)
    chance = chances[rows, at_higher]
    if ties != "realistic":
        return _over(lost, chance)
    # A tie counts half: t^(e/2) is the probability that none of e ties, each with weight one half, has a
    # clock below 1 - sqrt(t).
    tied = _below(weight, np.where(np.isfinite(clocks.tied), (1 - clocks.tied) ** 2, 0), rank)
    earlier = np.isinf(higher) | (clocks.tied_block < at_higher)
    # The contribution of a tie in an earlier block is not counted again; a tie after the first higher
    # candidate contributes nothing.
    before = np.where(earlier, tied, 0)
    same = ~earlier & (clocks.tied_block == at_higher)
    within = np.maximum(lost, np.where(same, tied, before))
    return _over(before, chances[rows, clocks.tied_block]) + _over(within - before, chance)


def _below(weight: Weight, t: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Measure of (0, t); 0 for t = 0."""
    found, some = np.zeros(len(t)), t > 0
    found[some] = weight.below(t[some], rank[some])
    return found


def _over(lost: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Contribution found, divided by the probability of looking there; 0 where nothing was found."""
    return np.divide(lost, chance, out=np.zeros(len(lost)), where=lost > 0)
