"""`owkg ranks`: conversion of scores, runs and lists to rank tables."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from owkg.cli.commands import Given, group
from owkg.cli.inputs import check_readable, check_writable, collected, graph_and_notes
from owkg.cli.options import Format, GraphOptions, TableOptions, splits_given
from owkg.cli.output import show
from owkg.cli.rank_output import filter_note, filtered_by, unseen_note
from owkg.cli.ranks.filtered import filtered
from owkg.cli.ranks.generated import generated
from owkg.errors import naming

if TYPE_CHECKING:
    import polars as pl

    from owkg.kg import KnowledgeGraph


# Options that have no effect on lists.
_OF_TABLES = (
    *("filter_", "qrels", "split", "num_entities", "tolerance", "score", "sort", "untied", "candidates"),
    *("unanswered", "unseen"),
)


def convert(
    source: Path,
    *,
    heard: Given,
    out: Path | None = None,
    lists: Path | None = None,
    depth: Annotated[int, typer.Option(min=1)] = 100,
    from_: str | None = None,
    kg: Path | None = None,
    how: GraphOptions,
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
    """Convert scores, runs and lists into a rank table, with one row for each ranking task, or into ranked
    lists.

    Score matrices: .npz with arrays scores (a row for each triple, a column for each entity), triples (head,
    relation, tail), side ("head" or "tail" is predicted), and optionally entity_labels and relation_labels.
    Higher scores are better.

    Runs: lines of query, Q0, answer, rank, score, tag. A query is "head|relation|?" or "?|relation|tail", or
    without --kg a topic of any name. Scores count, not ranks. owkg recognises runs of MS MARCO, JSON {query:
    {answer: score}} and predictions of AnyBURL and PyClause by their content.

    Sampled negatives: .npz with arrays y_pred_pos (a score for each query) and y_pred_neg ([queries,
    negatives], or one list for all queries; flat with num_neg if their numbers differ), as the evaluators of
    OGB and TGB take them; or t_pred_top10 and t, with --num-entities.

    Args:
        source (INPUT): Rank table, rank list (.csv, .tsv, .npy), .npz of scores, or run. A folder of Parquet
            files or a pattern is one rank table.
        out (FILE): Rank table to write: .parquet, .csv, .tsv, .csv.gz or .tsv.gz.
        kg (DIR): Folder of the graph, for candidates, filter and popularity.
        split (SPLIT): Split whose triples are the relevant answers of a run, or the triples of a list without
            labels, in their order. Default: test.
        filter_ (SPLIT,...): Splits whose known answers are removed from the candidates, or none. Default:
            with a graph train, valid and test, if it has them, and the split whose answers are ranked.
        qrels (FILE): Relevant answers of a run, in TREC's format. Default: the split.
        model (NAME): Name of the model in the column model, and of the system in --lists. Default: the tag of
            a run, otherwise no such column.
        num_entities (N): Number of candidates of a run before filtering, without --kg; or of t_pred_top10.

    Output:
        lists (FILE): Write the best answers to each query of a score matrix as a TREC run, as owkg rank
            --lists does. Answers known from train and valid are removed.
        depth (N): Number of answers in each list of --lists.
        score: Add a column with the score of each answer, which owkg needs to rank again under other
            judgements.

    Rarely needed:
        from_ (KIND): Kind of INPUT: table, list, scores, run or sampled, or an importer of your own
            (OWKG_PLUGINS). Default: recognised by name and content.
        tolerance (NUMBER): Largest difference between scores that count as tied. Default: 0.
        sort (stable|quicksort|heapsort): Rank by the place after such a sort, which breaks ties by accident,
            as some code does. With the prefix reversed- it sorts in ascending order and reads from the end.
        unanswered: Count relevant answers to queries that the run does not contain as not retrieved. Default:
            stop with an error.
        unseen (error|drop|last): Treatment of triples with an entity that has no column in the score
            matrix: stop with an error, leave them out, or rank them last. Default: error.

    Examples:
        owkg ranks convert scores.npz --kg data/nations --out ranks.parquet
        owkg ranks convert scores.npz --kg data/nations --lists mine.run --depth 50 --model mine
        owkg ranks convert system.run --kg data/fb15k237 --split test --out ranks.parquet
        owkg ranks convert list.csv --no-ties --kg data/fb15k237 --out ranks.parquet
        owkg ranks convert own.csv --columns head=subject,tail=object --no-ties --candidates 9 --out ranks.csv
        owkg ranks convert system.run --qrels judged.qrels --num-entities 14541 --out ranks.csv
        owkg ranks convert ranks.parquet --out ranks.csv
    """
    from owkg import ranks
    from owkg.judge.runs import write_run
    from owkg.ranks.dataset import is_dataset
    from owkg.ranks.files import path_checked
    from owkg.ranks.importers import importer_of

    how.require(kg)
    if out is None and lists is None:
        raise ValueError("`out` must name the rank table to write, or `lists` the lists to write.")
    out = None if out is None else path_checked(out)
    if lists is None:
        heard.refuse(["depth"], "has no effect without --lists")
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
    # Check before the graph is read, which may take long.
    check_readable([None if is_dataset(source) else source, qrels])
    kind = importer_of(source, from_, [one for one, of in {"graph": kg, **given}.items() if of is not None])
    if out is None:
        heard.refuse(_OF_TABLES, "has no effect without --out")
    if lists is not None and kind.name != "scores":
        raise ValueError(f"`lists` needs score matrices, but {source} is {kind.what}.")
    if lists is not None and kg is None:
        raise ValueError("`kg` must name the graph of the scores, for --lists.")
    check_writable([out, lists], [source, qrels])
    graph, notes = (None, []) if kg is None else graph_and_notes(kg, how)
    run = None if lists is None or graph is None else _lists(source, graph, depth, model)
    table, about, more = None, {}, []
    if out is not None:
        with collected() as warned, naming({"ranks": "INPUT", "path": "INPUT"}):
            table, about, more = ranks.convert(source, from_, graph, **given)
        notes += [*warned, *more]
        table = table if model is None else _named(source, table, model)
    if lists is not None and run is not None:
        write_run(run, lists)
        longest = run.group_by("query").len()["len"].max()
        told = f"wrote {lists}: up to {longest:,} best answers to each of {run['query'].n_unique():,} queries"
        show(Format.TABLE, {}, lines=[told], notes=notes if table is None else [])
    if out is not None and table is not None:
        ranks.write_ranks(table, out, about)
        if about.get("filter"):
            notes += filter_note(table, about.get("split"), about["filter"])
            notes += unseen_note(about.get("unseen", {}), about.get("split"))
        _report(out, table, notes, about)


def _lists(source: Path, graph: "KnowledgeGraph", depth: int, model: str | None) -> "pl.DataFrame":
    """Best answers to the queries of score matrices."""
    from owkg.judge.lists import lists_of_rows
    from owkg.ranks.matrices import placed_scores

    own, scores, triples, side = placed_scores(source, graph)
    with naming({"scores": "scores", "side": "side"}, f"{source}: "):
        name = source.name.partition(".")[0] if model is None else model
        return lists_of_rows(own, scores, triples, side, depth=depth, model=name)


def _named(source: Path, table: "pl.DataFrame", model: str) -> "pl.DataFrame":
    """Table with `model` as its only model; ValueError if the table has several models."""
    import polars as pl

    if "model" in table.columns and table["model"].n_unique() > 1:
        found = ", ".join(repr(name) for name in table["model"].unique().sort()[:5])
        raise ValueError(
            f"`model` must be left out if {source} names several models itself ({found}), got {model!r}."
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
    kept = " (only .parquet stores which splits)" if how and out.suffix.lower() != ".parquet" else ""
    told = f"wrote {out}: {table.height:,} ranks ({sides}){several}, {100 * tied:.3g} % tied{how}{kept}"
    show(Format.TABLE, {}, lines=[told], notes=notes)


ranks_app = group(
    "ranks",
    "Make rank tables from score matrices, TREC runs, rank lists and lists of a language model.",
    generated,
    filtered,
    convert,
)
