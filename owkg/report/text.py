"""The report as Markdown and LaTeX, and as a file."""

import re
from functools import partial
from os import PathLike

from owkg import checks
from owkg.auditing.result import Audit
from owkg.errors import ArgumentError
from owkg.files.storage import written_aside
from owkg.report import tables, words
from owkg.report.answer import answers
from owkg.report.page import html
from owkg.terminal.latex import latex_escaped as escaped
from owkg.terminal.latex import tabular
from owkg.terminal.markdown import marked
from owkg.terminal.markdown import table as markdown_table


def markdown(audit: Audit) -> str:
    """Markdown with the answer, the leaderboard and the pairs, and the assumptions of each table.

    Args:
        audit: audit to report.

    Returns:
        Text that ends with a new line; names are escaped.
    """
    ready = words.prepared(audit)
    found = [f"{marked(sentence)}\n" for sentence in answers(ready)]
    for table, caption in _tables(ready):
        found += [f"{marked(caption)}\n", markdown_table(table.columns, table.rows, table.names), ""]
    return "\n".join(found)


def latex(audit: Audit) -> str:
    r"""LaTeX tables of the leaderboard and the pairs, with their assumptions as captions.

    Args:
        audit: audit to report.

    Returns:
        Text that ends with a new line; the document needs `\usepackage{booktabs}`; names are escaped.
    """
    found = [r"% needs \usepackage{booktabs}"]
    for table, caption in _tables(words.prepared(audit)):
        rows = [
            [*map(_in_latex, row[: table.names]), *(_minus(_in_latex(cell)) for cell in row[table.names :])]
            for row in table.rows
        ]
        found += [
            r"\begin{table}",
            r"\centering\scriptsize\setlength{\tabcolsep}{3pt}",
            rf"\caption{{{_in_latex(caption)}}}",
            tabular([_in_latex(head) for head in table.columns], rows, table.names),
            r"\end{table}",
        ]
    return "\n".join(found) + "\n"


ENDINGS = (".html", ".md", ".tex")
"""Endings of the files that `write_report` writes."""


def write_report(audit: Audit, path: str | PathLike[str], *, title: str = "") -> None:
    """File with a report: HTML, Markdown or LaTeX by the ending .html, .md or .tex.

    Args:
        audit: audit to report.
        path: path of the file, which is written whole or not at all.
        title: text above the heading of an HTML page, such as the name of the data set; Markdown and LaTeX
            have none.

    Raises:
        ValueError: if the path has another ending, or the packages for HTML reports are not installed.
        OSError: if the file cannot be written.
    """
    place = checks.path("path", path)
    forms = dict(zip(ENDINGS, (partial(html, title=title), markdown, latex), strict=True))
    if place.suffix not in forms:
        raise ArgumentError("path", f"must end with {', '.join(forms)}, got {str(place)!r}.")
    text = forms[place.suffix](audit)
    with written_aside(place) as aside:
        aside.write_text(text, encoding="utf-8")


def _tables(ready: Audit) -> list[tuple[tables.ReportTable, str]]:
    """Tables of a prepared audit with their captions, which state the assumptions."""
    rests = words.rests(ready)
    found = [("models", tables.models_table(ready)), ("pairs", tables.pairs_table(ready))]
    if len(ready.judged):
        found.append(("judged", tables.judged_table(ready)))
    if len(ready.plans):
        found.append(("plans", tables.plans_table(ready)))
    captioned = [(table, f"{table.caption}. {rests[name]}") for name, table in found]
    rows = [list(pair) for pair in words.protocol(ready.assumptions)]
    notes = " ".join(ready.assumptions.get("notes", []))
    protocol = tables.ReportTable("Protocol", ["what", "is"], rows, 2, [None] * len(rows))
    return [*captioned, (protocol, f"Protocol. {notes}".rstrip())]


def _in_latex(text: object) -> str:
    return escaped(text).replace(words.NONE, "--")


def _minus(cell: str) -> str:
    """Numbers with their signs in math mode."""
    return re.sub(r"(?<![\w-])([<>-])(?=\s?[\d.])", r"$\1$", cell)
