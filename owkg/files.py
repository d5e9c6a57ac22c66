"""Files that are whole or not there, written aside and then renamed; and packed ones read within bounds."""

import errno
import gzip
import io
import os
import re
import sys
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl

from owkg.parquet import unpacked_size

MAX_UNPACKED = "OWKG_MAX_UNPACKED"
"""The environment variable that says how many bytes one packed file may unpack to."""

# Without it: so many bytes, or so many times what the packed file has.
_FLOOR, _RATIO = 2**27, 100
_GZIP = b"\x1f\x8b"
# How files begin that polars unpacks of its own accord, without a bound: gzip, zlib and zstd.
_PACKED = (_GZIP, b"\x78\x01", b"\x78\x9c", b"\x78\xda", b"\x28\xb5\x2f\xfd")
_ONE_AT_A_TIME = threading.Lock()


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """Yields a path beside `path` to write to; on success it becomes `path`, on failure it is removed.

    The parent folder is made if it is not there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield aside
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def writable_folder(path: Path) -> Path:
    """`path`, made if need be and tried by writing to it, so that long work does not end in an error.

    Raises:
        OSError: if nothing can be written there; NotADirectoryError if a file of that name is there.
    """
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "is a file; choose a folder", str(path))
    with written_aside(path / "tried") as aside:
        aside.touch()
    (path / "tried").unlink()
    return path


def require_bounded(path: Path, packed: int, unpacked: int) -> None:
    """Raises ValueError if `packed` bytes may not unpack to `unpacked`: a small file must not fill memory.

    128 MiB are allowed, or 100 times the bytes of the file; or what the variable `MAX_UNPACKED` says.
    """
    text = os.environ.get(MAX_UNPACKED)
    if text is not None and not re.fullmatch("[0-9]+", text):
        raise ValueError(f"{MAX_UNPACKED} must be a number of bytes, got {text!r}.")
    most = max(_FLOOR, _RATIO * packed) if text is None else int(text)
    if unpacked > most:
        raise ValueError(
            f"{path}: {packed:,} bytes that unpack to more than {most:,}; "
            f"{MAX_UNPACKED}=BYTES in the environment allows more."
        )


def require_npz_bounded(path: Path) -> None:
    """`require_bounded` of the arrays in an .npz file; what is no such file is left to its reader."""
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, ValueError, RuntimeError, EOFError):
        return
    require_bounded(path, path.stat().st_size, unpacked)


class _Unpacked(io.RawIOBase):
    """What a gzip file holds, as a stream that raises ValueError where it is broken or too much."""

    def __init__(self, path: Path, packed: io.BufferedIOBase) -> None:
        self._path, self._packed, self._read = path, packed, 0
        self._size = packed.seek(0, os.SEEK_END)
        packed.seek(0)
        self._stream = gzip.GzipFile(fileobj=packed)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        try:
            count = self._stream.readinto(buffer)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{self._path}: must be a whole gzip file ({error}).") from None
        self._read += count
        require_bounded(self._path, self._size, self._read)
        return count

    def close(self) -> None:
        self._packed.close()
        super().close()


def opened(
    path: Path, *, data: bytes | None = None, packed: bool | None = None
) -> io.BufferedReader | io.BytesIO:
    """The bytes of a file as a stream, unpacked while they are read if gzip has packed them.

    Args:
        path: of the file.
        data: what it holds, if it has been read already.
        packed: whether it is a gzip file; None: if it begins like one.

    Raises:
        ValueError: here or while reading, if it is no whole gzip file, or unpacks to too much.
        OSError: if it cannot be opened.
    """
    file = path.open("rb") if data is None else io.BytesIO(data)
    if packed is None:
        packed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
    return io.BufferedReader(_Unpacked(path, file), 2**20) if packed else file


def text_source(path: Path) -> Path | bytes:
    """What polars can read as text: the path of the file, or what it holds if gzip has packed it.

    Raises:
        ValueError: if it is no whole gzip file, unpacks to too much, or is packed in another way.
        OSError: if it cannot be opened.
    """
    with opened(path) as file:
        unpacked = file.read() if isinstance(getattr(file, "raw", None), _Unpacked) else None
        begin = file.read(4) if unpacked is None else unpacked[:4]
    if begin.startswith(_PACKED):
        raise ValueError(f"{path}: must be text, or text packed once by gzip.")
    return path if unpacked is None else unpacked


def read_parquet(path: Path) -> pl.DataFrame:
    """A Parquet file as it is.

    Raises:
        ValueError: naming the file, if it is none, is damaged, or holds too much for its size.
        OSError: if it cannot be opened.
    """
    with path.open("rb") as file:  # a missing file or a folder is told by its own OSError
        size = file.seek(0, os.SEEK_END)
    try:
        unpacked = unpacked_size(path)
    except ValueError as error:
        raise ValueError(f"{path}: no Parquet file, or a damaged one: {error}.") from None
    require_bounded(path, size, unpacked)
    try:
        with _panics_unheard():
            return pl.read_parquet(path, glob=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ValueError(
            f"{path}: no Parquet file, or a damaged one: {str(error).splitlines()[0]}."
        ) from None


@contextmanager
def _panics_unheard() -> Iterator[None]:
    """Keeps what polars writes to standard error when it panics from being seen; all else is written."""
    with _ONE_AT_A_TIME, tempfile.TemporaryFile() as heard:
        try:
            kept = os.dup(2)
        except OSError:  # there is no standard error
            yield
            return
        panicked = False
        try:
            with suppress(OSError, ValueError):
                sys.stderr.flush()
            os.dup2(heard.fileno(), 2)
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
