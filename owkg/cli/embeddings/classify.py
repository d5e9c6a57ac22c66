"""`owkg classify`: triple classification by thresholds of scores."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from owkg.cli.commands import Given
from owkg.cli.embeddings.scorers import ScorerOptions, Source, reader, scorer_of
from owkg.cli.inputs import check_figure, check_readable, check_writable, collected
from owkg.cli.options import Columns, Format, GraphOptions, OutputFormat, Seed, columns_given, split_list
from owkg.cli.output import Table, cell, show
from owkg.errors import naming

if TYPE_CHECKING:
    import polars as pl

    from owkg.kg import KnowledgeGraph
    from owkg.kg.read import Reading

# Options that have no effect on tables.
_OF_RUNS = (
    *("embeddings", "model", "norm", "option", "embedding_layout", "relation_layout", "kg", "step"),
    *("layout", "duplicates", "negatives", "name", "seed"),
)


def classify(
    sources: list[Path] | None = None,
    *,
    given: Given,
    metric: list[str] | None = None,
    by: str = "",
    thresholds: str = "relation",
    split: str = "test",
    fit: str = "valid",
    negatives: str | None = None,
    seed: Seed = 0,
    ci: float = 0.95,
    out: Path | None = None,
    figure: Path | None = None,
    name: str | None = None,
    columns: Columns = None,
    scorer: ScorerOptions,
    how: GraphOptions,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Measure how well scores tell true triples from false ones: accuracy, F1, ROC-AUC, average precision.

    A triple is classified as positive if its score reaches the threshold of its relation, which is fitted on
    the validation set. Tables have the columns head, relation, tail, split, score, and label: positive (1),
    negative (0 or -1) or unknown. Unknown triples are those whose scores lie between two thresholds.

    Args:
        sources (RUN|FILE...): Folder that owkg train wrote; or tables of scored triples, of one model or
            several.
        metric (METRIC,...): Metrics such as accuracy, f1 and roc-auc. Several with commas, or repeat the
            option. Default: all.
        by (NAME,...): Divide the triples by relation, category or other columns, with commas. Default: no
            division.
        thresholds (relation|global|NUMBER): Fit one threshold for each relation, or one for all (global), or
            use the given number.
        split (SPLIT): Split that is measured.
        fit (SPLIT): Split on which the thresholds are fitted, to the highest accuracy.
        negatives (uniform|frequency): How negative triples are drawn for RUN: every entity with the same
            probability, or in proportion to its training triples. Default: no drawing if the graph has the
            splits test_negatives and valid_negatives, otherwise uniform.
        seed (N): Seed of the drawn negatives. Equal seeds give equal triples.
        name (NAME): Name of the model of RUN in the column model. Default: no such column.

    Tests and intervals:
        ci (LEVEL): Level of the confidence intervals, in (0, 1). 0: no intervals.

    Output:
        out (FILE): Write the scored triples, to be read again later: .parquet, .csv or .tsv.
        figure (FILE): Draw the ROC and precision-recall curves: .png, .pdf or .svg.

    Examples:
        owkg classify run
        owkg classify run --thresholds global --by category --out complex.parquet --figure curves.png
        owkg classify complex.parquet transe.csv --metric accuracy,f1,roc-auc --format json
        owkg classify --embeddings transe.npz --model transe --kg data/codex-s --negatives frequency
    """
    from owkg.classification import classify as classified
    from owkg.classification import write_triples
    from owkg.files.delimited import is_rank_table

    chosen = [name for text in metric or () for name in split_list(text)] or None
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
        if len(files) < len(sources or ()) or given & set(_OF_RUNS):
            raise ValueError(
                "tables of scored triples cannot be combined with RUN, --embeddings, --kg, --name or --seed."
            )
        check_readable(files)
        with collected() as notes:
            table = _joined(files, columns_given(columns))
    else:
        given.refuse(["columns"], "has an effect only on tables of scored triples")
        if len(sources or ()) > 1:
            raise ValueError("name one RUN; write its scored triples with --out, then compare the tables.")
        source = scorer.source(sources[0] if sources else None)
        read = reader(how)
        table, notes = _scored(source, read, split=split, fit=fit, negatives=negatives, seed=seed, name=name)
    columns = split_list(by)
    found = classified(table, chosen, thresholds=limit, split=split, fit=fit, by=columns, ci=ci or None)
    if found.thresholds is None:
        notes.append(f"{fit} has no triples: only metrics that need no threshold are computed")
    written = []
    if out is not None:
        write_triples(table, out)
        written.append(f"wrote {out}: {table.height:,} scored triples")
    if figure is not None:
        from owkg.plots.classification import classification_figure

        classification_figure(found.triples, figure)
        written.append(f"wrote {figure}")
    counts = ("triples", "positive", "negative", "unknown")
    same = [name for name in counts if found.values[name].n_unique() == 1]
    alike = (f"{found.values[c][0]:,} {c}" for c in same if c != "unknown" or found.values[c][0])
    title = ", ".join([f"Triple classification of {split}", *alike])
    tables = [_table(title, found.values.drop(same))]
    if found.pairs is not None:
        tables.append(_table("Differences, with p-values", found.pairs))
    parts = {"values": found.values, "thresholds": found.thresholds, "pairs": found.pairs}
    payload = {key: [] if frame is None else frame for key, frame in parts.items()}
    show(form, payload, tables, written, notes=notes)


def _table(title: str, frame: "pl.DataFrame") -> Table:
    """Table whose first cell holds all names of a row, because it is repeated if the table is split."""
    end = frame.columns.index("metric") + 1
    digits = [".2g" if name == "p" else ".4f" for name in frame.columns]
    cells = [[cell(*one) for one in zip(row, digits, strict=True)] for row in frame.iter_rows()]
    named = [[" ".join(row[:end]), *row[end:]] for row in cells]
    return Table(title, [" ".join(frame.columns[:end]), *frame.columns[end:]], named)


def _joined(files: list[Path], columns: dict[str, str] | None) -> "pl.DataFrame":
    """Tables as one; a table without a column model is named by its file."""
    import polars as pl

    from owkg.classification import read_triples

    tables = [read_triples(path, columns=columns) for path in files]
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


def _scored(
    source: Source,
    read: "Callable[[Path, Reading], KnowledgeGraph]",
    *,
    split: str,
    fit: str,
    negatives: str | None,
    seed: int,
    name: str | None,
) -> "tuple[pl.DataFrame, list[str]]":
    """Scored triples of a run or of embeddings, and notes on them."""
    from owkg.evaluation import scored_triples

    scorer, notes = scorer_of(source, "error", read)
    with naming({"trained": f"{source.path}: its parameters"}):
        table = scored_triples(
            scorer.trained, scorer.graph, split=split, fit=fit, negatives=negatives, seed=seed, name=name
        )
    if negatives or f"{split}_negatives" not in scorer.graph.splits:
        how = negatives or "uniform"
        notes.append(f"negative triples are drawn ({how}, seed {seed}): some may be missing facts")
    return table, notes
