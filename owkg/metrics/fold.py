"""Fold over ranks: sums for metrics of each group and side, from tasks in memory or from files in parts."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Any, NamedTuple, cast

import numpy as np
import polars as pl

from owkg import checks
from owkg.errors import ArgumentError
from owkg.files.storage import free_memory
from owkg.kg import CATEGORIES
from owkg.kg.graph import KnowledgeGraph
from owkg.kg.popularity import HALF_LINKS
from owkg.metrics.added import Added
from owkg.metrics.evaluate import EvaluationOptions, in_memory, refuse_many_candidates
from owkg.metrics.gathered import Gathered, InMemory, Together
from owkg.metrics.query_sums import LARGEST_LOG
from owkg.ranks.annotate import annotated
from owkg.ranks.dataset import RankDataset
from owkg.ranks.partitions import Partitions, partitions, rows_of_part
from owkg.ranks.seeds import Runs, require_same_tasks, seeds_of
from owkg.ranks.table import RELATION, RankTable
from owkg.ranks.tasks import Tasks, part_of, weighed

Progress = Callable[[int, int], None] | None

SIDES = ("head", "tail", "relation", "both")
# Columns that a graph adds.
_OF_GRAPH = ("popularity", "relation_popularity", "category", "half_link")
# Approximate number of groups by popularity.
_DECADES = 10


class Breakdown(StrEnum):
    """Columns that the tasks of a table may be divided by, in addition to side and tie rule."""

    RELATION = "relation"
    CATEGORY = "category"
    POPULARITY = "popularity"
    HALF_LINK = "half-link"
    SEED = "seed"

    @property
    def column(self) -> str:
        """Name of the column in the rank table."""
        return self.value.replace("-", "_")


def popularity_bins(popularity: pl.Series) -> pl.Series:
    """Decades of popularity as text: 0, 1-9, 10-99, ..."""
    unique = popularity.unique().to_list()
    names = ["0" if n == 0 else f"{10 ** (d := len(str(n)) - 1)}-{10 ** (d + 1) - 1}" for n in unique]
    return popularity.replace_strict(unique, names, return_dtype=pl.String)


def _labels(rows: pl.DataFrame, breakdown: Breakdown) -> pl.Series:
    """Group of each row.

    Raises:
        ValueError: if the table lacks the column of the breakdown.
    """
    require_column(rows.columns, breakdown)
    column = rows[breakdown.column]
    return popularity_bins(column) if breakdown is Breakdown.POPULARITY else column.cast(pl.String)


def require_column(columns: Sequence[str], breakdown: Breakdown) -> None:
    """Raises ValueError if a rank table with these columns lacks the column of the breakdown."""
    if breakdown.column not in columns:
        hint = "" if breakdown is Breakdown.SEED else "; `kg` adds it from a graph (owkg.ranks.annotated)"
        raise ArgumentError(
            "by", f"must name a column of the rank table, got {breakdown.value}, which is missing{hint}."
        )


def _slices(labels: pl.Series) -> Iterator[tuple[str, np.ndarray]]:
    """Labels in order, each with the indices of its rows."""
    codes = labels.to_frame("label").with_row_index("row")
    groups = codes.group_by("label", maintain_order=True).agg("row")
    found = dict(zip(groups["label"].to_list(), groups["row"], strict=True))
    for label in sorted(found, key=lambda label: _order(labels.name, label)):
        yield label, found[label].to_numpy()


def _order(name: str, label: str) -> tuple[int, int, str]:
    """Sort key of the labels of a column: numbers by size, other labels by their letters."""
    first = label.partition("-")[0]
    return (0, int(first), label) if first.isdigit() and name in ("popularity", "seed") else (1, 0, label)


_ALL = slice(None)


class Group(NamedTuple):
    """Group of tasks of a table: all tasks of a model, or one group of a breakdown.

    Attributes:
        model: name of the model; None if the table has no column `model`.
        by: breakdown that the group belongs to; None: all tasks of the model.
        label: label of the group within the breakdown.
    """

    model: str | None
    by: str | None = None
    label: str | None = None

    def place(self, breakdowns: Sequence[Breakdown]) -> tuple[Any, ...]:
        """Sort key of the group in a report."""
        by = -1 if self.by is None else list(breakdowns).index(Breakdown(self.by))
        return self.model or "", by, _order(self.by or "", self.label or "")


def groups_of(rows: pl.DataFrame, breakdowns: Sequence[Breakdown]) -> list[tuple[Group, Any]]:
    """Groups of a report in their order, each with the indices of its rows.

    Raises:
        ValueError: if the rows lack the column of a breakdown.
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
    """Rows of each side; the side `both` covers heads and tails."""

    def __init__(self, side: pl.Series) -> None:
        """Reads the column `side`."""
        self._side_of = np.zeros(len(side), np.int8)
        for i, name in enumerate(SIDES[:3]):
            self._side_of[(side == name).to_numpy()] = i
        self._relations = self._side_of == SIDES.index(RELATION)

    def of(self, side: str, index: np.ndarray | slice) -> Any:
        """Rows of a side among the rows `index`."""
        if side == "both" and not self._relations.any():
            return index
        own = ~self._relations if side == "both" else self._side_of == SIDES.index(side)
        return np.arange(len(own))[index][own[index]]


