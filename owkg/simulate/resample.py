"""Resampled sparse test sets of fixed models: the distribution of every metric, without scoring again."""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float32, Float64, Int32
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.keys import Key, as_key, reproducible
from owkg.openworld import INDEPENDENT
from owkg.rank_weights import RankWeight, tie_expectation
from owkg.rank_weights.registry import Metrics, checked_metrics
from owkg.simulate.full_test import FullTest
from owkg.simulate.missingness import ThinningModel, missingness
from owkg.simulate.resample_block import laid_out, resampled_blocks
from owkg.simulate.run import Progress

# Answers of all draws in one block, about 25 bytes each, so that they fit the cache of a CPU; and the
# minimum and maximum number of draws in a block.
_BLOCK_ANSWERS = 2**20
_LEAST_BLOCK, _LARGEST_BLOCK = 4, 1024
# Two values with a smaller relative difference are equal: sums of the same weights in another order.
_ROUNDING = 2e-6
# Answers of draws and models in one call if `chunk` is not given, about a second on two CPU cores.
_CALL_ANSWERS = 2**27


class Resampled(NamedTuple):
    """Metrics of fixed models on sparse test sets drawn from one full test set.

    A draw that leaves no answer to any query has no mean. Its values are NaN, and the statistics leave it
    out.

    Attributes:
        metrics: measured metrics.
        values: mean over the queries with an answer left of the mean over their remaining answers,
            [draws, models, metrics].
        queries: number of queries with an answer left, [draws].
        full: metric on the full test set, [models, metrics].
        mean: mean of the values over the draws, [models, metrics].
        standard_deviation: standard deviation over the draws, divisor draws - 1, [models, metrics].
    """

    metrics: tuple[RankWeight, ...]
    values: Float32[np.ndarray, "draws models metrics"]
    queries: Int32[np.ndarray, "draws"]
    full: Float64[np.ndarray, "models metrics"]
    mean: Float64[np.ndarray, "models metrics"]
    standard_deviation: Float64[np.ndarray, "models metrics"]


