"""`owkg accept`: predictions that may enter a graph at a stated precision."""

from pathlib import Path
from typing import Annotated

import typer

from owkg.cli.commands import Given
from owkg.cli.inputs import graph_and_notes, noted_line
from owkg.cli.options import Format, GraphOptions, OutputFormat
from owkg.cli.output import Table, number, show


def accept(
    run: Path,
    *,
    given: Given,
    kg: Path,
    how: GraphOptions,
    precision: float,
    size: Annotated[int, typer.Option(min=1)] = 1000,
    depth: Annotated[int, typer.Option(min=1)] = 10,
    system: str | None = None,
    judged: list[Path] | None = None,
    drawn: Annotated[int | None, typer.Option(min=1)] = None,
    by: str | None = None,
    sheet: Path | None = None,
    rows: Annotated[int, typer.Option(min=1)] = 100,
    out: Path | None = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    ci: float = 0.95,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Predictions of a run that may enter the graph at a stated precision, from a few judgements.

    The set is the best predictions that the graph does not know, ranked by score over all queries. They are
    judged one by one in a random order, until the set is accepted or refused: write the first sheet, fill it
    in, give it back with --judged, and take the next sheet. You may look after each judgement and stop at any
    time. A set without the precision is accepted in at most 5 of 100 draws.

    With --drawn N, N of the predictions are judged, and the largest of ten nested sets that passes is
    accepted.

    Args:
        run (RUN): Run of one system; with several, --system names one.
        kg (DIR): Folder of the graph whose facts are known.
        precision: Precision wanted, such as 0.9.
        size: Predictions of the set; with --drawn, of the region from which nested sets are taken.
        depth: How many answers of each list are predictions.
        system: System of the run.
        judged (FILE): A filled-in sheet or judgements as qrels; repeat it for several. Blank labels are not
            judged yet.
        drawn (N): Size of a fixed draw for nested sets. Default: one set, judged one by one.
        by (relation): Accept or refuse each relation by itself.
        sheet (FILE): Write the predictions to judge next, in the order of the draw, into a new file.
        rows: Predictions of that sheet.
        out (FILE): Write the accepted triples with their scores and where they come from, as TSV.
        seed: Seed of the order of the draw.
        ci: Level of confidence.

    Examples:
        owkg accept complex.run --kg data/fb15k237 --precision 0.9 --sheet sheet.tsv
        owkg accept complex.run --kg data/fb15k237 --precision 0.9 --judged sheet.tsv --sheet next.tsv
        owkg accept complex.run --kg data/fb15k237 --precision 0.9 --judged sheet.tsv --judged next.tsv
            --out accepted.tsv
    """
    import polars as pl

    from owkg.files.storage import is_stream, require_place
    from owkg.pools.accepting import accept as accepted
    from owkg.pools.accepting import accepted_table, write_next
    from owkg.pools.annotation import write_cells

    for path in (sheet, out):
        if path is not None:
            require_place(path)
    if sheet is None:
        given.refuse(["rows"], "has no effect without --sheet")
    elif sheet.exists() and not is_stream(sheet):
        raise ValueError(f"`sheet` must be a new file, because labels may stand in {sheet}, which is there.")
    graph, notes = graph_and_notes(kg, how)
    found = accepted(
        run,
        graph,
        judged or None,
        precision=precision,
        size=size,
        depth=depth,
        system=system,
        by=by,
        drawn=drawn,
        seed=seed,
        ci=ci,
    )
    lines = list(found.statements)
    if sheet is not None:
        count = write_next(found, sheet, rows)
        lines.append(
            f"wrote {sheet}: {count:,} predictions to judge" if count else "nothing is left to judge"
        )
    elif len(found.following):
        first = found.following.row(0, named=True)
        lines.append(
            f"judge next: {first['head']} | {first['relation']} | {first['tail']} (--sheet writes a sheet)"
        )
    if out is not None:
        table = accepted_table(found, run.name)
        write_cells(table, out, [name for name in table.columns if table[name].dtype == pl.String])
        lines.append(f"wrote {out}: {len(table):,} accepted triples")
    payload = {
        "precision": found.precision,
        "level": found.level,
        "state": str(found.state),
        "accepted": len(found.accepted),
        "judged": found.judged,
        "errors": found.errors,
        "lower": None if found.lower is None else number(found.lower),
        "method": found.method,
        "by": None if found.by is None else found.by.to_dicts(),
        "statements": found.statements,
        "to_judge": len(found.following),
    }
    tables = []
    if found.by is not None:
        cells = [
            [
                row["relation"],
                *(f"{row[name]:,}" for name in ("candidates", "judged", "errors")),
                row["state"],
                f"{row['lower']:.3f}",
            ]
            for row in found.by.to_dicts()
        ]
        heads = ["relation", "predictions", "judged", "wrong", "state", "precision at least"]
        tables.append(Table("by relation", heads, cells))
    show(form, payload, tables, lines)
    for text in notes if form is Format.TABLE else ():
        noted_line(text)
