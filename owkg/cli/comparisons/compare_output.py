"""Output of `owkg compare`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from owkg.cli.output import Table, cell, interval, number, write_csv, written_together
from owkg.terminal.latex import small_caps, three_digits
from owkg.terminal.markdown import marked
from owkg.terminal.tables import line, p_value, printed, shown

if TYPE_CHECKING:
    import polars as pl

_ASL_SYSTEMS = 8
"""Smallest number of systems for the curve of p-values, which would have few steps with fewer."""

_PAIRS = 15
"""Largest number of pairs in a table; if there are more, only pairs with the best system are shown."""


def write(found: "Mapping[str, pl.DataFrame]", out: Path) -> None:
    """Writes every table as CSV, and figures: all of them or none."""
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


def print_tables(
    found: "Mapping[str, pl.DataFrame]", ci: float, correction: str, test: str, draws: int
) -> None:
    """Prints differences, values of each system, and how far qrels and parts agree.

    Args:
        found: tables of a comparison.
        ci: level of the intervals.
        correction: name of the correction of p-values.
        test: name of the test.
        draws: number of draws of the randomisation test.
    """
    values = found["values"]
    metrics = values["metric"].unique(maintain_order=True).to_list()
    for qrels in values["qrels"].unique(maintain_order=True):
        own, pairs = (found[name].filter(qrels=qrels) for name in ("values", "pairs"))
        if own["system"].n_unique() == 2:
            _show_two(qrels, own, pairs, ci, test, draws)
        else:
            _show_pairs(qrels, own, pairs, ci, correction, test, draws)
        rows = []
        for (system,), of in own.group_by("system", maintain_order=True):
            by_metric = {row["metric"]: row for row in of.iter_rows(named=True)}
            rows.append([system, *(_value(by_metric[metric]) for metric in metrics)])
        of_seeds = " ± deviation over seeds" if "seeds" in own.columns else ""
        printed(f"{qrels}: value{of_seeds} [{ci:.0%} interval] #place", ["system", *metrics], rows)
        if own["system"].n_unique() > 2:
            told = found["metrics"].filter(qrels=qrels)
            printed(
                f"{qrels}: pairs that differ at level {1 - ci:.2g} (correction {correction}), and the "
                "difference that a t test would detect",
                ["metric", "pairs", "differ", "mean p", "detectable difference"],
                [
                    [r["metric"], r["pairs"], r["significant"], f"{r['area']:.3f}", cell(r["detectable"])]
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
        line(f"each order uses all queries of its qrels; both have {part['queries'][0]:,} queries", "dim")
        line(f"[{ci:.0%} replication interval]: its range if as many queries are drawn again", "dim")
        line(f"tau, infinitely many queries: {ci:.0%} confidence interval of that tau", "dim")
        printed("", ["metric", *names, "tau, infinitely many queries"], rows)
    if len(found["parts"]):
        table = found["parts"]
        rows = [[cell(value, ".3f") for value in row] for row in table.rows()]
        title = "order of systems by part: tau with the order by all queries, and by the first qrels"
        printed(title, table.columns, rows)


def _show_two(
    qrels: str, own: "pl.DataFrame", pairs: "pl.DataFrame", ci: float, test: str, draws: int
) -> None:
    """Prints a line for each metric: both values, their difference, and its test."""
    by_place = {(row["metric"], row["system"]): row["value"] for row in own.iter_rows(named=True)}
    first, second = pairs["first"][0], pairs["second"][0]
    rows = [
        [
            row["metric"],
            *(shown(by_place[row["metric"], system]) for system in (first, second)),
            _difference(row),
            p_value(row["p_value"], _drawn(own, test, draws)),
            _wins(row),
            cell(row["effect"], ".3f"),
        ]
        for row in pairs.iter_rows(named=True)
    ]
    title = f"{qrels}: the difference is above 0 if {first} is better ({_test(own, test)})"
    heads = ["metric", first, second, f"difference [{ci:.0%} interval]", "p value", "queries\nwon/tied/lost"]
    printed(title, [*heads, "difference\n/ SD"], rows, as_given=True)


def _test(values: "pl.DataFrame", test: str) -> str:
    """Test in words; for systems with seeds it is a t test over queries and seeds."""
    if "seeds" not in values.columns:
        return f"{test} test"
    # A pair of systems with one seed each is tested without seeds.
    single = values.filter(seeds=1)["system"].n_unique()
    over = "t test over queries and seeds"
    return over if single < 2 else f"{over}; {test} test if both have one seed"


def _show_pairs(
    qrels: str, own: "pl.DataFrame", pairs: "pl.DataFrame", ci: float, correction: str, test: str, draws: int
) -> None:
    """Prints a table for each metric: all pairs, or pairs with the best system."""
    import polars as pl

    drawn = _drawn(own, test, draws)
    for (metric,), of in pairs.group_by("metric", maintain_order=True):
        best = own.filter(metric=metric).sort("rank")["system"][0]
        with_best = (pl.col("first") == best) | (pl.col("second") == best)
        some = of if len(of) <= _PAIRS else of.filter(with_best).head(_PAIRS)
        rows = [
            [
                f"{row['first']} - {row['second']}",
                _difference(row),
                p_value(row["p_value"], drawn),
                _corrected(row, drawn),
            ]
            for row in some.iter_rows(named=True)
        ]
        title = f"{qrels}: {metric}, the difference is above 0 if the first is better ({_test(own, test)})"
        corrected = "p value" if correction == "none" else f"p, {correction}"
        printed(title, ["pair", f"difference [{ci:.0%} interval]", "p value", corrected], rows)
        if more := len(of) - len(some):
            line(f"and {more:,} more pairs; --format csv prints all")


def _drawn(own: "pl.DataFrame", test: str, draws: int) -> int | None:
    """Number of draws of the test; None if it draws nothing."""
    return draws if test == "randomisation" and "seeds" not in own.columns else None


def _corrected(row: dict[str, Any], drawn: int | None) -> str:
    """Corrected p-value; if the p-value itself is shown as a bound, that bound times the correction."""
    times = row["p_corrected"] / row["p_value"]
    bound = p_value(row["p_value"], drawn)
    if not bound.startswith("< ") or times <= 1:
        return bound if times <= 1 else p_value(row["p_corrected"])
    return f"< {min(1.0, times * float(bound.removeprefix('< '))):.1g}"


def tidy(found: "Mapping[str, pl.DataFrame]") -> "pl.DataFrame":
    """Table of all numbers, with one row for each value, difference, or coefficient with an interval."""
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
    found: "Mapping[str, pl.DataFrame]", ci: float, test: str, form: str, draws: int
) -> tuple[list[Table], list[str]]:
    """For each qrels, a table of values and a table of differences; and a line above all tables."""
    in_latex = form == "latex"
    values = found["values"]
    metrics = values["metric"].unique(maintain_order=True).to_list()
    tables = []
    for qrels in values["qrels"].unique(maintain_order=True):
        own, pairs = (found[name].filter(qrels=qrels) for name in ("values", "pairs"))
        rows = [
            [
                small_caps(system) if in_latex else system,
                *((_small(row) if in_latex else _value(row)) for row in of.iter_rows(named=True)),
            ]
            for (system,), of in own.group_by("system", maintain_order=True)
        ]
        tables.append(Table(f"{qrels}: values of the systems", ["system", *metrics], rows))
        drawn = _drawn(own, test, draws)
        rows = [
            [
                " -- ".join(map(small_caps, names)) if in_latex else " - ".join(names),
                *(
                    (_small_difference(row, drawn) if in_latex else _tested(row, drawn))
                    for row in of.iter_rows(named=True)
                ),
            ]
            for names, of in pairs.group_by("first", "second", maintain_order=True)
        ]
        caption = f"{qrels}: differences, above 0 if the first is better; queries won/tied/lost"
        tables.append(Table(caption, ["pair", *metrics], rows))
    said = _test(values, test)
    if in_latex:
        return tables, [f"{ci:.0%} intervals, p-values of the {said}; needs \\usepackage{{booktabs}}"]
    return tables, [f"{ci:.0%} intervals, p-values of the {marked(said)}."]


def _small(row: dict[str, Any]) -> str:
    """Value in math mode, so that LaTeX prints a real minus sign, and its interval in small print."""
    deviation = row.get("seed_deviation")
    scatter = "" if deviation is None else rf" \pm {three_digits(deviation)}"
    return f"${three_digits(row['value'])}{scatter}$" + _small_interval(row)


def _small_difference(row: dict[str, Any], drawn: int | None) -> str:
    """Difference in the form of `_small`, and its test."""
    test = f", ${_p_is(row, drawn)}$, {_wins(row)}"
    return f"${_signed(row['difference'], three_digits)}$" + _small_interval(row) + test


def _small_interval(row: dict[str, Any]) -> str:
    low, high = (number(row[name]) for name in ("lower", "upper"))
    return (
        ""
        if low is None or high is None
        else rf" {{\scriptsize $[{three_digits(low)}, {three_digits(high)}]$}}"
    )


def _tested(row: dict[str, Any], drawn: int | None) -> str:
    return f"{_difference(row)}, {_p_is(row, drawn)}, {_wins(row)}"


def _p_is(row: dict[str, Any], drawn: int | None) -> str:
    text = p_value(row["p_value"], drawn)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def _signed(value: float, of: Callable[[float], str] = shown) -> str:
    """Difference with its sign."""
    text = of(value)
    return text if text.startswith("-") else f"+{text}"


def _value(row: dict[str, Any]) -> str:
    deviation = row.get("seed_deviation")
    scatter = "" if deviation is None else f" ± {shown(deviation)}"
    return f"{shown(row['value'])}{scatter} [{shown(row['lower'])}, {shown(row['upper'])}] #{row['rank']}"


def _wins(row: dict[str, Any]) -> str:
    return f"{row['wins']:,}/{row['ties']:,}/{row['losses']:,}"


def _difference(row: dict[str, Any]) -> str:
    ends = f"[{_signed(row['lower'])}, {_signed(row['upper'])}]"
    return f"{_signed(row['difference'])} {ends}"


def _interval(row: dict[str, Any]) -> str:
    value, low, high = (number(row[name]) for name in ("value", "lower", "upper"))
    if value is None:
        return "no order"
    if low is None or high is None:
        return f"{value:.3f} [undefined in some resample]"
    return interval(value, low, high)


def _confidence(coefficients: list[dict[str, Any]]) -> str:
    row = next(row for row in coefficients if row["coefficient"] == "tau")
    return f"[{row['confidence_lower']:.3f}, {row['confidence_upper']:.3f}]"
