"""Plain lists of ranks, without ties, as a rank table."""

from pathlib import Path
from typing import Any

import polars as pl

from owkg import checks
from owkg.files.delimited import read_text_table, separator
from owkg.ranks.table import TRIPLE, validated_at, whole

# What a list may be silent about, if about all of it.
_TASK = (*TRIPLE, "side")


def converted(path: Any, *, num_candidates: Any = None) -> tuple[pl.DataFrame, list[str]]:
    """What `ranks_from_list` gives, and a note where the file does not say what was asked."""
    table = ranks_from_list(path, num_candidates=num_candidates)
    columns = read_text_table(Path(path))[0].columns
    if any(name in columns for name in _TASK):
        return table, []
    return table, [f"{path} does not say what was asked: each rank counts as a query of its own, for a tail"]


def ranks_from_list(path: Any, *, num_candidates: Any = None) -> pl.DataFrame:
    """The rank table of a CSV or TSV file with one column `rank`, taken as free of ties.

    The optimistic and the pessimistic rank are both the rank given; who asks for this states that the list
    has no ties or that its ranks hide them.

    Args:
        path: the file, with the columns head, relation, tail, side, rank, and candidates unless they are
            given; other columns are kept. Of head, relation, tail and side all may be absent: then row i is
            the triple i, 0, i, and its tail is asked for, so that each rank is of a query of its own.
        num_candidates: among how many every answer was ranked.

    Raises:
        ValueError: naming file and line, as `read_ranks`; or if the candidates are given twice or not at all.
        OSError: if the file cannot be opened.
    """
    path = Path(path)
    if separator(path) is None:
        raise ValueError(f"{path}: a rank list's name ends in .csv, .tsv, .csv.gz or .tsv.gz.")
    table, place = read_text_table(path)
    if "rank" not in table.columns:
        raise ValueError(f"{path}: no column rank; columns found: {', '.join(table.columns)}.")
    if tied := [name for name in ("optimistic", "pessimistic") if name in table.columns]:
        raise ValueError(
            f"{path}: a column rank beside {' and '.join(tied)}: the ranks are not free of ties."
        )
    if ("candidates" in table.columns) == (num_candidates is not None):
        how = "twice: drop the option or the column" if num_candidates is not None else "nowhere"
        raise ValueError(
            f"{path}: `num_candidates` must be an option or the column candidates, got it {how}."
        )
    if not any(name in table.columns for name in _TASK):
        row = pl.int_range(pl.len(), dtype=pl.Int64)
        table = table.with_columns(head=row, relation=pl.lit(0), tail=row, side=pl.lit("tail"))
    rank = whole(table["rank"], 1, source=str(path), place=place)
    table = table.with_columns(optimistic=rank, pessimistic=rank).drop("rank")
    if num_candidates is not None:
        count = checks.whole("num_candidates", num_candidates, 1)
        table = table.with_columns(candidates=pl.lit(count))
    return validated_at(table, source=str(path), place=place)
