"""Output of `owkg metrics`: nested JSON, tables for people, LaTeX for papers."""

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from owkg.cli.output import Table, number, show
from owkg.rank_weights.registry import Entry
from owkg.terminal.latex import latex_escaped, small_caps, three_digits
from owkg.terminal.tables import console, line, new_table, printed, shown

# Metrics of a table with one row for each model, unless --metric is given.
_SHORT = ("mrr", "hits@1", "hits@3", "hits@10", "mr", "amri", "amrr", "ahits@10", "macro-mrr")
# Smallest width of a terminal on which the list of metrics has one row for each metric.
_LISTING = 140
# Largest number of metrics that fit side by side.
_MOST_COLUMNS = 12


def _entry(row: dict[str, Any]) -> dict[str, Any]:
    """Value of a metric with its interval and chance level, for JSON."""
    keys = ("value", "expectation", "variance", "ci_low", "ci_high", "standard_error", "effective_queries")
    entry = {key: None if row[key] is None else number(row[key]) for key in keys}
    if row.get("seeds"):
        entry |= {"seeds": row["seeds"], "deviation_over_seeds": number(row["deviation_over_seeds"])}
    if row["expectation_standard_error"]:  # drawn, not computed
        entry |= {key: number(row[key]) for key in _DRAWN}
    return entry


_DRAWN = ("expectation_standard_error", "variance_standard_error")


def _nested(found: pl.DataFrame) -> dict[str, Any]:
    """Numbers by side, tie rule and metric."""
    nested: dict[str, Any] = {}
    for row in found.iter_rows(named=True):
        nested.setdefault(row["side"], {}).setdefault(row["ties"], {})[row["metric"]] = _entry(row)
    return nested


def _pykeen(found: pl.DataFrame) -> dict[str, Any]:
    """Values by PyKEEN's keys side.ties.metric, without metrics that PyKEEN does not have."""
    from owkg.metrics import metric, pykeen_key

    keys = {name: pykeen_key(metric(name)) for name in found["metric"].unique()}
    return {
        f"{row['side']}.{row['ties']}.{key}": None if row["value"] is None else number(row["value"])
        for row in found.iter_rows(named=True)
        if (key := keys[row["metric"]]) and row["ties"] != "exact"
    }


def nested_metrics(found: pl.DataFrame, *, pykeen: bool) -> dict[str, Any]:
    """Numbers by side, tie rule and metric; several models are under `models`, groups under `by`.

    Args:
        found: result of `owkg.metrics.report`.
        pykeen: whether to use PyKEEN's flat keys instead of nested ones.
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
    """Deviation over seeds; empty for a single seed."""
    deviation = row.get("deviation_over_seeds")
    return "" if deviation is None else f" ± {shown(deviation)}"


def _seeds(found: pl.DataFrame) -> str:
    """Number of seeds of the means, in words; empty for single seeds."""
    if "seeds" not in found.columns:
        return ""
    counts = found.filter(pl.col("by").is_null())["seeds"].drop_nulls().unique().sort().to_list()
    return f"mean ± deviation over {' or '.join(map(str, counts))} seeds"


def _interval(row: dict[str, Any]) -> str:
    return "" if row["ci_low"] is None else f"[{shown(row['ci_low'])}, {shown(row['ci_high'])}]"


def print_metrics(found: pl.DataFrame, ci: float, sizes: Sequence[tuple[int, int]], protocol: str) -> None:
    """Prints a line for each metric of one model, or a line for each of several models or groups.

    Args:
        found: result of `owkg.metrics.report`.
        ci: level of the intervals.
        sizes: tasks and tied tasks of each rank table.
        protocol: filter of the ranks in words; empty if unknown.
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
        line("Only some metrics; choose with --metric, or print all with --format csv.", "dim")
    for (by,), rows in found.filter(pl.col("metric").is_in(names)).group_by(["by"], maintain_order=True):
        _horizontal(rows, names, None if by is None else str(by), models > 1)


def drawn(found: pl.DataFrame, divisions: Sequence[str]) -> pl.DataFrame:
    """Rows that `--figure` draws: both sides together and realistic ranks, unless `divisions` has these."""
    for name, usual in (("side", "both"), ("ties", "realistic")):
        if name not in divisions and usual in found[name]:
            found = found.filter(pl.col(name) == usual)
    names = found["metric"].unique(maintain_order=True).to_list()
    chosen = names if len(names) <= _MOST_COLUMNS else [name for name in _SHORT if name in names]
    divided = found.filter(pl.col("by").is_not_null())
    rows = (divided if len(divided) else found).filter(pl.col("metric").is_in(chosen or names))
    # All rows have the same division, so its name is dropped.
    return rows.drop("by")


