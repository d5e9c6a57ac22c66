"""Text files in blocks of lines: whatever is wrong is named with its file and line."""

import csv
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from owkg.files.storage import opened

COLUMNS = ("head", "relation", "tail")
CLASS = "class"
"""The column that says whether a triple is true."""
# What separates columns, in words.
_SEPARATORS = {"\t": "tabs", " ": "spaces", ",": "commas", ";": "semicolons"}

_LABELS = "\t".join(rf"(?P<{column}>[^\t]+)" for column in COLUMNS)
# A whole number as programs write it: no sign, no zero in front.
WHOLE = "0|[1-9][0-9]*"
# Enough of a bad line to find it by.
_SHOWN = 80
# Bytes of a file that are taken apart at a time.
_BLOCK = 2**27


class Columns(NamedTuple):
    """The columns of a file of labels.

    Attributes:
        names: of all columns, in the order in which they stand in a line; head, relation and tail are among
            them, and perhaps class. Columns of other names are left out.
        separator: a tab, a space, a comma or a semicolon.
        quoted: whether fields may be quoted, as in RFC 4180.
    """

    names: tuple[str, ...] = COLUMNS
    separator: str = "\t"
    quoted: bool = False

    @property
    def wanted(self) -> tuple[str, ...]:
        """The names of the columns that are not left out."""
        return (*COLUMNS, *(name for name in self.names if name == CLASS))

    def fields(self, line: str) -> list[str]:
        """The fields of a line; ValueError if its quotation marks do not fit."""
        if not self.quoted:
            return line.split(self.separator)
        try:
            return next(csv.reader([line], delimiter=self.separator, strict=True), [""])
        except csv.Error as error:
            raise ValueError(str(error)) from None


class LineBlock(NamedTuple):
    """Lines of a text file that follow each other.

    Attributes:
        first: number of the first of them, from 1.
        text: of the lines, UTF-8, separated by LF; the last has no end.
    """

    first: int
    text: bytes

    @property
    def num_lines(self) -> int:
        """Number of lines."""
        return self.text.count(b"\n") + 1

    @property
    def lines(self) -> pl.Series:
        """The lines as text."""
        return pl.Series("line", self.text.decode().split("\n"), dtype=pl.String)


def line_error(path: Path | str, line: int | None, message: str) -> ValueError:
    """The error of one line, counted from 1; None: of a file that has no lines to name."""
    return ValueError(f"{path}: {message}" if line is None else f"{path}, line {line}: {message}")


def first_row(bad: pl.Series) -> int | None:
    """The number of the first true row, from 0; None if there is none."""
    return int(bad.arg_max() or 0) if bad.any() else None


def read_blocks(path: Path, data: bytes | None = None) -> Iterator[LineBlock]:
    """The lines of a UTF-8 file, packed by gzip if its name ends in ".gz", in blocks of bounded size.

    `data` is what it holds, if that has been read. Line ends may be LF or CR LF; a byte order mark in front
    and empty lines at the end are left out.

    Raises:
        ValueError: if the file is empty, no whole gzip file, unpacks to too much, or not UTF-8.
    """
    number, rest, begun, ended = 1, b"", False, False
    with opened(path, data=data, packed=path.suffix == ".gz") as file:
        while not ended:
            more = file.read(_BLOCK)
            ended = len(more) < _BLOCK
            text = rest + (more if begun else more.removeprefix(b"\xef\xbb\xbf"))
            begun = True
            cut = len(text) if ended else text.rfind(b"\n") + 1
            whole = text[:cut].replace(b"\r\n", b"\n")
            body = whole.rstrip(b"\n")
            # Empty lines are of the next block, and left out if none comes.
            rest = whole[len(body) + bool(body) :] + text[cut:]
            if body:
                block = LineBlock(number, body)
                _require_text(path, block)
                yield block
                number += block.num_lines
    if number == 1:
        raise line_error(path, 1, "must hold something, got an empty file.")


def _require_text(path: Path, block: LineBlock) -> None:
    """Raises ValueError, naming the line, if a block is not UTF-8."""
    if block.text.isascii():
        return
    try:
        block.text.decode()
    except UnicodeDecodeError as error:
        line = block.first + block.text.count(b"\n", 0, error.start)
        byte = block.text[error.start]
        raise line_error(path, line, f"must be UTF-8 text, got the byte 0x{byte:02x}.") from None


def read_lines(path: Path, data: bytes | None = None) -> pl.Series:
    """The lines of a UTF-8 file; `data` and errors as of `read_blocks`."""
    return pl.concat([block.lines for block in read_blocks(path, data)])


