"""TREC pools: candidates to judge, annotation sheets, annotator agreement, pool bias."""

from owkg.pools.annotation import read_sheet, write_again, write_sheet
from owkg.pools.bias import pool_bias
from owkg.pools.drawn import asked_candidates
from owkg.pools.expert import ExpertCheck, expert_check, expert_sample
from owkg.pools.folder import Plan
from owkg.pools.front import add_systems, draw, draw_further, plan, plan_further, read_pool
from owkg.pools.kappa import AnnotatorAgreement, annotator_agreement, fleiss_kappa, majority
from owkg.pools.pool import (
    judged_pool,
    judged_share,
    leave_one_out,
    pool,
    pool_sizes,
    unique_contributions,
    within_budget,
)
from owkg.pools.rule_cost import rule_cost
from owkg.pools.templates import read_templates
from owkg.pools.trivial import TrivialRule, rule_counts, trivial
from owkg.pools.units import Below, Candidates, Prefixes, Queries

__all__ = [
    "AnnotatorAgreement",
    "Below",
    "Candidates",
    "ExpertCheck",
    "Plan",
    "Prefixes",
    "Queries",
    "TrivialRule",
    "add_systems",
    "annotator_agreement",
    "asked_candidates",
    "draw",
    "draw_further",
    "expert_check",
    "expert_sample",
    "fleiss_kappa",
    "judged_pool",
    "judged_share",
    "leave_one_out",
    "majority",
    "plan",
    "plan_further",
    "pool",
    "pool_bias",
    "pool_sizes",
    "read_pool",
    "read_sheet",
    "read_templates",
    "rule_cost",
    "rule_counts",
    "trivial",
    "unique_contributions",
    "within_budget",
    "write_again",
    "write_sheet",
]
