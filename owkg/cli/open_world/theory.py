"""`owkg theory`: the exact moments and the closed forms of one setting."""

from owkg.cli import options
from owkg.cli.errors import ended_at_once
from owkg.cli.output import show


def theory(
    strength: options.Strength,
    sparsity: options.Sparsity,
    num_answers: options.AnswerHistogram,
    num_entities: options.NumEntities,
    metric: options.Metrics = ["mrr"],  # noqa: B006 - typer copies it
    correlation: options.Correlation = 0.0,
    missing: options.MissingFacts = options.Missing.INDEPENDENT,
    node_spread: options.NodeSpread = options.NODE_SPREAD,
    popularity_exponent: options.PopularityExponent = options.POPULARITY_EXPONENT,
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
    from owkg.theory import closed_forms

    with ended_at_once():
        chosen = options.metrics_named(metric)
        results = closed_forms(
            chosen, prediction=prediction.value, missing=model, answer_weights=weights, **setting
        )
    shown = setting | {"num_answers": num_answers if weights else answers}
    shown |= options.shown_missing(missing, node_spread, popularity_exponent)
    shown["prediction"] = prediction.value
    show("Closed forms under missing facts", shown, results, form)
