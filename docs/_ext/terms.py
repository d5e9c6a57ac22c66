"""Terms of the glossary, linked where a page first uses them."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from docutils import nodes

from _ext.places import DOCS, GLOSSARY, LESSONS, written

HOMOGRAPHS = frozenset(
    {"chunk", "conflict", "design", "gap", "key", "look", "prefix", "run", "seed", "template"}
)
"""Terms that are everyday words as well: a page links them by hand where it means the term."""
_CLOSED = (nodes.title, nodes.reference, nodes.literal, nodes.FixedTextElement, nodes.math, nodes.raw)
_CLOSED += (nodes.Invisible, nodes.caption, nodes.rubric, nodes.field_name)


def anchor(term: str) -> str:
    """The anchor of a term on the page of the glossary."""
    return f"term-{nodes.make_id(term)}"


def _rows(doctree: nodes.document) -> Iterator[tuple[nodes.row, list[str]]]:
    """Each row of the glossary with its terms."""
    for row in doctree.findall(nodes.row):
        if isinstance(row.parent, nodes.tbody):
            terms = [term.strip() for term in row[0].astext().split(",")]
            yield row, [term for term in terms if term]


def collect(app: Any, doctree: nodes.document) -> None:
    """Gives each row of the glossary an anchor, and keeps its terms for the other pages."""
    if app.env.docname != GLOSSARY:
        return
    app.env.owkg_terms = {}
    for row, terms in _rows(doctree):
        for term in terms:
            row["ids"].append(anchor(term))
            app.env.owkg_terms[term] = anchor(term)


@cache
def pattern(terms: tuple[str, ...]) -> re.Pattern[str]:
    """Any of the terms as a whole word, one or several of it, in text; longer terms first."""
    words = [re.escape(term).replace(r"\ ", r"\s+") for term in sorted(terms, key=len, reverse=True)]
    return re.compile(rf"(?<![\w-])(?<!owkg )({'|'.join(words)})(?:s|es)?(?![\w-])", re.IGNORECASE)


def _open(text: nodes.Node) -> bool:
    """Whether text is prose, and no heading, code or link."""
    node = text.parent
    while node is not None:
        if isinstance(node, _CLOSED) or "toctree-wrapper" in node.get("classes", ()):
            return False
        node = node.parent
    return True


def link(app: Any, doctree: nodes.document, page: str) -> None:
    """Links each term at its first use in the prose of a page or lesson that people write."""
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in written()}
    if page == GLOSSARY or page == "project/changelog" or not (page in pages or page.startswith(LESSONS)):
        return
    left = {" ".join(term.lower().split()): to for term, to in app.env.owkg_terms.items()}
    for term in HOMOGRAPHS:
        left.pop(term, None)
    base, any_term = app.builder.get_relative_uri(page, GLOSSARY), pattern(tuple(left))
    for text in list(doctree.findall(nodes.Text)):
        if left and _open(text):
            _link_in(text, any_term, left, base)


def _link_in(text: nodes.Text, any_term: re.Pattern[str], left: dict[str, str], base: str) -> None:
    """Replaces a text by itself with links; takes the linked terms out of `left`."""
    words, parts, at = str(text), [], 0
    for use in any_term.finditer(words):
        term = " ".join(use[1].lower().split())
        if term not in left:
            continue
        to = left.pop(term)
        parts += [nodes.Text(words[at : use.start()])] if use.start() > at else []
        refers = nodes.reference("", use[0], internal=True, refuri=f"{base}#{to}", classes=["term"])
        parts.append(refers)
        at = use.end()
    if parts:
        parts += [nodes.Text(words[at:])] if at < len(words) else []
        text.parent.replace(text, parts)
