"""Queries of a benchmark, as a file lists them."""

from os import PathLike
from pathlib import Path

import numpy as np
import polars as pl
from jaxtyping import Bool

from owkg.files.lines import first_row, line_error, read_lines, split_lines
from owkg.kg import KnowledgeGraph
from owkg.kg.triples import labelled

_QUERY = ("side", "entity", "relation")


def read_queries(path: str | PathLike[str], graph: KnowledgeGraph) -> pl.DataFrame:
    """Queries from a file such as the `queries.tsv` that `owkg sample` writes.

    Args:
        path: tab-separated table without quotes. The first line names the columns side ("head" or "tail", the
            side to answer), entity (the given entity) and relation; other columns are ignored.
        graph: graph with these labels.

    Returns:
        Columns side, entity, relation; each query once.

    Raises:
        ValueError: if a column is missing, a line is malformed, or a label is not in the graph; the message
            names file and line.
    """
    path = Path(path)
    lines = read_lines(path)
    names = lines[0].split("\t")
    if missing := [name for name in _QUERY if names.count(name) != 1]:
        must = f"must name the column {missing[0]} once, as queries.tsv of a benchmark does"
        raise line_error(path, 1, f"{must}, got {', '.join(names)[:80]!r}.")
    if len(lines) == 1:
        raise line_error(path, 1, "must be followed by queries, got none.")
    fields = (f"(?P<{name}>[^\t]+)" if name in _QUERY else "[^\t]*" for name in names)
    expected = f"{len(names)} columns, as the first line names"
    found = split_lines(path, lines[1:], "\t".join(fields), expected, separator="\t", first=2).select(_QUERY)
    allowed = {"side": ("head", "tail"), "entity": graph.entities, "relation": graph.relations}
    for name, values in allowed.items():
        strange = ~found[name].is_in(pl.Series(values, dtype=pl.String).implode())
        if (row := first_row(strange)) is not None:
            must = "head or tail" if name == "side" else "one of the graph"
            raise line_error(path, 2 + row, f"the {name} must be {must}, got {found[name][row]!r}.")
    return found.unique(maintain_order=True)


def is_asked(
    graph: KnowledgeGraph, triples: np.ndarray, side: str, queries: pl.DataFrame
) -> Bool[np.ndarray, "triples"]:
    """Whether the query that each triple answers on this side is among `queries`."""
    given = pl.struct(pl.col("head" if side == "tail" else "tail").alias("entity"), "relation")
    own = labelled(triples, graph.entities, graph.relations).select(given).to_series()
    asked = queries.filter(side=side).select(pl.struct("entity", "relation")).to_series()
    return own.is_in(asked.implode()).to_numpy()
