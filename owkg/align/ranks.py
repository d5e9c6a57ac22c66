"""Ranks of the pairs of a test alignment, in both directions, among the entities of its pairs."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
from jaxtyping import Array, Bool, Float, Int, Int32
from numpy.typing import ArrayLike

from owkg.align.data import Alignment
from owkg.errors import ArgumentError
from owkg.keys import reproducible
from owkg.models.similarity import DOT, Similarity, minus_l1, minus_l2
from owkg.ranks.order import counted, sortable, to_pass, to_reach
from owkg.ranks.scores import Ranks, ranks_from_scores
from owkg.ranks.sets import EntitySets
from owkg.ranks.table import RANKS, SIDES, RankTable, validated

RELATION = "sameAs"

SIMILARITIES: dict[str, Similarity] = {
    "l1": minus_l1(0.0),
    "l2": minus_l2(0.0),
    "dot": DOT,
    "cosine": DOT,  # rows have length 1
}
"""Similarities of embeddings, by name."""

# Largest number of entities on a side of a tile, so that its similarities stay in the processor's caches.
_TILE = 512
# Embeddings are scaled if their largest entry is beyond 2 to plus or minus this power.
_POWERS = 30
# Number of similarities in memory at a time, if entities are in several pairs.
_BLOCK_ENTRIES = 2**24


def similarity_named(name: str) -> Similarity:
    """Similarity of that name; ArgumentError that lists the names otherwise."""
    if name not in SIMILARITIES:
        raise ArgumentError("similarity", f"must be one of {', '.join(SIMILARITIES)}, got {name!r}.")
    return SIMILARITIES[name]


@reproducible
def rank_embeddings(
    alignment: Alignment,
    left: ArrayLike,
    right: ArrayLike,
    *,
    similarity: str = "l1",
    model: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> RankTable:
    """Ranks of the test pairs, in both directions, by the similarity of embeddings.

    The right entity of a pair is ranked among the right entities of all test pairs (side tail), and its left
    entity among the left entities (side head). Other entities with which it is paired are removed from the
    candidates.

    Args:
        alignment: graphs and pairs, from `owkg.align.read_alignment`.
        left, right: embeddings of each graph in the order of its ids, floats [entities, d].
        similarity: minus the L1 or the L2 distance ("l1", default, or "l2"), "dot" or "cosine".
        model: entry of the column `model`. Default: no such column.
        on_progress: function called with (done, total) tiles of similarities.

    Returns:
        Rank table of the relation sameAs, with two rows for each test pair, and with popularity: the number
        of triples of its graph that contain the answer.

    Raises:
        ValueError: naming the argument, if an array has the wrong shape or a number is not finite.
    """
    left, right = _comparable(alignment, left, right, similarity)
    pairs = _test_checked(alignment)
    if _one_to_one(pairs):
        ranks = _of_tiles(SIMILARITIES[similarity], left[pairs[:, 0]], right[pairs[:, 1]], on_progress)
    else:
        every = SIMILARITIES[similarity].all

        def compared(i: np.ndarray, j: np.ndarray) -> np.ndarray:
            return np.asarray(every(jnp.asarray(left[i]), jnp.asarray(right[j])))

        ranks = _of_blocks(pairs, compared, on_progress)
    return _table(alignment, ranks, model)


@reproducible
def rank_matrix(alignment: Alignment, matrix: ArrayLike, *, model: str | None = None) -> RankTable:
    """Ranks of the test pairs, in both directions, by a matrix of similarities.

    Args:
        alignment: graphs and pairs, from `owkg.align.read_alignment`.
        matrix: similarities of all entities in the order of their ids, floats [left entities, right
            entities], larger for more similar entities. Or [test pairs, test pairs]: similarities of the left
            and the right entity of each pair.
        model: entry of the column `model`. Default: no such column.

    Returns:
        Rank table, as from `rank_embeddings`.

    Raises:
        ValueError: naming the argument, if the matrix has the wrong shape or holds NaN.
    """
    pairs = _test_checked(alignment)
    matrix, places = _matrix_checked(alignment, matrix, pairs)
    return _table(alignment, _of_blocks(places, lambda i, j: matrix[np.ix_(i, j)], None), model)


@reproducible
def similarity_of_pairs(
    alignment: Alignment, given: ArrayLike | tuple[ArrayLike, ArrayLike], *, similarity: str = "l1"
) -> np.ndarray:
    """Similarities of the left and right entities of the test pairs, [test pairs, test pairs].

    Similarities of very large or very small embeddings are scaled by a common positive factor.

    Args:
        alignment: graphs and pairs, from `owkg.align.read_alignment`.
        given: embeddings (left, right) as for `rank_embeddings`, or a matrix as for `rank_matrix`.
        similarity: similarity of embeddings, as for `rank_embeddings`. Default "l1".

    Raises:
        ValueError: as `rank_embeddings` and `rank_matrix`.
    """
    pairs = _test_checked(alignment)
    if isinstance(given, tuple):
        left, right = _comparable(alignment, given[0], given[1], similarity)
        every, columns = SIMILARITIES[similarity].all, jnp.asarray(right[pairs[:, 1]])
        rows = (jnp.asarray(left[pairs[i : i + _TILE, 0]]) for i in range(0, len(pairs), _TILE))
        return np.concatenate([every(part, columns) for part in rows])
    matrix, places = _matrix_checked(alignment, given, pairs)
    return matrix[np.ix_(*places.T)]


def _comparable(
    alignment: Alignment, left: ArrayLike, right: ArrayLike, similarity: str
) -> tuple[np.ndarray, np.ndarray]:
    """Checked embeddings of both sides; ValueError as `rank_embeddings`."""
    similarity_named(similarity)
    # A common offset of all embeddings would cost digits of single precision, if they have more.
    far = any(np.asarray(given).dtype == np.float64 for given in (left, right))
    one, two = (
        _embeddings_checked(name, given, graph.num_entities)
        for name, given, graph in (("left", left, alignment.left), ("right", right, alignment.right))
    )
    if one.shape[1] != two.shape[1]:
        text = f"must be as wide as `left`, {one.shape[1]}, got {two.shape[1]}."
        raise ArgumentError("right", text)
    # Double precision makes proportional rows equal, and avoids over- and underflow.
    if similarity == "cosine":
        one, two = (_scaled(rows, axis=1) for rows in (one, two))
        one, two = (
            rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30) for rows in (one, two)
        )
    elif similarity == "dot":
        one, two = (_scaled(rows) for rows in (one, two))
    else:
        both = _scaled(np.concatenate([one, two]))
        one, two = np.split(_scaled(both - both.mean(0)) if far else both, [len(one)])
    return one.astype(np.float32), two.astype(np.float32)


def _scaled(rows: np.ndarray, axis: int | None = None) -> np.ndarray:
    """Numbers divided by a power of two, which changes no digit, if float32 may not hold their squares."""
    power = np.frexp(np.abs(rows).max(axis=axis, keepdims=True))[1]
    return np.ldexp(rows, np.where(np.abs(power) > _POWERS, -power, 0))


def _matrix_checked(
    alignment: Alignment, matrix: ArrayLike, pairs: np.ndarray
) -> tuple[np.ndarray, Int32[np.ndarray, "pairs 2"]]:
    """Matrix, and the row and the column of each pair; ValueError as `rank_matrix`."""
    matrix = np.asarray(matrix)
    shapes = ((alignment.left.num_entities, alignment.right.num_entities), (len(pairs), len(pairs)))
    if matrix.dtype.kind != "f" or matrix.shape not in shapes:
        text = f"must be floats of shape {shapes[0]} (all entities) or {shapes[1]} (test pairs), got "
        raise ArgumentError("matrix", f"{text}{matrix.dtype} of shape {matrix.shape}.")
    places = pairs
    if matrix.shape != shapes[0]:
        if not _one_to_one(pairs):
            raise ArgumentError(
                "matrix", f"must be of all entities, {shapes[0]}, because some are in several pairs."
            )
        places = np.stack([np.arange(len(pairs))] * 2, axis=1)
    _refuse_nan("matrix", matrix)
    return matrix, places


def _embeddings_checked(name: str, given: ArrayLike, entities: int) -> np.ndarray:
    """Embeddings as float64; ArgumentError if they have the wrong shape or are not finite."""
    array = np.asarray(given)
    if array.dtype.kind != "f" or array.ndim != 2 or len(array) != entities or not array.size:
        text = f"must be floats of shape [{entities}, d], one row per entity, got "
        raise ArgumentError(name, f"{text}{array.dtype} of shape {array.shape}.")
    array = array.astype(np.float64)
    bad = ~np.isfinite(array).all(axis=1)
    if bad.any():
        raise ArgumentError(name, f"must be finite, got NaN or infinity for entity {int(np.argmax(bad))}.")
    return array


def _refuse_nan(name: str, matrix: np.ndarray) -> None:
    """ArgumentError naming the first NaN of a matrix."""
    bad = np.isnan(matrix).any(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        column = int(np.argmax(np.isnan(matrix[row])))
        raise ArgumentError(name, f"must not be NaN, got NaN at row {row}, column {column}.")


def _test_checked(alignment: Alignment) -> Int32[np.ndarray, "pairs 2"]:
    """Test pairs of an alignment; ArgumentError if there are none."""
    if not isinstance(alignment, Alignment):
        raise ArgumentError("alignment", f"must be an Alignment, got {alignment!r}.")
    if not len(alignment.test):
        raise ArgumentError("alignment", "must have test pairs, got none.")
    return alignment.test


def _one_to_one(pairs: np.ndarray) -> bool:
    """Whether no entity is in two pairs."""
    return all(len(np.unique(ids)) == len(ids) for ids in pairs.T)


# --- one-to-one: every similarity is computed once, and counted for both directions


def _of_tiles(
    similarity: Similarity,
    left: np.ndarray,
    right: np.ndarray,
    on_progress: Callable[[int, int], None] | None,
) -> dict[str, Ranks]:
    """Ranks in both directions, from tiles of similarities."""
    count = len(left)
    across = -(-count // _TILE)
    size = -(-count // across)
    tiled = [
        jnp.pad(rows, ((0, across * size - count), (0, 0))).reshape(across, size, -1)
        for rows in (left, right)
    ]
    is_pair = (jnp.arange(across * size) < count).reshape(across, size)
    own = _own(similarity, *tiled)
    counts = np.zeros((2, 2, across, size), np.int64)  # above, level; by left entity, by right entity
    for row in range(across):
        of_left, of_right = _row_counts(similarity, row, *tiled, own, is_pair)
        counts[:, 0, row] += np.asarray(of_left)
        counts[:, 1] += np.asarray(of_right)
        if on_progress is not None:
            on_progress((row + 1) * across, across * across)
    above, level = counts.reshape(2, 2, -1)[:, :, :count]
    return {
        side: Ranks(1 + above[i], level[i], np.full(count, count)) for i, side in enumerate(reversed(SIDES))
    }


@partial(jax.jit, static_argnames="similarity")
def _own(similarity: Similarity, left: Array, right: Array) -> Int32[Array, "tiles size"]:
    """Ordered similarity of each pair, equal to the last bit to that in its tile."""
    return jax.lax.map(lambda tile: jnp.diagonal(sortable(similarity.all(*tile))), (left, right))


@partial(jax.jit, static_argnames="similarity")
def _row_counts(
    similarity: Similarity,
    row: Int[Array, ""],
    left: Float[Array, "tiles size d"],
    right: Float[Array, "tiles size d"],
    own: Int32[Array, "tiles size"],
    is_pair: Bool[Array, "tiles size"],
) -> tuple[Any, Any]:
    """Numbers above and at least level: by left entity of one row of tiles, and by right entity."""

    def flags(keys: Array, own: Array, there: Array) -> tuple[Array, Array]:
        return (keys > to_pass(own)) & there, (keys >= to_reach(own)) & there

    def one(sums: tuple[Array, Array], tile: tuple[Array, ...]) -> tuple[Any, Any]:
        candidates, own_right, there = tile
        keys = sortable(similarity.all(left[row], candidates))
        by_row = counted(flags(keys, own[row][:, None], there[None, :]), (1,))
        by_column = counted(flags(keys, own_right[None, :], is_pair[row][:, None]), (0,))
        return jax.tree.map(jnp.add, sums, by_row), by_column

    nothing = (jnp.zeros(left.shape[1], jnp.int32),) * 2
    return jax.lax.scan(one, nothing, (right, own, is_pair))


# --- entities in several pairs


def _of_blocks(
    pairs: np.ndarray,
    compared: Callable[[np.ndarray, np.ndarray], np.ndarray],
    on_progress: Callable[[int, int], None] | None,
) -> dict[str, Ranks]:
    """Ranks in both directions, from blocks of similarities."""
    ranks = {}
    for done, (side, asked, answer) in enumerate((("tail", 0, 1), ("head", 1, 0))):
        candidates, target = np.unique(pairs[:, answer], return_inverse=True)
        # Pairs are sorted by query and answer, so that known answers of a query are adjacent and in order.
        order = np.lexsort((target, pairs[:, asked]))
        grouped, known = pairs[order, asked], target[order].astype(np.int32)
        block = max(1, _BLOCK_ENTRIES // len(candidates))
        found = Ranks(*(np.empty(len(pairs), np.int64) for _ in Ranks._fields))
        for begin in range(0, len(pairs), block):
            own = order[begin : begin + block]
            queries = pairs[own, asked]
            scores = compared(queries, candidates) if side == "tail" else compared(candidates, queries).T
            start, stop = np.searchsorted(grouped, queries), np.searchsorted(grouped, queries, side="right")
            part = ranks_from_scores(scores, target[own], known=EntitySets(start, stop, known))
            for column, values in zip(found, part, strict=True):
                column[own] = values
            if on_progress is not None:
                on_progress(done * len(pairs) + begin + len(own), 2 * len(pairs))
        ranks[side] = found
    return ranks


def _table(alignment: Alignment, ranks: dict[str, Ranks], model: str | None) -> RankTable:
    """Validated rank table of the test pairs."""
    pairs = alignment.test
    head, tail = (
        pl.Series(graph.entities, dtype=pl.String).gather(ids)
        for graph, ids in zip((alignment.left, alignment.right), pairs.T, strict=True)
    )
    parts = []
    for side, graph, ids in (("tail", alignment.right, pairs[:, 1]), ("head", alignment.left, pairs[:, 0])):
        degree = np.bincount(graph.splits["train"][:, [0, 2]].ravel(), minlength=graph.num_entities)
        columns: dict[str, Any] = {
            "head": head,
            "relation": pl.repeat(RELATION, len(pairs), eager=True),
            "tail": tail,
        }
        columns["side"] = pl.repeat(side, len(pairs), eager=True)
        columns |= {name: getattr(ranks[side], name) for name in RANKS}
        columns["filtered"] = pl.repeat(True, len(pairs), dtype=pl.Boolean, eager=True)
        columns["popularity"] = degree[ids]
        parts.append(pl.DataFrame(columns))
    table = pl.concat(parts)
    if model is not None:
        table = table.with_columns(model=pl.lit(model))
    return RankTable.trusted(validated(table), {"split": "test", "train_pairs": len(alignment.train)})
