"""`owkg classify`: triple classification by thresholds of scores."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli.embeddings.scorers import (
    EmbeddingsFile,
    GraphFolder,
    Layout,
    ModelOfEmbeddings,
    ModelOption,
    Norm,
    RelationLayout,
    Step,
    scorer_of,
    source_of,
)
from owkg.cli.inputs import check_figure, check_readable, check_writable
from owkg.cli.options import Format, OutputFormat, Seed
from owkg.cli.output import rows_of
from owkg.errors import naming
from owkg.terminal.tables import line, printed


def classify(
    sources: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN|FILE...",
            help="Folder that owkg train wrote; or tables of scored triples, one or several models.",
            show_default=False,
        ),
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Names, with commas; repeatable.", show_default="all")
    ] = None,
    thresholds: Annotated[
        str, typer.Option(help="Fitted for each relation, or global; or a number: the threshold itself.")
    ] = "relation",
    split: Annotated[str, typer.Option(help="That is measured.")] = "test",
    fit: Annotated[str, typer.Option(help="Split whose accuracy the thresholds maximise.")] = "valid",
    negatives: Annotated[
        str | None,
        typer.Option(
            metavar="uniform|frequency",
            help="How negative triples of RUN are drawn: entities alike, or by their training triples.",
            show_default="the splits test_negatives and valid_negatives, else uniform",
        ),
    ] = None,
    seed: Seed = 0,
    by: Annotated[
        str, typer.Option(metavar="COLUMNS", help="Divide the triples by relation, category or others.")
    ] = "",
    ci: Annotated[float, typer.Option(help="Level of confidence intervals; 0: none.")] = 0.95,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Also write the scored triples, for later: .parquet, .csv or .tsv."
        ),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also draw the ROC and precision-recall curves: .png, .pdf, .svg."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="For the column model of RUN.")] = None,
    embeddings: EmbeddingsFile = None,
    model: ModelOfEmbeddings = None,
    norm: Norm = None,
    option: ModelOption = None,
    layout: Layout = None,
    relation_layout: RelationLayout = None,
    kg: GraphFolder = None,
    step: Step = None,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Tells true triples from false ones by their scores: accuracy, F1, ROC-AUC, average precision.

    A triple is positive if its score reaches the threshold of its relation, which is fitted on the
    validation set. Tables have the columns head, relation, tail, split, score, and label: positive (1),
    negative (0 or -1) or unknown. Unknown triples have scores between two thresholds.
    """
    from owkg.classification import classify as classified
    from owkg.classification import write_triples
    from owkg.files.delimited import is_rank_table

    chosen = [part.strip() for given in metric or () for part in given.split(",")] or None
    limit: str | float = thresholds
    if thresholds not in ("relation", "global"):
        try:
            limit = float(thresholds)
        except ValueError:
            raise ValueError(
                f"`thresholds` must be relation, global or a number, got {thresholds!r}."
            ) from None
    check_figure(figure)
    if out is not None and not is_rank_table(out):  # the same endings
        raise ValueError(f"`out` must end in .parquet, .csv, .tsv, .csv.gz or .tsv.gz, got {out.name!r}.")
    check_writable([out, figure], sources or ())
    files = [path for path in sources or () if is_rank_table(path)]
    if files:
        loose = (embeddings, model, norm, option, layout, relation_layout, kg, step, negatives, name)
        if len(files) < len(sources or ()) or any(value is not None for value in loose) or seed:
            raise ValueError(
                "tables of scored triples stand alone: no RUN, --embeddings, --kg, --name, --seed beside."
            )
        check_readable(files)
        table, notes = _joined(files), []
    else:
        if len(sources or ()) > 1:
            raise ValueError("name one RUN; write its scored triples with --out, then compare the tables.")
        given = source_of(
            sources[0] if sources else None,
            embeddings,
            model,
            norm,
            option,
            layout,
            relation_layout,
            kg,
            step,
        )
        table, notes = _scored(given, split=split, fit=fit, negatives=negatives, seed=seed, name=name)
    columns = [part.strip() for part in by.split(",") if part.strip()]
    found = classified(table, chosen, thresholds=limit, split=split, fit=fit, by=columns, ci=ci or None)
    if found.thresholds is None:
        notes.append(f"there are no triples of {fit}: only what needs no threshold is measured")
    written = []
    if out is not None:
        write_triples(table, out)
        written.append(f"wrote {out}: {table.height:,} scored triples")
    if figure is not None:
        from owkg.plots.classification import classification_figure

        classification_figure(found.triples, figure)
        written.append(f"wrote {figure}")
    if form is Format.JSON:
        parts = {"values": found.values, "thresholds": found.thresholds, "pairs": found.pairs}
        rows = {key: [] if frame is None else rows_of(frame) for key, frame in parts.items()}
        print(json.dumps(rows | {"notes": notes}, indent=2))
        return
    counts = ("triples", "positive", "negative", "unknown")
    same = [name for name in counts if found.values[name].n_unique() == 1]
    title = ", ".join(
        [
            f"Triple classification of {split}",
            *(f"{found.values[c][0]:,} {c}" for c in same if c != "unknown" or found.values[c][0]),
        ]
    )
    for head, frame in ((title, found.values.drop(same)), ("Differences, with p-values", found.pairs)):
        if frame is not None:
            # All that names a row is its first cell, which is repeated where a table is cut.
            end = frame.columns.index("metric") + 1
            cells = [
                [_cell(*cell) for cell in zip(frame.columns, row, strict=True)] for row in frame.iter_rows()
            ]
            named = [[" ".join(row[:end]), *row[end:]] for row in cells]
            printed(head, [" ".join(frame.columns[:end]), *frame.columns[end:]], named)
    for text in (*written, *(f"note: {note}" for note in notes)):
        line(text)


def _joined(files: list[Path]) -> Any:
    """The tables, each of a model of its own unless they say which."""
    import polars as pl

    from owkg.classification import read_triples

    tables = [read_triples(path) for path in files]
    if len(files) == 1:
        return tables[0]
    owner: dict[str, Path] = {}
    for i, (path, table) in enumerate(zip(files, tables, strict=True)):
        if "model" not in table.columns:
            name = Path(path.name.removesuffix(".gz")).stem
            tables[i] = table = table.select(pl.lit(name).alias("model"), pl.all())
        for model in table["model"].unique(maintain_order=True):
            if model in owner:
                raise ValueError(f"{path}: the model {model!r} is in {owner[model]} too.")
            owner[model] = path
    return pl.concat(tables, how="diagonal_relaxed")


def _scored(given: Any, *, split: str, **options: Any) -> tuple[Any, list[str]]:
    """The scored triples of a run or of embeddings, and notes on them."""
    from owkg.evaluation import scored_triples

    scorer, notes = scorer_of(given, "error")
    with naming({"trained": f"{given.path}: its parameters"}):
        table = scored_triples(scorer.trained, scorer.graph, split=split, **options)
    if options["negatives"] or f"{split}_negatives" not in scorer.graph.splits:
        how = options["negatives"] or "uniform"
        notes.append(f"negative triples are drawn ({how}, seed {options['seed']}): some may be missing facts")
    return table, notes


def _cell(column: str, value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.2g}" if column == "p" else f"{value:.4f}" if isinstance(value, float) else str(value)
