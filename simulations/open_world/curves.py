"""Metrics of checkpoints by query, on the full and on sparse test sets."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int32, Int64

FULL = "full"
"""Name of the test set of all facts outside train; every other test set lacks some of them."""

SPARSE, CORRELATED = "sparse", "correlated"
"""Test sets with missing facts: missing at random, and missing by the predictions of a model."""

_PUBLISHED_DENSITY = 0.75


class Curves(NamedTuple):
    """All checkpoints of all configurations on one open world.

    Attributes:
        density: share of the facts of the closed world that are known.
        metrics: names of `owkg.metrics`.
        labels: label of each configuration.
        models: model of each configuration, a name of `owkg.models.MODELS`.
        config: configuration of each checkpoint, [checkpoints].
        step: training step of each checkpoint, [checkpoints].
        values: by test set ("full", "sparse", and others such as "correlated"), the mean of each metric over
            the answers to each query, [metrics, checkpoints, queries].
    """

    density: float
    metrics: tuple[str, ...]
    labels: tuple[str, ...]
    models: tuple[str, ...]
    config: Int32[np.ndarray, "checkpoints"]
    step: Int64[np.ndarray, "checkpoints"]
    values: dict[str, Float32[np.ndarray, "metrics checkpoints queries"]]


def nearest_published(curves: Iterable[Curves]) -> Curves:
    """The curves whose density is the nearest to 0.75, the density of the figures of one density."""
    return min(curves, key=lambda one: abs(one.density - _PUBLISHED_DENSITY))


def without(curves: Curves, label: str) -> Curves:
    """The curves of all configurations except the one with the given label."""
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
