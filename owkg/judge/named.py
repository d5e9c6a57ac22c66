"""Names of systems: given names, names in their files, or file names."""

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from owkg import checks
from owkg.errors import ArgumentError
from owkg.ranks.together import file_names

HINT = "--name (in Python: a dictionary of paths by name) gives each file a name of its own"
"""Advice for files that give several systems the same name."""


def is_dictionary(given: object) -> bool:
    """Whether an object is one run or one set of judgements, {query: {answer: number}}."""
    if not isinstance(given, Mapping) or not given:
        return False
    rows = list(given.values())
    if not all(isinstance(row, Mapping) for row in rows):
        return False
    first = next((value for row in rows for value in row.values()), None)
    return first is None or isinstance(first, Number)


def sources_of(argument: str, given: object, *, what: str) -> list[tuple[str | None, Any]]:
    """Pairs of name and source of each system; the name is None if none is given, and paths are checked.

    Args:
        argument: name of the argument `given`, for messages.
        given: sources by name; one dictionary {query: {answer: score}}, which is named run; or paths.
        what: description of valid sources, for messages.

    Raises:
        ValueError: naming the argument, if `given` is none of these, or a name is empty or not text.
    """
    if is_dictionary(given):
        return [("run", given)]
    if isinstance(given, str | PathLike | pl.DataFrame) or not isinstance(given, Iterable):
        raise ArgumentError(
            argument, f"must be {what}, got {given if isinstance(given, str) else type(given).__name__!r}."
        )
    by_name: Mapping[Any, Any] = given if isinstance(given, Mapping) else {}
    if bad := [name for name in by_name if not isinstance(name, str) or not name]:
        raise ArgumentError(argument, f"must have names that are text and not empty, got {bad[0]!r}.")
    pairs = by_name.items() if isinstance(given, Mapping) else [(None, one) for one in given]
    return [
        (name, checks.path(argument, one) if isinstance(one, str | PathLike) else one) for name, one in pairs
    ]


def names_of(
    files: Sequence[Path], own: Sequence[Sequence[str]], fixed: Sequence[bool] | None = None
) -> list[dict[str, str]]:
    """Names of the systems of some files, by the names in their files.

    If several files give a system the same name, as runs of one tool share a tag, these systems are named by
    their files, and a warning is issued.

    Args:
        files: paths of the files.
        own: names of the systems in each file.
        fixed: whether the names in each file are kept. Default: in none.

    Raises:
        ValueError: if a file is given twice.
    """
    fixed = [False] * len(files) if fixed is None else fixed
    counted = Counter(name for names in own for name in names)
    called: list[dict[str, str]] = []
    for path, by_file, names, stay in zip(files, file_names(files), own, fixed, strict=True):
        other = {name for name in names if counted[name] > 1} if not stay else set()
        one = len(names) == 1
        taken = by_file if by_file not in counted else str(path)
        called.append(
            {name: (taken if one else f"{taken}/{name}") if name in other else name for name in names}
        )
    moved = [new for names, stay in zip(called, fixed, strict=True) if not stay for new in names.values()]
    if twice := [name for name, count in Counter(moved).items() if count > 1]:
        raise ValueError(f"{twice[0]}: is given twice, so that its systems have the same name; {HINT}.")
    changed = [(old, new) for names in called for old, new in names.items() if old != new]
    if changed:
        alike = ", ".join(repr(name) for name in dict(changed))
        shown = ", ".join(new for _, new in changed[:5]) + (", ..." if len(changed) > 5 else "")
        warnings.warn(
            f"several files have a system named {alike}: these are named by their files, {shown}. {HINT}.",
            UserWarning,
            stacklevel=3,
        )
    return called


def only_name(where: object, names: Sequence[str], called: str) -> dict[str, str]:
    """Mapping of the only name in a source to a given name; ValueError if it holds several systems."""
    if len(names) > 1:
        shown = ", ".join(repr(name) for name in names[:3])
        raise ValueError(
            f"{where}: holds {len(names):,} systems ({shown}), which cannot all be named {called!r}."
        )
    return dict.fromkeys(names, called)


def renamed(frame: pl.DataFrame, column: str, names: Mapping[str, str]) -> pl.DataFrame:
    """Frame with the entries of `column` renamed."""
    if all(old == new for old, new in names.items()):
        return frame
    old, new = list(names), list(names.values())
    return frame.with_columns(pl.col(column).cast(pl.String).replace_strict(old, new, return_dtype=pl.String))
