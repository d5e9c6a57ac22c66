"""Negatives of a step: the drawn entities, and the queries for which they count."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from owkg.models import SIDES
from owkg.train import negatives
from owkg.train.config import Training
from owkg.train.queries import SideQueries, Sizes


class Drawn(NamedTuple):
    """Negatives for the queries of one side.

    Attributes:
        entity: drawn entities, [q, k], or [k] if the queries share them.
        allowed: whether each negative counts for each query.
    """

    entity: Int[Array, "*q k"]
    allowed: Bool[Array, "q k"]


def drawn_of(
    config: Training, sizes: Sizes, batches: tuple[SideQueries, ...], key: Array
) -> tuple[Drawn, ...]:
    """Negatives of a step by side; no array here has the size of the graph."""
    keys = (negative_key for _, negative_key in side_keys(key))
    each = zip(batches, keys, sizes.most, strict=True)
    return tuple(_drawn(config, batch, own, sizes.num_entities, most) for batch, own, most in each)


def side_keys(key: Array) -> list[tuple[Array, Array]]:
    """(Key of the dropout, key of the negatives) of each side."""
    pairs = (jax.random.split(own) for own in jax.random.split(key, len(SIDES)))
    return [(pair[0], pair[1]) for pair in pairs]


def _drawn(config: Training, batch: SideQueries, key: Array, num_entities: int, most: int) -> Drawn:
    k = config.num_negatives
    ranges = (batch.answers, batch.start, batch.stop)
    allowed = jnp.ones((len(batch.entity), k), bool)
    if config.shared_negatives:
        entity = jax.random.randint(key, (k,), 0, num_entities)
        if config.filtered_negatives:
            allowed = ~negatives.known(entity, *ranges, most=most)
    elif config.filtered_negatives:
        entity = negatives.unknown(key, *ranges, num_negatives=k, num_entities=num_entities, most=most)
    else:
        entity = jax.random.randint(key, allowed.shape, 0, num_entities)
    return Drawn(jax.lax.optimization_barrier(entity), allowed)
