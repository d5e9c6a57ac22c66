"""Metrics of checkpoints by query, on the full and on sparse test sets."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int32, Int64

FULL = "full"
"""The test set of all facts that are not in train; every other test set has some of them missing."""

SPARSE, CORRELATED = "sparse", "correlated"
"""Test sets of which facts are missing: at random, and by the predictions of a model."""

_PUBLISHED_DENSITY = 0.75


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


def nearest_published(curves: Iterable[Curves]) -> Curves:
    """The curves whose density is the nearest to that of the figures of one density, 0.75."""
    return min(curves, key=lambda one: abs(one.density - _PUBLISHED_DENSITY))


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
