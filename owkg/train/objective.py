"""What a step makes small: the mean loss of its queries, and the penalties on their embeddings."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from owkg.models import SIDES, Model, Params, Statistics
from owkg.train.config import Training
from owkg.train.penalties import penalty
from owkg.train.queries import Queries, Sizes
from owkg.train.terms import against_all, against_drawn


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
) -> tuple[Float[Array, ""], Statistics]:
    """The weighted mean loss of the queries of a step with the penalties, and the statistics after it.

    Args:
        model: what is trained.
        config: its training_loop, loss and precision.
        sizes: of the queries.
        params: of the model, float32.
        statistics: of the model.
        batches: the queries of this step, by side.
        counts: which of them count, by side.
        key: of dropout and negatives.
        numbers: `Hyperparameters`.
    """
    narrow = jax.tree.map(lambda x: x.astype(config.precision), params)
    keys = jax.random.split(key, len(SIDES))
    losses, penalties = jnp.zeros(()), jnp.zeros(())
    table = model.candidates(narrow)
    for i, (side, batch, own) in enumerate(zip(SIDES, batches, keys, strict=True)):
        query_key, negative_key = jax.random.split(own)
        queries, statistics = model.query(
            narrow, statistics, batch.entity, batch.relation, side, key=query_key
        )
        if config.training_loop == "negatives":
            most = sizes.most[i]
            losses += against_drawn(model, config, table, queries, batch, negative_key, most=most)
        else:
            most, smoothing = sizes.batch_answers[i], numbers.label_smoothing
            losses += against_all(model, config, table, queries, batch, smoothing, most=most)
        for weight, rate, exponent in ((config.n3, numbers.n3, 3), (config.l2, numbers.l2, 2)):
            if weight:
                penalties += rate * penalty(
                    model,
                    params,
                    batch,
                    counts[i],
                    exponent,
                    head=side == "head",
                    answers=config.training_loop != "kvsall",
                )
    loss = losses / sum(jnp.sum(batch.weight) for batch in batches)
    penalties /= sum(map(jnp.sum, counts))
    return loss + penalties, jax.tree.map(lambda x: x.astype(jnp.float32), statistics)
