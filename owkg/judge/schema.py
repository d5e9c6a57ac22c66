"""Columns of frames of queries and answers, and their TREC files."""

import gzip
from collections.abc import Sequence
from typing import IO, cast

import polars as pl

from owkg import checks
from owkg.checks import StrPath
from owkg.errors import ArgumentError
from owkg.files.storage import written_aside
from owkg.ir import POOLED
from owkg.kg.names import TOPIC, escaped

ASKED = ("query", "side", "entity", "relation")
"""Columns of a query: its text, the side asked for, and the known entity and relation."""

RUN = ("model", *ASKED, "answer", "score")
"""Columns of a run."""

QRELS = (*ASKED, "answer", "relevance")
"""Columns of judgements."""

_NUMBERS = {"score": pl.Float64, "relevance": pl.Int64}


def checked(name: str, frame: object, columns: Sequence[str]) -> pl.DataFrame:
    """Columns `columns` of `frame`, checked: text, scores that are not NaN, whole relevances from -1.

    Raises:
        ValueError: naming `name` and what is wrong, if `frame` is not a frame, lacks a column or an entry, or
            has an entry of the wrong type.
    """
    if not isinstance(frame, pl.DataFrame):
        raise ArgumentError(name, f"must be a polars DataFrame, got {type(frame).__name__}.")
    if missing := [column for column in columns if column not in frame.columns]:
        got = ", ".join(frame.columns) or "none"
        text = f"must have the columns {', '.join(columns)}; {missing[0]} is missing, got {got}."
        raise ArgumentError(name, text)
    frame = frame.select(columns)
    for column in frame:
        for row in column.is_null().arg_true().head(1):
            raise ArgumentError(name, f"must have a {column.name} in every row, got none in row {row + 1}.")
    texts = [column for column in columns if column not in _NUMBERS]
    for text in texts:
        if frame[text].dtype not in (pl.String, pl.Categorical, pl.Enum):
            raise ArgumentError(name, f"must hold each {text} as text, got {frame[text].dtype}.")
    frame = frame.with_columns(pl.col(text).cast(pl.String) for text in texts)
    if "side" in columns and len(bad := frame.filter(~pl.col("side").is_in(["head", "tail"]))):
        raise ArgumentError(name, f"must ask for the side head or tail, got {bad['side'][0]!r}.")
    for number in _NUMBERS.keys() & set(columns):
        frame = frame.with_columns(_numeric(name, frame[number]))
    return frame


def once(name: str, frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Frame in which no two rows are equal in all `columns`.

    Raises:
        ValueError: naming `name` and the first repeated row.
    """
    again = ~frame.select(pl.struct(columns).is_first_distinct()).to_series()
    if again.any():
        row = frame.filter(again).row(0, named=True)
        under = f" under {row['model']!r}" if "model" in columns else ""
        raise ArgumentError(
            name,
            f"must list each answer of a query once{under}, got {row['answer']!r} to {row['query']!r} twice.",
        )
    return frame


def write_fields(name: str, frame: pl.DataFrame, path: StrPath) -> None:
    """Writes columns as the lines of a TREC file, separated by spaces, or by tabs if a label has a space.

    Answers are escaped in the same way as entities of queries (`owkg.kg.names`), topics and documents are
    not. The column relation marks topics and is not written. The file is written whole or not at all; a name
    that ends in .gz is packed, and equal frames give equal bytes.

    Raises:
        ValueError: if `frame` has no rows, or a label cannot be written because it is empty, holds a tab or
            an end of line, or begins or ends with a space.
    """
    path = checks.path("path", path)
    if frame.is_empty():
        raise ArgumentError(name, "must have at least one row, got none.")
    plain = pl.col("relation") == TOPIC
    answer = pl.when(plain).then("answer").otherwise(escaped("answer"))
    frame = frame.with_columns(answer.alias("answer")).drop("relation")
    texts = frame.select(pl.col(pl.String))
    spaces = False
    for column in texts:
        values = column.unique(maintain_order=True)
        bad = values.filter(values.str.contains(r"[\t\n\r]|^ | $|^$|^\x{feff}"))
        if len(bad):
            raise ArgumentError(
                name,
                f"must have labels that are not empty, without tabs, ends of line, or spaces at "
                f"their ends, got the {column.name} {bad[0]!r}.",
            )
        spaces = spaces or bool(values.str.contains(r"\s").any())
    separator = "\t" if spaces else " "
    with written_aside(path) as aside, aside.open("wb") as file:
        if path.suffix == ".gz":
            # No name and no time in the packed file.
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                frame.write_csv(
                    cast(IO[bytes], packed), include_header=False, separator=separator, quote_style="never"
                )
        else:
            frame.write_csv(file, include_header=False, separator=separator, quote_style="never")


def _numeric(name: str, column: pl.Series) -> pl.Series:
    """Column of numbers, cast to its type; ArgumentError if it is of another."""
    kind = _NUMBERS[column.name]
    whole = kind == pl.Int64
    if not (column.dtype.is_integer() or (column.dtype.is_float() and not whole)):
        expected = "a whole number" if whole else "a number"
        raise ArgumentError(name, f"must hold each {column.name} as {expected}, got {column.dtype}.")
    column = column.cast(kind)
    if whole and (column < POOLED).any():
        raise ArgumentError(name, f"must have relevances of at least {POOLED}, got {column.min()}.")
    if not whole and column.is_nan().any():
        row = int(column.is_nan().arg_true()[0])
        raise ArgumentError(name, f"must have scores that are numbers, got NaN in row {row + 1}.")
    return column
