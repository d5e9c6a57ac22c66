"""`owkg simulate`: Monte Carlo simulation of one setting."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from owkg.cli.errors import ended_at_once
from owkg.cli.options import Format, OtherCorrelation, OutputFormat, Predictions, SettingOptions
from owkg.cli.output import number, show_metrics

if TYPE_CHECKING:
    from owkg.simulate import MonteCarloEstimate


def simulate(
    *,
    setting: SettingOptions,
    num_answers: int,
    trials: int = 200_000,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1)] = 0,
    prediction: Predictions = "classification",
    other_strength: float | None = None,
    other_correlation: OtherCorrelation = None,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Simulate queries with missing facts and measure the metric, with its standard error.

    With --other-strength, two models are measured on the same missing facts, and owkg prints their covariance
    too.

    Args:
        num_answers (N): Number of true answers of a query on the complete test set, at least 1.
        trials (N): Number of queries to simulate, at least 2.
        seed (N): Seed of the simulation. Equal seeds give equal numbers.
        other_strength (P): Strength of a second model measured on the same queries, in [0, 1]. Default: one
            model.

    Examples:
        owkg simulate --strength 0.7 --sparsity 0.35 --num-answers 43 --num-entities 14505 --trials 200000
            --seed 0
        owkg simulate --metric mrr --metric mr --strength 0.7 --sparsity 0.35 --num-answers 43 --num-entities
            14505 --prediction score
        owkg simulate --strength 0.7 --other-strength 0.75 --sparsity 0.35 --num-answers 43 --num-entities
            14505 --format json
    """
    from owkg.keys import seeded
    from owkg.openworld import Classification, Score
    from owkg.simulate import estimate, estimate_pair
    from owkg.terminal.progress import progress

    metrics = setting.metrics()
    if other_correlation is not None and other_strength is None:
        raise ValueError("`other_correlation` needs --other-strength.")
    numbers = setting.numbers(num_answers)
    model = Score() if prediction == "score" else Classification()
    run = {"trials": trials, "missing": setting.model(), "prediction": model}
    pair = {"other_strength": other_strength, "other_correlation": other_correlation}
    key = seeded(seed)
    with ended_at_once(), progress("simulating", "trials") as update:
        if other_strength is None:
            result = estimate(key, metrics, **numbers, **run, on_progress=update)
        else:
            result = estimate_pair(key, metrics, **numbers, **pair, **run, on_progress=update)
    shown = numbers | setting.shown_missing()
    shown |= {"prediction": prediction, "trials": result.trials, "seed": seed}
    if other_strength is not None:
        other = setting.correlation if other_correlation is None else other_correlation
        shown |= {"other_strength": other_strength, "other_correlation": other}
    results = []
    for i, metric in enumerate(metrics):
        row = {"metric": metric.name} | _one_model(result, (i,) if other_strength is None else (0, i), "")
        if other_strength is not None:
            row |= _one_model(result, (1, i), "other_")
            row["covariance"] = number(result.covariance[0, i, 1, i])
        results.append(row)
    show_metrics("Monte Carlo under missing facts", shown, results, form)


def _one_model(result: "MonteCarloEstimate", at: tuple[int, ...], prefix: str) -> dict[str, Any]:
    names = ("mean", "variance", "standard_error", "variance_standard_error")
    return {prefix + name: number(getattr(result, name)[at]) for name in names}
