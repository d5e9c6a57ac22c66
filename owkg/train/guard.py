"""Training in a folder: one process at a time, interrupted in order; what comes to nothing leaves nothing."""

import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from owkg import provenance

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keeps other processes from training in `folder`, where there are such locks, if there is a run.

    Raises:
        ValueError: if another process does.
    """
    path = folder / provenance.METADATA_FILE
    if fcntl is None or not path.is_file():
        yield
        return
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"{folder}: is being trained by another process.") from None
        yield


@contextmanager
def gone_if_empty(folder: Path, kept: Path) -> Iterator[None]:
    """Removes `folder` when what is done in it fails while there is nothing in `kept`, a folder of it."""
    try:
        yield
    except BaseException:
        if not (kept.is_dir() and any(kept.iterdir())):
            shutil.rmtree(folder, ignore_errors=True)
        raise


@contextmanager
def interrupts() -> Iterator[Callable[[], int]]:
    """Yields the signal that came, 0 if none did; a second one interrupts at once."""
    came: list[int] = []

    def take(number: int, _: Any) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: 0
        return
    before = {number: signal.signal(number, take) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: came[0] if came else 0
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
