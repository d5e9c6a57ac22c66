"""`owkg missing`: how many true answers a test set lacks, at least, by judgements."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli.inputs import check_readable, graph_and_notes
from owkg.cli.options import Format, OutputFormat
from owkg.cli.output import rows_of


def missing(
    qrels: Annotated[
        Path, typer.Argument(metavar="QRELS", help="Judgements, such as owkg pool --read writes them.")
    ],
    kg: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the graph.")],
    split: Annotated[str, typer.Option(help="Whose sparsity is asked for.")] = "test",
    by: Annotated[str, typer.Option(help="Divide by side, category, relation; several with commas.")] = "",
    unit: Annotated[
        str, typer.Option(help="What is counted: answers to queries, as metrics average over, or triples.")
    ] = "answer",
    level: Annotated[int, typer.Option(min=1, help="Lowest relevance that is relevant.")] = 1,
    ci: Annotated[float, typer.Option(help="Level of the confidence intervals, over queries.")] = 0.95,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Sparsity of a test set, from the answers that judging found beside the known ones.

    It is a lower bound: what nobody judged, or pooled, may be true as well. The interval is for other queries
    judged in the same way. owkg theory and owkg simulate take the sparsity as --sparsity.
    """
    from owkg.auditing import missing_share
    from owkg.judge import read_judgements
    from owkg.terminal.tables import line, printed

    check_readable([qrels])
    graph, notes = graph_and_notes(kg)
    judged = read_judgements(qrels)
    groups = [name.strip() for name in by.split(",") if name.strip()]
    options: Any = {"split": split, "unit": unit, "level": level, "ci": ci}
    found = missing_share(judged, graph, by=groups, **options)
    if form is Format.JSON:
        print(json.dumps({"sparsity": rows_of(found), "notes": notes}, indent=2))
        return
    cells = [[f"{x:.3f}" if isinstance(x, float) else str(x) for x in row] for row in found.iter_rows()]
    printed(f"Sparsity of {split}, at least; by {unit}", found.columns, cells)
    for note in notes:
        line(f"note: {note}")
