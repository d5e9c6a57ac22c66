"""What an audit reads: the rank tables of systems, and their lists."""

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from owkg import checks
from owkg.errors import ArgumentError
from owkg.ir.trec import read_run
from owkg.judge.runs import read_runs
from owkg.judge.schema import RUN, checked
from owkg.judge.streamed import dataset_of
from owkg.judge.systems import Qrels, System, qrels_ranks, tie_rule
from owkg.kg import KnowledgeGraph
from owkg.ranks import RankTable, ranks_from_run
from owkg.ranks.dataset import is_dataset
from owkg.ranks.files import holds_ranks
from owkg.ranks.reading import PLAIN, Reading

Lists = Mapping[str, pl.DataFrame] | Iterable[str | PathLike[str]] | pl.DataFrame
"""Runs of systems: by name, or the paths of TREC runs, or one frame with a column model."""


def systems_of(
    systems: Mapping[str, System] | Iterable[str | PathLike[str]],
    qrels: Qrels | None,
    graph: KnowledgeGraph | None,
    ties: str | None,
    reading: Reading = PLAIN,
) -> tuple[dict[str, RankTable], str, dict[str, pl.DataFrame] | None]:
    """The filtered rank tables of systems, the tie rule, and the lists of systems that list every candidate.

    TREC runs without a graph must list every candidate: they are their own lists. Else these are None.

    Raises:
        ValueError: naming the argument or the file, if a table is malformed or not filtered, or a run is
            not whole.
    """
    runs = None
    if isinstance(systems, Iterable) and not isinstance(systems, Mapping | str | pl.DataFrame):
        systems = list(systems)
        # All ranks must fit in memory.
        dataset_of(systems, ties=ties, needs={"systems": True}, reading=reading, lacking=graph is not None)
        named = [path for path in systems if isinstance(path, str | PathLike)]
        paths = [path for path in named if not holds_ranks(Path(path)) and not is_dataset(path)]
        if paths and graph is None:
            if reading.said and len(paths) == len(systems):
                raise ArgumentError(reading.said, "is of rank tables, and every system is a TREC run.")
            if len(paths) < len(systems):
                raise ArgumentError("graph", "must be given where TREC runs stand beside rank tables.")
            files = [checks.path("systems", path) for path in paths]
            tables: Mapping[str, Any]
            tables, runs = _whole_runs(files, qrels)
            systems, qrels = tables, None
    sets = qrels_ranks(systems, qrels, graph, reading=reading)
    for name, table in sets[0].tables.items():
        if "filtered" in table.frame.columns and not table.frame["filtered"].all():
            raise ArgumentError(
                "systems",
                f"must hold filtered ranks; those of {name!r} are raw: known answers stand in the way.",
            )
        if "weight" in table.frame.columns and (table.frame["weight"] != 1).any():
            raise ArgumentError(
                "systems", f"must not be weighted: numbers of answers are counted; {name!r} has weights."
            )
        if (bad := table.frame["side"].cast(pl.String).is_in(["head", "tail"]).not_()).any():
            raise ArgumentError(
                "systems",
                f"must rank heads and tails alone; {name!r} ranks {table.frame['side'].filter(bad)[0]}s.",
            )
    return sets[0].tables, tie_rule(ties, sets), runs


def _whole_runs(
    paths: list[Path], qrels: Qrels | None
) -> tuple[dict[str, RankTable], dict[str, pl.DataFrame]]:
    """The rank tables of runs that list every candidate, and the runs, by system."""
    if not isinstance(qrels, str | PathLike) or not Path(qrels).is_file():
        raise ArgumentError("qrels", "must be a file that says which answers are relevant, for TREC runs.")
    found: dict[str, RankTable] = {}
    runs: dict[str, pl.DataFrame] = {}
    for path in paths:
        run = read_run(path, topics="allowed")
        size = run["answer"].n_unique()
        shortest = run.group_by("tag", "query").agg(pl.len())["len"].min()
        if isinstance(shortest, int) and 2 * shortest < size:
            raise ValueError(
                f"{path}: lists {shortest:,} of {size:,} answers to some query: `graph` must say what the "
                "candidates are."
            )
        named = pl.concat([run["answer"], run["entity"]]).n_unique()
        table, notes = ranks_from_run(path, qrels=qrels, num_entities=named)
        # What no query lists, such as a topic, is a candidate of none.
        table = table.with_columns(pl.col("candidates") - (named - size))
        if lacking := [note for note in notes if "not retrieved" in note or "not in the run" in note]:
            raise ValueError(f"{path}: {lacking[0]}; without `graph` a run must list every candidate.")
        for (model,), part in table.partition_by("model", as_dict=True, maintain_order=True).items():
            if model in found:
                raise ValueError(f"{path}: the system {model!r} is in another file too.")
            found[str(model)] = RankTable.trusted(part)
        runs |= _by_model(run.rename({"tag": "model"}).select(RUN))
    return found, runs


def lists_of(lists: Lists, systems: tuple[str, ...]) -> dict[str, pl.DataFrame]:
    """The run of each system.

    Runs are told apart by their model (the tag of a TREC run). Where none is called as a system is, and there
    are as many, they are in the order of the systems.

    Raises:
        ValueError: naming the system without a list.
    """
    if isinstance(lists, pl.DataFrame):
        frames = _by_model(checked("lists", lists, RUN))
    elif isinstance(lists, Mapping):
        frames = {str(name): checked("lists", frame, RUN) for name, frame in lists.items()}
    else:
        frames = _by_model(read_runs([lists] if isinstance(lists, str | PathLike) else lists))
    if len(frames) == len(systems) and not set(frames) & set(systems):
        frames = dict(zip(systems, frames.values(), strict=True))
    if lacking := [name for name in systems if name not in frames]:
        raise ArgumentError(
            "lists", f"must be of every system, and there is none of {lacking[0]!r}: {', '.join(frames)}."
        )
    return {name: frames[name] for name in systems}


def _by_model(frame: pl.DataFrame) -> dict[str, pl.DataFrame]:
    parts = frame.partition_by("model", as_dict=True, maintain_order=True)
    return {str(model): part for (model,), part in parts.items()}
