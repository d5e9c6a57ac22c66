"""Plain lists of ranks, without ties, as a rank table; candidates that follow from a graph."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from owkg import checks
from owkg.checks import StrPath
from owkg.errors import ArgumentError
from owkg.files.delimited import read_text_table, separator
from owkg.kg.graph import KnowledgeGraph, graph_checked
from owkg.kg.popularity import popularity_columns
from owkg.ranks.annotate import candidates_by_side, triple_ids
from owkg.ranks.build import default_filters, filter_facts, in_no_split, split_of
from owkg.ranks.table import RANKS, TRIPLE, validated_at, whole_column

# What a list may be silent about, if about all of it.
_TASK = (*TRIPLE, "side")


def converted_list(
    path: StrPath,
    *,
    num_candidates: int | None = None,
    graph: KnowledgeGraph | None = None,
    filter_splits: Sequence[str] | None = None,
) -> tuple[pl.DataFrame, dict[str, Any], list[str]]:
    """What `ranks_from_list` gives, how it was made, and a note where the file does not say what is asked."""
    path = Path(path)
    if separator(path) is None:
        raise ValueError(f"{path}: a rank list's name ends in .csv, .tsv, .csv.gz or .tsv.gz.")
    table, place = read_text_table(path)
    silent = not any(name in table.columns for name in _TASK)
    where = {"source": str(path), "place": place}
    if "rank" not in table.columns:
        raise ValueError(f"{path}: no column rank; columns found: {', '.join(table.columns)}.")
    table = untied(table, **where)
    if graph is not None and num_candidates is not None:
        raise ArgumentError(
            "num_candidates", "must be absent with a graph (`kg`), which gives the candidates."
        )
    if graph is None and ("candidates" in table.columns) == (num_candidates is not None):
        how = "nowhere, nor a graph (`kg`) that gives it"
        how = how if num_candidates is None else "twice: drop the option or the column"
        raise ValueError(
            f"{path}: `num_candidates` must be an option or the column candidates, got it {how}."
        )
    if silent:
        if graph is not None:
            raise ArgumentError("kg", f"says nothing of ranks without head, relation and tail, as in {path}.")
        row = pl.int_range(pl.len(), dtype=pl.Int64)
        table = table.with_columns(head=row, relation=pl.lit(0), tail=row, side=pl.lit("tail"))
    if num_candidates is not None:
        count = checks.whole("num_candidates", num_candidates, 1)
        table = table.with_columns(candidates=pl.lit(count))
    about: dict[str, Any] = {}
    if graph is not None:
        table, about = with_graph(table, graph, filter_splits=filter_splits, **where)
    note = f"{path} does not say what was asked: each rank counts as a query of its own, for a tail"
    return validated_at(table, **where), about, [note] if silent else []


def ranks_from_list(
    path: StrPath,
    *,
    num_candidates: int | None = None,
    graph: KnowledgeGraph | None = None,
    filter_splits: Sequence[str] | None = None,
) -> pl.DataFrame:
    """The rank table of a CSV or TSV file with one column `rank`, taken as free of ties.

    The optimistic and the pessimistic rank are both the rank given; who asks for this states that the list
    has no ties or that its ranks hide them.

    Args:
        path: the file, with the columns head, relation, tail, side, rank, and candidates unless they are
            given; other columns are kept. Of head, relation, tail and side all may be absent: then row i is
            the triple i, 0, i, and its tail is asked for, so that each rank is of a query of its own.
        num_candidates: among how many every answer was ranked.
        graph: whose triples were ranked. The candidates of each task follow from it, and popularity and
            category are added.
        filter_splits: splits of the graph whose other answers left the candidates; none: raw ranks. None:
            train, valid and test, as far as the graph has them, and the smallest split that holds all
            triples.

    Raises:
        ValueError: naming file and line, as `read_ranks`; if the candidates are given twice or not at all; or
            if a triple is in no split of the graph.
        OSError: if the file cannot be opened.
    """
    options: Any = {"num_candidates": num_candidates, "graph": graph, "filter_splits": filter_splits}
    return converted_list(path, **options)[0]


def untied(table: pl.DataFrame, *, source: str, place: Callable[[int], str]) -> pl.DataFrame:
    """The table with its column rank as the optimistic and the pessimistic rank."""
    if "rank" not in table.columns:
        if {"optimistic", "pessimistic"} <= set(table.columns):
            raise ArgumentError("untied", f"has no effect on {source}, which has both ranks of each task.")
        return table
    if tied := [name for name in ("optimistic", "pessimistic") if name in table.columns]:
        raise ValueError(
            f"{source}: a column rank beside {' and '.join(tied)}: the ranks are not free of ties."
        )
    rank = whole_column(table["rank"], 1, source=source, place=place)
    return table.with_columns(optimistic=rank, pessimistic=rank).drop("rank")


def with_graph(
    table: pl.DataFrame,
    graph: KnowledgeGraph,
    *,
    source: str,
    place: Callable[[int], str],
    filter_splits: Sequence[str] | None = None,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """A rank table, perhaps without candidates, with those that follow from a graph, and what train says.

    Args:
        table: all columns of a rank table, except candidates.
        graph: whose triples were ranked.
        source: what messages call the table.
        place: what messages call a row (from 0).
        filter_splits: as of `ranks_from_list`.

    Returns:
        The table, not yet validated; and the split and the filter of its candidates, if they were not there.

    Raises:
        ValueError: naming the row, if it is malformed or its triple is in no split of the graph.
    """
    graph, given = graph_checked(graph), "candidates" in table.columns
    filled = table if given else table.with_columns(candidates=pl.lit(2**53))
    checked = validated_at(filled, source=source, place=place)
    triples = triple_ids(checked, graph, place=place)
    about: dict[str, Any] = {}
    if not given:
        if (strange := in_no_split(graph, triples)).any():
            row = int(np.argmax(strange))
            shown = " ".join(str(checked[column][row]) for column in TRIPLE)
            raise ValueError(
                f"{place(row)}: the graph has no triple {shown!r} in any split, from which candidates follow "
                f"({strange.sum():,} of {len(table):,} rows have such triples)."
            )
        if filter_splits is None and "filtered" in checked.columns and not checked["filtered"].all():
            raise ValueError(
                f"{source}: `filter_splits` must say what filters, because the column filtered is false; "
                "no splits (none) for raw ranks."
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
    """The graph with these splits alone."""
    return graph._replace(splits={name: graph.splits[name] for name in splits})


def lacks_candidates(columns: Sequence[str]) -> bool:
    """Whether columns are those of a rank table, except candidates."""
    return "candidates" not in columns and set(RANKS) - {"candidates"} <= set(columns)
