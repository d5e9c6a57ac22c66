"""What systems are called: by names that are given, by what their files say, or else by their files."""

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
"""What to do where files name their systems alike."""


def is_dictionary(given: object) -> bool:
    """Whether it is one run or one set of judgements, {query: {answer: number}}."""
    if not isinstance(given, Mapping) or not given:
        return False
    rows = list(given.values())
    if not all(isinstance(row, Mapping) for row in rows):
        return False
    first = next((value for row in rows for value in row.values()), None)
    return first is None or isinstance(first, Number)


def sources_of(argument: str, given: object, *, what: str) -> list[tuple[str | None, Any]]:
    """The name and the source of each system, where a name is given; paths are checked.

    Args:
        argument: the name of `given`.
        given: sources by name; one dictionary {query: {answer: score}}, which is called run; or paths.
        what: they must be, for messages.

    Raises:
        ValueError: naming the argument, if it is neither, or a name is empty or no text.
    """
    if is_dictionary(given):
        return [("run", given)]
    if isinstance(given, str | PathLike | pl.DataFrame) or not isinstance(given, Iterable):
        raise ArgumentError(
            argument, f"must be {what}, got {given if isinstance(given, str) else type(given).__name__!r}."
        )
    by_name: Mapping[Any, Any] = given if isinstance(given, Mapping) else {}
    if bad := [name for name in by_name if not isinstance(name, str) or not name]:
        raise ArgumentError(argument, f"must be called by text that is not empty, got {bad[0]!r}.")
    pairs = by_name.items() if isinstance(given, Mapping) else [(None, one) for one in given]
    return [
        (name, checks.path(argument, one) if isinstance(one, str | PathLike) else one) for name, one in pairs
    ]


def names_of(
    files: Sequence[Path], own: Sequence[Sequence[str]], fixed: Sequence[bool] | None = None
) -> list[dict[str, str]]:
    """The name of each system of some files, by the name that its file gives it.

    Where several files have the same name for a system, as the runs of one tool have one tag, those systems
    are called by their files, and a warning says so.

    Args:
        files: where the systems are.
        own: the names in each.
        fixed: whether the names of a file stay; None: of none.

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
            f"several files have a system called {alike}: these are named by their files, {shown}. {HINT}.",
            UserWarning,
            stacklevel=3,
        )
    return called


def only_name(where: object, names: Sequence[str], called: str) -> dict[str, str]:
    """The one name in a source as the name that is given; ValueError if it holds several systems."""
    if len(names) > 1:
        shown = ", ".join(repr(name) for name in names[:3])
        raise ValueError(
            f"{where}: holds {len(names):,} systems ({shown}), which one name, {called!r}, cannot rename."
        )
    return dict.fromkeys(names, called)


def renamed(frame: pl.DataFrame, column: str, names: Mapping[str, str]) -> pl.DataFrame:
    """The frame with the entries of `column` called otherwise."""
    if all(old == new for old, new in names.items()):
        return frame
    old, new = list(names), list(names.values())
    return frame.with_columns(pl.col(column).cast(pl.String).replace_strict(old, new, return_dtype=pl.String))
