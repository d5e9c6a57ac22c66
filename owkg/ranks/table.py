"""Rank table: one row for each ranking task."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, NamedTuple

import polars as pl

from owkg.errors import ArgumentError
from owkg.files.columns import frame_of, listed, named

# Columns of the ranked triple, by label or by id.
TRIPLE = ("head", "relation", "tail")
RANKS = ("optimistic", "pessimistic", "candidates")
REQUIRED = (*TRIPLE, "side", *RANKS)
SIDES = ("head", "tail")
# Side of relation prediction, (head, ?, tail), whose candidates are relations.
RELATION = "relation"

# Smallest value of the columns of whole numbers; None: any whole number.
_LEAST = dict.fromkeys(RANKS, 1) | {"popularity": 0, "relation_popularity": 0, "seed": None}
_TEXT = ("side", "model", "category")
_FLAGS = ("filtered", "bounded", "averaged")
_INITIALS = {"h": "head", "t": "tail", "r": "relation"}
# Optional columns of a rank table from which metrics are computed.
OPTIONAL = (
    *("model", "seed", "weight", "popularity", "relation_popularity", "category"),
    *("filtered", "bounded", "averaged"),
)
# Columns that one row may have for both sides, as head_rank and tail_rank.
OF_SIDES = ("rank", "optimistic", "pessimistic", "candidates", "score")
WIDE = tuple(f"{side}_{name}" for side in SIDES for name in OF_SIDES)
"""Columns of tables with one row for each triple."""
KNOWN = (*REQUIRED, "rank", *OPTIONAL, "score", "half_link", *WIDE)
"""Names that `columns` may assign to a column."""

TIES_UNKNOWN = (
    "ranks do not state their ties: `untied` takes them as free of ties, `realistic` as means of the "
    "optimistic and the pessimistic rank"
)
"""Message for ranks without information on ties."""

# Every whole number up to this one is a float64.
_EXACT = 2**53

Place = Callable[[int], str]
"""Function from a row (from 0) to its name in messages."""


class Named(NamedTuple):
    """Names in messages of rows that were made from other rows.

    Attributes:
        of_row: function from a row (from 0) to its name in messages.
        column: function from a column and a row to the original name of the column: rank for optimistic, or
            tail_rank for rank.
    """

    of_row: Place
    column: Callable[[str, int], str]

    def __call__(self, row: int) -> str:
        """Name of a row in messages."""
        return self.of_row(row)


def cell(place: Place, name: str, row: int) -> str:
    """Name of an entry in messages, such as "ranks.csv, line 7: rank"."""
    return f"{place(row)}: {place.column(name, row) if isinstance(place, Named) else name}"


@dataclass(frozen=True, eq=False)
class RankTable:
    """Validated rank table: one row for each ranking task, with the columns of `validated`.

    The constructor validates a frame of polars or pandas, a mapping of columns or a list of rows. `owkg.rank`
    and `owkg.read_ranks` return rank tables. All functions that take a rank table also accept a frame with
    the same columns, and validate it.

    Attributes:
        frame: polars DataFrame.
        about: record of how the table was made, such as the split and the splits that filtered; empty by
            default.

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
        """Rank table of a frame that is known to be valid, unchecked."""
        table = object.__new__(cls)
        object.__setattr__(table, "frame", frame)
        object.__setattr__(table, "about", about or {})
        return table

    @classmethod
    def of(cls, table: object, *, source: str = "table") -> "RankTable":
        """Rank table of a frame, validated as `source` in messages; a rank table is returned unchanged."""
        return table if isinstance(table, cls) else cls.trusted(validated(table, source=source))

    @classmethod
    def of_entities(cls, table: object, *, source: str = "table") -> "RankTable":
        """Rank table as from `of`; ValueError if some task predicts a relation."""
        found = cls.of(table, source=source)
        if (found.frame["side"] == RELATION).any():
            raise ValueError(f'{source}: side must be "head" or "tail" here, got "{RELATION}".')
        return found

    @property
    def averaged(self) -> bool:
        """Whether only the mean of the optimistic and the pessimistic rank is known for some row."""
        return "averaged" in self.frame.columns and bool(self.frame["averaged"].any())

    def write(self, path: str | PathLike[str]) -> None:
        """Writes a Parquet, CSV or TSV file, as `owkg.ranks.write_ranks`.

        Args:
            path: path that ends in .parquet, .csv, .tsv, .csv.gz or .tsv.gz.
        """
        from owkg.ranks.files import write_ranks

        write_ranks(self, path, dict(self.about) or None)

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        return f"RankTable of {len(self):,} ranking tasks\n{self.frame}"

    def _repr_html_(self) -> str:
        return self.frame._repr_html_()


