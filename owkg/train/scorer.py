"""Models to evaluate, from a run or a file of embeddings, with the part of the graph they have seen."""

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
    """Trained model, the graph to evaluate it on, and the part of the graph it has parameters for."""

    trained: Trained
    graph: KnowledgeGraph
    seen: KnowledgeGraph


class Embedded(NamedTuple):
    """File of embeddings and how to read it: see `owkg.models.import_embeddings`."""

    path: Path
    model: str | None
    options: dict[str, Any]
    layout: str | None
    relation_layout: str | None


def check_source(run: Path | None, file: Embedded | None, kg: Path | None, step: str | None) -> None:
    """Raises an error if an option is missing or superfluous, before any file is read."""
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
        raise FileNotFoundError(f"{file.path}: must be a file, and there is none.")


def read_as(folder: Path, reading: Reading) -> KnowledgeGraph:
    """Graph in a folder, read by `read_graph` with the given options."""
    return read_graph(folder, **reading._asdict())


Read = Callable[[Path, Reading], KnowledgeGraph]


def of_embeddings(file: Embedded, kg: Path, unseen: str, *, read: Read = read_as) -> Scorer:
    """Scorer from a file of embeddings, on the graph that `read` reads in `kg`; `unseen` as in `seen_of`."""
    if file.model is not None:
        kind(file.model)
    found = read_embeddings(file.path)
    name = file.model or found.model
    if name is None:
        raise ArgumentError("embeddings", f"needs --model, because {file.path} does not name its model.")
    graph = read(kg, Reading())
    found = with_labels(found, graph)
    seen = seen_of(file.path, graph, found.entities or (), found.relations or (), unseen)
    layouts = {"layout": file.layout, "relation_layout": file.relation_layout}
    with naming({"layout": "`embedding_layout`", "graph": f"{kg}"}):
        trained = import_embeddings(found, seen, name, **layouts, **file.options)
    return Scorer(trained, graph, seen)


def of_run(run: Path, kg: Path | None, step: str, unseen: str, *, read: Read = read_as) -> Scorer:
    """Scorer from a run of `owkg train`, with a warning if the graph has other facts than in training.

    `kg` is the folder of the graph (None: the folder from training), `step` is "best", "last" or a number.
    `read` gets the options with which the training read the graph, or default options for another folder.
    """
    loaded = load_run(run, step=int(step) if step.isdecimal() else step)
    folder = loaded.graph_folder if kg is None else kg
    if folder is None:
        raise ValueError(f"{run}: does not name the folder of its graph; pass it as `kg`.")
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
    """Part of the graph that a model with these labels has seen; the graph itself if that is all of it.

    Raises:
        ValueError: if a label is not in the graph, or `unseen` is "error" and the graph has labels that the
            model lacks.
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
        warnings.warn(f"{run} does not record the facts it was trained on", stacklevel=3)
    elif other := [name for name in then | now if then.get(name) != now.get(name)]:
        text = f"the facts of {' and '.join(other)} differ from the facts that {run} was trained on"
        warnings.warn(text, stacklevel=3)
