"""`owkg stability`: how the order of systems changes with fewer queries or triples."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli.options import Format, OutputFormat, Seed
from owkg.cli.output import number, rows_of
from owkg.cli.systems import Files, Graph, Intersect, Metrics, Ties, graph_of, metrics_named, noted
from owkg.terminal.progress import progress

_SIZES = "0.01,0.02,0.05,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,0.95"
_UNITS = {"query": "queries", "triple": "triples"}
# Orders that agree so well are taken for the same in the field.
_SAME = 0.9


class Unit(StrEnum):
    """What is drawn."""

    QUERY = "query"
    TRIPLE = "triple"


def stability(
    files: Files,
    qrels: Annotated[
        str | None,
        typer.Option(metavar="QRELS", help="TREC qrels, or a split of --kg: which answers are relevant."),
    ] = None,
    kg: Graph = None,
    metric: Metrics = None,
    size: Annotated[
        str | None,
        typer.Option(
            help=f"Shares of what is drawn, with commas. Absent: those of {_SIZES} that are one at least."
        ),
    ] = None,
    unit: Annotated[
        Unit, typer.Option(help="What is drawn: whole queries, or triples, on both sides at once.")
    ] = Unit.QUERY,
    draws: Annotated[int, typer.Option(min=2, help="Of each size.")] = 50,
    coefficient: Annotated[str, typer.Option(help="tau, tau-ap or spearman.")] = "tau",
    ties: Ties = None,
    intersect: Intersect = False,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write every draw as CSV, and a figure.")
    ] = None,
    form: OutputFormat = Format.TABLE,
) -> None:
    """The order of systems on random parts of the queries, or of the triples, against that on all of them.

    Section 5 of Zhou et al. (2022), who discard triples (--unit triple). Whole queries, the default, keep
    answers together that are not independent. Either is drawn without replacement. The metric of a system
    with several seeds (column seed) is the mean over them, in every draw.
    """

    from owkg.files.storage import writable_folder
    from owkg.ir.names import measures_named
    from owkg.judge.scores import require_placed, scores
    from owkg.judge.stability import stability as measured
    from owkg.judge.stability import stability_by_triple
    from owkg.judge.streamed import dataset_of, stream_scores
    from owkg.judge.systems import qrels_ranks, seed_notes, tie_rule
    from owkg.judge.topics import topic_scores

    chosen, sizes = metrics_named(metric), _numbers(size or _SIZES)
    if out is not None:
        writable_folder(out)
    tables: dict[str, Any] = {}
    rule = "realistic"
    with noted():
        if (measures := measures_named(chosen)) is not None:
            if qrels is None or unit is Unit.TRIPLE or ties is not None:
                raise ValueError(
                    "`metric` names measures of lists: they need --qrels, and queries as the unit."
                )
            if kg is not None:
                raise ValueError("`kg` has no effect on measures of lists.")
            read = topic_scores(files, qrels, measures, intersect=intersect)
        elif (
            dataset := dataset_of(
                files,
                ties=ties,
                needs={
                    "qrels": qrels is not None,
                    "kg": kg is not None,
                    "intersect": intersect,
                    "unit": unit is Unit.TRIPLE,
                },
            )
        ) is not None:
            rule = tie_rule(ties, [])
            with progress("reading", "parts") as update:
                read, _ = stream_scores(dataset, chosen, ties=rule, on_progress=update)
        else:
            (one,) = qrels_ranks(files, qrels, graph_of(kg), intersect=intersect)
            require_placed(one.tables, chosen, ties)
            tables, rule = one.tables, tie_rule(ties, [one])
            read, _ = scores(tables, chosen, ties=rule)
        if len(read.systems) < 2:
            raise ValueError("`systems` must name two systems at least: a single one cannot be ranked.")
        seed_notes(read)
    if unit is Unit.QUERY:
        count = len(read.queries)
    else:
        count = next(iter(tables.values())).frame.n_unique(["head", "relation", "tail"])
    if size is None:
        sizes = [share for share in sizes if 0 < round(share * count) < count]
    with progress("drawing", "draws") as update:
        options: dict[str, Any] = {"coefficient": coefficient, "on_progress": update}
        if unit is Unit.QUERY:
            found = measured(seed, read, sizes, draws, **options)
        else:
            found = stability_by_triple(seed, tables, chosen, sizes, draws, ties=rule, **options)
    table = _table(found)
    if out is not None:
        _write(found, table, coefficient, out)
    if form is Format.JSON:
        shown = {"coefficient": coefficient, "unit": unit, "draws": draws, "results": rows_of(table)}
        print(json.dumps(shown, indent=2, allow_nan=False))
    else:
        _print(found, table, coefficient, f"{count:,} {_UNITS[unit]}")


def _numbers(text: str) -> list[float]:
    try:
        return sorted({float(part) for part in text.split(",")})
    except ValueError:
        raise ValueError(f"`size` must be numbers, separated by commas, got {text!r}.") from None


def _table(found: Any) -> Any:
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


def _write(found: Any, table: Any, coefficient: str, out: Path) -> None:
    import numpy as np
    import polars as pl

    from owkg.cli.output import written_together
    from owkg.plots.judging import stability_figure

    metrics, sizes, draws = found.tau.shape
    every = pl.DataFrame(
        {
            "metric": np.repeat(found.metrics, sizes * draws),
            "share": np.tile(np.repeat(found.sizes, draws), metrics),
            "draw": np.tile(np.arange(draws), metrics * sizes),
            coefficient: found.tau.reshape(-1),
        }
    )
    label = {"tau": "Kendall's tau", "tau-ap": "AP correlation", "spearman": "Spearman's rho"}[coefficient]
    drawn = table.select("metric", "share", "mean", "lower", "upper").fill_nan(None)
    with written_together(out) as aside:
        table.write_csv(aside / "stability.csv")
        every.write_csv(aside / "stability_draws.csv")
        units = _UNITS[found.unit]
        axes = {"xlabel": f"share of the {units}", "ylabel": f"{label} with all {units}"}
        stability_figure(drawn, aside / "stability", **axes)


def _print(found: Any, table: Any, coefficient: str, units: str) -> None:
    from owkg.terminal.tables import printed

    rows, enough = [], []
    for (share,), own in table.group_by("share", maintain_order=True):
        by_metric = {row["metric"]: row for row in own.iter_rows(named=True)}
        rows.append([f"{share:g}", *(_cell(by_metric[metric]) for metric in found.metrics)])
    for metric in found.metrics:
        own = table.filter(metric=metric)
        shares = [row["share"] for row in own.iter_rows(named=True) if row["mean"] >= _SAME]
        never = "no order" if number(own["mean"].max()) is None else f"more than {found.sizes[-1]:g}"
        enough.append([metric, f"{shares[0]:g}" if shares else never])
    title = f"{coefficient} of the order on a share of {units} with that on all"
    printed(f"{title}: mean [95 % of draws]", ["share", *found.metrics], rows)
    printed(f"the smallest of these shares with a mean of at least {_SAME}", ["metric", "share"], enough)


def _cell(row: dict[str, Any]) -> str:
    if number(row["mean"]) is None:
        return "no order"
    return f"{row['mean']:.2f} [{row['lower']:.2f}, {row['upper']:.2f}]"
