"""How a query is compared with candidates: one by one, and all with all in bounded memory."""

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# Of products of float32 matrices: accelerators otherwise round to fewer bits, and make ties of it.
HIGHEST = jax.lax.Precision.HIGHEST


# Dimensions summed in one pass over the scores: their terms stay in registers.
_DIMENSIONS = 16


class Similarity(NamedTuple):
    """A comparison of queries with candidates; larger is more alike.

    Sums run in float32 at least, also over narrower numbers.

    Attributes:
        one: queries [..., d] and candidates [..., d], broadcast over the leading axes, give [...].
        all: queries [q, d] and candidates [c, d] give [q, c]; nothing of size [q, c, d] is ever made.
        tiles: queries [q, d] and tiles of candidates [t, c, d] give [t, q, c]: of each tile, to the last bit,
            what `all` gives.
    """

    one: Callable[[Array, Array], Array]
    all: Callable[[Array, Array], Array]
    tiles: Callable[[Array, Array], Array]


def _dot_one(query: Float[Array, "... d"], candidate: Float[Array, "... d"]) -> Float[Array, "..."]:
    return jnp.sum(query * candidate.astype(_sum_type(query, candidate)), axis=-1)


@jax.jit
def _dot_all(queries: Float[Array, "q d"], candidates: Float[Array, "c d"]) -> Float[Array, "q c"]:
    wide = _sum_type(queries, candidates)
    return jnp.einsum("qd,cd->qc", queries, candidates, precision=HIGHEST, preferred_element_type=wide)


def _dot_tiles(queries: Float[Array, "q d"], tiles: Float[Array, "t c d"]) -> Float[Array, "t q c"]:
    # A batch of products is written in its place; a loop over tiles would copy each.
    return jax.vmap(_dot_all)(jnp.broadcast_to(queries, (len(tiles), *queries.shape)), tiles)


DOT = Similarity(_dot_one, _dot_all, _dot_tiles)
"""The dot product."""


def by_products(
    parts: Callable[[Array], tuple[tuple[Array, ...], tuple[Array, ...]]],
    candidate_parts: Callable[[Array], tuple[tuple[Array, ...], tuple[Array, ...]]],
    finish: Callable[[tuple[Array, ...], tuple[Array, ...], tuple[Array, ...]], Array],
) -> Similarity:
    """A function of a few dot products, and of a few numbers of the query and of the candidate.

    Args:
        parts: from queries [..., d] to (vectors [..., k], numbers [...]).
        candidate_parts: the same of candidates, with as many vectors.
        finish: (dot products, numbers of queries, numbers of candidates) to scores, elementwise.
    """

    def widened(rows: Array, other: Array) -> Array:
        return rows.astype(_sum_type(rows, other))

    def one(query: Array, candidate: Array) -> Array:
        (own, numbers), (vectors, others) = (
            parts(widened(query, candidate)),
            candidate_parts(widened(candidate, query)),
        )
        return finish(tuple(_dot_one(a, b) for a, b in zip(own, vectors, strict=True)), numbers, others)

    @jax.jit
    def every(queries: Array, candidates: Array) -> Array:
        (own, numbers), (vectors, others) = (
            parts(widened(queries, candidates)),
            candidate_parts(widened(candidates, queries)),
        )
        dots = tuple(_dot_all(a, b) for a, b in zip(own, vectors, strict=True))
        return finish(dots, tuple(x[:, None] for x in numbers), tuple(x[None, :] for x in others))

    def tiles(queries: Array, tiles: Array) -> Array:
        return jax.lax.map(partial(every, queries), tiles)

    return Similarity(one, every, tiles)


