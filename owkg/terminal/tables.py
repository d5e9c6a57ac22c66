"""Tables and lines on standard output; control characters in labels are escaped."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import rich.table

# Characters that a terminal may take for commands, or that turn the order of others, but for ends of line;
# as part of a class in a regular expression.
CONTROL = "\\x00-\\x09\\x0b-\\x1f\\x7f-\\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
# Bytes of a path that are no text stand as halves of characters, which nothing prints.
_STRANGE = re.compile(f"[{CONTROL}\ud800-\udfff]")
_LEAST = 24  # columns that the first one keeps, however long its names are


def plain_text(text: object) -> str:
    """`text` with its control characters spelled out, such as `\\x1b`; ends of line stay."""
    return _STRANGE.sub(spelled, str(text))


def one_line(text: object) -> str:
    """`text` as `plain_text` has it, its ends of line spelled out as well."""
    return plain_text(text).replace("\n", "\\x0a")


def shown(value: float | None, digits: int = 4) -> str:
    """A number of about `digits` decimals, of full length so that columns align; - for none."""
    if value is None:
        return "-"
    size = abs(value)
    if size < 1e-12:  # rounding
        value = size = 0.0
    if size >= 10_000:
        return f"{value:,.0f}"
    if size < 10.0**-digits and value:
        return f"{value:.2e}"
    return f"{value:,.{max(1, digits - len(str(int(size))) + 1)}f}"


def probability_range(low: float, high: float) -> str:
    """The smallest and the largest of some probabilities; none is said to be 0 or 1."""
    ends = [">0.999" if p > 0.9995 else "<0.001" if p < 0.0005 else f"{p:.3f}" for p in (low, high)]
    return " to ".join(dict.fromkeys(ends))


def p_value(p: float, draws: int | None = None) -> str:
    """A p-value with four decimals; of a smaller one, a bound.

    Args:
        p: the p-value.
        draws: B of a randomisation test, whose p-values are not below 1 / (B + 1): those are "< 2 / (B + 1)".
    """
    if draws is not None and p <= (1 + 1e-9) / (draws + 1):
        return f"< {2 / (draws + 1):.1g}"
    return f"{p:.4f}" if p >= 1e-4 else "< 0.0001"


def printed(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    names: int = 1,
    *,
    as_given: bool = False,
) -> None:
    """Prints a table no wider than the terminal; the first columns are of names, the others of numbers.

    Columns that do not fit beside each other follow in a block of their own, the names repeated.

    Args:
        title: above it; nothing where empty.
        columns: their heads; underscores are shown as spaces, unless they are `as_given`.
        rows: of cells.
        names: number of columns of names.
        as_given: whether heads are names that people gave, such as those of systems.
    """
    if title:
        console().print(plain_text(title), style="bold")
    heads = [plain_text(name if as_given else name.replace("_", " ")) for name in columns]
    cells = [[plain_text(cell) for cell in row] for row in rows]
    widths = [max(map(_width, column)) for column in zip(heads, *cells, strict=True)]
    room = console().width
    if _taken(widths) > room:  # Long names are broken before numbers are put apart.
        most = max(room // (2 + names), _LEAST // names)
        widths[:names] = [min(width, most) for width in widths[:names]]
    for block in _blocks(widths, room, names):
        table = new_table()
        for head, width in zip(heads[:names], widths, strict=False):
            table.add_column(head, overflow="fold", max_width=width)
        for i in block:
            table.add_column(heads[i], justify="right", overflow="fold")
        for row in cells:
            table.add_row(*row[:names], *(row[i] for i in block))
        put(table)


def new_table(**options: Any) -> Any:
    """An empty table in the one style that there is."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE, **options)


def put(table: "rich.table.Table") -> None:
    """Prints a table, wider than the window rather than with digits cut off."""
    wide = console(width=10_000)
    console(width=max(console().width, wide.measure(table).maximum)).print(table)


def line(text: object, style: str = "") -> None:
    """Prints a line of text as it is, however long; the window may break it."""
    console().print(plain_text(text), style=style, soft_wrap=True)


def console(**options: Any) -> Any:
    """Standard output, on which text is what it is: no markup, no highlights, no emoji."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, **options)


def _blocks(widths: list[int], room: int, names: int) -> list[list[int]]:
    """The columns after the names, cut into as many as fit beside them each time, at least one."""
    found: list[list[int]] = [[]]
    for i in range(names, len(widths)):
        if found[-1] and _taken([widths[j] for j in (*range(names), *found[-1], i)]) > room:
            found.append([])
        found[-1].append(i)
    return found


def _taken(widths: list[int]) -> int:
    """The width of a table: a space on either side of each column, one at the ends, one between."""
    return sum(widths) + 3 * len(widths) + 1


def _width(text: str) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, text.split("\n")))


def spelled(match: re.Match[str]) -> str:
    """A character by its number."""
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
