"""Tables of LaTeX, in the style of booktabs."""

from collections.abc import Sequence

from owkg.terminal.tables import plain_text

_ESCAPED = {
    **{c: "\\" + c for c in "_&%#${}"},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "[": "{[}",
    "]": "{]}",
    "\n": " ",
    "\r": " ",
}


def latex_escaped(text: object) -> str:
    """Text with special characters of LaTeX escaped; so are brackets, which line breaks take as arguments."""
    return "".join(_ESCAPED.get(c, c) for c in plain_text(text))


def small_caps(name: object) -> str:
    r"""Name of a system in `\textsc`, as papers print it."""
    return rf"\textsc{{{latex_escaped(name)}}}"


def three_digits(value: float) -> str:
    """Number with three decimals, or fewer if several digits precede them."""
    value = 0.0 if abs(value) < 5e-4 else value  # no minus before zero
    return f"{value:,.{max(1, 4 - len(str(int(abs(value)))))}f}"


def tabular(head: Sequence[str], rows: Sequence[Sequence[str]], names: int = 1) -> str:
    """Booktabs table whose first `names` columns hold text; the other columns hold numbers.

    Args:
        head: heading of each column, in LaTeX.
        rows: rows of cells, in LaTeX.
        names: number of text columns.
    """
    begin = rf"\begin{{tabular}}{{{'l' * names}{'r' * (len(head) - names)}}}"
    lines = [" & ".join(cells) + r" \\" for cells in (head, *rows)]
    return "\n".join(
        [begin, r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule", r"\end{tabular}"]
    )
