"""Lemma 4.1 and its corollaries: mean metric of the positive class and its dependence on strength.

The lemma allows all N answers to be missing and leaves out the test answers classified negative;
`owkg.theory.moments` does neither. owkg keeps the lemma because its derivatives are closed and explain why
metrics flatten.
"""

from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from owkg import checks
from owkg.openworld import Setting, SettingArguments, grid
from owkg.rank_weights import RankWeight
from owkg.rank_weights.tables import padded_size
from owkg.theory.grids import binomial_pmf, checked_prefix_sums, log_factorials, over_grid


def _lemma_kernel(sums, log_factorial, l1, l2, sparsity, num_answers):
    """E of the lemma, dE/dl1, dE/dl2, and the sum of the two slopes where l1 = l2, which is E[h(K+1)]."""
    xp = checks.library_of(sums, l1)
    size = log_factorial.shape[0] - 1
    k = xp.arange(size)
    # A(k) = S1(k+1)/(k+1): the mean weight of a positive test answer among k missing.
    means = sums[0, 1 : size + 1] / (k + 1)
    pmf = binomial_pmf(k, num_answers, l1 * sparsity, log_factorial)
    fewer = binomial_pmf(k, num_answers - 1, l1 * sparsity, log_factorial)
    # d/dp E[A(Binomial(N, p))] = N E[A(K+1) - A(K)], K ~ Binomial(N-1, p).
    slope = num_answers * sparsity * xp.sum(fewer[:-1] * xp.diff(means))
    weights = xp.diff(sums[0, : size + 1])
    by_test = xp.sum(pmf * means)
    return l2 * by_test, l2 * slope, by_test, xp.sum(pmf * weights)


def _evaluate(metric: RankWeight | str, setting: Setting) -> Any:
    ranks = int(np.max(setting.num_answers)) + 1  # the largest rank of a positive test answer
    size = padded_size(ranks)
    shared = (checked_prefix_sums(metric, ranks), log_factorials(size + 1))
    rows = (*setting.conditional_strengths(), setting.sparsity, setting.num_answers)
    return over_grid(_lemma_kernel, shared, rows, setting.shape, size)


def lemma_expectation(metric: RankWeight | str, **setting: Unpack[SettingArguments]) -> Any:
    """Lemma 4.1: (l2/l1) / (beta (N+1)) sum_{j=0}^{N} h(j+1) P(Binomial(N+1, l1 beta) > j).

    owkg computes the equal number l2 E[S1(K+1)/(K+1)], K ~ Binomial(N, l1 beta). It does not divide by the
    strength, so l = 0 and tiny sparsities need no special case and `jax.grad` works. `num_entities` is
    checked, although the lemma does not depend on it.

    Raises:
        ValueError: if an argument is out of range; the message names it.

    References:
        Yang, Lin, Zhang (NeurIPS 2022), Lemma 4.1; with correlation, Theorem 4.3.
    """
    return _evaluate(metric, grid(**setting))[0]


