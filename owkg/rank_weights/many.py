"""Sums over more ranks than a table should have: some stand for all, as Euler and Maclaurin have it."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from owkg.rank_weights.catalogue import AtMost, Power
from owkg.rank_weights.rank_weight import RankWeight

# Ranks that are added up one by one.
_DENSE = 2**16
# Points of Gauss and Legendre on an interval of ranks, and intervals on which ranks double, at least.
_POINTS = 24
_INTERVALS = 8
# Sizes up to which points are fewer than ranks.
_MOST_SIZES = 2**16
# Where weights are defined that are smooth after the first ranks.
_SMOOTH = ("owkg.rank_weights.catalogue", "owkg.metrics.measures")


class Points(NamedTuple):
    """Ranks that stand for all: f summed over 1 .. N is the running sum of `share` f(`rank`), up to `last`.

    Attributes:
        rank: each, ascending but for those on both sides of a size; up to the greatest size and one.
        share: how many ranks it stands for.
        last: the place of the last point of each size.
    """

    rank: Float[np.ndarray, "points"]
    share: Float[np.ndarray, "points"]
    last: Int[np.ndarray, "sizes"]


def smooth(metric: RankWeight) -> bool:
    """Whether the weight is known to be smooth after the first ranks, so that `points` sum it."""
    weight = metric.weight
    if isinstance(weight, AtMost):
        return weight.k <= _DENSE
    return getattr(weight, "__module__", None) in _SMOOTH


def points(metric: RankWeight, sizes: Int[np.ndarray, "sizes"]) -> Points | None:
    """The points for sums up to each size of a smooth function of a weight; None where all ranks are needed.

    The first 2^16 ranks are points. Behind them, the sum over ranks a + 1 .. b is the integral from a + 1/2
    to b + 1/2, by Gauss and Legendre on short intervals of log r, less 1/24 of the difference of the slopes
    there. The next term is below 1e-15 of the sum.

    Args:
        metric: gives the weight.
        sizes: ascending, from 1.
    """
    far = sizes[sizes > _DENSE]
    if not smooth(metric) or not len(far) or len(far) > _MOST_SIZES:
        return None
    steep = abs(metric.weight.exponent) if isinstance(metric.weight, Power) else 1.0
    node, share = np.polynomial.legendre.leggauss(_POINTS)
    rank, shares = [np.arange(1.0, _DENSE + 1)], [np.ones(_DENSE)]
    last, begin = [*(sizes[sizes <= _DENSE] - 1)], _DENSE
    for end in far.tolist():
        low, high = np.log(begin + 0.5), np.log(end + 0.5)
        count = int(np.ceil((high - low) / np.log(2) * max(_INTERVALS, steep)))
        edges = np.linspace(low, high, count + 1)[:, None]
        half = np.diff(edges, axis=0) / 2
        inner = np.exp(edges[:-1] + half * (1 + node)).ravel()
        # The slope at the middle of two ranks is the difference of their weights.
        rank += [np.array([begin, begin + 1.0]), inner, np.array([end, end + 1.0])]
        shares += [np.array([-1, 1]) / 24, (half * share).ravel() * inner, np.array([1, -1]) / 24]
        last.append(sum(map(len, rank)) - 1)
        begin = end
    return Points(np.concatenate(rank), np.concatenate(shares), np.array(last))
