"""Progress on standard error: a bar on a terminal, otherwise a line every 20 seconds."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Event, Thread, Timer
from typing import Any, NamedTuple

from owkg.terminal.tables import one_line

# Seconds before the bar appears; shorter work needs none.
_PATIENCE_S = 1.0
# Seconds between lines.
_EVERY_S = 20.0

Update = Callable[..., None]


class _Told(NamedTuple):
    """State of the work at one call of `update`, with its time."""

    at: float
    done: int
    total: int
    note: str


def progress(title: str, unit: str = "") -> AbstractContextManager[Update]:
    """Context that yields `update(done, total, note="")` and shows progress.

    A bar appears after one second, or a line is printed every 20 seconds, even if `update` is not called.
    Short work prints nothing.

    Args:
        title: name of the work.
        unit: unit of the counts, in the plural.
    """
    from rich.console import Console

    title = one_line(title)
    console = Console(stderr=True)
    return _bar(console, title, unit) if console.is_terminal else _lines(title, unit)


@contextmanager
def _lines(title: str, unit: str) -> Iterator[Update]:
    begin, over = time.monotonic(), Event()
    told: list[_Told] = []

    def update(done: int, total: int, note: str = "") -> None:
        again = told and done < told[-1].done  # the next of several counts began
        told[0 if again else 1 :] = [_Told(time.monotonic(), done, total, note)]  # the first and the last

    def speak() -> None:
        while not over.wait(_EVERY_S):
            with suppress(OSError, ValueError):  # standard error is closed
                print(_line(title, unit, begin, told), file=sys.stderr, flush=True)

    speaker = Thread(target=speak, daemon=True)
    speaker.start()
    try:
        yield update
    finally:
        over.set()
        speaker.join()


def _line(title: str, unit: str, begin: float, told: list[_Told]) -> str:
    """Line with the work done, the time taken, and the time left at the speed since the first update."""
    now, words = time.monotonic(), []
    if told:
        first, last = told[0], told[-1]
        words.append(f"{last.done:,} of {last.total:,} {unit}")
        words += [one_line(last.note)] if last.note else []
        words.append(_duration(now - begin))
        if last.done > first.done:
            left = (last.total - last.done) * (last.at - first.at) / (last.done - first.done)
            words.append(f"{_duration(left)} left")
    else:
        words.append(_duration(now - begin))
    return f"owkg: {title}: {', '.join(words)}"


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


@contextmanager
def _bar(console: Any, title: str, unit: str) -> Iterator[Update]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[counts]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(title, total=None, counts="", note="")
    patience = Timer(_PATIENCE_S, bar.start)

    def update(done: int, total: int, note: str = "") -> None:
        if done < bar.tasks[task].completed:  # the next of several counts began
            bar.reset(task)
        bar.update(
            task, completed=done, total=total, counts=f"{done:,}/{total:,} {unit}", note=one_line(note)
        )

    patience.start()
    try:
        yield update
    finally:
        patience.cancel()
        patience.join()
        bar.stop()
