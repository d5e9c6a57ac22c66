"""Importers of all kinds of files of ranks, and conversion to rank tables."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from owkg import checks, plugins
from owkg.errors import ArgumentError, naming
from owkg.files.delimited import header, separator
from owkg.kg.graph import KnowledgeGraph, graph_checked
from owkg.ranks import matrices, sampled
from owkg.ranks.build import default_filters
from owkg.ranks.dataset import RankDataset, is_dataset
from owkg.ranks.files import own_importer, read_lacking
from owkg.ranks.formats import kind_of
from owkg.ranks.imported import OWN, Imported, Importer
from owkg.ranks.partitions import in_parts
from owkg.ranks.reading import TableReading, names_of
from owkg.ranks.runs import ranks_from_run


def _table(
    path: Path,
    graph: KnowledgeGraph | None,
    *,
    untied: bool = False,
    realistic: bool = False,
    num_candidates: int | None = None,
    columns: Mapping[str, str] | None = None,
    ids: bool = False,
    split: str | None = None,
    filter_splits: Sequence[str] | None = None,
) -> Imported:
    """Rank table or rank list."""
    with naming({"candidates": "`num_candidates`"}):
        reading = TableReading(columns or {}, untied, realistic, num_candidates, ids, split, filter_splits)
        if graph is None and (filter_splits or split is not None):
            option = "filter_splits" if filter_splits else "split"
            raise ArgumentError(option, "needs a graph (`kg`) that has these splits.")
        for option in ("untied", "realistic"):
            if getattr(reading, option) and not _lists_ranks(path, reading):
                raise ArgumentError(option, f"has no effect on a rank table, which {path} is.")
        if is_dataset(path):
            in_parts(RankDataset.of(path, reading, lacking=graph is not None).rows, needed_by="path")
        read = read_lacking(path, graph, reading, complete=graph is not None)
    return Imported(read.frame, dict(read.about))


def _lists_ranks(path: Path, reading: TableReading) -> bool:
    """Whether a file has ranks without ties, as far as its columns tell."""
    if is_dataset(path) or separator(path) is None:
        return True
    names = set(names_of(header(path), reading, source=str(path), told=False).values())
    return not {"optimistic", "pessimistic"} <= names or "rank" in names


def _scores(
    path: Path,
    graph: KnowledgeGraph | None,
    *,
    filter_splits: Sequence[str] | None = None,
    tolerance: float = 0.0,
    score: bool = False,
    unseen: str = "error",
    sort: str | None = None,
) -> Imported:
    """Score matrices."""
    options = {"filter_splits": filter_splits, "tolerance": tolerance, "score": score, "sort": sort}
    table, about = matrices.converted_matrix(path, graph, unseen=unseen, **options)
    return Imported(table, about if sort is None else about | {"sort": sort})


def _run(
    path: Path,
    graph: KnowledgeGraph | None,
    *,
    qrels: Path | None = None,
    split: str | None = None,
    num_entities: int | None = None,
    filter_splits: Sequence[str] | None = None,
    tolerance: float = 0.0,
    unanswered: bool = False,
) -> Imported:
    """TREC run."""
    about: dict[str, Any] = {}
    if graph is not None:
        split = "test" if qrels is None and split is None else split
        filter_splits = default_filters(graph, split) if filter_splits is None else filter_splits
        about = {"split": split, "filter": list(filter_splits)}
        about |= {} if qrels is None else {"qrels": Path(qrels).name}
    table, notes = ranks_from_run(
        path,
        graph,
        qrels=qrels,
        split=split,
        num_entities=num_entities,
        filter_splits=filter_splits,
        tolerance=tolerance,
        unanswered=unanswered,
    )
    return Imported(table, about, notes)


def _sampled(path: Path, graph: KnowledgeGraph | None, *, num_entities: int | None = None) -> Imported:
    """Scores of sampled negatives."""
    arrays = matrices.evaluator_arrays(path)
    notes = ()
    if sampled.shares_negatives(arrays):
        held = arrays["y_pred_neg"]
        why = "has one dimension" if held.ndim == 1 else f"is of shape {[*held.shape]}"
        notes = (f"{path}: all queries share {held.size:,} negatives, because y_pred_neg {why}",)
    return Imported(sampled.converted_sampled(path, arrays, num_entities), {}, notes)


_FILTERED = ("graph", "filter_splits")
_OF_TABLES = (*_FILTERED, "untied", "realistic", "num_candidates", "columns", "ids", "split")
IMPORTERS = {
    one.name: one
    for one in (
        Importer("table", "a rank table", _table, _OF_TABLES),
        Importer("list", "a rank list", _table, _OF_TABLES),
        Importer("scores", "score matrices", _scores, (*_FILTERED, "tolerance", "score", "unseen", "sort")),
        Importer(
            "run", "a run", _run, (*_FILTERED, "qrels", "split", "num_entities", "tolerance", "unanswered")
        ),
        Importer("sampled", "ranks among sampled negatives (OGB, TGB)", _sampled, ("num_entities",)),
    )
}
"""Importers of owkg by name; `register_importer` adds importers of users."""


def importers() -> dict[str, Importer]:
    """All importers by name; importers of users come last."""
    plugins.load()
    return IMPORTERS | OWN


def register_importer(importer: Importer) -> None:
    """Adds a kind of file for `convert`, `read_ranks` and all commands that read ranks.

    Commands first import the modules that the environment variable `OWKG_PLUGINS` names. An earlier importer
    of the same name is replaced.

    Args:
        importer: importer whose `holds` tells by name and content whether a file is of its kind.

    Raises:
        ValueError: if it is not an importer, has no `holds`, or has the name of an importer of owkg.
    """
    if not isinstance(importer, Importer) or not callable(importer.read) or not callable(importer.holds):
        raise ArgumentError(
            "importer", f"must be an owkg.ranks.Importer with read and holds, got {importer!r}."
        )
    if not isinstance(importer.name, str) or not importer.name or not isinstance(importer.what, str):
        raise ArgumentError("importer", f"must have the texts name and what, got {importer!r}.")
    if importer.name in IMPORTERS:
        raise ArgumentError("importer", f"must have a new name, got {importer.name!r}, which owkg uses.")
    OWN[importer.name] = importer


def importer_of(path: Path, kind: str | None, options: Iterable[str]) -> Importer:
    """Importer of that name, or the importer for the name and content of a file.

    Raises:
        ValueError: if there is none, or an option has no effect on its files.
    """
    known = importers()
    if kind is not None and kind not in known:
        raise ArgumentError("kind", f"must be one of {', '.join(known)}, got {kind!r}.")
    found = own_importer(path) if kind is None else known[kind]
    found = known[kind_of(path)] if found is None else found
    for name in options:
        if name not in found.options:
            hint = "; `kg` gives its ids" if name == "ids" else ""
            raise ArgumentError(name, f"has no effect on {found.what}, which {path} is{hint}.")
    return found


def convert(
    path: str | Path, kind: str | None = None, graph: KnowledgeGraph | None = None, **options: Any
) -> Imported:
    """Rank table from a file of ranks, scores or retrieved answers.

    Args:
        path: path of the file.
        kind: name of an importer. Default: chosen by name and content of the file.
        graph: knowledge graph whose labels the file uses; it gives candidates, filters and popularity.
            Default: none.
        **options: options of the importer; None for its default.

    Returns:
        Table, how it was made, and notes for the user.

    Raises:
        ValueError: naming the file and the place; if the file is of no kind, or an option has no effect on
            it.
        OSError: if the file cannot be opened.
    """
    path = checks.path("path", path)
    if graph is not None:
        graph_checked(graph)
    given = {name: value for name, value in options.items() if value is not None}
    chosen = importer_of(path, kind, ([] if graph is None else ["graph"]) + list(given))
    return chosen.imported(path, graph, **given)
