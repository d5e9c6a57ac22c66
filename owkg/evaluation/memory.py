"""How many bytes of queries and of their scores may be there at a time."""

from typing import Any

import jax
import jax.numpy as jnp

from owkg.files.storage import free_memory
from owkg.models import Trained

# On a processor as much as its caches hold, elsewhere enough to outweigh the call.
_CPU_BYTES, _OTHER_BYTES = 2**24, 2**28
# Queries that outweigh the reading of all entities for them: where caches still hold so many scores, and
# where they do not and more is better. Larger blocks are allocated anew each time.
_FEW, _MANY, _REUSED_BYTES = 64, 256, 2**25
# Bounds on what they may take: bytes, and a share of what is free.
_MOST_BYTES, _SHARE = 2**30, 8


def query_numbers(trained: Trained) -> int:
    """Numbers that a query takes: its row, which in a table is as wide as all scores, and its scores."""
    id_ = jax.ShapeDtypeStruct((1,), jnp.int32)
    row = jax.eval_shape(lambda own, *ids: own.queries(*ids, "tail"), trained, id_, id_)
    return trained.num_entities + row.shape[-1]


def block_bytes(device: Any, numbers: int) -> int:
    """Bytes of a block of queries, each of so many numbers, on one of the devices that share the entities.

    What 64 queries take, or 256 where 64 take more than 32 MiB; at most 1 GiB and an eighth of what is
    free, at least 16 MiB. On an accelerator what 256 take, and at least 256 MiB.
    """
    least = _CPU_BYTES if device.platform == "cpu" else _OTHER_BYTES
    free = free_bytes(device)
    most = _MOST_BYTES if free is None else min(_MOST_BYTES, free // _SHARE)
    few = device.platform == "cpu" and 4 * numbers * _FEW <= _REUSED_BYTES
    return max(least, min(most, 4 * numbers * (_FEW if few else _MANY)))


def free_bytes(device: Any) -> int | None:
    """Free bytes on a device; None where that is unknown."""
    if device.platform != "cpu":
        stats = device.memory_stats() or {}
        limit = stats.get("bytes_limit")
        return None if limit is None else int(limit) - int(stats.get("bytes_in_use", 0))
    return free_memory()
