"""Fisher's randomisation test of all pairs of systems, by random sign flips of queries."""

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
# Statistics this near to the observed one, relative to the sums they are differences of, count as equal.
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

    If two systems do not differ, the sign of each difference d_q = a_q - b_q is a fair coin. Of B draws
    of all signs s, b have |sum s_q d_q| >= |sum d_q|, and p = (b + 1) / (B + 1): never 0, and at most alpha
    with probability at most alpha. Where all 2^queries sign patterns are no more than `draws`, they are
    enumerated: p is exact, the share of the patterns. All pairs share the signs of a draw.

    If sum d_q is 0 on average, its variance and that of sum s_q d_q are both n E[d^2], whether or not the d_q
    are symmetric. So p is right for many queries also if they are not, as in a ratio sum d_q / sum w_q. Few
    queries may show less of that variance than there is; `wider` says how much less.

    Args:
        key: a seed, or a key of `jax.random.key`. Equal keys give equal results; not used by the enumeration.
        contributions: contribution of each query to the metric of a system; at least two systems.
        wider: what the variance of the observed mean is multiplied with, of each pair, at least 1: its t, and
            not those of the flips, is so much smaller.
        draws: B, at least 1.
        on_progress: called with (draws done, draws in all) after each call.

    Returns:
        Of the pairs in the order of np.triu_indices(systems, 1).

    Raises:
        ValueError: if a contribution is not finite, there is one system only, or an argument is out of range.

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
    # Without what the systems share, sums are smaller and so is the rounding of their differences.
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
        # The queries whose sign stays; those that are flipped count as often with the other sign.
        drawn = rng.integers(0, 256, (count, -(-queries // 8)), np.uint8)
        stays = np.unpackbits(drawn, axis=1, count=queries).astype(np.float64)
        found += statistic.as_far(2 * (stays @ statistic.columns) - total).sum(0)
        if on_progress is not None:
            on_progress(start + count, draws)
    return (found + 1) / (draws + 1)


class _Sums:
    """Sums of signed differences, held against those that were observed.

    Attributes:
        columns: what signs are multiplied with, [queries, systems].
        first, second: the systems of each pair.
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
            # The sum of the same squares whose t^2, rising with its share of them, is so much smaller.
            share = observed**2 / np.maximum(squares * each.shape[1], 1e-300)
            observed = observed / np.sqrt(np.maximum(wider - (wider - 1) * share, 1))
        self._observed = observed - _tolerance(each.T)

    def as_far(self, sums: Float64[np.ndarray, "draws systems"]) -> Bool[np.ndarray, "draws pairs"]:
        """Whether the signed sums of each pair are at least as far from 0."""
        return np.abs(sums[:, self.first] - sums[:, self.second]) >= self._observed


def _tolerance(each: np.ndarray) -> Float64[np.ndarray, "pairs"]:
    """Of the observed statistic of each pair, for contributions [queries, systems]."""
    first, second = np.triu_indices(each.shape[1], 1)
    size = np.abs(each).sum(0)
    return _NEAR * (size[first] + size[second])


def _enumerated(statistic: _Sums, queries: int) -> Float64[np.ndarray, "pairs"]:
    """The share of all sign patterns at least as far from 0 as what was observed."""
    # A pattern and its opposite are as far from 0: half of them suffice, with the first sign kept.
    patterns = 2 ** (queries - 1)
    size = max(1, _STEP // queries)
    found = np.zeros(len(statistic.first), np.int64)
    for start in range(0, patterns, size):
        number = np.arange(start, min(start + size, patterns))
        signs = 1 - 2.0 * (number[:, None] >> np.arange(queries) & 1)
        found += statistic.as_far(signs @ statistic.columns).sum(0)
    return found / patterns
