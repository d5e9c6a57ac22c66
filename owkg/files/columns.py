"""What the columns of a table are called: names of the user's own, and the index that pandas writes."""

import re
import warnings
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl

from owkg.errors import ArgumentError

# What pandas calls an index without a name in Parquet files.
_INDEX = re.compile(r"__index_level_\d+__")
# Of a triple, if nothing else is called head, relation or tail.
_SHORT = {"h": "head", "r": "relation", "t": "tail"}


def listed(names: Iterable[str]) -> str:
    """Names of columns for a message; one with spaces at its ends or what cannot be seen, in quotes."""
    shown = [name if name == name.strip() and name.isprintable() and name else repr(name) for name in names]
    return ", ".join(shown) or "none"


def columns_checked(columns: object, known: Collection[str]) -> dict[str, str]:
    """The columns of a file by what owkg calls them.

    Args:
        columns: a mapping of names of owkg to those of the file; None: the file has those of owkg.
        known: the names of owkg.

    Raises:
        ValueError: naming `columns`, if it is no mapping of texts, has a name that is not known, or one
            column under two names.
    """
    if columns is None:
        return {}
    if not isinstance(columns, Mapping) or not all(
        isinstance(t, str) for one in columns.items() for t in one
    ):
        raise ArgumentError(
            "columns", f"must be a mapping of names of owkg to names of the file, got {columns!r}."
        )
    for name, column in columns.items():
        if name not in known:
            raise ArgumentError(
                "columns", f"must give columns to {', '.join(known)}, got {name!r} (for {column!r})."
            )
    given = list(columns.values())
    if twice := [column for column in given if given.count(column) > 1]:
        raise ArgumentError("columns", f"must give each column one name, got two for {twice[0]!r}.")
    return {str(name): str(column) for name, column in columns.items()}


def final_names(
    found: Iterable[str],
    columns: Mapping[str, str],
    known: Collection[str],
    *,
    source: str,
    told: bool = True,
) -> dict[str, str]:
    """What the columns of a table are called from now on, without the index that pandas wrote.

    A name that is known and is not there is found in another spelling too: in capital letters, with spaces at
    its ends, or h, r and t of a triple. A table beside others may lack one of `columns` if it has a column of
    the name that owkg knows. A warning (UserWarning) says so of either.

    Args:
        found: the columns of the table.
        columns: of `columns_checked`.
        known: the names of owkg.
        source: what messages call the table.
        told: whether to warn.

    Raises:
        ValueError: naming the table and the column, if one of `columns` is not there, nor the name that it
            stands for, or if two would have one name.
    """
    there = [name for name in found if not _INDEX.fullmatch(name)]
    own = {column: name for name, column in columns.items() if column in there}
    lacking = {name: column for name, column in columns.items() if column not in there}
    if clash := [name for name in there if name in own.values() and name not in own]:
        raise ValueError(
            f"{source}: `columns` gives the name {clash[0]} to {columns[clash[0]]!r}, and the table has a "
            f"column {clash[0]} as well."
        )
    spelled = _spelled([name for name in there if name not in own], {*there, *own.values()}, known)
    final = {name: ({**own, **spelled}).get(name, name) for name in there}
    if none := [column for name, column in lacking.items() if name not in final.values()]:
        listed = ", ".join(map(repr, there)) or "none"
        raise ValueError(f"{source}: `columns` names {none[0]!r}; columns found: {listed}.")
    if lacking and told:
        said = ", ".join(f"{column!r} for {name}" for name, column in lacking.items())
        warnings.warn(
            f"{source}: has no column {said}, and is read by the names of owkg there.", stacklevel=2
        )
    if spelled and told:
        said = ", ".join(f"{column!r} for {name}" for column, name in spelled.items())
        warnings.warn(
            f"{source}: columns are taken by their names in another spelling: {said}.", stacklevel=2
        )
    return final


