"""The weight of a rank when candidates are tied: four rules, one of them exact."""

from enum import StrEnum
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from owkg.rank_weights.rank_weight import RankWeight
from owkg.rank_weights.tables import kept_by_size, mean_over_tie, padded_size, prefix_sums, rank_weights
from owkg.ranks.tasks import Tasks


class Ties(StrEnum):
    """Where the target stands among the candidates that share its score.

    With a the optimistic and b the pessimistic rank: at a, at b, at (a + b) / 2, or anywhere from a to b
    with equal probability, whose weight is E[h] = (S1(b) - S1(a-1)) / (b - a + 1). Only the last leaves
    every index and z metric of a constant scorer at 0; those of functions of a mean, g(mean of E[h]), up to
    the curvature of g, which falls as one over the number of tasks.
    """

    OPTIMISTIC = "optimistic"
    PESSIMISTIC = "pessimistic"
    REALISTIC = "realistic"
    EXACT = "exact"


def _new_half_rank_weights(metric: RankWeight, largest: int) -> np.ndarray:
    weights = rank_weights(metric, np.maximum(np.arange(2 * largest + 1), 2) / 2)
    weights.flags.writeable = False
    return weights


_half_rank_weights = kept_by_size(_new_half_rank_weights)


def half_rank_weights(metric: RankWeight, largest_rank: int) -> Float[np.ndarray, "halves"]:
    """h(k / 2) at index k, for k = 2 .. 2 `largest_rank` or beyond; the first two entries mean nothing."""
    return _half_rank_weights(metric, padded_size(largest_rank))


class RankTables(NamedTuple):
    """A rank weight over the ranks: made once, looked up for every task.

    Attributes:
        halves: h(k / 2) at index k.
        sums: the sum of h over 1 .. x at index x.
    """

    halves: Float[np.ndarray, "halves"]
    sums: Float[np.ndarray, "ranks"]


def rank_tables(metric: RankWeight, largest_rank: int) -> RankTables:
    """The tables of a metric up to a rank."""
    return RankTables(half_rank_weights(metric, largest_rank), prefix_sums(metric, largest_rank)[0])


def weights_of_ranks(tables: RankTables, tasks: Tasks, ties: Ties) -> Float[np.ndarray, "tasks"]:
    """h of each task's rank under a tie rule; a link is not applied.

    Args:
        tables: of the metric, up to the largest rank at least.
        tasks: with their ranks.
        ties: the rule.
    """
    low, high = tasks.optimistic, tasks.pessimistic
    if ties is Ties.REALISTIC and low is not high:
        return tables.halves[low + high]
    if ties is Ties.PESSIMISTIC:
        return tables.halves[2 * high]
    weights = tables.halves[2 * low]
    if ties is Ties.EXACT and low is not high:
        tied = np.flatnonzero(low < high)
        if tied.size:
            weights[tied] = mean_over_tie(tables.sums, low[tied], high[tied])
    return weights
