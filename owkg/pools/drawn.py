"""Files of a design in the folder of a pool: units that could be drawn, drawn units, and their sheets."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Int

from owkg.errors import ArgumentError
from owkg.estimation.drawing import Drawing, Unit, depths, draw, require_possible
from owkg.estimation.judged import DrawnPool
from owkg.estimation.permanent import permanent_numbers
from owkg.estimation.population import Population, population
from owkg.estimation.prefixes import BEYOND, SURE
from owkg.estimation.proxy import free_proxy
from owkg.files.parquet import read_parquet
from owkg.files.storage import checksum, checksums, read_metadata, write_metadata, written_aside
from owkg.judge.qrels import read_judgements
from owkg.judge.runs import read_runs
from owkg.pools.annotation import read_names, write_sheet
from owkg.pools.design import Design, write_design
from owkg.pools.read_back import pool_card, require_as_written
from owkg.pools.templates import read_templates
from owkg.pools.units import asked_of

DESIGN = "design.json"
"""File with the design: how units are drawn, and how many."""
DRAWN = "design.tsv"
"""File with the drawn units, in the order of judging."""
FRAME = "frame.parquet"
"""File with all units that could be drawn, and their strata."""
_VERSION = 1


def drawn_pool(
    lists: pl.DataFrame,
    known: pl.DataFrame,
    settings: Mapping[str, Any],
    categories: dict[str, str] | None = None,
) -> DrawnPool:
    """Pool of some lists with a design drawn from it.

    Args:
        lists: runs, to the depth that the design reaches.
        known: judgements before the draw.
        settings: depth, draw, strata, for, below_depth, seed.
        categories: category of each relation. Default None: not known.
    """
    depth = settings["depth"]
    asked = asked_of(settings["draw"], settings["strata"], settings["for"])
    people = population(lists, _reach(asked.unit, settings), known)
    proxy = free_proxy(people)
    drawing = draw(people, asked, seed=settings["seed"], proxy=proxy, below=depth)
    aimed = asked if asked.aims or asked.pair else None
    return DrawnPool(people, drawing, proxy, known, depth, categories, aimed)


def reach_of(settings: Mapping[str, Any]) -> int:
    """Depth of the lists that a pool keeps: its own depth, or that of a design that draws below it."""
    if not settings.get("draw"):
        return settings["depth"]
    asked = asked_of(settings["draw"], settings["strata"], settings["for"])
    require_possible(asked, settings["depth"])
    return _reach(asked.unit, settings)


def _reach(unit: Unit, settings: Mapping[str, Any]) -> int:
    depth, below = settings["depth"], settings["below_depth"]
    if unit is not Unit.BELOW:
        return depth
    if below <= depth:
        raise ArgumentError("below_depth", f"must be below the depth of the pool, {depth}, got {below}.")
    return below


def asked_candidates(drawn: DrawnPool, batch: int = 0) -> pl.DataFrame:
    """Candidates to judge for a batch, in the order of its sheet.

    Queries are in the order of the draw and their candidates are shuffled. The candidates of prefixes are
    ordered by their best rank, so that judging may stop at the first relevant answer of each list.

    Args:
        drawn: the pool.
        batch: number of the batch, from 0. Default 0.
    """
    people, drawing = drawn.people, drawn.drawing
    order, batches = drawing.order()
    units = order[batches == batch]
    chosen = np.flatnonzero(drawing.candidates(people, people.label, units))
    rows = people.pairs(chosen)
    if drawing.unit.of_queries:
        turn = np.full(len(people.queries), len(units))
        turn[drawing.frame[units]] = np.arange(len(units))
        place = turn[people.query[chosen]]
        within = permanent_numbers(drawing.seed, rows["query"], rows["answer"])
        if drawing.unit is Unit.PREFIXES:
            places = people.places[:, chosen]
            within = within + np.where(places > 0, places, people.depth + 1).min(0)
        return rows[np.lexsort((within, place))]
    at = np.full(len(people.answers), len(units))
    at[drawing.frame[units]] = np.arange(len(units))
    return rows[np.argsort(at[chosen], kind="stable")]


def write_drawn(
    folder: Path,
    drawn: DrawnPool,
    settings: Mapping[str, Any],
    sheets: Sequence[str],
    added: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write the design of a pool, the units that could be drawn and the drawn units.

    Args:
        folder: folder of the pool.
        drawn: the pool.
        settings: strata and for, as they were given.
        sheets: names of the sheets of the batches.
        added: systems added after the draw, with their sheets.
    """
    people, drawing = drawn.people, drawn.drawing
    frame = _units(people, drawing.unit, drawing.frame).with_columns(
        stratum=pl.Series(drawing.stratum, dtype=pl.Int32)
    )
    if not (folder / FRAME).is_file():
        frame.write_parquet(folder / FRAME)
    order, batches = drawing.order()
    table = frame[order].with_columns(
        place=pl.Series(np.arange(1, len(order) + 1)),
        batch=pl.Series(batches + 1),
        probability=pl.Series(drawing.probabilities[order]),
    )
    if drawing.deep is not None:
        table = table.with_columns(depth=pl.Series(drawing.deep[order]))
    with written_aside(folder / DRAWN) as aside:
        table.write_csv(aside, separator="\t")
    said = {
        "version": _VERSION,
        "unit": str(drawing.unit),
        "seed": drawing.seed,
        "depth": drawn.depth,
        "reach": people.depth,
        "strata": settings["strata"],
        "for": settings["for"],
        "prefixes": {"sure": SURE, "beyond": BEYOND} if drawing.deep is not None else None,
        "frame": {"units": len(drawing.frame), "sha256": checksum(folder / FRAME)},
        "categories": drawn.categories,
        "sizes": drawing.sizes.tolist(),
        "batches": [
            {"drawn": batch.tolist(), "sheet": sheet}
            for batch, sheet in zip(drawing.batches, sheets, strict=True)
        ],
        "added": list(added),
    }
    with written_aside(folder / DESIGN) as aside:
        aside.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")


