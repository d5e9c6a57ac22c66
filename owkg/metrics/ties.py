"""The weight of a rank when candidates are tied: four rules, one of them exact."""

from enum import StrEnum
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from owkg.rank_weights.rank_weight import RankWeight
from owkg.rank_weights.tables import has_table, kept_by_size, padded_size, rank_weights, tie_expectation
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
    """A rank weight at ranks: from a table that is made once, or computed where that would be too long.

    Attributes:
        metric: h.
        halves: h(k / 2) at index k; None: too many.
    """

    metric: RankWeight
    halves: Float[np.ndarray, "halves"] | None

    def at(self, twice: Int[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """h of ranks and half ranks, given twice."""
        return rank_weights(self.metric, twice / 2) if self.halves is None else self.halves[twice]


def rank_tables(metric: RankWeight, largest_rank: int) -> RankTables:
    """The table of a metric up to a rank."""
    return RankTables(metric, half_rank_weights(metric, largest_rank) if has_table(largest_rank) else None)


def weights_of_ranks(tables: RankTables, tasks: Tasks, ties: Ties) -> Float[np.ndarray, "tasks"]:
    """h of each task's rank under a tie rule; a link is not applied.

    Args:
        tables: of the metric, up to the largest rank at least.
        tasks: with their ranks.
        ties: the rule.
    """
    low, high = tasks.optimistic, tasks.pessimistic
    if ties is Ties.REALISTIC and low is not high:
        return tables.at(low + high)
    if ties is Ties.PESSIMISTIC:
        return tables.at(2 * high)
    weights = tables.at(2 * low)
    if ties is Ties.EXACT and low is not high:
        tied = np.flatnonzero(low < high)
        if tied.size:
            weights[tied] = tie_expectation(tables.metric, low[tied], high[tied])
    return weights
