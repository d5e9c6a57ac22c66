"""Losses of queries from scores, where larger scores are more plausible."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def cross_entropy(
    scores: Float[Array, "q n"],
    answers: Float[Array, "q"],
    count: Float[Array, "q"],
    smoothing: Float[Array, ""],
) -> Float[Array, "q"]:
    """Cross-entropy of the softmax over all entities, [q].

        -sum_j y_j log softmax(scores)_j, where y = (1 - smoothing) [j answers] / count + smoothing / n

    The labels y are never formed: the loss is log sum exp - (1 - smoothing) answers / count - smoothing
    mean(scores). `answers` holds the sum of the scores of the answers of each query, and `count` their
    number.
    """
    hit = (1 - smoothing) * answers / count + smoothing * jnp.mean(scores, axis=-1)
    return jax.nn.logsumexp(scores, axis=-1) - hit


def bce(
    scores: Float[Array, "q n"],
    answers: Float[Array, "q"],
    count: Float[Array, "q"],
    smoothing: Float[Array, ""],
) -> Float[Array, "q"]:
    """Binary cross-entropy of every entity, averaged, [q].

        -mean_j [y log sigma(s) + (1 - y) log sigma(-s)], y_j = (1 - smoothing) [j answers] + smoothing / n

    Because log sigma(s) - log sigma(-s) = s, this is mean(softplus(s)) - mean(y s). The arguments are those
    of `cross_entropy`.
    """
    del count  # every answer is its own label
    n = scores.shape[-1]
    hit = (1 - smoothing) * answers + smoothing * jnp.mean(scores, axis=-1)
    return jnp.mean(jax.nn.softplus(scores), axis=-1) - hit / n


AGAINST_ALL = {"cross_entropy": cross_entropy, "bce": bce}
"""Losses against all entities, by name."""


def margin(
    positive: Float[Array, "q"], negative: Float[Array, "q k"], allowed: Bool[Array, "q k"], margin: float
) -> Float[Array, "q"]:
    """Margin loss over the allowed negatives (Bordes et al. 2013), [q].

        mean_k max(0, margin + negative_k - positive)

    `positive` and `negative` are scores; a negative counts where `allowed` is True.
    """
    return _mean(jax.nn.relu(margin + negative - positive[:, None]), allowed)


def logistic(
    positive: Float[Array, "q"], negative: Float[Array, "q k"], allowed: Bool[Array, "q k"]
) -> Float[Array, "q"]:
    """Mean logistic loss of the positive and of the allowed negatives, [q].

        -(log sigma(positive) + mean_k log sigma(-negative_k)) / 2

    `positive` and `negative` are scores; a negative counts where `allowed` is True.
    """
    return (jax.nn.softplus(-positive) + _mean(jax.nn.softplus(negative), allowed)) / 2


def binary(
    positive: Float[Array, "q"], negative: Float[Array, "q k"], allowed: Bool[Array, "q k"]
) -> Float[Array, "q"]:
    """Binary cross-entropy of the positive and the k allowed negatives, averaged, [q].

        -(log sigma(positive) + sum_k log sigma(-negative_k)) / (1 + k)

    `positive` and `negative` are scores; a negative counts where `allowed` is True.
    """
    wrong = jnp.sum(jnp.where(allowed, jax.nn.softplus(negative), 0), axis=-1)
    return (jax.nn.softplus(-positive) + wrong) / (1 + jnp.sum(allowed, axis=-1))


def self_adversarial(
    positive: Float[Array, "q"],
    negative: Float[Array, "q k"],
    allowed: Bool[Array, "q k"],
    temperature: float,
) -> Float[Array, "q"]:
    """Self-adversarial loss over the allowed negatives, [q].

        -(log sigma(positive) + sum_k p_k log sigma(-negative_k)) / 2, p = softmax(temperature negative)

    No gradient flows through p (Sun et al. 2019, equations 5 and 6).
    """
    logits = jnp.where(allowed, temperature * negative, -jnp.inf)
    raw = jnp.where(allowed, jnp.exp(logits - jnp.max(logits, axis=-1, keepdims=True)), 0)
    # The largest term is 1, so a sum below 1 means that no negative is allowed.
    weight = raw / jnp.maximum(jnp.sum(raw, axis=-1, keepdims=True), 1)
    weighted = jax.lax.stop_gradient(weight) * jax.nn.softplus(negative)
    return (jax.nn.softplus(-positive) + jnp.sum(weighted, axis=-1)) / 2


def _mean(values: Float[Array, "q k"], allowed: Bool[Array, "q k"]) -> Float[Array, "q"]:
    """Mean of the allowed values; 0 if none is allowed."""
    return jnp.sum(jnp.where(allowed, values, 0), axis=-1) / jnp.maximum(jnp.sum(allowed, axis=-1), 1)
