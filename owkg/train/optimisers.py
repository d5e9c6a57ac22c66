"""Optimisers as directions of unit learning rate, and schedules as factors of it."""

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from owkg.train.config import Training


def direction(config: Training) -> optax.GradientTransformation:
    """What gradients become before they are multiplied by the learning rate.

    Adagrad starts from sums of 0, as in Lacroix et al. 2018; its first gradients can be tiny, and so is eps.
    """
    if config.optimiser == "adagrad":
        return optax.scale_by_rss(initial_accumulator_value=0.0, eps=1e-30)
    return optax.scale_by_adam() if config.optimiser == "adam" else optax.identity()


def rate_factor(config: Training, step: Int[Array, ""], *, total: int, per_epoch: int) -> Float[Array, ""]:
    """The share of the learning rate that holds at `step`, in [0, 1].

    Args:
        config: its schedule, decay and warm-up.
        step: that is taken, from 0.
        total: steps of the training.
        per_epoch: steps an epoch.
    """
    done = step / total
    warm = jnp.minimum(1.0, (step + 1) / max(1, config.warmup_steps))
    return (
        warm
        * {
            "constant": jnp.ones(()),
            "linear": 1 - done,
            "cosine": (1 + jnp.cos(jnp.pi * done)) / 2,
            "drop": jnp.where(done < 0.5, 1.0, 0.1),
            "exponential": jnp.float32(config.decay) ** (step // per_epoch),
        }[config.schedule]
    )
