"""Objective of a step: the mean loss of its queries, and the penalties on their embeddings."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from owkg.models import SIDES, Model, Params, Statistics
from owkg.train.config import Training
from owkg.train.drawn import drawn_of, side_keys
from owkg.train.queries import SideQueries, Sizes
from owkg.train.rows import Reached
from owkg.train.sampled import row_loss, sampled_loss
from owkg.train.spread import ReachedByDevices
from owkg.train.state import Hyperparameters
from owkg.train.terms import against_all, against_own, against_shared, sampled_total


def objective(
    model: Model,
    config: Training,
    sizes: Sizes,
    params: Params,
    statistics: Statistics,
    batches: tuple[SideQueries, ...],
    counts: tuple[Bool[Array, "_"], ...],
    key: Array,
    numbers: Hyperparameters,
    gathered: Reached | ReachedByDevices | None = None,
) -> tuple[Float[Array, ""], Statistics]:
    """Weighted mean loss of the queries of a step plus the penalties, and the statistics after the step.

    `batches` are the queries of this step by side, `counts` tells which of them count, and `key` is the key
    of dropout and negatives. `params` are float32, whatever the precision of the configuration.

    A model with an encoder encodes once, and the penalties apply to encoded rows. If `gathered` is given,
    `params` holds only parameters that are not entity tables, and `batches` name the places of their side.
    """
    keys = side_keys(key)
    sampled = config.training_loop == "negatives"
    if gathered is None:
        own, drawn = [params] * len(SIDES), ()
        if sampled:
            drawn = drawn_of(config, sizes, batches, key)
        narrow = _narrow(config, params)
        if model.encode is not None:
            # The sides use the keys below this number.
            narrow, statistics = model.encode(narrow, statistics, key=jax.random.fold_in(key, len(SIDES)))
            own = [jax.tree.map(_single, narrow)] * len(SIDES)
        tables = [(narrow, model.candidates(narrow))] * len(SIDES)
    else:
        own, drawn = [params | rows for rows in gathered.rows], gathered.drawn
        tables = [(narrow := _narrow(config, of_side), model.candidates(narrow)) for of_side in own]
    losses, penalties, asked = jnp.zeros(()), jnp.zeros(()), []
    weight = sum(jnp.sum(batch.weight) for batch in batches)
    for i, (side, batch, (narrow, table)) in enumerate(zip(SIDES, batches, tables, strict=True)):
        answer = {"answer": batch.answer} if model.sees_answers else {}
        queries, statistics = model.query(
            narrow, statistics, batch.entity, batch.relation, side, key=keys[i][0], **answer
        )
        asked.append(queries)
        if sampled and config.shared_negatives:
            losses += against_shared(model, config, table, queries, batch, drawn[i])
        elif isinstance(gathered, ReachedByDevices):
            candidates = model.candidates(_narrow(config, params | gathered.candidates[i]))
            losses += against_own(model, config, candidates, queries, batch)
        elif not sampled:
            most, smoothing = sizes.batch_answers[i], numbers.label_smoothing
            losses += against_all(model, config, table, queries, batch, smoothing, most=most)
        for penalised, rate, exponent in ((config.n3, numbers.n3, 3), (config.l2, numbers.l2, 2)):
            if penalised:
                answers = config.training_loop != "kvsall"
                penalties += rate * penalty(
                    model, own[i], batch, counts[i], exponent, head=side == "head", answers=answers
                )
    loss = losses / weight
    if sampled and not config.shared_negatives and not isinstance(gathered, ReachedByDevices):
        queries, weights = jnp.concatenate(asked), jnp.concatenate([b.weight for b in batches]) / weight
        compared = model.similarity.one, sampled_total(config)
        if gathered is None:
            pairs = zip(batches, drawn, strict=True)
            entity = jnp.concatenate([jnp.hstack([b.answer[:, None], d.entity]) for b, d in pairs])
            loss = sampled_loss(*compared, tables[0][1], queries, entity, weights)
        else:
            loss = row_loss(
                *compared,
                lambda rows: model.candidates(_narrow(config, rows)),
                gathered.tables,
                gathered.sums,
                queries,
                gathered.candidates,
                gathered.slots,
                weights,
            )
    penalties /= sum(map(jnp.sum, counts))
    return loss + penalties, jax.tree.map(_single, statistics)


def _single(statistic: Array) -> Array:
    """Floating-point numbers as float32; other types, such as orders, unchanged."""
    return statistic.astype(jnp.float32) if jnp.issubdtype(statistic.dtype, jnp.floating) else statistic


def _narrow(config: Training, params: Params) -> Params:
    """Parameters in the precision of the computation."""
    return jax.tree.map(lambda x: x.astype(config.precision), params)


def powers(rows: Float[Array, "q d"], exponent: int, *, complex_rows: bool) -> Float[Array, "q"]:
    """sum_k |x_k|^exponent of each row: 3 for the nuclear 3-norm (Lacroix et al. 2018), 2 for L2.

    A complex row has its real parts first and then its imaginary parts; |x_k| is then a modulus.
    """
    square = jnp.square(rows)
    if complex_rows:
        real, imaginary = jnp.split(square, 2, axis=-1)
        square = real + imaginary
    # Powers of the square, because its derivative at 0 is finite.
    return jnp.sum(square ** (exponent / 2), axis=-1)


def penalty(
    model: Model,
    params: Params,
    batch: SideQueries,
    counts: Bool[Array, "q"],
    exponent: int,
    *,
    head: bool,
    answers: bool,
) -> Float[Array, ""]:
    """Sum of `powers` over the embeddings of the counted queries of one side.

    `answers` tells whether the answer is penalised in addition to the given entity and the relation.
    """
    inverse = params["relation"].shape[0] // 2 if head and model.config.reciprocal else 0
    rows = [params["entity"][batch.entity], params["relation"][batch.relation + inverse]]
    if model.factors is not None:
        answer = params["entity"][batch.answer] if answers else jnp.zeros_like(rows[0])
        used = [(own, weight, False) for own, weight in model.factors(rows[0], rows[1], answer)]
    else:
        rows += [params["entity"][batch.answer]] if answers else []
        names = ("entity", "relation", "entity")[: len(rows)]
        used = [(row, 1.0, name in model.complex_params) for row, name in zip(rows, names, strict=True)]
    each = (weight * powers(own, exponent, complex_rows=is_complex) for own, weight, is_complex in used)
    return jnp.dot(sum(each, jnp.zeros(counts.shape)), counts)
