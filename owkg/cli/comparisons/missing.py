"""`owkg missing`: lower bound, from judgements, of the share of true answers that a test set lacks."""

from pathlib import Path
from typing import Annotated

import typer

from owkg.cli.inputs import check_readable, graph_and_notes
from owkg.cli.options import DESIGN_HELP, Format, GraphOptions, JudgedSample, Level, OutputFormat, split_list
from owkg.cli.output import show, table_of
from owkg.errors import ArgumentError, naming


def missing(
    qrels: Path,
    *,
    kg: Path,
    how: GraphOptions,
    split: str = "test",
    by: str = "",
    unit: str = "answer",
    level: Level = 1,
    sample: JudgedSample = None,
    design: Annotated[str | None, typer.Option(metavar="DESIGN", help=DESIGN_HELP)] = None,
    ci: float = 0.95,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Estimate the sparsity of a test set from the answers that judging found.

    The result is a lower bound, because answers that nobody judged or pooled may be true as well. owkg prints
    a lower confidence limit if the queries were drawn at random, and an interval if these were judged
    completely (--design). owkg theory and owkg simulate take the sparsity as --sparsity.

    Splits that hold true facts which --split lacks, such as missing.txt and test_full.txt of owkg sample, do
    not count as known.

    Args:
        qrels (POOL|QRELS): Folder of a pool, whose sheet may be filled in there; or judgements, such as those
            that owkg pool --read writes.
        kg (DIR): Folder of the graph.
        split (SPLIT): Split whose sparsity is estimated.
        by (NAME,...): Divide results by side, category or relation; several with commas. Default: no
            division.
        unit (answer|triple): Unit that is counted: answers to queries, over which metrics average, or
            triples.

    Tests and intervals:
        ci (LEVEL): Level of the confidence intervals over queries, in (0, 1).

    Examples:
        owkg missing judged.qrels --kg data/fb15k237
        owkg missing judged.qrels --kg data/fb15k237 --by category,side --format json
    """
    from owkg.kg import fact_splits, known_splits
    from owkg.pools.missing import design_of, found_by_depth, judgements, missing_share

    check_readable([sample, None if qrels.is_dir() else qrels])
    graph, notes = graph_and_notes(kg, how)
    judged, candidates, known, pool = judgements(qrels, design)
    if pool is not None:
        raise ArgumentError(
            "qrels",
            f"must not be a drawn pool, got {qrels}: owkg estimate --pool {qrels} estimates its share of "
            "missing answers, with an interval.",
        )
    drawn = None if sample is None else judgements(sample).qrels
    chosen = design_of(known, judged, drawn)
    with naming({"qrels": f"{qrels}:"}):
        found = missing_share(
            judged,
            graph,
            split=split,
            by=split_list(by),
            unit=unit,
            level=level,
            ci=ci,
            sample=drawn,
            design=chosen,
        )
    hidden = [name for name in fact_splits(graph) if name not in known_splits(graph, split)]
    if any(len(graph.splits[name]) for name in hidden):
        notes.append(f"{', '.join(hidden)}: contain facts that {split} lacks, which do not count as known.")
    depths = None
    if candidates is not None:
        depths = found_by_depth(judged, candidates, graph, split=split, level=level)
    least = "" if chosen.estimates else ", at least"
    heads = [f"sparsity{least}" if name == "sparsity_at_least" else name for name in found.columns]
    tables = [table_of(f"Sparsity of {split}{least}; by {unit}", found, ".3f")._replace(columns=heads)]
    payload = {"design": str(chosen), "sparsity": found}
    if depths is not None:
        tables.append(table_of("Judged candidates by depth", depths, ".3f"))
        payload["depths"] = depths
    show(form, payload, tables, [f"design: {chosen}, {chosen.in_words}"], notes=notes)
