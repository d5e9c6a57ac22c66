"""Runs of systems that are not in a pool, as its own runs were read."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from owkg.checks import StrPath
from owkg.errors import ArgumentError, naming
from owkg.estimation.judged import DrawnPool
from owkg.files.storage import checksum
from owkg.judge.runs import read_runs, without_known
from owkg.kg import read_graph
from owkg.kg.read import Reading
from owkg.pools.read_back import pool_card
from owkg.ranks.files import holds_ranks


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


def unpooled_lists(
    folder: Path,
    drawn: DrawnPool,
    runs: Mapping[str, Any] | Sequence[StrPath],
    kg: StrPath | None,
    reading: Reading | None = None,
) -> pl.DataFrame:
    """Runs that were not pooled, without the known answers that left the lists of the pool.

    Args:
        folder: of the pool.
        drawn: the pool.
        runs: of `owkg.judge.read_runs`.
        kg: folder of the graph; None: no answers left the lists of the pool.
        reading: how the folder of the graph is read; None: by its files.

    Raises:
        ValueError: naming `kg`, if it is needed; naming `others`, if a system is pooled or does not answer a
            query of the pool; naming the file, if it is malformed.
        OSError: if a file cannot be opened.
    """
    paths = [
        Path(one)
        for one in (runs.values() if isinstance(runs, Mapping) else runs)
        if not isinstance(one, Mapping)
    ]
    if wrong := [path for path in paths if holds_ranks(path)]:
        raise ValueError(
            f"{wrong[0]}: is a rank table, whose lists hold tested answers alone; bounds need runs."
        )
    splits = pool_card(folder)["filter"]
    if splits and kg is None:
        raise ArgumentError(
            "kg",
            f"must be given with systems that were not pooled: known answers ({', '.join(splits)}) leave "
            "their lists as they left those of the pool.",
        )
    graph = None if kg is None else read_graph(kg, **(reading or Reading())._asdict())
    with naming({"paths": "`others`"}):
        run = read_runs(runs, topics="allowed", graph=graph)
    asked = drawn.people.queries.select("query")
    models = run["model"].unique(maintain_order=True)
    if pooled := [model for model in models if model in drawn.people.models]:
        raise ArgumentError("others", f"must be of systems that were not pooled, got {pooled[0]}.")
    wanted = models.to_frame().join(asked, how="cross")
    lacking = wanted.join(run, on=["model", "query"], how="anti", maintain_order="left")
    if len(lacking):
        model, query = lacking.row(0)
        raise ArgumentError(
            "others",
            f"must answer all {len(asked):,} queries of the pool: {model} lacks {len(lacking):,}, such as "
            f"{query!r}.",
        )
    return run if graph is None or not splits else without_known(run, graph, splits)
