"""`owkg ranks`: conversion of scores, runs and lists to rank tables."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from owkg.cli.commands import group
from owkg.cli.evaluate_output import filter_note, filtered_by, unseen_note
from owkg.cli.inputs import check_readable, check_writable, collected, graph_and_notes
from owkg.cli.options import Format, TableOptions, splits_given
from owkg.cli.output import show
from owkg.cli.ranks.filtered import filtered
from owkg.cli.ranks.generated import generated
from owkg.errors import naming

if TYPE_CHECKING:
    import polars as pl


def convert(
    source: Path,
    *,
    out: Path,
    from_: str | None = None,
    kg: Path | None = None,
    filter_: str | None = None,
    qrels: Path | None = None,
    split: str | None = None,
    num_entities: int | None = None,
    tolerance: float | None = None,
    score: bool = False,
    sort: str | None = None,
    model: str | None = None,
    tables: TableOptions,
    unanswered: bool = False,
    unseen: str | None = None,
) -> None:
    """Writes a rank table: one row for each ranking task.

    Score matrices: .npz with arrays scores (a row a triple, a column an entity),
    triples (head, relation, tail), side ("head" or "tail" is predicted), and
    perhaps entity_labels and relation_labels. Larger scores are better.

    Runs: lines of query, Q0, answer, rank, score, tag. A query is
    "head|relation|?" or "?|relation|tail", or without --kg a topic of any name.
    Scores count, not ranks.

    Args:
        source (INPUT): A rank table, rank list (.csv, .tsv, .npy), .npz of scores, or TREC run; a folder of
            Parquet files or a pattern is one rank table.
        out: Rank table to write: .parquet, .csv, .tsv, .csv.gz or .tsv.gz.
        from_ (table|list|scores|run|...): What INPUT is, or the name of an importer of your own
            (OWKG_PLUGINS); by its name and content when absent.
        kg (DIR): Folder of the graph: candidates, filter, popularity.
        filter_: Splits whose known answers leave the candidates, or none. When absent, with a graph:
            train,valid,test, as far as it has them, and the split whose answers are ranked.
        qrels (FILE): Relevant answers of a run, in TREC's format.
        split: Split whose triples are the relevant answers of a run, or those of a list that does not say
            which, in their order; test when absent.
        num_entities: Candidates of a run before filtering, without --kg.
        tolerance: Scores that differ by at most this are ties; 0 when absent.
        score: Add the score of each answer: what other labels need.
        sort (stable|quicksort|heapsort): Take the place after such a sort for the rank, ties broken by chance
            of the order, as some code does; with the prefix reversed- it sorts ascending and reads from the
            end.
        model: Name for the column model; of a run, its tag when absent.
        unanswered: Take relevant answers to queries that the run does not hold as not retrieved, instead of
            an error.
        unseen (error|drop|last): What becomes of triples of the split with entities that score matrices have
            no column for: an error (when absent), left out, or ranked last.

    Examples:
        owkg ranks convert scores.npz --kg data/nations --out ranks.parquet
        owkg ranks convert system.run --kg data/fb15k237 --split test --out ranks.parquet
        owkg ranks convert list.csv --untied --kg data/fb15k237 --out ranks.parquet
        owkg ranks convert own.csv --columns head=subject,tail=object --untied --candidates 9 --out ranks.csv
        owkg ranks convert system.run --qrels judged.qrels --num-entities 14541 --out ranks.csv
        owkg ranks convert ranks.parquet --out ranks.csv
    """
    from owkg import ranks
    from owkg.ranks.dataset import is_dataset
    from owkg.ranks.files import path_checked
    from owkg.ranks.importers import importer_of

    out = path_checked(out)
    given = {
        "filter_splits": splits_given(filter_),
        "qrels": qrels,
        "split": split,
        "num_entities": num_entities,
        "tolerance": tolerance,
        "score": score or None,
        "sort": sort,
        "unanswered": unanswered or None,
        **{name: value or None for name, value in tables.said().items() if name != "candidates"},
        "num_candidates": tables.candidates,
        "unseen": unseen,
    }
    # Before the graph is read, which may take long.
    importer_of(source, from_, [name for name, value in {"graph": kg, **given}.items() if value is not None])
    check_readable([None if is_dataset(source) else source, qrels])
    check_writable([out], [source, qrels])
    graph, notes = (None, []) if kg is None else graph_and_notes(kg)
    with collected() as said, naming({"ranks": "INPUT", "path": "INPUT"}):
        table, about, more = ranks.convert(source, from_, graph, **given)
    notes += [*said, *more]
    if model is not None:
        table = _named(source, table, model)
    ranks.write_ranks(table, out, about)
    if about.get("filter"):
        notes += filter_note(table, about.get("split"), about["filter"])
        notes += unseen_note(about.get("unseen", {}), about.get("split"))
    _report(out, table, notes, about)


def _named(source: Path, table: "pl.DataFrame", model: str) -> "pl.DataFrame":
    """The table with `model` as its only model; ValueError if that would hide others."""
    import polars as pl

    if "model" in table.columns and table["model"].n_unique() > 1:
        found = ", ".join(repr(name) for name in table["model"].unique().sort()[:5])
        raise ValueError(
            f"`model` must be absent where {source} names models itself ({found}), got {model!r}."
        )
    return table.with_columns(model=pl.lit(model))


def _report(out: Path, table: "pl.DataFrame", notes: list[str], about: dict[str, Any]) -> None:
    sides = ", ".join(
        f"{count:,} {side}" for side in ("head", "tail") if (count := (table["side"] == side).sum())
    )
    models = table["model"].n_unique() if "model" in table.columns else 1
    several = f", {models:,} models" if models > 1 else ""
    tied = float((table["optimistic"] != table["pessimistic"]).to_numpy().mean())
    how = f", {filtered_by(about['filter'])}" if "filter" in about else ""
    kept = " (only .parquet keeps by which splits)" if how and out.suffix.lower() != ".parquet" else ""
    told = f"wrote {out}: {table.height:,} ranks ({sides}){several}, {100 * tied:.3g} % tied{how}{kept}"
    show(Format.TABLE, {}, lines=[told], notes=notes)


ranks_app = group(
    "ranks",
    "Rank tables: from score matrices, TREC runs, rank and generated lists; between Parquet and CSV.",
    generated,
    filtered,
    convert,
)
