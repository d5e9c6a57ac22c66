"""Tables that users give: text or Parquet."""

from collections.abc import Callable
from pathlib import Path

import polars as pl

from owkg.files.delimited import read_text_table
from owkg.files.parquet import read_parquet


def placed_table(path: Path) -> tuple[pl.DataFrame, Callable[[int], str]]:
    """Table from a text or Parquet file, and a function that names the place of a row (from 0).

    Raises:
        ValueError: naming the file, if it is not a table.
        OSError: if it cannot be opened.
    """
    if path.suffix.lower() == ".parquet":
        return read_parquet(path), lambda row: f"{path}, row {row + 1}"
    return read_text_table(path)
