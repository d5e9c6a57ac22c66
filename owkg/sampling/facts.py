"""Closed worlds from single files: distinct facts in an order that does not depend on the lines."""

import warnings
from os import PathLike
from pathlib import Path

import numpy as np
import polars as pl
from jaxtyping import Int32

from owkg.checks import StrPath
from owkg.errors import ArgumentError
from owkg.files.lines import (
    CLASS,
    first_line,
    first_row,
    label_columns,
    line_error,
    read_blocks,
    read_lines,
    split_labels,
)
from owkg.files.parquet import read_parquet
from owkg.files.storage import text_source
from owkg.kg import KnowledgeGraph
from owkg.kg.columns import Layout, columns_of, layout_named
from owkg.kg.signs import check_header, header_columns, note_order
from owkg.kg.triples import COLUMNS


def read_facts(path: StrPath, *, columns: str | None = None) -> KnowledgeGraph:
    """Closed world from a file of facts, which are taken as all that is true.

    Args:
        path: file with lines of head, relation, tail, separated by tabs (in `.csv` by commas or semicolons),
            without a header, possibly with .gz; or a `.parquet` file with these columns of text.
        columns: order of the columns, such as "head,tail,relation"; or their names in a header line, such as
            "head=subject,relation=predicate,tail=object", in which case other columns are left out. Default:
            head, relation, tail without a header.

    Returns:
        Graph with one split, "facts", whose ids follow the labels (by code point) and whose facts are sorted
        and distinct. A warning counts lines that repeat an earlier one.

    Raises:
        ValueError: beginning with the file and the line, if a line is malformed, blank or not UTF-8; or if
            there is no fact.
        OSError: if the file cannot be opened.
    """
    if not isinstance(path, str | PathLike):
        raise ArgumentError("path", f"must be the path of a file, got {path!r}.")
    path = Path(path)
    named = layout_named(columns, option="columns", names=())
    if path.suffix == ".parquet" and columns is not None:
        raise ArgumentError("columns", f"has no effect on {path.name}, whose columns have names.")
    frame = _parquet(path) if path.suffix == ".parquet" else _text(path, named)
    entities = pl.concat([frame[column].unique() for column in ("head", "tail")]).unique().sort()
    relations = frame["relation"].unique().sort()
    kinds = {column: pl.Enum(relations if column == "relation" else entities) for column in COLUMNS}
    ids = [frame[column].cast(kind).to_physical().to_numpy() for column, kind in kinds.items()]
    if path.suffix != ".parquet" and named.header is None and header_columns(frame.row(0)):
        lines = {"facts": np.stack(ids, axis=1).astype(np.int32)}
        check_header(
            KnowledgeGraph(tuple(entities), tuple(relations), lines), {"facts": (path, 1)}, option="columns"
        )
    facts = _sorted(ids, len(entities), len(relations))
    if repeated := len(frame) - len(facts):
        message = f"{path}: {repeated} of {len(frame)} lines repeat an earlier fact; each fact counts once."
        warnings.warn(message, UserWarning, stacklevel=2)
    graph = KnowledgeGraph(tuple(entities), tuple(relations), {"facts": facts})
    note_order(graph, path, option="columns")
    return graph


def sorted_facts(
    triples: Int32[np.ndarray, "triples 3"], num_entities: int, num_relations: int
) -> Int32[np.ndarray, "facts 3"]:
    """Distinct triples, sorted by head, relation and tail.

    Examples:
        >>> sorted_facts(np.array([[1, 0, 0], [0, 0, 1], [1, 0, 0]], np.int32), 2, 1).tolist()
        [[0, 0, 1], [1, 0, 0]]
    """
    return _sorted(list(triples.T), num_entities, num_relations)


def _sorted(columns: list[np.ndarray], num_entities: int, num_relations: int) -> np.ndarray:
    """Distinct facts, sorted, from columns of ids."""
    if num_entities**2 * num_relations >= 2**63:
        sizes = f"{num_entities} entities and {num_relations} relations"
        raise ValueError(f"entities^2 * relations must be below 2^63, got {sizes}.")
    head, relation, tail = columns
    # One number for each fact sorts several times faster than three.
    key = np.sort((head.astype(np.int64) * num_relations + relation) * num_entities + tail)
    key = key[np.diff(key, prepend=-1) > 0]
    facts = np.empty((len(key), 3), np.int32)
    facts[:, 2] = key % num_entities
    key //= num_entities
    facts[:, 1] = key % num_relations
    facts[:, 0] = key // num_relations
    return facts


def _text(path: Path, named: Layout) -> pl.DataFrame:
    """Facts of a text file."""
    if named.name is not None or path.name.removesuffix(".gz").endswith(".csv"):
        return _columns(path, named)
    schema: dict[str, pl.DataType] = {column: pl.String() for column in COLUMNS}
    source = text_source(path)
    try:
        frame = pl.read_csv(
            source, schema=schema, has_header=False, separator="\t", quote_char=None, glob=False
        )
    except pl.exceptions.PolarsError:
        frame = pl.DataFrame(schema=schema)
    if frame.is_empty() or sum(frame.null_count().row(0)):
        # This is slower, but names the line that is wrong; empty lines at the end are allowed.
        lines = read_lines(path)
        columns_of(path, lines[0], named, option="columns")  # a header line of other columns is an error
        frame = split_labels(path, lines)
    return frame


def _columns(path: Path, named: Layout) -> pl.DataFrame:
    """Facts of a file whose columns have their own order or names."""
    line, after = first_line(read_blocks(path))
    columns = columns_of(path, line, named, option="columns")
    if CLASS in columns.names:
        raise line_error(
            path, 1, f"must be head, relation and tail of a fact, got a class too, {line[:80]!r}."
        )
    blocks = read_blocks(path) if named.header is None else after
    if blocks is None:
        raise line_error(path, 1, "must be followed by lines, got none.")
    if left := [name for name in columns.names if name not in columns.wanted]:
        warnings.warn(
            f"{path}: {len(left)} columns other than head, relation, tail are left out.", stacklevel=3
        )
    return pl.concat([label_columns(path, block, columns) for block in blocks])


def _parquet(path: Path) -> pl.DataFrame:
    """Facts of a Parquet file."""
    frame = read_parquet(path)
    texts = (pl.String, pl.Categorical, pl.Enum)
    if sorted(frame.columns) != sorted(COLUMNS) or not all(isinstance(t, texts) for t in frame.dtypes):
        got = ", ".join(f"{name} ({kind})" for name, kind in frame.schema.items())
        raise ValueError(f"{path}: must have the columns {', '.join(COLUMNS)}, of text, got {got}.")
    frame = frame.select(pl.col(COLUMNS).cast(pl.String))
    row = first_row(frame.select(pl.any_horizontal(pl.all().is_null() | (pl.all() == ""))).to_series())
    if frame.is_empty() or row is not None:
        got = "none" if row is None else f"{frame.row(row)} in row {row + 1}"
        raise ValueError(f"{path}: must hold facts of head, relation and tail, none empty, got {got}.")
    return frame
