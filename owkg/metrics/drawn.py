"""Chance levels by drawing random ranks, where no closed form is at hand; always with a standard error."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from owkg.keys import reproducible
from owkg.metrics.chance import DRAWS, Chance, affordable, of_draws
from owkg.metrics.sums import padded_size

# Ranks in memory at a time.
_CHUNK = 2**20


def weighted_mean(values: Float[Array, "tasks"], weight: Float[Array, "tasks"]) -> Float[Array, ""]:
    """The mean, of weights that sum to 1."""
    return jnp.sum(values * weight)


def weighted_median(
    ranks: Int[Array, "tasks"], weight: Float[Array, "tasks"], steps: int
) -> Float[Array, ""]:
    """The median of whole ranks, of weights that sum to 1, by halving the range 0 .. 2^steps of ranks.

    Where exactly half of the weight lies below, it is the mean of the two ranks in the middle.
    """

    def smallest(above: Float[Array, ""]) -> Float[Array, ""]:
        """The smallest rank up to which more than `above` of the weight lies."""

        def halve(_: Any, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = bounds
            middle = (low + high) // 2
            enough = jnp.sum(jnp.where(ranks <= middle, weight, 0.0)) > above
            return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

        return jax.lax.fori_loop(0, steps, halve, (jnp.int32(0), jnp.int32(2**steps)))[1].astype(float)

    # Sums of weights are known up to rounding.
    return (smallest(jnp.asarray(0.5 - 1e-9)) + smallest(jnp.asarray(0.5 + 1e-9))) / 2


@partial(jax.jit, static_argnames=("statistic", "draws", "batch"))
def _drawn(
    key: Array, statistic: Callable, candidates: Array, weight: Array, draws: int, batch: int
) -> Float[Array, "draws"]:
    def once(index: Array) -> Array:
        draw_key = jax.random.fold_in(key, index)
        ranks = jax.random.randint(draw_key, candidates.shape, 1, candidates + 1, jnp.int32)
        return statistic(ranks, weight)

    return jax.lax.map(once, jnp.arange(draws), batch_size=batch)


@reproducible
def drawn_chance(
    key: Any,
    statistic: Callable,
    candidates: np.ndarray,
    weight: np.ndarray | None = None,
    *,
    draws: int = DRAWS,
) -> Chance:
    """Mean and variance of a statistic of random ranks, with standard errors.

    Args:
        key: of `jax.random.key`, or what gives one; equal keys give equal results.
        statistic: (ranks [tasks], weights that sum to 1 [tasks]) -> number, written with `jax.numpy`; one
            object for one statistic, so that it is compiled once.
        candidates: of each task, below 2^31.
        weight: of each task; None: equal.
        draws: of a whole test set; fewer where they would take more than 134 million ranks in all.
    """
    key = key() if callable(key) else key
    # In an order of their own: which task a random number falls to does not depend on the rows of a table.
    order = np.argsort(candidates) if weight is None else np.lexsort((weight, candidates))
    candidates, weight = candidates[order], None if weight is None else weight[order]
    count = len(candidates)
    size = padded_size(count)
    draws = affordable(draws, size)
    share = np.zeros(size)
    share[:count] = 1 / count if weight is None else weight / weight.sum()
    padded = np.ones(size, np.int32)
    padded[:count] = candidates
    with jax.enable_x64(True):
        batch = max(1, _CHUNK // size)
        values = np.asarray(_drawn(key, statistic, jnp.asarray(padded), jnp.asarray(share), draws, batch))
    return of_draws(values)