def validated(table: object, *, source: str = "table") -> pl.DataFrame:
    """Frame of the rank table `table`, with every entry checked and every column in its canonical type.

    Each row is one ranking task: one side of one triple.

    | column | type | meaning |
    |---|---|---|
    | head, relation, tail | String or Int64 | triple, by labels or by ids (at least 0) |
    | side | String | predicted part of the triple: "head", "tail" or "relation" |
    | optimistic, pessimistic | Int64 | 1-based ranks with ties counted for and against the target |
    | candidates | Int64 | number of ranked candidates, including the target |
    | filtered | Boolean | optional; whether the query's other answers were removed from the candidates |
    | bounded | Boolean | optional; whether the ranks are bounds of an unknown rank, not a result of ties |
    | averaged | Boolean | optional; whether only the mean of both ranks is known, the realistic rank |
    | model | String | optional |
    | seed | Int64 | optional |
    | weight | Float64 | optional; finite, at least 0, some above 0 |
    | popularity | Int64 | optional; number of training triples that contain the answer |
    | relation_popularity | Int64 | optional; number of these with the relation of the row |
    | category | String | optional; relation category, such as "1-N" |
    | score | Float64 | optional; score of the answer, larger is better; not NaN |

    Other columns and the order of rows and columns are kept.

    Args:
        table: DataFrame of polars or pandas, mapping of columns or list of rows; or a `RankTable`, whose
            frame is returned. Whole numbers may be floats or text, such as 3.0 or "3"; booleans may be the
            text "true" or "false" in any case; sides may be H or Head. An unnamed index of pandas is left
            out, and column names in other cases are accepted (with a UserWarning).
        source: name of the table in messages, such as the path of a file. Default "table".

    Raises:
        ValueError: naming source, row (from 1), column and value, if a column is missing, the table is
            empty, an entry is missing, a rank is not a whole number in [1, candidates], the optimistic rank
            is above the pessimistic rank, a side is unknown, or another entry does not fit its column.

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


def validated_at(table: object, *, source: str, place: Place, part: bool = False) -> pl.DataFrame:
    """Validated frame, as from `validated`, where `place` names rows, such as "ranks.csv, line 7".

    The weights of a `part` of a table may all be 0, and its labels may stay categorical.
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
            row = _first(above)
            called, given = cell(place, low, row), table[low][row]
            if called.endswith("rank"):  # from which both ranks were made
                mean = (table["optimistic"][row] + given) / 2
                given = int(mean) if mean.is_integer() else mean
            raise ValueError(f"{called} must be at most {high} ({table[high][row]}), got {given!r}.")
    return table


def require_columns(columns: Sequence[str], source: str, found: Iterable[str] | None = None) -> None:
    """ValueError if a column of rank tables is missing; the message shows `found`, the original columns."""
    if missing := [name for name in REQUIRED if name not in columns]:
        raise ValueError(
            f"{source}: no column {', '.join(missing)}; columns found: "
            f"{listed(columns if found is None else found)}{_hint(columns, missing)}."
        )


def hint_of_ranks() -> str:
    """Advice on naming the columns that hold ranks."""
    return "`columns` names the columns that hold ranks, as rank=NAME or head_rank=NAME,tail_rank=NAME"


def _hint(columns: Sequence[str], missing: Sequence[str]) -> str:
    """Advice about missing columns."""
    if {"rank", *WIDE} & set(columns) and {"optimistic", "pessimistic"} & set(missing):
        return f"; {TIES_UNKNOWN}"
    if missing == ["candidates"]:
        return "; `candidates` or a graph (`kg`) may give them"
    if missing == ["side"]:
        return "; `columns` names it, as side=NAME, or gives the side of the ranks, as tail_rank=NAME"
    if {"optimistic", "pessimistic"} <= set(missing) and not set(TRIPLE) & set(missing):
        return f"; {hint_of_ranks()}"
    return "; `columns` names the columns, as head=subject"


def sides_spelled(column: pl.Series) -> pl.Series:
    """Column of sides, with H, t and Head, also with outer spaces, as head and tail; other texts are kept."""
    if column.is_in((*SIDES, RELATION)).all():
        return column
    plain = column.str.strip_chars().str.to_lowercase().replace(_INITIALS)
    known = plain.is_in((*SIDES, RELATION))
    return plain.set(~known, None).fill_null(column)


def _first(bad: pl.Series) -> int:
    """Index of the first true entry."""
    return int(bad.arg_true()[0])


