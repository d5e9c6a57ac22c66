"""Column names of a table: names chosen by the user, and the index that pandas writes."""

import re
import warnings
from collections.abc import Collection, Iterable, Mapping
from os import PathLike
from typing import Any

import numpy as np
import polars as pl

from owkg.errors import ArgumentError

# Names that pandas gives to an unnamed index in Parquet files.
_INDEX = re.compile(r"__index_level_\d+__")
# Short column names of a triple, used if no other column is head, relation or tail.
_SHORT = {"h": "head", "r": "relation", "t": "tail"}


def listed(names: Iterable[str]) -> str:
    """Column names for a message; a name with outer spaces or invisible characters is quoted."""
    shown = [name if name == name.strip() and name.isprintable() and name else repr(name) for name in names]
    return ", ".join(shown) or "none"


def columns_checked(columns: object, known: Collection[str]) -> dict[str, str]:
    """Column names of a file by the names that owkg uses for them.

    Args:
        columns: mapping from owkg's names to the file's names. None: the file uses owkg's names.
        known: owkg's names.

    Raises:
        ValueError: naming `columns`, if it is not a mapping of texts, has an unknown name, or gives two names
            to one column.
    """
    if columns is None:
        return {}
    if not isinstance(columns, Mapping) or not all(
        isinstance(t, str) for one in columns.items() for t in one
    ):
        raise ArgumentError(
            "columns", f"must be a mapping from names of owkg to names of the file, got {columns!r}."
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
    """New name of each column of a table, without the index that pandas wrote.

    A known name that is missing is also found in another spelling: in capital letters, with outer spaces, or
    as h, r and t of a triple. A table that is read together with others may lack one of `columns` if it has a
    column with the name that owkg uses. In both cases owkg warns (UserWarning).

    Args:
        found: columns of the table.
        columns: result of `columns_checked`.
        known: owkg's names.
        source: name of the table in messages.
        told: whether to warn. Default True.

    Raises:
        ValueError: naming the table and the column, if the table has neither one of `columns` nor the name
            that it replaces, or if two columns would have one name.
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
            f"{source}: has no column {said}; owkg uses the columns with its own names instead.", stacklevel=2
        )
    if spelled and told:
        said = ", ".join(f"{column!r} for {name}" for column, name in spelled.items())
        warnings.warn(
            f"{source}: owkg matched columns with another spelling of their names: {said}.", stacklevel=2
        )
    return final


def _spelled(others: list[str], taken: Collection[str], known: Collection[str]) -> dict[str, str]:
    """Columns whose names are other spellings of known names that are still free."""
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
    """Table with the columns that `final_names` finds.

    Raises:
        ValueError: as `final_names`.
    """
    names = final_names(table.columns, columns, known, source=source)
    table = table if len(names) == table.width else table.select(names)
    changed = {old: new for old, new in names.items() if old != new}
    return table.rename(changed) if changed else table


def frame_of(table: object, name: str = "table") -> pl.DataFrame:
    """Polars frame of a Python table: a polars or pandas DataFrame, a mapping of columns, or a list of rows.

    Named levels of a pandas index become columns; unnamed levels are left out.

    Args:
        table: the table.
        name: argument that holds it, for messages. Default "table".

    Raises:
        ValueError: naming the argument, if it is none of these types, its columns differ in length, or a text
            contains a surrogate.
    """
    if isinstance(table, pl.DataFrame):
        return table
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    columns: Any = None
    if is_pandas(table):
        columns = _of_pandas(table, name)
    elif isinstance(table, Mapping):
        if is_named_tables(table):
            names = ", ".join(map(repr, list(table)[:3]))
            raise ArgumentError(name, f"must be one table, got a table or path by each name: {names}.")
        columns = {str(label): _plain(column) for label, column in table.items()}
    elif isinstance(table, list) and table and all(isinstance(row, Mapping) for row in table):
        columns = table
    if columns is None:
        must = "must be a DataFrame of polars or pandas, a mapping of columns or a list of rows"
        raise ArgumentError(name, f"{must}, got {type(table).__name__}.")
    try:
        return pl.DataFrame(columns, strict=True, infer_schema_length=None)
    except UnicodeEncodeError as error:
        raise ArgumentError(name, f"must hold text that UTF-8 can write, got {error.object!r}.") from None
    except (pl.exceptions.PolarsError, ValueError, TypeError, OverflowError) as error:
        raise ArgumentError(name, f"must be columns of one length and type each ({error}).") from None


def is_table(table: object) -> bool:
    """Whether `frame_of` accepts it as a table; a mapping is a table if it holds columns."""
    rows = isinstance(table, list) and bool(table) and all(isinstance(row, Mapping) for row in table)
    return isinstance(table, pl.DataFrame | pl.LazyFrame | Mapping) or is_pandas(table) or rows


def is_named_tables(given: object) -> bool:
    """Whether it is a mapping from names to tables or paths; a mapping of columns is not."""
    if not isinstance(given, Mapping) or not given:
        return False
    values = list(given.values())
    if all(isinstance(one, str) for one in values):  # as columns, each would have one value for all rows
        return not {"head", "relation", "tail"} & set(given)
    return all(isinstance(one, str | PathLike) or is_table(one) or _is_own(one) for one in values)


def _is_own(one: object) -> bool:
    """Whether it is a table of owkg, a `RankTable` or `RankDataset`."""
    return type(one).__module__.partition(".")[0] == "owkg"


def is_pandas(table: object) -> bool:
    """Whether it is a pandas DataFrame; does not import pandas."""
    kind = type(table)
    return kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "DataFrame"


def _of_pandas(table: Any, name: str) -> dict[str, Any]:
    """Columns of a pandas frame, preceded by the named levels of its index."""
    columns = {str(label): _plain(series) for label, series in table.items()}
    if len(columns) < table.shape[1]:
        raise ArgumentError(name, "must have columns of different names.")
    levels: dict[str, Any] = {}
    for number, label in enumerate(table.index.names):
        if label is None:
            continue
        level = _plain(table.index.get_level_values(number).to_series())
        if str(label) in levels or (str(label) in columns and list(columns[str(label)]) != list(level)):
            raise ArgumentError(
                name, f"must have columns, and levels of the index, of different names, got {label!r} twice."
            )
        levels[str(label)] = level
    return levels | columns


def _plain(column: Any) -> Any:
    """Column in a form that polars accepts: an array, or a list if it holds objects."""
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
