"""Runs of a pool, and lists of further systems filtered in the same way."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from owkg.checks import StrPath
from owkg.errors import ArgumentError, naming
from owkg.estimation.population import Population
from owkg.files.storage import checksum
from owkg.judge.runs import read_runs, without_known
from owkg.kg import KnowledgeGraph, fact_splits, read_graph
from owkg.kg.names import TOPIC
from owkg.kg.read import Reading
from owkg.pools.read_back import pool_card
from owkg.ranks.files import holds_ranks

Runs = Mapping[str, Any] | Sequence[StrPath] | pl.DataFrame
"""Runs as `owkg.judge.read_runs` takes them: paths, paths or dictionaries by name, or a frame."""
Graph = StrPath | KnowledgeGraph | None
"""A graph or its folder; None if there is no graph and the queries are topics."""


def further_lists(
    runs: Runs, kg: Graph, reading: Reading, people: Population, splits: Sequence[str], *, name: str
) -> pl.DataFrame:
    """Lists of further systems for the queries of a pool, filtered like the lists of the pool.

    Args:
        runs: runs of the systems.
        kg: the graph or its folder; None: the lists of the pool were not filtered, or queries are topics.
        reading: options for reading the folder of the graph.
        people: the population of the pool.
        splits: splits whose known answers were removed from the lists of the pool.
        name: name of the argument that holds the runs, for error messages.

    Raises:
        ValueError: naming `kg`, if it is needed or lacks one of the splits; naming the argument, if a system
            is in the pool or does not answer a query of it; naming the file, if it is malformed or a rank
            table.
        OSError: if a file cannot be opened.
    """
    graph = _graph(kg, reading, people, splits)
    require_runs(paths_of(runs))
    with naming({"paths": f"`{name}`"}):
        found = runs if isinstance(runs, pl.DataFrame) else read_runs(runs, topics="allowed", graph=graph)
    if again := sorted(set(found["model"]) & set(people.models)):
        hint = "; `name` gives another name" if name == "add" else ""
        raise ArgumentError(name, f"must hold further systems: {again[0]} is already in the pool{hint}.")
    asked = people.queries.select("query")
    found = found.join(asked, on="query", how="semi", maintain_order="left")
    if found.is_empty():
        raise ArgumentError(name, "must answer the queries of the pool, got none of them.")
    wanted = found.select("model").unique(maintain_order=True).join(asked, how="cross")
    lacking = wanted.join(found, on=["model", "query"], how="anti", maintain_order="left")
    if len(lacking):
        model, query = lacking.row(0)
        raise ArgumentError(
            name,
            f"must answer every query of the pool: {model} lacks {len(lacking.filter(model=model)):,} of "
            f"{len(asked):,}, such as {query!r}.",
        )
    return found if graph is None or not splits else without_known(found, graph, list(splits))


def paths_of(runs: Runs) -> list[Path]:
    """Files among some runs."""
    if isinstance(runs, pl.DataFrame):
        return []
    sources = list(runs.values() if isinstance(runs, Mapping) else runs)
    return [Path(one) for one in sources if not isinstance(one, Mapping)]


def require_runs(paths: Sequence[Path]) -> None:
    """Raise ValueError naming the file, if a file for a draw is a rank table."""
    for path in filter(holds_ranks, paths):
        raise ValueError(
            f"{path}: is a rank table, whose lists hold only tested answers; a draw needs the "
            "ranked lists of all candidates (owkg rank --lists and owkg ranks convert --lists write them)."
        )


def unpooled_runs(folder: Path, runs: Iterable[Path]) -> list[Path]:
    """Files of runs that were not pooled.

    Raises:
        ValueError: naming a file, if a file of the same name was pooled with other content.
    """
    pooled = {one["sha256"]: one["file"] for one in pool_card(folder)["runs"]}
    others = [path for path in runs if checksum(path) not in pooled]
    for path in others:
        if path.name in pooled.values():
            raise ValueError(f"{path}: has changed since it was pooled in {folder}.")
    return others


def _graph(kg: Graph, reading: Reading, people: Population, splits: Sequence[str]) -> KnowledgeGraph | None:
    """The graph whose known answers are removed from the lists; None if none are removed."""
    if (people.queries["relation"] == TOPIC).all():
        if kg is not None:
            raise ArgumentError("kg", "must be left out if queries are topics.")
        return None
    if kg is None:
        if splits:
            raise ArgumentError(
                "kg", f"must be the graph of the pool, whose answers in {', '.join(splits)} left the lists."
            )
        return None
    graph = kg if isinstance(kg, KnowledgeGraph) else read_graph(kg, **reading._asdict())
    if lacking := [one for one in splits if one not in fact_splits(graph)]:
        raise ArgumentError("kg", f"must be the graph of the pool: it has no split {lacking[0]}.")
    return graph
