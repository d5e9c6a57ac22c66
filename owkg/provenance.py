"""Folders that are whole or not there, and the `metadata.json` that says where they come from."""

import hashlib
import json
import os
import platform
import re
import reprlib
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None

__version__ = "0.1.0"
METADATA_FILE = "metadata.json"


def versions() -> dict[str, str]:
    """The versions of owkg, Python, and the packages that decide what is drawn and written."""
    packages = {package: version(package) for package in ("numpy", "polars", "scipy")}
    return {"owkg": __version__, "python": platform.python_version()} | packages


def checksum(path: Path) -> str:
    """The SHA-256 of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksums(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file in `folder`, its own folders included, but for `metadata.json` at the top."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / METADATA_FILE)
    return {path.relative_to(folder).as_posix(): checksum(path) for path in paths}


def write_metadata(folder: Path, content: dict[str, Any]) -> None:
    """Writes `content` as `metadata.json`."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    (folder / METADATA_FILE).write_text(text, encoding="utf-8")


def read_metadata(folder: Path) -> dict[str, Any]:
    """What `metadata.json` holds.

    Raises:
        ValueError: if it is not there, or holds no checksums.
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
    """Yields an empty folder beside `path` to fill; on success it becomes `path`, on failure it is removed.

    With `overwrite`, the old folder stays where it is until the new one is whole. Whatever else comes to
    stand at `path` in the meantime is left alone. What a killed process had begun to make of `path` is
    removed.

    Args:
        path: of the folder.
        made_by: what makes such folders, as their `metadata.json` has to say under this name; no other
            folder is replaced.
        inputs: files that are read to fill it.
        overwrite: whether a folder that is there may be replaced.

    Raises:
        ValueError: if `path` is there already and may not be replaced, if it is no folder, or if it holds one
            of `inputs`.
        OSError: if it cannot be written, naming `path`.
    """
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise ValueError(f"{path}: must be a folder, or not there.")
    place = path.absolute()  # "." has no name to write beside
    _require_replaceable(path, made_by, overwrite=overwrite)
    if held := [file for file in inputs if place.resolve() in file.resolve().parents]:
        raise ValueError(f"{path}: holds {held[0]}, which is read; it is not replaced.")
    aside, old = (place.with_name(f".{place.name}.{secrets.token_hex(4)}.{kind}") for kind in ("new", "old"))
    remove_begun(place)
    try:
        aside.mkdir(parents=True)
    except OSError as error:
        raise OSError(f"{path}: cannot be made: {error.strerror}.") from None
    lock = _locked(aside)  # until the end: so others see that someone is at work on it
    try:
        yield aside
        _require_replaceable(path, made_by, overwrite=overwrite)
        if place.exists():
            place.rename(old)
        aside.rename(place)
    except BaseException as error:
        if old.exists() and not place.exists():
            old.rename(place)
        if isinstance(error, OSError) and error.strerror is None and str(aside) in str(error):
            raise OSError(str(error).replace(str(aside), str(path))) from None
        if isinstance(error, OSError) and (error.filename is None or str(aside) in str(error.filename)):
            raise OSError(f"{path}: cannot be written: {error.strerror or error}.") from None
        raise
    finally:
        for folder in (aside, old):
            shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def remove_begun(place: Path) -> None:
    """Removes what killed processes left beside `place`: half a new folder, or an old one that was replaced.

    A process that is at work holds a lock on its folder. Where an old folder stands aside and nothing stands
    at `place`, or a new one beside it, both stay: they may be all that there is.
    """
    begun = re.compile(rf"\.{re.escape(place.name)}\.[0-9a-f]{{8}}\.(new|old)")
    with suppress(OSError):  # what cannot be listed is not tidied
        for folder in place.parent.iterdir():
            kind = begun.fullmatch(folder.name)
            if not kind or folder.is_symlink():
                continue
            if kind[1] == "new":
                stays = folder.with_suffix(".old").exists()
            else:
                stays = folder.with_suffix(".new").exists() or not place.exists()
            if not stays and (lock := _locked(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)


def _locked(folder: Path) -> int | None:
    """A descriptor that holds the lock on `folder`; None if another process does, or there are no locks."""
    if fcntl is None:
        return None
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _require_replaceable(path: Path, made_by: str, *, overwrite: bool) -> None:
    """Raises ValueError if something is at `path` that may not be replaced."""
    if not path.exists():
        return
    if not overwrite:
        raise ValueError(f"{path}: is there already; `overwrite` replaces it as a whole.")
    if any(path.iterdir()) and _maker(path) != made_by:
        raise ValueError(f"{path}: was not made by {made_by}; it is not replaced.")


def _maker(folder: Path) -> Any:
    """What the metadata of `folder` says that it was made by; None if it says nothing."""
    try:
        content = json.loads((folder / METADATA_FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content.get("made_by") if isinstance(content, dict) else None
