"""Runs under qrels: systems compared, their tests, agreement and stability."""

from owkg.judge.agreement import Agreement, agreement, agreement_of_values
from owkg.judge.compare import Comparison, compare
from owkg.judge.discrimination import asl_area, asl_curve, discriminative_power
from owkg.judge.qrels import binary, judged_for, merged, qrels_from_graph, read_judgements, write_judgements
from owkg.judge.relabelled import Relabelled, relabelled
from owkg.judge.runs import aligned, read_runs, run_from_lists, top, write_run
from owkg.judge.scores import Scores, intersected, scores
from owkg.judge.significance import PairTest, Pairwise, contributions, difference_intervals, pairwise
from owkg.judge.stability import Stability, stability

__all__ = [
    "Agreement",
    "Comparison",
    "PairTest",
    "Pairwise",
    "Relabelled",
    "Scores",
    "Stability",
    "agreement",
    "agreement_of_values",
    "aligned",
    "asl_area",
    "asl_curve",
    "binary",
    "compare",
    "contributions",
    "difference_intervals",
    "discriminative_power",
    "intersected",
    "judged_for",
    "merged",
    "pairwise",
    "qrels_from_graph",
    "read_judgements",
    "read_runs",
    "relabelled",
    "run_from_lists",
    "scores",
    "stability",
    "top",
    "write_judgements",
    "write_run",
]
