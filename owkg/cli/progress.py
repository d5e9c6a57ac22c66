"""A progress bar on standard error, for people only: silent when output is piped or the work is short."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Work that is over sooner needs no bar.
_PATIENCE_S = 1.0


@contextmanager
def progress(title: str, unit: str) -> Iterator[Callable[..., None]]:
    """Yields `update(done, total, note="")`; the bar appears once the work has taken a second.

    Args:
        title: what is being done.
        unit: of the counts, plural.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} " + unit),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    begin = time.monotonic()
    task = None

    def update(done: int, total: int, note: str = "") -> None:
        nonlocal task
        if not bar.console.is_terminal or (task is None and time.monotonic() - begin < _PATIENCE_S):
            return
        if task is None:
            bar.start()
            task = bar.add_task(title, total=total, note=note)
        bar.update(task, completed=done, note=note)

    try:
        yield update
    finally:
        if task is not None:
            bar.stop()
