"""`owkg chance`: values of random ranking on a benchmark, and published values adjusted for them."""

from pathlib import Path
from typing import Any

from owkg.cli.inputs import check_ending, check_writable, collected, graph_in
from owkg.cli.options import (
    Filter,
    Format,
    GraphOptions,
    OutputFormat,
    Split,
    sides_given,
    split_list,
    splits_given,
)
from owkg.cli.output import show, table_of, write_frame
from owkg.errors import naming


def chance(
    folders: list[Path],
    *,
    metric: list[str] | None = None,
    split: Split = "test",
    filter_: Filter = None,
    adjust: list[str] | None = None,
    sides: str = "head,tail",
    how: GraphOptions,
    out: Path | None = None,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Compute what random ranking would score on a benchmark, and adjust published values for it.

    The chance level is a property of the benchmark and needs no model: it follows from the number of
    candidates of each test triple. With --adjust, published values that were not adjusted for chance become
    comparable between benchmarks, as indices, ratios and z-scores.

    Args:
        folders (DIR...): Folders of the graphs, in any usual layout.
        metric (METRIC,...): Metrics that owkg metrics --list shows. Several with commas, or repeat the
            option. Default: the usual ones.
        adjust (METRIC=VALUE): Published value to adjust for chance, such as mrr=0.358. Repeat the option for
            several metrics.
        sides (SIDE,...): Sides over which the published value of --adjust is a mean: head, tail, or both as
            head,tail.

    Output:
        out (FILE): Write all chance levels to a file, .parquet or .csv, in addition to the printed ones.

    Examples:
        owkg chance data/fb15k237 --metric mrr,hits@10,mr
        owkg chance data/fb15k237 --adjust mrr=0.358 --adjust mr=177
        owkg chance data/nations data/umls data/wn18rr --out chance.parquet
    """
    import polars as pl

    from owkg import metrics as room
    from owkg.kg.read import Reading

    check_ending("out", out, ".parquet", ".csv")
    check_writable([out], ())
    names = [name for text in metric or () for name in split_list(text)] or None
    pairs = [_published(text) for text in adjust or ()]
    published = dict(pairs)
    if len(published) < len(pairs):
        raise ValueError("`adjust` must name each metric once.")
    both = len(asked := sides_given(sides)) == 2
    if not both and not pairs:
        raise ValueError(f"`sides` has no effect without --adjust, got {sides!r}.")
    options: dict[str, Any] = {"split": split, "filter": splits_given(filter_)}
    levels, adjusted, notes = [], [], []
    for folder in folders:
        with collected() as heard:
            graph = graph_in(folder, how.reading(Reading(duplicates="keep")))
        notes += heard
        own = pl.lit(folder.name).alias("graph")
        levels.append(room.chance_levels(graph, names, **options).select(own, pl.all()))
        if published:
            with naming({"published": "`adjust`"}):
                found = room.adjusted_values(graph, published, side="both" if both else asked[0], **options)
            adjusted.append(found.select(own, pl.all()))
    table, deviation = pl.concat(levels), pl.col("variance").sqrt().alias("deviation")
    if out is not None:
        write_frame(table, out)
    levels_shown = table.drop("variance").with_columns(table.select(deviation))
    tables = [table_of(f"Random ranking of {split}", levels_shown, ".6g")]
    if adjusted:
        tables.append(table_of("Published values, adjusted for chance", pl.concat(adjusted), ".6g"))
    payload = {"chance": table, "adjusted": pl.concat(adjusted) if adjusted else [], "notes": notes}
    show(form, payload, tables, [*notes, *([] if out is None else [f"wrote {out}"])])


def _published(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        raise ValueError(f"`adjust` must be NAME=VALUE, such as mrr=0.358, got {text!r}.") from None
