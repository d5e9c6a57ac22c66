"""Chance adjustment of published values, without ranks."""

from typing import Any

import numpy as np

from owkg import checks
from owkg.checks import ArgumentError
from owkg.metrics.chance import Chance
from owkg.metrics.estimate import adjusted_value
from owkg.metrics.evaluate import evaluate
from owkg.metrics.measures import MACRO, Adjustment, Dispersion, Metric
from owkg.metrics.ties import Ties
from owkg.ranks.tasks import tasks


def adjusted_from(metric: Any, value: Any, candidates: Any, *, weight: Any = None, key: Any = None) -> float:
    """The adjusted metric of a table of ranks of which only the plain metric is known.

    Adjustments need the plain metric and the candidates of each task, not the ranks, so published numbers can
    be adjusted (Hoyt et al. 2022): `kg.num_candidates` of both sides gives the candidates of a benchmark.

    Args:
        metric: an adjusted one, such as `metrics.metric("amri")`; not macro, not by popularity.
        value: of the plain metric, MR for amri.
        candidates: whole numbers, of each task.
        weight: of each task; equal when None.
        key: of `jax.random.key`, for chance levels that have to be drawn.

    Returns:
        The adjusted value; NaN where there is nothing to rank.

    Raises:
        ValueError: if `metric` is no such one, or another argument is out of range.

    Examples:
        >>> from owkg.metrics import metric
        >>> round(adjusted_from(metric("amri"), 219.0, [14_541] * 1000), 4)
        0.97
    """
    if not isinstance(metric, Metric) or metric.adjustment is Adjustment.NONE:
        raise ArgumentError("metric", f"must be an adjusted metric, such as amri, got {metric!r}.")
    if isinstance(metric.measure, (*MACRO, Dispersion)):
        raise ArgumentError("metric", f"must be a mean over ranking tasks, got {metric.name}.")
    value = checks.scalar("value", checks.real("value", value, -np.inf, np.inf))
    counts = checks.integer("candidates", candidates, 1)
    plain = Metric("plain", metric.measure, metric.weighting)
    # Ranks of a perfect model: its value is the best one, its chance level that of any.
    perfect = tasks(np.ones(counts.shape, np.int64), candidates=counts, weight=weight)
    found = evaluate(perfect, [plain], ties=[Ties.EXACT], level=None, key=key)[Ties.EXACT]["plain"]
    chance = Chance(found.expectation, found.variance)
    return float(adjusted_value(metric, value, chance, found.value))
