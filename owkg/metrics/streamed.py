"""Reports of rank tables that do not fit in memory: their files are read a part at a time."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from owkg import checks
from owkg.errors import ArgumentError
from owkg.files.storage import free_memory
from owkg.kg import CATEGORIES
from owkg.kg.popularity import HALF_LINKS
from owkg.metrics.added import Added
from owkg.metrics.evaluate import MOST_DRAWN, Options, checked_options, estimates
from owkg.metrics.measures import Metric
from owkg.metrics.query_sums import LARGEST_LOG
from owkg.metrics.report import (
    SIDES,
    Breakdown,
    Group,
    OnSides,
    breakdowns_named,
    frame_of,
    groups_of,
    options_of,
    reported,
    require_column,
    sides_checked,
    wanted_metrics,
    warn_of_bounds,
)
from owkg.ranks.annotate import annotated
from owkg.ranks.dataset import RankDataset
from owkg.ranks.partitions import Partitions, partitions, rows_of_part
from owkg.ranks.seeds import Runs, require_same_tasks
from owkg.ranks.table import RELATION, RankTable
from owkg.ranks.tasks import Tasks, part_of, weighed

# Columns that a graph adds.
_OF_GRAPH = ("popularity", "relation_popularity", "category", "half_link")
# Groups by popularity, about.
_DECADES = 10


def stream_report(
    dataset: RankDataset,
    metrics: Iterable[Metric] | None = None,
    *,
    by: Any = (),
    group_metrics: Iterable[Metric] | None = None,
    sides: Sequence[str] = SIDES,
    graph: Any = None,
    on_progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> tuple[pl.DataFrame, tuple[int, int]]:
    """The report of a dataset, as `owkg.metrics.report` makes it of the same rows in memory.

    The rows are written to a temporary folder, queries whole in one part, and each part is worked on by
    itself: sums over queries are added, medians come from counts of ranks. Memory grows with the entities,
    the answers of the largest query and the groups, not with the rows. Left out (null) are chance levels that
    are drawn, of more than a million tasks: power means, functions of weighted means but the geometric.

    Args:
        dataset: its files are read twice.
        metrics: as of `report`.
        by: as of `report`.
        group_metrics: as of `report`.
        sides: as of `report`.
        graph: adds popularity and category, as `owkg.ranks.annotated`; None: nothing is added.
        on_progress: called with (done, total) rows; each is gone through two or three times.
        options: of `owkg.metrics.evaluate`, but for the bootstrap.

    Returns:
        (report, (tasks, tied tasks)).

    Raises:
        ValueError: as `report`; naming the files, if a task stands in two of them; if there is too little
            memory or disk, or intervals are to come from the bootstrap.
    """
    sides_checked(sides)
    breakdowns = breakdowns_named(by)
    columns = [*dataset.columns]
    if graph is not None:
        columns += [name for name in _OF_GRAPH if name not in columns]
    for breakdown in breakdowns:
        require_column(columns, breakdown)
    wanted = wanted_metrics(metrics, group_metrics, popularity="popularity" in columns)
    kinds = (Group(None), *(Group(None, breakdown.value) for breakdown in breakdowns))
    of_kind = {kind.by: checked_options(wanted(kind), **options_of(kind, options)) for kind in kinds}
    _refuse_bootstrap(of_kind[None])
    passes = 3 if any(Added(one).needs_second_pass for one in of_kind.values()) else 2
    told = _Told(on_progress, passes * dataset.rows)

    def prepared(batch: pl.DataFrame, graph: Any = graph) -> pl.DataFrame:
        return annotated(RankTable.trusted(batch), graph).select(columns)

    runs = dataset.seeds()
    size, total, tied, bounds = rows_of_part(dataset.rows), 0, 0, 0
    with partitions(
        dataset,
        None if graph is None else prepared,
        labels={"category": (*CATEGORIES, ""), "half_link": HALF_LINKS},
        rows_of_part=size,
        on_progress=told.of_rows,
    ) as parts:
        sides = (RELATION,) if parts.sides == (RELATION,) else sides
        for one in of_kind.values():
            refuse_extremes(parts, one)
        tables = sum(1 + len(seeds) for seeds in runs.values())
        _require_memory_of_groups(parts, breakdowns, of_kind, sides, tables)
        found: dict[tuple[Group, str, int | None], Added] = {}
        weightless: dict[tuple[Group, str, int | None], Added] = {}
        for tasks, rows in _parts(parts, told, runs):
            total += len(rows)
            tied += int((tasks.optimistic < tasks.pessimistic).sum())
            bounds += int(rows["bounded"].sum()) if "bounded" in rows.columns else 0
            for key, own in _cuts(tasks, rows, breakdowns, sides, runs):
                to = found if own.weight is None or own.weight.any() else weightless
                if key not in to:
                    to[key] = Added(of_kind[key[0].by])
                to[key].add(own)
        # A group of which no part has any weight.
        nothing = weightless.keys() - found.keys()
        found |= {key: weightless[key] for key in nothing}
        for tasks, rows in _parts(parts, told, runs) if passes == 3 else ():
            for key, own in _cuts(tasks, rows, breakdowns, sides, runs):
                if own.weight is None or own.weight.any() or key in nothing:
                    found[key].add_below(own)
    warn_of_bounds(dataset.source, bounds, total)
    frames, left_out = [], 0
    wholes = [(group, side) for group, side, seed in found if seed is None]
    for group, side in sorted(wholes, key=lambda key: (key[0].place(breakdowns), list(sides).index(key[1]))):
        added = found[group, side, None]
        seeds = runs.get(group.model, ()) if group.by != Breakdown.SEED else ()
        made = estimates(added, of_kind[group.by], [found[group, side, seed] for seed in seeds])
        left_out += sum(
            bool(np.isnan(one.expectation_standard_error)) for by in made.values() for one in by.values()
        )
        frames.append(frame_of(made, group, side, added.tasks, added.queries))
    if left_out:
        said = f"they would be drawn of more than {MOST_DRAWN:,} tasks"
        warnings.warn(f"{dataset.source}: {left_out:,} chance levels are left out: {said}.", stacklevel=2)
    return reported(frames, sides), (total, tied)


class _Told:
    """Tells progress in rows, over several passes."""

    def __init__(self, on_progress: Callable[[int, int], None] | None, total: int) -> None:
        self._on_progress, self._total, self._done = on_progress, total, 0

    def of_rows(self, done: int, _: int) -> None:
        """So many rows of the first pass are done."""
        self._done = done
        self.more(0)

    def more(self, rows: int) -> None:
        """So many more rows are done."""
        self._done = min(self._done + rows, self._total)
        if self._on_progress is not None:
            self._on_progress(self._done, self._total)


def _parts(parts: Partitions, told: _Told, runs: Runs) -> Iterator[tuple[Tasks, pl.DataFrame]]:
    """The tasks of each part, and of their rows what they may be divided by."""
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
    tasks: Tasks, rows: pl.DataFrame, breakdowns: list[Breakdown], sides: Sequence[str], runs: Runs
) -> Iterator[tuple[tuple[Group, str, int | None], Tasks]]:
    """The tasks of each group and side that has some, and those of each seed where there are several."""
    on_sides = OnSides(rows["side"])
    of = rows["seed"].to_numpy() if runs else np.empty(0)
    for group, index in groups_of(rows, breakdowns):
        for side in sides:
            at = on_sides.of(side, index)
            if isinstance(at, slice) or len(at):
                yield (group, side, None), weighed(part_of(tasks, at))
                for seed in runs.get(group.model, ()) if group.by != Breakdown.SEED else ():
                    own = part_of(tasks, np.arange(len(rows))[at][of[at] == seed])
                    yield (group, side, seed), weighed(own)


def _refuse_bootstrap(options: Options) -> None:
    if options.resampled:
        raise ArgumentError(
            "interval",
            "must be analytic where ranks are in a dataset, as a bootstrap needs all queries in memory; got "
            f"{options.interval.value}.",
        )


def refuse_extremes(parts: Partitions, options: Options) -> None:
    """Raises ValueError if weights would have to be scaled by what only all rows together say."""
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
                    "metrics",
                    f"must weigh by smaller powers where ranks are in a dataset, got {metric.name}.",
                )
    if not 1e-50 < (most := parts.largest.get("weight", 1.0)) < 1e50:
        raise ArgumentError(
            "ranks", f"must have a largest weight between 1e-50 and 1e50 in a dataset, got {most:g}."
        )


def _require_memory_of_groups(
    parts: Partitions,
    breakdowns: list[Breakdown],
    of_kind: dict[str | None, Options],
    sides: Sequence[str],
    runs: int,
) -> None:
    """ValueError if the counts of ranks of all groups do not fit."""
    models = max(len(parts.entries.get("model", [None])), runs)
    # A table for every rank and half rank, of each weighting and tie rule.
    table = 16 * parts.largest["candidates"] * len(sides) * models
    needed = table * Added(of_kind[None]).tables
    for breakdown in breakdowns:
        # Relations that are numbers are at most as many as the largest of them.
        labels = parts.entries.get(breakdown.value, range(_DECADES))
        needed += table * Added(of_kind[breakdown.value]).tables * len(labels)
    name = "by" if breakdowns else "metrics"
    checks.memory(name, needed, free_memory(), "the counts of ranks of all groups")
