"""Closed forms under missing facts: mean, variance, derivatives, correlation, power.

Results have the broadcast shape of the setting (`owkg.openworld.SettingArguments`).
"""

from owkg.theory.floor import Floor, FocusCurve, FocusedWeight, best_weight, focus_curve, query_floor
from owkg.theory.lemma import (
    hits_derivative,
    lemma_correlation_derivative,
    lemma_derivative,
    lemma_expectation,
    mrr_derivative,
    mrr_lemma_expectation,
)
from owkg.theory.logarithm import (
    correlation_lowers_log_approximation,
    log_approximation,
    log_approximation_error_bound,
    printed_correlation_condition,
    printed_error_bound,
)
from owkg.theory.moments import Moments, conditional_moments, covariance, expectation, moments, variance
from owkg.theory.power import (
    inconsistency_probability,
    log_inconsistency_probability,
    log_required_queries,
    required_queries,
)
from owkg.theory.scores import score_expectation
from owkg.theory.summary import closed_forms, queries_to_tell_apart

__all__ = [
    "Floor",
    "FocusCurve",
    "FocusedWeight",
    "Moments",
    "best_weight",
    "closed_forms",
    "conditional_moments",
    "correlation_lowers_log_approximation",
    "covariance",
    "expectation",
    "focus_curve",
    "hits_derivative",
    "inconsistency_probability",
    "lemma_correlation_derivative",
    "lemma_derivative",
    "lemma_expectation",
    "log_approximation",
    "log_approximation_error_bound",
    "log_inconsistency_probability",
    "log_required_queries",
    "moments",
    "mrr_derivative",
    "mrr_lemma_expectation",
    "printed_correlation_condition",
    "printed_error_bound",
    "queries_to_tell_apart",
    "query_floor",
    "required_queries",
    "score_expectation",
    "variance",
]
