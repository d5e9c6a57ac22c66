"""Sums over more ranks than a table can hold: some ranks stand for all, by the Euler-Maclaurin formula."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from owkg.rank_weights.catalogue import AtMost, Power
from owkg.rank_weights.rank_weight import RankWeight

# Number of first ranks that are added up one by one.
_DENSE = 2**16
# Gauss-Legendre points on an interval of ranks, and smallest number of intervals per doubling of the rank.
_POINTS = 24
_INTERVALS = 8
# Largest number of sizes for which there are fewer points than ranks.
_MOST_SIZES = 2**16
# Modules whose weights are all smooth after the first ranks.
_SMOOTH = ("owkg.rank_weights.catalogue", "owkg.metrics.measures")


class Points(NamedTuple):
    """Ranks that represent all: the sum of f over 1 .. N is the sum of `share` f(`rank`) up to `last`.

    Attributes:
        rank: ranks, ascending except next to a size; the greatest is one above the greatest size.
        share: number of ranks that each rank represents.
        last: index of the last point of each size.
    """

    rank: Float[np.ndarray, "points"]
    share: Float[np.ndarray, "points"]
    last: Int[np.ndarray, "sizes"]


def smooth(metric: RankWeight) -> bool:
    """Whether the weight is known to be smooth after the first ranks, so that `points` can sum it."""
    weight = metric.weight
    if isinstance(weight, AtMost):
        return weight.k <= _DENSE
    return getattr(weight, "__module__", None) in _SMOOTH


def points(metric: RankWeight, sizes: Int[np.ndarray, "sizes"]) -> Points | None:
    """Points for sums up to each size of a smooth function of a weight; None if all ranks are needed.

    The first 2^16 ranks are points. Behind them, the sum over ranks a + 1 .. b is the integral from a + 1/2
    to b + 1/2, by Gauss-Legendre quadrature on short intervals of log r, minus 1/24 of the difference of the
    slopes at the two ends. The next term is below 1e-15 of the sum.

    Args:
        metric: metric with the weight.
        sizes: sizes, ascending, at least 1.
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
        # The slope midway between two ranks is the difference of their weights.
        rank += [np.array([begin, begin + 1.0]), inner, np.array([end, end + 1.0])]
        shares += [np.array([-1, 1]) / 24, (half * share).ravel() * inner, np.array([1, -1]) / 24]
        last.append(sum(map(len, rank)) - 1)
        begin = end
    return Points(np.concatenate(rank), np.concatenate(shares), np.array(last))
