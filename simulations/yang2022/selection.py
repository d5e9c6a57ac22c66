"""Selection of one metric on the full test and on another test set, with checks."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32

from owkg import checks
from owkg.metrics import metric as metric_named
from simulations.open_world.curves import FULL, Curves


class Selection(NamedTuple):
    """Means of one metric over the answers to each query.

    Attributes:
        full: means on the full test.
        sparse: means on the other test set.
    """

    full: Float32[np.ndarray, "checkpoints queries"]
    sparse: Float32[np.ndarray, "checkpoints queries"]


def sparse_sets(curves: Curves) -> tuple[str, ...]:
    """Test sets of `curves` except the full one, in their order."""
    return tuple(name for name in curves.values if name != FULL)


def metric_index(curves: Curves, metric: Any) -> int:
    """Index of a metric in `curves.metrics`; "p-mrr@1/4" also finds "p-mrr@0.25".

    Raises:
        ValueError: if the metric is not there; the message names the metrics of the curves.
    """
    if metric in curves.metrics:
        return curves.metrics.index(metric)
    try:
        return [_canonical(name) for name in curves.metrics].index(metric_named(metric).name)
    except ValueError:  # not a metric, or not one of these
        raise ValueError(f"`metric` must be one of {', '.join(curves.metrics)}, got {metric!r}.") from None


def _canonical(name: str) -> str:
    """The canonical name of a metric that `owkg.metrics` knows; any other name is unchanged."""
    try:
        return metric_named(name).name
    except ValueError:
        return name


def checked_curves(curves: Any) -> Curves:
    """`curves`, checked to have arrays that fit together and hold finite numbers only.

    Raises:
        ValueError: if they do not, or there is no full test, no other test set, or fewer than two queries.
    """
    if not isinstance(curves, Curves):
        raise ValueError(f"`curves` must be a Curves, got {type(curves).__name__}.")
    if FULL not in curves.values or len(curves.values) < 2:
        found = ", ".join(curves.values) or "none"
        raise ValueError(f"`curves` must have the test set {FULL} and another one, got {found}.")
    checkpoints = len(curves.config)
    shape = (len(curves.metrics), checkpoints, np.shape(curves.values[FULL])[-1])
    for name, values in curves.values.items():
        if np.shape(values) != shape:
            raise ValueError(
                f"`curves` must have values of the shape metrics, checkpoints, queries = {shape} on every "
                f"test set, got {np.shape(values)} on {name}."
            )
    if len(curves.step) != checkpoints or len(curves.models) != len(curves.labels):
        raise ValueError(
            f"`curves` must have a step for each of its {checkpoints} checkpoints and a model for each of "
            f"its {len(curves.labels)} configurations, got {len(curves.step)} and {len(curves.models)}."
        )
    if min(shape) < 1 or shape[-1] < 2:
        raise ValueError(
            "`curves` must have a metric, a checkpoint and at least two queries, got the shape "
            f"metrics, checkpoints, queries = {shape}."
        )
    config = np.asarray(curves.config)
    checks.require(
        "curves.config", config, (config >= 0) & (config < len(curves.labels)), f"below {len(curves.labels)}"
    )
    for name, values in curves.values.items():
        checks.require(f"curves.values[{name!r}]", values, np.isfinite(values), "finite")
    return curves


def selected(curves: Curves, metric: Any, test_set: Any) -> Selection:
    """One metric on the full test and on one other test set.

    Args:
        curves: curves from `checked_curves`.
        metric: one of `curves.metrics`.
        test_set: one of `curves.values` except the full one.

    Raises:
        ValueError: if the metric or the test set is not there; the message names the available ones.
    """
    known = sparse_sets(curves)
    if test_set not in known:
        raise ValueError(f"`test_set` must be one of {', '.join(known)}, got {test_set!r}.")
    at = metric_index(curves, metric)
    return Selection(curves.values[FULL][at], curves.values[test_set][at])
