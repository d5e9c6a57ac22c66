"""Median rank under every tie rule, its interval, and the scatter of the ranks."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from owkg.keys import Seed
from owkg.metrics.measures import Spread
from owkg.metrics.ties import Ties
from owkg.ranks.tasks import Tasks
from owkg.stats.bootstrap import batches
from owkg.stats.interval import student

# Rounding error of running sums of weights, as a share of the whole weight.
_ROUNDING = 1e-12


class Distribution(NamedTuple):
    """Weight on each rank, ranks ascending.

    Attributes:
        rank: ranks that end in .0, or in .5 for realistic ranks.
        share: share of the whole weight on this rank and all ranks below it.
    """

    rank: Float[np.ndarray, "ranks"]
    share: Float[np.ndarray, "ranks"]


def span(tasks: Tasks, ties: Ties) -> tuple[Int[np.ndarray, "tasks"], Int[np.ndarray, "tasks"]]:
    """First and last of the ranks over which each task's weight is spread evenly, in units of half a rank."""
    if ties is Ties.REALISTIC:
        middle = tasks.optimistic + tasks.pessimistic
        return middle, middle
    low = 2 * (tasks.pessimistic if ties is Ties.PESSIMISTIC else tasks.optimistic)
    return low, 2 * tasks.pessimistic if ties is Ties.EXACT and tasks.tied else low


def rank_histogram(tasks: Tasks, ties: Ties, weight: np.ndarray | None) -> Float[np.ndarray, "halves"]:
    """Weight on each rank, in units of half a rank: index 2 r is rank r. Without weights, whole counts.

    Under `Ties.EXACT`, the weight of a tie is spread evenly over its ranks.
    """
    if ties is Ties.REALISTIC and tasks.tied:
        return np.bincount(tasks.optimistic + tasks.pessimistic, weight).astype(np.float64)
    if ties is not Ties.EXACT or not tasks.tied:
        ranks = tasks.pessimistic if ties is Ties.PESSIMISTIC else tasks.optimistic
        on_ranks = np.bincount(ranks, weight)
    else:
        low, high = tasks.optimistic, tasks.pessimistic
        on_ranks = np.bincount(low[low == high], None if weight is None else weight[low == high])
        # A weighting may give tasks a weight of 0.
        tied = low < high if weight is None else (low < high) & (weight > 0)
        low, high = low[tied], high[tied]
        each = (1.0 if weight is None else weight[tied]) / (high - low + 1)
        size = int(tasks.pessimistic.max()) + 2
        steps = np.bincount(low, each, size) - np.bincount(high + 1, each, size)
        # Where steps cancel, rounding may leave a little weight; ranks that no task has must carry none.
        covered = np.cumsum(np.bincount(low, minlength=size) - np.bincount(high + 1, minlength=size))
        spread = np.where(covered > 0, np.cumsum(steps), 0.0)[:-1]
        spread[: len(on_ranks)] += on_ranks
        on_ranks = spread
    halves = np.zeros(2 * len(on_ranks) - 1)
    halves[::2] = on_ranks
    return halves


def distribution(on_halves: Float[np.ndarray, "halves"]) -> Distribution:
    """Distribution of the weight over the ranks, from the result of `rank_histogram`."""
    present = np.flatnonzero(on_halves > 0)
    share = np.cumsum(on_halves[present])
    return Distribution(present / 2, share / share[-1:])  # empty if no rank has weight


def quantile(distribution: Distribution, level: float) -> float:
    """Rank up to which the share `level` of the weight lies; between two ranks their mean, as for medians.

    NaN if there is no weight.
    """
    rank, share = distribution
    if rank.size == 0:
        return float("nan")
    low = min(int(np.searchsorted(share, level - _ROUNDING)), len(rank) - 1)
    high = min(int(np.searchsorted(share, level + _ROUNDING, side="right")), len(rank) - 1)
    return float(rank[low] + rank[high]) / 2


