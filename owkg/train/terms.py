"""Sum of the losses of some queries of one side, against all entities or against negatives."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.models import Model
from owkg.train import losses
from owkg.train.config import Training
from owkg.train.drawn import Drawn
from owkg.train.queries import SideQueries
from owkg.train.sampled import Total


def against_all(
    model: Model,
    config: Training,
    table: Float[Array, "n width"],
    queries: Float[Array, "q d"],
    batch: SideQueries,
    smoothing: Float[Array, ""],
    *,
    most: int,
) -> Float[Array, ""]:
    """Weighted sum of the losses of queries against all entities.

    The model's similarity compares `table` with `queries`, which have at most `most` known answers together.
    """
    scores = model.similarity.all(queries, table).astype(jnp.float32)
    if config.training_loop == "1vsall":
        answers = jnp.take_along_axis(scores, batch.answer[:, None], axis=1)[:, 0]
        count = jnp.ones(answers.shape)
    else:
        answers, count = answer_sums(scores, batch, most)
    return jnp.dot(losses.AGAINST_ALL[config.loss](scores, answers, count, smoothing), batch.weight)


def answer_sums(
    scores: Float[Array, "q n"], batch: SideQueries, most: int
) -> tuple[Float[Array, "q"], Float[Array, "q"]]:
    """(Sum of the scores of the known answers, their number) of each query; at most `most` answers in all."""
    size = len(batch.start)
    count = batch.stop - batch.start
    ends = jnp.cumsum(count)
    place = jnp.arange(most)
    row = jnp.minimum(jnp.searchsorted(ends, place, side="right"), size - 1)
    fact = jnp.minimum(batch.stop[row] + place - ends[row], len(batch.answers) - 1)
    found = jnp.where(place < ends[-1], scores[row, batch.answers[fact]], 0)
    total = jax.ops.segment_sum(found, row, num_segments=size, indices_are_sorted=True)
    return total, count.astype(jnp.float32)


def against_shared(
    model: Model,
    config: Training,
    table: Float[Array, "n d"],
    queries: Float[Array, "q e"],
    batch: SideQueries,
    drawn: Drawn,
) -> Float[Array, ""]:
    """Weighted sum of the losses against shared negatives; `table` holds them and the answers."""
    positive = model.similarity.one(queries, table[batch.answer]).astype(jnp.float32)
    negative = model.similarity.all(queries, table[drawn.entity]).astype(jnp.float32)
    return jnp.dot(_loss(config)(positive, negative, drawn.allowed), batch.weight)


def against_own(
    model: Model,
    config: Training,
    candidates: Float[Array, "q c d"],
    queries: Float[Array, "q e"],
    batch: SideQueries,
) -> Float[Array, ""]:
    """Weighted sum of the losses against the candidates of each query: its answer, then its negatives."""
    return sampled_total(config)(model.similarity.one(queries[:, None], candidates), batch.weight)


def sampled_total(config: Training) -> Total:
    """Function from (scores of the answer and the negatives, weight) to the weighted sum of the losses."""

    def total(scores: Array, weight: Array) -> Array:
        positive, negative = scores[:, 0].astype(jnp.float32), scores[:, 1:].astype(jnp.float32)
        return jnp.dot(_loss(config)(positive, negative, jnp.ones(negative.shape, bool)), weight)

    return total


def _loss(config: Training) -> Callable[..., Array]:
    return {
        "margin": partial(losses.margin, margin=config.loss_margin),
        "logistic": losses.logistic,
        "binary": losses.binary,
        "self_adversarial": partial(losses.self_adversarial, temperature=config.temperature),
    }[config.loss]