def split_lines(
    path: Path, lines: pl.Series, pattern: str, expected: str, *, separator: str | None, first: int = 1
) -> pl.DataFrame:
    """The named groups of `pattern` in every line, as columns of text.

    Args:
        path: of the file.
        lines: of the file, from line `first` on.
        pattern: a regular expression that fits a whole good line.
        expected: what a good line is, in words.
        separator: of the columns, None for any white space; to count them in the message.
        first: number of the first line.

    Raises:
        ValueError: naming the file and the first line that does not fit.
    """
    frame = lines.str.extract_groups(f"^{pattern}$").struct.unnest()
    if (row := first_row(frame.to_series(0).is_null())) is not None:
        line = lines[row]
        count = len(line.split(separator))
        columns = f"{count} column{'' if count == 1 else 's'}, {line[:_SHOWN]!r}"
        got = columns if line.strip() else "a blank line"
        raise line_error(path, first + row, f"must be {expected}, got {got}.")
    return frame


def split_labels(path: Path, lines: pl.Series, *, first: int = 1) -> pl.DataFrame:
    """Columns head, relation, tail of labels; ValueError as `split_lines`."""
    expected = "head, relation and tail, none empty, separated by tabs"
    return split_lines(path, lines, _LABELS, expected, separator="\t", first=first)


def label_columns(path: Path, block: LineBlock, columns: Columns | None = None) -> pl.DataFrame:
    """Columns head, relation, tail of labels, and class where the file has it.

    Args:
        path: of the file.
        block: of it.
        columns: how its columns stand; None: head, relation, tail, separated by tabs.

    Raises:
        ValueError: naming the file and the first line that does not fit.
    """
    columns = columns or Columns()
    quote = '"' if columns.quoted else None
    frame = _table(block, columns.separator, columns.names, pl.String(), wanted=columns.wanted, quote=quote)
    if frame is None and columns == Columns():
        return split_labels(path, block.lines, first=block.first)
    return (_fields(path, block, columns) if frame is None else frame).select(columns.wanted)


def _fields(path: Path, block: LineBlock, columns: Columns) -> pl.DataFrame:
    """What `_table` finds, line by line: slower, and able to say which line is wrong."""
    count, rows = len(columns.names), []
    places = [columns.names.index(name) for name in columns.wanted]
    words = "head, relation and tail" + (" and a class" if CLASS in columns.names else "")
    expected = f"{words}, none empty, in {count} columns separated by {_SEPARATORS[columns.separator]}"
    for number, line in enumerate(block.text.decode().split("\n"), block.first):
        try:
            fields = columns.fields(line)
        except ValueError as error:
            raise line_error(path, number, f"must be {expected}, got {line[:_SHOWN]!r} ({error}).") from None
        if len(fields) != count or not all(fields[place] for place in places):
            shown = f"{len(fields)} column{'' if len(fields) == 1 else 's'}, {line[:_SHOWN]!r}"
            got = shown if line.strip() else "a blank line"
            raise line_error(path, number, f"must be {expected}, got {got}.")
        rows.append([fields[place] for place in places])
    return pl.DataFrame(rows, schema=dict.fromkeys(columns.wanted, pl.String), orient="row")


def id_columns(
    path: Path,
    block: LineBlock,
    columns: tuple[str, ...],
    expected: str,
    *,
    separator: str | None = None,
    sizes: Mapping[str, int] | None = None,
) -> pl.DataFrame:
    """Columns of ids, whole numbers as programs write them, in the order in which they stand in the lines.

    Args:
        path: of the file.
        block: of it.
        columns: their names.
        expected: what a good line is, in words.
        separator: of the columns, such as a tab or a comma; None for any tabs and spaces.
        sizes: by column, the number of ids.

    Returns:
        Int64 columns; null, where there are no `sizes`, for a number that does not fit.

    Raises:
        ValueError: naming the file and the first line that does not fit, or that has an id out of range.
    """
    tabs = b"\t" in block.text[: block.text.find(b"\n")]
    frame = _table(block, separator or ("\t" if tabs else " "), columns, pl.Int64())
    if frame is not None and _as_written(frame, block) and _within(frame, sizes):
        return frame
    # Slower, for any white space, and able to say which line is wrong.
    between, around = (re.escape(separator), "") if separator else ("[ \t]+", "[ \t]*")
    pattern = around + between.join(f"(?P<{column}>{WHOLE})" for column in columns) + around
    text = split_lines(path, block.lines, pattern, expected, separator=separator, first=block.first)
    if sizes is None:
        return text.cast(pl.Int64, strict=False)
    return text.select(_ids_below(path, text[c], sizes[c], first=block.first).cast(pl.Int64) for c in columns)


