"""The options of commands that read several systems."""

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.terminal.tables import plain

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="Rank tables (.parquet, .csv, .tsv; a column model tells systems apart) or TREC runs. A folder "
        "of Parquet files, or a pattern in quotation marks, is one rank table, which need not fit in memory.",
    ),
]
Graph = Annotated[
    Path | None,
    typer.Option(
        "--kg", metavar="DIR", help="Folder of the graph: relation categories, splits, and what runs need."
    ),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        help="A mean that owkg metrics --list shows; several with commas. Or measures of lists, for TREC "
        "runs under --qrels whatever their topics are: AP, nDCG@10, P@10, Recall@100, RR, Rprec, Bpref, "
        "infAP, RBP(p=0.8), Judged@10.",
    ),
]
Ties = Annotated[
    str | None,
    typer.Option(
        help="optimistic, realistic, pessimistic or exact. Absent: realistic, but exact where --qrels leave "
        "open which of several answers of equal rank stands first. Needed where lists leave out answers."
    ),
]
Intersect = Annotated[
    bool,
    typer.Option("--intersect", help="Leave out queries and answers that some system lacks, and count them."),
]


def metrics_named(names: list[str] | None) -> list[Any]:
    """The metrics that --metric names, each once; the usual ones where it is not given.

    Of measures of lists (AP, nDCG@10) the names as they are.
    """
    from owkg.cli.ranks.metrics import split_names
    from owkg.ir.names import measures_named
    from owkg.judge.compare import DEFAULT
    from owkg.metrics.front import metrics_named

    several = [part for name in names or DEFAULT for part in split_names(name)]
    if (measures := measures_named(several)) is not None:
        return [one.name for one in measures]
    return metrics_named(several) or []


def graph_of(folder: Path | None) -> Any:
    """The graph of --kg; None where it is not given."""
    from owkg.kg import read_graph

    return None if folder is None else read_graph(folder)


def split_list(text: str) -> list[str]:
    """The names of a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def names_given(option: str, given: Sequence[str] | None, usual: Sequence[str]) -> list[str]:
    """The names of a repeatable option of lists with commas; the usual ones where it is absent."""
    if given is None:
        return list(usual)
    names = [name for text in given for name in split_list(text)]
    if not names:
        raise ValueError(f"`{option}` must name something, got {given[0]!r}.")
    return names


def note(text: str) -> None:
    """Says something beside the output."""
    print(f"owkg: note: {plain(text)}", file=sys.stderr)


@contextmanager
def noted() -> Iterator[None]:
    """Prints the warnings of the library as notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: note(str(message))
        yield
