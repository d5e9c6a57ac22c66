"""What candidates that are not all scored take from a metric, without bias.

Each of them has a clock u, uniform on (0, 1). A completely monotone rank weight is a mixture: f(1 + b) is
the integral of t^b over some measure on (0, 1), and t^b is the chance that none of b candidates has a clock
below 1 - t. So let T be the smallest clock of the candidates that score higher. The measure of t below 1 - T
has the mean f(c) - f(c + b), where c is the rank among the candidates that are all scored. For MRR that is:
1/(b + 1) is the expected share of the candidates that come before the first that scores higher.

Candidates are looked through in the order of their clocks, in blocks. A block is reached with a known chance
q, and what it finds is divided by q. So the mean is right for any q above 0; q decides cost and error.
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
"""Metrics that have an unbiased estimate here."""

# Points of Gauss and Legendre for log-mrr, a mixture of powers; to 1e-12.
_NODES = 200
_GROWTH = 1.5
_FIRST = 64


@cache
def _points() -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(_NODES)


class Weight(NamedTuple):
    """A rank weight as the correction takes it.

    Attributes:
        name: of the metric.
        power: P of r^-P; 0 for log 2 / log(1 + r).
        hits: K of Hits@K; 0 for others.
    """

    name: str
    power: float = 0.0
    hits: int = 0

    def at(self, rank: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
        """f of ranks, at least 1, perhaps halves."""
        if self.hits:
            return (rank <= self.hits).astype(float)
        return rank**-self.power if self.power else np.log(2) / np.log1p(rank)

    def below(self, t: Float[np.ndarray, "..."], rank: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """The measure of (0, t) in the mixture that gives f(rank): f(rank) for t = 1. Not for Hits@K."""
        t, rank = np.broadcast_arrays(np.asarray(t, float), np.asarray(rank, float))
        if self.power == 1:
            return t**rank / rank
        clock = -np.log(np.maximum(t, np.finfo(float).tiny))
        if self.power:
            return rank**-self.power * special.gammaincc(self.power, rank * clock)
        # 1/log(1 + r) is the integral of (1 + r)^-p over p; what lies behind the last p is below 1e-17.
        last = 40 / np.log1p(rank)
        nodes, weights = _points()
        p = last[..., None] * (nodes + 1) / 2
        inner = (1 + rank[..., None]) ** -p * special.gammaincc(p, (1 + rank[..., None]) * clock[..., None])
        return np.log(2) * last / 2 * (inner @ weights)


def weights_named(names: Sequence[str]) -> list[Weight]:
    """The rank weights of metrics.

    Raises:
        ValueError: if one is not known, or has no unbiased estimate here.
    """
    found: list[Weight] = []
    if not names:
        raise ArgumentError("metrics", f"must name at least one of {NAMES}, got none.")
    for name in names:
        try:
            one = rank_weight(name)
        except ValueError:
            raise ArgumentError("metrics", f"must be of {NAMES}, got {name!r}.") from None
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
                "metrics", f"must be of {NAMES}, which have an unbiased estimate of samples, got {name}."
            )
    return list(dict.fromkeys(found))


def block_edges(num_entities: int) -> Int[np.ndarray, "edges"]:
    """Places at which blocks of the order begin, and its end: 0, 64, 160, ...; each half as large again."""
    edges, width = [0], float(_FIRST)
    while edges[-1] < num_entities:
        edges.append(min(num_entities, edges[-1] + round(width)))
        width *= _GROWTH
    return np.array(edges)


def reach_chances(
    weights: Sequence[Weight], rank: Float[np.ndarray, "n"], edges: Int[np.ndarray, "edges"], budget: float
) -> Float[np.ndarray, "n blocks"]:
    """The chance with which each block is reached, falling along the order.

    In proportion to what the block can take from the metrics, each counting alike, divided by the square root
    of its place: near the least error that there is at equal cost. The factor makes the mean share of
    candidates that are looked at about `budget`.

    Args:
        weights: of the metrics.
        rank: in the pool.
        edges: of the blocks.
        budget: share of all candidates, in (0, 1].
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
        # Metrics count alike: each as if it had the whole budget.
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
    """The chance that a search that has come to `begin` still goes on, for lack of candidates found.

    As if as many others as typical ones scored higher. A mixture ends with the first of them, Hits@K with the
    one behind which the answer is at rank K + 1; a rank above K needs no search.
    """
    if not weight.hits:
        return (1 - begin) ** (ranks - 1)
    allowed = np.maximum(weight.hits - ranks, 0)  # that may be found, and the answer is still a hit
    beyond = np.maximum(ranks - 1 - allowed, 0)
    going = np.where(beyond > 0, special.betainc(np.maximum(beyond, 1e-9), allowed + 1, 1 - begin), 1.0)
    return np.where(ranks <= weight.hits, going, 0.0)


class Clocks(NamedTuple):
    """What was found in the blocks that were reached.

    Attributes:
        higher: clock of the first candidate that scores higher, [n]; infinity where there is none.
        tied: of the first that ties, [n].
        higher_block, tied_block: in which they are, [n]; 0 where there is none.
        hit: number of the block in which the rank passes K, [n] for each K; -1 where in none.
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
    """What the candidates outside the pool take from f, unbiased.

    Args:
        weight: f.
        rank: in the pool.
        clocks: of what was found.
        chances: of `reach_chances`.
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
    # A tie counts half: none of e ties in half has the chance t^(e/2), and a clock below 1 - sqrt(t).
    tied = _below(weight, np.where(np.isfinite(clocks.tied), (1 - clocks.tied) ** 2, 0), rank)
    earlier = np.isinf(higher) | (clocks.tied_block < at_higher)
    # What a tie in an earlier block has taken is not taken again; one behind takes nothing more.
    before = np.where(earlier, tied, 0)
    same = ~earlier & (clocks.tied_block == at_higher)
    within = np.maximum(lost, np.where(same, tied, before))
    return _over(before, chances[rows, clocks.tied_block]) + _over(within - before, chance)


def _below(weight: Weight, t: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """The measure of (0, t), 0 for t = 0."""
    found, some = np.zeros(len(t)), t > 0
    found[some] = weight.below(t[some], rank[some])
    return found


def _over(lost: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """What was found, divided by the chance that it was looked at; 0 where nothing was."""
    return np.divide(lost, chance, out=np.zeros(len(lost)), where=lost > 0)