def breakdowns_named(by: str | Iterable[str]) -> list[Breakdown]:
    """Breakdowns named by the argument `by` of `report`.

    Raises:
        ValueError: if a name is not the name of a breakdown.
    """
    return [_breakdown(name) for name in ((by,) if isinstance(by, str) else by)]


def _breakdown(name: str) -> Breakdown:
    try:
        return Breakdown(name)
    except ValueError:
        known = ", ".join(breakdown.value for breakdown in Breakdown)
        raise ArgumentError("by", f"must be one of {known}, got {name!r}.") from None


class Cut(NamedTuple):
    """Tasks of one group and side.

    Attributes:
        group: group of the tasks.
        side: side of the tasks.
        gathered: sums for metrics of the tasks.
        seeds: sums for metrics of each seed's tasks, if there are several seeds.
    """

    group: Group
    side: str
    gathered: Gathered
    seeds: Sequence[Gathered]


class Plan(NamedTuple):
    """Request for a fold.

    Attributes:
        breakdowns: breakdowns that divide the tasks.
        whole: options for whole tables.
        grouped: options for groups.
        sides: sides to report, from `SIDES`.
    """

    breakdowns: list[Breakdown]
    whole: EvaluationOptions
    grouped: EvaluationOptions
    sides: Sequence[str]

    def options(self, group: Group) -> EvaluationOptions:
        """Options for a group."""
        return self.grouped if group.by else self.whole


@dataclass
class Fold:
    """Cuts, computed one after the other, and counts that are complete once all cuts have been taken.

    Attributes:
        name: name of the source, for messages.
        cuts: cuts in the order of a report.
        tasks: number of tasks.
        tied: number of tied tasks.
    """

    name: str
    cuts: Iterator[Cut]
    tasks: int = 0
    tied: int = 0


def of_tasks(tasks: Tasks, rows: pl.DataFrame, plan: Plan, on_progress: Progress = None) -> Fold:
    """Fold of tasks in memory; each cut is gathered when it is asked for.

    Args:
        tasks: at least one ranking task.
        rows: rows of the tasks, with the column `side` and, if known, `model`, `seed` and the columns of
            `plan`.
        plan: request.
        on_progress: function called with (done, total) groups and sides.

    Raises:
        ValueError: if a task has too many candidates.
    """
    refuse_many_candidates(tasks)
    if (rows["side"] == RELATION).all():
        plan = plan._replace(sides=(RELATION,))

    def cuts() -> Iterator[Cut]:
        found = _cuts(tasks, rows, plan, seeds_of(rows), on_progress)
        # Heads and tails of a group are kept until both are asked for, whose sums they share.
        kept: dict[_Key, tuple[Any, InMemory]] = {}
        for (group, side), parts in groupby(found, key=lambda cut: cut[0][:2]):
            if side not in ("tail", "both"):
                kept.clear()
            made = [sums(key, at, kept, plan.options(group)) for key, at in parts]
            if side == "both":
                kept.clear()
            yield Cut(group, side, made[0], made[1:])
            del made  # before the next ones are made, because each is as large as the ranks

    def sums(
        key: _Key, at: Any, kept: dict[_Key, tuple[Any, InMemory]], options: EvaluationOptions
    ) -> Gathered:
        group, side, seed = key
        if side == "both":
            of_sides = [kept[one] for name in ("head", "tail") if (one := (group, name, seed)) in kept]
            if (together := _together(tasks, at, of_sides, options)) is not None:
                return together
        alone = in_memory(weighed(part_of(tasks, at)), options)
        if side in ("head", "tail") and "both" in plan.sides:
            kept[key] = at, alone
        return alone

    return Fold("ranks", cuts(), len(rows), int((tasks.optimistic < tasks.pessimistic).sum()))


