"""`owkg accept`: predictions that may enter a graph at a stated precision."""

from pathlib import Path
from typing import Annotated

import typer

from owkg.cli.commands import Given
from owkg.cli.inputs import check_figure, check_writable, graph_and_notes, noted_line
from owkg.cli.options import Format, GraphOptions, OutputFormat
from owkg.cli.output import Table, number, show, wrote

# Options of a test, which have no effect when the sheet of a pilot is written.
_OF_TESTS = ("size", "judged", "drawn", "by", "pilot", "pool_", "sheet", "out", "figure", "ci")


def accept(
    run: Path,
    *,
    given: Given,
    kg: Path,
    how: GraphOptions,
    precision: float,
    size: Annotated[int | None, typer.Option(min=1)] = None,
    depth: Annotated[int, typer.Option(min=1)] = 10,
    system: str | None = None,
    judged: list[Path] | None = None,
    drawn: Annotated[int | None, typer.Option(min=1)] = None,
    by: str | None = None,
    pilot: list[Path] | None = None,
    pool_: Annotated[Path | None, typer.Option("--pool")] = None,
    pilot_sheet: Path | None = None,
    sheet: Path | None = None,
    rows: Annotated[int, typer.Option(min=1)] = 100,
    out: Path | None = None,
    figure: Path | None = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    ci: float = 0.95,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Decide which predictions of a run may enter the graph at a stated precision, from a few judgements.

    The candidates are the best predictions that the graph does not contain, ranked by score over all queries.
    They are judged one by one in random order until the set is accepted or rejected: write the first sheet,
    fill it in, pass it with --judged, and take the next sheet. You may look after each judgement and stop at
    any time. With --ci 0.95, a set below the stated precision is accepted in at most 5 of 100 draws.

    With --drawn N, N predictions of a region are judged, and owkg accepts the largest of ten nested sets of
    that region that passes an exact test. The region is chosen before anything is judged: from the known
    answers of the test split, or from a pilot (--pilot-sheet writes its sheet, --pilot reads it, --pool reads
    the sheets of a drawn pool). Predictions that a pilot judges are left out, because they are not part of
    the sample.

    Args:
        run (RUN): Run of one system. With several systems, --system names one.
        kg (DIR): Folder of the graph, whose facts count as known.
        precision (P): Precision that the accepted set must have, such as 0.9.
        judged (FILE): Filled-in sheet, or judgements as qrels. Repeat the option for several. Blank labels
            are not judged yet. Default: nothing is judged yet.
        size (N): Number of predictions in the set, or with --drawn in the region. Default: 1000; with
            --drawn, the best ones that are expected to have the precision, and a quarter more.
        depth (N): Number of answers of each list that count as predictions.
        system (NAME): Name of the system in a run of several systems. Default: the only system.
        by (relation): Accept or reject each relation separately. With --drawn, relations with fewer than 30
            predictions are judged completely. Default: one decision.
        seed (N): Seed of the random order of judging.

    Fixed sample and pilot:
        drawn (N): Size of a fixed random sample for nested sets, or with --by relation of one for each
            relation. Default: predictions of one set are judged one by one.
        pilot_sheet (FILE): Write --rows predictions, spread over the ranking, into a new sheet for a pilot,
            and stop.
        pilot (FILE): Pilot judgements that choose the region, as a filled-in sheet or qrels. Repeat the
            option for several. Keep the file unchanged until the end. Only with --drawn.
        pool_ (POOL): Folder of a drawn pool whose filled-in sheets serve as a pilot. Only with --drawn.

    Tests and intervals:
        ci (LEVEL): Confidence level of the decision, in (0, 1).

    Output:
        sheet (FILE): Write the predictions to judge next into a new file, in the order of the draw.
        rows (N): Number of predictions in the sheet that is written.
        out (FILE): Write the accepted triples with their scores and sources, as TSV.
        figure (FILE): Draw the test by number of judgements, or by nested set or relation: .png, .pdf or
            .svg.

    Examples:
        owkg accept complex.run --kg data/fb15k237 --precision 0.9 --sheet sheet.tsv
        owkg accept complex.run --kg data/fb15k237 --precision 0.9 --judged sheet.tsv --sheet next.tsv
        owkg accept complex.run --kg data/fb15k237 --precision 0.9 --judged sheet.tsv --judged next.tsv --out
            accepted.tsv
        owkg accept complex.run --kg data/fb15k237 --precision 0.9 --drawn 400 --sheet sheet.tsv --rows 400
        owkg accept complex.run --kg data/fb15k237 --precision 0.9 --pilot-sheet pilot.tsv --rows 60
        owkg accept complex.run --kg data/fb15k237 --precision 0.9 --drawn 100 --by relation --pilot pilot.tsv
            --sheet sheet.tsv
    """
    import polars as pl

    from owkg.files.storage import is_stream, require_place
    from owkg.pools.accepting import accept as accepted
    from owkg.pools.accepting import accepted_table, pilot_predictions, write_next
    from owkg.pools.annotation import write_cells, write_sheet

    check_figure(figure)
    check_writable([figure], [run, *(judged or ()), *(pilot or ())])
    for path in (sheet, out, pilot_sheet):
        if path is not None:
            require_place(path)
    for name, path in (("sheet", sheet), ("pilot_sheet", pilot_sheet)):
        if path is not None and path.exists() and not is_stream(path):
            raise ValueError(f"`{name}` must be a new file: {path} exists and may contain labels.")
    if sheet is None and pilot_sheet is None:
        given.refuse(["rows"], "has no effect without --sheet")
    if drawn is None:
        given.refuse(["pilot", "pool_"], "has no effect without --drawn")
    if pilot_sheet is not None:
        given.refuse(_OF_TESTS, "has no effect with --pilot-sheet")
    graph, notes = graph_and_notes(kg, how)
    if pilot_sheet is not None:
        asked = pilot_predictions(run, graph, rows, depth=depth, system=system, seed=seed)
        write_sheet(asked, pilot_sheet, seed=seed, in_order=True)
        told = (
            f"wrote {pilot_sheet}: {len(asked):,} predictions to judge; pass it with --pilot once filled in"
        )
        show(form, {"sheet": pilot_sheet, "to_judge": len(asked)}, lines=[told])
        return
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
        pilot=pilot or None,
        pool=pool_,
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
    if figure is not None:
        from owkg.plots import save_figure

        save_figure(found.plot(), figure)
        wrote(figure)
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
        heads = ["relation", "predictions", "judged", "wrong", "state", "accepted"]
        names = ("candidates", "judged", "errors")
        limits = found.method == "martingale"
        cells = [
            [
                row["relation"],
                *(f"{row[name]:,}" for name in names),
                row["state"],
                f"{row['accepted']:,}",
                *([f"{row['lower']:.3f}"] if limits else []),
            ]
            for row in found.by.to_dicts()
        ]
        heads += ["precision at least"] if limits else []
        tables.append(Table("by relation", heads, cells))
    show(form, payload, tables, lines)
    for text in notes if form is Format.TABLE else ():
        noted_line(text)
