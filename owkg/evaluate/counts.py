"""How many candidates score above the answers to a block of questions, and how many no less."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Float, Int32

from owkg.evaluate.tiles import AXIS
from owkg.models import Model, Params, Similarity, Statistics
from owkg.ranks.order import counted, ordered, to_pass, to_reach, unordered


class Counts(NamedTuple):
    """What the rank of each answer of a block is made of, [p] each.

    Attributes:
        above: candidates that score above the answer.
        level: candidates that score no less; the answer is among them unless it is known.
        bad: entities whose score is no finite number.
    """

    above: Int32[Array, "p"]
    level: Int32[Array, "p"]
    bad: Int32[Array, "p"]


@partial(jax.jit, static_argnames=("model", "side", "mesh", "num_entities"))
def counts(
    model: Model,
    side: str,
    mesh: Mesh,
    num_entities: int,
    params: Params,
    statistics: Statistics,
    tiles: Float[Array, "tiles size d"],
    block: Any,
    tolerance: Any,
) -> Counts:
    """The counts of one block; each device scores its own tiles.

    Args:
        model: what scores.
        side: that is asked for.
        mesh: the devices.
        num_entities: that there are; tiles behind them are padding.
        params: of the model, on every device.
        statistics: of the model, on every device.
        tiles: of `tiled`.
        block: a `Block`.
        tolerance: scores that differ from the answer's by at most this count as equal; [].
    """
    queries, _ = model.query(params, statistics, block.entity, block.relation, side)
    share = partial(_share, model.similarity, num_entities)
    # Unchecked, as the loops inside of some similarities begin with zeros that are the same on all devices.
    shared = jax.shard_map(
        share, mesh=mesh, in_specs=(P(), P(AXIS), P(), P()), out_specs=P(), check_vma=False
    )
    return shared(queries, tiles, block, tolerance)


def _share(
    similarity: Similarity,
    num_entities: int,
    queries: Float[Array, "q width"],
    tiles: Float[Array, "tiles size d"],
    block: Any,
    tolerance: Any,
) -> Counts:
    """The counts of all devices together, of which this one makes its share.

    The row of a question holds whole numbers in the order of its scores. The least, below those of all
    floats, stands for what is no candidate; the largest, above them, for what is no finite number.
    """
    number, size, _ = tiles.shape
    first = jax.lax.axis_index(AXIS) * number * size

    def scored(tile: tuple[Array, Array]) -> Array:
        begin, candidates = tile
        scores = similarity.all(queries, candidates)
        keys = ordered(scores)
        keys = jnp.where(jnp.isfinite(scores), keys, jnp.iinfo(keys.dtype).max)
        is_entity = begin + jnp.arange(size) < num_entities
        return jnp.where(is_entity, keys, jnp.iinfo(keys.dtype).min)

    def place(row: Array, entity: Array) -> tuple[Array, Array, Array]:
        # An entity of another device is in a tile behind the last; an index below 0 would count from there.
        own = entity - first
        return jnp.where(own < 0, number, own // size), row, own % size

    keys = jax.lax.map(scored, (first + jnp.arange(number) * size, tiles))
    absent, bad = (getattr(jnp.iinfo(keys.dtype), end) for end in ("min", "max"))
    # The answer's own entry of its row, so that it ties with itself and its equals to the last bit.
    answer = keys.at[place(block.row, block.answer)].get(mode="fill", fill_value=absent)
    answer = jax.lax.pmax(answer, AXIS)
    known = place(block.known_row, block.known)
    was = keys.at[known].get(mode="fill", fill_value=absent)
    keys = keys.at[known].set(jnp.where(was == bad, bad, absent), mode="drop")
    high, low = (_moved(answer, by) for by in (tolerance, -tolerance))
    rows = keys[:, block.row]
    flags = (rows > to_pass(high)[:, None], rows >= to_reach(low)[:, None], rows == bad)
    return Counts(*jax.lax.psum(counted(flags, (0, 2)), AXIS))


def _moved(key: Array, by: Array) -> Array:
    """The key of a score that is larger by `by`; unmoved to the last bit by 0."""
    return jnp.where(by == 0, key, ordered(unordered(key) + by))
