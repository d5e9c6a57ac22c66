"""`owkg compare`: systems side by side, which of them differ, and how qrels agree on their order."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from owkg.cli.options import Seed
from owkg.cli.output import rows_of
from owkg.cli.systems import (
    Files,
    Graph,
    Intersect,
    Metrics,
    Ties,
    graph_of,
    metrics_named,
    noted,
    split_list,
)
from owkg.terminal.progress import progress


class TestName(StrEnum):
    RANDOMISATION = "randomisation"
    T = "t"
    WILCOXON = "wilcoxon"


class CompareFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    LATEX = "latex"
    MARKDOWN = "markdown"


class Correction(StrEnum):
    HOLM = "holm"
    BH = "bh"
    NONE = "none"


def compare(
    files: Files,
    qrels: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QRELS",
            help="TREC qrels, or a split of --kg: which answers are relevant. Repeat it to compare the "
            "order of systems under each with that under the first.",
        ),
    ] = None,
    kg: Graph = None,
    metric: Metrics = None,
    by: Annotated[
        str, typer.Option(help="Also rank the systems by side, relation, category; several with commas.")
    ] = "",
    test: Annotated[TestName, typer.Option(help="Paired, two-sided, over queries.")] = TestName.RANDOMISATION,
    correction: Annotated[
        Correction, typer.Option(help="Of the p-values of all pairs by one metric.")
    ] = Correction.HOLM,
    ci: Annotated[float, typer.Option(help="Level of all intervals; 1 - level is that of tests.")] = 0.95,
    draws: Annotated[int, typer.Option(min=1, help="Of the randomisation test.")] = 10_000,
    replicates: Annotated[int, typer.Option(min=2, help="Of the bootstrap of tau.")] = 1000,
    ties: Ties = None,
    intersect: Intersect = False,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write tables as CSV, and figures.")
    ] = None,
    form: Annotated[
        CompareFormat, typer.Option("--format", help="For people, programs, spreadsheets, papers.")
    ] = CompareFormat.TABLE,
) -> None:
    """Which systems differ and by how much, their values, and how far qrels agree on their order.

    A replication interval of tau says where it falls when as many queries are drawn again; where the tau
    of infinitely many queries is, says the confidence interval beside it. Whole queries are the sampling unit
    throughout. Of rank tables, judgements may leave out answers that are ranked: nothing is scored again.
    """
    from owkg.cli.comparisons import compare_output as output
    from owkg.files.storage import writable_folder
    from owkg.judge import compare as compared

    if out is not None:
        writable_folder(out)
    with noted(), progress("comparing", "metrics") as update:
        comparison = compared(
            files,
            metrics_named(metric),
            qrels=qrels,
            graph=graph_of(kg),
            by=split_list(by),
            test=test.value,
            correction=correction.value,
            ci=ci,
            draws=draws,
            replicates=replicates,
            ties=ties,
            intersect=intersect,
            seed=seed,
            on_progress=update,
        )
    found = dict(comparison.items())
    if out is not None:
        output.write(found, out)
    if form is CompareFormat.JSON:
        rows = {name: rows_of(table) for name, table in found.items()}
        print(json.dumps(rows, indent=2, allow_nan=False))
    elif form is CompareFormat.CSV:
        print(output.tidy(found).write_csv(), end="")
    elif form is CompareFormat.LATEX:
        output.print_latex(found, ci, test.value)
    elif form is CompareFormat.MARKDOWN:
        output.print_markdown(found, ci, test.value)
    else:
        output.show(found, ci, correction.value, test.value)
