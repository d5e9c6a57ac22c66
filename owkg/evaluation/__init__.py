"""Full evaluation: a model and a graph to ranks against all entities, on one device or many."""

from owkg.evaluation.arrays import ScoredRanks, rank_arrays
from owkg.evaluation.lists import TopAnswers, top_answers
from owkg.evaluation.queries import read_queries
from owkg.evaluation.table import ranks
from owkg.evaluation.triples import score_triples, scored_triples

__all__ = [
    "ScoredRanks",
    "TopAnswers",
    "rank_arrays",
    "ranks",
    "read_queries",
    "score_triples",
    "scored_triples",
    "top_answers",
]
