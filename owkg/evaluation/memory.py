"""Memory for a block of queries and their scores."""

from typing import Any

import jax
import jax.numpy as jnp

from owkg.files.storage import free_memory
from owkg.models import Trained

# On a CPU, as much as its caches hold; elsewhere, enough to outweigh the cost of a call.
_CPU_BYTES, _OTHER_BYTES = 3 * 2**23, 2**28
# Numbers of queries that outweigh reading all entities for them: the small number where caches still hold the
# scores, the large one where they do not and more queries are better. Larger blocks are allocated anew each
# time.
_FEW, _MANY, _REUSED_BYTES = 64, 256, 2**25
# Upper bounds on a block: bytes, and 1 / share of the free memory.
_MOST_BYTES, _SHARE = 2**30, 8


def query_numbers(trained: Trained) -> int:
    """Numbers that a query takes: its scores and its row, which in a table is as wide as all scores."""
    id_ = jax.ShapeDtypeStruct((1,), jnp.int32)
    row = jax.eval_shape(lambda own, *ids: own.queries(*ids, "tail"), trained, id_, id_)
    return trained.num_entities + row.shape[-1]


def block_bytes(device: Any, numbers: int) -> int:
    """Bytes for a block of queries with `numbers` numbers each, on one of several devices.

    On a CPU the block holds 64 queries, or 256 if 64 queries take more than 32 MiB; it takes at least 24 MiB,
    and otherwise at most 1 GiB and an eighth of the free memory. On an accelerator it holds 256 queries and
    takes at least 256 MiB.
    """
    least = _CPU_BYTES if device.platform == "cpu" else _OTHER_BYTES
    free = free_bytes(device)
    most = _MOST_BYTES if free is None else min(_MOST_BYTES, free // _SHARE)
    few = device.platform == "cpu" and 4 * numbers * _FEW <= _REUSED_BYTES
    return max(least, min(most, 4 * numbers * (_FEW if few else _MANY)))


def free_bytes(device: Any) -> int | None:
    """Free bytes on a device; None if unknown."""
    if device.platform != "cpu":
        stats = device.memory_stats() or {}
        limit = stats.get("bytes_limit")
        return None if limit is None else int(limit) - int(stats.get("bytes_in_use", 0))
    return free_memory()
