"""Penalties on the embeddings of the queries of a step."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from owkg.models import Model, Params
from owkg.train.queries import Queries


def powers(rows: Float[Array, "q d"], exponent: int, *, complex_rows: bool) -> Float[Array, "q"]:
    """sum_k |x_k|^exponent of each row.

    Args:
        rows: embeddings.
        exponent: 3 for the nuclear 3-norm (Lacroix et al. 2018), 2 for L2.
        complex_rows: whether rows are real parts, then as many imaginary parts; |x_k| is then a modulus.
    """
    square = jnp.square(rows)
    if complex_rows:
        real, imaginary = jnp.split(square, 2, axis=-1)
        square = real + imaginary
    # Of the square: its derivative at 0 is finite.
    return jnp.sum(square ** (exponent / 2), axis=-1)


def penalty(
    model: Model,
    params: Params,
    batch: Queries,
    counts: Bool[Array, "q"],
    exponent: int,
    *,
    head: bool,
    answers: bool,
) -> Float[Array, ""]:
    """The sum of `powers` over the embeddings of the queries that count.

    Args:
        model: whose `params` they are.
        params: of the model.
        batch: queries of one side.
        counts: which of them count.
        exponent: of the powers.
        head: whether the side is the heads'.
        answers: whether the answer is penalised beside the given entity and the relation.
    """
    inverse = params["relation"].shape[0] // 2 if head and model.config.reciprocal else 0
    used = [("entity", batch.entity), ("relation", batch.relation + inverse)]
    used += [("entity", batch.answer)] if answers else []
    rows = (
        powers(params[name][ids], exponent, complex_rows=name in model.complex_params) for name, ids in used
    )
    return jnp.dot(sum(rows, jnp.zeros(counts.shape)), counts)
