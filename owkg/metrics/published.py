"""Chance levels of benchmarks, and the adjustment of published values, without ranks."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError, naming
from owkg.keys import Seed
from owkg.kg import KnowledgeGraph
from owkg.metrics import front
from owkg.metrics.chance import Chance
from owkg.metrics.estimate import adjusted_value
from owkg.metrics.evaluate import evaluate
from owkg.metrics.measures import Adjustment, Dispersion, Metric
from owkg.metrics.registry import adjusted, metric
from owkg.metrics.ties import Ties
from owkg.ranks.build import perfect_ranks
from owkg.ranks.tasks import tasks


def adjusted_from(
    metric: str | Metric,
    value: float,
    candidates: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    key: Seed | None = None,
) -> float:
    """Adjusted metric of a rank table of which only the plain metric is known.

    Adjustments need the plain metric and the candidates of each task but no ranks, so that published numbers
    can be adjusted (Hoyt et al. 2022). `kg.num_candidates` of both sides gives the candidates of a benchmark.

    Args:
        metric: adjusted metric, such as `metrics.metric("amri")`; macro metrics and metrics weighted by
            popularity are not possible.
        value: value of the plain metric, for example MR for amri.
        candidates: number of candidates of each task, whole numbers.
        weight: weight of each task. None: equal weights.
        key: key of `jax.random.key`, for chance levels that have to be drawn. None: seed 0.

    Returns:
        The adjusted value; NaN if there is nothing to rank.

    Raises:
        ValueError: if `metric` is not such a metric, or another argument is out of range.

    Examples:
        >>> from owkg.metrics import metric
        >>> round(adjusted_from(metric("amri"), 219.0, [14_541] * 1000), 4)
        0.97
    """
    if not isinstance(metric, Metric) or metric.adjustment is Adjustment.NONE:
        raise ArgumentError("metric", f"must be an adjusted metric, such as amri, got {metric!r}.")
    if metric.needs_lists or isinstance(metric.measure, Dispersion):
        raise ArgumentError("metric", f"must be a mean over ranking tasks, got {metric.name}.")
    value = checks.scalar("value", checks.real("value", value, -np.inf, np.inf))
    counts = checks.integer("candidates", candidates, 1)
    plain = Metric("plain", metric.measure, metric.weighting)
    # The ranks of a perfect model give the best value; the chance level is the same for every model.
    perfect = tasks(np.ones(counts.shape, np.int64), candidates=counts, weight=weight)
    found = evaluate(perfect, [plain], ties=[Ties.EXACT], level=None, key=key)[Ties.EXACT]["plain"]
    chance = Chance(found.expectation, found.variance)
    return float(adjusted_value(metric, value, chance, found.value))


def chance_levels(
    graph: KnowledgeGraph,
    metrics: front.MetricNames | None = None,
    *,
    split: str = "test",
    filter: Sequence[str] | None = None,  # noqa: A002
) -> pl.DataFrame:
    """Mean and variance of each metric under random ranking of the triples of a split, by side.

    Chance levels depend only on the candidates of each task, so they are a property of the benchmark.

    Args:
        graph: graph from `owkg.read_graph`.
        metrics: names of metrics. None: the default set.
        split: split whose triples are ranked. Default "test".
        filter: splits whose other answers are removed from the candidates; an empty sequence means raw ranks.
            None: train, valid, test and `split`.

    Returns:
        A frame with the columns side (head, tail, both), metric, tasks, expectation, variance.

    Raises:
        ValueError: naming the argument, if the graph has no such split, or a metric is unknown.
    """
    table = perfect_ranks(graph, split=split, filter=filter)
    found = front.evaluate(table, metrics, side=("head", "tail", "both"), ties="exact", ci=None)
    return found.select("side", "metric", "tasks", "expectation", "variance")


def adjusted_values(
    graph: KnowledgeGraph,
    published: Mapping[str, float],
    *,
    split: str = "test",
    side: str = "both",
    filter: Sequence[str] | None = None,  # noqa: A002
) -> pl.DataFrame:
    """Published values of plain metrics, adjusted for chance in every form: index, ratio and z.

    Args:
        graph, split, filter: as in `chance_levels`.
        published: published values by the name of the metric, such as {"mrr": 0.358}.
        side: side that was predicted: "head", "tail" or "both". Default "both".

    Returns:
        A frame with the columns metric (the adjusted one), value, of (the plain one), published.

    Raises:
        ValueError: naming the argument, if a metric is unknown or has no adjusted form, or a value is
            impossible for any ranks, such as a percentage.
    """
    if side not in ("head", "tail", "both"):
        raise ArgumentError("side", f"must be head, tail or both, got {side!r}.")
    table = perfect_ranks(graph, split=split, filter=filter).frame
    candidates = (table if side == "both" else table.filter(pl.col("side") == side))["candidates"].to_numpy()
    rows = []
    for name, value in published.items():
        with naming({}, "`published` must be valid: "):
            plain = metric(name)
        _check_attained(plain, value, candidates)
        kinds = [a for a in Adjustment if a not in (Adjustment.NONE, Adjustment.CDF)]
        if plain.larger_is_better:
            kinds.remove(Adjustment.RATIO)
        forms = [adjusted(plain, kind) for kind in kinds]
        rows += [(form.name, adjusted_from(form, value, candidates), plain.name, value) for form in forms]
    return pl.DataFrame(rows, schema=["metric", "value", "of", "published"], orient="row")


def _check_attained(plain: Metric, value: float, candidates: np.ndarray) -> None:
    """Raises ArgumentError for a value outside the range between the best and the worst ranks."""
    ends = []
    for ranks in (np.ones_like(candidates), candidates):
        found = evaluate(tasks(ranks, candidates=candidates), [plain], level=None)[Ties.REALISTIC]
        ends.append(found[plain.name].value)
    low, high = min(ends), max(ends)
    if value < low - 1e-9 or value > high + 1e-9:  # NaN raises an error elsewhere
        hint = "; percentages are divided by 100" if value > high == 1 else ""
        raise ArgumentError(
            "published", f"must be in [{low:.6g}, {high:.6g}] for {plain.name}, got {value!r}{hint}."
        )
