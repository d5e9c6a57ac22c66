"""`owkg simulate`: Monte Carlo of one setting."""

from typing import Annotated, Any

import typer

from owkg.cli import options
from owkg.cli.errors import ended_at_once
from owkg.cli.output import number, show


def simulate(
    strength: options.Strength,
    sparsity: options.Sparsity,
    num_answers: options.NumAnswers,
    num_entities: options.NumEntities,
    metric: options.Metrics = ["mrr"],  # noqa: B006 - typer copies it
    correlation: options.Correlation = 0.0,
    trials: Annotated[int, typer.Option(help="Queries to draw, at least 2.")] = 200_000,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal numbers.", min=0, max=2**32 - 1)] = 0,
    missing: options.MissingFacts = options.Missing.INDEPENDENT,
    node_spread: options.NodeSpread = options.NODE_SPREAD,
    popularity_exponent: options.PopularityExponent = options.POPULARITY_EXPONENT,
    prediction: options.Predictions = options.Prediction.CLASSIFICATION,
    other_strength: Annotated[
        float | None, typer.Option(help="Strength of a second model measured on the same queries.")
    ] = None,
    other_correlation: options.OtherCorrelation = None,
    form: options.OutputFormat = options.Format.TABLE,
) -> None:
    """Draws queries with missing facts and measures the metric, with its standard error.

    With --other-strength two models meet the same missing facts, and their covariance is printed too.
    """

    from owkg.keys import seeded
    from owkg.simulate import estimate, estimate_pair
    from owkg.terminal.progress import progress

    chosen = options.metrics_named(metric)
    if other_correlation is not None and other_strength is None:
        raise ValueError("`other_correlation` needs --other-strength.")
    setting = {
        "strength": strength,
        "sparsity": sparsity,
        "num_answers": num_answers,
        "num_entities": num_entities,
        "correlation": correlation,
    }
    run = {
        "trials": trials,
        "missing": options.missing_model(missing, node_spread, popularity_exponent),
        "prediction": options.prediction_model(prediction),
    }
    key = seeded(seed)
    with ended_at_once(), progress("simulating", "trials") as on_progress:
        if other_strength is None:
            result = estimate(key, chosen, **setting, **run, on_progress=on_progress)
        else:
            pair = {"other_strength": other_strength, "other_correlation": other_correlation}
            result = estimate_pair(key, chosen, **setting, **pair, **run, on_progress=on_progress)
    shown = setting | options.shown_missing(missing, node_spread, popularity_exponent)
    shown |= {"prediction": prediction.value, "trials": result.trials, "seed": seed}
    if other_strength is not None:
        shown["other_strength"] = other_strength
        shown["other_correlation"] = correlation if other_correlation is None else other_correlation
    results = []
    for i, m in enumerate(chosen):
        at = (i,) if other_strength is None else (0, i)
        row = {"metric": m.name} | _one_model(result, at, "")
        if other_strength is not None:
            row |= _one_model(result, (1, i), "other_")
            row["covariance"] = number(result.covariance[0, i, 1, i])
        results.append(row)
    show("Monte Carlo under missing facts", shown, results, form)


def _one_model(result: Any, at: tuple[int, ...], prefix: str) -> dict[str, Any]:
    names = ("mean", "variance", "standard_error", "variance_standard_error")
    return {prefix + name: number(getattr(result, name)[at]) for name in names}
