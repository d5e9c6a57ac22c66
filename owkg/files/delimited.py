"""CSV and TSV files as tables of text, with the line number of each row."""

import csv
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl

from owkg.files.storage import opened, require_rereadable, text_source

# Separators that are tried if the name of a file does not give one.
_MARKS = (",", ";", "\t")


def separator(path: Path) -> str | None:
    """Separator given by the name (.csv, .tsv, .csv.gz and .tsv.gz); None for other names."""
    name = path.name.lower().removesuffix(".gz")
    return "," if name.endswith(".csv") else "\t" if name.endswith(".tsv") else None


def is_rank_table(path: Path) -> bool:
    """Whether the name is that of a rank table (.parquet, or with a separator); other files may be runs."""
    return path.suffix.lower() == ".parquet" or separator(path) is not None


def read_text_table(path: Path) -> tuple[pl.DataFrame, Callable[[int], str]]:
    """CSV or TSV file with a header line, as text columns with empty fields null, and the place of row i.

    Fields may be quoted as in RFC 4180. A .gz file is unpacked. The separator is given by the file's name,
    unless the header has one field with it and several with a comma, a semicolon or a tab. Leading columns
    without a name are left out, such as the index that pandas writes. Trailing columns are left out if they
    have neither a name nor an entry, as in a file with a separator at the end of each line. Spaces around
    names, and a space after every separator, are not part of the text.

    Returns:
        The table, and a function from a row (counted from 0) to "path, line N".

    Raises:
        ValueError: naming file and line, if a line has more or fewer fields than the header, a quotation mark
            is unclosed or misplaced, a line is not UTF-8, or a column name is missing or repeated.
    """
    require_rereadable(path)
    mark = _mark(path)
    source = text_source(path)
    try:
        table = pl.read_csv(source, separator=mark, infer_schema=False, glob=False)
    except pl.exceptions.NoDataError:
        raise ValueError(f"{path}: the file is empty.") from None
    except (pl.exceptions.PolarsError, OSError) as error:
        _check_fields(path, mark)
        _check_quotes(path, mark)
        raise ValueError(f"{path}: {str(error).splitlines()[0]}.") from error
    # The parser renames repeated columns, so the names are read again.
    given = _header(path, mark)
    names = [name.strip() for name in given]
    unnamed = next((i for i, name in enumerate(names) if name), 0)
    end = len(names)
    while end > unnamed + 1 and not names[end - 1] and table[:, end - 1].null_count() == len(table):
        end -= 1
    named = names[unnamed:end]
    if twice := sorted({name for name in named if named.count(name) > 1 or not name}):
        raise ValueError(f"{path}, line 1: each column needs a name of its own, got {', '.join(twice)!r}.")
    # The parser pads a short line, so that its last field is null.
    if table.width and table[:, -1].null_count():
        _check_fields(path, mark)
    if named != given:
        table = table[:, unnamed:end]
        table = table.rename(dict(zip(table.columns, named, strict=True)))
        table = table.with_columns(_unspaced(table[name]) for name in named[1:])
    return table, lambda row: f"{path}, line {_line(path, mark, row)}"


def _unspaced(column: pl.Series) -> pl.Series:
    """Column without the space that begins every entry; unchanged if an entry has none."""
    spaced = len(column) and column.str.starts_with(" ").all(ignore_nulls=True)
    return column.str.strip_chars_start(" ") if spaced else column


def header(path: Path) -> list[str]:
    """Column names of a CSV or TSV file, none if it is empty.

    Raises:
        ValueError: naming file and line, if the first line cannot be read.
    """
    require_rereadable(path)
    return [name.strip() for name in _header(path, _mark(path))]


def _header(path: Path, mark: str) -> list[str]:
    return next((record for _, record in _records(path, mark)), [])


def _mark(path: Path) -> str:
    """Separator of a file: from its name, or the first that splits its header into several fields."""
    own = separator(path) or ","
    for mark in (own, *(one for one in _MARKS if one != own)):
        try:
            if len(_header(path, mark)) > 1:
                return mark
        except ValueError:
            continue
    return own


def _records(path: Path, mark: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of each record, the header first. Slow, so used only for messages.

    Raises:
        ValueError: naming the first line of a record that cannot be read or is not UTF-8.
    """
    line = 1
    try:
        with io.TextIOWrapper(opened(path), "utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=mark, strict=True)
            seen = False
            for record in reader:
                # Blank lines before the header are skipped; later blank lines are records without a field.
                seen = seen or bool(record)
                if seen:
                    yield line, record
                line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(f"{path}, line {line}: {error}.") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}, line {_undecodable(path)}: the text is not UTF-8.") from None


def _line(path: Path, mark: str, row: int) -> int:
    for record, (line, _) in enumerate(_records(path, mark)):
        if record == row + 1:
            return line
    raise ValueError(f"{path}: the file changed while it was read.")


def _check_fields(path: Path, mark: str) -> None:
    """Raises ValueError for the first line that does not have as many fields as the header."""
    columns = None
    for line, record in _records(path, mark):
        columns = len(record) if columns is None else columns
        if len(record) != columns:
            fields = "blank" if not record else f"{len(record)} fields instead of {columns}"
            raise ValueError(f"{path}, line {line}: {fields}.")


def _check_quotes(path: Path, mark: str) -> None:
    """Raises ValueError for the first line that seems to have a quotation mark inside an unquoted field."""
    out_of_place = re.compile(f'(?:^|{mark})[^{mark}"]+"')
    with io.TextIOWrapper(opened(path), "utf-8-sig") as file:
        for number, text in enumerate(file, 1):
            if out_of_place.search(text):
                raise ValueError(f"{path}, line {number}: a quotation mark inside an unquoted field.")


def _undecodable(path: Path) -> int:
    with opened(path) as file:
        for number, text in enumerate(file, 1):
            try:
                text.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 1
