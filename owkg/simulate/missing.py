"""Draws which answers of one query are missing, given that at least one is not."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from owkg.openworld import Independent, MissingModel, NodeBased, PopularityBased, Setting
from owkg.openworld.missing import node_location, popularity_probabilities
from owkg.simulate.words import random_words, uniform


def parameters(missing: MissingModel, setting: Setting, size: int) -> np.ndarray:
    """What `draw_missing` needs of each setting, as one float32 array `[*grid, ...]`.

    Raises:
        ValueError: if `missing` is none of the three models.
    """
    if isinstance(missing, Independent):
        return np.asarray(setting.sparsity, np.float32)
    if isinstance(missing, NodeBased):
        return np.asarray(node_location(setting.sparsity, missing.spread), np.float32)
    if isinstance(missing, PopularityBased):
        table = popularity_probabilities(setting.sparsity, setting.num_answers, missing.exponent, size)
        return table.astype(np.float32)
    raise ValueError(f"`missing` must be one of the models of owkg.openworld, got {missing!r}.")


def draw_missing(
    key: Key[Array, ""],
    missing: MissingModel,
    parameter: Float[Array, "..."],
    num_answers: Int[Array, ""],
    size: int,
) -> Bool[Array, "size"]:
    """Whether each answer is missing; True from `num_answers` on; at least one entry is False.

    Args:
        key: consumed.
        missing: the missing-fact model; static.
        parameter: what `parameters` gives, for one setting.
        num_answers: N, at most `size`.
        size: static length.
    """
    exists = jnp.arange(size, dtype=jnp.int32) < num_answers
    if isinstance(missing, NodeBased):
        node_key, key = jax.random.split(key)
        probability = _node_probabilities(node_key, parameter, missing.spread, exists)
    else:
        probability = jnp.where(exists, parameter, jnp.float32(1))
    return _not_all_missing(key, probability)


def _not_all_missing(key: Key[Array, ""], probability: Float[Array, "size"]) -> Bool[Array, "size"]:
    """Independent events of the given probabilities, conditioned on not all of them happening.

    Up to the first answer that is not missing, answer i is missing with probability
    p_i (1 - p_{i+1} ... p_n) / (1 - p_i ... p_n); after it, with p_i. No draw is thrown away.
    """
    log_all = jnp.flip(jnp.cumsum(jnp.flip(jnp.log(probability))))  # log p_i ... p_n
    log_rest = jnp.append(log_all[1:], jnp.float32(0))
    some_left, some_left_after = -jnp.expm1(log_all), -jnp.expm1(log_rest)
    before = jnp.where(some_left > 0, probability * some_left_after / some_left, 1)
    drawn = uniform(random_words(key, probability.shape[0]))
    position = jnp.arange(probability.shape[0], dtype=jnp.int32)
    first = jnp.argmax(drawn >= before).astype(jnp.int32)
    return (position < first) | ((position > first) & (drawn < probability))


def _node_probabilities(
    key: Key[Array, ""], location: Array, spread: float, exists: Bool[Array, "size"]
) -> Float[Array, "size"]:
    """P(missing) of each answer from its two entities, weighted by the chance that some answer is left.

    Entities are redrawn until they pass that chance; each try passes with at least 1 - sparsity.
    """

    def draw(key: Key[Array, ""]) -> tuple[Array, Array]:
        query_key, answer_key, accept_key = jax.random.split(key, 3)
        query = location + spread * jax.random.normal(query_key, (), jnp.float32)
        answers = location + spread * jax.random.normal(answer_key, exists.shape, jnp.float32)
        survival = jnp.clip(query, 0, 1) * jnp.clip(answers, 0, 1)
        probability = jnp.where(exists, 1 - survival, 1)
        some_left = -jnp.expm1(jnp.sum(jnp.log(probability)))
        return jax.random.uniform(accept_key, (), jnp.float32) < some_left, probability

    def again(state):
        key, _, _ = state
        next_key, draw_key = jax.random.split(key)
        return next_key, *draw(draw_key)

    start = (key, jnp.array(False), jnp.ones(exists.shape, jnp.float32))
    return jax.lax.while_loop(lambda state: ~state[1], again, start)[2]
