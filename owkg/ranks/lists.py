"""Conversion of tables and lists of ranks to rank tables, with candidates from a graph."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from owkg.errors import ArgumentError
from owkg.kg.graph import KnowledgeGraph, graph_checked
from owkg.kg.popularity import popularity_columns
from owkg.ranks.annotate import candidates_by_side, triple_ids
from owkg.ranks.build import default_filters, filter_facts, in_no_split, split_of
from owkg.ranks.reading import (
    OPEN,
    PLAIN,
    TableReading,
    asked,
    by_labels,
    formed,
    names_of,
    tell_of_numbers,
    wide_sides,
)
from owkg.ranks.table import RANKS, REQUIRED, TRIPLE, RankTable, require_columns, validated_at


def made(
    table: pl.DataFrame,
    reading: TableReading = PLAIN,
    graph: KnowledgeGraph | None = None,
    *,
    source: str,
    place: Callable[[int], str] | None = None,
    complete: bool = False,
    about: Mapping[str, Any] | None = None,
) -> RankTable:
    """Rank table made from a table of any form.

    Issues a UserWarning about assumptions.

    Args:
        table: table as in a file or from a user.
        reading: options for the table.
        graph: knowledge graph that gives missing candidates. Default: none.
        source: name of the table in messages.
        place: function from a row (from 0) to its name in messages. Default: "source, row i", from 1.
        complete: whether the graph also adds popularity and category. Default False.
        about: record of how the table was made, if known.

    Raises:
        ValueError: naming the table, the row or the argument.
    """
    said, of_rows = dict(about or {}), place or (lambda row: f"{source}, row {row + 1}")
    found = table.columns
    names = names_of(found, reading, source=source)
    if len(names) < table.width or any(old != new for old, new in names.items()):
        table = table.select(pl.col(old).alias(new) for old, new in names.items())
    table, where = formed(table, reading, source=source, place=of_rows, found=found)
    table = asked(table, reading, graph, wide_sides(names.values()), source=source)
    lacks = lacks_candidates(table.columns)
    if lacks and graph is None and (reading.untied or reading.realistic):
        _refuse_lacking(table, source)
    require_columns([*table.columns, *(["candidates"] if lacks and graph is not None else [])], source, found)
    if reading.ids:
        table = by_labels(table, graph, source=source, place=where)
    elif graph is not None:
        tell_of_numbers(table, graph, source=source)
    if not lacks and graph is not None and reading.candidates is not None:
        raise ArgumentError("candidates", "must be left out with a graph (`kg`), which gives the candidates.")
    if reading.filter_splits is not None and not lacks:
        raise ArgumentError("filter_splits", f"has no effect on {source}, which already has candidates.")
    if graph is not None and (complete or lacks):
        filters = reading.filter_splits
        table, more = with_graph(table, graph, source=source, place=where, filter_splits=filters)
        said |= more
    return RankTable.trusted(validated_at(table, source=source, place=where), said)


def _refuse_lacking(table: pl.DataFrame, source: str) -> None:
    """ValueError for a table that lacks only candidates."""
    if set(REQUIRED) - {"candidates"} <= set(table.columns):
        raise ValueError(
            f"{source}: no column candidates; give their number in `candidates`, or a graph (`kg`)."
        )


def with_graph(
    table: pl.DataFrame,
    graph: KnowledgeGraph,
    *,
    source: str,
    place: Callable[[int], str],
    filter_splits: Sequence[str] | None = None,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Rank table with popularity, and with missing candidates, from a graph.

    Args:
        table: frame with all columns of a rank table, except possibly candidates.
        graph: knowledge graph whose triples were ranked.
        source: name of the table in messages.
        place: function from a row (from 0) to its name in messages.
        filter_splits: splits that filter, as for `owkg.ranks.ranks_from_list`.

    Returns:
        Table, not yet validated, and the split and filter of its candidates if they were added.

    Raises:
        ValueError: naming the row, if it is malformed or its triple is in no split of the graph.
    """
    graph, given = graph_checked(graph), "candidates" in table.columns
    filled = table if given else table.with_columns(candidates=pl.lit(OPEN))
    checked = validated_at(filled, source=source, place=place)
    triples = triple_ids(checked, graph, place=place)
    about: dict[str, Any] = {}
    if not given:
        if (strange := in_no_split(graph, triples)).any():
            row = int(np.argmax(strange))
            shown = " ".join(str(checked[column][row]) for column in TRIPLE)
            raise ValueError(
                f"{place(row)}: the graph has no triple {shown!r} in any split, so that it cannot give the "
                f"candidates ({strange.sum():,} of {len(table):,} rows have such triples)."
            )
        if filter_splits is None and "filtered" in checked.columns and not checked["filtered"].all():
            raise ValueError(
                f"{source}: `filter_splits` must name the splits that filter, because the column filtered "
                "is false; none for raw ranks."
            )
        split = split_of(graph, triples)
        filters = default_filters(graph, split) if filter_splits is None else list(filter_splits)
        facts = filter_facts(graph, filters) if filters else triples[:0]
        about = {"split": split, "filter": filters}
        candidates = candidates_by_side(graph, facts, triples, checked["side"])
        checked = checked.with_columns(candidates=pl.Series(candidates))
        if "filtered" not in checked.columns:
            inside = bool(filters) and not in_no_split(_of(graph, filters), triples).any()
            checked = checked.with_columns(filtered=pl.lit(inside))
    columns: dict[str, Any] = {}
    if len(graph.splits.get("train", ())):
        columns = popularity_columns(graph, triples, checked["side"].to_numpy())
    new = {name: column for name, column in columns.items() if name not in checked.columns}
    return checked.with_columns(**new), about


def _of(graph: KnowledgeGraph, splits: Sequence[str]) -> Any:
    """Graph with only these splits."""
    return graph._replace(splits={name: graph.splits[name] for name in splits})


def lacks_candidates(columns: Sequence[str]) -> bool:
    """Whether the columns are those of a rank table, except candidates."""
    return "candidates" not in columns and set(RANKS) - {"candidates"} <= set(columns)
