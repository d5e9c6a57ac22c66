"""Negative entities, drawn at random."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int


def unknown(
    key: Array,
    answers: Int[Array, "facts"],
    start: Int[Array, "q"],
    stop: Int[Array, "q"],
    *,
    num_negatives: int,
    num_entities: int,
    most: int,
) -> Int[Array, "q k"]:
    """Entities drawn uniformly from those that are not known answers, without rejection, [q, k].

    For the answers a_0 < a_1 < ... of a query, the u-th entity that is not an answer is u + #{i : a_i - i <=
    u}. Because a_i - i never decreases, a binary search finds it. The answers of a query,
    `answers[start:stop]`, must be increasing, at most `most`, and fewer than the entities.
    """
    start, stop = start[:, None], stop[:, None]
    shape = (start.shape[0], num_negatives)
    u = jax.random.randint(key, shape, 0, num_entities - (stop - start))
    return u + _first(lambda at: answers[at] - (at - start) > u, start, stop, most, shape) - start


def known(
    candidates: Int[Array, "k"],
    answers: Int[Array, "facts"],
    start: Int[Array, "q"],
    stop: Int[Array, "q"],
    *,
    most: int,
) -> Bool[Array, "q k"]:
    """Whether each candidate is a known answer of each query; arguments as in `unknown`."""
    start, stop = start[:, None], stop[:, None]
    at = _first(
        lambda at: answers[at] >= candidates, start, stop, most, (start.shape[0], candidates.shape[0])
    )
    return (at < stop) & (answers[jnp.minimum(at, len(answers) - 1)] == candidates)


def _first(
    true_at: Callable[[Array], Array], start: Array, stop: Array, most: int, shape: tuple[int, ...]
) -> Int[Array, "q k"]:
    """First place in [start, stop) from which `true_at` holds; `stop` if it holds nowhere."""
    low, high = jnp.broadcast_to(start, shape), jnp.broadcast_to(stop, shape)
    for _ in range(most.bit_length()):
        middle = (low + high) // 2
        here = true_at(jnp.minimum(middle, stop - 1))
        low, high = jnp.where((low < high) & ~here, middle + 1, low), jnp.where(here, middle, high)
    return low
