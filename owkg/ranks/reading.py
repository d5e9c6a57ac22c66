"""Options for reading tables of ranks, and their application."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import polars as pl

from owkg import checks
from owkg.errors import ArgumentError
from owkg.files.columns import columns_checked, final_names, listed
from owkg.kg.graph import KnowledgeGraph
from owkg.ranks.table import (
    KNOWN,
    OF_SIDES,
    SIDES,
    TIES_UNKNOWN,
    TRIPLE,
    WIDE,
    Named,
    Place,
    cell,
    hint_of_ranks,
    refuse_nulls,
    whole_column,
)

# Placeholder for a number of candidates that a graph will give.
OPEN = 2**53


@dataclass(frozen=True, eq=False)
class TableReading:
    """Options for reading a table of ranks, which the table itself does not state.

    Attributes:
        columns: names of columns in the table by their names in owkg, if they differ.
        untied: whether ranks (a column rank, or head_rank and tail_rank) are free of ties.
        realistic: whether they are means of the optimistic and the pessimistic rank, such as 2.5, so that
            only realistic metrics are defined.
        candidates: number of candidates among which every answer was ranked; an array has one number for each
            row.
        ids: whether head, relation and tail are ids of the graph, whatever its labels are.
        split: split of the graph whose triples the rows are, in their order, if the rows do not name their
            triples.
        filter_splits: splits of the graph whose known answers were removed from the candidates. None: the
            default ones.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    untied: bool = False
    realistic: bool = False
    candidates: Any = None
    ids: bool = False
    split: str | None = None
    filter_splits: Sequence[str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", columns_checked(self.columns or None, KNOWN))
        for name in ("untied", "realistic", "ids"):
            checks.flag(name, getattr(self, name))
        if self.untied and self.realistic:
            raise ArgumentError("realistic", "must be left out with `untied`: ranks have ties, or have none.")
        if self.candidates is not None:
            given = checks.integer("candidates", self.candidates, 1)
            object.__setattr__(self, "candidates", int(given) if given.ndim == 0 else given)
        if self.split is not None and not isinstance(self.split, str):
            raise ArgumentError("split", f"must be the name of a split, got {self.split!r}.")

    @property
    def said(self) -> str | None:
        """Name of the first attribute that is set; None if all have their defaults."""
        return next((one.name for one in fields(self) if not _is_unsaid(getattr(self, one.name))), None)


def _is_unsaid(value: Any) -> bool:
    """Whether an attribute has its default."""
    return value is None or value is False or (isinstance(value, Mapping) and not value)


PLAIN = TableReading()
"""Default options."""


def names_of(
    found: Iterable[str], reading: TableReading, *, source: str, told: bool = True
) -> dict[str, str]:
    """New names of the columns of a table of ranks (`owkg.files.columns.final_names`)."""
    return final_names(found, reading.columns, KNOWN, source=source, told=told)


def wide_sides(columns: Iterable[str]) -> list[str]:
    """Sides whose ranks share one row; empty for a table with one row for each side."""
    there = set(columns)
    if there & {"side", "rank", "optimistic", "pessimistic"}:
        return []
    ranks = ("rank", "optimistic", "pessimistic")
    return [side for side in SIDES if there & {f"{side}_{name}" for name in ranks}]


def formed(
    table: pl.DataFrame, reading: TableReading, *, source: str, place: Place, found: Iterable[str]
) -> tuple[pl.DataFrame, Place]:
    """Table with one row for each ranking task, and with optimistic and pessimistic ranks.

    Args:
        table: frame with the columns of `names_of`.
        reading: options for the table.
        source: name of the table in messages.
        place: function from a row (from 0) to its name in messages.
        found: names of the columns in the table, for messages.

    Returns:
        Table, not yet validated, and the function that names its rows in messages.

    Raises:
        ValueError: naming the table or the row.
    """
    if sides := wide_sides(table.columns):
        table, place = _long(table, sides, source), _of_sides(place, len(table), sides)
    table, place = _ranked(table, reading, source=source, place=place, found=found)
    if reading.candidates is not None:
        if "candidates" in table.columns:
            raise ValueError(
                f"{source}: `candidates` must be an option or the column candidates, got both: drop "
                "the option or the column."
            )
        table = table.with_columns(_candidates(reading.candidates, table, sides))
    return table, place


def _candidates(given: Any, table: pl.DataFrame, sides: list[str]) -> pl.Series:
    """Column candidates, from one number or one for each row."""
    if isinstance(given, int):
        return pl.repeat(given, len(table), dtype=pl.Int64, eager=True).alias("candidates")
    count = max(len(sides), 1)
    rows = len(table) // count
    if given.shape == (rows, count) and count > 1:
        given = given.T.ravel()
    elif given.shape == (rows,):
        given = np.tile(given, count)
    else:
        raise ArgumentError(
            "candidates", f"must be one number, or one for each of {rows} rows, got shape {given.shape}."
        )
    return pl.Series("candidates", given, dtype=pl.Int64)


def _long(table: pl.DataFrame, sides: list[str], source: str) -> pl.DataFrame:
    """Table with one row for each side: first all heads, then all tails."""
    own = {side: {name.removeprefix(f"{side}_"): name for name in WIDE if name.startswith(f"{side}_")
                  and name in table.columns} for side in sides}  # fmt: skip
    if len(sides) > 1 and own["head"].keys() != own["tail"].keys():
        other = sorted(own["head"].keys() ^ own["tail"].keys())[0]
        raise ValueError(f"{source}: must have head_{other} and tail_{other}, got one of them.")
    rest = [name for name in table.columns if name not in WIDE]
    parts = [
        table.select(
            *rest, pl.lit(side).alias("side"), *(pl.col(old).alias(new) for new, old in names.items())
        )
        for side, names in own.items()
    ]
    try:
        return pl.concat(parts, how="vertical_relaxed")
    except pl.exceptions.PolarsError:
        raise ValueError(f"{source}: columns of head and tail must be of one type.") from None


def _of_sides(place: Place, rows: int, sides: list[str]) -> Named:
    """Names of the rows of `_long` in messages, and of their columns in the wide table."""

    def column(name: str, row: int) -> str:
        return f"{sides[row // rows]}_{name}" if name in OF_SIDES else name

    return Named(lambda row: place(row % rows), column)


def _of_rank(place: Place) -> Named:
    """Names of rows in messages if their column rank became both ranks, which messages then call rank."""

    def column(name: str, row: int) -> str:
        name = "rank" if name in ("optimistic", "pessimistic") else name
        return place.column(name, row) if isinstance(place, Named) else name

    return Named(place, column)


def _ranked(
    table: pl.DataFrame, reading: TableReading, *, source: str, place: Place, found: Iterable[str]
) -> tuple[pl.DataFrame, Place]:
    """Table whose column rank became the optimistic and the pessimistic rank, if the options ask for it."""
    if not (reading.untied or reading.realistic):
        if "rank" in table.columns and not {*TRIPLE, "optimistic", "pessimistic"} & {*table.columns}:
            raise ValueError(f"{source}: {TIES_UNKNOWN}.")
        return table, place
    if "rank" not in table.columns:
        if {"optimistic", "pessimistic"} <= {*table.columns}:
            name = "untied" if reading.untied else "realistic"
            raise ArgumentError(name, f"has no effect on {source}, which has both ranks of each task.")
        raise ValueError(f"{source}: no column rank; columns found: {listed(found)}; {hint_of_ranks()}.")
    tied = [name for name in ("optimistic", "pessimistic") if name in table.columns]
    if tied:
        raise ValueError(
            f"{source}: has a column rank and {' and '.join(tied)}, so that ranks are not free of ties."
        )
    rank = table["rank"]
    if reading.untied:
        _refuse_halves(rank, place)
        ranks = whole_column(rank, 1, source=source, place=place)
        return table.drop("rank").with_columns(optimistic=ranks, pessimistic=ranks), _of_rank(place)
    doubled = _doubled(rank, place)
    halves = whole_column(doubled, 2, source=source, place=place)
    both = {"optimistic": halves // 2, "pessimistic": (halves + 1) // 2}
    return table.drop("rank").with_columns(**both, averaged=pl.lit(value=True)), _of_rank(place)


def _numbers(rank: pl.Series) -> pl.Series:
    """Ranks as floats; null if they are not numbers."""
    text = rank.str.strip_chars() if rank.dtype == pl.String else rank
    return text.cast(pl.Float64, strict=False)


def _refuse_halves(rank: pl.Series, place: Place) -> None:
    """ValueError for the first rank that is halfway between two."""
    if rank.dtype.is_integer() or not (rank.dtype.is_float() or rank.dtype == pl.String):
        return
    if rank.dtype == pl.String and not rank.str.contains(".", literal=True).any():
        return
    half = ((_numbers(rank) % 1) == 0.5).fill_null(value=False)
    if half.any():
        row = int(half.arg_true()[0])
        raise ValueError(
            f"{cell(place, 'rank', row)} must be a whole number of at least 1, got {rank[row]!r}: half ranks "
            "are means of ties, which `realistic` accepts."
        )


def _doubled(rank: pl.Series, place: Place) -> pl.Series:
    """Twice the ranks, if these are whole or halfway between."""
    if not (rank.dtype.is_numeric() or rank.dtype == pl.String):
        return rank
    numbers = _numbers(rank)
    refuse_nulls(rank, place)
    whole = ((2 * numbers) % 1 == 0) & numbers.is_between(1, 2.0**52)
    good = (numbers.is_finite() & whole).fill_null(value=False)
    if not good.all():
        row = int((~good).arg_true()[0])
        raise ValueError(
            f"{cell(place, 'rank', row)} must be whole or half, from 1 to 2^52, such as 2.5, got "
            f"{rank[row]!r}."
        )
    return (2 * numbers).alias("rank")


def asked(
    table: pl.DataFrame,
    reading: TableReading,
    graph: KnowledgeGraph | None,
    sides: Sequence[str],
    *,
    source: str,
) -> pl.DataFrame:
    """Table with triples and sides, for ranks that do not name their triples.

    With a graph they are the triples of a split, in their order; otherwise each rank has its own query.
    Issues a UserWarning about either.

    Args:
        table: table from `formed`.
        reading: options for the table.
        graph: knowledge graph that may have the triples.
        sides: `wide_sides` of the original table.
        source: name of the table in messages.

    Raises:
        ValueError: naming the argument or the table.
    """
    if reading.ids and not {*TRIPLE} & {*table.columns}:
        raise ArgumentError("ids", f"has no effect on {source}, whose rows do not name triples.")
    listed = reading.untied or reading.realistic or bool(sides)
    if not listed or {*TRIPLE} & {*table.columns} or "optimistic" not in table.columns:
        return table
    if "side" in table.columns and not sides:
        return table
    count = max(len(sides), 1)
    rows = len(table) // count
    if graph is None:
        if reading.split is not None:
            raise ArgumentError("split", "needs a graph (`kg`) that has this split.")
        if not sides:
            table = table.with_columns(side=pl.lit("tail"))
        each = "two separate queries, for head and tail" if count > 1 else "a separate query for a tail"
        each = each.replace("tail", sides[0]) if count == len(sides) == 1 else each
        one = "rank" if count == 1 else "row"
        _warn(f"{source} does not name its queries: each {one} counts as {each}")
        number = pl.Series(np.tile(np.arange(rows, dtype=np.int64), count))
        return table.with_columns(head=number, relation=pl.lit(0, pl.Int64), tail=number)
    if not sides:
        raise ValueError(
            f"{source}: `columns` must give the side of ranks without head, relation and tail, as "
            "head_rank=NAME or tail_rank=NAME."
        )
    split = "test" if reading.split is None else reading.split
    if split not in graph.splits and reading.split is not None:
        raise ArgumentError("split", f"must be one of {', '.join(graph.splits)}, got {split!r}.")
    triples = graph.splits.get(split)
    if triples is None or len(triples) != rows:
        has = "is missing" if triples is None else f"has {len(triples):,} triples"
        raise ValueError(
            f"{source}: has {rows:,} rows without triples, and the split {split} {has}: they must be the "
            "triples of the split, in their order; owkg ranks convert --split NAME takes another split."
        )
    _warn(f"{source}: row i is taken as triple i of the split {split}")
    return table.with_columns(**_labelled(np.tile(triples, (count, 1)), graph))


def _labelled(triples: np.ndarray, graph: KnowledgeGraph) -> dict[str, pl.Series]:
    """Columns of labels of triples."""
    of = (graph.entities, graph.relations, graph.entities)
    return {
        name: pl.Series(labels, dtype=pl.String).gather(triples[:, i])
        for i, (name, labels) in enumerate(zip(TRIPLE, of, strict=True))
    }


def _warn(text: str) -> None:
    """Issues a UserWarning."""
    warnings.warn(text, UserWarning, stacklevel=3)


def by_labels(
    table: pl.DataFrame, graph: KnowledgeGraph | None, *, source: str, place: Place
) -> pl.DataFrame:
    """Table with labels in place of ids of the graph.

    Raises:
        ValueError: naming the row of the first id that the graph does not have; naming `ids`, if there is no
            graph.
    """
    if graph is None:
        raise ArgumentError("ids", "needs a graph (`kg`) that gives the ids.")
    columns = {}
    for name, labels in zip(TRIPLE, (graph.entities, graph.relations, graph.entities), strict=True):
        if name not in table.columns:
            continue
        ids = whole_column(table[name], 0, source=source, place=place)
        if (bad := ids >= len(labels)).any():
            row = int(bad.arg_true()[0])
            raise ValueError(
                f"{place(row)}: {name} must be an id of the graph, 0 to {len(labels) - 1}, got {ids[row]}."
            )
        columns[name] = pl.Series(labels, dtype=pl.String).gather(ids)
    return table.with_columns(**columns)


def tell_of_numbers(table: pl.DataFrame, graph: KnowledgeGraph, *, source: str) -> None:
    """Issues a UserWarning if whole numbers may be both labels and different ids of a graph."""
    if not table["head"].dtype.is_integer():
        return
    labels = pl.Series(graph.entities, dtype=pl.String)
    if (labels == pl.Series(range(len(labels)), dtype=pl.Int64).cast(pl.String)).all():
        return
    if labels.str.contains(r"^\d+$").all():
        _warn(f"{source}: whole numbers are taken as labels of the graph; `ids` takes them as ids")
    else:
        _warn(f"{source}: whole numbers are taken as ids of the graph; `ids` states that they are")