def _spelled(others: list[str], taken: Collection[str], known: Collection[str]) -> dict[str, str]:
    """The columns that are called like a known name that is not taken, but for its spelling."""
    plain = {name: re.sub(r"[\s-]+", "_", name.strip().lower()) for name in others if name not in known}
    found: dict[str, str] = {}
    short = not {"head", "tail"} & set(taken) and {"h", "r", "t"} <= set(plain.values())
    for column, name in plain.items():
        name = _SHORT.get(name, name) if short else name
        if name in known and name not in taken and name not in found.values():
            found[column] = name
    return found


def named(
    table: pl.DataFrame, columns: Mapping[str, str], known: Collection[str], *, source: str
) -> pl.DataFrame:
    """The table with the columns that `final_names` finds.

    Raises:
        ValueError: as `final_names`.
    """
    names = final_names(table.columns, columns, known, source=source)
    table = table if len(names) == table.width else table.select(names)
    changed = {old: new for old, new in names.items() if old != new}
    return table.rename(changed) if changed else table


def frame_of(table: object, name: str = "table") -> pl.DataFrame:
    """A table of Python as a polars frame: one of polars or pandas, a mapping of columns, or a list of rows.

    Args:
        table: what is given.
        name: the argument that it comes from.

    Raises:
        ValueError: naming the argument, if it is none of these, or its columns differ in length.
    """
    if isinstance(table, pl.DataFrame):
        return table
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    columns: Any = None
    if is_pandas(table):
        columns = _of_pandas(table, name)
    elif isinstance(table, Mapping):
        columns = {str(label): _plain(column) for label, column in table.items()}
    elif isinstance(table, list) and table and all(isinstance(row, Mapping) for row in table):
        columns = table
    if columns is None:
        must = "must be a DataFrame of polars or pandas, a mapping of columns or a list of rows"
        raise ArgumentError(name, f"{must}, got {type(table).__name__}.")
    try:
        return pl.DataFrame(columns, strict=True, infer_schema_length=None)
    except (pl.exceptions.PolarsError, ValueError, TypeError, OverflowError) as error:
        raise ArgumentError(name, f"must be columns of one length and type each ({error}).") from None


def is_table(table: object) -> bool:
    """Whether `frame_of` takes it for a table; a mapping is one if it holds columns."""
    rows = isinstance(table, list) and bool(table) and all(isinstance(row, Mapping) for row in table)
    return isinstance(table, pl.DataFrame | pl.LazyFrame | Mapping) or is_pandas(table) or rows


def is_pandas(table: object) -> bool:
    """Whether it is a DataFrame of pandas, which is not imported."""
    kind = type(table)
    return kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "DataFrame"


def _of_pandas(table: Any, name: str) -> dict[str, Any]:
    """The columns of a frame of pandas, with the levels of its index that have names."""
    index = table.index
    levels = [(str(one), index.get_level_values(i)) for i, one in enumerate(index.names) if one is not None]
    each = [*levels, *((str(label), series) for label, series in table.items())]
    columns = {label: _plain(column) for label, column in each}
    if len(columns) < len(each):
        raise ArgumentError(name, "must have columns, and levels of the index, of different names.")
    return columns


def _plain(column: Any) -> Any:
    """A column as polars takes it: an array, or a list where it holds objects."""
    if type(column).__module__.partition(".")[0] == "pandas":
        kind = str(column.dtype)
        if kind.startswith(("Int", "UInt", "Float", "boolean", "string", "str", "object", "category")):
            missing = np.asarray(column.isna())
            values = column.astype(object).tolist()
            return [None if gone else value for gone, value in zip(missing, values, strict=True)]
        return column.to_numpy()
    if isinstance(column, str | bytes) or not (hasattr(column, "__len__") or isinstance(column, pl.Series)):
        return column  # one value for all rows
    if isinstance(column, pl.Series):
        return column
    if hasattr(column, "dtype") and getattr(column.dtype, "kind", "") in ("O", "U"):
        return column.tolist()
    return column if hasattr(column, "dtype") else list(column)
