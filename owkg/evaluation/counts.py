"""How many candidates score above the answers to a block of queries, and how many no less."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Float, Int, Int32

from owkg.evaluation.blocks import QueryBlock
from owkg.evaluation.tiles import AXIS
from owkg.models import Similarity, Trained
from owkg.ranks.order import counted, sortable, to_pass, to_reach, unsortable


class Counts(NamedTuple):
    """What the rank of each answer of a block is made of, [p] each.

    Attributes:
        above: candidates that score above the answer.
        level: candidates that score no less; the answer is among them unless it is known.
        bad: entities whose score is no finite number.
        score: of the answer.
    """

    above: Int32[Array, "p"]
    level: Int32[Array, "p"]
    bad: Int32[Array, "p"]
    score: Float[Array, "p"]


@partial(
    jax.jit, static_argnames=("side", "mesh", "num_entities"), donate_argnames="scratch", keep_unused=True
)
def counts(
    trained: Trained,
    side: str,
    mesh: Mesh,
    num_entities: int,
    tiles: Float[Array, "tiles size d"],
    stack: QueryBlock,
    number: Int[Array, ""],
    tolerance: Float[Array, ""],
    scratch: Array | None,
) -> tuple[Counts, Float[Array, "tiles q size"]]:
    """(counts of one block, scores for the next `scratch`); each device scores its own tiles.

    The scores of a block overwrite those of the block before: to allocate memory anew for each block takes
    longer than to write it.

    Args:
        trained: what scores, arrays on every device.
        side: that is asked for.
        mesh: the devices.
        num_entities: that there are; tiles behind them are padding.
        tiles: of `tiled`.
        stack: blocks of one shape, one `Block` with a leading axis.
        number: of the block in the stack; [].
        tolerance: scores that differ from the answer's by at most this count as equal; [].
        scratch: what was returned for the block before, of no further use.
    """
    block = jax.tree.map(lambda parts: parts[number], stack)
    queries = trained.queries(block.entity, block.relation, side)
    share = partial(_share, trained.model.similarity, num_entities)
    # Unchecked, as the loops inside of some similarities begin with zeros that are the same on all devices.
    shared = jax.shard_map(
        share, mesh=mesh, in_specs=(P(), P(AXIS), P(), P()), out_specs=(P(), P(AXIS)), check_vma=False
    )
    return shared(queries, tiles, block, tolerance)


def _share(
    similarity: Similarity,
    num_entities: int,
    queries: Float[Array, "q width"],
    tiles: Float[Array, "tiles size d"],
    block: QueryBlock,
    tolerance: Float[Array, ""],
) -> tuple[Counts, Float[Array, "tiles q size"]]:
    """The counts of all devices together, of which this one makes its share.

    What is no candidate is marked among the scores, and the counting pass takes them as whole numbers in
    their order. The mark is the first number below minus infinity, a signalling NaN, which no arithmetic
    gives.
    """
    number, size, _ = tiles.shape
    first = jax.lax.axis_index(AXIS) * number * size
    scores = similarity.tiles(queries, tiles)
    infinity = jnp.array(jnp.inf, scores.dtype)
    below, beyond = sortable(-infinity), sortable(infinity)
    absent = below - 1

    def bad(keys: Array) -> Array:
        return ((keys <= below) | (keys >= beyond)) & (keys != absent)

    # An entity of another device is in a tile behind the last; an index below 0 would count from there.
    own = jnp.concatenate([block.answer, block.known]) - first
    row = jnp.concatenate([block.row, block.known_row])
    place = (jnp.where(own < 0, number, own // size), row, own % size)
    were = scores.at[place].get(mode="fill", fill_value=-jnp.inf)
    # The answer's own entry of its row, so that it ties with itself and its equals to the last bit.
    ranked = len(block.answer)
    answer = jax.lax.pmax(sortable(were[:ranked]), AXIS)
    known = were[ranked:]
    marks = jnp.where(jnp.isfinite(known), unsortable(absent), known)
    scores = scores.at[tuple(index[ranked:] for index in place)].set(marks, mode="drop")
    is_entity = first + jnp.arange(number * size).reshape(number, 1, size) < num_entities
    keys = jnp.where(is_entity, sortable(scores[:, block.row]), absent)
    high, low = (_moved(answer, by) for by in (tolerance, -tolerance))
    flags = (keys > to_pass(high)[:, None], keys >= to_reach(low)[:, None], bad(keys))
    return Counts(*jax.lax.psum(counted(flags, (0, 2)), AXIS), score=unsortable(answer)), scores


def _moved(key: Array, by: Array) -> Array:
    """The key of a score that is larger by `by`; unmoved to the last bit by 0."""
    return jnp.where(by == 0, key, sortable(unsortable(key) + by))
