"""`owkg ir`: measures of TREC runs, equal to those of trec_eval."""

from pathlib import Path
from typing import Literal

from owkg.cli.commands import Given
from owkg.cli.inputs import check_readable, check_writable, noted
from owkg.cli.options import Level, Names, named_files, names_given
from owkg.cli.output import Table, interval, show, write_frame
from owkg.terminal.tables import one_line


def ir(
    runs: list[Path] | None = None,
    *,
    given: Given,
    qrels: Path | None = None,
    name: Names = None,
    metric: list[str] | None = None,
    level: Level = 1,
    intersect: bool = False,
    per_query: Path | None = None,
    ci: float = 0.95,
    format_: Literal["table", "json", "csv", "trec"] = "table",
    list_: bool = False,
) -> None:
    """Compute measures of TREC runs, equal to those of trec_eval, for topics of any name.

    Every judged query counts, with value 0 if a run has no list for it (trec_eval -c). To compare two systems
    or more, use owkg compare with the same --metric.

    Args:
        runs (RUN...): TREC runs, whose tags tell systems apart; or runs of MS MARCO, JSON {query: {answer:
            score}} and predictions of AnyBURL, which are named by their files.
        qrels (QRELS): Judgements in the format of TREC, MS MARCO or BEIR, or JSON {query: {answer:
            relevance}}.
        metric (MEASURE,...): Measures such as AP, nDCG@10, P@10, Recall@100, Success@5, RR, Rprec, Bpref,
            infAP, RBP(p=0.8), Judged@10, or trec_eval's names. Several with commas, or repeat the option.
            Default: AP, nDCG@10, P@10, Recall@100, RR.
        intersect: Use only the queries that every system answers. Default: every judged query counts.
        list_: Print every measure with its formula and source, and exit.

    Tests and intervals:
        ci (LEVEL): Level of the confidence intervals over queries, in (0, 1).

    Output:
        per_query (FILE): Write the value of each query as CSV, in addition to the printed means.
        format_: Print a table to read, JSON, CSV, or lines as trec_eval -q prints them.

    Examples:
        owkg ir bm25.run --qrels topics.qrels --metric AP,nDCG@10,P@10
        owkg ir bm25.run bert.run --qrels topics.qrels --per-query each.csv
        owkg ir bm25.run --qrels topics.qrels --metric map,ndcg_cut_10 --format trec
        owkg ir --list
    """
    from owkg.ir.names import MEASURES, trec_name
    from owkg.judge.topics import DEFAULT, evaluate_runs

    if list_:
        why = "has no effect with --list, which prints all measures"
        given.refuse(sorted(given - {"list_", "format_"}), why)
        if format_ == "trec":
            raise ValueError(f"`format` must be table, json or csv with --list, got {format_}.")
        from owkg.cli.ranks.metrics_output import print_listing

        letters = "p: positions, R: number of known relevant answers, g: relevance."
        print_listing(MEASURES, format_, letters)
        return
    if not runs or qrels is None:
        missing = "RUN" if not runs else "--qrels"
        raise ValueError(f"{missing} is missing: name runs and their qrels, or use --list.")
    check_readable([*runs, qrels])
    check_writable([per_query], [*runs, qrels])
    systems = named_files(runs, name)
    names = names_given("metric", metric, DEFAULT)
    with noted():
        found, each = evaluate_runs(systems, qrels, names, intersect=intersect, level=level, ci=ci)
    if per_query is not None:
        write_frame(each, per_query)
    if format_ == "trec":
        several = found["system"].n_unique() > 1
        for (system,), own in each.group_by("system", maintain_order=True):
            lead = f"{one_line(system)}\t" if several else ""
            # Query by query, like trec_eval -q.
            for query, measure, value in (
                own.sort("query", maintain_order=True).select("query", "measure", "value").rows()
            ):
                print(f"{lead}{trec_name(measure)}\t{one_line(query)}\t{value:.4f}")
            print(f"{lead}runid\tall\t{one_line(system)}")
            print(f"{lead}num_q\tall\t{own['query'].n_unique()}")
            for measure, value in found.filter(system=system).select("metric", "value").rows():
                print(f"{lead}{trec_name(measure)}\tall\t{value:.4f}")
        return
    rows = []
    for (system,), own in found.group_by("system", maintain_order=True):
        cells = own.select("value", "lower", "upper").rows()
        rows.append([system, *(interval(v, low, high) for v, low, high in cells)])
    title = f"{each['query'].n_unique():,} queries: mean [{ci:.0%} interval]"
    table = Table(title, ["system", *found["metric"].unique(maintain_order=True)], rows)
    show(format_, {"values": found, "queries": each}, [table], frame=found)