@reproducible
def resample(
    key: Key,
    full: FullTest,
    metrics: Metrics,
    *,
    sparsity: float,
    draws: int,
    missing: ThinningModel = INDEPENDENT,
    chunk: int | None = None,
    on_progress: Progress | None = None,
) -> Resampled:
    """Metrics of every model on sparse test sets drawn from a full one.

    The models keep their scores, so ranks follow as in `thin`; ties are weighted as in
    `owkg.rank_weights.tie_expectation`. All models of a draw share its missing facts. A query whose answers
    are all missing is left out of that draw, as from a real test set; given that it remains, its answers are
    missing as in `owkg.theory`. (Under `Correlated` every query keeps an answer.)

    Each fact goes missing with probability `sparsity`:

    - `Independent`: independently of other facts.
    - `NodeBased`: it survives with the product of the probabilities of its head and its tail, each
      N(mu, spread) cut to [0, 1] and drawn anew in each draw; mu as in `owkg.openworld`.
    - `RelationBased`: it survives with the probability of its relation, drawn in the same way.
    - `PopularityBased`: its odds of survival are proportional to (popularity of head * of tail) ** exponent;
      the mean over the facts of the full test is exactly `sparsity`.
    - `Correlated`: for each query, the answers that a model ranks worst are missing.

    Args:
        key: random key of `jax.random.key`, consumed. Equal keys give equal results, bit for bit on one kind
            of device, for any `chunk`. Fewer draws give the first ones.
        full: full test set of `full_test`.
        metrics: one or several metrics or their names, plain means of a rank weight.
        sparsity: share of facts that go missing, in [0, 1); 0 keeps the full test set.
        draws: number of sparse test sets, at least 2.
        missing: missing-fact model. Default `INDEPENDENT`.
        chunk: draws in one call, rounded up to whole blocks of 4 to 1,024 draws. Memory, about 25 MiB for a
            block, does not depend on it, except for the results. Default: about a second of work.
        on_progress: function called with (draws done, draws in all) after each call. Default: none.

    Raises:
        ValueError: if an argument is out of range, or `full` lacks what `missing` needs.

    Examples:
        >>> import jax
        >>> from owkg.rank_weights import MRR
        >>> from owkg.simulate import full_test
        >>> full = full_test([0, 0, 1], [1, 4, 2], [1, 4, 2], [0.9, 0.2, 0.5])
        >>> result = resample(jax.random.key(0), full, MRR, sparsity=0.3, draws=1000)
        >>> result.values.shape, result.full.tolist()
        ((1000, 1, 1), [[0.5625]])

    References:
        Yang, Lin, Zhang (NeurIPS 2022), section 6: the sparse test sets.
    """
    key = as_key(key)
    measured = checked_metrics(metrics)
    if not isinstance(full, FullTest):
        raise ArgumentError("full", f"must be a result of full_test, got {full!r}.")
    beta = checks.real_number("sparsity", sparsity, 0, 1, closed="low")
    count = checks.whole("draws", draws, 2)
    if count >= 2**32 - 2 * _LARGEST_BLOCK:
        raise ArgumentError("draws", f"must be below 2**32, got {count}.")
    models, answers = full.score.shape
    block = _power_of_two(_BLOCK_ANSWERS // answers)
    if chunk is None:
        in_a_call = max(1, _CALL_ANSWERS // (models * answers))
    else:
        in_a_call = checks.whole("chunk", chunk, 1)
    law = missingness(full, missing, beta)
    layout = laid_out(full, measured, law.source)
    blocks = -(-count // block)
    calls = -(-blocks // max(1, in_a_call // block))
    blocks_a_call = -(-blocks // calls)
    values = np.empty((count, models, len(measured)), np.float32)
    queries = np.empty(count, np.int32)
    with jax.enable_x64(True):
        layout, parameters = jax.device_put((layout, law.parameters))
        for first in range(0, count, blocks_a_call * block):
            starts = np.minimum(first + block * np.arange(blocks_a_call), 2**32 - block).astype(np.uint32)
            found, left = resampled_blocks(
                key, starts, parameters, layout, draw=law.draw, size=law.size, block=block
            )
            stop = min(first + blocks_a_call * block, count)
            drawn = np.moveaxis(np.asarray(found), -1, 1).reshape(-1, *values.shape[1:])
            values[first:stop] = drawn[: stop - first]
            queries[first:stop] = np.asarray(left).reshape(-1)[: stop - first]
            if on_progress is not None:
                on_progress(stop, count)
    some = values[queries > 0]
    mean, deviation = (np.full(values.shape[1:], np.nan) for _ in range(2))
    if len(some) > 0:
        mean = some.mean(0, dtype=np.float64)
    if len(some) > 1:
        deviation = some.std(0, ddof=1, dtype=np.float64)
    return Resampled(measured, values, queries, _on_full_test(full, measured), mean, deviation)


def quantiles(resampled: Resampled, at: ArrayLike) -> Float64[np.ndarray, "quantiles models metrics"]:
    """Quantiles of each model's metric over the draws, [quantiles, models, metrics].

    Args:
        resampled: result of `resample`.
        at: one or several probabilities in [0, 1].

    Raises:
        ValueError: if a probability is out of range, or no draw has a mean.
    """
    probabilities = np.atleast_1d(checks.real("at", at, 0, 1))
    some = resampled.values[resampled.queries > 0]
    if not len(some):
        raise ArgumentError("resampled", "must have a draw that leaves a query, got none.")
    return np.quantile(some.astype(np.float64), probabilities.reshape(-1), axis=0)


class Inversions(NamedTuple):
    """Probabilities that draws invert each pair of models, [metrics, models, models].

    Entries are NaN where the two models tie on the full test.

    Attributes:
        probability: probability that a draw contradicts the order on the full test.
        standard_error: standard error of `probability`, never 0.
    """

    probability: Float64[np.ndarray, "metrics models models"]
    standard_error: Float64[np.ndarray, "metrics models models"]


def inversions(resampled: Resampled) -> Inversions:
    """P(the order of two models in a draw of `resample` contradicts their order on the full test).

    A draw in which both models have the same value, up to rounding, contradicts nothing. Draws without any
    query are left out.

    Raises:
        ValueError: if no draw has a mean.
    """
    values = resampled.values[resampled.queries > 0]
    draws, models, metrics = values.shape
    if not draws:
        raise ArgumentError("resampled", "must have a draw that leaves a query, got none.")
    share = np.zeros((metrics, models, models))
    for metric in range(metrics):
        read = np.ascontiguousarray(values[:, :, metric].T)
        full = _order(resampled.full[:, None, metric], resampled.full[None, :, metric])
        for model in range(models - 1):
            others = slice(model + 1, models)
            contradicts = _order(read[model], read[others]) * full[model, others, None] < 0
            share[metric, model, others] = share[metric, others, model] = contradicts.mean(1)
        share[metric][full == 0] = np.nan
    smoothed = (share * draws + 0.5) / (draws + 1)
    return Inversions(share, np.sqrt(smoothed * (1 - smoothed) / draws))


def _power_of_two(draws: int) -> int:
    return 1 << (min(max(draws, _LEAST_BLOCK), _LARGEST_BLOCK).bit_length() - 1)


def _on_full_test(full: FullTest, metrics: tuple[RankWeight, ...]) -> np.ndarray:
    _, query, counts = np.unique(full.query, return_inverse=True, return_counts=True)
    share = 1 / (counts[query] * len(counts))
    low, high = full.optimistic.reshape(-1), full.pessimistic.reshape(-1)
    weights = [tie_expectation(metric, low, high).reshape(full.optimistic.shape) for metric in metrics]
    return np.stack([weight @ share for weight in weights], axis=-1)


def _order(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """-1, 0 or 1 if `one` is smaller than `two`, equal up to rounding, or larger."""
    gap = one - two
    return np.sign(gap) * (np.abs(gap) > _ROUNDING * np.maximum(np.abs(one), np.abs(two)))
