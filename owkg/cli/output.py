"""Output of commands for people, programs, spreadsheets and papers."""

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from owkg.cli.options import Format
from owkg.files.begun import folder_within, new_folder
from owkg.files.storage import naming_place, written_aside
from owkg.terminal.latex import latex_escaped, tabular
from owkg.terminal.markdown import marked
from owkg.terminal.markdown import table as markdown_table
from owkg.terminal.tables import line, one_line, plain_text, printed

if TYPE_CHECKING:
    import polars as pl


class Table(NamedTuple):
    """Table for people.

    Attributes:
        title: title above the table; an empty one is not printed.
        columns: headings of the columns.
        rows: rows of cells; for a LaTeX table, cells in LaTeX.
        names: number of columns, from the first, that hold names; the other columns hold numbers.
    """

    title: str
    columns: Sequence[str]
    rows: Iterable[Sequence[str]]
    names: int = 1


def show(
    form: str,
    payload: Mapping[str, object] | Sequence[object],
    tables: Iterable[Table] = (),
    lines: Iterable[object] = (),
    *,
    notes: Sequence[str] | None = None,
    frame: "pl.DataFrame | None" = None,
    ensure_ascii: bool = True,
) -> None:
    """Prints a result in one of the formats that commands share.

    Args:
        form: json, csv, latex or markdown; any other value prints tables for the terminal.
        payload: content of the JSON output; frames in it become lists of rows.
        tables: tables for people.
        lines: lines below the tables; in LaTeX and Markdown above them.
        notes: notes below the lines, and in the JSON object.
        frame: content of the CSV output.
        ensure_ascii: whether JSON escapes characters beyond ASCII.
    """
    if form == "json":
        if notes is not None and isinstance(payload, Mapping):
            payload = {**payload, "notes": notes}
        plain = ensure_ascii or not (getattr(sys.stdout, "encoding", None) or "").lower().startswith("utf")
        print(json.dumps(payload, indent=2, allow_nan=False, default=_simple, ensure_ascii=plain))
    elif form == "csv" and frame is not None:
        from owkg.files.cells import harmless_table

        print(harmless_table(frame).write_csv(), end="")
    elif form == "latex":
        for text in lines:
            print(f"% {one_line(text)}")
        for table in tables:
            if table.title:
                print(f"% {one_line(' '.join(table.title.split()))}")
            print(tabular([latex_escaped(name) for name in table.columns], list(table.rows), table.names))
    elif form == "markdown":
        for text in lines:
            print(plain_text(text))
        for table in tables:
            rows = markdown_table(table.columns, list(table.rows), table.names)
            print(f"\n{marked(table.title)}\n\n{rows}")
    else:
        for table in tables:
            printed(table.title, table.columns, table.rows, table.names)
        for text in (*lines, *(f"note: {note}" for note in notes or ())):
            line(text)


def table_of(title: str, frame: "pl.DataFrame", digits: str = ".4f") -> Table:
    """Table with the cells of a frame."""
    return Table(title, frame.columns, [[cell(value, digits) for value in row] for row in frame.iter_rows()])


def cell(value: object, digits: str = ".4f") -> str:
    """Value as text: "-" for None, real numbers in the format `digits`."""
    if value is None:
        return "-"
    return format(value, digits) if isinstance(value, float) else str(value)


def interval(value: float, low: float, high: float, digits: str = ".4f") -> str:
    """Value and its interval as text."""
    return f"{value:{digits}} [{low:{digits}}, {high:{digits}}]"


def number(value: Any) -> float | None:
    """Plain float, or None if the value is not finite, because JSON has no NaN."""
    value = float(value)
    return value if math.isfinite(value) else None


def show_metrics(
    title: str,
    setting: Mapping[str, object],
    results: Sequence[dict[str, Any]],
    form: str,
    lines: Iterable[object] = (),
    *,
    notes: Sequence[str] | None = None,
    **more: object,
) -> None:
    """Prints results as one table, or as JSON: one result as an object, several as a list under `results`.

    Args:
        title: title of the table.
        setting: settings that all results share; printed above the table, and in each JSON object.
        results: one dictionary for each metric, with equal keys, `metric` first; may be empty.
        form: JSON or table.
        lines: lines below the table.
        notes: notes below the lines, and in the JSON object.
        **more: further entries of the JSON object.
    """
    if form == Format.JSON:
        rows = [{"metric": result["metric"], **setting, **result} for result in results]
        show(form, (rows[0] if len(rows) == 1 else {"results": rows}) | more, notes=notes)
        return
    line(title, "bold")
    line(", ".join(f"{key.replace('_', ' ')} {_readable(value)}" for key, value in setting.items()), "dim")
    if results:
        keys = [key for key in results[0] if key != "metric"]
        rows = [[key.replace("_", " "), *(_readable(result[key]) for result in results)] for key in keys]
        printed("", ["", *(result["metric"] for result in results)], rows, as_given=True)
    show(form, {}, lines=lines, notes=notes)


@contextmanager
def written_together(folder: Path) -> Iterator[Path]:
    """Context that yields an empty folder, whose files are moved to `folder` at the end: all or none.

    They replace files of the same names; other files in `folder` stay. Standard error names each.
    """
    with new_folder(lambda: folder_within(folder)) as aside, naming_place(folder, aside):
        yield aside
        # All files are complete, so a full disk cannot stop the move halfway.
        for path in sorted(aside.iterdir()):
            path.replace(folder / path.name)
            wrote(folder / path.name)


def _readable(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else cell(value, ".6g")


def _simple(value: "Path | pl.DataFrame") -> object:
    """JSON value of a frame or a path."""
    return str(value) if isinstance(value, Path) else rows_of(value)


def wrote(path: Path, more: str = "") -> None:
    """Prints on standard error which file or folder was written."""
    print(f"wrote {one_line(path)}{more}", file=sys.stderr)


def save_table(table: "pl.DataFrame", path: Path) -> Path:
    """Writes a polars frame as CSV and prints its path."""
    write_frame(table, path)
    print(f"wrote {one_line(path)}")
    return path


def write_frame(table: "pl.DataFrame", path: Path) -> None:
    """Writes a polars frame as Parquet, or as CSV whose text is harmless to spreadsheets.

    An existing file is replaced only when the new one is complete.
    """
    with written_aside(path) as aside:
        table.write_parquet(aside) if path.suffix == ".parquet" else write_csv(table, aside)


def write_csv(table: "pl.DataFrame", path: Path) -> None:
    """Writes a table of results as CSV whose text is harmless to spreadsheets (`owkg.files.cells`)."""
    from owkg.files.cells import harmless_table

    harmless_table(table).write_csv(path)


def rows_of(table: "pl.DataFrame") -> list[dict[str, Any]]:
    """Rows of a frame, with None for numbers that JSON cannot hold."""
    import polars as pl
    import polars.selectors as cs

    return table.with_columns(pl.when(cs.float().is_finite()).then(cs.float())).to_dicts()
