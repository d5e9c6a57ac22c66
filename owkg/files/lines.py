"""Text files in blocks of lines; every error names the file and the line."""

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
"""Name of the column that tells whether a triple is true."""
# Separators of columns, in words.
_SEPARATORS = {"\t": "tabs", " ": "spaces", ",": "commas", ";": "semicolons"}

_LABELS = "\t".join(rf"(?P<{column}>[^\t]+)" for column in COLUMNS)
# An integer as programs write it, without sign and leading zeros.
WHOLE = "0|[1-9][0-9]*"
# Characters of a bad line that a message shows.
_SHOWN = 80
# Bytes of a file that are parsed at a time.
_BLOCK = 2**27


class Columns(NamedTuple):
    """Columns of a file of labels.

    Attributes:
        names: names of all columns, in their order in a line; they include head, relation and tail, and
            optionally class. Columns with other names are left out.
        separator: tab, space, comma or semicolon. Default tab.
        quoted: whether fields may be quoted, as in RFC 4180. Default False.
    """

    names: tuple[str, ...] = COLUMNS
    separator: str = "\t"
    quoted: bool = False

    @property
    def wanted(self) -> tuple[str, ...]:
        """Names of the columns that are kept."""
        return (*COLUMNS, *(name for name in self.names if name == CLASS))

    def fields(self, line: str) -> list[str]:
        """Fields of a line; ValueError if its quotation marks do not match."""
        if not self.quoted:
            return line.split(self.separator)
        try:
            return next(csv.reader([line], delimiter=self.separator, strict=True), [""])
        except csv.Error as error:
            raise ValueError(str(error)) from None


class LineBlock(NamedTuple):
    """Consecutive lines of a text file.

    Attributes:
        first: number of the first line, counted from 1.
        text: the lines in UTF-8, separated by LF, without LF at the end.
    """

    first: int
    text: bytes

    @property
    def num_lines(self) -> int:
        """Number of lines."""
        return self.text.count(b"\n") + 1

    @property
    def lines(self) -> pl.Series:
        """Lines as text."""
        return pl.Series("line", self.text.decode().split("\n"), dtype=pl.String)


def line_error(path: Path | str, line: int | None, message: str) -> ValueError:
    """Error for one line, counted from 1, or for the whole file if the line is None."""
    return ValueError(f"{path}: {message}" if line is None else f"{path}, line {line}: {message}")


def first_row(bad: pl.Series) -> int | None:
    """Number of the first true row, counted from 0; None if no row is true."""
    return int(bad.arg_max() or 0) if bad.any() else None


def read_blocks(path: Path, data: bytes | None = None) -> Iterator[LineBlock]:
    """Lines of a UTF-8 file in blocks of bounded size; a name in ".gz" is unpacked by gzip.

    `data` holds the contents of the file, if they were read already. Line ends may be LF or CR LF. A byte
    order mark at the start and empty lines at the end are left out.

    Raises:
        ValueError: if the file is empty, is a broken gzip file, unpacks to too much, or is not UTF-8.
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
            # Empty lines belong to the next block, and are left out if there is none.
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
    """Lines of a UTF-8 file; `data` and errors as in `read_blocks`."""
    return pl.concat([block.lines for block in read_blocks(path, data)])


def split_lines(
    path: Path, lines: pl.Series, pattern: str, expected: str, *, separator: str | None, first: int = 1
) -> pl.DataFrame:
    """Named groups of `pattern` in every line, as text columns.

    Args:
        path: the file, for messages.
        lines: lines of the file, from line `first` on.
        pattern: regular expression that matches a whole good line.
        expected: description of a good line.
        separator: separator of the columns, used to count them in the message. None: any white space.
        first: number of the first line. Default 1.

    Raises:
        ValueError: naming the file and the first line that does not match.
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
    """Columns head, relation and tail of labels; ValueError as in `split_lines`."""
    expected = "head, relation and tail, none empty, separated by tabs"
    return split_lines(path, lines, _LABELS, expected, separator="\t", first=first)


def label_columns(path: Path, block: LineBlock, columns: Columns | None = None) -> pl.DataFrame:
    """Columns head, relation and tail of labels, and class if the file has it.

    Args:
        path: the file, for messages.
        block: block of the file.
        columns: columns of a line. Default: head, relation and tail, separated by tabs.

    Raises:
        ValueError: naming the file and the first bad line.
    """
    columns = columns or Columns()
    quote = '"' if columns.quoted else None
    frame = _table(block, columns.separator, columns.names, pl.String(), wanted=columns.wanted, quote=quote)
    if frame is None and columns == Columns():
        return split_labels(path, block.lines, first=block.first)
    return (_fields(path, block, columns) if frame is None else frame).select(columns.wanted)


