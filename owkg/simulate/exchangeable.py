"""Queries of one model whose answers are exchangeable, by few random words for each query.

Under the classification model, answers that are missing and predicted with the same probabilities are
exchangeable, also given that at least one of them is not missing. So their order by index is a uniformly
random order, and within the positives it needs no draw: the rank of a positive test answer is one more than
the number of missing positives before it. The negative test answers stand among many other candidates. Their
places are drawn one at a time, as in `owkg.simulate.classification`, for as many as some query has.

A query takes one word for its first test answer, one for each answer and one for each of these places.

Arrays have the axes [answers, blocks, trials].
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, UInt32

from owkg.openworld import Classification, Independent, MissingModel, NodeBased, PredictionModel
from owkg.rank_weights import RankWeight
from owkg.simulate import missing as missing_facts
from owkg.simulate.numerics import bounded, random_bits, unit_uniform

# Places that are drawn together.
_TOGETHER = 4


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
    keys, place_keys = jnp.moveaxis(jax.vmap(jax.random.split)(keys), 1, 0)
    if isinstance(missing, NodeBased):
        keys, query_keys = jnp.moveaxis(jax.vmap(jax.random.split)(keys), 1, 0)
        of_queries = jax.vmap(missing_facts.probability_of_query, (0, None, 0, 0, None))
        probability = of_queries(query_keys, missing, parameter, num_answers, (trials,))
    else:
        probability = parameter[:, None]
    words = _words(keys, size + 1, trials)
    missing_positive, test_positive, test_negative, num_missing = _kinds(
        words[:size],
        _first_test(words[size], probability, answers),
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
    most = jnp.max(negatives)
    place = _places(place_keys, (-(-size // _TOGETHER) * _TOGETHER, *shape), others, negatives, most, small)

    def one_negative(i: Array, total: Array) -> Array:
        return total + weights(missing_ahead + place[i] + 1, i < negatives)

    total = jax.lax.fori_loop(jnp.int32(0), most, one_negative, total)
    return total / (jnp.sum(test_positive, axis=0, dtype=jnp.int32) + negatives)


def _words(keys: Key[Array, "blocks"], count: int, trials: int) -> UInt32[Array, "count blocks trials"]:
    """`count` words for each trial."""
    return jax.vmap(lambda key: random_bits(key, count * trials).reshape(count, trials), out_axes=1)(keys)


def _first_test(
    word: UInt32[Array, "blocks trials"],
    probability: Float[Array, "blocks #trials"],
    answers: Int[Array, "blocks 1"],
) -> Int[Array, "blocks trials"]:
    """Index of the first answer that is not missing, given that some answer is not.

    The index is geometric and below N: it is at least i with probability (p^i - p^N) / (1 - p^N).
    """
    log = jnp.log(probability.astype(jnp.float32))
    share = unit_uniform(word)
    index = jnp.log1p(share * jnp.expm1(answers * log)) / log
    # If p rounds to 1, each answer is equally likely to be the first.
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
    keys: Key[Array, "blocks"],
    shape: tuple[int, int, int],
    others: Int[Array, "blocks trials"],
    count: Int[Array, "blocks trials"],
    most: Int[Array, ""],
    small: bool,
) -> Int[Array, "size blocks trials"]:
    """Number of others before each of `count` test answers in a random order of both; later slots are noise.

    As in `owkg.simulate.classification.classification_ranks`: answer j falls into one of the gaps of the
    others anew, or next to one of the j answers before it. The latter is rare among many others, so that a
    slot is looked through only if it happens in some trial. Slots from `most` on, the largest count, are not
    drawn.
    """

    def drawn(group: Array, place: Array) -> Array:
        own = jax.vmap(lambda key: jax.random.fold_in(key, group))(keys)
        slot = group * _TOGETHER + jnp.arange(_TOGETHER, dtype=jnp.int32)[:, None, None]
        new = bounded(_words(own, _TOGETHER, shape[2]), others + 1 + slot, small=small)
        beside = (slot < count) & (new > others)
        happens = jnp.any(beside, axis=(1, 2))
        place = jax.lax.dynamic_update_slice_in_dim(place, new, slot[0, 0, 0], axis=0)

        def settle(j: Array, place: Array) -> Array:
            def copied(place: Array) -> Array:
                of = jnp.maximum(new[j] - others - 1, 0)
                same = jnp.take_along_axis(place, of[None], axis=0)[0]
                return place.at[slot[j, 0, 0]].set(jnp.where(beside[j], same, new[j]))

            return jax.lax.cond(happens[j], copied, lambda place: place, place)

        return jax.lax.fori_loop(jnp.int32(0), jnp.int32(_TOGETHER), settle, place)

    groups = (most + _TOGETHER - 1) // _TOGETHER
    return jax.lax.fori_loop(jnp.int32(0), groups, drawn, jnp.zeros(shape, jnp.int32))
