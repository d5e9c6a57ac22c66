"""Tables of an audit as text, with the same cells for HTML, Markdown and LaTeX."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import polars as pl

from owkg.auditing.result import Audit
from owkg.report import words
from owkg.report.words import (
    NONE,
    certified,
    chance_text,
    demonstrated,
    estimate_text,
    number_text,
    p_text,
    range_text,
    reversing,
)


class ReportTable(NamedTuple):
    """Table whose cells are text.

    Attributes:
        caption: caption of the table.
        columns: headings of the columns.
        rows: rows of cells.
        names: number of columns, from the first, that hold names.
        places: index of the metric of each row; None for a row of all metrics.
    """

    caption: str
    columns: list[str]
    rows: list[list[str]]
    names: int
    places: Sequence[int | None]


def models_table(audit: Audit) -> ReportTable:
    """Values of a prepared audit with the strengths and full-test metrics that they imply; best first."""
    frame = audit.models
    columns = {
        "value": [estimate_text(*row) for row in frame.select("value", "ci_low", "ci_high").rows()],
        "strength": [
            estimate_text(*row) for row in frame.select("strength", "strength_low", "strength_high").rows()
        ],
        "full test": [range_text(*row) for row in frame.select("full", "full_low", "full_high").rows()],
        "queries": _counts(frame["queries"]),
        "answers": _counts(frame["answers"]),
    }
    return _table("Values of the models, [intervals], and what they imply", frame, ["model"], columns)


def pairs_table(audit: Audit) -> ReportTable:
    """All pairs of a prepared audit, the better model first."""
    frame = audit.pairs
    columns = {
        "difference": [estimate_text(*row) for row in frame.select("difference", "ci_low", "ci_high").rows()],
        "p": [p_text(value) for value in frame["p_value"]],
        "P(better)": [
            chance_text(*row) for row in frame.select("probability_low", "probability_high").rows()
        ],
        "sure below sparsity": [
            "all possible" if x is None else number_text(x, 3) for x in frame["breakdown_sparsity"]
        ],
        "equal at correlation gap": [
            "none" if x is None else number_text(x, 3) for x in frame["breakdown_correlation"]
        ],
        "missing to reverse": [reversing(row) for row in frame.iter_rows(named=True)],
        "queries to see it": [
            NONE if value is None else f"{value:,.0f}" for value in frame["required_queries"]
        ],
        "verdict": [words.verdict(row) for row in frame.iter_rows(named=True)],
    }
    caption = "Pairs of models, the better one first, with [intervals] of the difference"
    return _table(caption, frame, ["first", "second"], columns)


def breakdown_table(audit: Audit) -> ReportTable:
    """Numbers of facts that reverse the order of each pair of a prepared audit."""
    return _table("Missing answers that reverse the order", audit.pairs, ["first", "second"], _facts(audit))


def grid_table(audit: Audit) -> ReportTable:
    """Full-test metrics of a prepared audit that each sparsity implies."""
    frame = audit.grid
    columns = {
        "sparsity": [number_text(value, 3) for value in frame["sparsity"]],
        "strength": [number_text(value) for value in frame["strength"]],
        "full test": [estimate_text(*row) for row in frame.select("full", "full_low", "full_high").rows()],
    }
    return _table("Full-test metric implied at each sparsity, [intervals]", frame, ["model"], columns)


def weights_table(audit: Audit) -> ReportTable:
    """Queries that each pair requires, by usual metrics and by the best weight of each focus.

    Focuses with the same best weight share a row.
    """
    rows = [
        [row["first"], row["second"], row["average"], row["metric"]]
        + [number_text(row["least_focus"] if row["focus"] is None else row["focus"])]
        + [NONE if row[name] is None else f"{row[name]:,.0f}" for name in ("required_queries", "held_out")]
        for row in audit.weights.iter_rows(named=True)
    ]
    rows = [list(row) for row in dict.fromkeys(map(tuple, rows))]
    heads = ["first", "second", "average", "metric", "focus", "on these queries", "on other queries"]
    return ReportTable("Queries required to show that the first is ahead", heads, rows, 4, [None] * len(rows))


def judged_table(audit: Audit) -> ReportTable:
    """Results of judging for each system, over all queries and by side and category; may be empty."""
    kinds = {
        "sparsity": "sparsity",
        "P(found | known)": "test_strength",
        "P(found | missing)": "missing_strength",
        "correlation": "correlation",
    }
    if audit.judged["sparsity_high"].is_null().all():  # the design allows only a bound
        kinds = {"sparsity, at least": "sparsity"}
    rows = [
        [row["model"], *(row[name] or "all" for name in ("side", "category"))]
        + [f"{row[name]:,}" for name in ("queries", "known", "found")]
        + [estimate_text(row[name], row[f"{name}_low"], row[f"{name}_high"]) for name in kinds.values()]
        for row in audit.judged.iter_rows(named=True)
    ]
    heads = ["model", "side", "category", "queries", "known", "found", *kinds]
    caption = "Results of judging, [intervals]"
    return ReportTable(caption, heads, rows, 3, [None] * len(rows))


def plans_table(audit: Audit) -> ReportTable:
    """Expected intervals from further judgements, by design; no rows without lists."""
    rows = [
        [row["metric"], f"{row['unit']}:{row['count']}"]
        + [number_text(row[name], 3) for name in ("width", "width_pair")]
        + [f"{row['judgements']:,}", f"{row['hours']:,.1f}"]
        for row in audit.plans.iter_rows(named=True)
    ]
    heads = ["metric", "draw", "width", "width, pair", "judgements", "hours"]
    level = 100 * audit.assumptions.get("level", 0.95)
    caption = f"Expected widths of {level:g} % intervals from judgements of a random draw"
    return ReportTable(caption, heads, rows, 2, [None] * len(rows))


def _facts(audit: Audit) -> dict[str, list[str]]:
    frame, searched = audit.pairs, audit.assumptions.get("lists") is not None
    return {
        "at least": [certified(value) for value in frame["certified"]],
        "set found": [demonstrated(value, searched) for value in frame["demonstrated"]],
        "share": [number_text(value) for value in frame["share"]],
        "gamma": [number_text(value, 3) for value in frame["gamma"]],
    }


def _counts(column: Iterable[int | None]) -> list[str]:
    return [NONE if value is None else f"{value:,}" for value in column]


def _table(caption: str, frame: pl.DataFrame, names: list[str], columns: dict[str, list[str]]) -> ReportTable:
    """Metric, names, and all columns that hold anything."""
    named = {"metric": "label"} | {name: name for name in names}
    every = {head: frame[column].to_list() for head, column in named.items()}
    every |= {head: cells for head, cells in columns.items() if set(cells) != {NONE}}
    rows = [list(cells) for cells in zip(*every.values(), strict=True)]
    return ReportTable(caption, list(every), rows, len(named), frame["place"].to_list())
