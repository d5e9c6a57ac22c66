"""Focus of a rank weight on the top ranks, and the best weight that does not rise with the rank."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.rank_weights.rank_weight import RankWeight
from owkg.rank_weights.tables import rank_weights

# Variances, relative to the largest, below which a rank counts as never reached, and a step as rounding.
_NEVER, _ROUNDING = 1e-15, 1e-12
# Added to correlations because their matrix may be singular.
_RIDGE = 1e-12


def focus_of(metric: RankWeight, largest_rank: int) -> float:
    """Focus of a metric on the top: 1 / expected browsing depth, the share of its weight on the first rank.

    Scaled to h(1) = 1 and h(last) = 0, a weight that does not rise describes a reader: h(r) is the
    probability that the reader looks at rank r, and h(r) - h(r + 1) that r is the last rank looked at. The
    reader looks at sum of h(r) ranks on average (Carterette 2011; Moffat, Bailey, Scholer, Thomas 2017). The
    reciprocal of this depth needs no cut-off. It is 1 for Hits@1, 1/K for Hits@K and 1 - p for rank-biased
    precision of persistence p (Moffat, Zobel 2008). For 14,541 ranks:

        metric      focus    depth
        Hits@1      1        1
        Hits@10     0.1      10
        MRR         0.109    9.2
        p-MRR@1/2   0.0083   120
        log-MRR     0.0063   158
        p-MRR@1/4   0.0021   485
        MR          0.00014  7,270

    Args:
        metric: mean of a rank weight that does not improve as the rank rises.
        largest_rank: last rank, at least 2.

    Returns:
        A number from 1 / largest_rank (also for a weight that is equal on all ranks) to 1.

    Raises:
        ValueError: if the metric is a function of a mean or values a lower rank more, or there is only one
            rank.

    Examples:
        >>> from owkg.rank_weights import MRR, hits_at
        >>> round(1 / focus_of(MRR, 14541), 1), round(1 / focus_of(hits_at(10), 14541), 1)
        (9.2, 10.0)
    """
    last = checks.whole("largest_rank", largest_rank, 2)
    weight = rank_weights(metric, np.arange(1, last + 1)) * (1 if metric.larger_is_better else -1)
    if metric.link is not None or (np.diff(weight) > 0).any():
        raise ArgumentError(
            "metric", f"must be the mean of a rank weight that does not rise, got {metric.name!r}."
        )
    if weight[0] == weight[-1]:
        return 1 / last
    return float((weight[0] - weight[-1]) / (weight - weight[-1]).sum())


def focus_of_bins(weight: Float[np.ndarray, "bins"], ends: Int[np.ndarray, "bins"]) -> float:
    """Focus, as `focus_of`, of a weight constant on bins of ranks and 0 beyond; nan if the weight is 0."""
    total = float(weight @ np.diff(ends, prepend=0))
    return float(weight[0] / total) if total > 0 else np.nan


def binned_weight(name: str, ends: ArrayLike, values: ArrayLike) -> RankWeight:
    """Rank weight that is constant on bins of ranks and 0 beyond, for theory, simulation and evaluation.

    Args:
        name: name of the metric.
        ends: last rank of each bin, ascending whole numbers of at least 1.
        values: h on each bin.

    Raises:
        ValueError: if the ends do not ascend, or their number differs from the number of values.

    Examples:
        >>> half = binned_weight("half", [1, 3], [1.0, 0.5])
        >>> half.weight(np.array([1.0, 2.0, 3.0, 4.0])).tolist()
        [1.0, 0.5, 0.5, 0.0]
    """
    last = checks.integer("ends", ends, 1)
    values = checks.real("values", values, -np.inf, np.inf)
    if last.ndim != 1 or (np.diff(last) <= 0).any():
        raise ArgumentError("ends", f"must be ascending whole numbers, got {ends!r}.")
    if values.shape != last.shape:
        raise ArgumentError("values", f"must have shape ({len(last)},), as `ends`, got {values.shape}.")
    return RankWeight(name, _Bins(tuple(last.tolist()), (*values.tolist(), 0.0)))


class _Bins:
    """Weight h on bins; equal bins compare equal, so that they share compiled code."""

    def __init__(self, ends: tuple[int, ...], values: tuple[float, ...]) -> None:
        self.key = (ends, values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Bins) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __call__(self, rank: Float[Any, "*ranks"]) -> Any:
        space = rank.__array_namespace__()
        ends, values = (space.asarray(part, dtype=rank.dtype) for part in self.key)
        return values[space.searchsorted(ends, rank)]


def best_decreasing(
    change: Float[np.ndarray, "bins"],
    spread: Float[np.ndarray, "bins bins"],
    ends: Int[np.ndarray, "bins"],
    focus: float = 0.0,
) -> Float[np.ndarray, "bins"]:
    """Weight of least h'Sh / (h'd)^2 among weights that do not rise and have at least a given focus.

    h is a sum of steps, Hits@e with e the end of a bin, of amounts a >= 0. Its depth is the mean of e, so a
    least focus f is the linear constraint sum of a (1 - f e) >= 0. As the ratio does not depend on the scale
    of h, the problem is the convex programme that minimises a'Ga / 2 - g'a, with G and g of the steps. At a
    fixed price of the constraint, it is a non-negative least-squares problem. The slack rises with the price,
    which is either 0 or leaves no slack.

    Args:
        change: d, difference of the mean counts by bin, better model minus worse model.
        spread: S, covariance over queries of the differences whose mean is d.
        ends: last rank of each bin; beyond the last one, h is 0.
        focus: f, in [0, 1].

    Returns:
        h on each bin, with h(1) = 1; all 0 if no such weight puts the better model ahead.
    """
    from scipy import linalg, optimize  # slow to import

    steps = np.tril(np.ones(spread.shape))  # row j: bins 0 .. j
    # With factors, S = FF', correlations of steps are positive semi-definite, whatever rounding does to S.
    amount, axes = np.linalg.eigh(spread)
    factor = steps @ (axes * np.sqrt(np.maximum(amount, 0.0)))
    variance = np.square(factor).sum(1)
    # A step over ranks that are never reached equals the step before it, but is deeper.
    kept = (np.diag(spread) > _NEVER * np.diag(spread).max()) & (variance > _ROUNDING * variance.max())
    weight = np.zeros(len(change))
    steps, scale = steps[kept], np.sqrt(variance[kept])
    gain, room = (steps @ change) / scale, (1 - focus * ends[kept]) / scale
    if not (gain > 0).any():
        return weight
    gain, room = gain / np.abs(gain).max(), room / (np.abs(room).max() or 1.0)
    # With fewer queries than steps, or dependent steps, the matrix lacks full rank; the ridge restores it.
    ridge = np.sqrt(_RIDGE) * np.eye(len(gain))
    root = np.linalg.qr(np.hstack([factor[kept] / scale[:, None], ridge]).T)[1].T

    # One at a time, because BLAS would start its threads for several, which takes longer than the work.
    gained, spared = (linalg.solve_triangular(root, one, lower=True) for one in (gain, room))

    def amounts(price: float) -> np.ndarray:
        return (1 + price) * optimize.nnls(root.T, (gained + price * spared) / (1 + price))[0]

    def slack(price: float) -> float:
        return float(room @ amounts(price))

    found, high = amounts(0.0), 1.0
    if (short := float(room @ found)) < 0:
        while slack(high) < 0:
            high *= 2
        price: Any = optimize.brentq(slack, 0.0, high, xtol=1e-14, maxiter=500)
        found = amounts(price)
        if (short := float(room @ found)) < 0:  # the price is rounded: mix both so that no slack is left
            more = amounts(high)
            found = found * (room @ more) - more * short
    weight = steps.T @ (found / scale)
    return weight / weight[0] if weight[0] > 0 else weight
