"""Kernels over questions: random signs, random subsets."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64, Int, Int64, Key, UInt32

from owkg.simulate.words import random_words

BLOCK = 128
"""Draws of signs that share a key; part of the result's definition."""


@partial(jax.jit, static_argnames=("blocks",))
def far_flips(
    key: Key[Array, ""],
    start: Int[Array, ""] | int,
    draws: Int[Array, ""] | int,
    each: Float64[Array, "questions systems"],
    tolerance: Float64[Array, "pairs"] | Any,
    *,
    blocks: int,
) -> Int64[Array, "pairs"]:
    """How many of `draws` are at least as far from 0 as what was observed, of some blocks of draws."""
    questions, systems = each.shape
    first, second = np.triu_indices(systems, 1)
    total = each.sum(0)
    observed = jnp.abs(total[first] - total[second]) - tolerance

    def one_block(block: Array) -> Array:
        drawn = random_words(jax.random.fold_in(key, block), BLOCK * questions // 32)
        # The questions whose sign stays; those that are flipped count as often with the other sign.
        stays = _bits(drawn).reshape(BLOCK, questions).astype(each.dtype)
        sums = 2 * (stays @ each) - total
        far = jnp.abs(sums[:, first] - sums[:, second]) >= observed
        real = block * BLOCK + jnp.arange(BLOCK) < draws
        return (far & real[:, None]).sum(0)

    return jax.lax.map(one_block, start + jnp.arange(blocks)).sum(0)


def _bits(words: UInt32[Array, "words"]) -> UInt32[Array, "words 32"]:
    return (words[:, None] >> jnp.arange(32, dtype=jnp.uint32)) & 1


@partial(jax.jit, static_argnames=("draws",))
def subset_sums(
    key: Key[Array, ""],
    start: Int[Array, ""] | int,
    taken: Int[Array, "sizes"] | Any,
    columns: Float64[Array, "columns questions"],
    *,
    draws: int,
) -> Float64[Array, "draws sizes columns"]:
    """Sums of the columns over the first `taken` questions of a random order, for each draw."""

    def once(draw: Array) -> Array:
        # Questions with the smallest words come first; of 64 bits, no two are equal.
        word = jax.random.bits(jax.random.fold_in(key, draw), columns.shape[1:], jnp.uint64)
        last = jnp.sort(word)[taken - 1]
        drawn = (word <= last[:, None]).astype(columns.dtype)
        return drawn @ columns.T

    return jax.lax.map(once, start + jnp.arange(draws))
