"""What a step makes small: the mean loss of its queries, and the penalties on their embeddings."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from owkg.models import SIDES, Model, Params, Statistics
from owkg.train.config import Training
from owkg.train.drawn import Drawn, drawn_of, side_keys
from owkg.train.queries import Queries, Sizes
from owkg.train.terms import against_all, against_drawn


class Gathered(NamedTuple):
    """The rows of entities that one side of a step touches, in place of the whole tables.

    Attributes:
        tables: the parameters with a row an entity, by name: a row for each place in the step.
        drawn: the negatives, as places.
    """

    tables: Params
    drawn: Drawn


def objective(
    model: Model,
    config: Training,
    sizes: Sizes,
    params: Params,
    statistics: Statistics,
    batches: tuple[Queries, ...],
    counts: tuple[Bool[Array, "_"], ...],
    key: Array,
    numbers: Any,
    gathered: tuple[Gathered, ...] | None = None,
) -> tuple[Float[Array, ""], Statistics]:
    """The weighted mean loss of the queries of a step with the penalties, and the statistics after it.

    `batches` are the queries of this step by side, `counts` which of them count, `key` of dropout and
    negatives. `params` are float32, whatever the precision of the configuration.

    With `gathered` rows by side, `params` hold what is no row of an entity, and `batches` name places in the
    rows of their side; negatives are those gathered, drawn with the same key.
    """
    keys = side_keys(key)
    losses, penalties = jnp.zeros(()), jnp.zeros(())
    if gathered is not None:
        own = [params | side.tables for side in gathered]
        tables = [(narrow := _narrow(config, of_side), model.candidates(narrow)) for of_side in own]
        drawn = tuple(side.drawn for side in gathered)
    else:
        own = [params] * len(SIDES)
        narrow = _narrow(config, params)
        tables = [(narrow, model.candidates(narrow))] * len(SIDES)
        drawn = drawn_of(config, sizes, batches, key) if config.training_loop == "negatives" else ()
    for i, (side, batch, (narrow, table)) in enumerate(zip(SIDES, batches, tables, strict=True)):
        queries, statistics = model.query(
            narrow, statistics, batch.entity, batch.relation, side, key=keys[i][0]
        )
        if config.training_loop == "negatives":
            losses += against_drawn(model, config, table, queries, batch, drawn[i])
        else:
            most, smoothing = sizes.batch_answers[i], numbers.label_smoothing
            losses += against_all(model, config, table, queries, batch, smoothing, most=most)
        for weight, rate, exponent in ((config.n3, numbers.n3, 3), (config.l2, numbers.l2, 2)):
            if weight:
                answers = config.training_loop != "kvsall"
                penalties += rate * penalty(
                    model, own[i], batch, counts[i], exponent, head=side == "head", answers=answers
                )
    loss = losses / sum(jnp.sum(batch.weight) for batch in batches)
    penalties /= sum(map(jnp.sum, counts))
    return loss + penalties, jax.tree.map(lambda x: x.astype(jnp.float32), statistics)


def _narrow(config: Training, params: Params) -> Params:
    """The parameters in the precision that is computed in."""
    return jax.tree.map(lambda x: x.astype(config.precision), params)


def powers(rows: Float[Array, "q d"], exponent: int, *, complex_rows: bool) -> Float[Array, "q"]:
    """sum_k |x_k|^exponent of each row: 3 for the nuclear 3-norm (Lacroix et al. 2018), 2 for L2.

    Complex rows are real parts, then as many imaginary parts; |x_k| is then a modulus.
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
    """The sum of `powers` over the embeddings of the queries of one side that count.

    `answers`: whether the answer is penalised beside the given entity and the relation.
    """
    inverse = params["relation"].shape[0] // 2 if head and model.config.reciprocal else 0
    used = [("entity", batch.entity), ("relation", batch.relation + inverse)]
    used += [("entity", batch.answer)] if answers else []
    rows = (
        powers(params[name][ids], exponent, complex_rows=name in model.complex_params) for name, ids in used
    )
    return jnp.dot(sum(rows, jnp.zeros(counts.shape)), counts)
