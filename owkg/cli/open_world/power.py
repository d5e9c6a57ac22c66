"""`owkg power`: how many queries a comparison needs, and how often a smaller one misleads."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from owkg.cli import options
from owkg.cli.errors import ended_at_once
from owkg.cli.inputs import check_figure, check_writable, noted
from owkg.cli.output import number, show_metrics, wrote

if TYPE_CHECKING:
    from owkg.rank_weights import RankWeight

# Metrics that `--all-metrics` shows from a family with parameters.
_SHOWN = {"hits@K": ("hits@1", "hits@3", "hits@10", "hits@50"), "p-mrr@P": ("p-mrr@1/2", "p-mrr@1/4")}
# Number of points of the frontier.
_POINTS = 25
_FLOORS = ("any_weight", "decreasing_weight")


def power(
    *,
    setting: options.SettingOptions,
    other_strength: float,
    num_answers: options.AnswerHistogram,
    inconsistency: float = 0.05,
    num_queries: int | None = None,
    other_correlation: options.OtherCorrelation = None,
    all_metrics: bool = False,
    figure: Path | None = None,
    form: options.OutputFormat = options.Format.TABLE,
) -> None:
    """Compute how many queries it takes to see which of two models is stronger.

    Metrics are means over queries (query-averaged; not macro-mrr). "Paired" means that both models are
    measured on one test set, so that they share its missing facts. If the number of queries is null, no
    number of queries is enough, because the weaker model has the better mean. The focus of a metric is 1 /
    expected browsing depth, which is 1/K for Hits@K; "least queries" is the number for the best weight that
    falls with the rank and has at least that focus.

    Args:
        other_strength (P): Strength of the second model, in [0, 1].
        inconsistency (P): Tolerated probability that the weaker model looks better, in (0, 0.5).
        num_queries (N): Number of queries for which the probability of a wrong order is printed too. Default:
            not printed.
        all_metrics: Use every registered metric in addition to --metric, and print the lowest number of
            queries over all rank weights.

    Output:
        figure (FILE): Draw required queries against focus: .png, .pdf or .svg. Only with --all-metrics.

    Examples:
        owkg power --strength 0.7 --other-strength 0.75 --sparsity 0.35 --num-answers 43 --num-entities 14505
            --inconsistency 0.05
        owkg power --metric mrr --metric p-mrr@1/2 --strength 0.7 --other-strength 0.75 --sparsity 0.35
            --num-answers 43 --num-entities 14505 --num-queries 500
        owkg power --all-metrics --strength 0.7 --other-strength 0.75 --sparsity 0.35 --num-answers 43
            --num-entities 14505
    """
    from owkg.theory import queries_to_tell_apart

    answers, weights = options.histogram(num_answers)
    numbers: dict[str, Any] = {"strength": setting.strength, "other_strength": other_strength}
    numbers |= setting.numbers(answers) | {"other_correlation": other_correlation}
    other = setting.correlation if other_correlation is None else other_correlation
    shown = numbers | {"num_answers": num_answers if weights else answers, "other_correlation": other}
    shown |= setting.shown_missing() | {"inconsistency": inconsistency}
    shown |= {} if num_queries is None else {"num_queries": num_queries}
    if all_metrics and weights is not None:
        raise ValueError("`all_metrics` needs one number of answers, not a histogram.")
    if figure is not None and not all_metrics:
        raise ValueError("`figure` needs `all_metrics`.")
    check_figure(figure)
    check_writable([figure], ())
    given = {"inconsistency": inconsistency, "missing": setting.model(), **numbers}
    beside, lines = {}, []
    with ended_at_once(), noted():
        named = [*(_registered() if all_metrics else []), *setting.metrics()]
        metrics = list({one.name: one for one in named}.values()) if all_metrics else named
        results = queries_to_tell_apart(metrics, num_queries=num_queries, answer_weights=weights, **given)
        if all_metrics:
            beside = _weights(metrics, results, given)
            read = {key: "-" if value is None else f"{value:,.0f}" for key, value in beside["floor"].items()}
            least = [f"{read[key]} (paired {read[f'{key}_paired']})" for key in _FLOORS]
            of = f"least queries over weights that are constant beyond the answers: {least[0]}"
            lines = [f"{of}; over weights that fall with the rank: {least[1]}"]
    if figure is not None:
        from owkg.plots.power import focus_figure

        focus_figure(results, beside["frontier"], figure)
    show_metrics("Queries required to tell two models apart", shown, results, form, lines, **beside)
    if figure is not None:
        wrote(figure)


def _registered() -> "list[RankWeight]":
    """Registered metrics that are plain means."""
    from owkg.rank_weights.registry import checked_metric, plain

    return [checked_metric(name) for entry in plain() for name in _SHOWN.get(entry.name, (entry.example,))]


def _weights(
    metrics: "list[RankWeight]", results: list[dict[str, Any]], given: dict[str, Any]
) -> dict[str, Any]:
    """Floor and frontier; adds to the results of each metric its focus and the least queries there."""
    import numpy as np

    from owkg.rank_weights import focus_of
    from owkg.theory import focus_curve, query_floor

    focus = [focus_of(metric, given["num_entities"]) for metric in metrics]
    depths = np.geomspace(1, given["num_answers"] + 1, _POINTS)
    frontier = [{"focus": 1 / depth, "depth": depth} for depth in depths.tolist()]
    for row, own in zip(results, focus, strict=True):
        row["focus"] = own
    floors: dict[str, Any] = {}
    for ending, paired in (("", False), ("_paired", True)):
        found = query_floor(paired=paired, **given)
        floors[f"any_weight{ending}"] = number(found.queries)
        floors[f"decreasing_weight{ending}"] = number(found.decreasing_queries)
        curve = focus_curve(focus=[*focus, *(1 / depths)], paired=paired, **given)
        queries = [number(one) for one in curve.queries]
        for row, needed in zip([*results, *frontier], queries, strict=True):
            key = "required_queries" if "depth" in row else "least_queries"
            row[f"{key}{ending}"] = None if needed is None else int(needed)
    return {"floor": floors, "frontier": frontier}
