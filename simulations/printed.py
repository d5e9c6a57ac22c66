"""Every number that the five papers print, compared with the value that owkg computes.

A printed number is recomputed from the published data under OWKG_DATA, or from a formula alone. It is "equal"
if the computed value rounds to the printed digits, and "cut" if the paper cut the last digit instead.
Otherwise a note explains it: an erratum (docs/evidence/errata.md), or what would be needed to recompute it.

    python -m simulations.printed --out out
    python -m simulations.printed --paper zhou2022 --format json
"""

import json
import re
from collections.abc import Iterable
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import polars as pl
import typer

from owkg.cli.options import Format, OutputFormat
from owkg.cli.output import rows_of, written_together
from owkg.errors import ArgumentError
from owkg.files.storage import writable_folder
from owkg.terminal.tables import printed as print_table
from simulations.script import data_folder, run_script

PAPERS = ("yang2022", "hoyt2022", "berrendorf2020", "zhou2022", "probe2026")
VERDICTS = ("equal", "cut", "differs", "not recomputed")

# Meaning of the marks in a table: the statement in the row holds, or it does not.
_MARKS = str.maketrans("✓✗", "10")
_NUMBER = re.compile(r"([+-]?)(\d[\d,]*\.?\d*|\.\d+)(?:[eE]([+-]?\d+))?")


class Cell(NamedTuple):
    """One printed number.

    Attributes:
        place: place in the paper, such as "Table 3, head 1-N, Hits@1".
        printed: text as printed; the first number in it counts. The marks ✓ and ✗ are 1 and 0.
        ours: value that owkg computes, in the printed unit; None: it was not recomputed.
        note: erratum of a number that differs, such as "Z4", or why a number was not recomputed.
    """

    place: str
    printed: str
    ours: float | None
    note: str = ""


def verdict(cell: Cell) -> str:
    """Verdict on a printed number, one of `VERDICTS`: does our value have the printed digits?

    Raises:
        ValueError: if a number that differs, or was not recomputed, has no note.

    Examples:
        >>> verdict(Cell("Table 4", "-0.2308", -0.230769))
        'equal'
        >>> verdict(Cell("Table 3", "0.0256", 0.02567))
        'cut'
    """
    if cell.ours is None:
        found = "not recomputed"
    else:
        digits = Decimal(1).scaleb(_exponent(cell.printed))
        value, ours = _value(cell.printed), Decimal(repr(float(cell.ours)))
        # Because sums are in floating point, a value very close to the middle may round either way.
        near = ours + Decimal(1).scaleb(-12) * (1 if ours >= 0 else -1)
        rounded = {x.quantize(digits, how) for x in (ours, near) for how in (ROUND_HALF_UP, ROUND_HALF_EVEN)}
        cut = {x.quantize(digits, ROUND_DOWN) for x in (ours, near)}
        found = "equal" if value in rounded else "cut" if value in cut else "differs"
    if found in VERDICTS[2:] and not cell.note:
        text = f"must say why {cell.place}, {cell.printed!r}, is {found}: {cell.ours!r}."
        raise ArgumentError("note", text)
    return found


def _match(text: str) -> re.Match[str]:
    found = _NUMBER.search(text.translate(_MARKS))
    if found is None:
        raise ArgumentError("printed", f"must hold a number, got {text!r}.")
    return found


def _value(text: str) -> Decimal:
    sign, digits, exponent = _match(text).groups()
    return Decimal(f"{sign}{digits.replace(',', '')}e{exponent or 0}")


def _exponent(text: str) -> int:
    """Power of ten of the last printed digit."""
    _, digits, exponent = _match(text).groups()
    return int(exponent or 0) - len(digits.partition(".")[2])


def table_of(cells: Iterable[Cell]) -> pl.DataFrame:
    """Table with the columns place, printed, ours, verdict and note; a row for each cell."""
    rows = [(c.place, c.printed, c.ours, verdict(c), c.note) for c in cells]
    types = {"place": pl.String, "printed": pl.String, "ours": pl.Float64} | dict.fromkeys(
        ("verdict", "note"), pl.String
    )
    return pl.DataFrame(rows, schema=types, orient="row")


def counts_of(tables: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Number of cells with each verdict, by paper."""
    return pl.DataFrame(
        [
            {"paper": paper, "cells": len(table)} | {v: int((table["verdict"] == v).sum()) for v in VERDICTS}
            for paper, table in tables.items()
        ]
    )


def cells_of(paper: str, data: Path) -> list[Cell]:
    """Printed numbers of a paper, from the module `printed` of its folder."""
    return list(import_module(f"simulations.{paper}.printed").cells(data))


def main(
    paper: Annotated[
        list[str] | None,
        typer.Option(help=f"Paper to check, one of {', '.join(PAPERS)}; repeatable. Default: all."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for one CSV table for each paper.")] = None,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Compares every number that the five papers print with the value that owkg computes."""
    if unknown := set(paper or ()) - set(PAPERS):
        raise ArgumentError("paper", f"must be among {', '.join(PAPERS)}, got {min(unknown)!r}.")
    data = data_folder()
    if data is None:
        raise ValueError("OWKG_DATA is not set; it names the folder of the published data.")
    if out is not None:
        writable_folder(out)
    tables = {name: table_of(cells_of(name, data)) for name in paper or PAPERS}
    counts = counts_of(tables)
    if form is Format.JSON:
        cells = [{"paper": name} | row for name, table in tables.items() for row in rows_of(table)]
        print(json.dumps({"counts": rows_of(counts), "cells": cells}, indent=2))
    else:
        for name, table in tables.items():
            shown = [[_shown(value) for value in row] for row in table.iter_rows()]
            print_table(name, table.columns, shown)
        print_table(
            "Cells of each paper", counts.columns, [[str(v) for v in row] for row in counts.iter_rows()]
        )
    if out is not None:
        with written_together(out) as folder:
            for name, table in tables.items():
                table.write_csv(folder / f"printed_{name}.csv")


def _shown(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    run_script(main)
