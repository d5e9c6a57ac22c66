"""What `owkg compare` prints and writes."""

import sys
from pathlib import Path
from typing import Any

from owkg.cli.output import number

_ABREAST = 3
"""Metrics side by side, which is as much as a window shows."""


def write(found: dict[str, Any], out: Path) -> None:
    import polars as pl

    from owkg.report.judging import asl_figure, label_set_figure, ranking_figure
    from owkg.report.table import save_table

    for name, table in found.items():
        if len(table):
            save_table(table, out / f"compare_{name}.csv")
    panel = pl.col("labels").alias("panel")
    paths = asl_figure(found["pairs"].with_columns(panel), out / "compare_asl")
    sets = found["values"]["labels"].unique(maintain_order=True).to_list()
    if len(sets) > 1:
        values = found["values"].with_columns(panel=pl.col("metric"), label_set=pl.col("labels"))
        paths += ranking_figure(values, out / "compare_rankings")
        wide = values.filter(pl.col("labels").is_in(sets[:2])).pivot(
            "labels", index=["panel", "system"], values="value", maintain_order=True
        )
        paths += label_set_figure(
            wide.rename({sets[0]: "first", sets[1]: "second"}),
            out / "compare_labels",
            xlabel=sets[0],
            ylabel=sets[1],
        )
    for path in paths:
        print(f"wrote {path}", file=sys.stderr)


def show(found: dict[str, Any], ci: float, correction: str, test: str) -> None:
    from owkg.cli.tables import printed

    values = found["values"]
    metrics = values["metric"].unique(maintain_order=True).to_list()
    for labels in values["labels"].unique(maintain_order=True):
        own = values.filter(labels=labels)
        for first in range(0, len(metrics), _ABREAST):
            some = metrics[first : first + _ABREAST]
            rows = []
            for (system,), of in own.group_by("system", maintain_order=True):
                by_metric = {row["metric"]: row for row in of.iter_rows(named=True)}
                rows.append([system, *(_value(by_metric[metric]) for metric in some)])
            title = "" if first else f"{labels}: value [{ci:.0%} interval] #place"
            printed(title, ["system", *some], rows)
        told = found["metrics"].filter(labels=labels)
        printed(
            f"{labels}: pairs of systems that differ ({test} test, correction {correction}, "
            f"level {1 - ci:.2g})",
            ["metric", "pairs", "differ", "area of p", "detectable difference"],
            [
                [r["metric"], r["pairs"], r["significant"], f"{r['area']:.3f}", _cell(r["detectable"])]
                for r in told.iter_rows(named=True)
            ],
        )
    if len(found["agreement"]):
        for (labels, first), part in found["agreement"].group_by("labels", "with", maintain_order=True):
            rows = []
            for (metric,), own in part.group_by("metric", maintain_order=True):
                cells = [_interval(row) for row in own.iter_rows(named=True)]
                rows.append([metric, *cells])
            names = part["coefficient"].unique(maintain_order=True).to_list()
            shared = part["questions"][0]
            printed(
                f"{labels} against {first}: agreement on the order of systems, {shared:,} shared questions",
                ["metric", *names],
                rows,
            )
    if len(found["parts"]):
        table = found["parts"]
        rows = [[_cell(value) for value in row] for row in table.rows()]
        printed(
            "order of systems by part: tau with all questions under the first labels, and with the same "
            "part under them",
            table.columns,
            rows,
        )


def _value(row: dict[str, Any]) -> str:
    return f"{row['value']:.4g} [{row['lower']:.3g}, {row['upper']:.3g}] #{row['rank']}"


def _interval(row: dict[str, Any]) -> str:
    value, low, high = (number(row[name]) for name in ("value", "lower", "upper"))
    if value is None:
        return "no order"
    if low is None or high is None:
        return f"{value:.3f} [some resample has no order]"
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def plain(table: Any) -> list[dict[str, Any]]:
    """Rows without what JSON has no word for."""
    import polars.selectors as cs

    return table.with_columns(cs.float().fill_nan(None)).to_dicts()
