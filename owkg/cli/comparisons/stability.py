"""`owkg stability`: how the order of systems changes with fewer queries or triples."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from owkg.cli import options
from owkg.cli.inputs import check_figure, check_writable, graph_of, metrics_given, names_of_systems, noted
from owkg.cli.output import Table, number, show, wrote
from owkg.errors import ArgumentError
from owkg.files.storage import writable_folder
from owkg.terminal.progress import progress

_SIZES = "0.01,0.02,0.05,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,0.95"
_UNITS = {"query": "queries", "triple": "triples"}
if TYPE_CHECKING:
    import polars as pl

    from owkg.judge.stability import Stability
    from owkg.ranks import RankTable

# Coefficient from which the field treats two orders as the same.
_SAME = 0.9


def stability(
    files: options.Systems,
    *,
    metric: options.MetricsOfSystems = None,
    size: str | None = None,
    draws: Annotated[int, typer.Option(min=2)] = 50,
    unit: Literal["query", "triple"] = "query",
    coefficient: str = "tau",
    kg: options.GraphOfSystems = None,
    qrels: str | None = None,
    ties: options.Ties = None,
    intersect: options.Intersect = False,
    name: options.Names = None,
    how: options.GraphOptions,
    table: options.TableOptions,
    seed: options.Seed = 0,
    out: Path | None = None,
    figure: Path | None = None,
    form: options.OutputFormat = options.Format.TABLE,
) -> None:
    """Measure how stable the order of systems is when only part of the queries or triples is used.

    The method is that of Section 5 of Zhou et al. (2022), who discard triples (--unit triple). By default
    whole queries are drawn, which keeps dependent answers together. Both are drawn without replacement. For a
    system with several seeds (column seed), the metric is the mean over seeds in every draw.

    Args:
        qrels (QRELS): Judgements that say which answers are relevant: TREC qrels, or a split of --kg.
        size (SHARE,...): Shares of the queries or triples to draw, with commas. Default:
            0.01,0.02,0.05,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,0.95, without shares below one query.
        unit: Unit that is drawn: whole queries, or triples with both of their sides.
        draws (N): Number of random draws for each share.
        coefficient (NAME): Coefficient of agreement between orders: tau, tau-ap or spearman.

    Output:
        out (DIR): Folder for every draw as CSV and for a figure, in addition to the printed table.
        figure (FILE): Draw the agreement with the order by all queries, by share: .png, .pdf or .svg.

    Examples:
        owkg stability transe.parquet complex.parquet rotate.parquet --draws 100 --out stability
        owkg stability ranks.parquet --metric mrr,macro-map@20 --size 0.1,0.5 --coefficient tau-ap
    """

    from owkg.ir.names import measures_named
    from owkg.judge.scores import require_placed, scores
    from owkg.judge.stability import stability as measured
    from owkg.judge.stability import stability_by_triple
    from owkg.judge.streamed import dataset_of, stream_scores
    from owkg.judge.systems import qrels_ranks, seed_notes, tie_rule
    from owkg.judge.topics import topic_scores

    systems = options.named_files(files, name)
    names, sizes = names_of_systems(metric), _numbers(size or _SIZES)
    measures = measures_named(names)
    chosen = (metrics_given(names) or []) if measures is None else []
    how.require(kg)
    check_figure(figure)
    given = [Path(qrels)] if qrels else []
    check_writable([figure], [*files, *given])
    if out is not None:
        writable_folder(out)
    tables: dict[str, RankTable] = {}
    reading = table.reading()
    needs = {"qrels": qrels is not None, "kg": kg is not None}
    needs |= {"intersect": intersect, "unit": unit == "triple"}
    rule = "realistic"
    with noted():
        if measures is not None:
            if qrels is None or unit == "triple" or ties is not None:
                raise ValueError(
                    "`metric` names measures of lists: they need --qrels and --unit query, without --ties."
                )
            if kg is not None:
                raise ValueError("`kg` has no effect on measures of lists.")
            if reading.said:
                raise ArgumentError(reading.said, "has no effect on measures of lists, only on rank metrics.")
            read = topic_scores(systems, qrels, measures, intersect=intersect)
        elif (
            dataset := dataset_of(systems, ties=ties, needs=needs, reading=reading, lacking=kg is not None)
        ) is not None:
            rule = tie_rule(ties, [])
            with progress("reading", "parts") as update:
                read, _ = stream_scores(dataset, chosen, ties=rule, on_progress=update)
        else:
            (one,) = qrels_ranks(systems, qrels, graph_of(kg, how), intersect=intersect, reading=reading)
            require_placed(one.tables, chosen, ties)
            tables, rule = one.tables, tie_rule(ties, [one])
            read, _ = scores(tables, chosen, ties=rule)
        if len(read.systems) < 2:
            raise ValueError("`systems` must name at least two systems: a single one cannot be ranked.")
        seed_notes(read)
    if unit == "query":
        count = len(read.queries)
    else:
        count = next(iter(tables.values())).frame.n_unique(["head", "relation", "tail"])
    if size is None:
        sizes = [share for share in sizes if 0 < round(share * count) < count]
    with progress("drawing", "draws") as update:
        told: dict[str, Any] = {"coefficient": coefficient, "on_progress": update}
        if unit == "query":
            found = measured(seed, read, sizes, draws, **told)
        else:
            found = stability_by_triple(seed, tables, chosen, sizes, draws, ties=rule, **told)
    shown = _table(found)
    if out is not None:
        _write(found, shown, out)
    if figure is not None:
        from owkg.plots import save_figure

        save_figure(found.plot(), figure)
        wrote(figure)
    payload = {"coefficient": coefficient, "unit": unit, "draws": draws, "results": shown}
    show(form, payload, _tables(found, shown, coefficient, f"{count:,} {_UNITS[unit]}"))


def _numbers(text: str) -> list[float]:
    try:
        return sorted({float(part) for part in text.split(",")})
    except ValueError:
        raise ValueError(f"`size` must be numbers, separated by commas, got {text!r}.") from None


def _table(found: "Stability") -> "pl.DataFrame":
    import polars as pl

    low, middle, high = (found.quantiles[found.at.index(q)] for q in (0.025, 0.5, 0.975))
    rows = [
        {
            "metric": metric,
            "share": float(share),
            _UNITS[found.unit]: int(found.queries[s]),
            "mean": float(found.mean[m, s]),
            "deviation": float(found.standard_deviation[m, s]),
            "lower": float(low[m, s]),
            "median": float(middle[m, s]),
            "upper": float(high[m, s]),
        }
        for m, metric in enumerate(found.metrics)
        for s, share in enumerate(found.sizes)
    ]
    return pl.DataFrame(rows)


def _write(found: "Stability", table: "pl.DataFrame", out: Path) -> None:
    import numpy as np
    import polars as pl

    from owkg.cli.output import write_csv, written_together
    from owkg.plots import save_figure

    metrics, sizes, draws = found.tau.shape
    every = pl.DataFrame(
        {
            "metric": np.repeat(found.metrics, sizes * draws),
            "share": np.tile(np.repeat(found.sizes, draws), metrics),
            "draw": np.tile(np.arange(draws), metrics * sizes),
            found.coefficient: found.tau.reshape(-1),
        }
    )
    with written_together(out) as aside:
        write_csv(table, aside / "stability.csv")
        write_csv(every, aside / "stability_draws.csv")
        save_figure(found.plot(), aside / "stability")


def _tables(found: "Stability", table: "pl.DataFrame", coefficient: str, units: str) -> list[Table]:
    rows, enough = [], []
    for (share,), own in table.group_by("share", maintain_order=True):
        by_metric = {row["metric"]: row for row in own.iter_rows(named=True)}
        rows.append([f"{share:g}", *(_cell(by_metric[metric]) for metric in found.metrics)])
    for metric in found.metrics:
        own = table.filter(metric=metric)
        shares = [row["share"] for row in own.iter_rows(named=True) if row["mean"] >= _SAME]
        never = "no order" if number(own["mean"].max()) is None else f"more than {found.sizes[-1]:g}"
        enough.append([metric, f"{shares[0]:g}" if shares else never])
    title = f"{coefficient} between the order by a share of {units} and the order by all"
    return [
        Table(f"{title}: mean [range of 95 % of draws]", ["share", *found.metrics], rows),
        Table(f"smallest of these shares with a mean of at least {_SAME}", ["metric", "share"], enough),
    ]


def _cell(row: dict[str, Any]) -> str:
    if number(row["mean"]) is None:
        return "no order"
    return f"{row['mean']:.2f} [{row['lower']:.2f}, {row['upper']:.2f}]"
