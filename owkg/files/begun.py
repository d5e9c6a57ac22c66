"""Files and folders that are written under another name until they are whole.

A process holds a lock on what it has begun, so that others remove only what killed processes left behind.
Locks by `flock` hold between the containers of one machine, but not always between hosts that share a disk.
So a name also says on which running kernel it was begun. What was begun on another one must be old to be
removed.
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
except ImportError:  # no such locks on this system
    fcntl = None

# Of what a process has begun: random digits, and those of the kernel that it runs on.
MARK = "[0-9a-f]{8}(?P<kernel>[0-9a-f]{8})?"
# Where no lock tells, what has not changed for so long was left behind.
_OLD_S = 24 * 3600.0
# Bytes of a name that leave room for more of it; file systems allow 255.
_ROOM = 200
_FILES = re.compile(rf"\.owkg-{MARK}\.part(\.[A-Za-z0-9]*)?")
_FOLDERS = re.compile(rf"\.owkg-{MARK}\.new")
# Endings that say in which format a file is written.
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,16}")
_BOOT = Path("/proc/sys/kernel/random/boot_id")
# Names that are tried before none is taken to be free.
_TRIES = 100
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


@cache
def _kernel() -> str:
    """Eight digits of the running kernel, the same in all containers on it."""
    try:
        name = _BOOT.read_text(encoding="ascii")
    except OSError:
        name = platform.node()
    return hashlib.sha256(name.encode()).hexdigest()[:8]


def short(name: str) -> str:
    """A name to build longer ones from; that of a long name tells by its checksum what it stands for."""
    data = os.fsencode(name)
    return name if len(data) <= _ROOM else f"{name[:40]}-{hashlib.sha256(data).hexdigest()[:16]}"


def name_beside(name: str, kind: str) -> str:
    """A new hidden name for what becomes `name`, or was it."""
    return f".{short(name)}.{secrets.token_hex(4)}{_kernel()}.{kind}"


def new_file(folder: Path, ending: str) -> tuple[Path, int]:
    """A new empty file in `folder`, which is no link of anyone's, and a descriptor that holds its lock.

    What killed processes left in the folder is removed, once a process.

    Raises:
        OSError: if it cannot be made.
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
        os.close(descriptor)  # taken for one that was left behind


@contextmanager
def new_folder(name: Callable[[], Path], *, private: bool = False) -> Iterator[Path]:
    """Yields a new empty folder, under a lock; it is removed in the end if it still has its name.

    Args:
        name: gives its path, another one each time.
        private: whether only this user may look into it.

    Raises:
        OSError: if it cannot be made.
    """
    tries = 0
    while True:
        path, tries = name(), tries + 1
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.mkdir(mode=0o700 if private else 0o777)
            descriptor = os.open(path, os.O_RDONLY | _NO_LINK) if fcntl else None
        except (FileExistsError, FileNotFoundError):
            if tries == _TRIES:  # where none can be made at all, such as in /proc
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
    """A new name of a folder in `folder`, whose files come to stand in that one."""
    return folder / f".owkg-{secrets.token_hex(4)}{_kernel()}.new"


@contextmanager
def temporary_folder(kind: str) -> Iterator[Path]:
    """Yields a folder for temporary files that only this user may look into.

    It is removed in the end. What killed processes of this user left of the same kind is removed, too.

    Args:
        kind: what its name begins with.

    Raises:
        OSError: if it cannot be made.
    """
    root = Path(tempfile.gettempdir())
    sweep(root, re.compile(rf"{re.escape(kind)}{MARK}"))
    with new_folder(lambda: root / f"{kind}{secrets.token_hex(4)}{_kernel()}", private=True) as path:
        yield path


@cache
def _swept(folder: str) -> None:
    """Removes, once a process, what killed processes left in a folder where files are written."""
    sweep(Path(folder), _FILES)
    sweep(Path(folder), _FOLDERS)


def sweep(folder: Path, names: re.Pattern[str]) -> None:
    """Removes files and folders of such names that killed processes of this user left in `folder`.

    Args:
        folder: to look through; where it cannot be listed, nothing is removed.
        names: a pattern with `MARK` in it.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if found := names.fullmatch(entry.name):
                remove_left(Path(entry.path), found["kernel"])


def remove_left(path: Path, kernel: str | None) -> None:
    """Removes a file or a folder that no living process is at work on, if it is this user's and no link.

    Args:
        path: of it.
        kernel: on which it was begun, by its name; None: on this one.
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
    except OSError:  # what cannot be removed stays
        return
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool | None:
    """Takes the lock: True; False if another process has it, None where there are no locks."""
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
    """Whether neither it nor what is in it has changed for long."""
    changed = [about.st_mtime]
    if stat.S_ISDIR(about.st_mode):
        changed += [one.lstat().st_mtime for one in path.rglob("*")]
    return max(changed) < time.time() - _OLD_S
