"""Scorers to evaluate: a trained run or a file of embeddings, and what it has seen of the graph."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from owkg.errors import ArgumentError, naming
from owkg.files.storage import read_metadata
from owkg.kg import KnowledgeGraph, read_graph, seen_part
from owkg.kg.read import Reading
from owkg.models import Trained, import_embeddings, read_embeddings
from owkg.models.embeddings_import import refuse_labels, with_labels
from owkg.models.kinds import kind
from owkg.train.folder import facts_checksums
from owkg.train.run import load_run

_UNSEEN = "are not in the file; `unseen` drop leaves their triples out, `unseen` last ranks them last"


class Scorer(NamedTuple):
    """What scores, the graph it is evaluated on, and the part of that which its parameters have rows for."""

    trained: Trained
    graph: KnowledgeGraph
    seen: KnowledgeGraph


class Embedded(NamedTuple):
    """A file of embeddings, and how it is to be read: see `owkg.models.import_embeddings`."""

    path: Path
    model: str | None
    options: dict[str, Any]
    layout: str | None
    relation_layout: str | None


def check_source(run: Path | None, file: Embedded | None, kg: Path | None, step: str | None) -> None:
    """Raises an error for what is missing or too much, before anything is read."""
    if run is not None and file is None:
        if not run.is_dir():
            raise ValueError(
                f"{run}: must be a folder that owkg train or owkg rules wrote, and there is no such folder."
            )
        return
    if file is None or run is not None:
        raise ValueError("name either RUN, a folder of owkg train, or --embeddings.")
    if step is not None:
        raise ArgumentError("step", f"has no effect with --embeddings, got {step!r}.")
    if kg is None:
        raise ArgumentError("embeddings", "needs --kg for the graph.")
    if not file.path.is_file():
        raise FileNotFoundError(f"{file.path}: is no file.")


def read_as(folder: Path, reading: Reading) -> KnowledgeGraph:
    """The graph in a folder, as `read_graph` reads it when told so."""
    return read_graph(folder, **reading._asdict())


Read = Callable[[Path, Reading], KnowledgeGraph]


def of_embeddings(file: Embedded, kg: Path, unseen: str, *, read: Read = read_as) -> Scorer:
    """The scorer of a file of embeddings, on the graph that `read` finds in `kg`; `unseen`: see `seen_of`."""
    if file.model is not None:
        kind(file.model)
    found = read_embeddings(file.path)
    name = file.model or found.model
    if name is None:
        raise ArgumentError("embeddings", f"needs --model: {file.path} does not say which it is of.")
    graph = read(kg, Reading())
    found = with_labels(found, graph)
    seen = seen_of(file.path, graph, found.entities or (), found.relations or (), unseen)
    layouts = {"layout": file.layout, "relation_layout": file.relation_layout}
    with naming({"layout": "`embedding_layout`", "graph": f"{kg}"}):
        trained = import_embeddings(found, seen, name, **layouts, **file.options)
    return Scorer(trained, graph, seen)


def of_run(run: Path, kg: Path | None, step: str, unseen: str, *, read: Read = read_as) -> Scorer:
    """The scorer of a folder of `owkg train`; warns where the graph has other facts than it was trained with.

    `kg` is the folder of the graph (None: that of the training), `step` "best", "last" or a number.
    `read` is told how the graph of the training was read, or of another folder that nothing is known.
    """
    loaded = load_run(run, step=int(step) if step.isdecimal() else step)
    folder = loaded.graph_folder if kg is None else kg
    if folder is None:
        raise ValueError(f"{run}: does not name the folder of its graph; name it by `kg`.")
    same = loaded.graph_folder is not None and folder.absolute() == loaded.graph_folder
    graph = read(folder, loaded.reading if same else Reading())
    seen = graph
    if unseen != "error":
        seen = seen_of(run, graph, loaded.entities, loaded.relations, unseen)
    for what in ("entities", "relations"):
        rows, labels = getattr(loaded, what), getattr(seen, what)
        if rows != labels:
            at = next((i for i, (a, b) in enumerate(zip(rows, labels, strict=False)) if a != b), None)
            found = f"{len(labels)}" if at is None else f"{labels[at]!r} where {rows[at]!r} is"
            more = set(rows) < set(labels)
            hint = "; `unseen` drop or last evaluates on what RUN has seen of it" if more else ""
            raise ValueError(
                f"{folder}: must have the {len(rows)} {what} of {run} in order, got {found}{hint}."
            )
    _warn_of_other_facts(run, seen)
    return Scorer(loaded.trained, graph, seen)


def seen_of(
    source: Path, graph: KnowledgeGraph, entities: Sequence[str], relations: Sequence[str], unseen: str
) -> KnowledgeGraph:
    """The part of the graph that a model of these labels has seen; the graph itself where that is all.

    Raises:
        ValueError: if there is another label, or the graph has more and `unseen` is "error".
    """
    partly = False
    for what, known, labels in (
        ("entity", graph.entities, entities),
        ("relation", graph.relations, relations),
    ):
        refuse_labels(source, what, sorted(set(labels) - set(known)), "are not in the graph")
        missing = sorted(set(known) - set(labels))
        if unseen == "error":
            refuse_labels(source, what, missing, _UNSEEN)
        partly |= bool(missing)
    return seen_part(graph, entities, relations) if partly else graph


def _warn_of_other_facts(run: Path, graph: KnowledgeGraph) -> None:
    then, now = read_metadata(run).get("facts_sha256"), facts_checksums(graph)
    if not isinstance(then, dict):
        warnings.warn(f"{run} does not say what facts it was trained on", stacklevel=3)
    elif other := [name for name in then | now if then.get(name) != now.get(name)]:
        text = f"the facts of {' and '.join(other)} are not those that {run} was trained with"
        warnings.warn(text, stacklevel=3)
