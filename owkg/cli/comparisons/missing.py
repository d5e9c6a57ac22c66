"""`owkg missing`: how many true answers a test set lacks, at least, by judgements."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli.inputs import check_readable, graph_and_notes
from owkg.cli.options import DesignName, Format, OutputFormat
from owkg.cli.output import rows_of
from owkg.errors import naming


def missing(
    qrels: Annotated[
        Path,
        typer.Argument(
            metavar="POOL|QRELS",
            help="Folder of a pool, whose sheet may be filled in there; or judgements, such as "
            "owkg pool --read writes them.",
        ),
    ],
    kg: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the graph.")],
    split: Annotated[str, typer.Option(help="Whose sparsity is asked for.")] = "test",
    by: Annotated[str, typer.Option(help="Divide by side, category, relation; several with commas.")] = "",
    unit: Annotated[
        str, typer.Option(help="What is counted: answers to queries, as metrics average over, or triples.")
    ] = "answer",
    level: Annotated[int, typer.Option(min=1, help="Lowest relevance that is relevant.")] = 1,
    sample: Annotated[
        Path | None,
        typer.Option(
            metavar="QRELS",
            help="The answers of the split that were drawn to have their queries judged: queries of more "
            "answers are drawn more often, and count less. Absent: all judged queries count alike.",
        ),
    ] = None,
    design: DesignName = None,
    ci: Annotated[float, typer.Option(help="Level of the confidence intervals, over queries.")] = 0.95,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Sparsity of a test set, from the answers that judging found in addition to the known ones.

    It is a lower bound, because what nobody judged, or pooled, may be true as well. It has a lower limit
    where queries were drawn at random, and an interval where these were judged completely (--design).
    owkg theory and owkg simulate take the sparsity as --sparsity.

    Splits that hold the truth which --split lacks, as missing.txt and test_full.txt of owkg sample, do not
    count as known.
    """
    from owkg.kg import fact_splits, known_splits
    from owkg.pools.missing import design_of, found_by_depth, judgements, missing_share
    from owkg.terminal.tables import line, printed

    check_readable([sample, None if qrels.is_dir() else qrels])
    graph, notes = graph_and_notes(kg)
    judged, candidates, known = judgements(qrels, design)
    groups = [name.strip() for name in by.split(",") if name.strip()]
    drawn = None if sample is None else judgements(sample).qrels
    how = design_of(known, judged, drawn)
    options: Any = {"split": split, "unit": unit, "level": level, "ci": ci, "sample": drawn, "design": how}
    with naming({"qrels": f"{qrels}:"}):
        found = missing_share(judged, graph, by=groups, **options)
    hidden = [name for name in fact_splits(graph) if name not in known_splits(graph, split)]
    if any(len(graph.splits[name]) for name in hidden):
        notes.append(f"{', '.join(hidden)}: hold facts that {split} lacks, which do not count as known.")
    depths = (
        None if candidates is None else found_by_depth(judged, candidates, graph, split=split, level=level)
    )
    if form is Format.JSON:
        more = {} if depths is None else {"depths": rows_of(depths)}
        said = {"design": str(how), "sparsity": rows_of(found), **more, "notes": notes}
        print(json.dumps(said, indent=2))
        return
    least = "" if how.estimates else ", at least"
    heads = [f"sparsity{least}" if name == "sparsity_at_least" else name for name in found.columns]
    printed(f"Sparsity of {split}{least}; by {unit}", heads, map(_cells, found.iter_rows()))
    if depths is not None:
        printed("Judged candidates by depth", depths.columns, map(_cells, depths.iter_rows()))
    line(f"design: {how}, {how.in_words}", "dim")
    for note in notes:
        line(f"note: {note}")


def _cells(row: tuple[Any, ...]) -> list[str]:
    return ["-" if x is None else f"{x:.3f}" if isinstance(x, float) else str(x) for x in row]
