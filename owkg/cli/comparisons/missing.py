"""`owkg missing`: how many true answers a test set lacks, at least, by judgements."""

from pathlib import Path
from typing import Annotated

import typer

from owkg.cli.inputs import check_readable, graph_and_notes
from owkg.cli.options import DESIGN_HELP, Format, GraphOptions, Level, OutputFormat, split_list
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
    sample: Path | None = None,
    design: Annotated[str | None, typer.Option(metavar="DESIGN", help=DESIGN_HELP)] = None,
    ci: float = 0.95,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Sparsity of a test set, from the answers that judging found in addition to the known ones.

    It is a lower bound, because what nobody judged, or pooled, may be true as well. It has a lower limit
    where queries were drawn at random, and an interval where these were judged completely (--design).
    owkg theory and owkg simulate take the sparsity as --sparsity.

    Splits that hold the truth which --split lacks, as missing.txt and test_full.txt of owkg sample, do not
    count as known.

    Args:
        qrels (POOL|QRELS): Folder of a pool, whose sheet may be filled in there; or judgements, such as owkg
            pool --read writes them.
        kg (DIR): Folder of the graph.
        split: Whose sparsity is asked for.
        by: Divide by side, category, relation; several with commas.
        unit: What is counted: answers to queries, as metrics average over, or triples.
        sample (QRELS): The answers of the split that were drawn to have their queries judged: queries of more
            answers are drawn more often, and count less. Absent: all judged queries count alike.
        ci: Level of the confidence intervals, over queries.

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
            f"must be no drawn pool, got {qrels}: owkg estimate --pool {qrels} gives its share of missing "
            "answers by its design, with an interval.",
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
        notes.append(f"{', '.join(hidden)}: hold facts that {split} lacks, which do not count as known.")
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
