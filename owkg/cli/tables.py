"""A table on standard output for people, as wide as its cells need."""

from collections.abc import Iterable, Sequence
from typing import Any


def printed(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Prints a table; the first column is of names, the others of numbers.

    Args:
        title: above it; nothing where empty.
        columns: names; underscores are shown as spaces.
        rows: of cells.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE)
    for i, name in enumerate(columns):
        table.add_column(name.replace("_", " "), justify="right" if i else "left")
    for row in rows:
        table.add_row(*map(str, row))
    console = Console(highlight=False, markup=False)
    if title:
        console.print(title, style="bold", soft_wrap=True)
    # Wider than the window rather than with digits cut off.
    wide = Console(width=10_000)
    width = max(console.width, wide.measure(table).maximum)
    Console(width=width, highlight=False, markup=False).print(table)
