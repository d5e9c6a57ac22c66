"""What may be concluded from a leaderboard on an incomplete graph."""

from owkg.auditing.breakdown import Breakdown, Pair, breakdown
from owkg.auditing.implied import Answers, Implied, implied, sparse_mean

__all__ = ["Answers", "Breakdown", "Implied", "Pair", "breakdown", "implied", "sparse_mean"]
