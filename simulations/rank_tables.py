"""Rank tables of models that are trained here, or of your own models."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from owkg import evaluation
from owkg.files.storage import writable_folder
from owkg.kg import KnowledgeGraph
from owkg.ranks import annotated, read_ranks
from simulations.script import data_folder
from simulations.trained_models import FAMILIES, families, quietly_read, system

DEFAULT = ("umls", "codex-s")
"""Graphs under OWKG_DATA that are used if none is named."""

EMBEDDINGS = {"RotatE": "rotate", "ComplEx": "complex", "TransE": "transe", "DistMult": "distmult"}
"""Small models for `embedding`, which train in a minute on either graph."""

_FACTORED: dict[str, Any] = {"dim": 32, "batch_size": 256}
_SAMPLED: dict[str, Any] = _FACTORED | {"margin": 6.0, "num_negatives": 32, "loss": "logistic"}
_SAMPLED |= {"learning_rate": 1e-2}

Graphs = Annotated[
    list[Path] | None,
    typer.Option(
        "--kg",
        help="Folder of a graph; repeatable.",
        show_default="umls and codex-s under OWKG_DATA; where it is not set, and --quick, families",
    ),
]
Tables = Annotated[
    list[Path] | None,
    typer.Option("--ranks", help="Rank table of your own model; repeatable. Needs exactly one --kg."),
]
Seeds = Annotated[
    int | None, typer.Option(min=1, help="Number of trainings of each model.", show_default="3; 1 quick")
]


@dataclass(frozen=True)
class DataSet:
    """A graph, and the rank table of each model with the popularity of the answers.

    Several seeds of a model are in one table. PROBE of the whole table is then the mean over seeds, as in the
    paper.
    """

    name: str
    graph: KnowledgeGraph
    ranks: dict[str, pl.DataFrame]


def embedding(graph: str, model: str) -> dict[str, Any]:
    """Settings of one of `EMBEDDINGS` on a graph."""
    sampled = model in ("rotate", "transe")
    epochs = {"umls": 20}.get(graph, 10) * (4 if sampled else 1)
    return (_SAMPLED if sampled else _FACTORED) | {"epochs": epochs}


def data_sets(
    systems: Mapping[str, str],
    kg: Sequence[Path],
    ranks: Sequence[Path],
    seeds: int | None,
    quick: bool,
    out: Path,
    how: Callable[[str, str], dict[str, Any]] | None = None,
) -> list[DataSet]:
    """Rank tables of your own models, or of `systems`, which are trained unless `out` already has the run.

    Args:
        systems: names of models by their labels; with `quick`, only the first two.
        kg: folders of graphs; empty: the graphs in `DEFAULT`.
        ranks: your own rank tables, all of one graph.
        seeds: number of trainings of each model; None: 3, or 1 with `quick`.
        quick: whether trainings are short.
        out: folder of the runs.
        how: function from the names of a graph and a model to settings; None: as
            `simulations/trained_models.py`.

    Raises:
        ValueError: if rank tables are not of one graph, or two tables hold models of one name.
    """
    if len({folder.name for folder in kg}) < len(kg):
        raise ValueError("--kg must name folders with different names.")
    if ranks and len(kg) != 1:
        raise ValueError(f"--ranks needs one --kg, the graph of the rank tables, got {len(kg)}.")
    if ranks:
        graph = quietly_read(kg[0])
        return [DataSet(kg[0].name, graph, _own(ranks, graph))]
    folders = list(kg)
    if not folders and not quick:
        folders = [path for name in DEFAULT if (path := data_folder(name)) is not None]
    graphs = {path.name: quietly_read(path) for path in folders} or {FAMILIES: families()}
    runs = writable_folder(out / "runs" / ("quick" if quick else "whole"))
    return [
        DataSet(name, graph, _trained(systems, runs / name, graph, seeds or (1 if quick else 3), quick, how))
        for name, graph in graphs.items()
    ]


def _own(paths: Sequence[Path], graph: KnowledgeGraph) -> dict[str, pl.DataFrame]:
    found: dict[str, pl.DataFrame] = {}
    for path in paths:
        frame = read_ranks(path).frame
        try:
            frame = annotated(frame, graph)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        parts = {path.stem: frame}
        if "model" in frame.columns:
            parts = {str(name): part for (name,), part in frame.group_by("model", maintain_order=True)}
        if twice := sorted(set(parts) & set(found)):
            raise ValueError(f"{path}: model {twice[0]!r} is in another of the rank tables too.")
        found |= {name: part.with_columns(model=pl.lit(name)) for name, part in parts.items()}
    return found


def _trained(
    systems: Mapping[str, str],
    folder: Path,
    graph: KnowledgeGraph,
    seeds: int,
    quick: bool,
    how: Callable[[str, str], dict[str, Any]] | None,
) -> dict[str, pl.DataFrame]:
    found = {}
    for label in list(systems)[: 2 if quick else None]:
        kind, tables = systems[label], []
        settings = how(folder.name, kind) if how else {}
        most = 20 if quick else None
        for seed in range(seeds):
            run = system(folder.name, kind, graph, seed, folder / kind / str(seed), most, **settings)
            table = evaluation.ranks(run.trained, graph, name=label, popularity=True)
            tables.append(table.with_columns(seed=pl.lit(seed)))
        found[label] = pl.concat(tables)
    return found
