"""`owkg ranks generated`: rank table and ranges of metrics from lists that a language model wrote."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from owkg.cli.inputs import check_readable, check_writable, graph_and_notes
from owkg.cli.options import Format, GraphOptions, OutputFormat, Seed, Split, names_given
from owkg.cli.output import Table, show, wrote
from owkg.errors import naming

if TYPE_CHECKING:
    from owkg.judge.generated import Filtered


def generated(
    source: Path,
    *,
    kg: Path,
    how: GraphOptions,
    out: Path | None = None,
    aliases: Path | None = None,
    split: Split = "test",
    metric: list[str] | None = None,
    seed: Seed = 0,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Rank answers by lists that a language model wrote, and give metrics as ranges.

    The lists hold only part of all candidates. The range of a metric holds its value however the lists
    continue, and both ends are possible. An answer outside the vocabulary counts as wrong, unless --aliases
    maps it. owkg also prints the values under four conventions for candidates outside the list: they come
    next, at a uniform place, last, or get no credit. A sign test checks whether known answers look as if they
    had been removed before the lists were ranked.

    Args:
        source (LISTS): File of JSON lines, or one JSON array of objects, such as {"head": "oslo", "relation":
            "capital_of", "answers": ["norway"]}; a list without an order has "ranked": false.
        kg (DIR): Folder of the graph.
        out (FILE): Rank table to write: .parquet, .csv or .tsv. Default: no table.
        aliases (FILE): Other names of entities: lines of name and label, with a tab.
        metric (METRIC,...): Metrics that are means of weights which fall with the rank. Several with commas,
            or repeat the option. Default: mrr, hits@1, hits@10.

    Examples:
        owkg ranks generated answers.jsonl --kg data/fb15k237
        owkg ranks generated answers.jsonl --kg data/fb15k237 --aliases names.tsv --out ranks.parquet
    """
    import polars as pl

    from owkg.judge.generated import filtered_before, partial_metrics, ranks_of_lists, read_generated
    from owkg.pools.annotation import read_names

    check_readable([source, aliases])
    check_writable([out], [source, aliases])
    graph, notes = graph_and_notes(kg, how)
    lists = read_generated(source)
    names = None if aliases is None else read_names(aliases, "a name and a label")[0]
    models, parts = lists["model"].unique(maintain_order=True).to_list(), []
    with naming({"lists": "LISTS"}):
        found = ranks_of_lists(lists, graph, split=split, aliases=names)
        for model in models:
            own = lists.filter(pl.col("model") == model)
            report = ranks_of_lists(own, graph, split=split, aliases=names).report
            parts.append((report, filtered_before(own, graph, split=split, aliases=names, seed=seed)))
    chosen = names_given("metric", metric, ("mrr", "hits@1", "hits@10"))
    values = partial_metrics(found, chosen)
    if out is not None:
        found.table.write(out)
        wrote(out, f": {len(found.table.frame):,} ranks")
    shown, lines = [], []
    for model, (report, test) in zip(models, parts, strict=True):
        own = values.filter(model=model).drop("model")
        told = {"report": report, "filtered_before": test._asdict()}
        shown.append({"model": model, "metrics": own, **told})
        begin = f"{model}: " if len(models) > 1 else ""
        lines += [begin + text for text in _said(report, test, split)]
    cells = [[model, name, *(f"{value:.4f}" for value in row)] for model, name, *row in values.rows()]
    title = "metrics: lowest and highest possible value, and the value if candidates outside the list are"
    show(form, {"models": shown}, [Table(title, values.columns, cells)], lines, notes=notes)


def _said(report: dict[str, Any], test: "Filtered", split: str) -> Iterator[str]:
    """Sentences about the lists of a model."""
    yield (
        f"{report['lists']:,} lists ({report['unranked_lists']:,} without an order) of {report['answers']:,} "
        f"answers: {report['duplicates']:,} are duplicates, {report['unknown']:,} are outside the vocabulary"
    )
    yield (
        f"{report['ceiling']:.1%} of the test answers are in the lists: no reranking of the lists has a "
        "higher Hits@K if other answers count as not retrieved"
    )
    if report["unused_lists"]:
        yield f"{report['unused_lists']:,} lists belong to queries that {split} does not contain"
    if report["unanswered"]:
        yield f"{report['unanswered']:,} queries have no list"
    yield (
        f"sign test of a test answer and a known answer drawn for each of {test.queries:,} queries: only the "
        f"test answer is listed for {test.tested_alone:,}, only the known answer for {test.known_alone:,} "
        f"(p {test.p_value:.2g}): "
        + (
            "known answers seem to have been removed before ranking"
            if test.p_value < 0.01
            else "no sign that known answers were removed before ranking"
        )
    )
