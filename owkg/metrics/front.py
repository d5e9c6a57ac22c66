"""Metrics of rank tables in one call: `owkg.evaluate`."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import polars as pl

from owkg import checks
from owkg.checks import ArgumentError
from owkg.keys import checked_key
from owkg.metrics.measures import Metric
from owkg.metrics.registry import metric
from owkg.metrics.report import SIDES, Breakdown, report
from owkg.metrics.ties import Ties
from owkg.ranks import RankTable

# Columns whose values are always told apart, so that to divide by them is to ask for all of them.
_ALWAYS = {"side": SIDES[:2], "ties": tuple(Ties)}


def metrics_named(metrics: "str | Metric | Iterable[str | Metric] | None") -> list[Metric] | None:
    """The metrics of names, each once; None of None.

    Raises:
        ValueError: if a name is not known; the message has the near ones.
    """
    if metrics is None:
        return None
    if not isinstance(metrics, str | Metric | Iterable):
        raise ArgumentError("metrics", f"must be names of metrics, got {metrics!r}.")
    names = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
    if not names:
        raise ArgumentError("metrics", "must name at least one metric, got none.")
    try:
        found = [name if isinstance(name, Metric) else metric(name) for name in names]
    except ValueError as error:
        raise ArgumentError("metrics", f"must be valid: {error}") from None
    return list({one.name: one for one in found}.values())


def evaluate(
    ranks: RankTable | pl.DataFrame,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    *,
    by: str | Sequence[str] = (),
    side: str | Sequence[str] = "both",
    ties: str | Sequence[str] = "realistic",
    ci: float | None = 0.95,
    interval: Literal["analytic", "percentile", "bca"] = "analytic",
    replicates: int = 1000,
    seed: int = 0,
    num_entities: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> pl.DataFrame:
    """Metrics of a rank table with confidence intervals and chance levels.

    Args:
        ranks: of `owkg.rank` or `owkg.read_ranks`, or a frame with the columns of `owkg.ranks.validated`.
            With a column `model`, each model is evaluated by itself.
        metrics: names that `owkg metrics --list` shows, or their aliases; None: the usual ones.
        by: columns that divide the ranking tasks: side, ties, and one of relation, category and popularity.
        side: head, tail, both, or several.
        ties: optimistic, realistic, pessimistic, exact, or several.
        ci: level of the confidence intervals, over queries; None: no intervals, which is faster.
        interval: mid-P limits on the effective number of queries, or a bootstrap over queries.
        replicates: of the bootstrap.
        seed: of what is drawn.
        num_entities: N of PROBE's rank transformer; each task's candidates when None.
        on_progress: called with (done, total) parts of the table.

    Returns:
        One row for each model, group, side, tie rule and metric. Columns: `model` (where the table has one),
        that of `by`, `side`, `ties`, `metric`, `value`, `ci_low`, `ci_high`, `expectation` (the chance
        level), the other fields of `owkg.metrics.Estimate`, `tasks`, `queries`. Null where there is
        no number.

    Raises:
        ValueError: naming the argument, if the table is malformed, a metric is not known or has no list of
            answers to work on, or an argument is out of range.

    Examples:
        >>> row = {"head": "a", "relation": "r", "side": "tail", "candidates": 9}
        >>> rows = [row | {"tail": t, "optimistic": r, "pessimistic": r} for t, r in (("b", 1), ("c", 4))]
        >>> evaluate(pl.DataFrame(rows), ["mrr", "hits@3"])["value"].to_list()
        [0.625, 0.5]
    """
    chosen = metrics_named(metrics)
    if not isinstance(ranks, RankTable | pl.DataFrame):
        must = "must be of owkg.read_ranks or owkg.rank, or a polars DataFrame"
        raise ArgumentError("ranks", f"{must}, got {type(ranks).__name__}.")
    table = RankTable.of(ranks)
    if ci is not None:
        checks.level("ci", ci)
    checked_key(seed, "seed")
    sides = (side,) if isinstance(side, str) else tuple(side)
    if not sides or set(sides) - {"head", "tail", "both"}:
        raise ArgumentError(
            "side", f"must be of head, tail, both, got {', '.join(map(str, sides)) or 'none'}."
        )
    names = [by] if isinstance(by, str) else list(by)
    groups = [name for name in names if name not in _ALWAYS]
    if len(groups) > 1 or set(groups) - set(Breakdown):
        of = ", ".join([*_ALWAYS, *Breakdown])
        raise ArgumentError("by", f"must be of {of}, and one of the last three, got {', '.join(groups)}.")
    found = report(
        table,
        chosen,
        by=groups,
        sides=_ALWAYS["side"] if "side" in names else sides,
        ties=_ALWAYS["ties"] if "ties" in names else ties,
        level=ci,
        interval=interval,
        replicates=replicates,
        key=seed,
        num_entities=num_entities,
        on_progress=on_progress,
    )
    if missing := [one.name for one in chosen or () if one.name not in found["metric"]]:
        raise ValueError(
            f"`metrics`: {', '.join(missing)} needs lists: the answers of a query filtered by one another, "
            "among one number of candidates."
        )
    found = found.filter(pl.col("by").is_not_null()) if groups else found
    group = [pl.col("group").alias(name) for name in groups]
    first = ["model"] if "model" in table.frame.columns else []
    rest = ["side", "ties", "metric", "value", "ci_low", "ci_high", "expectation"]
    left = [name for name in found.columns if name not in {"model", "by", "group", *rest}]
    return found.select(*first, *group, *rest, *left)
