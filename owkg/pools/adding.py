"""Further systems for a drawn pool: candidates that only they list are judged for the same units."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from owkg.errors import ArgumentError
from owkg.estimation.candidates import STRATA, allocation, equal_strata, importance
from owkg.estimation.drawing import Drawing, Unit, aims, depths
from owkg.estimation.estimate import DrawnPool
from owkg.estimation.permanent import permanent_numbers
from owkg.estimation.population import UNKNOWN, Population, population
from owkg.estimation.proxy import Probabilities, free_proxy
from owkg.files.storage import checksum, checksums, made_folder, read_metadata, write_metadata
from owkg.ir import POOLED
from owkg.judge.qrels import merged, write_judgements
from owkg.judge.runs import read_runs, top, write_run
from owkg.kg.read import Reading
from owkg.pools.design import MADE_BY
from owkg.pools.drawn import FRAME, asked_candidates, design_of, read_drawn, write_batch, write_drawn
from owkg.pools.folder import graded
from owkg.pools.further import Graph, Runs, further_lists, paths_of
from owkg.pools.pool import pool, pool_sizes
from owkg.pools.units import asked_of

_PAIR = ["query", "answer"]
_PER_STRATUM = 4  # drawn candidates in each new stratum


class Added(NamedTuple):
    """Result of adding further systems to a pool.

    Attributes:
        systems: names of the added systems.
        sheet: file of the candidates to judge; None if there are none.
        to_judge: number of these candidates.
        drawn: the pool with the added systems.
    """

    systems: list[str]
    sheet: Path | None
    to_judge: int
    drawn: DrawnPool


def add_systems(
    folder: Path,
    runs: Runs,
    kg: Graph = None,
    *,
    reading: Reading | None = None,
    words: Mapping[str, Any] | None = None,
) -> Added:
    """Addition of further systems to a drawn pool, with a sheet of the candidates to judge for them.

    The drawn units stay drawn, and judgements stay valid. For drawn queries and prefixes, the candidates that
    only the new systems list must be judged. For drawn candidates, the candidates that only the new systems
    list form new strata, from which owkg draws the first ones by their permanent random numbers, with the
    same density as in the pool.

    Args:
        folder: folder of the pool.
        runs: runs of the further systems, which must answer every query of the pool.
        kg: the graph or its folder, whose known answers are removed from the lists as in the pool. Default
            None: queries are topics, or no answers were removed.
        reading: options for reading the folder of the graph.
        words: names, templates and source of the sheet, as in `owkg.pools.drawn.draw_more`.

    Raises:
        ValueError: naming the folder, if it has no design; `add`, if a system is already in the pool, lacks a
            query, or the design does not allow further systems; `kg`, if it is needed and missing.
        OSError: if a file cannot be opened or written.
    """
    before, sheets = read_drawn(folder)
    card = read_metadata(folder)
    _require_open(before, card)
    lists = further_lists(runs, kg, reading or Reading(), before.people, card["filter"], name="add")
    lists = top(lists, before.people.depth)
    systems = lists["model"].unique().sort().to_list()
    every = pl.concat([read_runs([folder / "runs.trec.gz"], topics="allowed"), lists])
    people = population(every, before.people.depth, before.known)
    proxy = free_proxy(people)
    drawing = joined(before, people, proxy, card["settings"])
    after = before._replace(people=people, drawing=drawing, proxy=proxy)
    rows = _asked(before, after)
    name = f"sheet{len(sheets) + 1}.tsv"
    with made_folder(folder, made_by=MADE_BY, inputs=paths_of(runs), overwrite=True) as aside:
        shutil.copytree(folder, aside, dirs_exist_ok=True)
        candidates, judged = _write_pool(aside, every, after)
        written = write_batch(aside / name, rows, after, **(words or {}))
        if drawing.unit is Unit.CANDIDATES:
            (aside / FRAME).unlink()
        batch_sheets, added = design_of(folder)
        batch_sheets += [name] * (len(drawing.batches) - len(batch_sheets))
        files = [{"file": path.name, "sha256": checksum(path)} for path in paths_of(runs)]
        added.append({"systems": systems, "sheet": name if len(rows) else None})
        write_drawn(aside, after, card["settings"], batch_sheets, added)
        left = int((judged["relevance"] == POOLED).sum())
        now = checksums(aside)
        changed = (*written, "pool.tsv", "pool.qrels", "runs.trec.gz", FRAME, "design.json", "design.tsv")
        card |= {
            "runs": [*card["runs"], *files],
            "systems": sorted([*card["systems"], *systems]),
            "sizes": pool_sizes(candidates, judged).to_dicts(),
            "to_judge": card["to_judge"] + len(rows),
            "beyond_budget": max(left - card["to_judge"] - len(rows), 0),
            "notes": [*card["notes"], f"{', '.join(systems)} joined after the draw."],
            "sha256": card["sha256"] | {one: now[one] for one in changed},
        }
        write_metadata(aside, card)
    return Added(systems, folder / name if len(rows) else None, len(rows), after)


def _require_open(drawn: DrawnPool, card: dict[str, Any]) -> None:
    """Raise ValueError naming `add`, if the pool does not allow further systems."""
    if drawn.drawing.unit is Unit.BELOW:
        raise ArgumentError(
            "add",
            "must be left out if answers below the pool were drawn: a further system brings some of them "
            "into the pool. Draw a new pool of all systems.",
        )
    if card["settings"]["closed_world"]:
        raise ArgumentError("add", "must be left out if the truth judged the whole pool: pool all systems.")


def joined(before: DrawnPool, people: Population, proxy: Probabilities, settings: dict[str, Any]) -> Drawing:
    """Design of a pool extended by the candidates of further systems.

    Args:
        before: the pool without them.
        people: the population with their lists.
        proxy: probabilities of its candidates.
        settings: draw and for, as they were given.
    """
    old = before.drawing
    if old.unit.of_queries:
        return old if old.deep is None else old._replace(deep=depths(people, old.seed))
    names = before.people.pairs(old.frame).select(_PAIR).with_columns(stratum=pl.Series(old.stratum))
    unknown = people.unknown
    pairs = people.pairs(unknown).select(_PAIR)
    stratum = pairs.join(names, on=_PAIR, how="left", maintain_order="left")["stratum"].fill_null(UNKNOWN)
    stratum, place = stratum.to_numpy().copy(), permanent_numbers(old.seed, pairs["query"], pairs["answer"])
    is_new = stratum == UNKNOWN
    new_batch = np.zeros(len(old.sizes), np.int64)
    if not is_new.any():
        return old._replace(frame=unknown, stratum=stratum, place=place)
    asked = asked_of(settings["draw"], None, settings["for"])._replace(pair=None)
    weight = importance(aims(people, asked, unknown), proxy[unknown])
    share = weight[is_new].sum() / max(weight[~is_new].sum(), 1e-300)
    count = int(min(max(np.ceil(share * old.counts.sum()), 2), is_new.sum()))
    own = equal_strata(weight[is_new], max(1, min(STRATA, count // _PER_STRATUM)))
    drawn = allocation(count, np.bincount(own), np.bincount(own, weight[is_new]))
    stratum[is_new] = len(old.sizes) + own
    padded = [np.append(batch, np.zeros_like(drawn)) for batch in old.batches]
    return old._replace(
        frame=unknown, stratum=stratum, place=place, batches=(*padded, np.append(new_batch, drawn))
    )


def _asked(before: DrawnPool, after: DrawnPool) -> pl.DataFrame:
    """Candidates that must be judged for the further systems, in the order of judging."""
    old, new = (
        pl.concat([asked_candidates(one, batch) for batch in range(len(one.drawing.batches))])
        for one in (before, after)
    )
    return new.join(old, on=_PAIR, how="anti", maintain_order="left")


def _write_pool(folder: Path, lists: pl.DataFrame, drawn: DrawnPool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Write the pool of all systems; return its candidates, without and with relevances."""
    candidates = pool(lists, drawn.depth)
    judged = graded(candidates.with_columns(rule=pl.lit(None, pl.String)), drawn.known, closed_world=False)
    table = judged.with_columns(pl.col("models").list.join(","))
    table.write_csv(folder / "pool.tsv", separator="\t")
    qrels = judged.select("query", "side", "entity", "relation", "answer", "relevance")
    write_judgements(merged(qrels, drawn.known), folder / "pool.qrels")
    write_run(lists, folder / "runs.trec.gz")
    return candidates, judged
