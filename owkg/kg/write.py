"""Knowledge graphs into files."""

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

# What would end a column or a line, or be taken for a byte order mark.
_BREAKS = re.compile(r"[\t\n\r]|^\ufeff|^$")


def write_labelled(graph: KnowledgeGraph, folder: str | PathLike[str]) -> None:
    """Writes a file a split, `train.txt`, ...: lines of head, relation, tail, separated by tabs.

    Entities and relations in no triple are lost; a warning counts them. Where all labels are whole
    numbers, only `read_graph(folder, layout="labelled")` takes them for labels.

    Args:
        graph: with a train split, and no empty one.
        folder: made if it is not there; may hold no other files of a graph.

    Raises:
        ValueError: if a label is empty or holds a tab or an end of line, if a split is empty or its name is
            none that `read_graph` reads, or if other files of a graph are there.
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
    """Writes `entity2id.txt`, `relation2id.txt`, and `train2id.txt`, ...: the number of lines first.

    Then label and id, or the ids of head, tail, relation in this order.

    Args and Raises: as `write_labelled`; ValueError also if a label ends in a space.
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
    if "train" not in graph.splits:
        raise ArgumentError(
            "graph", f"must have the split train, got {', '.join(graph.splits) or 'no splits'}."
        )
    for kind, labels in (("entity", graph.entities), ("relation", graph.relations)):
        if len(set(labels)) < len(labels):
            raise ArgumentError("graph", f"must have each {kind} label once, got one twice.")
        for label in labels:
            if _BREAKS.search(label):
                message = f"`graph` must have {kind} labels without tabs and line ends, and none empty"
                raise ValueError(f"{message}, got {label!r}.")
    for name, triples in graph.splits.items():
        if not re.fullmatch(SPLIT_NAME, name) or name == "dev":
            expected = "must have splits whose names begin with train, valid, test or missing"
            raise ArgumentError("graph", f"{expected}, got {name!r}.")
        if not triples_checked(triples, graph.num_entities, graph.num_relations, name="graph").size:
            raise ArgumentError("graph", f"must have triples in every split, got none in {name}.")


def _write(folder: Path, tables: dict[str, pl.DataFrame], *, counts: bool) -> None:
    if others := sorted(graph_files(folder) - tables.keys()):
        raise ValueError(f"{folder}: must hold no other files of a graph, got {', '.join(others)}.")
    for name, table in tables.items():
        with written_aside(folder / name) as aside, aside.open("wb") as file:
            if counts:
                file.write(b"%d\n" % len(table))
            separator = "\t" if not counts or "label" in table.columns else " "
            table.write_csv(file, include_header=False, separator=separator, quote_style="never")
