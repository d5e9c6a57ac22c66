"""Parquet files read within bounds: their headers give the unpacked size before memory is allocated.

A reader that trusts a damaged or malicious file asks for memory that does not exist, and its process ends.
The headers are structs of Thrift's compact protocol: numbered fields, and integers as zigzag varints.
Numbers of fields: https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

import ctypes
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from owkg.files.storage import require_bounded, require_rereadable
from owkg.terminal.tables import one_line

_MAGIC = b"PAR1"
_BOOLEANS = {1: True, 2: False}
_BYTE, _WHOLE, _DOUBLE, _BINARY, _LISTS, _MAP, _STRUCT, _UUID = 3, (4, 5, 6), 7, 8, (9, 10), 11, 12, 13
_REPEATED = 2
# Depth of nested structs, more than any Parquet file has.
_DEEPEST = 16
# Maximum bytes of a page header; its statistics may hold values.
_HEADER = 2**16
# Bytes that a value takes once it is read, however it is packed.
_VALUE = 8
_ONE_AT_A_TIME = threading.Lock()


def read_parquet(path: Path) -> pl.DataFrame:
    """Contents of a Parquet file.

    Raises:
        ValueError: naming the file, if it is not a Parquet file, is damaged, or unpacks to too much for its
            size.
        OSError: if it cannot be opened.
    """
    require_rereadable(path)
    with path.open("rb") as file:  # a missing file or a folder raises its own OSError
        size = file.seek(0, os.SEEK_END)
    try:
        unpacked = _unpacked_size(path)
    except ValueError as error:
        raise ValueError(f"{path}: must be an undamaged Parquet file: {error}.") from None
    require_bounded(path, size, unpacked)
    with _damage_told(path):
        return pl.read_parquet(path, glob=False)


def scan_parquet(path: Path) -> pl.LazyFrame:
    """Parquet file to be read in parts.

    Its name is not treated as a pattern, and its folders are not treated as columns.
    """
    return pl.scan_parquet(path, glob=False, hive_partitioning=False)


def collected_scan(path: Path, query: pl.LazyFrame) -> pl.DataFrame:
    """Result of a query of `scan_parquet`, computed by the streaming engine; errors as in `read_parquet`."""
    with _damage_told(path):
        return query.collect(engine="streaming")


def parquet_rows(path: Path) -> tuple[Mapping[str, Any], int, int]:
    """Columns of a Parquet file, its number of rows, and the bytes that they unpack to.

    Raises:
        ValueError: naming the file, if it is not a Parquet file or is damaged.
        OSError: if it cannot be opened.
    """
    require_rereadable(path)
    path.open("rb").close()
    try:
        unpacked = _unpacked_size(path)
    except ValueError as error:
        raise ValueError(f"{path}: must be an undamaged Parquet file: {error}.") from None
    with _damage_told(path):
        scan = scan_parquet(path)
        return scan.collect_schema(), scan.select(pl.len()).collect().item(), unpacked


@contextmanager
def _damage_told(path: Path) -> Iterator[None]:
    """Context that turns read errors of polars into a ValueError that names the file."""
    try:
        with _panics_unheard(path):
            yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ValueError(
            f"{path}: must be an undamaged Parquet file: {str(error).splitlines()[0]}."
        ) from None


@contextmanager
def _panics_unheard(path: Path) -> Iterator[None]:
    """Context that hides what polars writes to standard error when it panics; other text is written.

    This includes an abort of the process because memory has run out.
    """
    with _ONE_AT_A_TIME, tempfile.TemporaryFile() as heard:
        try:
            kept = os.dup(2)
        except OSError:  # the process has no standard error
            yield
            return
        panicked = False
        try:
            with suppress(OSError, ValueError):
                sys.stderr.flush()
            os.dup2(heard.fileno(), 2)
            with _last_words(path, heard.fileno(), kept):
                yield
        except pl.exceptions.PanicException:
            panicked = True
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            if not panicked:
                heard.seek(0)
                with suppress(OSError):
                    os.write(2, heard.read())


@contextmanager
def _last_words(path: Path, heard: int, told: int) -> Iterator[None]:
    """Context in which an abort writes the file `heard` to `told`, or one line (exit 2) if memory ran out."""

    def say(_: int) -> None:
        words = os.pread(heard, 2**16, 0)
        if lack := re.search(rb"memory allocation of \d+ bytes failed", words):
            why = f"this takes more memory than there is: {lack[0].decode()}"
            os.write(told, f"owkg: error: {one_line(path)}: {why}\n".encode(errors="replace"))
            os._exit(2)
        os.write(told, words)
        system.signal(signal.SIGABRT, None)

    if sys.platform == "win32":
        yield
        return
    # Python handles a signal when the interrupted call returns, but after an abort it never returns.
    system = ctypes.CDLL(None)
    system.signal.restype, system.signal.argtypes = ctypes.c_void_p, (ctypes.c_int, ctypes.c_void_p)
    called = ctypes.CFUNCTYPE(None, ctypes.c_int)(say)
    before = system.signal(signal.SIGABRT, ctypes.cast(called, ctypes.c_void_p))
    try:
        yield
    finally:
        system.signal(signal.SIGABRT, before)


def _unpacked_size(path: Path) -> int:
    """Bytes that the pages of a Parquet file unpack to, plus some bytes for every value.

    Raises:
        ValueError: if its headers cannot be read, or contradict each other or the length of the file.
        OSError: if it cannot be opened.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 8, 0))
        tail = file.read()
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != _MAGIC or length > size - 12:
            raise ValueError("it does not end like one")
        file.seek(size - 8 - length)
        footer = BytesIO(file.read(length))
        try:
            said = _struct(footer)
            groups = said[4]
            columns = [column[3] for group in groups for column in group[1]]
            _check_rows(said)
            return sum(_column_size(file, size, column) for column in columns)
        except (AttributeError, KeyError, IndexError, TypeError, EOFError, OverflowError):
            raise ValueError("its headers cannot be read") from None


