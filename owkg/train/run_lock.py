"""Training in a folder by one process at a time, and interrupted in order."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO

from owkg.files.begun import short
from owkg.files.storage import remove_begun

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None


_Handler = Callable[[int, FrameType | None], object] | int


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keeps other processes from training in `folder`, by a lock on a file beside it, where there are locks.

    What a killed process left there half made, under a name beside it, is removed.

    Raises:
        ValueError: if another process does.
    """
    place = folder.absolute()
    path = place.with_name(f".{short(place.name)}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = _locked(path)
    except BlockingIOError:
        raise ValueError(f"{folder}: is being trained by another process.") from None
    except OSError:  # no locks here, or nothing can be written: that is for others to say
        file = None
    try:
        if file is not None:
            remove_begun(place)
        yield
    finally:
        if file is not None:
            path.unlink(missing_ok=True)
            file.close()


def _locked(path: Path) -> IO[str] | None:
    """The file at `path`, locked; None where the system has no such locks.

    Raises:
        BlockingIOError: if it is locked already.
    """
    while fcntl is not None:
        file = path.open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever held the lock removes the file last: it may be another one that stands there now.
            if path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno())):
                return file
        except OSError:
            file.close()
            raise
        file.close()
    return None


@contextmanager
def interrupts() -> Iterator[Callable[[], int]]:
    """Yields the signal that came, SIGINT or SIGTERM, 0 if none did; the second does what it did before.

    Signals that are ignored stay so.
    """
    came: list[int] = []
    before: dict[int, _Handler] = {}

    def take(number: int, _: FrameType | None) -> None:
        if came:
            signal.signal(number, before[number])
            signal.raise_signal(number)
        came.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: 0
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(number)
        if handler is not signal.SIG_IGN:
            before[number] = signal.SIG_DFL if handler is None else handler
            signal.signal(number, take)
    try:
        yield lambda: came[0] if came else 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
