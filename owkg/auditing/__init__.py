"""Conclusions from a leaderboard on an incomplete graph."""

from owkg.auditing.breakdown import BreakdownNumbers, Pair, breakdown
from owkg.auditing.focus import BestWeights, best_weight_of
from owkg.auditing.front import audit
from owkg.auditing.gamma import Sensitivity, sensitivity
from owkg.auditing.implied import Answers, Implied, implied, sparse_mean
from owkg.auditing.judged import judged_strengths
from owkg.auditing.lists import pair_of
from owkg.auditing.result import Audit
from owkg.pools.missing import missing_share

__all__ = [
    "Answers",
    "Audit",
    "BestWeights",
    "BreakdownNumbers",
    "Implied",
    "Pair",
    "Sensitivity",
    "audit",
    "best_weight_of",
    "breakdown",
    "implied",
    "judged_strengths",
    "missing_share",
    "pair_of",
    "sensitivity",
    "sparse_mean",
]
