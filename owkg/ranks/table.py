"""The rank table: one row for each ranking task."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import polars as pl

from owkg.errors import ArgumentError
from owkg.files.columns import frame_of, listed, named

# The triple that is ranked, by label or by id.
TRIPLE = ("head", "relation", "tail")
RANKS = ("optimistic", "pessimistic", "candidates")
REQUIRED = (*TRIPLE, "side", *RANKS)
SIDES = ("head", "tail")
# That of relation prediction, (head, ?, tail): the candidates are relations.
RELATION = "relation"

# Least value of the columns of whole numbers; None: any whole number.
_LEAST = dict.fromkeys(RANKS, 1) | {"popularity": 0, "relation_popularity": 0, "seed": None}
_TEXT = ("side", "model", "category")
_FLAGS = ("filtered", "bounded", "averaged")
_INITIALS = {"h": "head", "t": "tail", "r": "relation"}
# What a rank table may have beside, and metrics are computed from.
OPTIONAL = (
    *("model", "seed", "weight", "popularity", "relation_popularity", "category"),
    *("filtered", "bounded", "averaged"),
)
# What of both sides may stand in one row, as head_rank and tail_rank.
_OF_SIDES = ("rank", "optimistic", "pessimistic", "candidates", "score")
WIDE = tuple(f"{side}_{name}" for side in SIDES for name in _OF_SIDES)
"""Columns of tables with one row a triple."""
KNOWN = (*REQUIRED, "rank", *OPTIONAL, "score", "half_link", *WIDE)
"""What `columns` may give a column to."""

TIES_UNKNOWN = (
    "ranks say nothing of ties: `untied` takes them as free of ties, `realistic` as means of the optimistic "
    "and the pessimistic rank"
)
"""What is said of ranks alone."""

# Up to here every whole number is a float64.
_EXACT = 2**53

# Where a row (from 0) stands, for messages.
_Place = Callable[[int], str]


@dataclass(frozen=True, eq=False)
class RankTable:
    """A validated rank table: one row for each ranking task, with the columns of `validated`.

    Made of a frame of polars or pandas, a mapping of columns or a list of rows, it is validated.

    What `owkg.rank` and `owkg.read_ranks` give. Functions that take a rank table take this, which they check
    no more, or a frame, which they check.

    Attributes:
        frame: the table.
        about: how it was made, such as the split and the splits that filtered; empty where nobody said.

    Examples:
        >>> row = {"head": "a", "relation": "r", "tail": "b", "side": "tail"}
        >>> table = RankTable.of(pl.DataFrame([row | {"optimistic": 1, "pessimistic": 1, "candidates": 9}]))
        >>> len(table), table.frame["candidates"].item()
        (1, 9)
    """

    frame: pl.DataFrame
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", validated(self.frame))

    @classmethod
    def trusted(cls, frame: pl.DataFrame, about: Mapping[str, Any] | None = None) -> "RankTable":
        """The rank table of a frame that is known to be valid, unchecked."""
        table = object.__new__(cls)
        object.__setattr__(table, "frame", frame)
        object.__setattr__(table, "about", about or {})
        return table

    @classmethod
    def of(cls, table: object, *, source: str = "table") -> "RankTable":
        """The rank table of a frame, validated (messages call it `source`); what is one already, as it is."""
        return table if isinstance(table, cls) else cls.trusted(validated(table, source=source))

    @classmethod
    def of_entities(cls, table: object, *, source: str = "table") -> "RankTable":
        """As `of`; ValueError if some task predicts a relation, which is asked for with two entities."""
        found = cls.of(table, source=source)
        if (found.frame["side"] == RELATION).any():
            raise ValueError(f'{source}: side must be "head" or "tail" here, got "{RELATION}".')
        return found

    @property
    def averaged(self) -> bool:
        """Whether only the mean of the optimistic and the pessimistic rank is known of some row."""
        return "averaged" in self.frame.columns and bool(self.frame["averaged"].any())

    def write(self, path: str | PathLike[str]) -> None:
        """Writes a Parquet, CSV or TSV file, as `owkg.ranks.write_ranks`."""
        from owkg.ranks.files import write_ranks

        write_ranks(self, path, dict(self.about) or None)

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        return f"RankTable of {len(self):,} ranking tasks\n{self.frame}"

    def _repr_html_(self) -> str:
        return self.frame._repr_html_()


def validated(table: object, *, source: str = "table") -> pl.DataFrame:
    """The rank table `table`, every entry checked, its columns in their canonical types.

    A row is one ranking task: one side of one triple.

    | column | type | meaning |
    |---|---|---|
    | head, relation, tail | String or Int64 | the triple, by labels or by ids (at least 0) |
    | side | String | "head", "tail" or "relation": what of the triple is predicted |
    | optimistic, pessimistic | Int64 | 1-based ranks with ties counted for and against the target |
    | candidates | Int64 | how many were ranked, the target among them |
    | filtered | Boolean | optional; whether the other answers to its query left the candidates |
    | bounded | Boolean | optional; whether the ranks are bounds of one that is not known, and not of ties |
    | averaged | Boolean | optional; whether only the mean of both ranks is known, the realistic rank |
    | model | String | optional |
    | seed | Int64 | optional |
    | weight | Float64 | optional; finite, at least 0, some above 0 |
    | popularity | Int64 | optional; training triples in which the answer appears |
    | relation_popularity | Int64 | optional; those of them with this relation |
    | category | String | optional; relation category, such as "1-N" |
    | score | Float64 | optional; what the model gives the answer, larger is better; no NaN |

    Other columns are kept as they are, and so is the order of rows and columns.

    Args:
        table: a DataFrame of polars or pandas, a mapping of columns or a list of rows; or a `RankTable`,
            whose frame is given back. Whole numbers may come as floats or text, such as 3.0 or "3"; what is
            true or false, as the text "true" or "false" in any case; a side as H or Head. An index of
            pandas is left out unless it has a name, and names of columns are found in capitals too (with a
            UserWarning).
        source: what messages call the table; a file's path.

    Raises:
        ValueError: naming source, row (from 1), column and value: if a column is missing, the table is
            empty, an entry is missing, a rank is not a whole number in [1, candidates], the optimistic rank
            is above the pessimistic one, a side is unknown, or another entry is not what its column says.

    Examples:
        >>> import polars as pl
        >>> row = {"head": "anna", "relation": "knows", "tail": "ben", "side": "tail"}
        >>> ranks = {"optimistic": 2.0, "pessimistic": 3, "candidates": 90}
        >>> validated(pl.DataFrame([row | ranks]))["optimistic"].to_list()
        [2]
        >>> validated(pl.DataFrame([row | ranks | {"candidates": 2}]))
        Traceback (most recent call last):
            ...
        ValueError: table, row 1: pessimistic must be at most candidates (2), got 3.
    """
    if isinstance(table, RankTable):
        return table.frame
    table = named(frame_of(table), {}, KNOWN, source=source)
    return validated_at(table, source=source, place=lambda row: f"{source}, row {row + 1}")


def validated_at(table: object, *, source: str, place: _Place, part: bool = False) -> pl.DataFrame:
    """As `validated`, where `place` says where a row (from 0) stands, such as "ranks.csv, line 7".

    The weights of a `part` of a table may all be 0, and its labels stay categorical.
    """
    if not isinstance(table, pl.DataFrame):
        raise ArgumentError("table", f"must be a polars DataFrame, got {table!r}.")
    require_columns(table.columns, source)
    if table.is_empty():
        raise ValueError(f"{source}: no rows.")
    checked: list[pl.Series] = []
    for name in table.columns:
        column = table[name]
        if name in TRIPLE:
            checked.append(_label(column, source, place, part=part))
        elif name in _TEXT:
            text = _text(column, source, place)
            checked.append(sides_spelled(text) if name == "side" else text)
        elif name in _LEAST:
            checked.append(whole_column(column, _LEAST[name], source=source, place=place))
        elif name == "weight":
            checked.append(_weight(column, source, place, part=part))
        elif name in _FLAGS:
            checked.append(_flag(column, source, place))
        elif name == "score":
            checked.append(_score(column, source, place))
    table = table.with_columns(checked)
    if table["head"].dtype.is_integer() != table["tail"].dtype.is_integer():
        raise ValueError(f"{source}: head and tail must both hold labels (text) or both ids (whole numbers).")
    must = 'must be "head", "tail" or "relation"'
    _refuse(table["side"], ~table["side"].is_in((*SIDES, RELATION)), must, place)
    for low, high in (("pessimistic", "candidates"), ("optimistic", "pessimistic")):
        above = table[low] > table[high]
        if above.any():
            bound = table[high][_first(above)]
            _refuse(table[low], above, f"must be at most {high} ({bound})", place)
    return table


def require_columns(columns: Sequence[str], source: str) -> None:
    """Raises ValueError if a column of rank tables is missing."""
    if missing := [name for name in REQUIRED if name not in columns]:
        raise ValueError(
            f"{source}: no column {', '.join(missing)}; columns found: {listed(columns)}"
            f"{_hint(columns, missing)}."
        )


def _hint(columns: Sequence[str], missing: Sequence[str]) -> str:
    """What may be done about missing columns."""
    if {"rank", *WIDE} & set(columns) and {"optimistic", "pessimistic"} & set(missing):
        return f"; {TIES_UNKNOWN}"
    if missing == ["candidates"]:
        return "; `candidates` or a graph (`kg`) may give them"
    return "; `columns` says which columns they are, as head=subject"


def sides_spelled(column: pl.Series) -> pl.Series:
    """A column of sides; H, t and Head, with spaces at their ends, as head and tail. Others stay."""
    if column.is_in((*SIDES, RELATION)).all():
        return column
    plain = column.str.strip_chars().str.to_lowercase().replace(_INITIALS)
    known = plain.is_in((*SIDES, RELATION))
    return plain.set(~known, None).fill_null(column)


def _first(bad: pl.Series) -> int:
    return int(bad.arg_true()[0])


def _refuse(column: pl.Series, bad: pl.Series, must: str, place: _Place) -> None:
    """Raises ValueError naming the first row of `bad`, the column and what stands there."""
    if bad.any():
        row = _first(bad)
        raise ValueError(f"{place(row)}: {column.name} {must}, got {column[row]!r}.")


def _refuse_nulls(column: pl.Series, place: _Place) -> None:
    if column.null_count():
        raise ValueError(f"{place(_first(column.is_null()))}: {column.name} is missing.")


def _refuse_type(column: pl.Series, must: str, source: str) -> ValueError:
    return ValueError(f"{source}: {column.name} must hold {must}, got values of type {column.dtype}.")


def _label(column: pl.Series, source: str, place: _Place, *, part: bool) -> pl.Series:
    if column.dtype.is_integer():
        return whole_column(column, 0, source=source, place=place)
    if part and column.dtype in (pl.Categorical, pl.Enum):
        _refuse_nulls(column, place)
        return column
    return _text(column, source, place, must="labels (text) or ids (whole numbers)")


def _text(column: pl.Series, source: str, place: _Place, must: str = "text") -> pl.Series:
    _refuse_nulls(column, place)
    if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        raise _refuse_type(column, must, source)
    return column.cast(pl.String)


def _numbers(column: pl.Series, must: str, source: str, place: _Place) -> pl.Series:
    """The column as Float64, none missing."""
    _refuse_nulls(column, place)
    if not (column.dtype.is_numeric() or column.dtype == pl.String):
        raise _refuse_type(column, must, source)
    numbers = column.cast(pl.Float64, strict=False)
    if numbers.null_count() and column.dtype == pl.String:
        numbers = column.str.strip_chars().cast(pl.Float64, strict=False)
    _refuse(column, numbers.is_null(), "must be a number" + _point(column, numbers), place)
    return numbers


def _point(column: pl.Series, numbers: pl.Series) -> str:
    """A hint where the first entry that is no number has a decimal comma."""
    commas = numbers.is_null().any() and re.fullmatch(
        r"\s*-?\d+,\d+\s*", str(column[_first(numbers.is_null())])
    )
    return " with a decimal point" if commas else ""


def whole_column(column: pl.Series, low: int | None, *, source: str, place: _Place) -> pl.Series:
    """The column as Int64, every entry a whole number of at least `low`, given as number or as text."""
    must = "must be a whole number" + ("" if low is None else f" of at least {low}")
    _refuse_nulls(column, place)
    if column.dtype.is_integer() or column.dtype == pl.String:
        numbers = column.cast(pl.Int64, strict=False)
        if column.dtype.is_integer():
            _refuse(column, numbers.is_null(), f"{must}, below 2^63", place)
    else:
        numbers = None
    if numbers is None or numbers.null_count():
        floats = _numbers(column, "whole numbers", source, place)
        exact = floats.is_finite() & (floats == floats.floor()) & (floats.abs() <= _EXACT)
        _refuse(column, ~exact, must, place)
        numbers = floats.cast(pl.Int64)
    if low is not None:
        _refuse(column, numbers < low, must, place)
    return numbers


def _weight(column: pl.Series, source: str, place: _Place, *, part: bool) -> pl.Series:
    weights = _numbers(column, "numbers", source, place)
    _refuse(column, ~(weights.is_finite() & (weights >= 0)), "must be finite and at least 0", place)
    if not part and not (weights > 0).any():
        raise ValueError(f"{source}: weight must be above 0 in some row, got 0 in all {len(weights)}.")
    return weights


def _score(column: pl.Series, source: str, place: _Place) -> pl.Series:
    scores = _numbers(column, "numbers", source, place)
    _refuse(column, scores.is_nan(), "must not be NaN", place)
    return scores


def _flag(column: pl.Series, source: str, place: _Place) -> pl.Series:
    """The column as Boolean, given as such or as the text that CSV files have for it."""
    _refuse_nulls(column, place)
    if column.dtype == pl.Boolean:
        return column
    must = "true or false"
    if column.dtype != pl.String:
        raise _refuse_type(column, must, source)
    lower = column.str.strip_chars().str.to_lowercase()  # pandas writes True
    _refuse(column, ~lower.is_in(["true", "false"]), f"must be {must}", place)
    return lower == "true"
