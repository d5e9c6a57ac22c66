"""Tables and lines on standard output; control characters in labels are escaped."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import rich.table

# Characters that a terminal may interpret as commands, or that change the direction of other characters,
# except line ends; written as part of a character class of a regular expression.
CONTROL = "\\x00-\\x09\\x0b-\\x1f\\x7f-\\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
# Bytes of a path that are not text become surrogates, which cannot be printed.
_STRANGE = re.compile(f"[{CONTROL}\ud800-\udfff]")
_LEAST = 24  # smallest width of the columns of names together, however many they are


def plain_text(text: object) -> str:
    """`text` with control characters spelled out, such as `\\x1b`; line ends stay."""
    return _STRANGE.sub(spelled, str(text))


def one_line(text: object) -> str:
    """`text` as returned by `plain_text`, with line ends spelled out as well."""
    return plain_text(text).replace("\n", "\\x0a")


def shown(value: float | None, digits: int = 4) -> str:
    """Number with about `digits` decimals, padded with zeros so that columns align; "-" for None."""
    if value is None:
        return "-"
    size = abs(value)
    if size < 1e-12:  # a rounding error
        value = size = 0.0
    if size >= 10_000:
        return f"{value:,.0f}"
    if size < 10.0**-digits and value:
        return f"{value:.2e}"
    return f"{value:,.{max(1, digits - len(str(int(size))) + 1)}f}"


def probability_range(low: float, high: float) -> str:
    """Range of probabilities as text; a rounded 0 or 1 becomes "<0.001" or ">0.999"."""
    ends = [">0.999" if p > 0.9995 else "<0.001" if p < 0.0005 else f"{p:.3f}" for p in (low, high)]
    return " to ".join(dict.fromkeys(ends))


def p_value(p: float, draws: int | None = None) -> str:
    """P-value with four decimals, or an upper bound if it is smaller.

    Args:
        p: p-value.
        draws: number B of draws of a randomisation test, whose smallest p-value 1 / (B + 1) is shown as
            "< 2 / (B + 1)".
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
    """Prints a table no wider than the terminal; the first columns hold names, the other columns numbers.

    Columns that do not fit follow in a further block, which repeats the names.

    Args:
        title: title above the table; an empty one is not printed.
        columns: headings, of one or several lines; underscores are shown as spaces unless `as_given` is
            true.
        rows: rows of cells.
        names: number of columns that hold names.
        as_given: whether headings are names that users chose, such as names of systems.
    """
    if title:
        heading(title)
    heads = [plain_text(name if as_given else name.replace("_", " ")) for name in columns]
    given = heads
    lines = max(head.count("\n") for head in heads) if heads else 0
    heads = ["\n" * (lines - head.count("\n")) + head for head in heads]
    cells = [[plain_text(cell) for cell in row] for row in rows]
    widths = [max(map(_width, column)) for column in zip(heads, *cells, strict=True)]
    room = console().width
    if _taken(widths) > room:  # Break long names first; only then split the columns of numbers.
        most = max(room // (2 + names), _LEAST // names)
        widths[:names] = [min(width, most) for width in widths[:names]]
    blocks = _blocks(widths, room, names)
    if len(cells) == 1 and len(blocks) > 1:  # one row reads better from top to bottom
        blocks, names = [[1]], 1
        heads = ["", ""]
        cells = [
            [head.strip("\n").replace("\n", " "), cell] for head, cell in zip(given, cells[0], strict=True)
        ]
        widths = [room, room]
    for block in blocks:
        table = new_table(show_header=any(heads))
        for head, width in zip(heads[:names], widths, strict=False):
            table.add_column(head, overflow="fold", max_width=width)
        for i in block:
            table.add_column(heads[i], justify="right", overflow="fold")
        for row in cells:
            table.add_row(*row[:names], *(row[i] for i in block))
        put(table)


def new_table(**options: Any) -> Any:
    """Empty table in the style of all tables of owkg."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE, **options)


def put(table: "rich.table.Table") -> None:
    """Prints a table; it may become wider than the window, but no digit is cut off."""
    wide = console(width=10_000)
    console(width=max(console().width, wide.measure(table).maximum)).print(table)


def heading(text: object) -> None:
    """Prints the title of a part of the output."""
    console().print(plain_text(text), style="bold")


def line(text: object, style: str = "") -> None:
    """Prints a line of text of any length without wrapping it."""
    console().print(plain_text(text), style=style, soft_wrap=True)


def console(**options: Any) -> Any:
    """Rich console on standard output without markup, highlights or emoji."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, **options)


def _blocks(widths: list[int], room: int, names: int) -> list[list[int]]:
    """Columns after the names, in blocks that fit next to the names; each block has at least one column."""
    found: list[list[int]] = [[]]
    for i in range(names, len(widths)):
        if found[-1] and _taken([widths[j] for j in (*range(names), *found[-1], i)]) > room:
            found.append([])
        found[-1].append(i)
    return found


def _taken(widths: list[int]) -> int:
    """Width of a table: each column has a space on either side, and one character separates columns."""
    return sum(widths) + 3 * len(widths) + 1


def _width(text: str) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, text.split("\n")))


def spelled(match: re.Match[str]) -> str:
    """Character as the escape of its number."""
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
