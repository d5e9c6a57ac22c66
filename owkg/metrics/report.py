"""Reports of rank tables: every metric by model, side, tie rule, and by groups of ranking tasks."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from owkg.errors import ArgumentError
from owkg.metrics.estimate import Estimate
from owkg.metrics.evaluate import Estimates, evaluate
from owkg.metrics.measures import Metric
from owkg.metrics.registry import metric
from owkg.ranks.seeds import require_same_tasks, seeds_of
from owkg.ranks.table import RELATION
from owkg.ranks.tasks import part_of, tasks_of, weighed
from owkg.stats.interval import FEW_QUERIES, HEAVY_QUERY, HEAVY_SHARE

SIDES = ("head", "tail", "relation", "both")


class Breakdown(StrEnum):
    """What the tasks of a table may be divided by, beside side and tie rule."""

    RELATION = "relation"
    CATEGORY = "category"
    POPULARITY = "popularity"
    HALF_LINK = "half-link"
    SEED = "seed"

    @property
    def column(self) -> str:
        """Of the rank table."""
        return self.value.replace("-", "_")


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
# Random test sets for the chance level of a group, where it has to be drawn; there may be hundreds of groups.
_GROUP_DRAWS = 2**13
_GROUPED = ("mrr", "hits@1", "hits@10", "amri", "amrr", "ahits@10", "macro-mrr")


def default_metrics(*, popularity: bool) -> list[Metric]:
    """What is reported when nothing else is asked.

    Args:
        popularity: whether the popularity of the answers is known.
    """
    names = (*_PLAIN, *(_BY_POPULARITY if popularity else ()), *_MACRO, *_SPREAD)
    return [metric(name) for name in names]


def default_group_metrics() -> list[Metric]:
    """What is reported of each relation, category or popularity when nothing else is asked."""
    return [metric(name) for name in _GROUPED]


def popularity_bins(popularity: pl.Series) -> pl.Series:
    """Decades of popularity as text: 0, 1-9, 10-99, ..."""
    unique = popularity.unique().to_list()
    names = ["0" if n == 0 else f"{10 ** (d := len(str(n)) - 1)}-{10 ** (d + 1) - 1}" for n in unique]
    return popularity.replace_strict(unique, names, return_dtype=pl.String)


def _labels(rows: pl.DataFrame, breakdown: Breakdown) -> pl.Series:
    """The group of each row.

    Raises:
        ValueError: if the table lacks what it takes.
    """
    require_column(rows.columns, breakdown)
    column = rows[breakdown.column]
    return popularity_bins(column) if breakdown is Breakdown.POPULARITY else column.cast(pl.String)


def require_column(columns: Sequence[str], breakdown: Breakdown) -> None:
    """Raises ValueError if a rank table of these columns cannot be divided so."""
    if breakdown.column not in columns:
        hint = "" if breakdown is Breakdown.SEED else "; owkg.ranks.annotated (--kg) counts it in a graph"
        raise ArgumentError(
            "by", f"must name a column of the rank table, got {breakdown.value}, which it lacks{hint}."
        )


def _slices(labels: pl.Series) -> Iterator[tuple[str, np.ndarray]]:
    """Each label, in order, and the indices of its rows."""
    codes = labels.to_frame("label").with_row_index("row")
    groups = codes.group_by("label", maintain_order=True).agg("row")
    found = dict(zip(groups["label"].to_list(), groups["row"], strict=True))
    for label in sorted(found, key=lambda label: _order(labels.name, label)):
        yield label, found[label].to_numpy()


def _order(name: str, label: str) -> tuple[int, int, str]:
    """What the labels of a column are sorted by: numbers by their size, others by their letters."""
    first = label.partition("-")[0]
    return (0, int(first), label) if first.isdigit() and name in ("popularity", "seed") else (1, 0, label)


_ALL = slice(None)


class Group(NamedTuple):
    """Some tasks of a table: those of a model, or of a group within it.

    Attributes:
        model: None where the table has none.
        by: what the tasks are divided by; None: not at all.
        label: of the group.
    """

    model: str | None
    by: str | None = None
    label: str | None = None

    def place(self, breakdowns: Sequence[Breakdown]) -> tuple[Any, ...]:
        """What groups are sorted by in a report."""
        by = -1 if self.by is None else list(breakdowns).index(Breakdown(self.by))
        return self.model or "", by, _order(self.by or "", self.label or "")


def groups_of(rows: pl.DataFrame, breakdowns: Sequence[Breakdown]) -> list[tuple[Group, Any]]:
    """The groups of a report in their order, and the indices of their rows.

    Raises:
        ValueError: if the rows lack what a breakdown takes.
    """
    found: list[tuple[Group, Any]] = []
    several = "model" in rows.columns and rows["model"].n_unique() > 1
    named = rows["model"][0] if "model" in rows.columns else None
    for model, index in _slices(rows["model"]) if several else [(named, _ALL)]:
        found.append((Group(model), index))
        own = np.arange(len(rows))[index]
        for breakdown in breakdowns:
            labels = _labels(rows[index], breakdown)
            found += [(Group(model, breakdown.value, label), own[at]) for label, at in _slices(labels)]
    return found


class OnSides:
    """Which rows are of which side; `both` stands for heads and tails."""

    def __init__(self, side: pl.Series) -> None:
        """From the column side."""
        self._side_of = np.zeros(len(side), np.int8)
        for i, name in enumerate(SIDES[:3]):
            self._side_of[(side == name).to_numpy()] = i
        self._relations = self._side_of == SIDES.index(RELATION)
        self.only_relations = bool(self._relations.all())

    def of(self, side: str, index: Any) -> Any:
        """Those of the rows `index` that are of a side."""
        if side == "both" and not self._relations.any():
            return index
        own = ~self._relations if side == "both" else self._side_of == SIDES.index(side)
        return np.arange(len(own))[index][own[index]]


def report(
    table: Any,
    metrics: Any = None,
    *,
    by: Any = (),
    group_metrics: Iterable[Metric] | None = None,
    sides: Sequence[str] = SIDES,
    on_progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> pl.DataFrame:
    """Every metric of a rank table, for each model, side and tie rule, and for each group of its tasks.

    The values of a model with several seeds are means over them, its intervals are over queries and seeds.

    Args:
        table: a rank table; checked. Or what `tasks_of` returns, of whose rows `side` is needed, and where
            they are there `model`, `seed` and the columns of `by`. Each model is reported by itself.
        metrics: what to compute; `default_metrics` when None.
        by: a `Breakdown` or several; each divides the tasks by itself.
        group_metrics: what to compute of each group; `metrics`, or `default_group_metrics` where
            these are None.
        sides: of head, tail, relation, and both of head and tail; sides that the table lacks are left out. A
            table of predicted relations alone is reported as that side, whichever are named.
        on_progress: called with (done, total) parts of the table.
        options: of `evaluate`.

    Returns:
        One row for each model, group, side, tie rule and metric, with the columns `model` (null without
        one), `by` and `group` (null for the whole table), `side`, `ties`, `metric`, the fields of
        `Estimate` (null where there is no number), `tasks` and `queries`. Without a model of several seeds
        `seeds` and `deviation_over_seeds` are left out.

    Raises:
        ValueError: as `owkg.ranks.validated` and `evaluate`, or if a breakdown needs a column that the
            table lacks, or the seeds of a model rank different tasks.
    """
    if isinstance(table, tuple):
        tasks, rows = table
    else:
        tasks, rows = tasks_of(table)
        require_same_tasks(rows, seeds_of(rows))
    del table  # ten million ranks take half a GiB
    sides_checked(sides)
    breakdowns = breakdowns_named(by)
    wanted = wanted_metrics(metrics, group_metrics, popularity=tasks.popularity is not None)
    groups, on_sides = groups_of(rows, breakdowns), OnSides(rows["side"])
    seeds = rows["seed"].to_numpy() if seeds_of(rows) else None
    if on_sides.only_relations:
        sides = (RELATION,)
    del rows
    frames: list[pl.DataFrame] = []
    jobs = [(*group, side) for group in groups for side in sides]
    for done, (group, index, side) in enumerate(jobs):
        at = on_sides.of(side, index)
        if isinstance(at, slice) or len(at):
            own = part_of(tasks, at)
            of = None if seeds is None else seeds[at]
            found = evaluate(own, wanted(group), seeds=of, **options_of(group, options))
            own = weighed(own)
            frames.append(frame_of(found, group, side, len(own.optimistic), own.num_queries))
        if on_progress is not None:
            on_progress(done + 1, len(jobs))
    return reported(frames, sides)


def sides_checked(sides: Sequence[str]) -> None:
    """Raises ValueError where one of `sides` is none."""
    for side in sides:
        if side not in SIDES:
            raise ArgumentError("sides", f"must be of {', '.join(SIDES)}, got {side!r}.")


def reported(frames: list[pl.DataFrame], sides: Sequence[str]) -> pl.DataFrame:
    """The frames of all groups, one under the other; ValueError where no group has tasks on the sides."""
    if not frames:
        raise ArgumentError("sides", f"must name a side that the table has, got {', '.join(sides)}.")
    found = pl.concat(frames)
    return found if found["seeds"].count() else found.drop("seeds", "deviation_over_seeds")


def wanted_metrics(metrics: Any, group_metrics: Any, *, popularity: bool) -> Callable[[Group], list[Metric]]:
    """The metrics of each group, as `report` takes the arguments.

    Args:
        metrics: of the whole table, or None.
        group_metrics: of its groups, or None.
        popularity: whether the popularity of the answers is known.
    """
    asked = list(metrics) if metrics is not None else None
    whole = asked or default_metrics(popularity=popularity)
    grouped = list(group_metrics) if group_metrics is not None else asked or default_group_metrics()
    return lambda group: grouped if group.by else whole


def options_of(group: Group, options: dict[str, Any]) -> dict[str, Any]:
    """The options of `evaluate` for a group: fewer draws where it is not a whole table."""
    return {"draws": _GROUP_DRAWS} | options if group.by else options


def warn_bounded(source: Any, rows: pl.DataFrame) -> None:
    """Warns (UserWarning) where ranks are bounds: a metric is then known between two ends."""
    if "bounded" in rows.columns:
        warn_of_bounds(source, int(rows["bounded"].sum()), len(rows))


def warn_of_bounds(source: Any, many: int, rows: int) -> None:
    """Warns (UserWarning) if `many` of the ranks, above 0, are bounds."""
    if many:
        warnings.warn(
            f"{source}: {many:,} of {rows:,} ranks are bounds of ranks that are not known, so metrics "
            "are known between those of the tie rules pessimistic and optimistic.",
            stacklevel=4,
        )


def warn_of(path: Any, found: pl.DataFrame, metrics: list[Metric] | None) -> None:
    """Warns (UserWarning) of what a report rests on, and where a table has no macro metrics.

    Args:
        path: of the table.
        found: its report.
        metrics: that were asked for; None: the usual ones.

    Raises:
        ValueError: if the table lacks one of them.
    """
    _warn_few(path, found)
    if missing := [one.name for one in metrics or () if one.name not in found["metric"]]:
        raise ArgumentError(
            "metrics", f"must be of every table; {path} has no {', '.join(missing)}: {_NO_LIST}"
        )
    if metrics is None and "macro-mrr" not in found["metric"]:
        warnings.warn(f"{path}: no macro metrics: {_NO_LIST}", stacklevel=3)


COLUMNS = {"model", "seed", *(breakdown.column for breakdown in Breakdown)}
"""Of a rank table: what a report may be divided by, beside the side."""

_NO_LIST = (
    "the answers of a query are in no one list, for its tasks differ in their number of candidates, "
    "or its other answers are not filtered."
)


def _warn_few(path: Any, found: pl.DataFrame) -> None:
    """Warns where intervals rest on few queries, on a heavy one, or on heavy ones that score differently."""
    few = pl.col("effective_queries") < FEW_QUERIES
    heavy = pl.col("heaviest_query") > HEAVY_QUERY
    uneven = pl.col("heavy_share") > HEAVY_SHARE
    known = found.filter(pl.col("ci_low").is_not_null())
    for (model,), rows in known.filter(pl.col("by").is_null(), uneven).group_by("model", maintain_order=True):
        metrics = rows["metric"].unique(maintain_order=True).to_list()
        named = ", ".join(metrics[:3]) + (", ..." if len(metrics) > 3 else "")
        warnings.warn(
            f"{path if model is None else model}: a few queries with the most weight carry up to "
            f"{rows['heavy_share'].max():.0%} of the variance and score differently from others ({named}); "
            "the sample may lack queries that weigh still more: the intervals may be too narrow.",
            stacklevel=4,
        )
    whole = known.filter(pl.col("by").is_null(), few | heavy)
    for (model,), rows in whole.group_by(["model"], maintain_order=True):
        worst = rows.sort("effective_queries").row(0, named=True)
        metrics = rows["metric"].unique(maintain_order=True).to_list()
        named = ", ".join(metrics[:3]) + (", ..." if len(metrics) > 3 else "")
        why = []
        if worst["effective_queries"] < FEW_QUERIES:
            why.append(
                f"{worst['queries']:,} queries count as {worst['effective_queries']:.1f} of equal weight, "
                f"fewer than {FEW_QUERIES}"
            )
        if worst["heaviest_query"] > HEAVY_QUERY:
            why.append(f"one query carries {worst['heaviest_query']:.0%} of the weight")
        text = f"{path if model is None else model}: {' and '.join(why)} ({named})"
        warnings.warn(f"{text}: the intervals may be too narrow.", stacklevel=4)
    groups = known.filter(pl.col("by").is_not_null())
    groups = groups.group_by("model", "by", "group").agg(few=(few | heavy).any())
    if groups["few"].any():
        warnings.warn(
            f"{path}: {groups['few'].sum():,} of {len(groups):,} groups rest on fewer than {FEW_QUERIES} "
            f"effective queries, or on one that weighs more than {HEAVY_QUERY:.0%}: their intervals may be "
            "too narrow.",
            stacklevel=4,
        )


def breakdowns_named(by: Any) -> list[Breakdown]:
    """The breakdowns that `by` of `report` names.

    Raises:
        ValueError: if there is no such breakdown.
    """
    return [_breakdown(name) for name in ((by,) if isinstance(by, str) else by)]


def _breakdown(name: Any) -> Breakdown:
    try:
        return Breakdown(name)
    except ValueError:
        known = ", ".join(breakdown.value for breakdown in Breakdown)
        raise ArgumentError("by", f"must be of {known}, got {name!r}.") from None


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


def frame_of(found: Estimates, group: Group, side: str, tasks: int, queries: int) -> pl.DataFrame:
    """The rows of one group and side in a report.

    Args:
        found: of `evaluate`.
        group: the tasks are of it.
        side: likewise.
        tasks: how many they are.
        queries: how many they belong to.
    """
    rows = [
        (*group, side, rule.value, name, *estimate, tasks, queries)
        for rule, estimates in found.items()
        for name, estimate in estimates.items()
    ]
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row").fill_nan(None)
    return frame.with_columns(pl.col("seeds").cast(pl.Int64))
