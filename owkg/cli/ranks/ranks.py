"""`owkg ranks`: conversion of scores, runs and lists to rank tables."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli.evaluate_output import filter_note, filtered_by, unseen_note
from owkg.cli.inputs import check_readable, check_writable, graph_and_notes
from owkg.cli.ranks.filtered import filtered
from owkg.cli.ranks.generated import generated


class Kind(StrEnum):
    """What can be converted to a rank table."""

    TABLE = "table"  # a rank table
    LIST = "list"  # ranks without their ties
    SCORES = "scores"  # a .npz file of score matrices
    RUN = "run"  # a TREC run


ranks_app = typer.Typer(
    name="ranks",
    help="Rank tables: from score matrices, TREC runs, rank and generated lists; between Parquet and CSV.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

ranks_app.command(
    epilog="Examples:\n\n"
    "owkg ranks generated answers.jsonl --kg data/fb15k237\n\n"
    "owkg ranks generated answers.jsonl --kg data/fb15k237 --aliases names.tsv --out ranks.parquet"
)(generated)

ranks_app.command(
    epilog="Examples:\n\n"
    "owkg ranks filtered scores.npz tasks.csv --known known.csv --key time --out ranks.parquet\n\n"
    "owkg ranks filtered scores.npz tasks.csv --known known.csv --during year --out ranks.parquet\n\n"
    "owkg ranks filtered scores.npz tasks.csv --known known.csv --candidates of_type.csv --out ranks.csv"
)(filtered)

# What can be said about which input; the rest would go unheard.
_APPLIES = {
    "kg": {Kind.SCORES, Kind.RUN, Kind.LIST},
    "filter": {Kind.SCORES, Kind.RUN, Kind.LIST},
    "qrels": {Kind.RUN},
    "split": {Kind.RUN},
    "num_entities": {Kind.RUN},
    "tolerance": {Kind.SCORES, Kind.RUN},
    "score": {Kind.SCORES},
    "sort": {Kind.SCORES},
    "unanswered": {Kind.RUN},
    "unseen": {Kind.SCORES},
    "untied": {Kind.LIST},
    "candidates": {Kind.LIST},
}
_WORDS = {
    Kind.TABLE: "a rank table",
    Kind.LIST: "a rank list",
    Kind.SCORES: "score matrices",
    Kind.RUN: "a TREC run",
}


@ranks_app.command(
    epilog="Examples:\n\n"
    "owkg ranks convert scores.npz --kg data/nations --out ranks.parquet\n\n"
    "owkg ranks convert system.run --kg data/fb15k237 --split test --out ranks.parquet\n\n"
    "owkg ranks convert list.csv --untied --kg data/fb15k237 --out ranks.parquet\n\n"
    "owkg ranks convert system.run --qrels judged.qrels --num-entities 14541 --out ranks.csv\n\n"
    "owkg ranks convert ranks.parquet --out ranks.csv"
)
def convert(
    source: Annotated[
        Path, typer.Argument(metavar="INPUT", help="A rank table, rank list, .npz of scores, or TREC run.")
    ],
    out: Annotated[Path, typer.Option(help="Rank table to write: .parquet, .csv, .tsv, .csv.gz or .tsv.gz.")],
    kind: Annotated[
        Kind | None, typer.Option("--from", help="What INPUT is; by its name and content when absent.")
    ] = None,
    kg: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the graph: candidates, filter, popularity.")
    ] = None,
    filter_: Annotated[
        str | None,
        typer.Option(
            "--filter",
            help="Splits whose known answers leave the candidates, or none. When absent, with a graph: "
            "train,valid,test, as far as it has them, and the split whose answers are ranked.",
        ),
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Relevant answers of a run, in TREC's format.")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="Split whose triples are the relevant answers of a run; test when absent."),
    ] = None,
    num_entities: Annotated[
        int | None, typer.Option(help="Candidates of a run before filtering, without --kg.")
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Scores that differ by at most this are ties; 0 when absent.")
    ] = None,
    score: Annotated[
        bool, typer.Option("--score", help="Add the score of each answer: what other labels need.")
    ] = False,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="stable|quicksort|heapsort",
            help="Take the place after such a sort for the rank, ties broken by chance of the order, as some "
            "code does; with the prefix reversed- it sorts ascending and reads from the end.",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Name for the column model; of a run, its tag when absent.")
    ] = None,
    untied: Annotated[
        bool, typer.Option("--untied", help="Take the column rank of a rank list as free of ties.")
    ] = False,
    candidates: Annotated[
        int | None,
        typer.Option(help="Candidates of each row of a rank list without that column, unless --kg says."),
    ] = None,
    unanswered: Annotated[
        bool,
        typer.Option(
            "--unanswered",
            help="Take relevant answers to queries that the run does not hold as not retrieved, "
            "instead of an error.",
        ),
    ] = False,
    unseen: Annotated[
        str | None,
        typer.Option(
            metavar="error|drop|last",
            help="What becomes of triples of the split with entities that score matrices have no column for: "
            "an error (when absent), left out, or ranked last.",
        ),
    ] = None,
) -> None:
    """Writes a rank table: one row for each ranking task.

    Score matrices: .npz with arrays scores (a row a triple, a column an entity),
    triples (head, relation, tail), side ("head" or "tail" is predicted), and
    perhaps entity_labels and relation_labels. Larger scores are better.

    Runs: lines of query, Q0, answer, rank, score, tag. A query is
    "head|relation|?" or "?|relation|tail", or without --kg a topic of any name.
    Scores count, not ranks.
    """
    from owkg import ranks
    from owkg.ranks.build import default_filters
    from owkg.ranks.files import path_checked
    from owkg.ranks.formats import kind_of
    from owkg.ranks.lists import converted_list as converted_list
    from owkg.ranks.matrices import converted_matrix as converted_matrix

    out = path_checked(out)
    kind = Kind(kind_of(source)) if kind is None else kind
    given = {
        "kg": kg,
        "filter": filter_,
        "qrels": qrels,
        "split": split,
        "num_entities": num_entities,
        "tolerance": tolerance,
        "score": score or None,
        "sort": sort,
        "unanswered": unanswered or None,
        "untied": untied or None,
        "candidates": candidates,
        "unseen": unseen,
    }
    for name, value in given.items():
        if value is not None and kind not in _APPLIES[name]:
            raise ValueError(f"`{name}` says nothing about {_WORDS[kind]}, which {source} is.")
    check_readable([source, qrels])
    check_writable([out], [source, qrels])
    notes: list[str] = []
    graph = None
    if kg is not None:
        graph, notes = graph_and_notes(kg)
    splits = None if filter_ is None else [name.strip() for name in filter_.split(",")]
    splits = [] if splits == ["none"] else splits
    width = 0.0 if tolerance is None else tolerance
    about: dict[str, Any] = {}
    if kind is Kind.SCORES:
        table, about = converted_matrix(
            source,
            graph,
            filter_splits=splits,
            tolerance=width,
            score=score,
            unseen=unseen or "error",
            sort=sort,
        )
        if sort is not None:
            about["sort"] = sort
    elif kind is Kind.RUN:
        if graph is not None and qrels is None and split is None:
            split = "test"
        if graph is not None:
            splits = default_filters(graph, split) if splits is None else splits
            about = {"split": split, "filter": splits} | ({} if qrels is None else {"qrels": qrels.name})
        table, more = ranks.ranks_from_run(
            source,
            graph,
            qrels=qrels,
            split=split,
            num_entities=num_entities,
            filter_splits=splits,
            tolerance=width,
            unanswered=unanswered,
        )
        notes += more
    elif kind is Kind.LIST:
        if not untied:
            raise ValueError(
                f"{source}: a column rank says nothing of ties; with `untied` it is both the optimistic and "
                "the pessimistic rank."
            )
        if splits is not None and graph is None:
            raise ValueError("`filter` needs --kg, the graph that has these splits.")
        options: Any = {"graph": graph, "filter_splits": splits}
        table, about, more = converted_list(source, num_candidates=candidates, **options)
        notes += more
    else:
        read = ranks.read_ranks(source)
        table, about = read.frame, dict(read.about)
    if model is not None:
        table = _named(source, table, model, kind)
    ranks.write_ranks(table, out, about)
    if about.get("filter") and kind in (Kind.SCORES, Kind.RUN, Kind.LIST):
        notes += filter_note(table, about["split"], about["filter"])
        notes += unseen_note(about.get("unseen", {}), about["split"])
    _report(out, table, notes, about)


def _named(source: Path, table: Any, model: str, kind: Kind) -> Any:
    """The table with `model` as its only model; ValueError if that would hide others."""
    import polars as pl

    if "model" in table.columns and (kind is not Kind.RUN or table["model"].n_unique() > 1):
        found = ", ".join(repr(name) for name in table["model"].unique().sort()[:5])
        raise ValueError(
            f"`model` must be absent where {source} names models itself ({found}), got {model!r}."
        )
    return table.with_columns(model=pl.lit(model))


def _report(out: Path, table: Any, notes: list[str], about: dict[str, Any]) -> None:
    sides = ", ".join(
        f"{count:,} {side}" for side in ("head", "tail") if (count := (table["side"] == side).sum())
    )
    models = table["model"].n_unique() if "model" in table.columns else 1
    several = f", {models:,} models" if models > 1 else ""
    tied = (table["optimistic"] != table["pessimistic"]).mean()
    how = f", {filtered_by(about['filter'])}" if "filter" in about else ""
    kept = " (only .parquet keeps by which splits)" if how and out.suffix.lower() != ".parquet" else ""
    print(f"wrote {out}: {table.height:,} ranks ({sides}){several}, {100 * tied:.3g} % tied{how}{kept}")
    for note in notes:
        print(f"note: {note}")
