"""All closed forms of one setting at once, as plain numbers."""

import math
from collections.abc import Mapping
from typing import Any, Literal, SupportsFloat, Unpack

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.openworld import INDEPENDENT, MissingModel, PairArguments, SettingArguments
from owkg.rank_weights import MRR
from owkg.rank_weights.registry import Metrics, checked_metrics
from owkg.theory.lemma import lemma_derivative, lemma_expectation
from owkg.theory.logarithm import log_approximation, log_approximation_error_bound
from owkg.theory.moments import moments
from owkg.theory.power import inconsistency_probability, required_queries
from owkg.theory.scores import score_expectation

_KEYS = (
    "expectation",
    "variance",
    "lemma_expectation",
    "derivative",
    "log_approximation",
    "log_approximation_error_bound",
)


def closed_forms(
    metrics: Metrics,
    *,
    prediction: Literal["classification", "score"] = "classification",
    missing: MissingModel = INDEPENDENT,
    answer_weights: ArrayLike | None = None,
    **setting: Unpack[SettingArguments],
) -> list[dict[str, Any]]:
    """Mean, variance, Lemma 4.1 with its slope, and the logarithm of Theorem 4.1: one row per metric.

    Args:
        metrics: rank metrics or their names.
        prediction: "classification" or "score", how the model orders candidates. Default "classification".
        missing: missing-fact model. Default `INDEPENDENT`.
        answer_weights: weights of a histogram over `num_answers`, which is averaged out. Default: none.
        setting: one setting (`owkg.openworld.SettingArguments`). Only `num_answers` may be an array, and
            only with `answer_weights`.

    Returns:
        A dictionary for each metric with the keys metric, expectation, variance, lemma_expectation,
        derivative, log_approximation and log_approximation_error_bound. A value that does not apply is None.

    Raises:
        ValueError: if an argument is out of range; the message names it.

    Examples:
        >>> (row,) = closed_forms("mrr", strength=0.7, sparsity=0.35, num_answers=43, num_entities=14505)
        >>> f"{row['expectation']:.4f} {row['log_approximation']:.4f}"
        '0.1928 0.1933'
    """

    if prediction not in ("classification", "score"):
        raise ArgumentError("prediction", f"must be classification or score, got {prediction!r}.")
    shares = _one_setting(answer_weights, setting)

    def mean(values: Float[np.ndarray, "..."] | float) -> float | None:
        return _number(values if shares is None else np.average(values, weights=shares))

    rows = []
    for metric in checked_metrics(metrics):
        row: dict[str, Any] = {"metric": metric.name} | dict.fromkeys(_KEYS)
        rows.append(row)
        if prediction == "score":
            row["expectation"] = mean(score_expectation(metric, **setting, missing=missing))
            continue
        exact = moments(metric, **setting, missing=missing, answer_weights=answer_weights)
        row |= {"expectation": _number(exact.expectation), "variance": _number(exact.variance)}
        if missing == INDEPENDENT:  # the lemma and its consequences assume it
            row["lemma_expectation"] = mean(lemma_expectation(metric, **setting))
            row["derivative"] = mean(lemma_derivative(metric, **setting))
            if metric == MRR:
                row["log_approximation"] = mean(log_approximation(**setting))
                row["log_approximation_error_bound"] = mean(log_approximation_error_bound(**setting))
    return rows


def queries_to_tell_apart(
    metrics: Metrics,
    *,
    inconsistency: float = 0.05,
    num_queries: int | None = None,
    missing: MissingModel = INDEPENDENT,
    answer_weights: ArrayLike | None = None,
    **setting: Unpack[PairArguments],
) -> list[dict[str, Any]]:
    """Required queries of two models on separate and on shared (paired) test sets: one row per metric.

    Args:
        metrics: rank metrics or their names.
        inconsistency: tolerated probability that the weaker model looks better, in (0, 0.5). Default 0.05.
        num_queries: number of queries for which to compute the probability of the wrong order. Default: none.
        missing: missing-fact model. Default `INDEPENDENT`.
        answer_weights: weights of a histogram over `num_answers`, which is averaged out. Default: none.
        setting: one setting and the second model (`owkg.openworld.PairArguments`). Only `num_answers` may be
            an array, and only with `answer_weights`.

    Returns:
        A dictionary for each metric with the keys metric, required_queries and required_queries_paired (None
        if no number suffices), and, if `num_queries` is given, inconsistency_probability and
        inconsistency_probability_paired.

    Raises:
        ValueError: if an argument is out of range; the message names it.
    """
    _one_setting(answer_weights, setting)
    checks.scalar("inconsistency", np.asarray(inconsistency))
    if num_queries is not None:
        checks.scalar("num_queries", np.asarray(num_queries))
    given = {"missing": missing, "answer_weights": answer_weights, **setting}
    rows = []
    for metric in checked_metrics(metrics):
        row: dict[str, Any] = {"metric": metric.name}
        for suffix, paired in (("", False), ("_paired", True)):
            needed = _number(required_queries(metric, **given, inconsistency=inconsistency, paired=paired))
            row[f"required_queries{suffix}"] = None if needed is None else int(needed)
        if num_queries is not None:
            for suffix, paired in (("", False), ("_paired", True)):
                row[f"inconsistency_probability{suffix}"] = _number(
                    inconsistency_probability(metric, **given, num_queries=num_queries, paired=paired)
                )
        rows.append(row)
    return rows


def _one_setting(answer_weights: ArrayLike | None, setting: Mapping[str, Any]) -> np.ndarray | None:
    """Checked weights of the histogram; ValueError if an argument other than `num_answers` is an array."""
    for name, value in setting.items():
        if value is not None and (name != "num_answers" or answer_weights is None):
            checks.scalar(name, np.asarray(value))
    if answer_weights is None:
        return None
    shares, sizes = checks.real("answer_weights", answer_weights, 0, np.inf), np.shape(setting["num_answers"])
    if shares.shape != sizes or len(sizes) != 1:
        text = f"must have one weight for each number of answers, shape {sizes}, got shape {shares.shape}."
        raise ArgumentError("answer_weights", text)
    if not shares.any():
        raise ArgumentError("answer_weights", "must have an entry above 0, got only zeros.")
    return shares


def _number(value: SupportsFloat) -> float | None:
    """Value as a float, or None if it is not finite."""
    value = float(value)
    return value if math.isfinite(value) else None
