"""`owkg theory`: the exact moments and the closed forms of one setting."""

from typing import Any

from owkg.cli import options
from owkg.cli.errors import ended_at_once
from owkg.cli.output import number, show

_KEYS = (
    "expectation",
    "variance",
    "lemma_expectation",
    "derivative",
    "log_approximation",
    "log_approximation_error_bound",
)


def theory(
    strength: options.Strength,
    sparsity: options.Sparsity,
    num_answers: options.AnswerHistogram,
    num_entities: options.NumEntities,
    metric: options.Metrics = ["mrr"],  # noqa: B006 - typer copies it
    correlation: options.Correlation = 0.0,
    missing: options.MissingFacts = options.Missing.INDEPENDENT,
    node_spread: options.NodeSpread = 0.2,
    popularity_exponent: options.PopularityExponent = 1.0,
    prediction: options.Predictions = options.Prediction.CLASSIFICATION,
    form: options.OutputFormat = options.Format.TABLE,
) -> None:
    """What a rank metric of a model of known strength will read on an incomplete test set.

    Prints the exact mean and variance of one query's metric, Lemma 4.1 and its slope in the strength, and,
    for MRR, the logarithm of Theorem 4.1 with a bound on its error. What does not apply is null.
    """
    answers, weights = options.histogram(num_answers)
    model = options.missing_model(missing, node_spread, popularity_exponent)
    setting = {
        "strength": strength,
        "sparsity": sparsity,
        "num_answers": answers,
        "num_entities": num_entities,
        "correlation": correlation,
    }
    compute = _scored if prediction is options.Prediction.SCORE else _classified
    with ended_at_once():
        results = [
            {"metric": m.name} | compute(m, setting, model, weights) for m in options.metrics_named(metric)
        ]
    shown = setting | {"num_answers": num_answers if weights else answers}
    shown |= options.shown_missing(missing, node_spread, popularity_exponent)
    shown["prediction"] = prediction.value
    show("Closed forms under missing facts", shown, results, form)


def _mean(values: Any, weights: list[float] | None) -> float | None:
    import numpy as np

    return number(values if weights is None else np.average(values, weights=weights))


def _classified(metric: Any, setting: dict[str, Any], model: Any, weights: Any) -> dict[str, Any]:
    from owkg import openworld, rank_weights, theory

    exact = theory.moments(metric, **setting, missing=model, answer_weights=weights)
    result = dict.fromkeys(_KEYS) | {
        "expectation": number(exact.expectation),
        "variance": number(exact.variance),
    }
    if model != openworld.Independent():
        return result  # the lemma and what follows from it assume independently missing facts
    result["lemma_expectation"] = _mean(theory.lemma_expectation(metric, **setting), weights)
    result["derivative"] = _mean(theory.lemma_derivative(metric, **setting), weights)
    if metric == rank_weights.MRR:
        result["log_approximation"] = _mean(theory.log_approximation(**setting), weights)
        bound = theory.log_approximation_error_bound(**setting)
        result["log_approximation_error_bound"] = _mean(bound, weights)
    return result


def _scored(metric: Any, setting: dict[str, Any], model: Any, weights: Any) -> dict[str, Any]:
    from owkg import theory

    mean = theory.score_expectation(metric, **setting, missing=model)
    return dict.fromkeys(_KEYS) | {"expectation": _mean(mean, weights)}
