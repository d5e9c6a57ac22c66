"""Exact mean, variance and covariance of any rank metric under missing facts.

Yang et al. (2022) prove the mean of the positive class only (Lemma 4.1) and estimate the variance
numerically. Given the number m of missing answers and the number k of these classified positive, the test
answers are ranked in random order within two blocks, which gives both moments;
docs/understand/theory.md derives them.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple, Unpack

import numpy as np
from jaxtyping import Float, Int, Shaped
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.openworld import INDEPENDENT, MissingModel, PairArguments, Setting, SettingArguments, World, grid
from owkg.openworld.setting import broadcast, pair
from owkg.rank_weights import RankWeight
from owkg.rank_weights.tables import padded_size
from owkg.theory import grids, missing_counts
from owkg.theory.grids import checked_prefix_sums, log_factorials, over_grid

# Parts of `given_missing` in JAX: more parts save time, and take longer to compile.
_PARTS = 4
# Entries of an array of `given_missing` in NumPy, so that it stays in the second-level cache.
_ENTRIES = 2**15


class Moments(NamedTuple):
    """Mean and variance of one query's metric, arrays of the grid's shape."""

    expectation: Any
    variance: Any


def given_missing(
    sums: Float[Any, "2 ranks"],
    log_factorial: Float[Any, "size_plus_1"],
    missing_strength: Float[Any, ""],
    test_strength: Float[Any, ""],
    num_answers: Shaped[Any, ""],
    num_entities: Shaped[Any, ""],
) -> tuple[Float[Any, "size"], Float[Any, "size"]]:
    """E[M | m] and Var[M | m] for m = 0 .. size-1 missing answers (entries from m = N on are meaningless).

    With k | m ~ Binomial(m, l1), T = N - m, n = N_entity - N + m - k + 1, a positive test answer ranks
    uniformly on 1..k+1 and a negative one on k+1..k+n, and
    E[M^2 | m, k] = E[h^2]/T + (1 - 1/T) E[h_i h_j]. Two positives have
    E[h_i h_j] = (S1(k+1)^2 + S2(k+1)) / ((k+1)(k+2)). Two negatives have the same with the sums from k+1
    to k+n and the divisor n (n+1). One of each has the product of their means.
    """
    xp = checks.library_of(sums, missing_strength)
    size = log_factorial.shape[0] - 1
    k = xp.arange(size)

    def upto(rank: Int[Any, "..."]) -> Any:
        return xp.take(sums, rank, axis=1, mode="clip")

    (head1, head2), (next1, next2) = upto(k), upto(k + 1)
    hit, miss = test_strength, 1 - test_strength
    hit_mean = hit * next1 / (k + 1)
    hit_square = hit * next2 / (k + 1)
    hit_pair = hit**2 * (next1**2 + next2) / ((k + 1.0) * (k + 2.0))

    def with_missing(
        pmf: Float[Any, "..."], m: Int[Any, "..."], inverse: Float[Any, "..."]
    ) -> tuple[Any, Any]:
        """E[M | m] and Var[M | m] from P(k | m) and 1 / (n + 1) for k = 0 .. width, which may end at m."""
        m = m[..., None]
        width = pmf.shape[-1]
        per_n, per_next = inverse[..., 1:], inverse[..., :-1]  # 1/n, 1/(n+1)
        last1, last2 = upto(num_entities - num_answers + m + 1)  # k + n
        tail1, tail2 = last1 - head1[:width], last2 - head2[:width]
        miss_mean = miss * tail1 * per_n
        miss_pair = miss**2 * (tail1**2 + tail2) * per_n * per_next
        mean = hit_mean[:width] + miss_mean
        square = hit_square[:width] + miss * tail2 * per_n
        pair = hit_pair[:width] + 2 * hit_mean[:width] * miss_mean + miss_pair
        one_test = 1 / xp.maximum(num_answers - m, 1).astype(sums.dtype)
        mean_given_m = xp.sum(pmf * mean, axis=-1)
        second_given_m = xp.sum(pmf * (pair + (square - pair) * one_test), axis=-1)
        return mean_given_m, second_given_m - mean_given_m**2

    def one_more(pmf: Float[Any, "..."]) -> Any:
        """Binomial(m + 1, l1) from Binomial(m, l1), as sums of positive terms."""
        positive = missing_strength * xp.concatenate([xp.zeros_like(pmf[:1]), pmf[:-1]])
        return (1 - missing_strength) * pmf + positive

    def inverses(m: Int[Any, "..."], k: Int[Any, "..."]) -> Any:
        """1 / (n + 1). From k = m + 1 on, which no m reaches, n may be below 1."""
        return 1 / xp.maximum(num_entities - num_answers + m[..., None] + 2 - k, 1).astype(sums.dtype)

    pmf = xp.where(k == 0, 1.0, xp.zeros_like(head1 * hit * missing_strength))
    if xp is not np:
        return _scanned(with_missing, one_more, inverses, pmf)
    given = np.empty((2, size))
    for begin in range(0, size, max(1, _ENTRIES // size)):
        m = k[begin : begin + max(1, _ENTRIES // size)]
        pmfs = np.empty((len(m), size))
        for row in pmfs:
            row[:] = pmf
            pmf = one_more(pmf)
        given[:, m] = with_missing(pmfs, m, inverses(m, np.arange(size + 1)))
    return given[0], given[1]


def _scanned(
    with_missing: Callable[..., tuple[Any, Any]],
    one_more: Callable[..., Any],
    inverses: Callable[..., Any],
    pmf: Float[Any, "size"],
) -> tuple[Float[Any, "size"], Float[Any, "size"]]:
    """`with_missing` for m = 0 .. size-1 in JAX, in parts whose arrays end at their largest m.

    The numbers of one m, shifted by one, are those of the next, except the first: nothing is divided again.
    """
    import jax
    import jax.numpy as jnp

    size = len(pmf)
    known, parts = pmf[:1], []
    for begin in range(0, size, step := -(-size // _PARTS)):
        end = min(begin + step, size)
        width = min(end + 1, size)  # the last pmf is that of the first m of the next part

        def next_m(state: tuple[Any, Any], m: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
            pmf, inverse = state
            shifted = jnp.concatenate([inverses(m + 1, jnp.arange(1)), inverse[:-1]])
            return (one_more(pmf), shifted), with_missing(pmf, m, inverse)

        start = jnp.pad(known, (0, width - len(known))), inverses(jnp.asarray(begin), jnp.arange(width + 1))
        (known, _), found = jax.lax.scan(next_m, start, jnp.arange(begin, end))
        parts.append(found)
    mean, variance = (jnp.concatenate(part) for part in zip(*parts, strict=True))
    return mean, variance


@cache
def _moments_kernel(missing: MissingModel):
    def kernel(sums, log_factorial, l1, l2, num_answers, num_entities, *row):
        mean, variance = given_missing(sums, log_factorial, l1, l2, num_answers, num_entities)
        weight = missing_counts.missing_count_pmf(missing, row, num_answers, log_factorial)
        expectation = (weight * mean).sum()
        return expectation, (weight * (variance + (mean - expectation) ** 2)).sum()

    return kernel


@cache
def _covariance_kernel(missing: MissingModel):
    def kernel(sums, other, log_factorial, l1, l2, m1, m2, num_answers, num_entities, *row):
        mean_given = partial(given_missing, num_answers=num_answers, num_entities=num_entities)
        one, _ = mean_given(sums, log_factorial, l1, l2)
        two, _ = mean_given(other, log_factorial, m1, m2)
        weight = missing_counts.missing_count_pmf(missing, row, num_answers, log_factorial)
        centred = (one - (weight * one).sum()) * (two - (weight * two).sum())
        return ((weight * centred).sum(),)

    return kernel


# Array entries that can be computed in about the time that compiling one more size takes.
_WORTH = 4e7


def _sizes(num_answers: np.ndarray) -> list[int]:
    """Increasing array sizes among which the queries are divided: one, unless more save time.

    Sizes are round numbers, except for a single query, which is not compiled (`grids.over_grid`).
    """
    if num_answers.size == 1 and num_answers.max() <= grids.ENTRIES_IN_NUMPY:
        return [int(num_answers.max())]
    answers, count = np.unique(num_answers, return_counts=True)
    padded, rows = np.array([padded_size(n) for n in answers]), np.cumsum(count)
    sizes = [int(padded[-1])]
    for size in np.unique(padded)[-2::-1].tolist():
        smaller = rows[np.searchsorted(padded, size, "right") - 1]
        if smaller * (sizes[-1] ** 2 - size**2) > _WORTH:
            sizes.append(size)
    return sizes[::-1]


def _over_queries(
    kernel: Callable[..., tuple[Any, ...]],
    metrics: tuple[RankWeight | str, ...],
    setting: Setting,
    conditional: tuple[Any, ...],
    missing: MissingModel,
) -> tuple[Any, ...]:
    """Kernel values over the grid, in arrays about as long as each query has answers."""
    largest = int(np.max(setting.num_entities))
    sums = tuple(checked_prefix_sums(metric, largest) for metric in metrics)

    def of_size(size: int, setting: Setting, conditional: tuple[Any, ...]) -> tuple[Any, ...]:
        counts = missing_counts.parameters(missing, setting, size)
        rows = (*conditional, setting.num_answers, setting.num_entities, *counts)
        return over_grid(kernel, (*sums, log_factorials(size + 1)), rows, setting.shape, size)

    if not checks.is_traced(*setting, *conditional):
        missing_counts.require_feasible(missing, setting.num_answers)
    if checks.is_traced(*setting, *conditional):
        return of_size(padded_size(np.max(setting.num_answers)), setting, conditional)
    sizes = _sizes(setting.num_answers)
    if len(sizes) == 1:
        return of_size(sizes[0], setting, conditional)
    flat = [np.ravel(values) for values in (*setting, *conditional)]
    place = np.searchsorted(sizes, flat[Setting._fields.index("num_answers")])
    parts, order = [], np.argsort(place, kind="stable")
    for size, at in zip(sizes, np.split(order, np.cumsum(np.bincount(place))[:-1]), strict=True):
        own = [values[at] for values in flat]
        parts.append(of_size(size, Setting(*own[: len(setting)]), tuple(own[len(setting) :])))
    back = np.argsort(order)
    return tuple(np.concatenate(part)[back].reshape(setting.shape) for part in zip(*parts, strict=True))


def moments(
    metric: RankWeight | str,
    *,
    missing: MissingModel = INDEPENDENT,
    answer_weights: ArrayLike | None = None,
    **setting: Unpack[SettingArguments],
) -> Moments:
    """Exact mean and variance of a query's metric, given that the query has a test answer.

    The cost is O(num_answers^2) for each setting, after the prefix sums of the metric up to `num_entities`.

    Args:
        metric: rank metric or its name.
        missing: missing-fact model. Default `INDEPENDENT`.
        answer_weights: weights of a histogram over the last axis of the grid, such as counts of queries by
            `num_answers`. The query is then drawn at random with these weights, and the last axis is
            averaged out. Default: no averaging.
        setting: numbers or arrays that broadcast (`owkg.openworld.SettingArguments`).

    Returns:
        `Moments`, in the metric's own unit and its square.

    Raises:
        ValueError: if an argument is out of range; the message names it.

    Examples:
        >>> from owkg.rank_weights import MRR
        >>> mean, variance = moments(
        ...     MRR, strength=0.7, sparsity=0.35, num_answers=43, num_entities=14505
        ... )
        >>> f"{mean:.6f} {variance:.7f}"
        '0.192762 0.0061811'

    References:
        The model: Yang, Lin, Zhang (NeurIPS 2022), section 4. Moments: docs/understand/theory.md, section 2.
    """
    queries = grid(**setting)
    return _mixed(*_moments(metric, queries, queries.conditional_strengths(), missing), answer_weights)


def conditional_moments(
    metric: RankWeight | str,
    *,
    missing_strength: ArrayLike,
    test_strength: ArrayLike,
    missing: MissingModel = INDEPENDENT,
    answer_weights: ArrayLike | None = None,
    **world: Unpack[World],
) -> Moments:
    """`moments` for given l1 and l2 instead of a strength and a correlation.

    Args:
        missing_strength: l1 = P(positive | missing).
        test_strength: l2 = P(positive | in the test set).
        missing, answer_weights: as in `moments`.
        world: sparsity, num_answers and num_entities (`owkg.openworld.World`).

    Raises:
        ValueError: if an argument is out of range; the message names it.
    """
    both = {"missing_strength": missing_strength, "test_strength": test_strength}
    both = {k: v if checks.is_traced(v) else checks.real(k, v, 0, 1) for k, v in both.items()}
    shape = checks.common_shape(**both)
    queries = grid(strength=np.full(shape, 0.5), **world)  # placeholder, only l1 and l2 are used
    l1, l2 = (broadcast(v, queries.shape) for v in both.values())
    return _mixed(*_moments(metric, queries, (l1, l2), missing), answer_weights)


def _moments(
    metric: RankWeight | str, setting: Setting, conditional: tuple[Any, Any], missing: MissingModel
) -> tuple[Any, Any]:
    expectation, variance = _over_queries(_moments_kernel(missing), (metric,), setting, conditional, missing)
    return expectation, variance


def _mixed(
    expectation: Float[Any, "..."], variance: Float[Any, "..."], answer_weights: ArrayLike | None
) -> Moments:
    """Moments of a query drawn with `answer_weights` along the last axis, or of each query if None."""
    if answer_weights is not None:
        weights = _normalised(answer_weights, np.shape(expectation))
        overall = (expectation * weights).sum(-1)
        spread = (expectation - overall[..., None]) ** 2
        expectation, variance = overall, (weights * (variance + spread)).sum(-1)
    # Rounding may leave -1e-18 if the metric cannot vary.
    return Moments(expectation, variance if checks.is_traced(variance) else np.maximum(variance, 0))


def expectation(metric: RankWeight | str, **setting: Any) -> Any:
    """Mean of `moments`, with the same arguments."""
    return moments(metric, **setting).expectation


def variance(metric: RankWeight | str, **setting: Any) -> Any:
    """Variance of `moments`, with the same arguments."""
    return moments(metric, **setting).variance


def covariance(
    metric: RankWeight | str,
    *,
    other_metric: RankWeight | str | None = None,
    missing: MissingModel = INDEPENDENT,
    answer_weights: ArrayLike | None = None,
    **models: Unpack[PairArguments],
) -> Any:
    """Covariance of the metrics of two models on one query, which share only its missing facts.

    Cov = Cov_m(E[M_A | m], E[M_B | m]).

    Args:
        metric: rank metric of the first model, or its name.
        other_metric: rank metric of the second model, or its name. Default: `metric`.
        missing, answer_weights: as in `moments`.
        models: the setting and the second model (`owkg.openworld.PairArguments`).

    Raises:
        ValueError: if an argument is out of range; the message names it.
    """
    other_metric = metric if other_metric is None else other_metric
    one, two = pair(**models)
    conditional = (*one.conditional_strengths(), *two.conditional_strengths())
    metrics = (metric, other_metric)
    (result,) = _over_queries(_covariance_kernel(missing), metrics, one, conditional, missing)
    if answer_weights is None:
        return result
    weights = _normalised(answer_weights, one.shape)
    means = (
        expectation(m, **s.arguments(), missing=missing) for m, s in ((metric, one), (other_metric, two))
    )
    centred = [mean - (weights * mean).sum(-1, keepdims=True) for mean in means]
    return (weights * (result + centred[0] * centred[1])).sum(-1)


def _normalised(answer_weights: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    weights = checks.real("answer_weights", answer_weights, 0, np.inf)
    if not shape or weights.shape != shape[-1:]:
        raise ArgumentError(
            "answer_weights", f"must match the last axis of the grid {shape}, got {weights.shape}."
        )
    if weights.max() == 0:
        raise ArgumentError("answer_weights", "must have an entry above 0, got only zeros.")
    weights = weights / weights.max()
    return weights / weights.sum()
