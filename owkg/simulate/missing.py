"""Draws of the missing answers of one query, given that at least one answer is not missing."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array, Bool, Float, Int, Key

from owkg.errors import ArgumentError
from owkg.openworld import Independent, MissingModel, NodeBased, PopularityBased, Setting
from owkg.openworld.missing import node_location, popularity_probabilities
from owkg.simulate.numerics import random_bits, unit_uniform


def parameters(missing: MissingModel, setting: Setting, size: int) -> np.ndarray:
    """Parameters that `draw_missing` needs for each setting, one float32 array `[*grid, ...]`.

    Raises:
        ValueError: if `missing` is none of the three models.
    """
    if isinstance(missing, Independent):
        return np.asarray(setting.sparsity, np.float32)
    if isinstance(missing, NodeBased):
        location = node_location(setting.sparsity, missing.spread)
        return np.stack([location, np.sqrt(1 - setting.sparsity)], axis=-1).astype(np.float32)
    if isinstance(missing, PopularityBased):
        table = popularity_probabilities(setting.sparsity, setting.num_answers, missing.exponent, size)
        return table.astype(np.float32)
    raise ArgumentError("missing", f"must be one of the models of owkg.openworld, got {missing!r}.")


def draw_missing(
    key: Key[Array, ""],
    missing: MissingModel,
    parameter: Float[Array, "..."],
    num_answers: Int[Array, ""],
    size: int,
) -> Bool[Array, "size"]:
    """Whether each answer is missing; True from `num_answers` (N, at most `size`) on; at least one is False.

    Consumes `key`. `parameter` holds the `parameters` of one setting. `missing` and `size` are static.
    """
    exists = jnp.arange(size, dtype=jnp.int32) < num_answers
    if isinstance(missing, NodeBased):
        node_key, key = jax.random.split(key)
        parameter = probability_of_query(node_key, missing, parameter, num_answers)
    return _not_all_missing(key, jnp.where(exists, parameter, jnp.float32(1)))


def probability_of_query(
    key: Key[Array, ""],
    missing: NodeBased,
    parameter: Float[Array, "2"],
    num_answers: Int[Array, ""],
    shape: tuple[int, ...] = (),
) -> Float[Array, "*shape"]:
    """Probability that an answer is missing, given the query entity, which is drawn; consumes `key`.

    `shape` is that of the queries, and static.
    """
    location, answer_survival = parameter
    query = _query_survival(key, location, missing.spread, answer_survival, num_answers, shape)
    # Survival probability of an answer given the query entity, averaged over the answer's own entity.
    return 1 - query * answer_survival


def _not_all_missing(key: Key[Array, ""], probability: Float[Array, "size"]) -> Bool[Array, "size"]:
    """Independent events with the given probabilities, conditioned on at least one of them not happening.

    Up to the first answer that is not missing, answer i is missing with probability
    p_i (1 - p_{i+1} ... p_n) / (1 - p_i ... p_n); after that, with p_i. No draw is rejected.
    """
    log_all = jnp.flip(jnp.cumsum(jnp.flip(jnp.log(probability))))  # log p_i ... p_n
    log_rest = jnp.append(log_all[1:], jnp.float32(0))
    some_left, some_left_after = -jnp.expm1(log_all), -jnp.expm1(log_rest)
    before = jnp.where(some_left > 0, probability * some_left_after / some_left, 1)
    drawn = unit_uniform(random_bits(key, probability.shape[0]))
    position = jnp.arange(probability.shape[0], dtype=jnp.int32)
    first = jnp.argmax(drawn >= before).astype(jnp.int32)
    return (position < first) | ((position > first) & (drawn < probability))


def _query_survival(
    key: Key[Array, ""],
    location: Float[Array, ""],
    spread: float,
    answer_survival: Float[Array, ""],
    num_answers: Int[Array, ""],
    shape: tuple[int, ...],
) -> Float[Array, "*shape"]:
    """Survival probability q of query entities, given that at least one answer is left.

    The distribution is N(location, spread) cut to [0, 1], reweighted by a(q) = 1 - (1 - q answer_survival)^N.
    Proposals are drawn above 0, because a(0) = 0, and accepted with a(q) / a(largest proposal). Draws go on
    until every query has one.
    """
    above_zero = ndtr(location / spread)

    def some_left(q: Array) -> Array:
        return -jnp.expm1(num_answers * jnp.log1p(-q * answer_survival))

    def proposed(share: Array) -> Array:
        return jnp.clip(location - spread * ndtri(share * above_zero), 0, 1)

    # Shares are half a step above multiples of 2^-24, because the proposal of 0 would be 1.
    half = jnp.float32(2**-25)
    largest = some_left(proposed(half))

    def again(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        key, accepted, kept = state
        key, draw_key = jax.random.split(key)
        words = random_bits(draw_key, 2 * math.prod(shape))
        proposal, chance = unit_uniform(words).reshape(2, *shape)
        q = proposed(proposal + half)
        fits = chance * largest < some_left(q)
        return key, accepted | fits, jnp.where(accepted, kept, q)

    start = (key, jnp.zeros(shape, bool), jnp.zeros(shape, jnp.float32))
    return jax.lax.while_loop(lambda state: ~jnp.all(state[1]), again, start)[2]