def _units(people: Population, unit: Unit, frame: Int[np.ndarray, "units"]) -> pl.DataFrame:
    if unit.of_queries:
        return people.queries[frame].select("query")
    return people.pairs(frame).select("query", "answer")


def read_drawn(folder: Path) -> tuple[DrawnPool, list[str]]:
    """Pool with its design, as written, and the names of its sheets.

    Raises:
        ValueError: naming the folder or file, if it is not a pool, has no design, or was changed.
        OSError: if a file cannot be opened.
    """
    card = pool_card(folder)
    file = folder / DESIGN
    if not file.is_file():
        raise ValueError(
            f"{folder}: has no {DESIGN}, because its candidates were not drawn at random. Their judgements "
            "are not a random sample; owkg pool --draw makes a pool with a random draw."
        )
    require_as_written(folder, card, changed=False, advice=", so its draw is not known")
    said = _said(file)
    known = read_judgements(folder / "pool.qrels", topics="allowed").filter(pl.col("relevance") >= 0)
    lists = read_runs([folder / "runs.trec.gz"], topics="allowed")
    people = population(lists, said["reach"], known)
    unit = Unit(said["unit"])
    table = read_parquet(folder / FRAME)
    frame = _found(people, unit, table, folder / FRAME)
    names = _units(people, unit, frame)
    place = permanent_numbers(said["seed"], *(names[name] for name in names.columns))
    batches = tuple(np.array(batch["drawn"]) for batch in said["batches"])
    stratum = table["stratum"].to_numpy().astype(np.int64)
    drawing = Drawing(unit, said["seed"], frame, stratum, place, batches, None)
    if unit is Unit.PREFIXES:
        drawing = drawing._replace(deep=depths(people, drawing.seed))
    if (
        drawing.sizes.tolist() != said["sizes"]
        or ((drawing.counts < 0) | (drawing.counts > drawing.sizes)).any()
    ):
        raise ValueError(f"{file}: the strata do not match {FRAME}.")
    several = [one["sheet"] for one in (*said["batches"], *said.get("added", ())) if one["sheet"]]
    proxy, aims = free_proxy(people), said.get("for")
    aimed = asked_of(f"{unit}:1", None, aims) if aims else None
    pool = DrawnPool(people, drawing, proxy, known, said["depth"], said.get("categories"), aimed)
    return pool, list(dict.fromkeys(several))


