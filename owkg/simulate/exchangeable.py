"""Queries of one model whose answers are exchangeable, by two random words an answer and one a query.

Under the classification model, answers that are missing and predicted with the same probabilities are
exchangeable, also given that at least one of them is not missing. So their order by index is a uniformly
random order, and within the positives it needs no draw: the rank of a positive test answer is one more than
the number of missing positives before it. The negative test answers stand among many other candidates. Their
places are drawn one at a time, as in `owkg.simulate.classification`.

Arrays have the axes [answers, blocks, trials].
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, UInt32

from owkg.openworld import Classification, Independent, MissingModel, NodeBased, PredictionModel
from owkg.rank_weights import RankWeight
from owkg.simulate import missing as missing_facts
from owkg.simulate.numerics import bounded, random_bits


def is_exchangeable(missing: MissingModel, prediction: PredictionModel, models: int) -> bool:
    """Whether the answers are exchangeable, and so `exchangeable_metrics` draws the same law.

    Several models share the missing facts but not their orders, so they need an order for each.
    """
    return (
        isinstance(prediction, Classification)
        and isinstance(missing, Independent | NodeBased)
        and models == 1
    )


def exchangeable_metrics(
    keys: Key[Array, "blocks"],
    trials: int,
    metrics: Sequence[RankWeight],
    missing: MissingModel,
    size: int,
    small: bool,
    missing_strength: Float[Array, "blocks"],
    test_strength: Float[Array, "blocks"],
    parameter: Float[Array, "blocks ..."],
    num_answers: Int[Array, "blocks"],
    num_entities: Int[Array, "blocks"],
) -> Float[Array, "metrics blocks trials"]:
    """Metrics of one model on random queries, a block of them for each key.

    Args:
        keys: random keys, consumed.
        trials: queries in a block; static.
        metrics, missing, size: static; `size` is at least N.
        small: static; whether all numbers of candidates are below 2^16, which is faster.
        missing_strength, test_strength: l1 and l2 of each block.
        parameter: parameters of the missing-fact model of each block.
        num_answers: N of each block.
        num_entities: candidates before filtering, of each block.
    """
    answers = num_answers[:, None]
    shape = len(keys), trials
    if isinstance(missing, NodeBased):
        split = jax.vmap(jax.random.split)(keys)
        of_queries = jax.vmap(missing_facts.probability_of_query, (0, None, 0, 0, None))
        probability, keys = of_queries(split[:, 0], missing, parameter, num_answers, (trials,)), split[:, 1]
    else:
        probability = parameter[:, None]
    drawn = 2 * size + 1
    words = jax.vmap(lambda key: random_bits(key, drawn * trials).reshape(drawn, trials), out_axes=1)(keys)
    missing_positive, test_positive, test_negative, num_missing = _kinds(
        words[:size],
        _first_test(words[-1], probability, answers),
        probability,
        missing_strength[:, None],
        test_strength[:, None],
        answers,
    )

    def weights(rank: Array, counted: Array) -> Array:
        ranks = jnp.where(counted, rank, 1).astype(jnp.float32)
        each = jnp.stack([metric.weight(ranks).astype(jnp.float32) for metric in metrics])
        return jnp.where(counted, each, 0).astype(jnp.float64)

    def one_positive(
        state: tuple[Array, Array], row: tuple[Array, Array]
    ) -> tuple[tuple[Array, Array], None]:
        ahead, total = state
        is_ahead, is_test = row
        return (ahead + is_ahead, total + weights(ahead + 1, is_test)), None

    start = jnp.zeros(shape, jnp.int32), jnp.zeros((len(metrics), *shape), jnp.float64)
    (missing_ahead, total), _ = jax.lax.scan(one_positive, start, (missing_positive, test_positive))
    negatives = jnp.sum(test_negative, axis=0, dtype=jnp.int32)
    others = num_entities[:, None] - answers + num_missing - missing_ahead
    place = _places(words[size:-1], others, negatives, small)

    def one_negative(state: tuple[Array, Array], place: Array) -> tuple[tuple[Array, Array], None]:
        number, total = state
        return (number + 1, total + weights(missing_ahead + place + 1, number < negatives)), None

    (_, total), _ = jax.lax.scan(one_negative, (jnp.int32(0), total), place)
    return total / (jnp.sum(test_positive, axis=0, dtype=jnp.int32) + negatives)


def _first_test(
    word: UInt32[Array, "blocks trials"],
    probability: Float[Array, "blocks #trials"],
    answers: Int[Array, "blocks 1"],
) -> Int[Array, "blocks trials"]:
    """Index of the first answer that is not missing, given that some answer is not.

    The index is geometric and below N: it is at least i with probability (p^i - p^N) / (1 - p^N).
    """
    log = jnp.log(probability.astype(jnp.float32))
    share = ((word >> 8).astype(jnp.float32) + 0.5) * jnp.float32(2**-24)
    index = jnp.log1p(share * jnp.expm1(answers * log)) / log
    # If all answers are missing but for less than the precision, each is equally likely to be the first.
    index = jnp.where(log < 0, index, share * answers)
    return jnp.minimum(index.astype(jnp.int32), answers - 1)


def _kinds(
    words: UInt32[Array, "size blocks trials"],
    first: Int[Array, "blocks trials"],
    probability: Float[Array, "blocks #trials"],
    missing_strength: Float[Array, "blocks 1"],
    test_strength: Float[Array, "blocks 1"],
    answers: Int[Array, "blocks 1"],
) -> tuple[
    Bool[Array, "size blocks trials"],
    Bool[Array, "size blocks trials"],
    Bool[Array, "size blocks trials"],
    Int[Array, "blocks trials"],
]:
    """Missing positives, test positives and test negatives, and the number of missing answers.

    Answers before the first test answer are missing. After it, one word decides both whether an answer is
    missing and whether it is positive, because it is uniform below and above the first threshold. All
    thresholds are multiples of 2^-24.
    """
    slot = jnp.arange(words.shape[0], dtype=jnp.int32)[:, None, None]
    exists, before, is_first = slot < answers, slot < first, slot == first
    shares = (
        missing_strength,
        test_strength,
        probability,
        probability * missing_strength,
        probability + (1 - probability) * test_strength,
    )
    # The barrier keeps them from being computed again for every answer.
    surely_missing, surely_test, later, missing_later, test_later = jax.lax.optimization_barrier(
        tuple(jnp.round(share.astype(jnp.float64) * 2**24).astype(jnp.int32) for share in shares)
    )
    drawn = (words >> 8).astype(jnp.int32)
    missing = exists & (before | ((drawn < later) & ~is_first))
    of_missing = jnp.where(before, surely_missing, missing_later)
    of_test = jnp.where(is_first, surely_test, test_later)
    positive = drawn < jnp.where(missing, of_missing, of_test)
    test = exists & ~missing
    return missing & positive, test & positive, test & ~positive, jnp.sum(missing, axis=0, dtype=jnp.int32)


def _places(
    words: UInt32[Array, "size blocks trials"],
    others: Int[Array, "blocks trials"],
    count: Int[Array, "blocks trials"],
    small: bool,
) -> Int[Array, "size blocks trials"]:
    """Number of others before each of `count` test answers in a random order of both; later slots are noise.

    As in `owkg.simulate.classification.classification_ranks`: answer j falls into one of the gaps of the
    others anew, or next to one of the j answers before it. The latter is rare among many others, so that a
    slot is looked through only if it happens in some trial.
    """
    slot = jnp.arange(words.shape[0], dtype=jnp.int32)[:, None, None]
    place = bounded(words, others + 1 + slot, small=small)
    beside = (slot < count) & (place > others)
    happens = jnp.any(beside, axis=(1, 2))
    of = jnp.maximum(place - others - 1, 0)

    def settle(i: Array, place: Array) -> Array:
        def copied(place: Array) -> Array:
            same = jnp.take_along_axis(place, of[i][None], axis=0)[0]
            return place.at[i].set(jnp.where(beside[i], same, place[i]))

        return jax.lax.cond(happens[i], copied, lambda place: place, place)

    return jax.lax.fori_loop(jnp.int32(1), jnp.int32(words.shape[0]), settle, place)