def _together(
    tasks: Tasks, at: Any, of_sides: list[tuple[Any, InMemory]], options: EvaluationOptions
) -> Together | None:
    """Sums of the tasks `at`, from those of heads and of tails; None if they cannot be added."""
    count = len(tasks.optimistic[at])
    if not of_sides or sum(len(own) for own, _ in of_sides) != count:
        return None
    if tasks.weight is not None and not all(tasks.weight[own].any() for own, _ in of_sides):
        return None
    if tasks.query is not None and len(of_sides) > 1:
        asked = np.zeros(tasks.num_queries, bool)
        asked[tasks.query[of_sides[0][0]]] = True
        if asked[tasks.query[of_sides[1][0]]].any():
            return None
    parts = [own for _, own in of_sides]
    return Together(parts) if Together.addable(parts, {one for _, one in options.groups}) else None


def columns_with(dataset: RankDataset, graph: KnowledgeGraph | None) -> list[str]:
    """Columns of a dataset, and the columns that a graph adds."""
    more = [] if graph is None else [name for name in _OF_GRAPH if name not in dataset.columns]
    return [*dataset.columns, *more]


def of_parts(dataset: RankDataset, plan: Plan, graph: KnowledgeGraph | None, on_progress: Progress) -> Fold:
    """Fold of a dataset, read in parts of whole queries whose sums are added for each cut.

    Args:
        dataset: dataset, whose files are read twice.
        plan: request; it cannot ask for a bootstrap.
        graph: graph that adds popularity, categories and half-links; None: nothing is added.
        on_progress: function called with (done, total) rows; each row counts two or three times, once per
            pass.

    Raises:
        ValueError: as `owkg.metrics.report`.
    """
    _refuse_bootstrap(plan.whole)
    fold = Fold(str(dataset.source), iter(()))
    fold.cuts = _added(dataset, plan, graph, on_progress, fold)
    return fold


def _added(
    dataset: RankDataset, plan: Plan, graph: KnowledgeGraph | None, on_progress: Progress, fold: Fold
) -> Iterator[Cut]:
    columns = columns_with(dataset, graph)
    passes = 3 if any(Added(one).needs_second_pass for one in (plan.whole, plan.grouped)) else 2
    told = _Told(on_progress, passes * dataset.rows)

    def prepared(batch: pl.DataFrame) -> pl.DataFrame:
        return annotated(RankTable.trusted(batch), cast(KnowledgeGraph, graph)).select(columns)

    runs, bounds = dataset.seeds(), 0
    with partitions(
        dataset,
        None if graph is None else prepared,
        labels={"category": (*CATEGORIES, ""), "half_link": HALF_LINKS},
        rows_of_part=rows_of_part(dataset.rows),
        on_progress=told.of_rows,
    ) as parts:
        if parts.sides == (RELATION,):
            plan = plan._replace(sides=(RELATION,))
        for one in (plan.whole, plan.grouped) if plan.breakdowns else (plan.whole,):
            refuse_extremes(parts, one)
        _require_memory_of_groups(parts, plan, sum(1 + len(seeds) for seeds in runs.values()))
        found: dict[_Key, Added] = {}
        weightless: dict[_Key, Added] = {}
        for tasks, rows in _parts(parts, told, runs):
            fold.tasks += len(rows)
            fold.tied += int((tasks.optimistic < tasks.pessimistic).sum())
            bounds += int(rows["bounded"].sum()) if "bounded" in rows.columns else 0
            for key, at in _cuts(tasks, rows, plan, runs):
                own = weighed(part_of(tasks, at))
                to = found if own.weight is None or own.weight.any() else weightless
                if key not in to:
                    to[key] = Added(plan.options(key[0]))
                to[key].add(own)
        # Groups without weight in any part.
        nothing = weightless.keys() - found.keys()
        found |= {key: weightless[key] for key in nothing}
        for tasks, rows in _parts(parts, told, runs) if passes == 3 else ():
            for key, at in _cuts(tasks, rows, plan, runs):
                own = weighed(part_of(tasks, at))
                if own.weight is None or own.weight.any() or key in nothing:
                    found[key].add_below(own)
    warn_of_bounds(dataset.source, bounds, fold.tasks)
    places = {side: i for i, side in enumerate(plan.sides)}
    wholes = [(group, side) for group, side, seed in found if seed is None]
    for group, side in sorted(wholes, key=lambda key: (key[0].place(plan.breakdowns), places[key[1]])):
        seeds = runs.get(group.model, ()) if group.by != Breakdown.SEED else ()
        yield Cut(group, side, found[group, side, None], [found[group, side, seed] for seed in seeds])


