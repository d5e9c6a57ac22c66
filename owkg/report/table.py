"""Tables as files."""

from pathlib import Path

import polars as pl

from owkg.files import written_aside


def save_table(table: pl.DataFrame, path: Path) -> Path:
    """Writes a CSV file and prints its path."""
    with written_aside(path) as aside:
        table.write_csv(aside)
    print(f"wrote {path}")
    return path
