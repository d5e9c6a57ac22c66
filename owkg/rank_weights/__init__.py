"""Rank weights h(r) as data: the means over ranks that theory, simulation and evaluation share."""

from owkg.rank_weights.catalogue import GMR, HMR, IGMR, IMR, LOG_MRR, MR, MRR, hits_at, p_mrr, power_mean
from owkg.rank_weights.focus import binned_weight, focus_of
from owkg.rank_weights.rank_weight import RankWeight
from owkg.rank_weights.registry import Entry, checked_metric, forms, rank_weight
from owkg.rank_weights.tables import tie_expectation

__all__ = [
    "GMR",
    "HMR",
    "IGMR",
    "IMR",
    "LOG_MRR",
    "MR",
    "MRR",
    "Entry",
    "RankWeight",
    "binned_weight",
    "checked_metric",
    "focus_of",
    "forms",
    "hits_at",
    "p_mrr",
    "power_mean",
    "rank_weight",
    "tie_expectation",
]
