"""Estimates from the folder of a pool with a design and its filled-in sheets."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from owkg import checks
from owkg.checks import StrPath
from owkg.errors import ArgumentError
from owkg.estimation import estimate as estimation
from owkg.estimation.annotators import ErrorRates
from owkg.estimation.estimate import Estimate, Gaps
from owkg.estimation.judged import DrawnPool, not_drawn, outside_draw
from owkg.files.storage import checksum, read_metadata
from owkg.judge.schema import QRELS
from owkg.kg.read import Reading
from owkg.pools.annotation import judged_in, judged_place
from owkg.pools.drawn import read_drawn
from owkg.pools.further import further_lists
from owkg.pools.gold import gold_rates
from owkg.pools.looked import read_looks, record_look
from owkg.pools.read_back import pool_card
from owkg.pools.tables import placed_table

Judgements = StrPath | pl.DataFrame | Sequence[StrPath]


def estimate(
    pool: StrPath | DrawnPool,
    judged: Judgements | None = None,
    metrics: str | Iterable[str] | None = None,
    *,
    compare: bool = True,
    proxies: Mapping[str, StrPath | pl.DataFrame] | None = None,
    errors: ErrorRates | StrPath | pl.DataFrame | None = None,
    expert: Judgements | None = None,
    exact: bool = False,
    gaps: Gaps = "refuse",
    looks: Sequence[int] | None = None,
    others: Mapping[str, Any] | Sequence[StrPath] | pl.DataFrame | None = None,
    kg: StrPath | None = None,
    reading: Reading | None = None,
    ci: float = 0.95,
    of_these: bool = True,
) -> Estimate:
    """Metrics of all systems as if the whole pool were judged, estimated from drawn judgements.

    Args:
        pool: folder that `owkg pool --draw` wrote, in which owkg records each look; or a pool in memory.
        judged: filled-in sheets, files of qrels, or a frame of judgements. Default None: the sheets in the
            folder.
        metrics: names such as rr, p@10, ap, mrr. Default None: the usual metrics that the design answers.
        compare: whether to estimate the differences of all pairs of systems. Default True.
        proxies: further probabilities of the candidates, by name: files or frames with columns query, answer,
            probability.
        errors: error rates of the annotators, or gold items from which `owkg.pools.gold.gold_rates` counts
            them. Default None: annotators do not err.
        expert: judgements by an expert of the first drawn queries: sheets, qrels or a frame.
        exact, gaps, looks: as in `owkg.estimation.estimate`.
        others: runs of systems that were not pooled, as for `owkg.judge.read_runs`, or a frame. These systems
            get bounds only.
        kg: folder of the graph, only with `others`: its known answers are removed from the lists of these
            systems, as from the lists of the pool.
        reading: options for reading the folder of the graph. Default None: detected from its files.
        ci: confidence level of the intervals. Default 0.95.
        of_these: True (default): the values are for the queries of the runs; False: for queries like these.

    Returns:
        The estimates: metrics of systems and differences of pairs, with intervals.

    Raises:
        ValueError: if the pool has no design, a judgement is outside the draw, the design does not answer a
            metric, a drawn unit is skipped, too few units are judged, or a third look has no plan (`looks`).
        OSError: if a file cannot be opened.
    """
    if isinstance(pool, DrawnPool):
        drawn, folder, sheets = pool, None, []
    else:
        folder = checks.path("pool", pool)
        drawn, sheets = read_drawn(folder)
    before = None if folder is None else read_looks(folder)
    rates = errors if errors is None or isinstance(errors, ErrorRates) else gold_rates(errors)
    tables = {
        name: one if isinstance(one, pl.DataFrame) else placed_table(checks.path("proxy", one))[0]
        for name, one in (proxies or {}).items()
    }
    if judged is None:
        if folder is None:
            raise ArgumentError("judged", "must be given for a pool in memory.")
        judged = filled_sheets(folder, sheets)
    if others is not None and not isinstance(others, pl.DataFrame):
        if folder is None:
            raise ArgumentError("others", "must be a frame for a pool in memory.")
        splits = pool_card(folder)["filter"]
        others = further_lists(others, kg, reading or Reading(), drawn.people, splits, name="others")
    elif kg is not None:
        raise ArgumentError("kg", "has no effect without runs of systems that were not pooled.")
    found = estimation(
        drawn,
        _judgements(drawn, judged, "judged"),
        metrics,
        compare=compare,
        proxies=tables,
        errors=rates,
        expert=None if expert is None else _judgements(drawn, expert, "expert"),
        exact=exact,
        gaps=gaps,
        looks=looks,
        before=None if before is None else before.looks,
        others=others,
        ci=ci,
        of_these=of_these,
    )
    if folder is None or before is None:
        return found
    sums = {
        name: checksum(Path(one)) for name, one in (proxies or {}).items() if isinstance(one, str | PathLike)
    }
    return found._replace(notes=found.notes + record_look(folder, before, found.looks, sums))


def _judgements(drawn: DrawnPool, said: Judgements, name: str) -> pl.DataFrame:
    """Judgements from a frame, unchanged, or from files, which must hold drawn units only."""
    if isinstance(said, pl.DataFrame):
        return said

    def check(file: Path, own: pl.DataFrame) -> None:
        other = outside_draw(drawn, own.filter(pl.col("relevance") >= 0))
        if len(other):
            query, answer = other.select("query", "answer").row(0)
            raise ValueError(f"{judged_place(file, query, answer)}: {not_drawn(other)}")

    return judged_in(said, drawn.people.asked(), name=name, check=check)


def drawn_judgements(folder: Path) -> tuple[DrawnPool, pl.DataFrame]:
    """Pool with its design, and the judgements in the sheets of its folder, which may be empty.

    Raises:
        ValueError: naming the folder or the file, as `read_drawn`.
    """
    drawn, sheets = read_drawn(folder)
    written = written_into(folder, sheets)
    judged = judged_in(written, drawn.people.asked()) if written else drawn.known.clear().select(QRELS)
    return drawn, judged


def filled_sheets(folder: Path, sheets: Sequence[str]) -> list[StrPath]:
    """Sheets in the folder of a pool that were filled in.

    Raises:
        ValueError: naming `judged`, if there is none.
    """
    found = written_into(folder, sheets)
    if not found:
        raise ArgumentError(
            "judged",
            f"must name filled-in sheets, because nothing is filled in in {folder} ({', '.join(sheets)}).",
        )
    return found


def written_into(folder: Path, sheets: Sequence[str]) -> list[StrPath]:
    """Sheets in the folder of a pool that were changed since they were written."""
    written = read_metadata(folder)["sha256"]
    paths = [folder / name for name in sheets if (folder / name).is_file()]
    return [path for path in paths if checksum(path) != written.get(path.name)]
