"""Rank metrics as data, and what they say of a table of ranks: value, chance level, interval."""

from owkg.metrics.catalogue import (
    GMR,
    HMR,
    IGMR,
    IMR,
    LOG_MRR,
    MR,
    MRR,
    hits_at,
    power,
    power_mean,
)
from owkg.metrics.estimate import Estimate
from owkg.metrics.evaluate import evaluate
from owkg.metrics.interval import FEW_QUERIES, HEAVY_QUERY, Interval
from owkg.metrics.judged import POOLED, UNJUDGED, Judged, judge
from owkg.metrics.measures import (
    Adjustment,
    Summary,
    Weighting,
    macro,
    macro_map,
    macro_ndcg,
    of,
    probe,
    stratified,
    stratified_mrr,
)
from owkg.metrics.metric import Metric
from owkg.metrics.names import FORMS, adjusted, metric, pykeen_key, summary
from owkg.metrics.published import adjusted_from
from owkg.metrics.report import (
    Breakdown,
    default_group_summaries,
    default_summaries,
    report,
)
from owkg.metrics.retrieval import (
    average_precision,
    bpref,
    inf_ap,
    judged_at,
    ndcg,
    precision,
    r_precision,
    rbp,
    rbp_residual,
    recall,
    reciprocal_rank,
    success,
)
from owkg.metrics.reweight import reweighted
from owkg.metrics.tasks import Tasks, part_of, tasks, tasks_of
from owkg.metrics.ties import Ties, tie_expectation

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
    "POOLED",
    "UNJUDGED",
    "Adjustment",
    "Breakdown",
    "Estimate",
    "Interval",
    "Judged",
    "Metric",
    "Summary",
    "Tasks",
    "Ties",
    "Weighting",
    "adjusted",
    "adjusted_from",
    "average_precision",
    "bpref",
    "default_group_summaries",
    "default_summaries",
    "evaluate",
    "hits_at",
    "inf_ap",
    "judge",
    "judged_at",
    "macro",
    "macro_map",
    "macro_ndcg",
    "metric",
    "ndcg",
    "of",
    "part_of",
    "power",
    "power_mean",
    "precision",
    "probe",
    "pykeen_key",
    "r_precision",
    "rbp",
    "rbp_residual",
    "recall",
    "reciprocal_rank",
    "report",
    "reweighted",
    "stratified",
    "stratified_mrr",
    "success",
    "summary",
    "tasks",
    "tasks_of",
    "tie_expectation",
]
