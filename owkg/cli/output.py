"""Output of commands: for people, programs, spreadsheets, papers."""

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
    """A table for people.

    Attributes:
        title: above it; nothing where empty.
        columns: their names; the first is of names, the others of numbers.
        rows: of cells; for LaTeX written in it.
        names: number of columns of names.
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
    """Prints a result in a format that every command understands.

    Args:
        form: json, csv, latex, markdown, or else tables for the terminal.
        payload: what JSON says; frames in it are lists of their rows.
        tables: for people.
        lines: below the tables; for papers above them.
        notes: below the lines, and in the JSON object.
        frame: what CSV says.
        ensure_ascii: whether JSON spells letters beyond ASCII by their numbers.
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
    """A frame as a table."""
    return Table(title, frame.columns, [[cell(value, digits) for value in row] for row in frame.iter_rows()])


def cell(value: object, digits: str = ".4f") -> str:
    """A value as people read it: - for none, real numbers of so many digits."""
    if value is None:
        return "-"
    return format(value, digits) if isinstance(value, float) else str(value)


def interval(value: float, low: float, high: float, digits: str = ".4f") -> str:
    """A value and its interval."""
    return f"{value:{digits}} [{low:{digits}}, {high:{digits}}]"


def number(value: Any) -> float | None:
    """A plain float, or None where there is no finite number (JSON has no NaN)."""
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
    **beside: object,
) -> None:
    """Prints one result as a JSON object, several as a list under `results`; or one table of all.

    Args:
        title: of the table.
        setting: what all results share; repeated in each JSON object, said once above the table.
        results: one dictionary a metric, all with the same keys, `metric` first; may be empty.
        form: JSON or table.
        lines: below the table.
        notes: below the lines, and in the JSON object.
        **beside: what else a JSON object says, once.
    """
    if form == Format.JSON:
        rows = [{"metric": result["metric"], **setting, **result} for result in results]
        show(form, (rows[0] if len(rows) == 1 else {"results": rows}) | beside, notes=notes)
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
    """Yields an empty folder to fill; its files then come to stand in `folder`, all of them or none.

    They replace files of the same names; what else is in `folder` stays. Each is named on standard error.
    """
    with new_folder(lambda: folder_within(folder)) as aside, naming_place(folder, aside):
        yield aside
        # Nothing is written any more: a full disk cannot end this halfway.
        for path in sorted(aside.iterdir()):
            path.replace(folder / path.name)
            wrote(folder / path.name)


def _readable(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else cell(value, ".6g")


def _simple(value: "Path | pl.DataFrame") -> object:
    """What JSON says in the place of a frame or a path."""
    return str(value) if isinstance(value, Path) else rows_of(value)


def wrote(path: Path, more: str = "") -> None:
    """Says on standard error which file or folder was written."""
    print(f"wrote {one_line(path)}{more}", file=sys.stderr)


def save_table(table: "pl.DataFrame", path: Path) -> Path:
    """Writes a polars frame as CSV and prints its path."""
    write_frame(table, path)
    print(f"wrote {one_line(path)}")
    return path


def write_frame(table: "pl.DataFrame", path: Path) -> None:
    """Writes a polars frame as Parquet, or as CSV whose text is harmless to spreadsheets.

    A file that is there is replaced when all is written.
    """
    with written_aside(path) as aside:
        table.write_parquet(aside) if path.suffix == ".parquet" else write_csv(table, aside)


def write_csv(table: "pl.DataFrame", path: Path) -> None:
    """Writes a table of results as CSV whose text is harmless to spreadsheets (`owkg.files.cells`)."""
    from owkg.files.cells import harmless_table

    harmless_table(table).write_csv(path)


def rows_of(table: "pl.DataFrame") -> list[dict[str, Any]]:
    """Rows without what JSON has no word for."""
    import polars as pl
    import polars.selectors as cs

    return table.with_columns(pl.when(cs.float().is_finite()).then(cs.float())).to_dicts()
