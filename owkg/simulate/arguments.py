"""Checks of what all simulations are called with."""

from collections.abc import Iterable
from typing import Any

from owkg.metrics import Metric
from owkg.metrics.names import checked


def checked_metrics(metrics: Any) -> tuple[Metric, ...]:
    """One metric or several, or their names, each a plain mean, as a tuple; ValueError for anything else."""
    several = isinstance(metrics, Iterable) and not isinstance(metrics, str)
    metrics = tuple(metrics) if several else (metrics,)
    if not metrics or not all(isinstance(m, Metric | str) for m in metrics):
        raise ValueError(f"`metrics` must be one or more metrics, got {metrics!r}.")
    return tuple(checked(metric) for metric in metrics)
