"""Fisher's randomisation test of all pairs of systems, by random sign flips of queries."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float64

from owkg import checks
from owkg.checks import ArgumentError
from owkg.keys import checked_key, generator

# Signs in memory at a time.
_SIGNS = 2**19
# Signs of one step of the enumeration.
_STEP = 2**20
# Statistics this near to the observed one, relative to the sums they are differences of, count as equal.
_NEAR = 1e-12


def randomisation(
    key: Any,
    contributions: Float64[np.ndarray, "systems queries"] | Any,
    *,
    draws: Any = 10_000,
    on_progress: Callable[[int, int], None] | None = None,
) -> Float64[np.ndarray, "pairs"]:
    """Two-sided p-values of all pairs of systems under random sign flips of the queries.

    If two systems do not differ, the sign of each difference d_q = a_q - b_q is a fair coin. Of B draws
    of all signs s, b have |sum s_q d_q| >= |sum d_q|, and p = (b + 1) / (B + 1): never 0, and at most alpha
    with probability at most alpha. Where all 2^queries sign patterns are no more than `draws`, they are
    enumerated: p is exact, the share of the patterns. All pairs share the signs of a draw.

    Args:
        key: a seed, or a key of `jax.random.key`. Equal keys give equal results; not used by the enumeration.
        contributions: contribution of each query to the metric of a system; at least two systems.
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
    if queries < 31 and 2**queries <= draws:
        return _enumerated(each)
    first, second = np.triu_indices(len(each), 1)
    total = each.sum(1)
    observed = np.abs(total[first] - total[second]) - _tolerance(each.T)
    rng, size = generator(key), max(1, _SIGNS // queries)
    found = np.zeros(len(first), np.int64)
    for start in range(0, draws, size):
        count = min(size, draws - start)
        # The queries whose sign stays; those that are flipped count as often with the other sign.
        drawn = rng.integers(0, 256, (count, -(-queries // 8)), np.uint8)
        stays = np.unpackbits(drawn, axis=1, count=queries).astype(np.float64)
        sums = 2 * (stays @ each.T) - total
        found += (np.abs(sums[:, first] - sums[:, second]) >= observed).sum(0)
        if on_progress is not None:
            on_progress(start + count, draws)
    return (found + 1) / (draws + 1)


def _tolerance(each: np.ndarray) -> Float64[np.ndarray, "pairs"]:
    """Of the observed statistic of each pair, for contributions [queries, systems]."""
    first, second = np.triu_indices(each.shape[1], 1)
    size = np.abs(each).sum(0)
    return _NEAR * (size[first] + size[second])


def _enumerated(each: np.ndarray) -> Float64[np.ndarray, "pairs"]:
    """The share of all sign patterns at least as far from 0 as what was observed."""
    systems, queries = each.shape
    first, second = np.triu_indices(systems, 1)
    total = each.sum(1)
    observed = np.abs(total[first] - total[second]) - _tolerance(each.T)
    # A pattern and its opposite are as far from 0: half of them suffice, with the first sign kept.
    patterns = 2 ** (queries - 1)
    size = max(1, _STEP // queries)
    found = np.zeros(len(first), np.int64)
    for start in range(0, patterns, size):
        number = np.arange(start, min(start + size, patterns))
        signs = 1 - 2.0 * (number[:, None] >> np.arange(queries) & 1)
        sums = signs @ each.T
        found += (np.abs(sums[:, first] - sums[:, second]) >= observed).sum(0)
    return found / patterns