def share_below(
    tasks: Tasks, ties: Ties, weight: np.ndarray | None, rank: float
) -> Float[np.ndarray, "tasks"]:
    """Weight of each task that lies on ranks up to `rank`."""
    low, high = span(tasks, ties)
    last = np.floor(2 * rank)
    part = (high <= last).astype(np.float64)
    if low is not high and len(some := np.flatnonzero((low <= last) & (last < high))):
        part[some] = ((last - low[some]) // 2 + 1) / ((high[some] - low[some]) // 2 + 1)
    return part if weight is None else part * weight


class Below(NamedTuple):
    """Sums over queries of their weight w, and of the part b of w that lies on ranks up to some rank.

    Attributes:
        queries: number of queries.
        weight, below: sums of w and of b.
        weight_squares, below_squares, products: sums of w^2, b^2 and b w.
        heaviest: the largest w.
    """

    queries: int
    weight: float
    below: float
    weight_squares: float
    below_squares: float
    products: float
    heaviest: float

    def plus(self, other: "Below") -> "Below":
        """Sums over these queries and the queries of `other`."""
        sums = [mine + more for mine, more in zip(self[1:-1], other[1:-1], strict=True)]
        return Below(self.queries + other.queries, *sums, heaviest=max(self.heaviest, other.heaviest))

    @property
    def effective(self) -> float:
        """Number of queries of equal weight that carry as much information (Kish 1965)."""
        return self.weight**2 / self.weight_squares


ONE_QUERY = Below(1, 1.0, 1.0, 1.0, 1.0, 1.0, heaviest=1.0)
"""Sums without an interval: all tasks count as one query, as they do in means."""


def below(tasks: Tasks, ties: Ties, weight: np.ndarray | None, rank: float) -> Below:
    """Sums of `Below` up to a rank; a rank of NaN means that there is none.

    Args:
        tasks: at least one ranking task.
        ties: tie rule.
        weight: weight of each task; None: equal weights.
        rank: rank, as returned by `quantile`.
    """
    whole = query_weights(tasks, weight)
    part = np.zeros(len(whole))
    if np.isfinite(rank):
        part = share_below(tasks, ties, weight, rank)
        if tasks.query is not None:
            part = np.bincount(tasks.query, part, len(whole))
    sums = (whole.sum(), part.sum(), np.dot(whole, whole), np.dot(part, part), np.dot(part, whole))
    return Below(len(whole), *map(float, sums), heaviest=float(whole.max()))


def woodruff(sums: Below, by_rank: Distribution, level: float) -> tuple[float, tuple[float, float]]:
    """Standard error and confidence interval of the median, with independent queries (Woodruff 1952).

    The share of weight up to the median has a standard error over queries. The ends of the interval are the
    ranks up to which half of the weight minus, and plus, a multiple of this error lies.

    Args:
        sums: sums up to the median, over at least two queries.
        by_rank: `distribution` of the same tasks.
        level: confidence level.
    """
    count, share = sums.queries, sums.below / sums.weight
    # Sum of squares of b - share w, whose sum is 0.
    squares = sums.below_squares - 2 * share * sums.products + share**2 * sums.weight_squares
    error = np.sqrt(count / (count - 1) * max(squares, 0.0)) / sums.weight
    times = float(student(level, sums.effective))
    reach = times * float(error)
    low, high = (quantile(by_rank, float(np.clip(0.5 + x, 0, 1))) for x in (-reach, reach))
    return (high - low) / (2 * times), (low, high)


def query_weights(tasks: Tasks, weight: np.ndarray | None) -> Float[np.ndarray, "queries"]:
    """Sum of the weights of each query's tasks."""
    if tasks.query is None:
        return np.ones(len(tasks.optimistic)) if weight is None else weight
    return np.bincount(tasks.query, weight, tasks.num_queries).astype(np.float64)


def scatter(kind: Spread, on_halves: Float[np.ndarray, "halves"]) -> float:
    """Standard deviation, variance, median absolute deviation, largest or smallest of the ranks.

    The definitions are PyKEEN's. The variance is the population variance of the ranks (of the spread ranks
    under `Ties.EXACT`); the median absolute deviation is scaled by 1 / Phi^-1(3/4) = 1.4826.

    Args:
        kind: kind of scatter, except the count.
        on_halves: result of `rank_histogram`.
    """
    rank, share = distribution(on_halves)
    if rank.size == 0:
        return float("nan")
    if kind in (Spread.MAX_RANK, Spread.MIN_RANK):
        return float(rank[-1 if kind is Spread.MAX_RANK else 0])
    shares = np.diff(share, prepend=0.0)
    if kind is Spread.MEDIAN_ABSOLUTE_DEVIATION:
        away = np.abs(rank - quantile(Distribution(rank, share), 0.5))
        order = np.argsort(away, kind="stable")
        return quantile(Distribution(away[order], np.cumsum(shares[order])), 0.5) * 1.482602218505602
    mean = np.dot(shares, rank)
    variance = float(np.dot(shares, (rank - mean) ** 2))
    return variance if kind is Spread.VARIANCE else float(np.sqrt(variance))


def resampled_medians(
    key: Seed, tasks: Tasks, ties: Ties, weight: np.ndarray | None, replicates: int
) -> Float[np.ndarray, "replicates"]:
    """Median rank of each replicate, over the queries that `resampled_sums` draws with the same key."""
    from scipy import sparse  # slow to import; few need it

    low, high = span(tasks, ties)
    each = (np.ones(len(low)) if weight is None else weight) / ((high - low) // 2 + 1)
    query = np.arange(len(low)) if tasks.query is None else tasks.query
    # Whole and half ranks alternate on the grid; a tie covers every second entry, from low to high.
    grid = 2 * (int(high.max()) // 2 + 2)
    ends = np.concatenate([low, high + 2]), np.tile(query, 2)
    steps = sparse.csr_array((np.concatenate([each, -each]), ends), shape=(grid, tasks.num_queries))
    medians = np.empty(replicates)
    for start, drawn in batches(key, tasks.num_queries, replicates, grid):
        found = (steps @ drawn.T).T.reshape(len(drawn), -1, 2)
        share = np.cumsum(np.cumsum(found, axis=1).reshape(len(drawn), -1), axis=1)
        with np.errstate(invalid="ignore"):
            share /= share[:, -1:].copy()
        middle = [(share <= half).sum(1) for half in (0.5 - 1e-9, 0.5 + 1e-9)]
        median = np.minimum(middle, grid - 1).sum(0) / 4.0
        # A replicate that draws no weight has no median.
        medians[start : start + len(drawn)] = np.where(np.isfinite(share[:, -1]), median, np.nan)
    return medians