def design_of(folder: Path) -> tuple[list[str], list[dict[str, Any]]]:
    """Sheets of the batches, and systems added after the draw."""
    said = _said(folder / DESIGN)
    return [batch["sheet"] for batch in said["batches"]], list(said.get("added", ()))


def _said(file: Path) -> dict[str, Any]:
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
        version = said["version"]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{file}: is not the design of a pool.") from None
    if version != _VERSION:
        raise ValueError(f"{file}: has version {version}, but this owkg reads version {_VERSION}.")
    return said


def _found(people: Population, unit: Unit, table: pl.DataFrame, file: Path) -> Int[np.ndarray, "units"]:
    """Places in the population of the units in a file."""
    if unit.of_queries:
        names = people.queries.select("query").with_row_index("at")
    else:
        names = pl.DataFrame(
            {"query": people.queries["query"].gather(people.query), "answer": people.answers}
        ).with_row_index("at")
    on = names.columns[1:]
    found = table.select(on).join(names, on=on, how="left", maintain_order="left")["at"]
    if found.null_count():
        raise ValueError(f"{file}: holds {unit} that are not in the runs of the pool.")
    return found.to_numpy().astype(np.int64)


def draw_more(
    folder: Path,
    count: int,
    *,
    names: Path | None = None,
    templates: Path | None = None,
    source: str | None = None,
) -> tuple[Path, int, DrawnPool]:
    """Draw further units of a pool by its design and write their sheet; earlier draws and judgements stay.

    Args:
        folder: folder of the pool.
        count: number of further units.
        names, templates: files with readable names and wording for the sheet. Default None: none.
        source: column source of the sheet, as in `owkg.pools.annotation.write_sheet`.

    Returns:
        (path of the sheet, number of its candidates, the pool with the larger draw).

    Raises:
        ValueError: naming the folder or `more`.
    """
    drawn, sheets = read_drawn(folder)
    drawn = drawn.more(count)
    of_batches, added = design_of(folder)
    rows = asked_candidates(drawn, len(of_batches))
    name = f"sheet{len(sheets) + 1}.tsv"
    written = write_batch(folder / name, rows, drawn, names=names, templates=templates, source=source)
    card = read_metadata(folder)
    write_drawn(folder, drawn, card["settings"], [*of_batches, name], added)
    left = card["to_judge"] + card["beyond_budget"]
    now = checksums(folder)
    card |= {
        "to_judge": card["to_judge"] + len(rows),
        "beyond_budget": left - card["to_judge"] - len(rows),
        "sha256": card["sha256"] | {one: now[one] for one in (DESIGN, DRAWN, *written)},
    }
    write_metadata(folder, card)
    return folder / name, len(rows), drawn


def write_batch(
    path: Path,
    rows: pl.DataFrame,
    drawn: DrawnPool,
    *,
    names: Path | None = None,
    templates: Path | None = None,
    source: str | None = None,
) -> list[str]:
    """Write a further sheet of a drawn pool, if it has rows, and its design; return the names of the files.

    Args:
        path: file of the sheet.
        rows: candidates in the order of judging.
        drawn: the pool.
        names, templates, source: as in `draw_more`.
    """
    if rows.is_empty():
        return []
    labels, descriptions = ({}, {}) if names is None else read_names(names)
    relations = drawn.people.queries["relation"].unique().to_list()
    own = {} if templates is None else read_templates(templates, relations)
    words = {"labels": labels, "descriptions": descriptions, "templates": own, "source": source}
    write_sheet(rows, path, seed=drawn.drawing.seed, in_order=True, **words)
    write_design(path, Design.DRAWN, depth=drawn.depth)
    return [path.name, f"{path.name}.design.json"]
