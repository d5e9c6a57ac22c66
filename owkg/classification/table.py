"""Table of scored triples with labels, the input of triple classification."""

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

import polars as pl

from owkg import checks
from owkg.files.columns import columns_checked, frame_of, listed, named
from owkg.files.delimited import read_text_table, separator
from owkg.files.parquet import read_parquet
from owkg.kg.classes import CLASSES
from owkg.kg.triples import COLUMNS
from owkg.ranks.files import path_checked, write_table

LABELS = ("positive", "negative", "unknown")
"""Labels of triples; a triple that is neither known to be true nor known to be false is unknown."""

# Spellings of labels in tables: for negative, NTN's files have -1 and scikit-learn's arrays 0.
_SPELLED = {text: LABELS[0] if true else LABELS[1] for text, true in CLASSES.items()} | {"unknown": "unknown"}
_WANTED = "label must be positive (1, true, yes), negative (0, -1, false, no) or unknown"
_NEEDED = (*COLUMNS, "label", "score")
_KNOWN = (*_NEEDED, "split", "model")


def checked_triples(
    table: Any, *, source: str = "triples", place: Callable[[int], str] | None = None
) -> pl.DataFrame:
    """Validated table of scored triples: text head, relation, tail, split and label, float64 score.

    Args:
        table: polars or pandas frame, or mapping of columns, with the columns head, relation, tail, label and
            score. It may have split (default "test") and further columns, which are kept. A label is
            positive, 1, true or yes; negative, 0, -1, false or no; or unknown. A larger score means a more
            plausible triple.
        source: name of the table in messages. Default "triples".
        place: function from a row number to its name in messages. None: "source, row i".

    Raises:
        ValueError: naming the row, if a column is missing, a value is null or not a label, a score is not a
            finite number, or a triple occurs twice in one split (and model, if there is such a column).
    """
    if not isinstance(table, pl.DataFrame):
        table = named(frame_of(table, source), {}, _KNOWN, source=source)
    if missing := [name for name in _NEEDED if name not in table.columns]:
        raise ValueError(
            f"{source}: a table of scored triples needs the columns {', '.join(missing)}; columns found: "
            f"{listed(table.columns)}; map them with `columns`, as head=subject."
        )
    where = place or (lambda row: f"{source}, row {row}")
    if "split" not in table.columns:
        table = table.with_columns(pl.lit("test").alias("split"))
    texts = [name for name in (*COLUMNS, "split", "model") if name in table.columns]
    label = table["label"]
    if label.dtype.is_float():
        label = label.cast(pl.Int64, strict=False).set(label != label.floor(), None)
    names = label.cast(pl.String).str.strip_chars().str.to_lowercase()
    found = table.with_columns(
        *(pl.col(name).cast(pl.String) for name in texts),
        names.replace_strict(_SPELLED, default=None, return_dtype=pl.String).alias("label"),
        _plain(table["score"]).cast(pl.Float64, strict=False),
    )
    for name in (*texts, "label"):
        _refuse(found[name].is_null(), table[name], where, _WANTED)
    good = found["score"].is_finite().fill_null(value=False)
    _refuse(~good, table["score"], where, "score must be a finite number")
    key = [name for name in ("model", "split", *COLUMNS) if name in found.columns]
    again = ~found.select(pl.struct(key)).to_series().is_first_distinct()
    if again.any():
        row = int(again.arg_max() or 0)
        triple = " ".join(found.select(COLUMNS).row(row))
        raise ValueError(f"{where(row)}: the triple {triple!r} is already in {found['split'][row]}.")
    if not found.height:
        raise ValueError(f"{source}: must have at least one triple, got none.")
    rest = [name for name in found.columns if name not in (*key, "label", "score")]
    return found.select(*key, "label", "score", *rest)


def _plain(column: pl.Series) -> pl.Series:
    """Column without spaces at the ends of texts."""
    return column.str.strip_chars() if column.dtype == pl.String else column


def _refuse(bad: pl.Series, given: pl.Series, where: Callable[[int], str], wanted: str) -> None:
    if bad.any():
        row = int(bad.arg_max() or 0)
        if given[row] is None:
            raise ValueError(f"{where(row)}: {given.name} is missing.")
        raise ValueError(f"{where(row)}: {wanted}, got {given[row]!r}.")


def read_triples(path: str | PathLike[str], *, columns: Mapping[str, str] | None = None) -> pl.DataFrame:
    """Validated table of scored triples from a .parquet, .csv, .tsv, .csv.gz or .tsv.gz file.

    Args:
        path: path of the file.
        columns: names of the file's columns by owkg's names, such as {"head": "subject"}. None: the file uses
            owkg's names.

    Raises:
        ValueError: naming the file and the line or row; see `checked_triples`.
        OSError: if the file cannot be opened.
    """
    path, own = path_checked(path), columns_checked(columns, _KNOWN)
    place = None
    if separator(path) is None:
        table = read_parquet(path)
    else:
        table, place = read_text_table(path)
    return checked_triples(named(table, own, _KNOWN, source=str(path)), source=str(path), place=place)


def write_triples(table: pl.DataFrame, path: str | PathLike[str]) -> None:
    """Writes a table of scored triples in the format of `read_triples`, completely or not at all."""
    write_table(checked_triples(table), checks.path("path", path))
