"""Output of `owkg metrics`: nested JSON, tables for people, LaTeX for papers."""

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from owkg.cli.output import Table, number, show
from owkg.rank_weights.registry import Entry
from owkg.terminal.latex import latex_escaped
from owkg.terminal.tables import line, new_table, plain_text, put, shown

# What a table with a row a model shows when nothing is asked by name.
_SHORT = ("mrr", "hits@1", "hits@3", "hits@10", "mr", "amri", "amrr", "ahits@10", "macro-mrr")
# More metrics than these do not fit side by side.
_MOST_COLUMNS = 12


def _entry(row: dict[str, Any]) -> dict[str, Any]:
    """One number of the JSON output."""
    keys = ("value", "expectation", "variance", "ci_low", "ci_high", "standard_error", "effective_queries")
    entry = {key: None if row[key] is None else number(row[key]) for key in keys}
    if row.get("seeds"):
        entry |= {"seeds": row["seeds"], "deviation_over_seeds": number(row["deviation_over_seeds"])}
    if row["expectation_standard_error"]:  # drawn, not computed
        entry |= {key: number(row[key]) for key in _DRAWN}
    return entry


_DRAWN = ("expectation_standard_error", "variance_standard_error")


def _nested(found: pl.DataFrame) -> dict[str, Any]:
    """side -> tie rule -> metric -> numbers."""
    nested: dict[str, Any] = {}
    for row in found.iter_rows(named=True):
        nested.setdefault(row["side"], {}).setdefault(row["ties"], {})[row["metric"]] = _entry(row)
    return nested


def _pykeen(found: pl.DataFrame) -> dict[str, Any]:
    """PyKEEN's keys, side.ties.metric, and its values; what PyKEEN does not know is left out."""
    from owkg.metrics import metric, pykeen_key

    keys = {name: pykeen_key(metric(name)) for name in found["metric"].unique()}
    return {
        f"{row['side']}.{row['ties']}.{key}": None if row["value"] is None else number(row["value"])
        for row in found.iter_rows(named=True)
        if (key := keys[row["metric"]]) and row["ties"] != "exact"
    }


def nested_metrics(found: pl.DataFrame, *, pykeen: bool) -> dict[str, Any]:
    """side -> ties -> metric of one model; several models under `models`, groups under `by`.

    Args:
        found: what `owkg.metrics.report` returns.
        pykeen: flat keys of PyKEEN in the place of side -> ties -> metric.
    """
    form = _pykeen if pykeen else _nested

    def of_model(rows: pl.DataFrame) -> dict[str, Any]:
        result = form(rows.filter(pl.col("by").is_null()))
        groups = rows.filter(pl.col("by").is_not_null())
        if not groups.is_empty():
            result["by"] = {
                by: {group: form(part) for (group,), part in inner.group_by(["group"], maintain_order=True)}
                for (by,), inner in groups.group_by(["by"], maintain_order=True)
            }
        return result

    models = list(found.group_by(["model"], maintain_order=True))
    if len(models) == 1:
        return of_model(models[0][1])
    return {"models": {name: of_model(rows) for (name,), rows in models}}


def _scatter(row: dict[str, Any]) -> str:
    """The deviation over seeds; nothing for a single seed."""
    deviation = row.get("deviation_over_seeds")
    return "" if deviation is None else f" ± {shown(deviation)}"


def _seeds(found: pl.DataFrame) -> str:
    """How many seeds values are means over, in words; "" for single seeds."""
    if "seeds" not in found.columns:
        return ""
    counts = found.filter(pl.col("by").is_null())["seeds"].drop_nulls().unique().sort().to_list()
    return f"mean ± deviation over {' or '.join(map(str, counts))} seeds"


def _interval(row: dict[str, Any]) -> str:
    return "" if row["ci_low"] is None else f"[{shown(row['ci_low'])}, {shown(row['ci_high'])}]"


def print_metrics(found: pl.DataFrame, ci: float, sizes: Sequence[tuple[int, int]], protocol: str) -> None:
    """One model: a line a metric, a table for each side and tie rule. Otherwise: a line a model or group.

    Args:
        found: what `owkg.metrics.report` returns.
        ci: level of the intervals.
        sizes: tasks and tied tasks of each rank table.
        protocol: what filtered the ranks; "" where that is not known.
    """
    tasks, tied = (sum(column) for column in zip(*sizes, strict=True))
    whole = found.filter(pl.col("by").is_null())
    models = whole["model"].n_unique()
    single = models == 1 and len(found) == len(whole)
    head = f"{tasks:,} ranking tasks"
    if single:
        head += f", {whole['queries'].max():,} queries"
    line("Rank metrics", "bold")
    head += f", {protocol}" if protocol else ""
    seeds = _seeds(found)
    over = f"{seeds}; {100 * ci:g}% confidence intervals over queries" + (" and seeds" if seeds else "")
    line(f"{head}, {tied / tasks:.1%} tied; {over.removeprefix('; ')}", "dim")
    if single:
        for (side, ties), rows in whole.group_by(["side", "ties"], maintain_order=True):
            _vertical(f"side {side}, {ties} ranks", rows)
        return
    names = list(found["metric"].unique(maintain_order=True))
    if len(names) > _MOST_COLUMNS:
        names = [name for name in _SHORT if name in names]
        line("Some of the metrics; choose with --metric, see all with --format csv.", "dim")
    for (by,), rows in found.filter(pl.col("metric").is_in(names)).group_by(["by"], maintain_order=True):
        _horizontal(rows, names, None if by is None else str(by), models > 1)


