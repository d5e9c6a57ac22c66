"""Lock on the folder of a run, and interrupts of a training."""

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
except ImportError:  # this system has no such locks
    fcntl = None


_Handler = Callable[[int, FrameType | None], object] | int


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keeps other processes from training in `folder`, by a lock on a file next to it.

    The lock has no effect on systems without file locks. Partial folders that a killed process left next to
    it are removed.

    Raises:
        ValueError: if another process is training there.
    """
    place = folder.absolute()
    path = place.with_name(f".{short(place.name)}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = _locked(path)
    except BlockingIOError:
        raise ValueError(f"{folder}: is being trained by another process.") from None
    except OSError:  # no locks, or the folder is not writable: reported elsewhere
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
    """The file at `path`, locked; None if the system has no such locks.

    Raises:
        BlockingIOError: if it is locked already.
    """
    while fcntl is not None:
        file = path.open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The holder of a lock removes the file last, so the file now at this path may be a different one.
            if path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno())):
                return file
        except OSError:
            file.close()
            raise
        file.close()
    return None


@contextmanager
def interrupts() -> Iterator[Callable[[], int]]:
    """Yields a function that returns the first of SIGINT, SIGTERM or SIGHUP, or 0.

    A second signal has its previous effect. Ignored signals stay ignored.
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
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        handler = signal.getsignal(number)
        if handler is not signal.SIG_IGN:
            before[number] = signal.SIG_DFL if handler is None else handler
            signal.signal(number, take)
    try:
        yield lambda: came[0] if came else 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
