"""`owkg ir`: measures of TREC runs, as trec_eval has them."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from owkg.cli.inputs import check_readable, check_writable
from owkg.cli.output import rows_of
from owkg.cli.systems import names_given, noted
from owkg.terminal.tables import printed


class IrFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    TREC = "trec"


def ir(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="TREC runs; tags tell systems apart.")],
    qrels: Annotated[Path, typer.Option(metavar="QRELS", help="TREC judgements.")],
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            help="AP, nDCG@10, P@10, Recall@100, Success@5, RR, Rprec, Bpref, infAP, RBP(p=0.8), Judged@10, "
            "or trec_eval's names; several with commas. Absent: AP, nDCG@10, P@10, Recall@100, RR.",
        ),
    ] = None,
    level: Annotated[int, typer.Option(min=1, help="Lowest relevance that is relevant.")] = 1,
    intersect: Annotated[
        bool,
        typer.Option(
            "--intersect", help="Only queries that every system answers. Absent: every judged query counts."
        ),
    ] = False,
    per_query: Annotated[
        Path | None, typer.Option("--per-query", metavar="FILE", help="Also write a row each query as CSV.")
    ] = None,
    ci: Annotated[float, typer.Option(help="Level of the intervals, over queries.")] = 0.95,
    form: Annotated[
        IrFormat, typer.Option("--format", help="For people, programs, spreadsheets, or as trec_eval -q.")
    ] = IrFormat.TABLE,
) -> None:
    """Measures of TREC runs under TREC qrels, whatever the topics are called; equal to trec_eval's.

    Every judged query counts, 0 where a run has no list for it (trec_eval -c). Two systems or more are
    compared by owkg compare with the same --metric.
    """
    from owkg.ir.names import trec_name
    from owkg.judge.topics import DEFAULT, evaluate_runs

    check_readable([*runs, qrels])
    check_writable([per_query], [*runs, qrels])
    names = names_given("metric", measure, DEFAULT)
    with noted():
        found, each = evaluate_runs(runs, qrels, names, intersect=intersect, level=level, ci=ci)
    if per_query is not None:
        from owkg.files.storage import written_aside

        with written_aside(per_query) as aside:
            each.write_csv(aside)
    if form is IrFormat.JSON:
        print(json.dumps({"values": rows_of(found), "queries": rows_of(each)}, indent=2, allow_nan=False))
    elif form is IrFormat.CSV:
        print(found.write_csv(), end="")
    elif form is IrFormat.TREC:
        several = found["system"].n_unique() > 1
        for (system,), own in each.group_by("system", maintain_order=True):
            lead = f"{system}\t" if several else ""
            # As trec_eval -q: query by query.
            for query, name, value in (
                own.sort("query", maintain_order=True).select("query", "measure", "value").rows()
            ):
                print(f"{lead}{trec_name(name)}\t{query}\t{value:.4f}")
            print(f"{lead}runid\tall\t{system}")
            print(f"{lead}num_q\tall\t{own['query'].n_unique()}")
            for name, value in found.filter(system=system).select("metric", "value").rows():
                print(f"{lead}{trec_name(name)}\tall\t{value:.4f}")
    else:
        metrics = found["metric"].unique(maintain_order=True).to_list()
        rows = []
        for (system,), own in found.group_by("system", maintain_order=True):
            cells = (
                f"{v:.4f} [{low:.3f}, {high:.3f}]"
                for v, low, high in own.select("value", "lower", "upper").rows()
            )
            rows.append([system, *cells])
        queries = each["query"].n_unique()
        printed(f"{queries:,} queries: mean [{ci:.0%} interval]", ["system", *metrics], rows)
