"""Rules of a graph: mined by enumeration, and applied to queries."""

from owkg.rules.mine import Rules, mine
from owkg.rules.paths import Paths
from owkg.rules.scores import AGGREGATIONS, Predictions, Queries, predict, queries_of

__all__ = ["AGGREGATIONS", "Paths", "Predictions", "Queries", "Rules", "mine", "predict", "queries_of"]
