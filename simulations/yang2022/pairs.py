"""Inconsistent pairs of checkpoints of different models, counted in tiles."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

# Number of differences of a tile (pairs times queries), which fits into a processor's cache.
_ENTRIES = 2**19
_LARGEST_TILE = 32
# Number of pairs of tiles that are counted between two checks of the clock or the keyboard.
_AT_ONCE = 2**10


class Tiles(NamedTuple):
    """Checkpoints of one group each, in rows of one length, and the pairs of rows to compare.

    Attributes:
        checkpoint: number of the checkpoint, [tiles, size]; 0 where there is none.
        real: whether there is a checkpoint, [tiles, size].
        pairs: pairs of tiles of different groups, each once, [pairs, 2].
        num_pairs: number of pairs of checkpoints.
    """

    checkpoint: Int[np.ndarray, "tiles size"]
    real: Bool[np.ndarray, "tiles size"]
    pairs: Int[np.ndarray, "pairs 2"]
    num_pairs: int


class PairCounts(NamedTuple):
    """Numbers of pairs of checkpoints under each weighting of the queries.

    Attributes:
        distinct: pairs whose full difference is beyond its error.
        contradicting: pairs whose sparse difference has the opposite sign, by test set.
        inconsistent: contradicting pairs with both differences beyond their errors, by test set.
    """

    distinct: Int[np.ndarray, "weights"]
    contradicting: Int[np.ndarray, "sets weights"]
    inconsistent: Int[np.ndarray, "sets weights"]


def tiles_of(group: Int[np.ndarray, "checkpoints"], queries: int) -> Tiles:
    """Cuts checkpoints into tiles of one group each.

    Args:
        group: group of each checkpoint; checkpoints of one group are not compared.
        queries: number of queries.

    Examples:
        >>> tiles = tiles_of(np.array([0, 0, 1, 0]), 100)
        >>> tiles.checkpoint.tolist(), tiles.pairs.tolist(), tiles.num_pairs
        ([[0, 1, 3], [2, 0, 0]], [[0, 1]], 3)
    """
    names, sizes = np.unique(group, return_counts=True)
    most = max(1, min(_LARGEST_TILE, int((_ENTRIES / queries) ** 0.5)))
    # Sizes tiles so that the largest group leaves no tile nearly empty.
    size = -(-int(sizes.max()) // -(-int(sizes.max()) // most))
    rows, of_group = [], []
    for name in names:
        members = np.flatnonzero(group == name)
        for start in range(0, len(members), size):
            rows.append(members[start : start + size])
            of_group.append(name)
    real = np.arange(size) < np.array([len(row) for row in rows])[:, None]
    checkpoint = np.stack([np.pad(row, (0, size - len(row))) for row in rows])
    first, second = np.triu_indices(len(rows), k=1)
    apart = np.array(of_group)[first] != np.array(of_group)[second]
    pairs = np.stack([first, second], axis=1)[apart]
    together = int((sizes * (sizes - 1) // 2).sum())
    return Tiles(checkpoint, real, pairs, len(group) * (len(group) - 1) // 2 - together)


@jax.jit
def _counted(
    values: Float[Array, "sets tiles size queries"],
    real: Bool[Array, "tiles size"],
    pairs: Int[Array, "pairs 2"],
    weights: Float[Array, "queries weights"],
    z: Float[Array, ""],
) -> tuple[Array, Array, Array]:
    """Counts of `PairCounts`; the first of the sets is the full test."""
    queries, num_weights = weights.shape
    means = values @ weights
    sparse_sets = len(values) - 1
    # Equal checkpoints have equal means except for rounding.
    rounding = 16 * jnp.finfo(weights.dtype).eps

    none = jnp.zeros((sparse_sets, num_weights), jnp.int32)

    def one_pair(counts: tuple, pair: Array) -> tuple[tuple, None]:
        one, two = pair
        valid = (real[one][:, None] & real[two][None, :])[..., None]

        def difference(at: int) -> Array:
            """Difference of the means on a test set, [pairs, weights]; 0 if it is rounding or not a pair."""
            first, second = means[at, one][:, None], means[at, two][None, :]
            least = rounding * jnp.maximum(jnp.abs(first), jnp.abs(second))
            apart = first - second
            return jnp.where(valid & (jnp.abs(apart) > least), apart, 0).reshape(-1, num_weights)

        def beyond_error(at: int, mean: Array) -> Array:
            """Whether the difference exceeds z standard errors, [pairs, weights]."""
            each = values[at, one][:, None] - values[at, two][None, :]
            squares = (each * each).reshape(-1, queries) @ weights
            variance = jnp.maximum(squares - mean * mean, 0) / (queries - 1)
            return mean * mean > z * z * variance

        def both_beyond(at: int, seen: Array, sparse: Array) -> Array:
            """Number of the pairs `seen` that also differ beyond the error of a sparse test, [weights]."""
            return (seen & beyond_error(at, sparse)).sum(axis=0, dtype=jnp.int32)

        full = difference(0)
        beyond = beyond_error(0, full)
        contradicting, inconsistent = [], []
        for at in range(1, sparse_sets + 1):
            sparse = difference(at)
            opposed = ((full > 0) & (sparse < 0)) | ((full < 0) & (sparse > 0))
            seen = opposed & beyond
            contradicting.append(opposed.sum(axis=0, dtype=jnp.int32))
            # Most tiles have no such pair, and then the errors of the sparse test are not needed.
            inconsistent.append(
                jax.lax.cond(seen.any(), partial(both_beyond, at), lambda *_: none[0], seen, sparse)
            )
        more = (beyond.sum(axis=0, dtype=jnp.int32), jnp.stack(contradicting), jnp.stack(inconsistent))
        return tuple(map(jnp.add, counts, more)), None

    counts, _ = jax.lax.scan(one_pair, (none[0], none, none), pairs)
    return counts


def count_pairs(
    tiles: Tiles,
    values: Float[np.ndarray, "sets checkpoints queries"],
    weights: Float[np.ndarray, "weights queries"],
    z: float,
) -> PairCounts:
    """Counts pairs of checkpoints under every weighting of the queries, in the precision of `weights`.

    Args:
        tiles: tiles of the checkpoints.
        values: values on the full test, then on other test sets.
        weights: weights of the queries, each row summing to 1.
        z: number of standard errors that a difference must exceed to count as beyond its error.
    """
    dtype = weights.dtype
    with jax.enable_x64(dtype == np.float64):
        laid_out = jnp.asarray(values.astype(dtype)[:, tiles.checkpoint])
        counted = partial(_counted, laid_out, jnp.asarray(tiles.real))
        across, beyond = jnp.asarray(weights.T), jnp.asarray(z, dtype)
        found = [counted(jnp.asarray(part), across, beyond) for part in _parts(tiles.pairs)]
        distinct, contradicting, inconsistent = (
            np.sum(np.stack([np.asarray(counts, np.int64) for counts in same]), axis=0)
            for same in zip(*found, strict=True)
        )
        return PairCounts(distinct, contradicting, inconsistent)


def _parts(pairs: Int[np.ndarray, "pairs 2"]) -> Iterator[Int[np.ndarray, "part 2"]]:
    for start in range(0, len(pairs), _AT_ONCE):
        yield pairs[start : start + _AT_ONCE].astype(np.int32)


def differences(
    values: Float[np.ndarray, "checkpoints queries"],
) -> tuple[Float[np.ndarray, "checkpoints checkpoints"], Float[np.ndarray, "checkpoints checkpoints"]]:
    """Means and standard errors of the paired differences between all checkpoints, first minus second.

    Args:
        values: value of each checkpoint and query.
    """
    values = values.astype(np.float64)
    mean = values.mean(axis=1)
    centred = values - mean[:, None]
    products = centred @ centred.T / (values.shape[1] - 1)
    own = np.diag(products)
    variance = np.maximum(own[:, None] + own[None, :] - 2 * products, 0)
    return mean[:, None] - mean[None, :], np.sqrt(variance / values.shape[1])