def _with_square(rows: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Points and biases, to points, and their squared length less the bias."""
    point = rows[..., :-1]
    return (point,), (jnp.sum(jnp.square(point), axis=-1) - rows[..., -1],)


MINUS_SQUARES = by_products(
    _with_square, _with_square, lambda dots, own, others: 2 * dots[0] - own[0] - others[0]
)
"""-|q - c|^2 + b_q + b_c, of points and, in the last column, biases.

By 2 q.c - |q|^2 - |c|^2, which loses digits of near neighbours, with products of float32: enough where biases
tell answers apart, and as fast as a product.
"""


@cache
def minus_l1(margin: float) -> Similarity:
    """margin - sum of |query - candidate|."""
    return _minus(margin, 1, lambda query, candidate: jnp.abs(query - candidate))


@cache
def minus_l2(margin: float) -> Similarity:
    """margin - Euclidean length of query - candidate.

    Of differences, not by |q|^2 - 2 q.c + |c|^2, which loses half of the digits of near neighbours.
    """
    return _minus(margin, 1, lambda query, candidate: jnp.square(query - candidate), root)


@cache
def minus_moduli(margin: float) -> Similarity:
    """margin - sum of the moduli of query - candidate; rows hold d / 2 real parts, then the imaginary."""

    def modulus(query_re: Array, query_im: Array, re: Array, im: Array) -> Array:
        return root(jnp.square(query_re - re) + jnp.square(query_im - im))

    return _minus(margin, 2, modulus)


@cache
def minus_sines(margin: float) -> Similarity:
    """margin - sum of |sin| of the angles between query and candidate, times both their lengths.

    Rows hold d / 2 cosines, then the sines: sin(a - b) = sin a cos b - cos a sin b, no sine a pair.
    """

    def sine(query_cos: Array, query_sin: Array, cos: Array, sin: Array) -> Array:
        return jnp.abs(query_sin * cos - query_cos * sin)

    return _minus(margin, 2, sine)


@cache
def minus_scaled(margin: float, norm: int) -> Similarity:
    """margin - the L1 or L2 length of a - b candidate; queries hold a, then b."""

    def term(a: Array, b: Array, candidate: Array) -> Array:
        apart = a - b * candidate
        return jnp.abs(apart) if norm == 1 else jnp.square(apart)

    return _minus(margin, 2, term, *([] if norm == 1 else [root]), candidate_parts=1)


def beside(first: Similarity, second: Similarity, columns: tuple[int, int]) -> Similarity:
    """The sum of two, over the first so many columns of queries and of candidates, and over the others."""

    def both(query: Array, candidate: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        q, c = columns
        return (query[..., :q], candidate[..., :c]), (query[..., q:], candidate[..., c:])

    def summed(how: str) -> Callable[[Array, Array], Array]:
        def total(query: Array, candidate: Array) -> Array:
            one, other = both(query, candidate)
            return getattr(first, how)(*one) + getattr(second, how)(*other)

        return total

    return Similarity(*map(summed, Similarity._fields))


def root(square: Array) -> Array:
    """The square root, whose derivative at 0 is 0 and not infinite."""
    positive = square > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1)), 0)


def _sum_type(*arrays: Array) -> jnp.dtype:
    return jnp.result_type(*arrays, jnp.float32)


def _minus(
    margin: float,
    parts: int,
    term: Callable[..., Array],
    finish: Callable[[Array], Array] = lambda total: total,
    candidate_parts: int | None = None,
) -> Similarity:
    """margin - finish(sum of `term` over dimensions).

    A row has so many `parts`, such as real and imaginary, that of a candidate perhaps others; `term`,
    elementwise, takes those of the query, then those of the candidate, and is 0 where all are.
    """
    others = parts if candidate_parts is None else candidate_parts

    def one(query: Array, candidate: Array) -> Array:
        wide = _sum_type(query, candidate)
        pair = (jnp.split(x.astype(wide), n, axis=-1) for x, n in ((query, parts), (candidate, others)))
        return margin - finish(jnp.sum(term(*(part for row in pair for part in row)), axis=-1))

    def slabs(rows: Array, parts: int, wide: jnp.dtype) -> list[Array]:
        """Of each part, [steps, _DIMENSIONS, rows], padded with zeros."""
        split = jnp.split(rows.astype(wide), parts, axis=-1)
        padded = (jnp.pad(part, ((0, 0), (0, -part.shape[-1] % _DIMENSIONS))) for part in split)
        return [part.T.reshape(-1, _DIMENSIONS, len(rows)) for part in padded]

    def pairs(query: list[Array], candidate: list[Array]) -> Array:
        return term(*(part[:, None] for part in query), *(part[None, :] for part in candidate))

    @jax.custom_vjp
    def total(queries: list[Array], candidates: list[Array]) -> Array:
        def add(sum_: Array, slab: tuple[list[Array], list[Array]]) -> tuple[Array, None]:
            rows = ([[part[k] for part in side] for side in slab] for k in range(_DIMENSIONS))
            return sum_ + sum(pairs(*row) for row in rows), None

        nothing = jnp.zeros((queries[0].shape[-1], candidates[0].shape[-1]), queries[0].dtype)
        return jax.lax.scan(add, nothing, (queries, candidates))[0]

    # The derivative by one dimension at a time: it keeps no terms, and is quick to compile.
    def derivative(slabs: tuple[list[Array], list[Array]], slope: Array) -> tuple[list[Array], list[Array]]:
        rows = jax.tree.map(lambda part: part.reshape(-1, part.shape[-1]), slabs)
        _, slopes = jax.lax.scan(lambda _, row: (None, jax.vjp(pairs, *row)[1](slope)), None, rows)
        return jax.tree.map(lambda part, like: part.reshape(like.shape), slopes, slabs)

    total.defvjp(lambda *slabs: (total(*slabs), slabs), derivative)

    @jax.jit
    def every(queries: Array, candidates: Array) -> Array:
        wide = _sum_type(queries, candidates)
        return margin - finish(total(slabs(queries, parts, wide), slabs(candidates, others, wide)))

    def tiles(queries: Array, tiles: Array) -> Array:
        return jax.lax.map(partial(every, queries), tiles)

    return Similarity(one, every, tiles)
