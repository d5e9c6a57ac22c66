"""Fisher's randomisation test of all pairs of systems, by random sign flips of queries."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64

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
    weight: Float64[np.ndarray, "queries"] | Any = None,
    added: Float64[np.ndarray, "pairs"] | Any = 0.0,
    draws: Any = 10_000,
    on_progress: Callable[[int, int], None] | None = None,
) -> Float64[np.ndarray, "pairs"]:
    """Two-sided p-values of all pairs of systems under random sign flips of the queries.

    If two systems do not differ, the sign of each difference d_q = a_q - b_q is a fair coin. Of B draws
    of all signs s, b have |sum s_q d_q| >= |sum d_q|, and p = (b + 1) / (B + 1): never 0, and at most alpha
    with probability at most alpha. Where all 2^queries sign patterns are no more than `draws`, they are
    enumerated: p is exact, the share of the patterns. All pairs share the signs of a draw.

    With weights w, the difference of two systems is a ratio, R = sum d_q / sum w_q. R may be 0 although the
    d_q are not symmetric. So the statistic is R over its jackknife error, computed anew from s_q d_q at every
    flip: if R is 0, its distribution is about the same whether or not the systems are exchangeable (Janssen
    1997).

    Args:
        key: a seed, or a key of `jax.random.key`. Equal keys give equal results; not used by the enumeration.
        contributions: contribution of each query to the metric of a system; at least two systems.
        weight: of each query, above 0; None: equal weights.
        added: variance to add to that of the ratio that is observed, not to those of its flips: what the
            queries may not show. Only with weights.
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
        Janssen (Statistics and Probability Letters 36, 1997), "Studentized permutation tests for non-i.i.d.
        hypotheses and the generalized Behrens-Fisher problem".
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
    if weight is None:
        statistic = _Sums(each)
    else:
        weights = checks.real("weight", weight, 0, np.inf, closed=False)
        if weights.shape != (queries,):
            raise ArgumentError("weight", f"must be one of each of {queries} queries, got {weights.shape}.")
        more = checks.real("added", added, 0, np.inf)
        statistic = _Ratios(each, weights, np.broadcast_to(more, len(each) * (len(each) - 1) // 2))
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
        columns: what signs are multiplied with, [queries, columns].
        first, second: the systems of each pair.
    """

    def __init__(self, each: Float64[np.ndarray, "systems queries"]) -> None:
        self.columns = each.T
        self.first, self.second = np.triu_indices(len(each), 1)
        total = each.sum(1)
        self._observed = np.abs(total[self.first] - total[self.second]) - _tolerance(each.T)

    def as_far(self, sums: Float64[np.ndarray, "draws columns"]) -> Bool[np.ndarray, "draws pairs"]:
        """Whether the signed sums of each pair are at least as far from 0."""
        return np.abs(sums[:, self.first] - sums[:, self.second]) >= self._observed


class _Ratios(_Sums):
    """The same of sums over their errors: sums of squares of s d - R w, by the jackknife.

    They are A - 2 R C + R^2 B, A and B the same for all signs, C the signed sum of d w: linear in the signs.
    """

    def __init__(
        self,
        each: Float64[np.ndarray, "systems queries"],
        weight: Float64[np.ndarray, "queries"],
        added: Float64[np.ndarray, "pairs"],
    ) -> None:
        super().__init__(each)
        systems = len(each)
        times = jackknife(weight)
        self.columns = np.concatenate([each, each * (weight * times)]).T
        self._whole, self._b = weight.sum(), np.dot(weight**2, times)
        gram = (each * times) @ each.T
        square = np.diag(gram)
        apart = square[self.first] + square[self.second] - 2 * gram[self.first, self.second]
        self._a = np.maximum(apart, 0)
        self._tolerance = _tolerance(each.T)
        self._rounding = _NEAR * (square[self.first] + square[self.second])
        total = self.columns.sum(0)
        sums = (total[self.first] - total[self.second])[None]
        squares = self._squares(sums, total[None, systems:])[0]
        # t^2 times the squares of a flip is compared with the squared sum of that flip.
        squares += self._rounding + added * self._whole**2
        self._t2 = np.divide(sums[0] ** 2, squares, out=np.zeros_like(squares), where=squares > 0)

    def _squares(self, sums: np.ndarray, products: np.ndarray) -> np.ndarray:
        ratio = sums / self._whole
        crossed = products[:, self.first] - products[:, self.second]
        return np.maximum(self._a - 2 * ratio * crossed + ratio**2 * self._b, 0)

    def as_far(self, sums: Float64[np.ndarray, "draws columns"]) -> Bool[np.ndarray, "draws pairs"]:
        """Whether the ratios of each pair to their errors are at least as far from 0."""
        systems = sums.shape[1] // 2
        own = sums[:, self.first] - sums[:, self.second]
        squares = self._squares(own, sums[:, systems:])
        return (np.abs(own) + self._tolerance) ** 2 >= self._t2 * squares


def jackknife(weight: Float64[np.ndarray, "queries"]) -> Float64[np.ndarray, "queries"]:
    """What the squares of d_q - R w_q are multiplied with: 1 / (1 - h_q)^2, h_q the share of the weight.

    The sum of these squares over (sum w)^2 is the jackknife variance of R = sum d_q / sum w_q. The factor is
    0 for a query that has all the weight, because nothing is left without it.
    """
    rest = 1 - weight / weight.sum()
    return np.divide(1, rest**2, out=np.zeros_like(rest), where=rest > 0)


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