def _check_rows(footer: dict[int, Any]) -> None:
    """Raises ValueError if the row numbers of the file, its row groups and their columns do not agree.

    Fields 2, 3 and 4 of the footer are schema, rows and row groups. Fields 1 and 3 of a row group are columns
    and rows. Fields 3 and 5 of a column are path and values. Fields 3 and 4 of a schema element are
    repetition and name.
    """
    rows = sum(group[3] for group in footer[4])
    if rows != footer[3]:
        raise ValueError(f"it has {footer[3]} rows by its footer, and {rows} by its row groups")
    repeated = {element[4] for element in footer[2] if element.get(3) == _REPEATED}
    for group in footer[4]:
        for column in (column[3] for column in group[1]):
            # Columns of lists have another number of values.
            if len(column[3]) == 1 and column[3][0] not in repeated and column[5] != group[3]:
                raise ValueError(f"a column has {column[5]} values, and its row group {group[3]} rows")


def _column_size(file: BinaryIO, size: int, column: dict[int, Any]) -> int:
    """Bytes that a column chunk unpacks to; its fields 5, 9 and 11 are values, data and dictionary."""
    values, total = column[5], 0
    place = min(offset for offset in (column[9], column.get(11, 0)) if offset > 0 or offset == column[9])
    if not 0 <= place < size or not 0 <= column[7] <= size - place or values < 0:
        raise ValueError("a column lies outside the file")
    seen, end = 0, place + column[7]
    while seen < values:
        file.seek(place)
        start = BytesIO(file.read(_HEADER))
        page = _struct(start)
        unpacked, packed = page[2], page[3]
        place += start.tell() + packed
        if unpacked < 0 or packed < 0 or place > size:
            raise ValueError("a page lies outside the file")
        data = page.get(5) or page.get(8)
        seen += data[1] if data else 0
        if data and data[1] < 0:
            raise ValueError("a page has a negative number of values")
        total += unpacked
    if seen != values:
        raise ValueError(f"a column has {seen} values, and {values} by its header")
    if place < end and values:
        raise ValueError(f"a column has more pages than those of its {values} values")
    return total + _VALUE * values


def _struct(stream: BytesIO, depth: int = 0) -> dict[int, Any]:
    """Fields of a struct by their numbers."""
    if depth > _DEEPEST:
        raise ValueError("its headers are nested too deep")
    fields: dict[int, Any] = {}
    number = 0
    while kind := _byte(stream):
        number = number + (kind >> 4) if kind >> 4 else _zigzag(stream)
        kind &= 15
        fields[number] = _BOOLEANS[kind] if kind in _BOOLEANS else _value(stream, kind, depth)
    return fields


def _value(stream: BytesIO, kind: int, depth: int) -> Any:
    if kind in _WHOLE:
        return _zigzag(stream)
    if kind in _BOOLEANS or kind == _BYTE:
        return _byte(stream)
    if kind == _BINARY:
        return _bytes(stream, _varint(stream))
    if kind == _DOUBLE:
        return _bytes(stream, 8)
    if kind == _UUID:
        return _bytes(stream, 16)
    if kind == _STRUCT:
        return _struct(stream, depth + 1)
    if kind in _LISTS:
        head = _byte(stream)
        count = _varint(stream) if head >> 4 == 15 else head >> 4
        return [_value(stream, head & 15, depth + 1) for _ in range(count)]
    if kind == _MAP:
        count = _varint(stream)
        kinds = _byte(stream) if count else 0
        return [(_value(stream, kinds >> 4, depth), _value(stream, kinds & 15, depth)) for _ in range(count)]
    raise ValueError(f"its headers hold a field of the unknown type {kind}")


def _byte(stream: BytesIO) -> int:
    return _bytes(stream, 1)[0]


def _bytes(stream: BytesIO, count: int) -> bytes:
    found = stream.read(count)
    if len(found) < count:
        raise EOFError("they end too soon")
    return found


def _varint(stream: BytesIO) -> int:
    number = shift = 0
    while True:
        byte = _byte(stream)
        number |= (byte & 127) << shift
        if byte < 128:
            return number
        shift += 7
        if shift > 63:
            raise ValueError("its headers hold a number that is too large")


def _zigzag(stream: BytesIO) -> int:
    number = _varint(stream)
    return (number >> 1) ^ -(number & 1)
