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
    """Text as LaTeX prints it; a bracket after a line break would be taken for its argument."""
    return "".join(_ESCAPED.get(c, c) for c in plain_text(text))


def small_caps(name: object) -> str:
    r"""The name of a system as papers print it, in `\textsc`."""
    return rf"\textsc{{{latex_escaped(name)}}}"


def three_digits(value: float) -> str:
    """A number with three decimals, fewer where it has several digits before them."""
    value = 0.0 if abs(value) < 5e-4 else value  # no minus before zero
    return f"{value:,.{max(1, 4 - len(str(int(abs(value)))))}f}"


def tabular(head: Sequence[str], rows: Sequence[Sequence[str]], names: int = 1) -> str:
    """A booktabs table; its first columns, `names` of them, are of text, the others of numbers.

    Args:
        head: of each column, in LaTeX.
        rows: of cells, in LaTeX.
        names: number of columns of text.
    """
    begin = rf"\begin{{tabular}}{{{'l' * names}{'r' * (len(head) - names)}}}"
    lines = [" & ".join(cells) + r" \\" for cells in (head, *rows)]
    return "\n".join(
        [begin, r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule", r"\end{tabular}"]
    )
