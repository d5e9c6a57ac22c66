"""`owkg compare`: systems side by side, which of them differ, and how far qrels agree on their order."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from owkg.cli import options
from owkg.cli.commands import Given
from owkg.cli.inputs import graph_of, names_of_systems, noted
from owkg.cli.options import named_files, split_list
from owkg.cli.output import show
from owkg.files.storage import writable_folder
from owkg.terminal.progress import progress


def compare(
    files: options.Systems,
    *,
    given: Given,
    metric: options.MetricsOfSystems = None,
    kg: options.GraphOfSystems = None,
    qrels: list[str] | None = None,
    by: str = "",
    ties: options.Ties = None,
    intersect: options.Intersect = False,
    name: options.Names = None,
    how: options.GraphOptions,
    test: options.TestName = "randomisation",
    correction: Literal["holm", "bh", "none"] = "holm",
    ci: float = 0.95,
    draws: Annotated[int, typer.Option(min=1)] = 10000,
    replicates: Annotated[int, typer.Option(min=2)] = 1000,
    tables: options.TableOptions,
    seed: options.Seed = 0,
    out: Path | None = None,
    format_: Literal["table", "json", "csv", "latex", "markdown"] = "table",
) -> None:
    """Compare systems: which of them differ, by how much, and whether other qrels give the same order.

    All tests and intervals treat whole queries, not single answers, as independent. If rank tables contain
    answers without judgements, these are not scored again. For the agreement between qrels, the replication
    interval of Kendall's tau is the range in which tau falls if as many queries are drawn again; the
    confidence interval is for the tau of infinitely many queries.

    Args:
        qrels (QRELS): Judgements that say which answers are relevant: TREC qrels, or a split of --kg. Repeat
            the option to compare the order of systems under each with the order under the first.
        by (NAME,...): Rank the systems also by side, relation or category; several with commas. Default: all
            queries together.

    Tests and intervals:
        test: Paired two-sided test of the difference, over queries.
        correction: Correction of the p-values of all pairs of one metric: holm, bh (Benjamini-Hochberg) or
            none.
        ci (LEVEL): Level of all intervals, in (0, 1). Tests use the level 1 - LEVEL.
        draws (N): Number of random sign flips of the randomisation test.
        replicates (N): Number of bootstrap resamples for the agreement between qrels.

    Output:
        out (DIR): Folder for all tables as CSV and for figures, in addition to the printed tables.
        format_: Print a table to read, JSON, CSV, a LaTeX table (booktabs), or Markdown.

    Examples:
        owkg compare transe.parquet complex.parquet rotate.parquet --kg data/fb15k237
        owkg compare ranks.parquet --qrels full.qrels --qrels sparse.qrels --out compared
        owkg compare a.run b.run --qrels test --kg data/fb15k237 --ties pessimistic --by side,category
        owkg compare bm25.run bert.run --qrels topics.qrels --metric AP,nDCG@10,P@10 --format latex
    """
    from owkg.cli.comparisons import compare_output as output
    from owkg.ir.names import measures_named
    from owkg.judge import compare as compared

    if test != "randomisation":
        given.refuse(["draws"], f"has no effect with --test {test}, which draws no random signs")
    if out is not None:
        writable_folder(out)
    systems, names = named_files(files, name), names_of_systems(metric)
    measures = measures_named(names)
    with noted(), progress("comparing", "metrics") as update:
        comparison = compared(
            systems,
            names if measures is None else [one.name for one in measures],
            qrels=qrels,
            graph=graph_of(kg, how),
            by=split_list(by),
            test=test,
            correction=correction,
            ci=ci,
            draws=draws,
            replicates=replicates,
            ties=ties,
            intersect=intersect,
            seed=seed,
            **tables.said(),
            on_progress=update,
        )
    found = dict(comparison.items())
    if out is not None:
        output.write(found, out)
    if format_ == "table":
        output.print_tables(found, ci, correction, test, draws)
    else:
        printed, lines = output.for_papers(found, ci, test, format_, draws)
        show(format_, found, printed, lines, frame=output.tidy(found))
