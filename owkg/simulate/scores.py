"""Filtered ranks of one query under the score model, at a cost that depends on the answers only."""

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float, Int, Key


def score_ranks(
    key: Key[Array, ""],
    missing: Bool[Array, "size"],
    missing_shift: Float[Array, ""],
    test_shift: Float[Array, ""],
    num_answers: Int[Array, ""],
    num_entities: Int[Array, ""],
) -> Int[Array, "size"]:
    """Filtered ranks of the test answers, best first, in the first N - m slots; later slots are meaningless.

    The non-answers' scores are never drawn. Going down the answers in order of score, the number of
    non-answers between two of them is binomial, given how many are left below the upper one.

    Args:
        key: random key, consumed.
        missing: whether each answer is missing, [size]; True from N on.
        missing_shift, test_shift: mean scores of missing and of test answers.
        num_answers: N.
        num_entities: candidates before filtering.
    """
    score_key, between_key = jax.random.split(key)
    size = missing.shape[0]
    exists = jnp.arange(size, dtype=jnp.int32) < num_answers
    # Double precision, because a million non-answers make steps of 1e-7 in the tail count.
    noise = jax.random.normal(score_key, (size,), jnp.float64)
    score = jnp.where(missing, missing_shift, test_shift) + noise
    order = jnp.argsort(jnp.where(exists, -score, jnp.inf))
    score, missing, exists = score[order], missing[order], exists[order]
    log_below = norm.logcdf(score)

    def descend(state, answer):
        left, log_upper = state
        key, log_lower, exists = answer
        # P(below the upper score and above the lower one | below the upper one).
        # abs, because jax.random.binomial (0.10.2) never returns for a probability of -0.0.
        chance = jnp.abs(jnp.expm1(jnp.minimum(log_lower - log_upper, 0.0)))
        between = jax.random.binomial(key, left, jnp.where(exists, chance, 0.0), dtype=jnp.float64)
        left = left - between
        return (left, log_lower), left

    others = (num_entities - num_answers).astype(jnp.float64)
    keys = jax.random.split(between_key, size)
    start = (others, jnp.float64(0))
    _, left = jax.lax.scan(descend, start, (keys, log_below, exists))
    missing_ahead = jnp.cumsum(missing & exists, dtype=jnp.int32)
    rank = 1 + missing_ahead + (others - left).astype(jnp.int32)
    # Test answers to the front, best first.
    return rank[jnp.argsort(missing | ~exists, stable=True)]
