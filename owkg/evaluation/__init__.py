"""Full evaluation: a model and a graph to ranks against all entities, on one device or many."""

from owkg.evaluation.arrays import ScoredRanks, rank_arrays
from owkg.evaluation.estimate import SampledEvaluation, sampled
from owkg.evaluation.lists import TopAnswers, top_answers
from owkg.evaluation.queries import read_queries
from owkg.evaluation.table import ranks
from owkg.evaluation.triples import score_triples, scored_triples
from owkg.evaluation.typical import TypicalCandidates, typical_candidates

__all__ = [
    "SampledEvaluation",
    "ScoredRanks",
    "TopAnswers",
    "TypicalCandidates",
    "rank_arrays",
    "ranks",
    "read_queries",
    "sampled",
    "score_triples",
    "scored_triples",
    "top_answers",
    "typical_candidates",
]
