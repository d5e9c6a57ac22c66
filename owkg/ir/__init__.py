"""IR measures over judged lists, as defined by trec_eval."""

from owkg.ir.judged import POOLED, UNJUDGED, Judged, judge
from owkg.ir.measures import (
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
from owkg.ir.names import Measure

__all__ = [
    "POOLED",
    "UNJUDGED",
    "Judged",
    "Measure",
    "average_precision",
    "bpref",
    "inf_ap",
    "judge",
    "judged_at",
    "ndcg",
    "precision",
    "r_precision",
    "rbp",
    "rbp_residual",
    "recall",
    "reciprocal_rank",
    "success",
]
