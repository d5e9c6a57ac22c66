"""Metrics of checkpoints by query, on the full and on sparse test sets."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int32, Int64

FULL = "full"
"""The test set of all facts that are not in train; every other test set has some of them missing."""

SPARSE, CORRELATED = "sparse", "correlated"
"""Test sets of which facts are missing: at random, and by the predictions of a model."""


class Curves(NamedTuple):
    """All checkpoints of all configurations on one open world.

    Attributes:
        density: share of the facts of the closed world that are known.
        metrics: names of `owkg.metrics`.
        labels: of the configurations.
        models: of the configurations, names of `owkg.models.MODELS`.
        config: which configuration each checkpoint belongs to, [checkpoints].
        step: of training, of each checkpoint, [checkpoints].
        values: by test set ("full", "sparse", and others such as "correlated"), the mean of each metric
            over the answers to each query, [metrics, checkpoints, queries].
    """

    density: float
    metrics: tuple[str, ...]
    labels: tuple[str, ...]
    models: tuple[str, ...]
    config: Int32[np.ndarray, "checkpoints"]
    step: Int64[np.ndarray, "checkpoints"]
    values: dict[str, Float32[np.ndarray, "metrics checkpoints queries"]]


def without(curves: Curves, label: str) -> Curves:
    """The curves of the other configurations than the one of that label."""
    left_out = curves.labels.index(label)
    config = np.delete(np.arange(len(curves.labels)), left_out)
    kept = curves.config != left_out
    return curves._replace(
        labels=tuple(curves.labels[i] for i in config),
        models=tuple(curves.models[i] for i in config),
        config=np.searchsorted(config, curves.config[kept]).astype(np.int32),
        step=curves.step[kept],
        values={name: values[:, kept] for name, values in curves.values.items()},
    )
