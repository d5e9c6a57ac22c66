"""Memory for a block of queries and their scores."""

from typing import Any

import jax
import jax.numpy as jnp

from owkg.evaluation.tiles import LEAST_TILES
from owkg.files.storage import free_memory
from owkg.models import Trained

# Bytes for a block: on a CPU, as much as its caches hold; elsewhere, enough to outweigh the cost of a call.
_CPU_BYTES, _OTHER_BYTES = 3 * 2**23, 2**28
# A block of fewer queries takes almost as long as one of `_FEW`, which take almost as long as `_MANY`.
_FEW, _MANY = 64, 256
# Bounds on a block with all scores of its queries: bytes, and 1 / share of the free memory.
_LEAST_BYTES, _MOST_BYTES, _SHARE = 2**26, 2**30, 8


def query_numbers(trained: Trained) -> int:
    """Numbers that a query takes: its scores and its row, which in a table is as wide as all scores."""
    id_ = jax.ShapeDtypeStruct((1,), jnp.int32)
    row = jax.eval_shape(lambda own, *ids: own.queries(*ids, "tail"), trained, id_, id_)
    return trained.num_entities + row.shape[-1]


def block_shape(
    size: int, row: int, width: int, num_entities: int, tile: int, devices: int = 1
) -> tuple[int, int]:
    """(Queries of a block, groups of tiles that are scored one after the other), for `size` numbers.

    A product of few rows takes almost as long as a product of many. If fewer than 64 queries fit with the
    scores of all entities, up to 256 are therefore scored against a part of the entities at a time, provided
    that twice as many fit. On each device a group has about as many tiles as a small graph, or more. The rows
    of the candidates of a group are copied as well, twice; groups are smaller where rows are wide.

    Args:
        size: how many numbers a block may hold.
        row: numbers of the row of a query.
        width: numbers of the row of a candidate.
        num_entities: number of entities.
        tile: number of entities in a tile.
        devices: number of devices, which share the tiles.
    """
    whole = max(1, size // (row + num_entities))
    tiles = -(-num_entities // (tile * devices))
    queries = min(_MANY, size // (row + LEAST_TILES * tile * devices))
    if whole >= _FEW or queries < 2 * whole or tiles < 2 * LEAST_TILES:
        return whole, 1
    scores, rows = (size - queries * row) // queries, size // (2 * width)
    return queries, -(-tiles // max(LEAST_TILES, min(scores, rows) // (tile * devices)))


def block_bytes(device: Any) -> int:
    """Bytes for the queries of a block and the scores that it holds at a time, on one of several devices.

    24 MiB on a CPU; 256 MiB on an accelerator, but at most an eighth of its free memory.
    """
    if device.platform == "cpu":
        return _CPU_BYTES
    return max(_CPU_BYTES, _share_of(device, _OTHER_BYTES))


def whole_bytes(device: Any, numbers: int) -> int:
    """Bytes for a block of queries with all their scores, which are `numbers` numbers for each query.

    Enough for 256 queries, at least 64 MiB, at most 1 GiB and an eighth of the free memory.
    """
    return max(_LEAST_BYTES, _share_of(device, min(_MOST_BYTES, 4 * numbers * _MANY)))


def _share_of(device: Any, size: int) -> int:
    """`size`, but at most an eighth of the free memory."""
    free = free_bytes(device)
    return size if free is None else min(size, free // _SHARE)


def free_bytes(device: Any) -> int | None:
    """Free bytes on a device; None if unknown."""
    if device.platform != "cpu":
        stats = device.memory_stats() or {}
        limit = stats.get("bytes_limit")
        return None if limit is None else int(limit) - int(stats.get("bytes_in_use", 0))
    return free_memory()
