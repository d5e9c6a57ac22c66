"""Reports of ranks: every metric by model, side, tie rule, and by groups of ranking tasks."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl

from owkg.errors import ArgumentError
from owkg.kg.graph import KnowledgeGraph
from owkg.metrics.estimate import Estimate
from owkg.metrics.evaluate import MOST_DRAWN, Estimates, checked_options, estimates
from owkg.metrics.few import IS_FEW, IS_HEAVY, few_queries, heavy_queries
from owkg.metrics.fold import (
    SIDES,
    Breakdown,
    Cut,
    Plan,
    breakdowns_named,
    columns_with,
    of_parts,
    of_tasks,
    require_column,
    warn_of_bounds,
)
from owkg.metrics.measures import Metric
from owkg.metrics.registry import metric
from owkg.metrics.ties import Ties
from owkg.ranks.dataset import RankDataset
from owkg.ranks.seeds import require_same_tasks, seeds_of
from owkg.ranks.table import RankTable
from owkg.ranks.tasks import Tasks, tasks_of
from owkg.stats.interval import FEW_QUERIES, HEAVY_QUERY

_HITS = (1, 3, 5, 10)
_PLAIN = (
    *("mrr", *(f"hits@{k}" for k in _HITS), "mr", "median_rank", "gmr", "hmr", "imr", "igmr", "wgmr"),
    *("amr", "amri", "amrr", "agmri", *(f"ahits@{k}" for k in _HITS)),
    *("zmr", "zmrr", "zgmr", *(f"zhits@{k}" for k in _HITS)),
    *("probe@1,0", "probe@0.5,0"),
)
_BY_POPULARITY = ("probe@1,0.5", "probe@0.5,0.5", "strat-mrr@0.5")
_MACRO = ("macro-mrr", *(f"macro-hits@{k}" for k in _HITS), "macro-map@20", "macro-ndcg@20")
_SPREAD = ("count",)
Source = RankTable | pl.DataFrame | tuple[Tasks, pl.DataFrame] | RankDataset
"""Ranks: a table, the result of `tasks_of` for a table, or a dataset."""

# Random test sets for the chance level of a group that has to be drawn; there may be hundreds of groups.
_GROUP_DRAWS = 2**13
_GROUPED = ("mrr", "hits@1", "hits@10", "amri", "amrr", "ahits@10", "macro-mrr")


def default_metrics(*, popularity: bool) -> list[Metric]:
    """Metrics that are reported by default.

    Args:
        popularity: whether the popularity of the answers is known.
    """
    names = (*_PLAIN, *(_BY_POPULARITY if popularity else ()), *_MACRO, *_SPREAD)
    return [metric(name) for name in names]


def default_group_metrics() -> list[Metric]:
    """Metrics that are reported by default for each relation, category or popularity."""
    return [metric(name) for name in _GROUPED]


def report(source: Source, metrics: Iterable[Metric] | None = None, **options: Any) -> pl.DataFrame:
    """Metrics of a rank table for each model, side and tie rule, and for each group of its tasks.

    Values of a model with several seeds are means over seeds, and its intervals are over queries and seeds.

    A dataset is read a part at a time: its rows are written to a temporary folder so that each query lies in
    one part. Sums over queries are added over the parts, and medians come from counts of ranks. Memory grows
    with the entities, the answers of the largest query and the groups, not with the rows. Chance levels that
    have to be drawn are left out (null) for more than a million tasks: power means, and functions of weighted
    means except the geometric.

    Args:
        source: rank table, which is validated; or the result of `tasks_of`, whose rows must have the column
            `side` and may have `model`, `seed` and the columns of `by`; or a dataset, whose files are read
            twice. Each model is reported separately.
        metrics: metrics to compute. None: `default_metrics`.
        options: as in `report_and_sizes`.

    Returns:
        One row for each model, group, side, tie rule and metric, with the columns `model` (null without
        models), `by` and `group` (null for the whole table), `side`, `ties`, `metric`, the fields of
        `Estimate` (null if there is no number), `tasks` and `queries`. `seeds` and `deviation_over_seeds` are
        present only if some model has several seeds.

    Raises:
        ValueError: as `report_and_sizes`.
    """
    return report_and_sizes(source, metrics, **options)[0]


def report_and_sizes(
    source: Source,
    metrics: Iterable[Metric] | None = None,
    *,
    by: str | Iterable[str] = (),
    group_metrics: Iterable[Metric] | None = None,
    sides: Sequence[str] = SIDES,
    graph: KnowledgeGraph | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> tuple[pl.DataFrame, tuple[int, int]]:
    """Result of `report`, and the numbers of tasks and of tied tasks.

    Args:
        source: as in `report`.
        metrics: as in `report`.
        by: one `Breakdown` or several; each divides the tasks separately. Default: none.
        group_metrics: metrics to compute for each group. None: `metrics`, or `default_group_metrics` if these
            are None as well.
        sides: "head", "tail", "relation", and "both" for heads and tails; sides that the table lacks are left
            out. A table with only predicted relations is reported as side "relation", whatever `sides` is.
        graph: graph that adds popularity, categories and half-links to a dataset, as `owkg.ranks.annotated`
            does. None: nothing is added.
        on_progress: function called with (done, total) groups of a table, or rows of a dataset; a dataset's
            rows count two or three times, once per pass.
        options: options of `evaluate`; for a dataset, without the bootstrap.

    Raises:
        ValueError: as `owkg.ranks.validated` and `evaluate`; if a breakdown needs a column that the table
            lacks, or the seeds of a model rank different tasks. For a dataset, naming the files, also if a
            task occurs in two of them, memory or disk is too small, or intervals should come from the
            bootstrap.
    """
    for side in sides:
        if side not in SIDES:
            raise ArgumentError("sides", f"must be from {', '.join(SIDES)}, got {side!r}.")
    breakdowns = breakdowns_named(by)
    if not isinstance(source, tuple | RankDataset):
        source = tasks_of(source)
        require_same_tasks(source[1], seeds_of(source[1]))
    if isinstance(source, tuple):
        columns, popularity = source[1].columns, source[0].popularity is not None
    else:
        columns = columns_with(source, graph)
        popularity = "popularity" in columns
    for breakdown in breakdowns:
        require_column(columns, breakdown)
    asked = list(metrics) if metrics is not None else None
    grouped = list(group_metrics) if group_metrics is not None else asked or default_group_metrics()
    whole = checked_options(asked or default_metrics(popularity=popularity), **options)
    of_groups = checked_options(grouped, **{"draws": _GROUP_DRAWS, **options})
    plan = Plan(breakdowns, whole, of_groups, sides)
    if in_parts := isinstance(source, RankDataset):
        fold = of_parts(source, plan, graph, on_progress)
    else:
        fold = of_tasks(source[0], source[1], plan, on_progress)
    del source  # ten million ranks take half a GiB
    frames, left_out = [], 0
    for cut in fold.cuts:
        found = estimates(cut.gathered, plan.options(cut.group), cut.seeds)
        left_out += sum(
            bool(np.isnan(one.expectation_standard_error)) for by in found.values() for one in by.values()
        )
        frames.append(_frame_of(found, cut))
        del cut
    if not frames:
        raise ArgumentError("sides", f"must name a side that the table has, got {', '.join(sides)}.")
    if in_parts and left_out:
        why = f"because they would have to be drawn for more than {MOST_DRAWN:,} tasks"
        warnings.warn(f"{fold.name}: {left_out:,} chance levels are left out, {why}.", stacklevel=2)
    made = pl.concat(frames)
    sizes = fold.tasks, fold.tied
    return made if made["seeds"].count() else made.drop("seeds", "deviation_over_seeds"), sizes


def warn_bounded(source: object, rows: pl.DataFrame) -> None:
    """Warns (UserWarning) if ranks are bounds, so that a metric is only known to lie between two values."""
    if "bounded" in rows.columns:
        warn_of_bounds(source, int(rows["bounded"].sum()), len(rows))


def rules_known(source: object, table: RankTable | RankDataset, rules: str | Sequence[str]) -> Any:
    """Tie rules under which a table has values: only realistic if it has no optimistic and pessimistic ranks.

    Warns (UserWarning) if other tie rules are left out.

    Raises:
        ValueError: naming `ties`, if no tie rule is left.
    """
    asked = [rules] if isinstance(rules, str) else list(rules)
    if asked in ([Ties.REALISTIC], ["realistic"]) or not table.averaged:
        return rules
    if Ties.REALISTIC not in asked:
        got = ", ".join(asked)
        text = f"must be realistic because {source} has only realistic ranks, got {got}."
        raise ArgumentError("ties", text)
    warnings.warn(f"{source}: only realistic ranks are known, so only realistic metrics are.", stacklevel=2)
    return Ties.REALISTIC


def warn_of(path: object, found: pl.DataFrame, metrics: list[Metric] | None) -> None:
    """Warns (UserWarning) if intervals may be too narrow, or a table has no macro metrics.

    Args:
        path: path of the table.
        found: report of the table.
        metrics: metrics that were asked for. None: the default set.

    Raises:
        ValueError: if the table lacks one of the metrics.
    """
    _warn_few(path, found)
    if missing := [one.name for one in metrics or () if one.name not in found["metric"]]:
        raise ArgumentError(
            "metrics", f"must exist for every table, but {path} has no {', '.join(missing)}: {_NO_LIST}"
        )
    if metrics is None and "macro-mrr" not in found["metric"]:
        warnings.warn(f"{path}: no macro metrics: {_NO_LIST}", stacklevel=3)


COLUMNS = {"model", "seed", *(breakdown.column for breakdown in Breakdown)}
"""Columns of a rank table that may divide a report, in addition to the side."""

_NO_LIST = (
    "the answers of a query do not form one list, because its tasks differ in their number of candidates, "
    "or its other answers are not filtered."
)


def _warn_few(path: object, found: pl.DataFrame) -> None:
    """Warns if intervals rest on few queries, one heavy query, or heavy queries that score differently."""
    known = found.filter(pl.col("ci_low").is_not_null())
    whole = known.filter(pl.col("by").is_null())
    for sentence in [*heavy_queries(whole, path), *few_queries(whole, path)]:
        warnings.warn(sentence, stacklevel=4)
    groups = known.filter(pl.col("by").is_not_null())
    groups = groups.group_by("model", "by", "group").agg(few=(IS_FEW | IS_HEAVY).any())
    if groups["few"].any():
        warnings.warn(
            f"{path}: {groups['few'].sum():,} of {len(groups):,} groups rest on fewer than {FEW_QUERIES} "
            f"effective queries, or on one that weighs more than {HEAVY_QUERY:.0%}: their intervals may be "
            "too narrow.",
            stacklevel=4,
        )


_SCHEMA: Any = {
    "model": pl.String,
    "by": pl.String,
    "group": pl.String,
    "side": pl.String,
    "ties": pl.String,
    "metric": pl.String,
    **dict.fromkeys(Estimate._fields, pl.Float64),
    "tasks": pl.Int64,
    "queries": pl.Int64,
}


def _frame_of(found: Estimates, cut: Cut) -> pl.DataFrame:
    """Rows of one group and side in a report."""
    sizes = cut.gathered.tasks, cut.gathered.queries
    rows = [
        (*cut.group, cut.side, rule.value, name, *estimate, *sizes)
        for rule, estimates in found.items()
        for name, estimate in estimates.items()
    ]
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row").fill_nan(None)
    return frame.with_columns(pl.col("seeds").cast(pl.Int64))
