"""Templates of annotation sheets: the words of a query, and the address at which an answer may be found."""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote

import polars as pl

from owkg import checks
from owkg.checks import StrPath
from owkg.errors import ArgumentError
from owkg.files.lines import first_row, line_error, read_lines, split_lines
from owkg.ranks.table import SIDES

Templates = Mapping[tuple[str, str], str]
"""A template by (relation, side that is asked for)."""

_PLACES = ("entity", "answer", "head", "tail", "relation")
_PLACE = re.compile(r"\{([^{}]*)\}")
_LINE = r"(?P<relation>[^\t]+)\t(?P<side>[^\t]+)\t(?P<template>[^\t]+)"
_BOTH = "both"
_KNOWN = {"tail": "head", "head": "tail"}  # what a query for this side knows


def read_templates(path: StrPath, relations: Sequence[str]) -> dict[tuple[str, str], str]:
    """Templates from a file: lines of relation, side and template, between tabs.

    The side is the one that is asked for, head or tail, or both. The template holds {entity}, which the query
    knows, or {head} and {tail}; it may hold {answer}, the candidate, and {relation}. So
    `directed<TAB>tail<TAB>Which films were directed by {entity}?` asks for an answer, and
    `nationality<TAB>both<TAB>Is {head} of nationality {tail}?` asks whether a triple is true.

    Args:
        path: of the file.
        relations: that there are.

    Returns:
        The template of each (relation, side) that has one.

    Raises:
        ValueError: naming file and line: if a line has another number of fields, a relation or side is
            unknown, a template holds an unknown placeholder or not what the query knows, or a relation and
            side have a template already.
        OSError: if the file cannot be opened.
    """
    path = checks.path("path", path)
    expected = "a relation, the side that is asked for and a template, separated by tabs"
    frame = split_lines(path, read_lines(path), _LINE, expected, separator="\t")
    strange = ~frame["relation"].is_in(pl.Series(relations, dtype=pl.String).implode())
    if (row := first_row(strange)) is not None:
        raise line_error(
            path, row + 1, f"the relation must be one of the graph, got {frame['relation'][row]!r}."
        )
    found: dict[tuple[str, str], str] = {}
    for line, (relation, side, template) in enumerate(frame.iter_rows(), start=1):
        if side not in (*SIDES, _BOTH):
            raise line_error(path, line, f"the side must be head, tail or both, got {side!r}.")
        for asked in SIDES if side == _BOTH else (side,):
            if wrong := _wrong(template, _KNOWN[asked]):
                raise line_error(path, line, wrong)
            if (relation, asked) in found:
                must = f"the relation {relation!r} must have one template for the side {asked}"
                raise line_error(path, line, f"{must}, got another.")
            found[relation, asked] = template
    return found


def sentences(relation: pl.Series, shown: pl.DataFrame, templates: Templates) -> pl.Series:
    """The templates of candidates filled in; null where there is none.

    Args:
        relation: of each candidate, as templates name it.
        shown: columns side, entity, relation, answer of each, as people read them.
        templates: by relation and side.
    """
    if not templates:
        return pl.Series("question", [None] * len(shown), dtype=pl.String)
    rows = zip(relation, shown.iter_rows(named=True), strict=True)
    own = ((templates.get((name, row["side"])), row) for name, row in rows)
    texts = [None if template is None else _filled(template, row) for template, row in own]
    return pl.Series("question", texts, dtype=pl.String)


def addresses(shown: pl.DataFrame, template: str) -> pl.Series:
    """An address for each candidate, labels spelled as addresses have them (a space is %20).

    Args:
        shown: columns side, entity, relation, answer.
        template: an address such as https://example.org/search?q={entity}, with the placeholders of
            `read_templates`; "" for none.

    Raises:
        ValueError: if it begins with neither http:// nor https://, or has no placeholder or an unknown one.
    """
    if template == "":
        return pl.Series("source", [None] * len(shown), dtype=pl.String)
    if not re.match("https?://", template):
        raise ArgumentError("source_template", f"must begin with http:// or https://, got {template!r}.")
    if wrong := _wrong(template):
        raise ArgumentError("source_template", wrong.removeprefix("the template "))
    spelled = shown.with_columns(
        pl.col(name).map_elements(lambda text: quote(text, safe=""), return_dtype=pl.String)
        for name in ("entity", "relation", "answer")
    )
    return pl.Series("source", [_filled(template, row) for row in spelled.iter_rows(named=True)])


def _wrong(template: str, known: str | None = None) -> str | None:
    """What is wrong with a template; None if nothing is.

    Args:
        template: the text.
        known: the side that the query knows, which the template must hold; None: any placeholder will do.
    """
    places = _PLACE.findall(template)
    for place in places:
        if place not in _PLACES:
            allowed = ", ".join(f"{{{name}}}" for name in _PLACES)
            return f"the template may hold {allowed}, got {{{place}}}."
    if known is None:
        return (
            None if places else f"the template must hold a placeholder such as {{entity}}, got {template!r}."
        )
    if not {"entity", known} & set(places):
        return f"the template must hold {{entity}} or {{{known}}}, which the query knows, got {template!r}."
    return None


def _filled(template: str, row: Mapping[str, str]) -> str:
    """The template of one candidate with its labels."""
    values = {**row, _KNOWN[row["side"]]: row["entity"], row["side"]: row["answer"]}
    return _PLACE.sub(lambda place: values[place[1]], template)
