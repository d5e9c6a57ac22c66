"""Judgements of pooled answers, and how far a ranking of systems can be trusted."""

from owkg.judge.agreement import Agreement, agreement, agreement_of_values
from owkg.judge.annotation import read_sheet, write_sheet
from owkg.judge.bias import pool_bias
from owkg.judge.compare import Comparison, compare
from owkg.judge.corrections import benjamini_hochberg, holm
from owkg.judge.discrimination import asl_area, asl_curve, discriminative_power
from owkg.judge.kappa import AnnotatorAgreement, annotator_agreement, fleiss_kappa, majority
from owkg.judge.labels import Relabelled, relabelled
from owkg.judge.pools import (
    judged_pool,
    judged_share,
    leave_one_out,
    pool,
    pool_sizes,
    unique_contributions,
    within_budget,
)
from owkg.judge.power import detectable_difference, power, questions_needed
from owkg.judge.qrels import binary, judged_for, merged, qrels_from_graph, read_judgements, write_judgements
from owkg.judge.rankings import kendall_tau, spearman, symmetric_tau_ap, tau_ap
from owkg.judge.rule_cost import rule_cost
from owkg.judge.runs import aligned, read_runs, run_from_lists, top, write_run
from owkg.judge.scores import Scores, intersected, scores
from owkg.judge.significance import PairTest, Pairwise, contributions, difference_intervals, pairwise
from owkg.judge.stability import Stability, stability
from owkg.judge.trivial import Rule, rule_counts, trivial

__all__ = [
    "Agreement",
    "AnnotatorAgreement",
    "Comparison",
    "PairTest",
    "Pairwise",
    "Relabelled",
    "Rule",
    "Scores",
    "Stability",
    "agreement",
    "agreement_of_values",
    "aligned",
    "annotator_agreement",
    "asl_area",
    "asl_curve",
    "benjamini_hochberg",
    "binary",
    "compare",
    "contributions",
    "detectable_difference",
    "difference_intervals",
    "discriminative_power",
    "fleiss_kappa",
    "holm",
    "intersected",
    "judged_for",
    "judged_pool",
    "judged_share",
    "kendall_tau",
    "leave_one_out",
    "majority",
    "merged",
    "pairwise",
    "pool",
    "pool_bias",
    "pool_sizes",
    "power",
    "qrels_from_graph",
    "questions_needed",
    "read_judgements",
    "read_runs",
    "read_sheet",
    "relabelled",
    "rule_cost",
    "rule_counts",
    "run_from_lists",
    "scores",
    "spearman",
    "stability",
    "symmetric_tau_ap",
    "tau_ap",
    "top",
    "trivial",
    "unique_contributions",
    "within_budget",
    "write_judgements",
    "write_run",
    "write_sheet",
]
