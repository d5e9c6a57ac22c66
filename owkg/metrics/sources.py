"""Reports of several rank tables and datasets, one below the other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from owkg.kg.graph import KnowledgeGraph
from owkg.metrics.measures import Metric
from owkg.metrics.report import COLUMNS, report_and_sizes, rules_known, warn_bounded, warn_of
from owkg.metrics.ties import Ties
from owkg.ranks import RankDataset, RankTable
from owkg.ranks.seeds import require_same_tasks, seeds_of
from owkg.ranks.tasks import tasks_of


def reports(
    files: Sequence[Path],
    sources: list[RankTable | RankDataset],
    metrics: list[Metric] | None = None,
    *,
    graph: KnowledgeGraph | None = None,
    **options: Any,
) -> tuple[pl.DataFrame, list[tuple[int, int]]]:
    """Reports of several rank tables, one below the other.

    Warns (UserWarning) if intervals rest on few queries, or a table has no macro metrics.

    Args:
        files: paths of the tables, for messages.
        sources: rank tables, which are removed from the list because ten million ranks take half a GiB; or
            datasets, which are read a part at a time.
        metrics: as in `report`.
        graph: graph that adds columns to the rows of datasets; tables must have these columns already.
        options: options of `report`.

    Returns:
        (report, numbers of tasks and of tied tasks of each table).

    Raises:
        ValueError: with a message that begins with the file.
    """
    frames, sizes = [], []
    for path in files:
        source = sources.pop(0)
        own: dict[str, Any] = options | {
            "ties": rules_known(path, source, options.get("ties", Ties.REALISTIC))
        }
        if isinstance(source, RankDataset):
            found, size = report_and_sizes(source, metrics, graph=graph, **own)
        else:
            found, size = _of_table(path, source, metrics, own)
        warn_of(path, found, metrics)
        frames.append(found)
        sizes.append(size)
    return pl.concat(frames, how="diagonal"), sizes


def _of_table(
    path: Path, table: RankTable, metrics: list[Metric] | None, options: dict[str, Any]
) -> tuple[pl.DataFrame, tuple[int, int]]:
    try:
        tasks, rows = tasks_of(table)
        del table
        require_same_tasks(rows, seeds_of(rows))
        warn_bounded(path, rows)
        rows = rows.select(pl.col("side").cast(pl.Categorical), pl.col(COLUMNS & set(rows.columns)))
        return report_and_sizes((tasks, rows), metrics, **options)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
