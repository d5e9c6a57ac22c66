"""Figure of the queries that metrics need, against their focus on the top ranks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from owkg.plots.figure import COLOURS, figure, save_figure

_SETS = (("", "separate test sets", "-", "full"), ("_paired", "one test set", "--", "none"))


def focus_figure(metrics: Sequence[dict[str, Any]], frontier: Sequence[dict[str, Any]], path: Path) -> None:
    """Draws required queries against focus: the minimum over decreasing weights as a line, metrics as points.

    Metrics for which no number of queries suffices are left out.

    Args:
        metrics: for each metric its name (metric), focus, required_queries and required_queries_paired.
        frontier: for each focus its focus, required_queries and required_queries_paired.
        path: file to write, .png, .pdf or .svg.
    """
    with figure(1, 1, (6.4, 4.0)) as (fig, panel):
        for colour, (ending, label, line, fill) in zip(COLOURS, _SETS, strict=False):
            key = f"required_queries{ending}"
            reached = [row for row in frontier if row[key] is not None]
            focus, queries = [row["focus"] for row in reached], [row[key] for row in reached]
            panel.plot(focus, queries, line, color=colour, label=f"least, {label}")
            shown = [row for row in metrics if row[key] is not None]
            focus, queries = [row["focus"] for row in shown], [row[key] for row in shown]
            panel.plot(focus, queries, "o", color=colour, ms=5, fillstyle=fill, label=f"metrics, {label}")
        for row in metrics:
            if row["required_queries"] is not None:
                at = (row["focus"], row["required_queries"])
                panel.annotate(row["metric"], at, (4, 4), textcoords="offset points", fontsize=8)
        panel.set(xscale="log", yscale="log", xlabel="focus: 1 / expected browsing depth")
        panel.set_ylabel("required queries")
        panel.legend(loc="upper left")
        save_figure(fig, path)
