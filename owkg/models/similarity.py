"""Similarities of queries and candidates: one by one, and all pairs in bounded memory."""

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# Precision of products of float32 matrices; otherwise accelerators round to fewer bits and create ties.
HIGHEST = jax.lax.Precision.HIGHEST


# Dimensions summed in one pass over the scores, so that their terms stay in registers.
_DIMENSIONS = 16


class Similarity(NamedTuple):
    """Similarity of queries and candidates; larger is more similar.

    Sums are float32 or wider, even for narrower numbers.

    Attributes:
        one: function from queries [..., d] and candidates [..., d], with broadcast leading axes, to [...].
        all: function from queries [q, d] and candidates [c, d] to [q, c], without any array of size [q, c,
            d].
        tiles: function from queries [q, d] and tiles of candidates [t, c, d] to [t, q, c]; for each tile it
            equals `all` to the last bit.
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
    # A batch of products is written in place, while a loop over tiles would copy each product.
    return jax.vmap(_dot_all)(jnp.broadcast_to(queries, (len(tiles), *queries.shape)), tiles)


DOT = Similarity(_dot_one, _dot_all, _dot_tiles)
"""Dot product."""


def by_products(
    parts: Callable[[Array], tuple[tuple[Array, ...], tuple[Array, ...]]],
    candidate_parts: Callable[[Array], tuple[tuple[Array, ...], tuple[Array, ...]]],
    finish: Callable[[tuple[Array, ...], tuple[Array, ...], tuple[Array, ...]], Array],
) -> Similarity:
    """Similarity computed from a few dot products and a few numbers of the query and of the candidate.

    Args:
        parts: function from queries [..., d] to (vectors [..., k], numbers [...]).
        candidate_parts: the same function for candidates, with as many vectors.
        finish: elementwise function from (dot products, numbers of queries, numbers of candidates) to scores.
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
    """Points, and their squared lengths minus biases, from rows of points followed by a bias."""
    point = rows[..., :-1]
    return (point,), (jnp.sum(jnp.square(point), axis=-1) - rows[..., -1],)


MINUS_SQUARES = by_products(
    _with_square, _with_square, lambda dots, own, others: 2 * dots[0] - own[0] - others[0]
)
"""-|q - c|^2 + b_q + b_c, for points with biases in the last column.

It is computed as 2 q.c - |q|^2 - |c|^2 with float32 products. This loses digits for near neighbours, but it
is enough where biases distinguish answers, and as fast as a matrix product.
"""


@cache
def minus_l1(margin: float) -> Similarity:
    """margin - sum of |query - candidate|, the L1 distance."""
    return _minus(margin, 1, lambda query, candidate: jnp.abs(query - candidate))


@cache
def minus_l2(margin: float) -> Similarity:
    """margin - Euclidean length of query - candidate.

    It is computed from differences, because |q|^2 - 2 q.c + |c|^2 loses half of the digits for near
    neighbours.
    """
    return _minus(margin, 1, lambda query, candidate: jnp.square(query - candidate), root)


@cache
def minus_moduli(margin: float) -> Similarity:
    """margin - sum of the moduli of query - candidate; rows hold real parts, then as many imaginary parts."""

    def modulus(query_re: Array, query_im: Array, re: Array, im: Array) -> Array:
        return root(jnp.square(query_re - re) + jnp.square(query_im - im))

    return _minus(margin, 2, modulus)


@cache
def minus_sines(margin: float) -> Similarity:
    """margin - sum of |sin| of the angles between query and candidate, times both lengths.

    Rows hold d / 2 cosines, then the sines. Because sin(a - b) = sin a cos b - cos a sin b, no sine per pair
    is needed.
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
    """Sum of two similarities: one over the first columns of queries and candidates, one over the rest."""

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
    """Square root whose derivative at 0 is 0 instead of infinite."""
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

    A query row has `parts` parts, such as real and imaginary, and a candidate row `candidate_parts`, by
    default as many. `term` is elementwise; it takes the parts of the query, then the parts of the candidate,
    and is 0 if all are 0.
    """
    others = parts if candidate_parts is None else candidate_parts

    def one(query: Array, candidate: Array) -> Array:
        wide = _sum_type(query, candidate)
        pair = (jnp.split(x.astype(wide), n, axis=-1) for x, n in ((query, parts), (candidate, others)))
        return margin - finish(jnp.sum(term(*(part for row in pair for part in row)), axis=-1))

    def slabs(rows: Array, parts: int, wide: jnp.dtype) -> list[Array]:
        """Parts of the rows, each [steps, _DIMENSIONS, rows], padded with zeros."""
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

    # The derivative takes one dimension at a time, so that it stores no terms and compiles quickly.
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
