"""What a command reads and where it writes, looked at before the work and not after it."""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from owkg.cli.progress import progress


def check_readable(paths: Iterable[Path | None]) -> None:
    """Raises the OSError of the first file that cannot be opened; None is no file."""
    for path in filter(None, paths):
        path.open("rb").close()


def check_writable(paths: Iterable[Path | None]) -> None:
    """Stops where a file cannot be written; nothing is made, but the nearest folder is tried."""
    from owkg.files import writable_folder

    for out in filter(None, paths):
        if out.is_dir():
            raise IsADirectoryError(f"{out}: cannot be written: it is a folder.")
        there = next(folder for folder in out.absolute().parents if folder.exists())
        try:
            writable_folder(there)
        except OSError as error:
            raise OSError(f"{out}: cannot be written: {error.strerror}.") from None


def graph_and_notes(folder: Path, **options: Any) -> tuple[Any, list[str]]:
    """The graph in a folder, as `read_graph` takes the options, and the warnings about it; tells progress."""
    from owkg.kg import read_graph

    with (
        progress(f"Reading {folder}", "steps") as update,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always", UserWarning)
        graph = read_graph(folder, on_progress=update, **options)
    return graph, [str(warning.message) for warning in caught]
