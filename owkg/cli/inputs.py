"""Checks of input files and output folders before the work begins; reading of graphs, metrics and notes."""

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from owkg.cli.errors import option_named
from owkg.cli.options import GraphOptions
from owkg.errors import renamed
from owkg.files.storage import is_stream, require_place, require_rereadable, writable_folder
from owkg.terminal.progress import progress
from owkg.terminal.tables import one_line

if TYPE_CHECKING:
    from owkg.kg import KnowledgeGraph
    from owkg.kg.read import Reading
    from owkg.metrics.measures import Metric


def check_readable(paths: Iterable[Path | None]) -> None:
    """Raises OSError for the first file that cannot be opened, and ValueError for a pipe; None is skipped."""
    for path in filter(None, paths):
        require_rereadable(path)
        path.open("rb").close()


def check_writable(paths: Iterable[Path | None], reads: Iterable[Path | None]) -> None:
    """Raises an error if a file of `paths` cannot be written, is named twice, or is one of `reads`."""
    seen: set[str] = set()
    taken = [path for path in filter(None, reads) if path.exists()]
    for out in filter(None, paths):
        require_place(out)
        if is_stream(out):
            continue
        if out.exists() and any(out.samefile(path) for path in taken):
            raise ValueError(f"{out}: cannot be written: it is an input as well.")
        if (real := os.path.realpath(out)) in seen:
            raise ValueError(f"{out}: cannot be written: two options name it.")
        seen.add(real)
        if out.is_dir():
            raise IsADirectoryError(f"{out}: cannot be written: it is a folder.")
        _refuse_split(out)
        there = next(folder for folder in out.absolute().parents if folder.exists())
        if not there.is_dir():
            raise NotADirectoryError(f"{out}: cannot be written: {there.name} is a file.")
        try:
            writable_folder(there)
        except OSError as error:
            raise OSError(f"{out}: cannot be written: {error.strerror}.") from None


def _refuse_split(out: Path) -> None:
    """Raises ValueError if `out` would become part of the graph in its folder."""
    from owkg.kg.layouts import is_part_of_graph

    if is_part_of_graph(out.absolute()):
        raise ValueError(
            f"{out}: cannot be written: its folder holds a graph, and this file would be part of it."
        )


def check_ending(name: str, path: Path | None, *endings: str) -> None:
    """Raises ValueError if the file of an option has none of the `endings`."""
    if path is not None and path.suffix not in endings:
        raise ValueError(
            f"`{name}` must end in {', '.join(endings[:-1])} or {endings[-1]}, got {path.name!r}."
        )


def check_figure(figure: Path | None) -> None:
    """Raises ValueError if `--figure` does not name a picture."""
    check_ending("figure", figure, ".png", ".pdf", ".svg")


@contextmanager
def collected() -> Iterator[list[str]]:
    """Context that yields a list of notes, to which warnings of the library are added."""
    notes: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _telling(lambda text: notes.append(_with_options(text)))
        yield notes


def graph_in(folder: Path, reading: "Reading") -> "KnowledgeGraph":
    """Graph in a folder, read with the settings in `reading`; shows progress."""
    from owkg.kg import read_graph

    with progress(f"Reading {folder}", "steps") as update:
        return read_graph(folder, **reading._asdict(), on_progress=update)


def graph_and_notes(
    folder: Path, how: GraphOptions, *, duplicates: str = "warn"
) -> "tuple[KnowledgeGraph, list[str]]":
    """Graph in a folder, and the warnings about it; `duplicates` is the default of --duplicates."""
    from owkg.kg.read import Reading

    with collected() as notes:
        return graph_in(folder, how.reading(Reading(duplicates=duplicates))), notes


def graph_of(folder: Path | None, how: GraphOptions) -> "KnowledgeGraph | None":
    """Graph of --kg; None if --kg is not given."""
    how.require(folder)
    return None if folder is None else graph_in(folder, how.reading())


def split_names(text: str) -> list[str]:
    """Names in a list with commas; a comma before a number is part of the name before it (probe@1,0)."""
    names: list[str] = []
    for part in text.split(","):
        stripped = part.strip()
        if names and stripped and (stripped[0].isdigit() or stripped[0] == "."):
            names[-1] += "," + stripped
        else:
            names.append(part)
    return names


def metrics_given(names: Sequence[str] | None) -> "list[Metric] | None":
    """Metrics that --metric names, each once; None if --metric is not given."""
    from owkg.metrics.front import metrics_named

    return metrics_named([part for name in names for part in split_names(name)]) if names else None


def names_of_systems(names: Sequence[str] | None) -> list[str]:
    """Metrics or measures of lists that --metric names for several systems. Default: the usual ones."""
    from owkg.judge.compare import DEFAULT

    return [part for name in names or DEFAULT for part in split_names(name)]


def noted_line(text: str) -> None:
    """Prints a note on standard error."""
    print(f"owkg: note: {one_line(_with_options(text))}", file=sys.stderr)


def _with_options(text: str) -> str:
    """Warning of the library in which arguments are named as options."""
    return renamed(text, lambda argument: option_named(argument, None))


@contextmanager
def noted() -> Iterator[None]:
    """Context that prints warnings of the library as notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _telling(noted_line)
        yield


def _telling(tell: Callable[[str], object]) -> Callable[..., None]:
    """Replacement of `warnings.showwarning` that passes each text to `tell` once; JAX's become notes."""
    said: set[str] = set()

    def show(message: Warning | str, _: type[Warning], file: str, *__: object, **___: object) -> None:
        if str(message) not in said:
            said.add(str(message))
            (noted_line if "jax" in Path(file).parts else tell)(str(message))

    return show
