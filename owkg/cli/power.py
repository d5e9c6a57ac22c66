"""`owkg power`: how many queries a comparison needs, and how often a smaller one misleads."""

from typing import Annotated, Any

import typer

from owkg.cli import options
from owkg.cli.errors import ended_at_once
from owkg.cli.output import number, show

_ALL: tuple[str, ...] = (
    "mrr",
    "hits@1",
    "hits@3",
    "hits@10",
    "hits@50",
    "log-mrr",
    "p-mrr@1/2",
    "p-mrr@1/4",
    "mr",
)
_FLOORS = ("any_weight", "decreasing_weight")


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
    all_metrics: Annotated[
        bool,
        typer.Option(
            "--all-metrics", help="The usual metrics, and the least over all rank weights there are."
        ),
    ] = False,
    missing: options.MissingFacts = options.Missing.INDEPENDENT,
    node_spread: options.NodeSpread = 0.2,
    popularity_exponent: options.PopularityExponent = 1.0,
    form: options.OutputFormat = options.Format.TABLE,
) -> None:
    """How many queries it takes to see which of two models is stronger.

    "Paired" means that both are measured on one test set, so that they share its missing facts. A null
    number of queries: no number suffices, the weaker model's mean is the better one.
    """
    from owkg.theory import queries_to_tell_apart, query_floor

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
    if all_metrics and weights is not None:
        raise ValueError("`all_metrics` needs one number of answers, not a histogram.")
    names = list(_ALL) if all_metrics else metric
    floors: dict[str, Any] = {}
    with ended_at_once():
        if all_metrics:
            for paired in (False, True):
                given = {name: value for name, value in setting.items() if name != "answer_weights"}
                found = query_floor(inconsistency=inconsistency, paired=paired, **given)
                ending = "_paired" if paired else ""
                floors[f"any_weight{ending}"] = number(found.queries)
                floors[f"decreasing_weight{ending}"] = number(found.decreasing_queries)
        results = queries_to_tell_apart(
            options.metrics_named(names), inconsistency=inconsistency, num_queries=num_queries, **setting
        )
    beside = {"floor": floors} if floors else {}
    show("Queries required to tell two models apart", shown, results, form, **beside)
    if floors and form is options.Format.TABLE:
        least = [f"{floors[key]:,.0f} (paired {floors[f'{key}_paired']:,.0f})" for key in _FLOORS]
        print(f"least over all rank weights {least[0]}, over those that fall with the rank {least[1]}")