def _fields(path: Path, block: LineBlock, columns: Columns) -> pl.DataFrame:
    """Result of `_table`, computed line by line: slower, but it can name the bad line."""
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
    """Columns of integer ids as programs write them, in their order in the lines.

    Args:
        path: the file, for messages.
        block: block of the file.
        columns: names of the columns.
        expected: description of a good line.
        separator: separator of the columns, such as a tab or a comma. None: any tabs and spaces.
        sizes: number of ids of each column. Default: ids are not limited.

    Returns:
        Int64 columns. Without `sizes`, a number that does not fit is null.

    Raises:
        ValueError: naming the file and the first line that does not match, or that has an id out of range.
    """
    tabs = b"\t" in block.text[: block.text.find(b"\n")]
    frame = _table(block, separator or ("\t" if tabs else " "), columns, pl.Int64())
    if frame is not None and _as_written(frame, block) and _within(frame, sizes):
        return frame
    # Slower, but it allows any white space and can name the bad line.
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
    """Block as columns if every line has all of them; it accepts only lines that the pattern would match.

    Columns that are not in `wanted` may be empty.
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
    """Whether no id has a sign or a leading zero; only then are the written ids as long as the block."""
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
    """Text column that matches `WHOLE`, as Int32 ids in [0, `size`); its first value is on line `first`.

    Raises:
        ValueError: naming the file and the first line with a number out of range.
    """
    found = column.cast(pl.Int64, strict=False)  # null if it does not fit
    if (row := first_row(~(found < size).fill_null(False))) is not None:
        message = f"the {column.name} must be an id in [0, {size}), got {column[row]}."
        raise line_error(path, first + row, message)
    return found.cast(pl.Int32)


def require_distinct(path: Path, values: pl.Series, kind: str, *, first: int) -> None:
    """Raises ValueError, naming both lines, if one of the texts from line `first` on repeats another."""
    if (row := first_row(~values.is_first_distinct())) is not None:
        before, shown = (values == values[row]).arg_max() or 0, values[row].replace("\t", " -> ")
        message = f"the {kind} {shown!r} is already on line {first + before}."
        raise line_error(path, first + row, message)


def headed(path: Path, lines: pl.Series, header: str) -> pl.Series:
    """Lines after the first, which must be `header`.

    Raises:
        ValueError: if the first line is another one, or no line follows.
    """
    _require_header(path, lines[0], header, more=len(lines) > 1)
    return lines[1:]


def headed_blocks(path: Path, blocks: Iterator[LineBlock], header: str) -> Iterator[LineBlock]:
    """Blocks of the lines after the header, as `headed`."""
    line, after = first_line(blocks)
    _require_header(path, line, header, more=after is not None)
    return after or iter(())


def _require_header(path: Path, line: str, header: str, *, more: bool) -> None:
    if line != header:
        raise line_error(path, 1, f"must be the header {header!r}, got {line[:_SHOWN]!r}.")
    if not more:
        raise line_error(path, 1, "must be followed by lines, got none.")


def first_line(blocks: Iterator[LineBlock]) -> tuple[str, Iterator[LineBlock] | None]:
    """First line, and the blocks of the lines after it (None if there are none)."""
    block = next(blocks)
    line, _, text = block.text.partition(b"\n")
    after = [LineBlock(block.first + 1, text)] if text else []
    following = next(blocks, None)
    if following is not None:
        after.append(following)
    return line.decode(), chain(after, blocks) if after else None


def counted_lines(path: Path, lines: pl.Series) -> pl.Series:
    """Lines after the first, which must be their number (OpenKE).

    Raises:
        ValueError: if the first line is something else.
    """
    require_count(path, lines[0], len(lines) - 1)
    return lines[1:]


def require_count(path: Path, line: str, follow: int, *, some: bool = True) -> None:
    """Raises ValueError unless the first line is the number of following lines (OpenKE).

    With `some`, at least one line must follow.
    """
    if line.strip() != str(follow):
        message = f"must be the number of lines that follow, {follow}, got {line[:_SHOWN]!r}."
        raise line_error(path, 1, message)
    if some and not follow:
        raise line_error(path, 1, "must be followed by lines, got none.")
