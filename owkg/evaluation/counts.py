"""Numbers of candidates that score above, and at least as high as, the answers to a block of queries."""

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
    """Counts that determine the rank of each answer of a block, [p] each.

    Attributes:
        above: number of candidates that score above the answer.
        level: number of candidates that score at least as high as the answer, including the answer unless it
            is known.
        bad: number of entities whose score is not finite.
        score: score of the answer.
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
    """(Counts of one block, scores for the next `scratch`); each device scores its own tiles.

    The scores of a block overwrite the scores of the block before, because allocating memory for each block
    takes longer than writing it.

    Args:
        trained: model with its parameters, on every device.
        side: side to rank, "head" or "tail".
        mesh: devices.
        num_entities: number of entities; the entries of the tiles after them are padding.
        tiles: candidate rows from `tiled`.
        stack: blocks of one shape, as one `QueryBlock` with a leading axis.
        number: number of the block in the stack, [].
        tolerance: largest difference of scores that counts as a tie, [].
        scratch: scores returned for the block before, which are overwritten.
    """
    block = jax.tree.map(lambda parts: parts[number], stack)
    queries = trained.queries(block.entity, block.relation, side)
    share = partial(_share, trained.model.similarity, num_entities)
    # Unchecked, because the inner loops of some similarities begin with zeros that are the same on all
    # devices.
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
    """Counts of all devices together, to which this device adds its share.

    Entities that are not candidates are marked among the scores, and the counting pass compares scores as
    integers of the same order. The mark is the first number below minus infinity, a signalling NaN, which no
    arithmetic produces.
    """
    number, size, _ = tiles.shape
    first = jax.lax.axis_index(AXIS) * number * size
    scores = similarity.tiles(queries, tiles)
    infinity = jnp.array(jnp.inf, scores.dtype)
    below, beyond = sortable(-infinity), sortable(infinity)
    absent = below - 1

    def bad(keys: Array) -> Array:
        return ((keys <= below) | (keys >= beyond)) & (keys != absent)

    # An entity of another device is sent to a tile after the last, because a negative index would count from
    # the end.
    own = jnp.concatenate([block.answer, block.known]) - first
    row = jnp.concatenate([block.row, block.known_row])
    place = (jnp.where(own < 0, number, own // size), row, own % size)
    were = scores.at[place].get(mode="fill", fill_value=-jnp.inf)
    # The score of the answer is its own entry of the row, so that it ties with itself and with equal scores
    # to the last bit.
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
    """Key of a score that is larger by `by`; unchanged to the last bit if `by` is 0."""
    return jnp.where(by == 0, key, sortable(unsortable(key) + by))