def lemma_derivative(metric: RankWeight | str, **setting: Unpack[SettingArguments]) -> Any:
    """Closed form of d/dl of `lemma_expectation` for any correlation.

    Without correlation this is Corollary 4.1, E[g(K)] / (l beta (N+1)) with K ~ Binomial(N+1, l beta) and
    g(r) = r h(r), which equals E[h(K+1)], K ~ Binomial(N, l beta). With correlation, the chain rule through
    l1 and l2 adds their slopes, which are infinite at l = 0 and l = 1; the result is then not finite.

    Args and Raises: as `lemma_expectation`.

    References:
        Yang, Lin, Zhang (NeurIPS 2022), Corollary 4.1.
    """
    queries = grid(**setting)
    _, by_missing, by_test, uncorrelated = _evaluate(metric, queries)
    l, rho, beta = queries.strength, queries.correlation, queries.sparsity
    xp = checks.library_of(l, rho, beta)
    correlated = xp.not_equal(rho, 0)
    spread = xp.where(correlated, xp.sqrt(l * (1 - l)), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        bend = xp.where(correlated, rho * (1 - 2 * l) / (2 * spread), 0)
        odds = xp.sqrt((1 - beta) / beta)
        slope = by_missing * (1 + bend * odds) + by_test * (1 - bend / odds)
        # Without correlation the two parts nearly cancel if the metric is saturated, but their sum is known.
        return xp.where(correlated, slope, uncorrelated)[()]


def lemma_correlation_derivative(metric: RankWeight | str, **setting: Unpack[SettingArguments]) -> Any:
    """Closed form of d/drho of `lemma_expectation`, negative where correlation lowers the reported metric.

    Args and Raises: as `lemma_expectation`.

    References:
        Yang, Lin, Zhang (NeurIPS 2022): Corollary 4.5 is about the sign of this derivative.
    """
    queries = grid(**setting)
    _, by_missing, by_test, _ = _evaluate(metric, queries)
    l, beta = queries.strength, queries.sparsity
    xp = checks.library_of(l, beta)
    spread, odds = xp.sqrt(l * (1 - l)), xp.sqrt((1 - beta) / beta)
    return (by_missing * spread * odds - by_test * spread / odds)[()]


def mrr_derivative(*, strength: ArrayLike, sparsity: ArrayLike, num_answers: ArrayLike) -> Any:
    """Corollary 4.2, MRR: (1 - (1 - l beta)^(N+1)) / (l beta (N+1)); 1 in the limit l beta -> 0.

    Raises:
        ValueError: if an argument is out of range.

    References:
        Yang, Lin, Zhang (NeurIPS 2022), Corollary 4.2.
    """
    p, n = _positive_missing(strength, sparsity, num_answers)
    safe = np.where(p == 0, 1, p)
    return np.where(p == 0, 1.0, -np.expm1((n + 1) * np.log1p(-p)) / (safe * (n + 1)))[()]


def hits_derivative(k: int, *, strength: ArrayLike, sparsity: ArrayLike, num_answers: ArrayLike) -> Any:
    """Corollary 4.3, Hits@K: P(Binomial(N, l beta) <= K - 1).

    Raises:
        ValueError: if an argument is out of range.

    References:
        Yang, Lin, Zhang (NeurIPS 2022), Corollary 4.3.
    """
    k = checks.whole("k", k, 1)
    p, n = _positive_missing(strength, sparsity, num_answers)
    return special.bdtr(np.minimum(k - 1, n), n, p)[()]


def mrr_lemma_expectation(*, strength: ArrayLike, sparsity: ArrayLike, num_answers: ArrayLike) -> Any:
    """Lemma 4.1 for MRR without correlation: [H_{N+1} - sum_{j=1}^{N+1} (1-l beta)^j / j] / (beta (N+1)).

    The sum over j is the integral of (1 - x^(N+1)) / (1 - x) from 0 to 1 - l beta, and the bracket is the
    same integral from 1 - l beta to 1. A Gauss-Legendre rule of (N+2)/2 nodes computes it exactly, without
    cancellation.

    Raises:
        ValueError: if an argument is out of range.
    """
    p, n = _positive_missing(strength, sparsity, num_answers)
    beta = checks.real("sparsity", sparsity, 0, 1, closed=False)
    nodes, weights = special.roots_legendre(int(np.max(n)) // 2 + 2)
    # Integral over x in (1-p, 1) of the polynomial 1 + x + ... + x^N = (1 - x^(N+1)) / (1 - x).
    gap = p[..., None] * (nodes + 1) / 2  # 1 - x
    powers = -np.expm1((n[..., None] + 1) * np.log1p(-gap))
    safe = np.where(gap == 0, 1, gap)
    ratio = np.where(gap == 0, n[..., None] + 1.0, powers / safe)
    return ((ratio * weights).sum(-1) * p / 2 / (beta * (n + 1)))[()]


def _positive_missing(strength: ArrayLike, sparsity: ArrayLike, num_answers: ArrayLike) -> tuple:
    """(l beta, N), checked and broadcast."""
    strength = checks.real("strength", strength, 0, 1)
    sparsity = checks.real("sparsity", sparsity, 0, 1, closed=False)
    num_answers = checks.integer("num_answers", num_answers, 1)
    checks.common_shape(strength=strength, sparsity=sparsity, num_answers=num_answers)
    return np.broadcast_arrays(strength * sparsity, num_answers)
