"""Filtered ranks of one query under the classification model, at a cost of O(answers)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from owkg.simulate.numerics import bounded, random_bits, unit_uniform


def classification_ranks(
    key: Key[Array, ""],
    missing: Bool[Array, "size"],
    missing_strength: Float[Array, "..."],
    test_strength: Float[Array, "..."],
    num_answers: Int[Array, ""],
    num_entities: Int[Array, ""],
) -> Int[Array, "size"]:
    """Filtered ranks of the test answers, in random order, in the first N - m slots; later slots are noise.

    Positives precede negatives, and each class is in uniformly random order. Missing answers and non-answers
    count towards a rank, other test answers do not. Therefore only the number of each kind matters, and the
    order is drawn one test answer at a time, as in Polya's urn. Suppose j test answers are placed among b
    others. The next one falls into one of the b + 1 gaps anew, or next to one of the j; all b + 1 + j places
    are equally likely. This draws exactly the random order of the whole class without placing the b others.

    Args:
        key: random key, consumed.
        missing: whether each answer is missing, [size]; True from N on.
        missing_strength, test_strength: l1 and l2, one number or one for each answer.
        num_answers: N.
        num_entities: candidates before filtering.
    """
    size = missing.shape[0]
    words = random_bits(key, 2 * size)
    predicted_words, order_words = words[:size], words[size:]
    slot = jnp.arange(size, dtype=jnp.int32)

    positive = unit_uniform(predicted_words) < jnp.where(missing, missing_strength, test_strength)
    exists = slot < num_answers
    num_missing = jnp.sum(missing & exists, dtype=jnp.int32)
    missing_ahead = jnp.sum(missing & exists & positive, dtype=jnp.int32)
    test_positives = jnp.sum(~missing & positive, dtype=jnp.int32)
    other_negatives = num_entities - num_answers + num_missing - missing_ahead

    # Slots 0 .. test_positives-1 hold the positive test answers, later slots the negative ones.
    is_positive = slot < test_positives
    class_start = jnp.where(is_positive, 0, test_positives)
    others = jnp.where(is_positive, missing_ahead, other_negatives)
    place = bounded(order_words, others + 1 + slot - class_start)
    fresh = place <= others
    rank = jnp.where(is_positive, 0, missing_ahead) + place + 1
    beside = jnp.where(fresh, slot, class_start + place - others - 1)

    def settle(i: Array, rank: Array) -> Array:
        return rank.at[i].set(rank[beside[i]])

    return jax.lax.fori_loop(jnp.int32(1), jnp.int32(size), settle, rank)
