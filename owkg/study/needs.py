"""What a run needs before it starts: memory."""

from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from owkg.study.world import World
from owkg.train import Training, state_shape

# Where Linux says what is free.
_MEMINFO = Path("/proc/meminfo")
# What Python and JAX take by themselves, and how far the sum below may be off.
_BASE, _SLACK = 0.6 * 2**30, 1.3
# Scores of the questions of a step, their exponentials, and the gradients of both.
_SCORES = 4
# Gradients and updates beside the parameters, and what entities are compared as.
_COPIES = 4


class Needs(NamedTuple):
    """Bytes that training takes at most, about, and bytes that are free; None where that is not known."""

    bytes: int
    free: int | None


def needs(world: World, config: Training) -> Needs:
    """About how much memory it takes to train on a world, and how much there is."""
    state = state_shape(config, world.graph.num_entities, world.graph.num_relations)

    def size(tree: object) -> int:
        return sum(int(np.prod(x.shape)) * x.dtype.itemsize for x in jax.tree.leaves(tree))

    scores = config.batch_size * world.graph.num_entities * 4 if config.regime != "negatives" else 0
    drawn = size(state) + _COPIES * size(state.params) + _SCORES * scores
    return Needs(int(_BASE + _SLACK * drawn), _free())


def _free() -> int | None:
    device = jax.devices()[0]
    if device.platform != "cpu":
        stats = device.memory_stats() or {}
        limit = stats.get("bytes_limit")
        return None if limit is None else int(limit)
    if not _MEMINFO.is_file():
        return None
    lines = dict(line.split(":", 1) for line in _MEMINFO.read_text(encoding="ascii").splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024
