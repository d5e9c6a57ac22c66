"""Fisher's randomisation test for all pairs of systems, by random sign flips of queries."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float64
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.keys import Seed, checked_key, generator

# Signs in memory at a time.
_SIGNS = 2**19
# Signs of one step of the enumeration.
_STEP = 2**20
# Statistics this close to the observed one, relative to the sums in their difference, count as equal.
_NEAR = 1e-12


def randomisation(
    key: Seed,
    contributions: ArrayLike,
    *,
    wider: ArrayLike = 1.0,
    draws: int = 10_000,
    on_progress: Callable[[int, int], None] | None = None,
) -> Float64[np.ndarray, "pairs"]:
    """Two-sided p-values of all pairs of systems under random sign flips of the queries.

    If two systems do not differ, the sign of each difference d_q = a_q - b_q is a fair coin. Among B draws of
    all signs s, b have |sum s_q d_q| >= |sum d_q|, and p = (b + 1) / (B + 1). This p is never 0, and it is at
    most alpha with probability at most alpha. If there are no more than `draws` sign patterns (2^queries),
    they are enumerated, and p is exact: the share of the patterns. All pairs share the signs of a draw.

    If sum d_q is 0 on average, both its variance and the variance of sum s_q d_q are n E[d^2], even if the
    d_q are not symmetric. Therefore p is also right for many queries with asymmetric d_q, as in a ratio
    sum d_q / sum w_q. A few queries may show less than the true variance; `wider` is the factor by which the
    true variance is larger.

    Args:
        key: seed, or key of `jax.random.key`. Equal keys give equal results. The enumeration ignores it.
        contributions: contribution of each query to the metric of each system, [systems, queries], at least
            two systems.
        wider: factor on the variance of the observed mean of each pair, at least 1. It reduces the observed t
            but not the t of the flips. Default 1.
        draws: B, at least 1. Default 10,000.
        on_progress: function called with (draws done, draws in all) after each batch. Default: none.

    Returns:
        P-value of each pair, in the order of np.triu_indices(systems, 1).

    Raises:
        ValueError: if a contribution is not finite, there is only one system, or an argument is out of range.

    Examples:
        >>> a, b = [0.5, 0.6, 0.9, 0.8], [0.4, 0.3, 0.4, 0.9]
        >>> randomisation(0, [a, b]).tolist()
        [0.375]

    References:
        Fisher (1935), "The design of experiments", section 21; Phipson, Smyth (Statistical Applications in
        Genetics and Molecular Biology 9, 2010), section 4, "Permutation p-values should never be zero".
    """
    key = checked_key(key)
    each = checks.real("contributions", contributions, -np.inf, np.inf)
    if each.ndim != 2 or len(each) < 2:
        raise ArgumentError(
            "contributions", f"must be [at least two systems, queries], got shape {each.shape}."
        )
    draws = checks.whole("draws", draws, 1)
    if draws >= 2**31:
        raise ArgumentError("draws", f"must be below 2**31, got {draws}.")
    queries = each.shape[1]
    # Subtracting what the systems share makes the sums smaller, and so the rounding of their differences.
    each = each - each.mean(0)
    more = checks.real("wider", wider, 1, np.inf)
    statistic = _Sums(each, np.broadcast_to(more, len(each) * (len(each) - 1) // 2))
    if queries < 31 and 2**queries <= draws:
        return _enumerated(statistic, queries)
    total = statistic.columns.sum(0)
    rng, size = generator(key), max(1, _SIGNS // queries)
    found = np.zeros(len(statistic.first), np.int64)
    for start in range(0, draws, size):
        count = min(size, draws - start)
        # Queries whose sign stays; the flipped ones enter with the opposite sign.
        drawn = rng.integers(0, 256, (count, -(-queries // 8)), np.uint8)
        stays = np.unpackbits(drawn, axis=1, count=queries).astype(np.float64)
        found += statistic.as_far(2 * (stays @ statistic.columns) - total).sum(0)
        if on_progress is not None:
            on_progress(start + count, draws)
    return (found + 1) / (draws + 1)


class _Sums:
    """Sums of signed differences, compared with the observed ones.

    Attributes:
        columns: columns that are multiplied with signs, [queries, systems].
        first, second: systems of each pair.
    """

    def __init__(
        self, each: Float64[np.ndarray, "systems queries"], wider: Float64[np.ndarray, "pairs"]
    ) -> None:
        self.columns = each.T
        self.first, self.second = np.triu_indices(len(each), 1)
        total = each.sum(1)
        observed = np.abs(total[self.first] - total[self.second])
        if (wider > 1).any():
            gram = each @ each.T
            square = np.diag(gram)
            squares = square[self.first] + square[self.second] - 2 * gram[self.first, self.second]
            # The sum with the same squares and a t^2 that is smaller by `wider`. t^2 rises with `share`.
            share = observed**2 / np.maximum(squares * each.shape[1], 1e-300)
            observed = observed / np.sqrt(np.maximum(wider - (wider - 1) * share, 1))
        self._observed = observed - _tolerance(each.T)

    def as_far(self, sums: Float64[np.ndarray, "draws systems"]) -> Bool[np.ndarray, "draws pairs"]:
        """Whether the signed sum of each pair is at least as far from 0 as the observed one."""
        return np.abs(sums[:, self.first] - sums[:, self.second]) >= self._observed


def _tolerance(each: np.ndarray) -> Float64[np.ndarray, "pairs"]:
    """Tolerance of each pair's observed statistic, for contributions [queries, systems]."""
    first, second = np.triu_indices(each.shape[1], 1)
    size = np.abs(each).sum(0)
    return _NEAR * (size[first] + size[second])


def _enumerated(statistic: _Sums, queries: int) -> Float64[np.ndarray, "pairs"]:
    """Share of all sign patterns whose sum is at least as far from 0 as the observed one."""
    # A pattern and its opposite are equally far from 0, so half of them suffice, with the first sign kept.
    patterns = 2 ** (queries - 1)
    size = max(1, _STEP // queries)
    found = np.zeros(len(statistic.first), np.int64)
    for start in range(0, patterns, size):
        number = np.arange(start, min(start + size, patterns))
        signs = 1 - 2.0 * (number[:, None] >> np.arange(queries) & 1)
        found += statistic.as_far(signs @ statistic.columns).sum(0)
    return found / patterns
