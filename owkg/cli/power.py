"""`owkg power`: how many queries a comparison needs, and how often a smaller one misleads."""

from typing import Annotated

import typer

from owkg.cli import options
from owkg.cli.errors import ended_at_once
from owkg.cli.output import show


def power(
    strength: options.Strength,
    other_strength: options.OtherStrength,
    sparsity: options.Sparsity,
    num_answers: options.AnswerHistogram,
    num_entities: options.NumEntities,
    metric: options.Metrics = ["mrr"],  # noqa: B006 - typer copies it
    inconsistency: Annotated[
        float, typer.Option(help="Tolerated probability that the weaker model looks better, in (0, 0.5).")
    ] = 0.05,
    num_queries: Annotated[
        int | None, typer.Option(help="Also print the inconsistency of this many queries.")
    ] = None,
    correlation: options.Correlation = 0.0,
    other_correlation: options.OtherCorrelation = None,
    missing: options.MissingFacts = options.Missing.INDEPENDENT,
    node_spread: options.NodeSpread = 0.2,
    popularity_exponent: options.PopularityExponent = 1.0,
    form: options.OutputFormat = options.Format.TABLE,
) -> None:
    """How many queries it takes to see which of two models is stronger.

    "Paired" means that both are measured on one test set, so that they share its missing facts. A null
    number of queries: no number suffices, the weaker model's mean is the better one.
    """
    from owkg.theory import queries_to_tell_apart

    answers, weights = options.histogram(num_answers)
    setting = {
        "strength": strength,
        "other_strength": other_strength,
        "sparsity": sparsity,
        "num_answers": answers,
        "num_entities": num_entities,
        "correlation": correlation,
        "other_correlation": other_correlation,
        "missing": options.missing_model(missing, node_spread, popularity_exponent),
        "answer_weights": weights,
    }
    shown = {key: value for key, value in setting.items() if key not in ("missing", "answer_weights")}
    shown |= {
        "num_answers": num_answers if weights else answers,
        "other_correlation": correlation if other_correlation is None else other_correlation,
        **options.shown_missing(missing, node_spread, popularity_exponent),
        "inconsistency": inconsistency,
    }
    if num_queries is not None:
        shown["num_queries"] = num_queries
    with ended_at_once():
        results = queries_to_tell_apart(
            options.metrics_named(metric), inconsistency=inconsistency, num_queries=num_queries, **setting
        )
    show("Queries required to tell two models apart", shown, results, form)
