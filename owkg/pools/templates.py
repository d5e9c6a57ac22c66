"""Templates of annotation sheets: wording of a query, and address at which an answer may be found."""

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
"""Templates by (relation, side that is asked for)."""

_PLACES = ("entity", "answer", "head", "tail", "relation")
_PLACE = re.compile(r"\{([^{}]*)\}")
_LINE = r"(?P<relation>[^\t]+)\t(?P<side>[^\t]+)\t(?P<template>[^\t]+)"
_BOTH = "both"
_KNOWN = {"tail": "head", "head": "tail"}  # side of the entity in a query for this side


def read_templates(path: StrPath, relations: Sequence[str]) -> dict[tuple[str, str], str]:
    """Templates from a file with lines of relation, side and template, between tabs.

    The side is the one that is asked for: head, tail, or both. The template must contain {entity}, the entity
    of the query, or {head} and {tail}; it may contain {answer}, the candidate, and {relation}. For example,
    `directed<TAB>tail<TAB>Which films were directed by {entity}?` asks for an answer, and
    `nationality<TAB>both<TAB>Is {head} of nationality {tail}?` asks whether a triple is true.

    Args:
        path: file of the templates.
        relations: relations of the graph.

    Returns:
        The template of each (relation, side) that has one.

    Raises:
        ValueError: naming file and line: if a line has another number of fields, a relation or side is
            unknown, a template has an unknown placeholder or lacks the entity of the query, or a relation and
            side already have a template.
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
    """Filled-in templates of candidates; null without a template.

    Args:
        relation: relation of each candidate, as named in the templates.
        shown: columns side, entity, relation, answer of each candidate, as people read them.
        templates: templates by relation and side.
    """
    if not templates:
        return pl.Series("question", [None] * len(shown), dtype=pl.String)
    rows = zip(relation, shown.iter_rows(named=True), strict=True)
    own = ((templates.get((name, row["side"])), row) for name, row in rows)
    texts = [None if template is None else _filled(template, row) for template, row in own]
    return pl.Series("question", texts, dtype=pl.String)


def addresses(shown: pl.DataFrame, template: str) -> pl.Series:
    """Address for each candidate, with labels quoted as in URLs (a space becomes %20).

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
    """Error message for a template; None if it is valid.

    Args:
        template: the text.
        known: side of the entity in the query, which the template must contain. Default None: any placeholder
            is enough.
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
        return f"the template must hold {{entity}} or {{{known}}}, the entity of the query, got {template!r}."
    return None


def _filled(template: str, row: Mapping[str, str]) -> str:
    """Template of one candidate with its labels filled in."""
    values = {**row, _KNOWN[row["side"]]: row["entity"], row["side"]: row["answer"]}
    return _PLACE.sub(lambda place: values[place[1]], template)
