"""Atomic files and folders, the `metadata.json` of a folder, and packed files read within bounds."""

import errno
import gzip
import hashlib
import io
import json
import os
import platform
import re
import reprlib
import shutil
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from owkg.errors import ArgumentError
from owkg.files import begun

try:
    import resource
except ImportError:  # this system has no such limits
    resource = None

__version__ = "0.1.0"
MAX_UNPACKED = "OWKG_MAX_UNPACKED"
"""Environment variable with the number of bytes that one packed file may unpack to."""

# Defaults: bytes, and multiples of the packed size; the larger one applies.
_FLOOR, _RATIO = 2**27, 100
_GZIP = b"\x1f\x8b"
# Number of the system error in messages of Rust.
_OF_SYSTEM = re.compile(r"\(os error (\d+)\)")
# Free memory on Linux, and the control groups of this process with their limits.
_MEMINFO = Path("/proc/meminfo")
# Sizes of this process; the first is its number of address pages.
_OWN = Path("/proc/self/statm")
_GROUPS, _GROUPS_ROOT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
# For each kind of group: file of the limit, file of the usage, and key of the cache in the usage.
_GROUP_FILES = {
    "": ("memory.max", "memory.current", "inactive_file"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
# First bytes of the files that polars unpacks on its own, without a limit: gzip, zlib and zstd.
_PACKED = (_GZIP, b"\x78\x01", b"\x78\x9c", b"\x78\xda", b"\x28\xb5\x2f\xfd")


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """Context with a temporary path for writing; on success it becomes `path`, on failure it is removed.

    The folder of `path` is made if it is missing. A link at `path` is replaced, and its target stays. A
    device or a named pipe is not replaced: the written bytes are copied into it at the end.

    Raises:
        OSError: naming `path`, if it cannot be written.
    """
    require_place(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_stream(path):
        with _copied_to(path) as aside:
            yield aside
        return
    aside, lock = begun.new_file(path.parent, path.suffix)
    try:
        with naming_place(path, aside):
            yield aside
            os.fsync(lock)  # otherwise a power cut could leave an empty file under the new name
            aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
        os.close(lock)


def require_place(path: Path) -> None:
    """Raises OSError if nothing can be written at `path`: its name is too long, or it is a loop of links."""
    try:
        path.stat()
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            words = "it is a loop of links" if error.errno == errno.ELOOP else error.strerror
            raise OSError(f"{path}: cannot be written: {words}.") from None


def is_stream(path: Path) -> bool:
    """Whether `path` is a device, a pipe or a descriptor of the process."""
    folder = os.path.realpath(path.parent)
    named = folder == "/dev" or folder.startswith("/proc/")
    return path.exists() and not path.is_dir() and (named or not path.is_file())


@contextmanager
def _copied_to(stream: Path) -> Iterator[Path]:
    with begun.temporary_folder("owkg-out-") as folder:
        aside = folder / f"whole{stream.suffix}"
        aside.touch()
        yield aside
        with naming_place(stream, aside), aside.open("rb") as whole:
            out = os.open(stream, os.O_WRONLY | os.O_APPEND)
            with os.fdopen(out, "wb") as taker:
                shutil.copyfileobj(whole, taker)


@contextmanager
def naming_place(path: Path, aside: Path) -> Iterator[None]:
    """Context in which system errors about `aside`, or about no file, name `path`."""
    try:
        yield
    except BrokenPipeError:
        raise
    except Exception as error:
        # Polars reports a full disk as an error of its own.
        of_polars = type(error).__module__.startswith("polars")
        of_system = _OF_SYSTEM.search(str(error)) if of_polars else None
        if not isinstance(error, OSError) and not of_system:
            raise
        words = os.strerror(int(of_system[1])) if of_system else getattr(error, "strerror", None)
        if words is None and str(aside) in str(error):  # the message names the file
            raise OSError(str(error).replace(str(aside), str(path))) from None
        named = getattr(error, "filename", None)
        if named is None or str(aside) in str(named):
            raise OSError(f"{path}: cannot be written: {words or str(error).rstrip('.')}.") from None
        raise


def writable_folder(path: Path, name: str = "out") -> Path:
    """Folder `path`, made if it is missing and tested by writing, so that long work does not end in an error.

    Args:
        path: the folder.
        name: argument that holds it, for messages. Default "out".

    Raises:
        ValueError: if `path` is a file.
        OSError: if nothing can be written there.
    """
    if path.exists() and not path.is_dir():
        raise ArgumentError(name, f"must be a folder, got the file {path}.")
    path.mkdir(parents=True, exist_ok=True)
    tried, lock = begun.new_file(path, "")
    tried.unlink()
    os.close(lock)
    return path


def require_bounded(path: Path, packed: int, unpacked: int) -> None:
    """Raises ValueError if `packed` bytes may not unpack to `unpacked`: a small file must not fill memory.

    The limit is 128 MiB or 100 times the bytes of the file, whichever is larger, unless the environment
    variable `MAX_UNPACKED` sets another.
    """
    text = os.environ.get(MAX_UNPACKED)
    if text is not None and not re.fullmatch("[0-9]+", text):
        raise ValueError(f"{MAX_UNPACKED} must be a number of bytes, got {text!r}.")
    most = max(_FLOOR, _RATIO * packed) if text is None else int(text)
    if unpacked > most:
        raise ValueError(
            f"{path}: {packed:,} bytes unpack to more than {most:,}; "
            f"{MAX_UNPACKED}=BYTES in the environment allows more."
        )


@contextmanager
def damage_named(path: Path, what: str) -> Iterator[None]:
    """Context that turns errors of another library's reader into a ValueError that names the file.

    Damage may raise almost any error.

    Args:
        path: the file, which could be opened.
        what: general description of the damage.
    """
    try:
        yield
    except MemoryError as error:
        raise ValueError(f"{path}: takes more memory than there is ({error}).") from None
    except Exception as error:
        if str(error).startswith(str(path)):
            raise
        said = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise ValueError(f"{path}: {what}: {said}.") from None


def require_npz_bounded(path: Path) -> None:
    """`require_bounded` for the arrays in an .npz file; other files are left to their reader."""
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, ValueError, RuntimeError, EOFError):
        return
    require_bounded(path, path.stat().st_size, unpacked)


class _Unpacked(io.RawIOBase):
    """Unpacked contents of a gzip file, as a stream; raises ValueError if the file is broken or too large."""

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
    """Bytes of a file as a stream, unpacked on the fly if the file is packed by gzip.

    Args:
        path: the file.
        data: contents of the file, if they were read already.
        packed: whether it is a gzip file. Default: whether it begins like one.

    Raises:
        ValueError: here or while reading, if it is a broken gzip file, or unpacks to too much.
        OSError: if it cannot be opened.
    """
    file = path.open("rb") if data is None else io.BytesIO(data)
    if packed is None:
        packed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
    return io.BufferedReader(_Unpacked(path, file), 2**20) if packed else file


def require_rereadable(path: Path) -> None:
    """Raises ValueError, before opening it, if `path` is a pipe or a device, which cannot be read twice."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError(
            f"{path}: must be a file, which can be read twice, got a pipe or a device; write it to a file."
        )


def text_source(path: Path) -> Path | bytes:
    """Source that polars can read as text: the path of the file, or its contents if it is packed by gzip.

    Raises:
        ValueError: if it is a broken gzip file, unpacks to too much, or is packed in another way.
        OSError: if it cannot be opened.
    """
    with opened(path) as file:
        unpacked = file.read() if isinstance(getattr(file, "raw", None), _Unpacked) else None
        begin = file.read(4) if unpacked is None else unpacked[:4]
    if begin.startswith(_PACKED):
        raise ValueError(f"{path}: must be text, or text packed once by gzip.")
    return path if unpacked is None else unpacked


def free_memory() -> int | None:
    """Free bytes of memory for this process; None if unknown.

    A container or a job may be allowed less than the machine has (Linux cgroups, versions 1 and 2).
    """
    if not _MEMINFO.is_file():
        return None
    lines = dict(line.split(":", 1) for line in _MEMINFO.read_text(encoding="ascii").splitlines())
    free = [int(lines["MemAvailable"].split()[0]) * 1024, *_left_to_groups()]
    if (most := address_limit()) is not None:
        pages = int(_OWN.read_text(encoding="ascii").split()[0])
        free.append(max(most - pages * os.sysconf("SC_PAGE_SIZE"), 0))
    return min(free)


def address_limit() -> int | None:
    """Bytes of addresses that this process may have (`ulimit -v`); None if there is no limit."""
    if resource is None:
        return None
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if most == resource.RLIM_INFINITY else most


def _left_to_groups() -> Iterator[int]:
    """Bytes that each control group of this process may still take."""
    try:
        groups = _GROUPS.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for group in groups:
        _, kinds, path = group.split(":", 2)
        if kinds not in ("", "memory"):
            continue
        root = _GROUPS_ROOT / kinds
        most, used, cache = _GROUP_FILES[kinds]
        # A container sees its own group at the root, whatever its path is.
        place = root / path.strip("/")
        for folder in (place, *place.parents) if place.is_relative_to(root) else ():
            try:
                limit, taken = ((folder / name).read_text(encoding="ascii") for name in (most, used))
                stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                if limit.strip() != "max":
                    # The kernel frees file pages if memory is short.
                    yield max(0, int(limit) - int(taken) + int(stat.get(cache, 0)))
            except (OSError, ValueError):  # no such group, or no memory limit in it
                pass
            if folder == root:
                break


METADATA_FILE = "metadata.json"


def versions() -> dict[str, str]:
    """Versions of owkg, Python, and the packages that affect random draws and written files."""
    packages = {package: version(package) for package in ("numpy", "polars", "scipy")}
    return {"owkg": __version__, "python": platform.python_version()} | packages


def checksum(path: Path) -> str:
    """SHA-256 of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksums(folder: Path) -> dict[str, str]:
    """SHA-256 of every file in `folder` and its subfolders, except `metadata.json` at the top."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / METADATA_FILE)
    return {path.relative_to(folder).as_posix(): checksum(path) for path in paths}


def write_metadata(folder: Path, content: dict[str, Any]) -> None:
    """Writes `content` as `metadata.json`."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    with written_aside(folder / METADATA_FILE) as aside:
        aside.write_text(text, encoding="utf-8")


def read_metadata(folder: Path) -> dict[str, Any]:
    """Contents of `metadata.json`.

    Raises:
        ValueError: if the file is missing, or holds no checksums.
    """
    path = folder / METADATA_FILE
    if not path.is_file():
        raise ValueError(f"{folder}: holds no {METADATA_FILE}.")
    try:
        content = json.loads(path.read_bytes())
    except RecursionError:
        raise ValueError(f"{path}: must be JSON that is not nested so deep.") from None
    except ValueError as error:
        raise ValueError(f"{path}: must be JSON ({error}).") from None
    sums = content.get("sha256") if isinstance(content, dict) else None
    if not isinstance(sums, dict) or not all(isinstance(found, str) for found in sums.values()):
        raise ValueError(f"{path}: must hold checksums under sha256, got {reprlib.repr(sums)}.")
    return content


@contextmanager
def made_folder(
    path: Path, *, made_by: str, inputs: Iterable[Path] = (), overwrite: bool = False
) -> Iterator[Path]:
    """Context with an empty temporary folder to fill; on success it becomes `path`, on failure it is removed.

    The temporary folder is next to `path`. With `overwrite`, the old folder stays in place until the new one
    is complete. If anything else appears at `path` in the meantime, it is kept. Folders that a killed process
    left while making `path` are removed.

    Args:
        path: the folder.
        made_by: maker of such folders, as stored in their `metadata.json`. Folders of another maker are not
            replaced.
        inputs: files that are read to fill the folder. Default: none.
        overwrite: whether an existing folder may be replaced. Default False.

    Raises:
        ValueError: if `path` exists and may not be replaced, is not a folder, or holds one of `inputs`.
        OSError: if it cannot be written, naming `path`.
    """
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise ValueError(f"{path}: must be a folder, or not there.")
    place = path.absolute()  # "." has no name
    _require_replaceable(path, made_by, overwrite=overwrite)
    real = os.path.realpath(place)
    if held := [file for file in inputs if Path(real) in Path(os.path.realpath(file)).parents]:
        raise ValueError(f"{path}: holds {held[0]}, which is read; it is not replaced.")
    remove_begun(place)
    with ExitStack() as stack:
        try:
            # Locked until the end, so that other processes see that the folder is in use.
            aside = stack.enter_context(
                begun.new_folder(lambda: place.with_name(begun.name_beside(place.name, "new")))
            )
        except OSError as error:
            raise OSError(f"{path}: cannot be made: {error.strerror}.") from None
        old = aside.with_suffix(".old")
        stack.callback(shutil.rmtree, old, ignore_errors=True)
        try:
            with naming_place(path, aside):
                yield aside
                _require_replaceable(path, made_by, overwrite=overwrite)
                if place.exists():
                    place.rename(old)
                aside.rename(place)
        except BaseException:
            if old.exists() and not place.exists():
                old.rename(place)
            raise


def remove_begun(place: Path) -> None:
    """Removes what killed processes left next to `place`: an unfinished new folder or a replaced old one.

    A running process holds a lock on its folder. If an old folder exists and there is nothing at `place`, or
    there is also a new one, both stay, because they may be the only copies.
    """
    names = re.compile(rf"\.{re.escape(begun.short(place.name))}\.{begun.MARK}\.(?P<kind>new|old)")
    with suppress(OSError):  # skip a folder that cannot be listed
        for folder in place.parent.iterdir():
            if not (found := names.fullmatch(folder.name)):
                continue
            if found["kind"] == "new":
                stays = folder.with_suffix(".old").exists()
            else:
                stays = folder.with_suffix(".new").exists() or not place.exists()
            if not stays:
                begun.remove_left(folder, found["kernel"])


def _require_replaceable(path: Path, made_by: str, *, overwrite: bool) -> None:
    """Raises ValueError if something at `path` may not be replaced."""
    if not path.exists():
        return
    if not overwrite:
        raise ValueError(f"{path}: is there already; `overwrite` replaces it as a whole.")
    if any(path.iterdir()) and _maker(path) != made_by:
        raise ValueError(f"{path}: was not made by {made_by}; it is not replaced.")


def _maker(folder: Path) -> Any:
    """Maker of `folder` according to its metadata; None if unknown."""
    try:
        content = json.loads((folder / METADATA_FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content.get("made_by") if isinstance(content, dict) else None