def _refuse(column: pl.Series, bad: pl.Series, must: str, place: Place) -> None:
    """ValueError naming the first row of `bad`, the column and the entry."""
    if bad.any():
        row = _first(bad)
        raise ValueError(f"{cell(place, column.name, row)} {must}, got {column[row]!r}.")


def refuse_nulls(column: pl.Series, place: Place) -> None:
    """ValueError naming the first row in which the column has no entry."""
    if column.null_count():
        raise ValueError(f"{cell(place, column.name, _first(column.is_null()))} is missing.")


def _refuse_type(column: pl.Series, must: str, source: str) -> ValueError:
    """ValueError for a column of the wrong type."""
    return ValueError(f"{source}: {column.name} must hold {must}, got values of type {column.dtype}.")


def _label(column: pl.Series, source: str, place: Place, *, part: bool) -> pl.Series:
    """Column of labels or ids, checked."""
    if column.dtype.is_integer():
        return whole_column(column, 0, source=source, place=place)
    if part and column.dtype in (pl.Categorical, pl.Enum):
        refuse_nulls(column, place)
        return column
    return _text(column, source, place, must="labels (text) or ids (whole numbers)")


def _text(column: pl.Series, source: str, place: Place, must: str = "text") -> pl.Series:
    """Column of text, checked."""
    refuse_nulls(column, place)
    if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        raise _refuse_type(column, must, source)
    return column.cast(pl.String)


def _numbers(column: pl.Series, must: str, source: str, place: Place) -> pl.Series:
    """Column as Float64, without missing entries."""
    refuse_nulls(column, place)
    if not (column.dtype.is_numeric() or column.dtype == pl.String):
        raise _refuse_type(column, must, source)
    numbers = column.cast(pl.Float64, strict=False)
    if numbers.null_count() and column.dtype == pl.String:
        numbers = column.str.strip_chars().cast(pl.Float64, strict=False)
    _refuse(column, numbers.is_null(), "must be a number" + _point(column, numbers), place)
    return numbers


def _point(column: pl.Series, numbers: pl.Series) -> str:
    """Advice if the first entry that is not a number has a decimal comma."""
    commas = numbers.is_null().any() and re.fullmatch(
        r"\s*-?\d+,\d+\s*", str(column[_first(numbers.is_null())])
    )
    return " with a decimal point" if commas else ""


def whole_column(column: pl.Series, low: int | None, *, source: str, place: Place) -> pl.Series:
    """Column as Int64, every entry a whole number of at least `low`, given as a number or as text."""
    must = "must be a whole number" + ("" if low is None else f" of at least {low}")
    refuse_nulls(column, place)
    if column.dtype.is_integer() or column.dtype == pl.String:
        numbers = column.cast(pl.Int64, strict=False)
        if column.dtype.is_integer():
            _refuse(column, numbers.is_null(), f"{must}, below 2^63", place)
    else:
        numbers = None
    if numbers is None or numbers.null_count():
        floats = _numbers(column, "whole numbers", source, place)
        whole = floats.is_finite() & (floats == floats.floor())
        exact = whole & (floats.abs() <= _EXACT)
        if not exact.all() and whole[row := _first(~exact)] and floats[row] > 0:
            digits = column.dtype == pl.String and column[row].strip().lstrip("+").isdigit()
            must += ", below 2^63" if digits else ", at most 2^53"
        _refuse(column, ~exact, must, place)
        numbers = floats.cast(pl.Int64)
    if low is not None:
        _refuse(column, numbers < low, must, place)
    return numbers


def _weight(column: pl.Series, source: str, place: Place, *, part: bool) -> pl.Series:
    """Column of weights, checked."""
    weights = _numbers(column, "numbers", source, place)
    _refuse(column, ~(weights.is_finite() & (weights >= 0)), "must be finite and at least 0", place)
    if not part and not (weights > 0).any():
        raise ValueError(f"{source}: weight must be above 0 in some row, got 0 in all {len(weights)}.")
    return weights


def _score(column: pl.Series, source: str, place: Place) -> pl.Series:
    """Column of scores, checked."""
    scores = _numbers(column, "numbers", source, place)
    _refuse(column, scores.is_nan(), "must not be NaN", place)
    return scores


def _flag(column: pl.Series, source: str, place: Place) -> pl.Series:
    """Column as Boolean, given as such or as text, as in CSV files."""
    refuse_nulls(column, place)
    if column.dtype == pl.Boolean:
        return column
    must = "true or false"
    if column.dtype != pl.String:
        raise _refuse_type(column, must, source)
    lower = column.str.strip_chars().str.to_lowercase()  # pandas writes True
    _refuse(column, ~lower.is_in(["true", "false"]), f"must be {must}", place)
    return lower == "true"
