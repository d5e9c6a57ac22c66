"""Rules of a graph: mining them by enumeration, answering queries, and writing runs of the table model."""

from owkg.rules.mine import Rules, mine
from owkg.rules.paths import Paths
from owkg.rules.run import SYSTEMS, explain, predictions_run, read_rules, rule_words, rules_run
from owkg.rules.scores import AGGREGATIONS, Applied, Given, Predictions, Queries, predict, queries_of

__all__ = [
    "AGGREGATIONS",
    "SYSTEMS",
    "Applied",
    "Given",
    "Paths",
    "Predictions",
    "Queries",
    "Rules",
    "explain",
    "mine",
    "predict",
    "predictions_run",
    "queries_of",
    "read_rules",
    "rule_words",
    "rules_run",
]
