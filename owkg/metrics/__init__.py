"""Rank metrics: registry, values, chance levels, confidence intervals, reports."""

from owkg.metrics.estimate import Estimate
from owkg.metrics.evaluate import evaluate
from owkg.metrics.fold import Breakdown
from owkg.metrics.list_gains import ListGain
from owkg.metrics.measures import (
    Adjustment,
    Metric,
    Weighting,
    macro,
    macro_map,
    macro_ndcg,
    micro,
    probe,
    stratified,
    stratified_mrr,
)
from owkg.metrics.published import adjusted_from, adjusted_values, chance_levels
from owkg.metrics.registry import adjusted, metric, pykeen_key, register_metric, unregister_metric
from owkg.metrics.report import default_group_metrics, default_metrics, report
from owkg.metrics.sampled_negatives import full_values, full_values_of_published
from owkg.metrics.sides import side_means
from owkg.metrics.ties import Ties
from owkg.rank_weights.registry import Entry
from owkg.ranks.tasks import Tasks, part_of, tasks, tasks_of

__all__ = [
    "Adjustment",
    "Breakdown",
    "Entry",
    "Estimate",
    "ListGain",
    "Metric",
    "Tasks",
    "Ties",
    "Weighting",
    "adjusted",
    "adjusted_from",
    "adjusted_values",
    "chance_levels",
    "default_group_metrics",
    "default_metrics",
    "evaluate",
    "full_values",
    "full_values_of_published",
    "macro",
    "macro_map",
    "macro_ndcg",
    "metric",
    "micro",
    "part_of",
    "probe",
    "pykeen_key",
    "register_metric",
    "report",
    "side_means",
    "stratified",
    "stratified_mrr",
    "tasks",
    "tasks_of",
    "unregister_metric",
]
