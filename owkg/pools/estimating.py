"""Estimates from the folder of a pool with a design, and from sheets that are filled in."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import polars as pl

from owkg import checks
from owkg.checks import StrPath
from owkg.errors import ArgumentError
from owkg.estimation import estimate as estimation
from owkg.estimation.annotators import ErrorRates
from owkg.estimation.estimate import DrawnPool, Estimate
from owkg.files.delimited import read_text_table
from owkg.files.parquet import read_parquet
from owkg.files.storage import checksum, read_metadata
from owkg.judge.schema import QRELS
from owkg.pools.annotation import judged_in
from owkg.pools.drawn import read_drawn


def estimate(
    pool: StrPath | DrawnPool,
    judged: StrPath | pl.DataFrame | Sequence[StrPath] | None = None,
    metrics: str | Iterable[str] | None = None,
    *,
    compare: bool = True,
    proxies: Mapping[str, StrPath | pl.DataFrame] | None = None,
    errors: ErrorRates | None = None,
    exact: bool = False,
    looks: Sequence[int] | None = None,
    ci: float = 0.95,
    of_these: bool = True,
) -> Estimate:
    """Metrics of all systems as if the whole pool were judged, from judgements drawn by its design.

    Args:
        pool: folder that `owkg pool --draw` wrote, or a pool in memory.
        judged: filled-in sheets or files of qrels, or a frame of judgements; None: the sheets in the folder.
        metrics: names such as rr, p@10, ap, mrr; None: those that the design answers.
        compare: whether the differences of all pairs of systems are estimated.
        proxies: further probabilities of candidates by name: files or frames with the columns query, answer,
            probability.
        errors, exact, looks: of `owkg.estimation.estimate`.
        ci: level of the intervals.
        of_these: whether the queries of the runs are meant, rather than queries like them.

    Raises:
        ValueError: if the pool has no design, a judgement is outside the draw, the design does not answer a
            metric, a drawn unit is skipped, or too few are judged.
        OSError: if a file cannot be opened.
    """
    if isinstance(pool, DrawnPool):
        drawn, folder, sheets = pool, None, []
    else:
        folder = checks.path("pool", pool)
        drawn, sheets = read_drawn(folder)
    tables = {
        name: one if isinstance(one, pl.DataFrame) else read_proxy(Path(one))
        for name, one in (proxies or {}).items()
    }
    if judged is None:
        if folder is None:
            raise ArgumentError("judged", "must be given for a pool in memory.")
        judged = filled_sheets(folder, sheets)
    if not isinstance(judged, pl.DataFrame):
        judged = judged_in(judged, drawn.people.asked())
    options = {"errors": errors, "exact": exact, "looks": looks, "ci": ci, "of_these": of_these}
    return estimation(drawn, judged, metrics, compare=compare, proxies=tables, **options)


def drawn_judgements(folder: Path) -> tuple[DrawnPool, pl.DataFrame]:
    """A pool with its design, and what is judged in the sheets of its folder; perhaps nothing.

    Raises:
        ValueError: naming the folder or the file, as `read_drawn`.
    """
    drawn, sheets = read_drawn(folder)
    written = written_into(folder, sheets)
    judged = judged_in(written, drawn.people.asked()) if written else drawn.known.clear().select(QRELS)
    return drawn, judged


def filled_sheets(folder: Path, sheets: Sequence[str]) -> list[StrPath]:
    """The sheets in the folder of a pool that somebody has written into.

    Raises:
        ValueError: naming `judged`, if there is none.
    """
    found = written_into(folder, sheets)
    if not found:
        raise ArgumentError(
            "judged",
            f"must name filled-in sheets: those in {folder} ({', '.join(sheets)}) are as they were written.",
        )
    return found


def written_into(folder: Path, sheets: Sequence[str]) -> list[StrPath]:
    """The sheets in the folder of a pool that are not as they were written."""
    written = read_metadata(folder)["sha256"]
    paths = [folder / name for name in sheets if (folder / name).is_file()]
    return [path for path in paths if checksum(path) != written.get(path.name)]


def read_proxy(path: Path) -> pl.DataFrame:
    """Probabilities from a table of text or Parquet with the columns query, answer and probability.

    Raises:
        ValueError: naming the file, if it is no table.
        OSError: if it cannot be opened.
    """
    return read_parquet(path) if path.suffix.lower() == ".parquet" else read_text_table(path)[0]
