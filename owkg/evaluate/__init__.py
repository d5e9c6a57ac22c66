"""Full evaluation: a model and a graph to ranks against all entities, on one device or many."""

from owkg.evaluate.arrays import ScoredRanks, rank_arrays
from owkg.evaluate.lists import TopAnswers, top_answers
from owkg.evaluate.queries import read_queries
from owkg.evaluate.table import ranks

__all__ = ["ScoredRanks", "TopAnswers", "rank_arrays", "ranks", "read_queries", "top_answers"]