def drawn(found: pl.DataFrame, divisions: Sequence[str]) -> pl.DataFrame:
    """The rows that `--figure` draws: both sides together and realistic ranks, unless they are divided by."""
    for name, usual in (("side", "both"), ("ties", "realistic")):
        if name not in divisions and usual in found[name]:
            found = found.filter(pl.col(name) == usual)
    names = found["metric"].unique(maintain_order=True).to_list()
    chosen = names if len(names) <= _MOST_COLUMNS else [name for name in _SHORT if name in names]
    divided = found.filter(pl.col("by").is_not_null())
    rows = (divided if len(divided) else found).filter(pl.col("metric").is_in(chosen or names))
    # The name of the division is that of every row.
    return rows.drop("by")


def _vertical(title: str, rows: pl.DataFrame) -> None:
    table = new_table(title=plain_text(title), title_justify="left")
    table.add_column("metric")
    for name in ("value", "confidence interval", "by chance", "deviation of chance"):
        table.add_column(name, justify="right")
    for row in rows.iter_rows(named=True):
        deviation = None if row["variance"] is None else row["variance"] ** 0.5
        table.add_row(
            plain_text(row["metric"]),
            f"{row['value']:,.0f}" if row["metric"] == "count" else shown(row["value"]) + _scatter(row),
            _interval(row),
            "" if row["expectation"] is None else shown(row["expectation"]),
            "" if deviation is None else shown(deviation),
        )
    put(table)


def _horizontal(rows: pl.DataFrame, names: list[str], by: str | None, models: bool) -> None:
    from rich.text import Text

    keys = ["model"] * models + ["group"] * (by is not None)
    keys += [key for key in ("side", "ties") if rows[key].n_unique() > 1]
    present = [name for name in names if name in rows["metric"]]
    table = new_table(title=None if by is None else f"by {by}", title_justify="left")
    for key in keys:
        table.add_column(str(by) if key == "group" else key)
    table.add_column("tasks", justify="right")
    for name in present:
        table.add_column(name, justify="right")
    for _, part in rows.group_by(["model", "group", "side", "ties"], maintain_order=True):
        first = part.row(0, named=True)
        cells = {
            row["metric"]: Text.assemble(shown(row["value"]) + _scatter(row), "\n", (_interval(row), "dim"))
            for row in part.iter_rows(named=True)
        }
        table.add_row(
            *(plain_text(first[key]) for key in keys),
            f"{first['tasks']:,}",
            *(cells.get(name, "") for name in present),
        )
    put(table)


def metrics_for_papers(found: pl.DataFrame, ci: float) -> tuple[Table, str]:
    """A LaTeX table with a line a model (or group, side, tie rule), the best value bold; and a line above it.

    Args:
        found: what `owkg.metrics.report` returns.
        ci: level of the intervals.
    """
    from owkg.metrics import metric

    names = list(found["metric"].unique(maintain_order=True))
    if len(names) > _MOST_COLUMNS:
        names = [name for name in _SHORT if name in names]
    keys = [key for key in ("model", "by", "group", "side", "ties") if found[key].n_unique() > 1] or ["side"]
    seeds = _seeds(found)
    said = f"{seeds or 'values'} and {100 * ci:g}% confidence intervals over queries"
    said += f"{' and seeds' if seeds else ''}; needs \\usepackage{{booktabs}}"
    comparable = found.filter(pl.col("by").is_null() & pl.col("value").is_not_null())
    best: dict[tuple[str, str, str], float] = {}
    for row in comparable.iter_rows(named=True):
        at = (row["metric"], row["side"], row["ties"])
        better = max if metric(row["metric"]).larger_is_better else min
        best[at] = better(best.get(at, row["value"]), row["value"])
    several = comparable["model"].n_unique() > 1
    lines = []
    for _, part in found.group_by(["model", "by", "group", "side", "ties"], maintain_order=True):
        rows = {row["metric"]: row for row in part.iter_rows(named=True)}
        first = part.row(0, named=True)
        cells = [latex_escaped("all" if first[key] is None else first[key]) for key in keys]
        for name in names:
            if name not in rows or rows[name]["value"] is None:
                cells.append("--")
                continue
            row = rows[name]
            value = shown(row["value"], 3)
            top = several and row["by"] is None and row["value"] == best[name, row["side"], row["ties"]]
            low, high = row["ci_low"], row["ci_high"]
            ends = "" if low is None else rf" {{\scriptsize [{shown(low, 3)}, {shown(high, 3)}]}}"
            deviation = row.get("deviation_over_seeds")
            scatter = "" if deviation is None else rf" $\pm$ {shown(deviation, 2)}"
            cells.append((rf"\textbf{{{value}}}" if top else value) + scatter + ends)
        lines.append(cells)
    return Table("", [*keys, *names], lines, len(keys)), said


def print_listing(entries: Iterable[Entry], form: str, letters: str) -> None:
    """Every metric: name, formula, range, direction, chance level, source.

    Args:
        entries: of the metrics.
        form: json and csv for programs; otherwise a table.
        letters: what those of the formulas stand for.
    """
    rows = [entry.listed() for entry in entries]
    if form in ("json", "csv"):
        show(form, rows, frame=pl.DataFrame(rows))
        return
    table = new_table()
    for name in rows[0]:
        table.add_column(name, no_wrap=name in ("name", "example"))
    for row in rows:
        table.add_row(*row.values())
    put(table)
    line(letters, "dim")