def _table(
    block: LineBlock,
    separator: str,
    columns: tuple[str, ...],
    kind: Any,
    *,
    wanted: tuple[str, ...] | None = None,
    quote: str | None = None,
) -> pl.DataFrame | None:
    """The block as columns, if every line has all of them; what this reads is what a pattern would find.

    Columns that are not `wanted` may be empty.
    """
    if b"\r" in block.text:
        return None
    schema: dict[str, Any] = dict.fromkeys(columns, kind)
    try:
        frame = pl.read_csv(
            block.text, has_header=False, separator=separator, quote_char=quote, schema=schema, glob=False
        )
    except pl.exceptions.PolarsError:
        return None
    needed = frame if wanted is None else frame.select(wanted)
    whole = len(frame) == block.num_lines and not sum(needed.null_count().row(0))
    if quote and whole:  # a quoted field may be empty
        whole = not needed.select(pl.any_horizontal((pl.all() == "").any())).item()
    return frame if whole else None


def _as_written(frame: pl.DataFrame, block: LineBlock) -> bool:
    """Whether the ids have no sign and no zero in front: so written, they are as long as the block."""
    digits = len(frame) * (len(frame.columns) + len(frame.columns)) - 1
    for column in frame:
        least, largest = column.min(), column.max()
        if least < 0:  # type: ignore[operator]
            return False
        power = 10
        while power <= largest:  # type: ignore[operator]
            digits += int((column >= power).sum())
            power *= 10
    return digits == len(block.text)


def _within(frame: pl.DataFrame, sizes: Mapping[str, int] | None) -> bool:
    return sizes is None or all(frame[name].max() < size for name, size in sizes.items())  # type: ignore[operator]


def _ids_below(path: Path, column: pl.Series, size: int, *, first: int) -> pl.Series:
    """A column of text that matches `WHOLE` as Int32 ids in [0, `size`); its first value is of line `first`.

    Raises:
        ValueError: naming the file and the first line with another number.
    """
    found = column.cast(pl.Int64, strict=False)  # null where it does not fit
    if (row := first_row(~(found < size).fill_null(False))) is not None:
        message = f"the {column.name} must be an id in [0, {size}), got {column[row]}."
        raise line_error(path, first + row, message)
    return found.cast(pl.Int32)


def require_distinct(path: Path, values: pl.Series, kind: str, *, first: int) -> None:
    """Raises ValueError, naming both lines, if one of the texts from line `first` on repeats another."""
    if (row := first_row(~values.is_first_distinct())) is not None:
        before, shown = (values == values[row]).arg_max() or 0, values[row].replace("\t", " -> ")
        message = f"the {kind} {shown!r} stands on line {first + before} already."
        raise line_error(path, first + row, message)


def headed(path: Path, lines: pl.Series, header: str) -> pl.Series:
    """The lines after the first, which has to be `header`.

    Raises:
        ValueError: if it is another one, or no line follows.
    """
    _require_header(path, lines[0], header, more=len(lines) > 1)
    return lines[1:]


def headed_blocks(path: Path, blocks: Iterator[LineBlock], header: str) -> Iterator[LineBlock]:
    """`headed` of blocks."""
    line, after = first_line(blocks)
    _require_header(path, line, header, more=after is not None)
    return after or iter(())


def _require_header(path: Path, line: str, header: str, *, more: bool) -> None:
    if line != header:
        raise line_error(path, 1, f"must be the header {header!r}, got {line[:_SHOWN]!r}.")
    if not more:
        raise line_error(path, 1, "must be followed by lines, got none.")


def first_line(blocks: Iterator[LineBlock]) -> tuple[str, Iterator[LineBlock] | None]:
    """The first line, and the blocks of those after it; None if there are none."""
    block = next(blocks)
    line, _, text = block.text.partition(b"\n")
    after = [LineBlock(block.first + 1, text)] if text else []
    following = next(blocks, None)
    if following is not None:
        after.append(following)
    return line.decode(), chain(after, blocks) if after else None


def counted_lines(path: Path, lines: pl.Series) -> pl.Series:
    """The lines after the first, which has to say how many they are (OpenKE).

    Raises:
        ValueError: if it says something else.
    """
    require_count(path, lines[0], len(lines) - 1)
    return lines[1:]


def require_count(path: Path, line: str, follow: int, *, some: bool = True) -> None:
    """Raises ValueError unless the first line is the number of those that follow (OpenKE), `some` of them."""
    if line.strip() != str(follow):
        message = f"must be the number of lines that follow, {follow}, got {line[:_SHOWN]!r}."
        raise line_error(path, 1, message)
    if some and not follow:
        raise line_error(path, 1, "must be followed by lines, got none.")
