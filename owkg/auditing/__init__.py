"""What may be concluded from a leaderboard on an incomplete graph."""

from owkg.auditing.breakdown import Breakdown, Pair, breakdown

__all__ = ["Breakdown", "Pair", "breakdown"]
