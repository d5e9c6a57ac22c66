"""Files and folders that are written under a temporary name until they are complete.

A process holds a lock on what it is writing, so that other processes remove only what killed processes left
behind. `flock` locks work between the containers of one machine, but not always between hosts that share a
disk. Therefore a temporary name also identifies the running kernel on which it was made. A file from another
kernel is removed only if it is old.
"""

import hashlib
import os
import platform
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

try:
    import fcntl
except ImportError:  # this system has no such locks
    fcntl = None

# Part of each temporary name: random digits, and digits that identify the running kernel.
MARK = "[0-9a-f]{8}(?P<kernel>[0-9a-f]{8})?"
# Seconds without a change after which a file was left behind, if no lock shows it.
_OLD_S = 24 * 3600.0
# Bytes of a name that leave room for a prefix and a suffix; file systems allow 255.
_ROOM = 200
_FILES = re.compile(rf"\.owkg-{MARK}\.part(\.[A-Za-z0-9]*)?")
_FOLDERS = re.compile(rf"\.owkg-{MARK}\.new")
# Suffixes that determine the format of a file.
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,16}")
_BOOT = Path("/proc/sys/kernel/random/boot_id")
# Names to try before giving up.
_TRIES = 100
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


@cache
def _kernel() -> str:
    """Eight digits that identify the running kernel, the same in all its containers."""
    try:
        name = _BOOT.read_text(encoding="ascii")
    except OSError:
        name = platform.node()
    return hashlib.sha256(name.encode()).hexdigest()[:8]


def short(name: str) -> str:
    """Name from which longer names can be built; a long name is shortened and gets its checksum."""
    data = os.fsencode(name)
    return name if len(data) <= _ROOM else f"{name[:40]}-{hashlib.sha256(data).hexdigest()[:16]}"


def name_beside(name: str, kind: str) -> str:
    """New hidden name of a file or folder that becomes `name`, or was `name` before."""
    return f".{short(name)}.{secrets.token_hex(4)}{_kernel()}.{kind}"


def new_file(folder: Path, ending: str) -> tuple[Path, int]:
    """New empty file in `folder`, not a link, with a descriptor that holds its lock.

    The first call for a folder in each process also removes what killed processes left in it.

    Raises:
        OSError: if the file cannot be made.
    """
    _swept(os.path.realpath(folder))
    ending = ending if _ENDING.fullmatch(ending) else ""
    while True:
        path = folder / f".owkg-{secrets.token_hex(4)}{_kernel()}.part{ending}"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_LINK, 0o666)
        except FileExistsError:
            continue
        if _lock(descriptor) is not False and os.fstat(descriptor).st_nlink:
            return path, descriptor
        os.close(descriptor)  # another process removed it as left behind


@contextmanager
def new_folder(name: Callable[[], Path], *, private: bool = False) -> Iterator[Path]:
    """Context with a new empty folder under a lock; it is removed at the end if it still has its name.

    Args:
        name: function that returns a new path at each call.
        private: whether only this user can access the folder. Default False.

    Raises:
        OSError: if the folder cannot be made.
    """
    tries = 0
    while True:
        path, tries = name(), tries + 1
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.mkdir(mode=0o700 if private else 0o777)
            descriptor = os.open(path, os.O_RDONLY | _NO_LINK) if fcntl else None
        except (FileExistsError, FileNotFoundError):
            if tries == _TRIES:  # no folder can be made there, as in /proc
                raise
            continue
        if descriptor is None or (_lock(descriptor) is not False and path.exists()):
            break
        os.close(descriptor)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def folder_within(folder: Path) -> Path:
    """New path of a folder in `folder`, for files that are moved to `folder` later."""
    return folder / f".owkg-{secrets.token_hex(4)}{_kernel()}.new"


@contextmanager
def temporary_folder(kind: str) -> Iterator[Path]:
    """Context with a folder for temporary files that only this user can access.

    The folder is removed at the end. Folders of the same kind that killed processes of this user left behind
    are removed as well.

    Args:
        kind: beginning of the folder's name.

    Raises:
        OSError: if the folder cannot be made.
    """
    root = Path(tempfile.gettempdir())
    sweep(root, re.compile(rf"{re.escape(kind)}{MARK}"))
    with new_folder(lambda: root / f"{kind}{secrets.token_hex(4)}{_kernel()}", private=True) as path:
        yield path


@cache
def _swept(folder: str) -> None:
    """Removes, once per process, what killed processes left in a folder with written files."""
    sweep(Path(folder), _FILES)
    sweep(Path(folder), _FOLDERS)


def sweep(folder: Path, names: re.Pattern[str]) -> None:
    """Removes files and folders with matching names that killed processes of this user left in `folder`.

    Args:
        folder: folder to search. If it cannot be listed, nothing is removed.
        names: pattern that contains `MARK`.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if found := names.fullmatch(entry.name):
                remove_left(Path(entry.path), found["kernel"])


def remove_left(path: Path, kernel: str | None) -> None:
    """Removes a file or folder of this user on which no living process works; links are kept.

    Args:
        path: file or folder.
        kernel: name of the kernel on which it was made. None: this kernel.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | _NO_LINK | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return
    try:
        about = os.fstat(descriptor)
        if hasattr(os, "getuid") and about.st_uid != os.getuid():
            return
        locked = _lock(descriptor)
        here = kernel in (None, _kernel())
        if locked is False or not ((locked and here) or _is_old(path, about)):
            return
        if stat.S_ISDIR(about.st_mode):
            shutil.rmtree(path, ignore_errors=True)
        elif stat.S_ISREG(about.st_mode):
            path.unlink(missing_ok=True)
    except OSError:  # keep what cannot be removed
        return
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool | None:
    """Takes the lock: True if taken, False if another process holds it, None if there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_old(path: Path, about: os.stat_result) -> bool:
    """Whether the file or folder and its contents have not changed for a long time."""
    changed = [about.st_mtime]
    if stat.S_ISDIR(about.st_mode):
        changed += [one.lstat().st_mtime for one in path.rglob("*")]
    return max(changed) < time.time() - _OLD_S
