"""Gold items: candidates with a known truth that was hidden from the annotators, to count their errors."""

from collections.abc import Callable

import polars as pl

from owkg import checks
from owkg.checks import StrPath
from owkg.estimation.annotators import ErrorRates, counted_rates
from owkg.pools.annotation import LABELS_SHOWN, labels_in
from owkg.pools.tables import placed_table

GOLD = ("query", "answer", "label", "truth")
"""Columns of gold items."""
_ITEM = ("query", "answer")


def gold_rates(
    gold: StrPath | pl.DataFrame, *, fp: float | None = None, fn: float | None = None
) -> ErrorRates:
    """Error rates of annotators, counted on gold items.

    Args:
        gold: table (text or Parquet) or frame with the columns query, answer, label (by annotators; the
            majority if there are several) and truth. Both are in the words of a sheet: 1, yes, relevant; or
            0, no, not relevant. A blank label or "?" is not counted.
        fp, fn: known rate, needed if no gold item is of its kind. Default None: counted.

    Raises:
        ValueError: naming file and line: if a column is missing, a label or truth is not one of these words,
            or an item occurs twice; naming `fp` or `fn`, if no item is of its kind and the rate is not given.
        OSError: if the file cannot be opened.
    """
    table, place = _placed(gold)
    if lacking := [name for name in GOLD if name not in table.columns]:
        raise ValueError(f"{place(-1)}: must have the columns {', '.join(GOLD)}, but has no {lacking[0]}.")
    table = table.select(pl.col(name).cast(pl.String).fill_null("") for name in GOLD)
    label, truth = (
        labels_in(table[name].replace("", unsaid)) for name, unsaid in (("label", "?"), ("truth", ""))
    )
    again = ~pl.Series(table.select(pl.struct(_ITEM).is_first_distinct()).to_series())
    wrong = (
        ("label", label.is_null(), f"must be {LABELS_SHOWN}"),
        ("truth", truth.is_null() | (truth < 0), "must be 1, y, yes, relevant; or 0, n, no, not relevant"),
        ("answer", again, "must occur once for its query"),
    )
    for name, bad, must in wrong:
        for row in bad.arg_true().head(1):
            raise ValueError(f"{place(row)}: the {name} {must}, got {table[name][row]!r}.")
    said = label >= 0
    if not said.any() and None in (fp, fn):
        raise ValueError(f"{place(-1)}: must have at least one item with a label, got none.")
    return counted_rates(label.filter(said).to_numpy(), truth.filter(said).to_numpy(), fp=fp, fn=fn)


def _placed(gold: StrPath | pl.DataFrame) -> tuple[pl.DataFrame, Callable[[int], str]]:
    """The table, and a function that names the place of a row; row -1 is the header."""
    if isinstance(gold, pl.DataFrame):
        return gold, lambda row: f"`errors`, row {row + 1}" if row >= 0 else "`errors`"
    path = checks.path("errors", gold)
    table, place = placed_table(path)
    return table, lambda row: place(row) if row >= 0 else f"{path}, line 1"
