"""Checks of input files and output folders before the work begins."""

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from owkg.terminal.progress import progress


def check_readable(paths: Iterable[Path | None]) -> None:
    """Raises the OSError of the first file that cannot be opened; None is no file."""
    for path in filter(None, paths):
        path.open("rb").close()


def check_writable(paths: Iterable[Path | None], reads: Iterable[Path | None]) -> None:
    """Stops where a file cannot be written, or is read; nothing is made, but the nearest folder is tried."""
    from owkg.files.storage import writable_folder

    seen: set[Path] = set()
    taken = [path for path in filter(None, reads) if path.exists()]
    for out in filter(None, paths):
        if out.exists() and any(out.samefile(path) for path in taken):
            raise ValueError(f"{out}: cannot be written: it is read as well.")
        if out.resolve() in seen:
            raise ValueError(f"{out}: cannot be written twice: two options name it.")
        seen.add(out.resolve())
        if out.is_dir():
            raise IsADirectoryError(f"{out}: cannot be written: it is a folder.")
        there = next(folder for folder in out.absolute().parents if folder.exists())
        try:
            writable_folder(there)
        except OSError as error:
            raise OSError(f"{out}: cannot be written: {error.strerror}.") from None


def check_figure(figure: Path | None) -> None:
    """Stops where `--figure` names no picture."""
    if figure is not None and figure.suffix not in (".png", ".pdf", ".svg"):
        raise ValueError(f"`figure` must end in .png, .pdf or .svg, got {figure.name!r}.")


@contextmanager
def collected() -> Iterator[list[str]]:
    """The warnings of the library within, as notes."""
    notes: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: notes.append(str(message))
        yield notes


def graph_in(folder: Path, **options: Any) -> Any:
    """The graph in a folder, as `read_graph` takes the options; tells progress."""
    from owkg.kg import read_graph

    with progress(f"Reading {folder}", "steps") as update:
        return read_graph(folder, on_progress=update, **options)


def graph_and_notes(folder: Path, **options: Any) -> tuple[Any, list[str]]:
    """The graph in a folder, and the warnings about it."""
    with collected() as notes:
        return graph_in(folder, **options), notes
