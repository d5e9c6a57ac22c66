"""`owkg compare`: systems side by side, which of them differ, and how qrels agree on their order."""

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
    qrels: list[str] | None = None,
    kg: options.GraphOfSystems = None,
    how: options.GraphOptions,
    name: options.Names = None,
    metric: options.MetricsOfSystems = None,
    by: str = "",
    test: options.TestName = "randomisation",
    correction: Literal["holm", "bh", "none"] = "holm",
    ci: float = 0.95,
    draws: Annotated[int, typer.Option(min=1)] = 10000,
    replicates: Annotated[int, typer.Option(min=2)] = 1000,
    ties: options.Ties = None,
    intersect: options.Intersect = False,
    tables: options.TableOptions,
    seed: options.Seed = 0,
    out: Path | None = None,
    format_: Literal["table", "json", "csv", "latex", "markdown"] = "table",
) -> None:
    """Which systems differ and by how much, their values, and how far qrels agree on their order.

    A replication interval of tau says where it falls when as many queries are drawn again; where the tau
    of infinitely many queries is, says the confidence interval beside it. Whole queries are the sampling unit
    throughout. Of rank tables, judgements may leave out answers that are ranked: nothing is scored again.

    Args:
        qrels (QRELS): TREC qrels, or a split of --kg: which answers are relevant. Repeat it to compare the
            order of systems under each with that under the first.
        by: Also rank the systems by side, relation, category; several with commas.
        test: Paired, two-sided, over queries.
        correction: Of the p-values of all pairs by one metric.
        ci: Level of all intervals; 1 - level is that of tests.
        draws: Of the randomisation test.
        replicates: Of the bootstrap of tau.
        out (DIR): Also write tables as CSV, and figures.
        format_: For people, programs, spreadsheets, papers.

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
        given.refuse(["draws"], f"has no effect with --test {test}, which draws nothing")
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
        output.print_tables(found, ci, correction, test)
    else:
        printed, lines = output.for_papers(found, ci, test, format_)
        show(format_, found, printed, lines, frame=output.tidy(found))
