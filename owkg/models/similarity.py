"""How a query is compared with candidates: one by one, and all with all in bounded memory."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

_HIGHEST = jax.lax.Precision.HIGHEST


class Similarity(NamedTuple):
    """A comparison of queries with candidates; larger is more alike.

    Sums run in float32 at least, also over narrower numbers.

    Attributes:
        one: queries [..., d] and candidates [..., d], broadcast over the leading axes, give [...].
        all: queries [q, d] and candidates [c, d] give [q, c]; nothing of size [q, c, d] is ever made.
    """

    one: Callable[[Array, Array], Array]
    all: Callable[[Array, Array], Array]


def _sum_type(*arrays: Array) -> jnp.dtype:
    return jnp.result_type(*arrays, jnp.float32)


def _dot_one(query: Float[Array, "... d"], candidate: Float[Array, "... d"]) -> Float[Array, "..."]:
    return jnp.sum(query * candidate.astype(_sum_type(query, candidate)), axis=-1)


@jax.jit
def _dot_all(queries: Float[Array, "q d"], candidates: Float[Array, "c d"]) -> Float[Array, "q c"]:
    # At the highest precision: accelerators otherwise round float32 to fewer bits, and make ties of it.
    return jnp.einsum(
        "qd,cd->qc",
        queries,
        candidates,
        precision=_HIGHEST,
        preferred_element_type=_sum_type(queries, candidates),
    )


DOT = Similarity(_dot_one, _dot_all)
"""The dot product."""


def _fused(one: Callable[[Array, Array], Array]) -> Similarity:
    """All pairs by broadcasting: the compiler forms every difference inside of the sum that needs it."""
    return Similarity(one, jax.jit(lambda queries, candidates: one(queries[:, None], candidates)))


def _root(square: Array) -> Array:
    """The square root, whose derivative at 0 is 0 and not infinite."""
    positive = square > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1)), 0)


@cache
def minus_l1(margin: float = 0.0) -> Similarity:
    """margin - sum of |query - candidate|."""

    def one(query: Array, candidate: Array) -> Array:
        return margin - jnp.sum(jnp.abs(query - candidate), axis=-1, dtype=_sum_type(query, candidate))

    return _fused(one)


@cache
def minus_l2(margin: float = 0.0) -> Similarity:
    """margin - Euclidean length of query - candidate.

    Of differences, not by |q|^2 - 2 q.c + |c|^2, which loses half of the digits of near neighbours.
    """

    def one(query: Array, candidate: Array) -> Array:
        square = jnp.square(query - candidate)
        return margin - _root(jnp.sum(square, axis=-1, dtype=_sum_type(query, candidate)))

    return _fused(one)


@cache
def minus_moduli(margin: float = 0.0) -> Similarity:
    """margin - sum of the moduli of query - candidate, rows of d / 2 real parts, then d / 2 imaginary."""

    def one(query: Array, candidate: Array) -> Array:
        half = candidate.shape[-1] // 2
        real = query[..., :half] - candidate[..., :half]
        imaginary = query[..., half:] - candidate[..., half:]
        modulus = _root(jnp.square(real) + jnp.square(imaginary))
        return margin - jnp.sum(modulus, axis=-1, dtype=_sum_type(query, candidate))

    return _fused(one)


@cache
def minus_sines(margin: float = 0.0) -> Similarity:
    """margin - scale * sum of |sin(query - candidate)|; a query's column d + 1 is its scale."""

    def one(query: Array, candidate: Array) -> Array:
        angle, scale = query[..., :-1], query[..., -1]
        sine = jnp.abs(jnp.sin(angle - candidate))
        return margin - scale * jnp.sum(sine, axis=-1, dtype=_sum_type(query, candidate))

    return _fused(one)
