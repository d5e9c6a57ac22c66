"""Memory estimate of a study."""

from typing import NamedTuple

import jax
import numpy as np

from owkg.evaluation.memory import free_bytes
from owkg.train import Training, state_shape
from simulations.open_world.world import ClosedWorld

# What Python and JAX take by themselves, and how far the sum below may be off.
_BASE, _SLACK = 0.6 * 2**30, 1.3
# Scores of the queries of a step, their exponentials, and the gradients of both.
_SCORES = 4
# Gradients and updates beside the parameters, and what entities are compared as.
_COPIES = 4


# Of an answer at a checkpoint, when all are read and test sets resampled: ranks and score on the full test
# and once more permuted anew, their order, and the values of a metric.
_READ = 280


class Needs(NamedTuple):
    """Bytes that it takes at most, about, and bytes that are free; None where that is not known."""

    bytes: int
    free: int | None


def reading_needs(world: ClosedWorld, checkpoints: int) -> Needs:
    """About how much memory it takes to read all checkpoints of a world and resample their test sets."""
    return Needs(int(_BASE + _READ * checkpoints * len(world.triples)), free_bytes(jax.devices()[0]))


def training_needs(world: ClosedWorld, config: Training) -> Needs:
    """About how much memory it takes to train on a world, and how much there is."""
    state = state_shape(config, **world.graph.sizes, num_facts=len(world.graph.splits["train"]))

    def size(tree: object) -> int:
        return sum(int(np.prod(x.shape)) * x.dtype.itemsize for x in jax.tree.leaves(tree))

    scores = config.batch_size * world.graph.num_entities * 4 if config.training_loop != "negatives" else 0
    drawn = size(state) + _COPIES * size(state.params) + _SCORES * scores
    return Needs(int(_BASE + _SLACK * drawn), free_bytes(jax.devices()[0]))
