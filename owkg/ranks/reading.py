"""What a user says of a table of ranks, and how the table becomes a rank table by it."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import polars as pl

from owkg import checks
from owkg.errors import ArgumentError
from owkg.files.columns import columns_checked, final_names, listed
from owkg.kg.graph import KnowledgeGraph
from owkg.ranks.table import KNOWN, SIDES, TIES_UNKNOWN, TRIPLE, WIDE, whole_column

Place = Callable[[int], str]
"""What messages call a row (from 0)."""

# Candidates where they follow from a graph that is yet to be asked.
OPEN = 2**53


@dataclass(frozen=True, eq=False)
class TableReading:
    """What a table of ranks does not say itself.

    Attributes:
        columns: the columns by what owkg calls them, where the table calls them otherwise.
        untied: take ranks (a column rank, or head_rank and tail_rank) as free of ties.
        realistic: take them as means of the optimistic and the pessimistic rank, such as 2.5; then only
            realistic metrics have a value.
        candidates: among how many every answer was ranked; an array has one number for each row.
        ids: take head, relation and tail as ids of the graph, whatever its labels are.
        split: of the graph, whose triples the rows are in their order, where they do not say which.
        filter_splits: of the graph, whose known answers left the candidates; None: the usual ones.
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
            raise ArgumentError("realistic", "must be absent with `untied`: ranks have ties, or have none.")
        if self.candidates is not None:
            given = checks.integer("candidates", self.candidates, 1)
            object.__setattr__(self, "candidates", int(given) if given.ndim == 0 else given)
        if self.split is not None and not isinstance(self.split, str):
            raise ArgumentError("split", f"must be the name of a split, got {self.split!r}.")

    @property
    def said(self) -> str | None:
        """The first attribute that says something; None where nothing is said."""
        return next((one.name for one in fields(self) if not _is_unsaid(getattr(self, one.name))), None)


def _is_unsaid(value: Any) -> bool:
    return value is None or value is False or (isinstance(value, Mapping) and not value)


PLAIN = TableReading()
"""Of a table that says everything itself."""


def names_of(
    found: Iterable[str], reading: TableReading, *, source: str, told: bool = True
) -> dict[str, str]:
    """What the columns of a table of ranks are called from now on (`owkg.files.columns.final_names`)."""
    return final_names(found, reading.columns, KNOWN, source=source, told=told)


def wide_sides(columns: Iterable[str]) -> list[str]:
    """The sides whose ranks stand in one row; none of a table that has a row for each side."""
    there = set(columns)
    if there & {"side", "rank", "optimistic", "pessimistic"}:
        return []
    ranks = ("rank", "optimistic", "pessimistic")
    return [side for side in SIDES if there & {f"{side}_{name}" for name in ranks}]


def formed(
    table: pl.DataFrame, reading: TableReading, *, source: str, place: Place
) -> tuple[pl.DataFrame, Place]:
    """A table with one row for each ranking task, and with optimistic and pessimistic ranks.

    Args:
        table: with the columns of `names_of`.
        reading: what is said of it.
        source: what messages call the table.
        place: what they call a row (from 0).

    Returns:
        The table, not yet validated, and what messages call its rows.

    Raises:
        ValueError: naming the table or the row.
    """
    found = table.columns
    if sides := wide_sides(found):
        table, place = _long(table, sides, source), _repeated(place, len(table))
    table = _ranked(table, reading, found, source=source, place=place)
    if reading.candidates is not None:
        if "candidates" in table.columns:
            raise ValueError(
                f"{source}: `candidates` must be an option or the column candidates, got it twice: drop "
                "the option or the column."
            )
        table = table.with_columns(_candidates(reading.candidates, table, sides))
    return table, place


def _candidates(given: Any, table: pl.DataFrame, sides: list[str]) -> pl.Series:
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
    """A row for each side: all heads, then all tails."""
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


def _repeated(place: Place, rows: int) -> Place:
    return lambda row: place(row % rows)