_Key = tuple[Group, str, int | None]


class _Told:
    """Progress in rows over several passes."""

    def __init__(self, on_progress: Progress, total: int) -> None:
        self._on_progress, self._total, self._done = on_progress, total, 0

    def of_rows(self, done: int, _: int) -> None:
        """Reports the number of rows done in the first pass."""
        self._done = done
        self.more(0)

    def more(self, rows: int) -> None:
        """Reports a number of further rows done."""
        self._done = min(self._done + rows, self._total)
        if self._on_progress is not None:
            self._on_progress(self._done, self._total)


def _parts(parts: Partitions, told: _Told, runs: Runs) -> Iterator[tuple[Tasks, pl.DataFrame]]:
    """Tasks of each part, with the columns that they may be divided by."""
    for number in range(parts.count):
        if (found := parts.tasks(number)) is not None:
            tasks, rows = found
            if runs:
                named = rows.with_columns(parts.labelled(rows[n]) for n in ("model",) if n in rows.columns)
                require_same_tasks(named, runs, labelled=parts.labelled)
            kept = [
                name
                for name in ("model", "bounded", *(one.column for one in Breakdown))
                if name in rows.columns
            ]
            yield tasks, rows.select("side").with_columns(parts.labelled(rows[name]) for name in kept)
            told.more(len(rows))


def _cuts(
    tasks: Tasks, rows: pl.DataFrame, plan: Plan, runs: Runs, on_progress: Progress = None
) -> Iterator[tuple[_Key, Any]]:
    """Indices of the tasks of each group and side, if any, then of each seed if there are several."""
    on_sides = OnSides(rows["side"])
    of = rows["seed"].to_numpy() if runs else np.empty(0)
    jobs = [(group, index, side) for group, index in groups_of(rows, plan.breakdowns) for side in plan.sides]
    for done, (group, index, side) in enumerate(jobs):
        at = on_sides.of(side, index)
        if isinstance(at, slice) or len(at):
            yield (group, side, None), at
            for seed in runs.get(group.model, ()) if group.by != Breakdown.SEED else ():
                yield (group, side, seed), np.arange(len(rows))[at][of[at] == seed]
        if on_progress is not None:
            on_progress(done + 1, len(jobs))


def _refuse_bootstrap(options: EvaluationOptions) -> None:
    if options.resampled:
        raise ArgumentError(
            "interval",
            "must be analytic if ranks are in a dataset, because a bootstrap needs all queries in memory; "
            f"got {options.interval.value}.",
        )


def refuse_extremes(parts: Partitions, options: EvaluationOptions) -> None:
    """Raises ValueError if weights would have to be scaled by a number that depends on all rows together."""
    counts = {
        "popularity": "popularity",
        "relation_popularity": "relation_popularity",
        "negatives": "candidates",
    }
    for metric in options.metrics:
        for name, column in counts.items():
            exponent = getattr(metric.weighting, name)
            if abs(exponent) * np.log(parts.largest.get(column, 0) + 2.0) > LARGEST_LOG:
                raise ArgumentError(
                    "metrics", f"must weigh by smaller powers if ranks are in a dataset, got {metric.name}."
                )
    if not 1e-50 < (most := parts.largest.get("weight", 1.0)) < 1e50:
        raise ArgumentError(
            "ranks", f"must have a largest weight between 1e-50 and 1e50 in a dataset, got {most:g}."
        )


def _require_memory_of_groups(parts: Partitions, plan: Plan, runs: int) -> None:
    """Raises ValueError if the counts of ranks of all groups do not fit in memory."""
    models = max(len(parts.entries.get("model", [None])), runs)
    # Each weighting and tie rule has a table over all ranks and half ranks.
    table = 16 * parts.largest["candidates"] * len(plan.sides) * models
    needed = table * Added(plan.whole).tables
    for breakdown in plan.breakdowns:
        # If relations are numbers, there are at most as many as the largest number.
        labels = parts.entries.get(breakdown.value, range(_DECADES))
        needed += table * Added(plan.grouped).tables * len(labels)
    name = "by" if plan.breakdowns else "metrics"
    checks.memory(name, needed, free_memory(), "the counts of ranks of all groups")


def warn_of_bounds(source: object, many: int, rows: int) -> None:
    """Warns (UserWarning) if `many`, the number of ranks that are bounds, is above 0."""
    if many:
        warnings.warn(
            f"{source}: {many:,} of {rows:,} ranks are bounds of unknown ranks, so each metric is only known "
            "to lie between its pessimistic and its optimistic value.",
            stacklevel=4,
        )
