"""Ranks of the answers of triples under a model, as arrays."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Float64, Int64
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.evaluation.blocks import QueryBlock, query_blocks
from owkg.evaluation.counts import Counts, counts
from owkg.evaluation.memory import block_bytes as enough_bytes
from owkg.evaluation.memory import block_shape, query_numbers
from owkg.evaluation.tiles import mesh_of, replicated, scratch_of, tile_size, tiled
from owkg.keys import settled
from owkg.kg import KnownAnswers
from owkg.kg.known import filtered_candidates
from owkg.kg.triples import side_checked, triples_checked
from owkg.models import Trained
from owkg.models.kinds import unscored

# Smallest and largest tolerance other than 0. Below the smallest, differences of scores may be subnormal
# floats, which XLA flushes to zero.
_LEAST, _LARGEST = 1e-30, float(np.finfo(np.float32).max)

_Item = TypeVar("_Item")


class ScoredRanks(NamedTuple):
    """Ranks of answers as in `owkg.ranks.Ranks`, with the score of each answer.

    Attributes:
        optimistic: 1-based rank of the answer, with ties broken in its favour.
        pessimistic: 1-based rank of the answer, with ties broken against it.
        candidates: number of candidates, including the answer.
        score: score of the answer; it orders the answers to one query.
    """

    optimistic: Int64[np.ndarray, "triples"]
    pessimistic: Int64[np.ndarray, "triples"]
    candidates: Int64[np.ndarray, "triples"]
    score: Float64[np.ndarray, "triples"]


@settled()
def rank_arrays(
    trained: Trained,
    triples: ArrayLike,
    side: str,
    *,
    known: KnownAnswers | None,
    tolerance: float = 0.0,
    devices: Sequence[Any] | None = None,
    block_bytes: int | None = None,
    named: Callable[[int], str] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> ScoredRanks:
    """Ranks of the answer of every triple on one side among all entities.

        optimistic  = 1 + #{candidates with score > answer's score + tolerance}
        pessimistic =     #{candidates with score >= answer's score - tolerance}

    The definition is the one of `owkg.ranks.ranks_from_scores`, but the model scores one block of queries at
    a time against all entities, and answers to the same query share its scores. The devices share the
    entities; the number of devices does not change a rank. If JAX is distributed, all processes must call
    this function together, and each gets all ranks.

    Args:
        trained: model with its parameters.
        triples: int [triples, 3], columns head, relation, tail.
        side: side to rank, "head" or "tail".
        known: known answers to remove from the candidates, from `owkg.kg.known_answers` for the same side.
            None: raw ranks.
        tolerance: largest absolute difference of scores that counts as a tie; 0 (default) or at least 1e-30.
        devices: devices that share the entities. None: all devices that JAX sees.
        block_bytes: bytes of memory for the queries of a block and the scores that it holds at a time; a
            block has at least two queries. None: 24 MiB, or 256 MiB on an accelerator (at most an eighth of
            its free memory). If the scores of 64 queries do not fit, up to 256 are scored against a part of
            the entities at a time, whose rows are copied too. The block size can change a rank only if scores
            differ in their last bits.
        named: function from the row of a triple to the name of its query in error messages. None: the row
            itself.
        on_progress: function called after each block with (ranked triples, all triples).

    Returns:
        Ranks and scores [triples], in the order of the triples.

    Raises:
        ValueError: if an argument is out of range, or if a score is not finite; the message names the query.
    """
    side, num_entities = side_checked(side), trained.num_entities
    relations = trained.num_relations
    triples = triples_checked(triples, num_entities, relations)
    _check_known(known, (side, num_entities, relations))
    width = _tolerance_checked(tolerance)
    mesh = mesh_of(devices)
    trained = replicated(mesh, trained.encoded())
    numbers = query_numbers(trained)
    if block_bytes is None:
        block_bytes = enough_bytes(mesh.devices.flat[0])
    size = checks.whole("block_bytes", block_bytes, 1)
    width = width.astype(wide := jnp.result_type(trained.params["entity"], np.float32))
    tile = tile_size(num_entities)
    row, candidate = numbers - num_entities, jax.eval_shape(lambda own: own.candidates(), trained).shape[-1]
    most, groups = block_shape(size // wide.itemsize, row, candidate, num_entities, tile, mesh.size)
    shares = query_blocks(triples, side, known, most=most, tile=tile if groups > 1 else None)
    tiles = tiled(trained, mesh, groups)
    held = len(tiles) // (mesh.size * groups)
    ahead = 1 + max((int(block.copy.max()) for _, block in shares), default=0) // held
    count = partial(counts, trained, side, mesh, num_entities, groups, ahead, tiles)
    # All blocks are copied to the devices at once, because a copy for each block would take a tenth of the
    # time of its products.
    stack = jax.tree.map(lambda *parts: np.stack(parts), *(block for _, block in shares)) if shares else None
    stack, width = replicated(mesh, (stack, width))
    above, level = np.empty((2, len(triples)), np.int64)
    score = np.empty(len(triples))
    done = 0
    for rows, found in _one_behind(_counted(count, shares, stack, width, mesh)):
        above[rows], level[rows], bad, score[rows] = (np.asarray(part)[: len(rows)] for part in found)
        if bad.any():
            row = int(rows[np.argmax(bad > 0)])
            name = named(row) if named else f"the {side} of triple {row}"
            raise unscored(trained.model, name)
        done += len(rows)
        if on_progress:
            on_progress(done, len(triples))
    if known is None:
        return ScoredRanks(1 + above, level, np.full(len(triples), num_entities), score)
    # A known answer has left the candidates and is not in `level`; any other answer is counted there.
    candidates, is_known = filtered_candidates(known, triples)
    return ScoredRanks(1 + above, level + is_known, candidates, score)


def _counted(
    count: Callable[..., tuple[Counts, jax.Array]],
    shares: list[tuple[np.ndarray, QueryBlock]],
    stack: QueryBlock | None,
    width: jax.Array,
    mesh: Mesh,
) -> Iterator[tuple[np.ndarray, Counts]]:
    """Rows and counts of each block; the scores of all blocks share one buffer."""
    if not shares:
        return
    shaped = partial(jax.ShapeDtypeStruct, (), np.int32)
    _, scores = jax.eval_shape(count, stack, shaped(), width, None)
    scratch = scratch_of(mesh, scores.shape, scores.dtype)
    for i, (rows, _) in enumerate(shares):
        found, scratch = count(stack, np.int32(i), width, scratch)
        yield rows, found


def _one_behind(items: Iterable[_Item]) -> Iterator[_Item]:
    """Items, each yielded once the next is made, so that the device and the host work at the same time."""
    made = None
    for item in items:
        if made is not None:
            yield made
        made = item
    if made is not None:
        yield made


def _tolerance_checked(tolerance: float) -> np.float64:
    width = checks.real("tolerance", tolerance, 0, _LARGEST)
    checks.require("tolerance", width, (width == 0) | (width >= _LEAST), f"0 or at least {_LEAST}")
    return np.float64(checks.scalar("tolerance", width))


def _check_known(known: object, expected: tuple[str, int, int]) -> None:
    if known is None:
        return
    if not isinstance(known, KnownAnswers):
        raise ArgumentError("known", f"must be KnownAnswers, or None for raw ranks, got {known!r}.")
    if expected != (got := (known.side, known.num_entities, known.num_relations)):
        raise ArgumentError("known", f"must have side, entities and relations {expected}, got {got}.")