def _vertical(title: str, rows: pl.DataFrame) -> None:
    cells = []
    for row in rows.iter_rows(named=True):
        deviation = None if row["variance"] is None else row["variance"] ** 0.5
        cells.append(
            [
                row["metric"],
                f"{row['value']:,.0f}" if row["metric"] == "count" else shown(row["value"]) + _scatter(row),
                _interval(row),
                "" if row["expectation"] is None else shown(row["expectation"]),
                "" if deviation is None else shown(deviation),
            ]
        )
    printed(title, ["metric", "value", "confidence interval", "by chance", "deviation of chance"], cells)


def _horizontal(rows: pl.DataFrame, names: list[str], by: str | None, models: bool) -> None:
    keys = ["model"] * models + ["group"] * (by is not None)
    keys += [key for key in ("side", "ties") if rows[key].n_unique() > 1]
    present = [name for name in names if name in rows["metric"]]
    lines = []
    for _, part in rows.group_by(["model", "group", "side", "ties"], maintain_order=True):
        first = part.row(0, named=True)
        cells = {
            row["metric"]: f"{shown(row['value'])}{_scatter(row)}\n{_interval(row)}"
            for row in part.iter_rows(named=True)
        }
        values = [cells.get(name, "") for name in present]
        lines.append([*(first[key] for key in keys), f"{first['tasks']:,}", *values])
    heads = [str(by) if key == "group" else key for key in keys]
    title = "" if by is None else f"by {by}"
    printed(title, [*heads, "tasks", *present], lines, max(len(keys), 1), as_given=True)


def metrics_for_papers(found: pl.DataFrame, ci: float) -> tuple[Table, str]:
    """LaTeX table with a row for each model (or group, side, tie rule), and a line above it.

    Args:
        found: result of `owkg.metrics.report`.
        ci: level of the intervals.
    """
    names = list(found["metric"].unique(maintain_order=True))
    if len(names) > _MOST_COLUMNS:
        names = [name for name in _SHORT if name in names]
    keys = [key for key in ("model", "by", "group", "side", "ties") if found[key].n_unique() > 1] or ["side"]
    seeds = _seeds(found)
    said = f"{seeds or 'values'} and {100 * ci:g}% confidence intervals over queries"
    said += f"{' and seeds' if seeds else ''}; needs \\usepackage{{booktabs}}"
    lines = []
    for _, part in found.group_by(["model", "by", "group", "side", "ties"], maintain_order=True):
        rows = {row["metric"]: row for row in part.iter_rows(named=True)}
        first = part.row(0, named=True)
        cells = [
            small_caps(first[key])
            if key == "model"
            else latex_escaped("all" if first[key] is None else first[key])
            for key in keys
        ]
        for name in names:
            if name not in rows or rows[name]["value"] is None:
                cells.append("--")
                continue
            row = rows[name]
            value = three_digits(row["value"])
            low, high = row["ci_low"], row["ci_high"]
            ends = "" if low is None else rf" {{\scriptsize [{three_digits(low)}, {three_digits(high)}]}}"
            deviation = row.get("deviation_over_seeds")
            scatter = "" if deviation is None else rf" $\pm$ {three_digits(deviation)}"
            cells.append(value + scatter + ends)
        lines.append(cells)
    return Table("", [*keys, *names], lines, len(keys)), said


def _joined(row: dict[str, str]) -> str:
    return "; ".join(f"{key} {of}" for key, of in row.items())


def print_listing(entries: Iterable[Entry], form: str, letters: str) -> None:
    """Prints name, formula, range, direction, chance level and source of every metric.

    Args:
        entries: entries of the metrics.
        form: json or csv; any other value prints a table.
        letters: meaning of the letters in the formulas.
    """
    rows = [entry.listed() for entry in entries]
    if form in ("json", "csv"):
        show(form, rows, frame=pl.DataFrame(rows))
        return
    if console().width < _LISTING:  # everything except the name goes into one column
        rows = [
            {"name": row.pop("name"), "formula and more": f"{row.pop('formula')}\n{_joined(row)}"}
            for row in rows
        ]
    table = new_table()
    for name in rows[0]:
        table.add_column(name, no_wrap=name in ("name", "example"), overflow="fold")
    for row in rows:
        table.add_row(*row.values())
    console().print(table)
    line(letters, "dim")
