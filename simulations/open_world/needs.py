"""Memory estimate of a study."""

from typing import NamedTuple

import jax
import numpy as np

from owkg.evaluation.memory import free_bytes
from owkg.train import Training, state_shape
from simulations.open_world.world import ClosedWorld

# Memory of Python and JAX by themselves, and the margin of error of the sum below.
_BASE, _SLACK = 0.6 * 2**30, 1.3
# Scores of the queries of a step, their exponentials, and the gradients of both.
_SCORES = 4
# Gradients and updates in addition to the parameters, and the arrays that entities are compared in.
_COPIES = 4


# Bytes of an answer at a checkpoint when all checkpoints are read and test sets resampled: ranks and score on
# the full test, the same after permuting, their order, and the values of a metric.
_READ = 280


class Needs(NamedTuple):
    """(bytes needed at most, approximately; free bytes, or None if unknown)."""

    bytes: int
    free: int | None


def reading_needs(world: ClosedWorld, checkpoints: int) -> Needs:
    """Approximate memory needed to read all checkpoints of a world and resample their test sets."""
    return Needs(int(_BASE + _READ * checkpoints * len(world.triples)), free_bytes(jax.devices()[0]))


def training_needs(world: ClosedWorld, config: Training) -> Needs:
    """Approximate memory needed to train on a world, and the free memory."""
    state = state_shape(config, **world.graph.sizes, num_facts=len(world.graph.splits["train"]))

    def size(tree: object) -> int:
        return sum(int(np.prod(x.shape)) * x.dtype.itemsize for x in jax.tree.leaves(tree))

    scores = config.batch_size * world.graph.num_entities * 4 if config.training_loop != "negatives" else 0
    drawn = size(state) + _COPIES * size(state.params) + _SCORES * scores
    return Needs(int(_BASE + _SLACK * drawn), free_bytes(jax.devices()[0]))
