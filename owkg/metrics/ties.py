"""Weight of a rank if candidates are tied: four tie rules, one of them exact."""

from enum import StrEnum
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from owkg.rank_weights.rank_weight import RankWeight
from owkg.rank_weights.tables import has_table, kept_by_size, padded_size, rank_weights, tie_expectation
from owkg.ranks.tasks import Tasks


class Ties(StrEnum):
    """Rank of the target among the candidates that share its score.

    With optimistic rank a and pessimistic rank b, the rank is a, b, (a + b) / 2, or for `exact` any rank from
    a to b with equal probability, whose weight is E[h] = (S1(b) - S1(a-1)) / (b - a + 1). Only `exact` gives
    a constant scorer 0 in every index and z metric of a mean. For functions of a mean, g(mean of E[h]), the
    value is 0 up to the curvature of g, whose effect falls as one over the number of tasks.
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
    """h(k / 2) at index k, for k = 2 .. 2 `largest_rank` or beyond; the first two entries have no meaning."""
    return _half_rank_weights(metric, padded_size(largest_rank))


class RankTables(NamedTuple):
    """Rank weight at ranks, from a table that is made once, or computed if the table would be too long.

    Attributes:
        metric: rank weight h.
        halves: h(k / 2) at index k; None if there would be too many entries.
    """

    metric: RankWeight
    halves: Float[np.ndarray, "halves"] | None

    def at(self, twice: Int[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """h of ranks and half ranks; the argument is twice the rank."""
        return rank_weights(self.metric, twice / 2) if self.halves is None else self.halves[twice]


def rank_tables(metric: RankWeight, largest_rank: int) -> RankTables:
    """Table of a metric up to a rank."""
    return RankTables(metric, half_rank_weights(metric, largest_rank) if has_table(largest_rank) else None)


def weights_of_ranks(tables: RankTables, tasks: Tasks, ties: Ties) -> Float[np.ndarray, "tasks"]:
    """h of each task's rank under a tie rule; a link is not applied.

    Args:
        tables: table of the metric, at least up to the largest rank.
        tasks: ranking tasks.
        ties: tie rule.
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
