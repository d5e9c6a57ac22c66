"""What may be concluded from a leaderboard on an incomplete graph."""

from owkg.auditing.breakdown import Breakdown, Pair, breakdown
from owkg.auditing.front import audit
from owkg.auditing.gamma import Sensitivity, sensitivity
from owkg.auditing.implied import Answers, Implied, implied, sparse_mean
from owkg.auditing.lists import pair_of
from owkg.auditing.missing import missing_share
from owkg.auditing.result import Audit

__all__ = [
    "Answers",
    "Audit",
    "Breakdown",
    "Implied",
    "Pair",
    "Sensitivity",
    "audit",
    "breakdown",
    "implied",
    "missing_share",
    "pair_of",
    "sensitivity",
    "sparse_mean",
]
