"""Numbers of candidates that score above, and at least as high as, the answers to a block of queries."""

from functools import partial
from typing import Any, NamedTuple

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
    jax.jit,
    static_argnames=("side", "mesh", "num_entities", "groups", "ahead"),
    donate_argnames="scratch",
    keep_unused=True,
)
def counts(
    trained: Trained,
    side: str,
    mesh: Mesh,
    num_entities: int,
    groups: int,
    ahead: int,
    tiles: Float[Array, "tiles size d"],
    stack: QueryBlock,
    number: Int[Array, ""],
    tolerance: Float[Array, ""],
    scratch: Array | None,
) -> tuple[Counts, Float[Array, "group q size"]]:
    """(Counts of one block, scores for the next `scratch`); each device scores its own tiles.

    Scores overwrite the scores before, of a group of tiles or of a block, because allocating memory for each
    takes longer than writing it.

    Args:
        trained: model with its parameters, on every device.
        side: side to rank, "head" or "tail".
        mesh: devices.
        num_entities: number of entities; the entries of the tiles after them are padding.
        groups: number of groups of tiles on each device; one group after the other is scored.
        ahead: number of groups of copied tiles that hold the answers of a block.
        tiles: candidate rows from `tiled`.
        stack: blocks of one shape, as one `QueryBlock` with a leading axis.
        number: number of the block in the stack, [].
        tolerance: largest difference of scores that counts as a tie, [].
        scratch: scores returned for the block before, which are overwritten.
    """
    block = jax.tree.map(lambda parts: parts[number], stack)
    queries = trained.queries(block.entity, block.relation, side)
    share = partial(_share, trained.model.similarity, num_entities, groups, ahead)
    # Unchecked, because the inner loops of some similarities begin with zeros that are the same on all
    # devices.
    shared = jax.shard_map(
        share, mesh=mesh, in_specs=(P(), P(AXIS), P(), P()), out_specs=(P(), P(AXIS)), check_vma=False
    )
    return shared(queries, tiles, block, tolerance)


def _share(
    similarity: Similarity,
    num_entities: int,
    groups: int,
    ahead: int,
    queries: Float[Array, "q width"],
    tiles: Float[Array, "tiles size d"],
    block: QueryBlock,
    tolerance: Float[Array, ""],
) -> tuple[Counts, Float[Array, "group q size"]]:
    """Counts of all devices together, to which this device adds its share.

    Entities that are not candidates are marked among the scores, and the counting pass compares scores as
    integers of the same order. The mark is the first number below minus infinity, a signalling NaN, which no
    arithmetic produces.
    """
    number, size, _ = tiles.shape
    held = number // groups
    first = jax.lax.axis_index(AXIS) * number * size
    scored = partial(similarity.tiles, queries)
    own = _place(block.answer - first, block.row, number, size)
    infinity = jnp.array(jnp.inf, jax.eval_shape(scored, tiles[:1]).dtype)
    below, beyond = sortable(-infinity), sortable(infinity)
    absent = below - 1

    def bad(keys: Array) -> Array:
        return ((keys <= below) | (keys >= beyond)) & (keys != absent)

    # The score of the answer is its own entry of the row, so that it ties with itself and with equal scores
    # to the last bit.
    def best(scores: Array, place: tuple[Array, Array, Array]) -> Array:
        return jax.lax.pmax(sortable(_entry(scores, place)), AXIS)

    def flagged(scores: Array, begin: Array, answer: Array) -> tuple[tuple[Array, ...], Array]:
        """Numbers of flags among the entities from `begin`, and the scores with marks."""
        known = _place(block.known - begin, block.known_row, held, size)
        were = _entry(scores, known)
        marks = jnp.where(jnp.isfinite(were), unsortable(absent), were)
        scores = scores.at[known].set(marks, mode="drop")
        is_entity = begin + jnp.arange(held * size).reshape(held, 1, size) < num_entities
        keys = jnp.where(is_entity, sortable(scores[:, block.row]), absent)
        high, low = (_moved(answer, by) for by in (tolerance, -tolerance))
        flags = (keys > to_pass(high)[:, None], keys >= to_reach(low)[:, None], bad(keys))
        return counted(flags, (0, 2)), scores

    if groups == 1:
        scores = scored(tiles)
        answer = best(scores, own)
        sums, scores = flagged(scores, first, answer)
        return Counts(*jax.lax.psum(sums, AXIS), score=unsortable(answer)), scores

    # The same code scores copies of the answers first, then the groups: a product can be rounded in another
    # way elsewhere.
    tile, row, column = own
    rows = tiles.at[tile, column].get(mode="fill", fill_value=0)
    copied = jnp.zeros((ahead * held, *tiles.shape[1:]), tiles.dtype).at[block.copy, column].set(rows)

    def step(index: Array, before: tuple[Array, tuple[Array, ...], Array]) -> tuple[Any, ...]:
        group = index - ahead
        slices = (
            jax.lax.dynamic_slice_in_dim(x, i * held, held) for x, i in ((copied, index), (tiles, group))
        )
        scores = scored(jnp.where(group < 0, *slices))
        here = (block.copy // held == index) & (tile < number)
        place = (jnp.where(here, block.copy % held, held), row, column)
        answer = jnp.maximum(before[0], best(scores, place))
        begin = jnp.where(group < 0, num_entities, first + group * held * size)
        found, scores = flagged(scores, begin, answer)
        return answer, tuple(a + b for a, b in zip(before[1], found, strict=True)), scores

    like = jax.eval_shape(scored, tiles[:held])
    none = jnp.zeros(len(block.answer), jnp.int32)
    start = jnp.full(none.shape, below), (none,) * 3, jnp.zeros(like.shape, like.dtype)
    answer, sums, scores = jax.lax.fori_loop(0, ahead + groups, step, start)
    return Counts(*jax.lax.psum(sums, AXIS), score=unsortable(answer)), scores


def _place(own: Any, row: Any, number: int, size: int) -> tuple[Array, Array, Array]:
    """(Tile, row, column) of entities counted from the first of `number` tiles.

    An entity of other tiles is sent to a tile after the last, because a negative index would count from the
    end.
    """
    return jnp.where(own < 0, number, own // size), row, own % size


def _entry(scores: Array, place: tuple[Array, Array, Array]) -> Array:
    """Scores at places; minus infinity after the last tile."""
    return scores.at[place].get(mode="fill", fill_value=-jnp.inf)


def _moved(key: Array, by: Array) -> Array:
    """Key of a score that is larger by `by`; unchanged to the last bit if `by` is 0."""
    return jnp.where(by == 0, key, sortable(unsortable(key) + by))
