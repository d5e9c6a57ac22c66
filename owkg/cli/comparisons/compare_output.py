"""Output of `owkg compare`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from owkg.cli.output import Table, cell, interval, number, write_csv, written_together
from owkg.terminal.latex import latex_escaped
from owkg.terminal.markdown import marked
from owkg.terminal.tables import line, printed

if TYPE_CHECKING:
    import polars as pl

_ASL_SYSTEMS = 8
"""Systems from which on the curve of p-values is drawn; of fewer pairs it is a few steps."""

_PAIRS = 15
"""Pairs of systems that a table shows; of more, those with the best system."""


def write(found: "Mapping[str, pl.DataFrame]", out: Path) -> None:
    """Every table as CSV, and figures: all of them or none."""
    import polars as pl

    from owkg.plots.judging import asl_figure, qrels_figure, ranking_figure

    panel = pl.col("qrels").alias("panel")
    sets = found["values"]["qrels"].unique(maintain_order=True).to_list()
    with written_together(out) as aside:
        for name, table in found.items():
            if len(table):
                write_csv(table, aside / f"compare_{name}.csv")
        if found["values"]["system"].n_unique() >= _ASL_SYSTEMS:
            asl_figure(found["pairs"].with_columns(panel), aside / "compare_asl")
        if len(sets) > 1:
            values = found["values"].with_columns(panel=pl.col("metric"))
            ranking_figure(values, aside / "compare_rankings")
            both = (
                values.filter(qrels=name).select(
                    "panel",
                    "system",
                    pl.col("value").alias(called),
                    *(pl.col(end).fill_nan(None).alias(f"{called}_{end}") for end in ("lower", "upper")),
                )
                for name, called in zip(sets, ("first", "second"), strict=False)
            )
            qrels_figure(
                next(both).join(next(both), on=["panel", "system"], how="inner", maintain_order="left"),
                aside / "compare_labels",
                xlabel=f"value by qrels {sets[0]}",
                ylabel=f"value by qrels {sets[1]}",
            )


def print_tables(found: "Mapping[str, pl.DataFrame]", ci: float, correction: str, test: str) -> None:
    """Differences first, then the values of each system, then how far qrels and parts agree."""
    values = found["values"]
    metrics = values["metric"].unique(maintain_order=True).to_list()
    for qrels in values["qrels"].unique(maintain_order=True):
        own, pairs = (found[name].filter(qrels=qrels) for name in ("values", "pairs"))
        if own["system"].n_unique() == 2:
            _show_two(qrels, own, pairs, ci, test)
        else:
            _show_pairs(qrels, own, pairs, ci, correction, test)
        rows = []
        for (system,), of in own.group_by("system", maintain_order=True):
            by_metric = {row["metric"]: row for row in of.iter_rows(named=True)}
            rows.append([system, *(_value(by_metric[metric]) for metric in metrics)])
        of_seeds = " ± deviation over seeds" if "seeds" in own.columns else ""
        printed(f"{qrels}: value{of_seeds} [{ci:.0%} interval] #place", ["system", *metrics], rows)
        if own["system"].n_unique() > 2:
            told = found["metrics"].filter(qrels=qrels)
            printed(
                f"{qrels}: pairs that differ at level {1 - ci:.2g} (correction {correction}), and what a t "
                "test detects",
                ["metric", "pairs", "differ", "mean p", "detectable difference"],
                [
                    [
                        r["metric"],
                        r["pairs"],
                        r["significant"],
                        f"{r['area']:.3f}",
                        cell(r["detectable"], ".3f"),
                    ]
                    for r in told.iter_rows(named=True)
                ],
            )
    for (qrels, first), part in found["agreement"].group_by("qrels", "with", maintain_order=True):
        rows = []
        for (metric,), own in part.group_by("metric", maintain_order=True):
            coefficients = own.to_dicts()
            rows.append([metric, *map(_interval, coefficients), _confidence(coefficients)])
        names = part["coefficient"].unique(maintain_order=True).to_list()
        line(f"{qrels} against {first}: agreement on the order of systems", "bold")
        line(f"each by all queries of its qrels, {part['queries'][0]:,} of which both have", "dim")
        line(f"[{ci:.0%} replication interval]: where it falls when as many queries are drawn again", "dim")
        line(f"infinitely many queries: {ci:.0%} confidence interval of the tau that they would give", "dim")
        printed("", ["metric", *names, "tau, infinitely many queries"], rows)
    if len(found["parts"]):
        table = found["parts"]
        rows = [[cell(value, ".3f") for value in row] for row in table.rows()]
        title = "order of systems by part: tau with that of all, and of the first qrels"
        printed(title, table.columns, rows)


def _show_two(qrels: str, own: "pl.DataFrame", pairs: "pl.DataFrame", ci: float, test: str) -> None:
    """A line for each metric: both values, their difference, and how sure it is."""
    by_place = {(row["metric"], row["system"]): row["value"] for row in own.iter_rows(named=True)}
    first, second = pairs["first"][0], pairs["second"][0]
    rows = [
        [
            row["metric"],
            *(f"{by_place[row['metric'], system]:.4g}" for system in (first, second)),
            _difference(row),
            f"{row['p_value']:.3g}",
            _wins(row),
            cell(row["effect"], ".3f"),
        ]
        for row in pairs.iter_rows(named=True)
    ]
    title = f"{qrels}: difference above 0 where {first} is better ({_test(own, test)})"
    heads = ["metric", first, second, f"difference [{ci:.0%} interval]", "p value", "wins/ties/losses"]
    printed(title, [*heads, "effect"], rows)


def _test(values: "pl.DataFrame", test: str) -> str:
    """The test in words: of systems with seeds it is t over queries and seeds."""
    if "seeds" not in values.columns:
        return f"{test} test"
    # Two systems of one seed each are a pair without seeds.
    single = values.filter(seeds=1)["system"].n_unique()
    over = "t test over queries and seeds"
    return over if single < 2 else f"{over}; {test} test where both have one"


def _show_pairs(
    qrels: str, own: "pl.DataFrame", pairs: "pl.DataFrame", ci: float, correction: str, test: str
) -> None:
    """A table for each metric: all pairs, or those with the best system."""
    import polars as pl

    for (metric,), of in pairs.group_by("metric", maintain_order=True):
        best = own.filter(metric=metric).sort("rank")["system"][0]
        with_best = (pl.col("first") == best) | (pl.col("second") == best)
        shown = of if len(of) <= _PAIRS else of.filter(with_best).head(_PAIRS)
        rows = [
            [
                f"{row['first']} - {row['second']}",
                _difference(row),
                f"{row['p_value']:.3g}",
                f"{row['p_corrected']:.3g}",
            ]
            for row in shown.iter_rows(named=True)
        ]
        title = f"{qrels}: {metric}, difference above 0 where the first is better ({_test(own, test)})"
        corrected = "p value" if correction == "none" else f"p, {correction}"
        printed(title, ["pair", f"difference [{ci:.0%} interval]", "p value", corrected], rows)
        if more := len(of) - len(shown):
            line(f"and {more:,} more pairs; --format csv has them")


def tidy(found: "Mapping[str, pl.DataFrame]") -> "pl.DataFrame":
    """All numbers in one table: a row a value, a difference, or a coefficient with one kind of interval."""
    import polars as pl
    import polars.selectors as cs

    seeds = [name for name in ("seeds", "seed_deviation") if name in found["values"].columns]
    columns_of = [*_TIDY, *({"hypothesis"} & {*found["pairs"].columns}), *seeds]

    def of(name: str, *, quantity: pl.Expr, interval: str, **columns: pl.Expr) -> pl.DataFrame:
        table = found[name].with_columns(quantity=quantity, interval=pl.lit(interval), **columns)
        return table.select(pl.col(column) for column in columns_of if column in table.columns)

    confidence = {"lower": pl.col("confidence_lower"), "upper": pl.col("confidence_upper")}
    agreement = {"second": pl.col("with"), "quantity": pl.col("coefficient")}
    frames = [
        of(
            "values",
            quantity=pl.lit("value"),
            interval="confidence",
            first=pl.col("system"),
            place=pl.col("rank"),
        ),
        of("pairs", quantity=pl.lit("difference"), interval="confidence", value=pl.col("difference")),
        of("agreement", interval="replication", **agreement),
        of("agreement", interval="confidence", **agreement, **confidence).filter(quantity="tau"),
    ]
    every = pl.concat(frames, how="diagonal_relaxed")
    return every.select(columns_of).with_columns(cs.float().fill_nan(None))


_TIDY = [
    *("qrels", "metric", "quantity", "first", "second", "value", "interval", "lower", "upper"),
    *("place", "p_value", "p_corrected", "wins", "ties", "losses", "effect"),
]


def for_papers(
    found: "Mapping[str, pl.DataFrame]", ci: float, test: str, form: str
) -> tuple[list[Table], list[str]]:
    """Two tables of each qrels, the values of the systems and their differences; and a line above them."""
    in_latex = form == "latex"
    values = found["values"]
    metrics = values["metric"].unique(maintain_order=True).to_list()
    tables = []
    for qrels in values["qrels"].unique(maintain_order=True):
        own, pairs = (found[name].filter(qrels=qrels) for name in ("values", "pairs"))
        rows = [
            [
                latex_escaped(system) if in_latex else system,
                *((_small(row) if in_latex else _value(row)) for row in of.iter_rows(named=True)),
            ]
            for (system,), of in own.group_by("system", maintain_order=True)
        ]
        tables.append(Table(f"{qrels}: values of the systems", ["system", *metrics], rows))
        rows = [
            [
                " -- ".join(map(latex_escaped, names)) if in_latex else " - ".join(names),
                *((_small_difference(row) if in_latex else _tested(row)) for row in of.iter_rows(named=True)),
            ]
            for names, of in pairs.group_by("first", "second", maintain_order=True)
        ]
        caption = f"{qrels}: differences, above 0 where the first is better; queries won/tied/lost"
        tables.append(Table(caption, ["pair", *metrics], rows))
    said = _test(values, test)
    if in_latex:
        return tables, [f"{ci:.0%} intervals, p-values of the {said}; needs \\usepackage{{booktabs}}"]
    return tables, [f"{ci:.0%} intervals, p-values of the {marked(said)}."]


def _small(row: dict[str, Any]) -> str:
    """A value in mathematics, so that its minus is one, and its interval in small print."""
    deviation = row.get("seed_deviation")
    scatter = "" if deviation is None else rf" \pm {deviation:.2g}"
    return f"${row['value']:.4g}{scatter}$" + _small_interval(row)


def _small_difference(row: dict[str, Any]) -> str:
    """A difference as `_small` has values, and its test."""
    test = f", $p = {row['p_value']:.3g}$, {_wins(row)}"
    return f"${row['difference']:+.4g}$" + _small_interval(row) + test


def _small_interval(row: dict[str, Any]) -> str:
    low, high = (number(row[name]) for name in ("lower", "upper"))
    return "" if low is None or high is None else rf" {{\scriptsize $[{low:.3g}, {high:.3g}]$}}"


def _tested(row: dict[str, Any]) -> str:
    return f"{_difference(row)}, p = {row['p_value']:.3g}, {_wins(row)}"


def _value(row: dict[str, Any]) -> str:
    deviation = row.get("seed_deviation")
    scatter = "" if deviation is None else f" ± {deviation:.2g}"
    return f"{row['value']:.4g}{scatter} [{row['lower']:.3g}, {row['upper']:.3g}] #{row['rank']}"


def _wins(row: dict[str, Any]) -> str:
    return f"{row['wins']:,}/{row['ties']:,}/{row['losses']:,}"


def _difference(row: dict[str, Any]) -> str:
    return f"{row['difference']:+.4g} [{row['lower']:+.3g}, {row['upper']:+.3g}]"


def _interval(row: dict[str, Any]) -> str:
    value, low, high = (number(row[name]) for name in ("value", "lower", "upper"))
    if value is None:
        return "no order"
    if low is None or high is None:
        return f"{value:.3f} [some resample has no order]"
    return interval(value, low, high)


def _confidence(coefficients: list[dict[str, Any]]) -> str:
    row = next(row for row in coefficients if row["coefficient"] == "tau")
    return f"[{row['confidence_lower']:.3f}, {row['confidence_upper']:.3f}]"