def _ranked(
    table: pl.DataFrame, reading: TableReading, found: Sequence[str], *, source: str, place: Place
) -> pl.DataFrame:
    """The table with its column rank as the optimistic and the pessimistic rank, if that is asked for."""
    if not (reading.untied or reading.realistic):
        if "rank" in table.columns and not {*TRIPLE, "optimistic", "pessimistic"} & {*table.columns}:
            raise ValueError(f"{source}: {TIES_UNKNOWN}.")
        return table
    if "rank" not in table.columns:
        if {"optimistic", "pessimistic"} <= {*table.columns}:
            name = "untied" if reading.untied else "realistic"
            raise ArgumentError(name, f"has no effect on {source}, which has both ranks of each task.")
        raise ValueError(
            f"{source}: no column rank; columns found: {listed(found)}; `columns` says which it is, as "
            "rank=NAME, or head_rank=NAME,tail_rank=NAME."
        )
    tied = [name for name in ("optimistic", "pessimistic") if name in table.columns]
    if tied:
        raise ValueError(
            f"{source}: a column rank beside {' and '.join(tied)}: the ranks are not free of ties."
        )
    rank = table["rank"]
    if reading.untied:
        _refuse_halves(rank, place)
        ranks = whole_column(rank, 1, source=source, place=place)
        return table.drop("rank").with_columns(optimistic=ranks, pessimistic=ranks)
    doubled = _doubled(rank, place)
    halves = whole_column(doubled, 2, source=source, place=place)
    return table.drop("rank").with_columns(
        optimistic=halves // 2, pessimistic=(halves + 1) // 2, averaged=pl.lit(value=True)
    )


def _numbers(rank: pl.Series) -> pl.Series:
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
            f"{place(row)}: rank must be a whole number of at least 1, got {rank[row]!r}: half ranks are "
            "means of ties, which `realistic` takes."
        )


def _doubled(rank: pl.Series, place: Place) -> pl.Series:
    """Twice the ranks, where these are numbers that are whole or halfway between."""
    if not (rank.dtype.is_numeric() or rank.dtype == pl.String):
        return rank
    numbers = _numbers(rank)
    whole = ((2 * numbers) % 1 == 0) & numbers.is_between(1, 2.0**52)
    good = (numbers.is_finite() & whole).fill_null(value=False)
    if not good.all():
        row = int((~good).arg_true()[0])
        raise ValueError(
            f"{place(row)}: rank must be whole or half, from 1 to 2^52, such as 2.5, got {rank[row]!r}."
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
    """The table of ranks that do not say of which triples they are, with triples and sides.

    Those of a graph are the triples of a split, in their order; else each rank is of a query of its own.
    Warns (UserWarning) of either.

    Args:
        table: of `formed`.
        reading: what is said of it.
        graph: whose triples they may be.
        sides: of `wide_sides` of the table that it was made of.
        source: what messages call the table.

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
        each = "two queries of its own, for head and tail" if count > 1 else "a query of its own, for a tail"
        each = each.replace("tail", sides[0]) if count == len(sides) == 1 else each
        one = "rank" if count == 1 else "row"
        _warn(f"{source} does not say what was asked: each {one} counts as {each}")
        number = pl.Series(np.tile(np.arange(rows, dtype=np.int64), count))
        return table.with_columns(head=number, relation=pl.lit(0, pl.Int64), tail=number)
    if not sides:
        raise ValueError(
            f"{source}: `columns` must say of which side ranks without head, relation and tail are, as "
            "head_rank=NAME or tail_rank=NAME."
        )
    split = "test" if reading.split is None else reading.split
    if split not in graph.splits:
        raise ArgumentError("split", f"must be one of {', '.join(graph.splits)}, got {split!r}.")
    triples = graph.splits[split]
    if len(triples) != rows:
        raise ValueError(
            f"{source}: has {rows:,} rows without triples, and the split {split} {len(triples):,} triples: "
            "they must be the triples of the split, in their order; owkg ranks convert --split NAME takes "
            "another split."
        )
    _warn(f"{source}: row i is taken for triple i of the split {split}")
    return table.with_columns(**_labelled(np.tile(triples, (count, 1)), graph))


def _labelled(triples: np.ndarray, graph: KnowledgeGraph) -> dict[str, pl.Series]:
    of = (graph.entities, graph.relations, graph.entities)
    return {
        name: pl.Series(labels, dtype=pl.String).gather(triples[:, i])
        for i, (name, labels) in enumerate(zip(TRIPLE, of, strict=True))
    }


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=3)


def by_labels(
    table: pl.DataFrame, graph: KnowledgeGraph | None, *, source: str, place: Place
) -> pl.DataFrame:
    """The table with labels in the place of ids of the graph.

    Raises:
        ValueError: naming the row of the first id that the graph does not have; `ids`, if there is no graph.
    """
    if graph is None:
        raise ArgumentError("ids", "needs a graph (`kg`) whose ids they are.")
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
    """Warns (UserWarning) where whole numbers may be labels of a graph, or ids, which are others."""
    if not table["head"].dtype.is_integer():
        return
    labels = pl.Series(graph.entities, dtype=pl.String)
    if (labels == pl.Series(range(len(labels)), dtype=pl.Int64).cast(pl.String)).all():
        return
    if labels.str.contains(r"^\d+$").all():
        _warn(f"{source}: whole numbers are taken for labels of the graph; `ids` takes them for ids")
    else:
        _warn(f"{source}: whole numbers are taken for ids of the graph; `ids` says that they are")
