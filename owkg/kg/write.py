"""Writing of knowledge graphs to files."""

import re
import warnings
from os import PathLike
from pathlib import Path

import numpy as np
import polars as pl

from owkg.errors import ArgumentError
from owkg.files.storage import written_aside
from owkg.kg.graph import KnowledgeGraph
from owkg.kg.layouts import SPLIT_NAME, graph_files
from owkg.kg.triples import labelled, triples_checked
from owkg.ordered import distinct

# Characters that would end a column or a line, or be taken as a byte order mark; empty labels.
_BREAKS = re.compile(r"[\t\n\r]|^\ufeff|^$")


def write_labelled(graph: KnowledgeGraph, folder: str | PathLike[str]) -> None:
    """Writes a file for each split, `train.txt`, ..., with lines of head, relation, tail, separated by tabs.

    Entities and relations in no triple are lost; a warning counts them. If all labels are whole numbers, only
    `read_graph(folder, layout="labelled")` takes them as labels.

    Args:
        graph: knowledge graph with a train split and without empty splits.
        folder: folder that is created if needed; it must not hold other files of a graph.

    Raises:
        ValueError: if a label is empty or holds a tab or an end of line, if a split is empty or `read_graph`
            would not read its name, or if there are other files of a graph.
    """
    _check(graph)
    for kind, labels, columns in (("entities", graph.entities, [0, 2]), ("relations", graph.relations, [1])):
        used = distinct(np.concatenate([triples[:, columns].ravel() for triples in graph.splits.values()]))
        if used.size < len(labels):
            unused = len(labels) - used.size
            warnings.warn(f"{unused} {kind} are in no triple and are not written.", UserWarning, stacklevel=2)
    tables = {
        f"{name}.txt": labelled(triples, graph.entities, graph.relations)
        for name, triples in graph.splits.items()
    }
    _write(Path(folder), tables, counts=False)


def write_openke(graph: KnowledgeGraph, folder: str | PathLike[str]) -> None:
    """Writes `entity2id.txt`, `relation2id.txt` and `train2id.txt`, ..., each with the number of lines first.

    The further lines are label and id, or the ids of head, tail and relation in this order.

    Args:
        graph, folder: as for `write_labelled`.

    Raises:
        ValueError: as `write_labelled`; if a label ends in a space.
    """
    _check(graph)
    tables = {}
    for kind, labels in (("entity", graph.entities), ("relation", graph.relations)):
        for label in labels:
            if label.endswith(" "):
                raise ArgumentError(
                    "graph", f"must have no {kind} label that ends in a space, got {label!r}."
                )
        tables[f"{kind}2id.txt"] = pl.DataFrame({"label": labels, "id": range(len(labels))})
    for name, triples in graph.splits.items():
        head, relation, tail = triples.T
        tables[f"{name}2id.txt"] = pl.DataFrame({"head": head, "tail": tail, "relation": relation})
    _write(Path(folder), tables, counts=True)


def _check(graph: KnowledgeGraph) -> None:
    """ValueError if a graph cannot be written."""
    if "train" not in graph.splits:
        raise ArgumentError(
            "graph", f"must have the split train, got {', '.join(graph.splits) or 'no splits'}."
        )
    for kind, labels in (("entity", graph.entities), ("relation", graph.relations)):
        if len(set(labels)) < len(labels):
            raise ArgumentError("graph", f"must have each {kind} label once, got one twice.")
        for label in labels:
            if _BREAKS.search(label):
                message = f"`graph` must have {kind} labels that are not empty, without tabs and line ends"
                raise ValueError(f"{message}, got {label!r}.")
    for name, triples in graph.splits.items():
        if not re.fullmatch(SPLIT_NAME, name) or name == "dev":
            expected = "must have splits whose names begin with train, valid, test or missing"
            raise ArgumentError("graph", f"{expected}, got {name!r}.")
        if not triples_checked(triples, graph.num_entities, graph.num_relations, name="graph").size:
            raise ArgumentError("graph", f"must have triples in every split, got none in {name}.")


def _write(folder: Path, tables: dict[str, pl.DataFrame], *, counts: bool) -> None:
    """Writes tables as files of a folder; ValueError if it holds other files of a graph."""
    if others := sorted(graph_files(folder) - tables.keys()):
        raise ValueError(f"{folder}: must hold no other files of a graph, got {', '.join(others)}.")
    for name, table in tables.items():
        with written_aside(folder / name) as aside, aside.open("wb") as file:
            if counts:
                file.write(b"%d\n" % len(table))
            separator = "\t" if not counts or "label" in table.columns else " "
            table.write_csv(file, include_header=False, separator=separator, quote_style="never")
