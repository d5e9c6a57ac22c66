"""Rank metrics: registry, values, chance levels, confidence intervals, reports."""

from owkg.metrics.estimate import Estimate
from owkg.metrics.evaluate import evaluate
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
from owkg.metrics.published import adjusted_from
from owkg.metrics.registry import adjusted, metric, pykeen_key
from owkg.metrics.report import (
    Breakdown,
    default_group_metrics,
    default_metrics,
    report,
)
from owkg.metrics.ties import Ties
from owkg.rank_weights import (
    FORMS,
    GMR,
    HMR,
    IGMR,
    IMR,
    LOG_MRR,
    MR,
    MRR,
    RankWeight,
    hits_at,
    p_mrr,
    power_mean,
    rank_weight,
    tie_expectation,
)
from owkg.ranks.reweight import reweighted
from owkg.ranks.tasks import Tasks, part_of, tasks, tasks_of
from owkg.stats.interval import FEW_QUERIES, HEAVY_QUERY, Interval

__all__ = [
    "FEW_QUERIES",
    "FORMS",
    "GMR",
    "HEAVY_QUERY",
    "HMR",
    "IGMR",
    "IMR",
    "LOG_MRR",
    "MR",
    "MRR",
    "Adjustment",
    "Breakdown",
    "Estimate",
    "Interval",
    "Metric",
    "RankWeight",
    "Tasks",
    "Ties",
    "Weighting",
    "adjusted",
    "adjusted_from",
    "default_group_metrics",
    "default_metrics",
    "evaluate",
    "hits_at",
    "macro",
    "macro_map",
    "macro_ndcg",
    "metric",
    "micro",
    "p_mrr",
    "part_of",
    "power_mean",
    "probe",
    "pykeen_key",
    "rank_weight",
    "report",
    "reweighted",
    "stratified",
    "stratified_mrr",
    "tasks",
    "tasks_of",
    "tie_expectation",
]
