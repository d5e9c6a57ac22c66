"""Comparison of systems under relevance judgements (qrels): values, tests, agreement and stability."""

from owkg.judge.agreement import agreement, agreement_of_values
from owkg.judge.compare import Comparison, compare
from owkg.judge.generated import filtered_before, partial_metrics, ranks_of_lists, read_generated
from owkg.judge.lists import lists_of
from owkg.judge.pair_ranking import PairRanking, pair_ranking
from owkg.judge.qrels import binary, merged, qrels_from_graph, read_judgements, write_judgements
from owkg.judge.relabelled import relabelled
from owkg.judge.runs import read_runs, run_from_lists, write_run
from owkg.judge.scores import Scores, scores
from owkg.judge.significance import difference_intervals, pairwise
from owkg.judge.stability import stability, stability_by_triple
from owkg.judge.topics import evaluate_runs
from owkg.stats.discrimination import discriminative_power

__all__ = [
    "Comparison",
    "PairRanking",
    "Scores",
    "agreement",
    "agreement_of_values",
    "binary",
    "compare",
    "difference_intervals",
    "discriminative_power",
    "evaluate_runs",
    "filtered_before",
    "lists_of",
    "merged",
    "pair_ranking",
    "pairwise",
    "partial_metrics",
    "qrels_from_graph",
    "ranks_of_lists",
    "read_generated",
    "read_judgements",
    "read_runs",
    "relabelled",
    "run_from_lists",
    "scores",
    "stability",
    "stability_by_triple",
    "write_judgements",
    "write_run",
]
