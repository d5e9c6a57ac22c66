"""Tables that users give: text or Parquet."""

from collections.abc import Callable
from pathlib import Path

import polars as pl

from owkg.files.delimited import read_text_table
from owkg.files.parquet import read_parquet


def placed_table(path: Path) -> tuple[pl.DataFrame, Callable[[int], str]]:
    """A table of text or Parquet, and where row i (from 0) stands in it.

    Raises:
        ValueError: naming the file, if it is no table.
        OSError: if it cannot be opened.
    """
    if path.suffix.lower() == ".parquet":
        return read_parquet(path), lambda row: f"{path}, row {row + 1}"
    return read_text_table(path)
