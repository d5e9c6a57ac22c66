"""`owkg ranks filtered`: ranks of temporal, hyper-relational and typed queries, filtered by known facts."""

from pathlib import Path
from typing import Annotated

import typer

from owkg.cli.commands import Given
from owkg.cli.inputs import check_readable, check_writable, noted, noted_line
from owkg.cli.options import Columns, Format, OutputFormat, columns_given, split_list
from owkg.cli.output import show
from owkg.errors import naming


def filtered(
    scores: Path,
    tasks: Path,
    *,
    given: Given,
    out: Path,
    known: Path | None = None,
    key: str = "",
    during: str | None = None,
    query: str = "",
    candidates: Annotated[Path | None, typer.Option("--candidates-file")] = None,
    tolerance: Annotated[float, typer.Option(min=0)] = 0.0,
    model: str | None = None,
    columns: Columns = None,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Rank answers to queries that have more than an entity and a relation, such as a time or qualifiers.

    A known fact is removed from the candidates of a query if it has the same entity, relation and key, and
    holds at the time of the query. In the rank table, the relation of a query contains its key
    (visits|time=2014), so that macro metrics, comparisons and pools treat queries with different keys as
    different. Tables are .parquet, .csv or .tsv.

    Args:
        scores (SCORES): Score file .npz with the arrays scores (one row for each task, one column for each
            entity) and entity_labels.
        tasks (TASKS): Table of head, relation, tail, side and the columns of the key; one row for each task.
        out (FILE): Rank table to write: .parquet, .csv or .tsv.
        known (FILE): Table of known facts: head, relation, tail and the columns of the key; with --during
            also from and to, both inclusive, blank for open. Default: no filter (raw ranks).
        key (COLUMN,...): Columns that a known fact must share with the task in addition to entity and
            relation, such as time or qualifiers; several with commas. Default: none, which is the static
            filter.
        during (COLUMN): Column of TASKS with the time at which a known fact must hold. Only with --known.
        query (COLUMN,...): Columns of TASKS that distinguish queries but do not filter, such as the time for
            raw and static ranks; several with commas. Default: none.
        candidates (FILE): Table of entity and any of relation, side and the columns of the key: the
            candidates of these tasks, for example by type. Default: all entities.
        model (NAME): Name of the model in the column model. Default: no such column.
        tolerance (NUMBER): Largest difference between scores that count as tied.

    Examples:
        owkg ranks filtered scores.npz tasks.csv --known known.csv --key time --out ranks.parquet
        owkg ranks filtered scores.npz tasks.csv --known known.csv --during year --out ranks.parquet
        owkg ranks filtered scores.npz tasks.csv --known known.csv --candidates-file of_type.csv --out
            ranks.csv
    """
    from owkg.ranks.keyed import rank_query_files

    if known is None:
        given.refuse(["during"], "has no effect without --known")
    check_readable([scores, tasks, known, candidates])
    check_writable([out], [scores, tasks, known, candidates])
    with noted(), naming({"tasks": "TASKS", "scores": "SCORES"}):
        found = rank_query_files(
            scores,
            tasks,
            known=known,
            key=split_list(key),
            during=during,
            query=split_list(query),
            candidates=candidates,
            tolerance=tolerance,
            model=model,
            columns=columns_given(columns),
        )
    found.write(out)
    by = "raw" if known is None else ", ".join(["known", *split_list(key), *([during] if during else [])])
    among = "all" if candidates is None else candidates.name
    if known is None and key:
        noted_line("ranks are raw, because without --known no fact is removed from the candidates.")
    if known is not None and (own := found.about["own_facts_known"]) < len(found):
        some = f"the facts of only {own:,} of {len(found):,} tasks" if own else "the facts of no task"
        noted_line(
            f"{some} are in --known. For tasks whose fact is not there, the other answers to the query stay "
            "candidates, and the column filtered is false. If --known should contain these facts, labels or "
            "the key are spelled differently."
        )
    told = f"wrote {out}: {len(found):,} ranking tasks, filter {by}, candidates {among}"
    show(form, {"out": out, "tasks": len(found), "filter": by, "candidates": among}, lines=[told])
