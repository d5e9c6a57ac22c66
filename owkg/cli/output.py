"""Output of commands: JSON for programs, a table for people."""

import json
import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from owkg.cli.options import Format
from owkg.terminal.tables import line, new_table, plain, put


def number(value: Any) -> float | None:
    """A plain float, or None where there is no finite number (JSON has no NaN)."""
    value = float(value)
    return value if math.isfinite(value) else None


def show(
    title: str, setting: dict[str, Any], results: Sequence[dict[str, Any]], form: Format, **beside: Any
) -> None:
    """Prints one result as a JSON object, several as a list under `results`; or one table of all.

    Args:
        title: of the table.
        setting: what all results share; repeated in each JSON object, said once above the table.
        results: one dictionary a metric, all with the same keys, `metric` first; may be empty.
        form: JSON or table.
        **beside: what else a JSON object says, once.
    """
    if form is Format.JSON:
        rows = [{"metric": result["metric"]} | setting | result for result in results]
        print(json.dumps((rows[0] if len(rows) == 1 else {"results": rows}) | beside, indent=2))
        return
    table = new_table()
    table.add_column("")
    for result in results:
        table.add_column(plain(result["metric"]), justify="right")
    for key in [key for result in results[:1] for key in result if key != "metric"]:
        table.add_row(key.replace("_", " "), *(plain(_readable(result[key])) for result in results))
    line(title, "bold")
    line(", ".join(f"{key.replace('_', ' ')} {_readable(value)}" for key, value in setting.items()), "dim")
    if results:
        put(table)


@contextmanager
def written_together(folder: Path) -> Iterator[Path]:
    """Yields an empty folder to fill; its files then come to stand in `folder`, all of them or none.

    They replace files of the same names; what else is in `folder` stays. Each is named on standard error.
    """
    import secrets

    aside = folder / f".{secrets.token_hex(4)}.new"
    aside.mkdir(parents=True)
    try:
        yield aside
        # Nothing is written any more: a full disk cannot end this halfway.
        for path in sorted(aside.iterdir()):
            path.replace(folder / path.name)
            print(f"wrote {folder / path.name}", file=sys.stderr)
    except OSError as error:
        if error.filename is not None and str(aside) in str(error.filename):
            raise OSError(f"{folder}: cannot be written: {error.strerror or error}.") from None
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _readable(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def save_table(table: Any, path: Path) -> Path:
    """Writes a polars frame as CSV and prints its path."""
    from owkg.files.storage import written_aside

    with written_aside(path) as aside:
        table.write_csv(aside)
    print(f"wrote {path}")
    return path


def rows_of(table: Any) -> list[dict[str, Any]]:
    """Rows without what JSON has no word for."""
    import polars.selectors as cs

    return table.with_columns(cs.float().fill_nan(None)).to_dicts()
