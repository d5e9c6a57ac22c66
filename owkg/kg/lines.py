"""Text files line by line: whatever is wrong is named with its file and line."""

from pathlib import Path

import polars as pl

from owkg.kg.triples import COLUMNS
from owkg.storage import opened

_LABELS = "\t".join(rf"(?P<{column}>[^\t]+)" for column in COLUMNS)
# A whole number as programs write it: no sign, no zero in front.
WHOLE = "0|[1-9][0-9]*"
# Enough of a bad line to find it by.
_SHOWN = 80


def line_error(path: Path, line: int, message: str) -> ValueError:
    """The error of one line, counted from 1."""
    return ValueError(f"{path}, line {line}: {message}")


def first_row(bad: pl.Series) -> int | None:
    """The number of the first true row, from 0; None if there is none."""
    return int(bad.arg_max() or 0) if bad.any() else None


def read_lines(path: Path, data: bytes | None = None) -> pl.Series:
    """The lines of a UTF-8 file, packed by gzip if its name ends in ".gz".

    `data` is what it holds, if that has been read. Line ends may be LF or CR LF; a byte order mark in front
    and empty lines at the end are left out.

    Raises:
        ValueError: if the file is empty, no whole gzip file, unpacks to too much, or not UTF-8.
    """
    with opened(path, data=data, packed=path.suffix == ".gz") as file:
        data = file.read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        byte = error.object[error.start]
        raise line_error(path, line, f"must be UTF-8 text, got the byte 0x{byte:02x}.") from None
    text = text.replace("\r\n", "\n").rstrip("\n")
    if not text:
        raise line_error(path, 1, "must hold something, got an empty file.")
    return pl.Series("line", text.split("\n"), dtype=pl.String)


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


def split_labels(path: Path, lines: pl.Series) -> pl.DataFrame:
    """Columns head, relation, tail of labels; ValueError as `split_lines`."""
    expected = "head, relation and tail, none empty, separated by tabs"
    return split_lines(path, lines, _LABELS, expected, separator="\t")


def ids_below(path: Path, column: pl.Series, size: int, *, first: int) -> pl.Series:
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
    if lines[0] != header:
        raise line_error(path, 1, f"must be the header {header!r}, got {lines[0][:_SHOWN]!r}.")
    if len(lines) == 1:
        raise line_error(path, 1, "must be followed by lines, got none.")
    return lines[1:]


def counted(path: Path, lines: pl.Series) -> pl.Series:
    """The lines after the first, which has to say how many they are (OpenKE).

    Raises:
        ValueError: if it says something else.
    """
    said, follow = lines[0].strip(), len(lines) - 1
    if said != str(follow):
        message = f"must be the number of lines that follow, {follow}, got {lines[0][:_SHOWN]!r}."
        raise line_error(path, 1, message)
    if not follow:
        raise line_error(path, 1, "must be followed by lines, got none.")
    return lines[1:]
