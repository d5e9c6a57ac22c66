"""Input of an audit: the rank tables of systems, and their lists."""

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from owkg.errors import ArgumentError
from owkg.ir.trec import read_run
from owkg.judge.named import names_of, only_name, renamed, sources_of
from owkg.judge.runs import read_runs
from owkg.judge.schema import RUN, checked
from owkg.judge.streamed import dataset_of
from owkg.judge.systems import Qrels, System, qrels_ranks, tie_rule
from owkg.kg import KnowledgeGraph
from owkg.ranks import RankTable, ranks_from_run
from owkg.ranks.dataset import is_dataset
from owkg.ranks.files import holds_ranks
from owkg.ranks.reading import PLAIN, TableReading

Lists = Mapping[str, Any] | Iterable[str | PathLike[str]] | str | PathLike[str] | pl.DataFrame
"""Runs of systems: frames or files by name, paths of runs, or one frame with a column model."""


def systems_of(
    systems: Mapping[str, System] | Iterable[str | PathLike[str]],
    qrels: Qrels | None,
    graph: KnowledgeGraph | None,
    ties: str | None,
    reading: TableReading = PLAIN,
) -> tuple[dict[str, RankTable], str, dict[str, pl.DataFrame] | None]:
    """Filtered rank tables of systems, the tie rule, and the lists of systems that list every candidate.

    TREC runs without a graph must list every candidate, so that they are their own lists. Otherwise the lists
    are None.

    Raises:
        ValueError: naming the argument or the file, if a table is malformed or not filtered, or a run does
            not list every candidate.
    """
    runs = None
    if isinstance(systems, Iterable) and not isinstance(systems, str | pl.DataFrame):
        systems = systems if isinstance(systems, Mapping) else list(systems)
        # All ranks must fit in memory.
        dataset_of(systems, ties=ties, needs={"systems": True}, reading=reading, lacking=graph is not None)
        sources = sources_of("systems", systems, what="rank tables or paths by name, or a list of paths")
        files = [(name, of) for name, of in sources if isinstance(of, Path) and _is_run(of)]
        if files and graph is None:
            if reading.said and len(files) == len(sources):
                raise ArgumentError(reading.said, "applies to rank tables, but every system is a TREC run.")
            if len(files) < len(sources):
                raise ArgumentError("graph", "must be given with both TREC runs and rank tables.")
            tables: Mapping[str, Any]
            tables, runs = _whole_runs(files, qrels)
            systems, qrels = tables, None
    sets = qrels_ranks(systems, qrels, graph, reading=reading)
    for name, table in sets[0].tables.items():
        if "filtered" in table.frame.columns and not table.frame["filtered"].all():
            raise ArgumentError(
                "systems",
                f"must hold filtered ranks, but the ranks of {name!r} are raw: they count known answers.",
            )
        if "weight" in table.frame.columns and (table.frame["weight"] != 1).any():
            raise ArgumentError(
                "systems", f"must not be weighted, because answers are counted, but {name!r} has weights."
            )
        if (bad := table.frame["side"].cast(pl.String).is_in(["head", "tail"]).not_()).any():
            raise ArgumentError(
                "systems",
                f"must rank only heads and tails, but {name!r} ranks {table.frame['side'].filter(bad)[0]}s.",
            )
    return sets[0].tables, tie_rule(ties, sets), runs


def _is_run(path: Path) -> bool:
    return path.exists() and not holds_ranks(path) and not is_dataset(path)


def _whole_runs(
    files: list[tuple[str | None, Path]], qrels: Qrels | None
) -> tuple[dict[str, RankTable], dict[str, pl.DataFrame]]:
    """Rank tables of runs that list every candidate, and the runs, by system."""
    if not isinstance(qrels, str | PathLike) or not Path(qrels).is_file():
        raise ArgumentError("qrels", "must be a file that says which answers are relevant, for TREC runs.")
    ranked: list[dict[str, pl.DataFrame]] = []
    listed: list[dict[str, pl.DataFrame]] = []
    for called, path in files:
        run = read_run(path, topics="allowed")
        size = run["answer"].n_unique()
        shortest = run.group_by("tag", "query").agg(pl.len())["len"].min()
        if isinstance(shortest, int) and 2 * shortest < size:
            raise ValueError(
                f"{path}: lists {shortest:,} of {size:,} answers to some query, so `graph` must be given to "
                "define the candidates."
            )
        named = pl.concat([run["answer"], run["entity"]]).n_unique()
        table, notes = ranks_from_run(path, qrels=qrels, num_entities=named)
        # An entity that no query lists, such as a topic, is not a candidate.
        table = table.with_columns(pl.col("candidates") - (named - size))
        if lacking := [note for note in notes if "not retrieved" in note or "not in the run" in note]:
            raise ValueError(f"{path}: {lacking[0]}; without `graph` a run must list every candidate.")
        ranked.append(_by_model(table))
        listed.append(_by_model(run.rename({"tag": "model"}).select(RUN)))
        if called is not None:
            only_name(path, list(listed[-1]), called)
            ranked[-1], listed[-1] = ({called: one} for each in (ranked, listed) for one in each[-1].values())
    given = files[0][0] is not None
    names = names_of([path for _, path in files], [list(one) for one in listed], [given] * len(files))
    found = {
        new[name]: RankTable.trusted(renamed(one, "model", {name: new[name]}))
        for new, tables in zip(names, ranked, strict=True)
        for name, one in tables.items()
    }
    return found, {new[name]: one for new, of in zip(names, listed, strict=True) for name, one in of.items()}


def lists_of(lists: Lists, systems: tuple[str, ...]) -> tuple[dict[str, pl.DataFrame], str]:
    """Run of each system, and a note if the runs are matched to the systems by order.

    The name of a run is its model (the tag of a TREC run, or the file if several files have one tag). If no
    run has the name of a system, and there are as many runs as systems, they are matched by order.

    Raises:
        ValueError: naming the system without a list.
    """
    if isinstance(lists, pl.DataFrame):
        frames = _by_model(checked("lists", lists, RUN))
    elif isinstance(lists, Mapping):
        frames = {
            str(name): checked("lists", of, RUN) if isinstance(of, pl.DataFrame) else read_runs({name: of})
            for name, of in lists.items()
        }
    else:
        frames = _by_model(read_runs([lists] if isinstance(lists, str | PathLike) else lists))
    placed = ""
    if len(frames) == len(systems) and not set(frames) & set(systems):
        pairs = ", ".join(f"{name} has {of!r}" for name, of in zip(systems, frames, strict=True))
        placed = f"no list has the name of a system, so lists are matched to systems by order: {pairs}."
        frames = dict(zip(systems, frames.values(), strict=True))
    if lacking := [name for name in systems if name not in frames]:
        raise ArgumentError(
            "lists", f"must include a list of {lacking[0]!r}, got lists of {', '.join(frames)}."
        )
    return {name: frames[name] for name in systems}, placed


def _by_model(frame: pl.DataFrame) -> dict[str, pl.DataFrame]:
    parts = frame.partition_by("model", as_dict=True, maintain_order=True)
    return {str(model): part for (model,), part in parts.items()}
