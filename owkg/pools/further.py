"""Runs of systems: those of a pool, and further ones, whose lists are made as its own were."""

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
"""Runs of `owkg.judge.read_runs`: paths, paths and dictionaries by name, or a frame."""
Graph = StrPath | KnowledgeGraph | None
"""A graph or its folder; None: there is none, and the queries are topics."""


def further_lists(
    runs: Runs, kg: Graph, reading: Reading, people: Population, splits: Sequence[str], *, name: str
) -> pl.DataFrame:
    """The lists of further systems for the queries of a pool, without the known answers that left its own.

    Args:
        runs: of the systems.
        kg: the graph or its folder; None: no answers left the lists of the pool, or queries are topics.
        reading: how the folder of the graph is read.
        people: the population of the pool.
        splits: whose answers left the lists of the pool.
        name: of the argument that names the runs, for messages.

    Raises:
        ValueError: naming `kg`, if it is needed, or has not these splits; naming the argument, if a system
            is in the pool, or does not answer a query of it; naming the file, if it is malformed or a rank
            table.
        OSError: if a file cannot be opened.
    """
    graph = _graph(kg, reading, people, splits)
    require_runs(paths_of(runs))
    with naming({"paths": f"`{name}`"}):
        found = runs if isinstance(runs, pl.DataFrame) else read_runs(runs, topics="allowed", graph=graph)
    if again := sorted(set(found["model"]) & set(people.models)):
        hint = "; `name` gives another name" if name == "add" else ""
        raise ArgumentError(name, f"must be of further systems: {again[0]} is in the pool already{hint}.")
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
    """The files among some runs."""
    if isinstance(runs, pl.DataFrame):
        return []
    sources = list(runs.values() if isinstance(runs, Mapping) else runs)
    return [Path(one) for one in sources if not isinstance(one, Mapping)]


def require_runs(paths: Sequence[Path]) -> None:
    """Raises ValueError naming the file, if one of which judgements are drawn is a rank table."""
    for path in filter(holds_ranks, paths):
        raise ValueError(
            f"{path}: is a rank table, whose lists hold tested answers alone; a draw needs the runs "
            "(owkg rank --lists writes them)."
        )


def unpooled_runs(folder: Path, runs: Iterable[Path]) -> list[Path]:
    """The files of some that were not pooled.

    Raises:
        ValueError: naming a file, if one of its name was pooled and had another content.
    """
    pooled = {one["sha256"]: one["file"] for one in pool_card(folder)["runs"]}
    others = [path for path in runs if checksum(path) not in pooled]
    for path in others:
        if path.name in pooled.values():
            raise ValueError(f"{path}: has changed since it was pooled in {folder}.")
    return others


def _graph(kg: Graph, reading: Reading, people: Population, splits: Sequence[str]) -> KnowledgeGraph | None:
    """The graph whose known answers leave the lists."""
    if (people.queries["relation"] == TOPIC).all():
        if kg is not None:
            raise ArgumentError("kg", "must be absent where queries are topics.")
        return None
    if kg is None:
        if splits:
            raise ArgumentError(
                "kg", f"must be the graph of the pool: its answers in {', '.join(splits)} left the lists."
            )
        return None
    graph = kg if isinstance(kg, KnowledgeGraph) else read_graph(kg, **reading._asdict())
    if lacking := [one for one in splits if one not in fact_splits(graph)]:
        raise ArgumentError("kg", f"must be the graph of the pool: it has no split {lacking[0]}.")
    return graph
