"""`owkg chance`: what random ranking reads on a benchmark, and published values adjusted for it."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli.inputs import check_writable, collected, graph_in
from owkg.cli.options import Format, OutputFormat
from owkg.cli.output import rows_of
from owkg.errors import naming


def chance(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of graphs.")],
    metric: Annotated[
        list[str] | None,
        typer.Option(help="Names of metrics, with commas; repeatable.", show_default="the usual ones"),
    ] = None,
    split: Annotated[str, typer.Option(help="Whose triples are ranked.")] = "test",
    filter_: Annotated[
        str | None,
        typer.Option(
            "--filter",
            help="Splits whose known answers leave the candidates, or none.",
            show_default="train,valid,test, as far as the graph has them, and --split",
        ),
    ] = None,
    adjust: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="A published value to adjust, such as mrr=0.358; repeatable."
        ),
    ] = None,
    side: Annotated[str, typer.Option(help="Of --adjust: head, tail, or both.")] = "both",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write all chance levels, as .parquet or .csv.")
    ] = None,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Mean and deviation of metrics under random ranking: a property of a benchmark, no model is needed.

    They follow from the number of candidates of each test triple. With --adjust, published values that were
    not adjusted for chance become comparable between benchmarks: indices, ratios and z of them.
    """
    import polars as pl

    from owkg import metrics as room
    from owkg.files.storage import written_aside
    from owkg.terminal.tables import line, printed

    if out is not None and out.suffix not in (".parquet", ".csv"):
        raise ValueError(f"`out` must end in .parquet or .csv, got {str(out)!r}.")
    check_writable([out], ())
    names = [name.strip() for given in metric or () for name in given.split(",")] or None
    pairs = [_published(text) for text in adjust or ()]
    published = dict(pairs)
    if len(published) < len(pairs):
        raise ValueError("`adjust` must name each metric once.")
    if side != "both" and not pairs:
        raise ValueError(f"`side` is of --adjust, which is not given, got {side!r}.")
    filters = None if filter_ is None else [] if filter_ == "none" else filter_.split(",")
    options: dict[str, Any] = {"split": split, "filter": filters}
    levels, adjusted, notes = [], [], []
    for folder in folders:
        with collected() as heard:
            graph = graph_in(folder, duplicates="keep")
        notes += heard
        own = pl.lit(folder.name).alias("graph")
        levels.append(room.chance_levels(graph, names, **options).select(own, pl.all()))
        if published:
            with naming({"published": "`adjust`"}):
                found = room.adjusted_values(graph, published, side=side, **options)
            adjusted.append(found.select(own, pl.all()))
    table = pl.concat(levels)
    if out is not None:
        with written_aside(out) as aside:
            table.write_parquet(aside) if out.suffix == ".parquet" else table.write_csv(aside)
    if form is Format.JSON:
        rows = rows_of(pl.concat(adjusted)) if adjusted else []
        print(json.dumps({"chance": rows_of(table), "adjusted": rows, "notes": notes}, indent=2))
        return
    deviation = pl.col("variance").sqrt().alias("deviation")
    for shown, title in (
        (table.drop("variance").with_columns(table.select(deviation)), f"Random ranking of {split}"),
        *(
            (one, "Published values, adjusted for chance")
            for one in ([pl.concat(adjusted)] if adjusted else [])
        ),
    ):
        printed(title, shown.columns, [[_cell(value) for value in row] for row in shown.iter_rows()])
    for text in (*notes, *([] if out is None else [f"wrote {out}"])):
        line(text)


def _published(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        raise ValueError(f"`adjust` must be NAME=VALUE, such as mrr=0.358, got {text!r}.") from None


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
