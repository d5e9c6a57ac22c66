"""Sparse test sets of fixed models, redrawn: the whole distribution of every metric, nothing scored again."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float32, Float64, Int32

from owkg import checks
from owkg.keys import checked_key, reproducible
from owkg.metrics import Metric, tie_expectation
from owkg.openworld import INDEPENDENT
from owkg.simulate.arguments import checked_metrics
from owkg.simulate.full_test import FullTest
from owkg.simulate.redraw_block import laid_out, redrawn_blocks
from owkg.simulate.run import Progress
from owkg.simulate.vanishing import ThinningModel, vanishing

# Answers of draws in one block, some 25 bytes each: about the cache of a CPU. The draws of a block.
_BLOCK_ANSWERS = 2**20
_LEAST_BLOCK, _LARGEST_BLOCK = 4, 1024
# Answers of draws and models in one call when `chunk` is not given, about a second on two CPU cores.
_CALL_ANSWERS = 2**27


class Redrawn(NamedTuple):
    """What fixed models read on sparse test sets that were drawn out of one full test set.

    A draw that leaves no answer to any question has no mean: its values are nan, and the statistics are
    those of the others.

    Attributes:
        metrics: that were measured.
        values: mean over the questions with an answer left of the mean over those answers,
            [draws, models, metrics].
        questions: how many questions have an answer left, [draws].
        full: the same on the full test set, [models, metrics].
        mean: of the values over the draws, [models, metrics].
        standard_deviation: over the draws, divisor draws - 1, [models, metrics].
    """

    metrics: tuple[Metric, ...]
    values: Float32[np.ndarray, "draws models metrics"]
    questions: Int32[np.ndarray, "draws"]
    full: Float64[np.ndarray, "models metrics"]
    mean: Float64[np.ndarray, "models metrics"]
    standard_deviation: Float64[np.ndarray, "models metrics"]


@reproducible
def redraw(
    key: Any,
    full: FullTest | Any,
    metrics: Metric | str | Sequence[Metric | str] | Any,
    *,
    sparsity: Any,
    draws: Any,
    missing: ThinningModel | Any = INDEPENDENT,
    chunk: Any = None,
    on_progress: Progress | None = None,
) -> Redrawn:
    """Draws sparse test sets out of a full one and measures every model on every one.

    The models keep their scores, so that ranks follow as in `thin`; ties weigh as in
    `owkg.metrics.tie_expectation`. All models of a draw share its missing facts. A question all of whose
    answers are missing is left out of that draw, under every missing-fact model, as from a real test set;
    given that it is there, its answers are missing as `owkg.theory` has it. (Only `Correlated` leaves every
    question an answer.)

    Facts go missing so, each with probability `sparsity`:

    - `Independent`: on its own.
    - `NodeBased`: it survives with the product of the probabilities of its head and its tail, each
      N(mu, spread) cut to [0, 1] and drawn anew in each draw; mu as in `owkg.openworld`.
    - `RelationBased`: it survives with the probability of its relation, drawn in the same way.
    - `PopularityBased`: the odds of its survival are as (popularity of head * of tail) ** exponent; the mean
      over the facts of the full test is `sparsity` exactly.
    - `Correlated`: to each question, the answers that a model ranks worst.

    Args:
        key: of `jax.random.key`; consumed. Equal keys give equal results, to the last bit on one kind of
            device, whatever `chunk` is; of fewer draws, the first ones.
        full: of `full_test`.
        metrics: one metric or several, or their names, plain means of a rank weight.
        sparsity: in [0, 1); 0 leaves the full test set.
        draws: sparse test sets, at least 2.
        missing: how facts go missing.
        chunk: draws in one call, rounded up to whole blocks of 4 to 1,024 draws; memory does not depend on
            it but for the results: that of a block, about 25 MiB, and that of the tables.
        on_progress: called with (draws done, draws in all) after each call.

    Raises:
        ValueError: if an argument is out of range, or `full` lacks what `missing` needs.

    Examples:
        >>> import jax
        >>> from owkg.metrics import MRR
        >>> from owkg.simulate import full_test
        >>> full = full_test([0, 0, 1], [1, 4, 2], [1, 4, 2], [0.9, 0.2, 0.5])
        >>> result = redraw(jax.random.key(0), full, MRR, sparsity=0.3, draws=1000)
        >>> result.values.shape, result.full.tolist()
        ((1000, 1, 1), [[0.5625]])

    References:
        Yang, Lin, Zhang (NeurIPS 2022), section 6: the sparse test sets.
    """
    key = checked_key(key)
    measured = checked_metrics(metrics)
    if not isinstance(full, FullTest):
        raise ValueError(f"`full` must be made by full_test, got {full!r}.")
    beta = checks.scalar("sparsity", checks.real("sparsity", sparsity, 0, 1))
    if beta == 1:
        raise ValueError("`sparsity` must be in [0, 1), got 1.0.")
    count = checks.scalar("draws", checks.integer("draws", draws, 2))
    if count >= 2**32 - 2 * _LARGEST_BLOCK:
        raise ValueError(f"`draws` must be below 2**32, got {count}.")
    models, answers = full.score.shape
    block = _power_of_two(_BLOCK_ANSWERS // answers)
    if chunk is None:
        in_a_call = max(1, _CALL_ANSWERS // (models * answers))
    else:
        in_a_call = checks.scalar("chunk", checks.integer("chunk", chunk, 1))
    law = vanishing(full, missing, beta)
    layout = laid_out(full, measured, law.source)
    blocks = -(-count // block)
    calls = -(-blocks // max(1, in_a_call // block))
    blocks_a_call = -(-blocks // calls)
    values = np.empty((count, models, len(measured)), np.float32)
    questions = np.empty(count, np.int32)
    with jax.enable_x64(True):
        layout, parameters = jax.device_put((layout, law.parameters))
        for first in range(0, count, blocks_a_call * block):
            starts = np.minimum(first + block * np.arange(blocks_a_call), 2**32 - block).astype(np.uint32)
            found, left = redrawn_blocks(
                key, starts, parameters, layout, draw=law.draw, size=law.size, block=block
            )
            stop = min(first + blocks_a_call * block, count)
            drawn = np.moveaxis(np.asarray(found), -1, 1).reshape(-1, *values.shape[1:])
            values[first:stop] = drawn[: stop - first]
            questions[first:stop] = np.asarray(left).reshape(-1)[: stop - first]
            if on_progress is not None:
                on_progress(stop, count)
    some = values[questions > 0]
    mean, deviation = (np.full(values.shape[1:], np.nan) for _ in range(2))
    if len(some) > 0:
        mean = some.mean(0, dtype=np.float64)
    if len(some) > 1:
        deviation = some.std(0, ddof=1, dtype=np.float64)
    return Redrawn(measured, values, questions, _on_full_test(full, measured), mean, deviation)


def quantiles(redrawn: Redrawn, at: Any) -> Float64[np.ndarray, "quantiles models metrics"]:
    """Quantiles over the draws of what each model reads, [quantiles, models, metrics].

    Args:
        redrawn: of `redraw`.
        at: probabilities in [0, 1], one or several.

    Raises:
        ValueError: if a probability leaves its interval, or no draw has a mean.
    """
    probabilities = np.atleast_1d(checks.real("at", at, 0, 1))
    some = redrawn.values[redrawn.questions > 0]
    if not len(some):
        raise ValueError("`redrawn` must have a draw that leaves a question, got none.")
    return np.quantile(some.astype(np.float64), probabilities.reshape(-1), axis=0)


def _power_of_two(draws: int) -> int:
    return 1 << (min(max(draws, _LEAST_BLOCK), _LARGEST_BLOCK).bit_length() - 1)


def _on_full_test(full: FullTest, metrics: tuple[Metric, ...]) -> np.ndarray:
    _, question, counts = np.unique(full.question, return_inverse=True, return_counts=True)
    share = 1 / (counts[question] * len(counts))
    low, high = full.optimistic.reshape(-1), full.pessimistic.reshape(-1)
    weights = [tie_expectation(metric, low, high).reshape(full.optimistic.shape) for metric in metrics]
    return np.stack([weight @ share for weight in weights], axis=-1)
