"""Columns of files of labels, by a named order, a header line, or the file itself."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from owkg.errors import ArgumentError
from owkg.files.lines import CLASS, COLUMNS, Columns, line_error
from owkg.kg.classes import is_class
from owkg.kg.layouts import LAYOUTS
from owkg.kg.signs import header_message, named_columns

# Name of the column of classes in a header.
_LABEL = "label"
ORDERS = "an order of columns, such as head,tail,relation or head,relation,tail,time"
HEADERS = "the columns of a header line, such as head=subject,relation=predicate,tail=object"
_SHOWN = 80


class Layout(NamedTuple):
    """Layout of a folder, as named by the user.

    Attributes:
        name: one of `LAYOUTS`. None: found from the files.
        order: columns of labelled files in order; columns other than head, relation, tail and class are left
            out. None: not named.
        header: names in the header line by the contents of the columns. None: there is no header.
    """

    name: str | None = None
    order: tuple[str, ...] | None = None
    header: Mapping[str, str] | None = None


def layout_named(text: object, *, option: str = "layout", names: tuple[str, ...] = LAYOUTS) -> Layout:
    """Layout that a text names: one of `names`, an order of columns, or the columns of a header line.

    Raises:
        ValueError: naming `option`, if the text names none of these.
    """
    if text is None:
        return Layout()
    if isinstance(text, str):
        if text in names:
            return Layout(text)
        parts = [part.strip() for part in text.split(",")]
        order = tuple(CLASS if part == _LABEL else part for part in parts)
        if set(COLUMNS) <= set(order) and len(set(order)) == len(order) and all(map(str.isidentifier, order)):
            return Layout("labelled", order=order)
        pairs = [part.partition("=") for part in parts]
        header = {what.strip(): name.strip() for what, _, name in pairs}
        named = all(sign and name.strip() for _, sign, name in pairs) and len(header) == len(pairs)
        distinct = len(set(header.values())) == len(header)
        if named and distinct and set(COLUMNS) <= header.keys() <= {*COLUMNS, _LABEL}:
            return Layout("labelled", header=header)
    listed = f"one of {', '.join(names)}, " if names else ""
    raise ArgumentError(option, f"must be {listed}{ORDERS}, or {HEADERS}, got {text!r}.")


def separated(path: Path, line: str, *, spaces: bool = False) -> Columns:
    """Columns head, relation, tail of a file, with the separator that its name and first line show.

    A .csv file is separated by comma or semicolon, whichever makes more fields, and may have quoted fields.
    Other files are separated by tabs, or by spaces if `spaces` allows them and the line has no tab.
    """
    if path.name.removesuffix(".gz").endswith(".csv"):
        return max(
            (Columns(separator=mark, quoted=True) for mark in (",", ";")),
            key=lambda columns: len(_fields(columns, line)),
        )
    return Columns(separator=" " if spaces and "\t" not in line else "\t")


def columns_of(
    path: Path, line: str, layout: Layout, *, spaces: bool = False, option: str = "layout"
) -> Columns:
    """Columns of a file of labels.

    A fourth column holds classes if its first field means true or false, unless four columns are named.

    Args:
        path: path of the file.
        line: first line of the file.
        layout: layout that the user named.
        spaces: whether spaces may separate columns, as for `separated`.
        option: argument that names columns, for messages.

    Raises:
        ValueError: naming the file and line 1, if the header line lacks a column, or no layout is named and
            the line looks like a header of columns other than head, relation and tail.
    """
    plain = separated(path, line, spaces=spaces)
    fields = _fields(plain, line)
    if layout.header is not None:
        return plain._replace(names=_named(path, line, fields, layout.header))
    names = layout.order or COLUMNS
    if len(fields) == len(COLUMNS) + 1 and len(names) == len(COLUMNS) and is_class(fields[-1]):
        names = (*names, CLASS)
    elif layout.name is None and len(fields) > len(names) and (found := named_columns(fields)):
        raise line_error(path, 1, header_message(fields, found, option))
    return plain._replace(names=names)


def _fields(columns: Columns, line: str) -> list[str]:
    """Fields of a line; empty if the line is malformed."""
    try:
        return columns.fields(line)
    except ValueError:
        return []


def _named(path: Path, line: str, fields: list[str], header: Mapping[str, str]) -> tuple[str, ...]:
    """Contents of the columns, from the header line and the names that the user gave."""
    found = [re.sub(r"^\s*#\s*", "", field).strip() for field in fields]
    for name in header.values():
        if (count := found.count(name) or fields.count(name)) != 1:
            got = f"{line[:_SHOWN]!r}, which has it {count} times" if count else f"{line[:_SHOWN]!r}"
            raise line_error(path, 1, f"must be a header line with the column {name!r}, got {got}.")
    wanted = {name: CLASS if what == _LABEL else what for what, name in header.items()}
    return tuple(
        wanted.get(name) or wanted.get(field) or f"column {at}"
        for at, (name, field) in enumerate(zip(found, fields, strict=True))
    )
