"""`owkg evaluate`: the ranks of a trained model, or of embeddings trained elsewhere."""

from functools import cache
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
    RunFolder,
    Step,
    scorer_of,
    source_of,
)
from owkg.cli.evaluate_output import filter_note, filtered_by, show_estimates, show_ranks, unseen_note
from owkg.cli.inputs import check_readable, check_writable, graph_in
from owkg.cli.options import Format, OutputFormat, refuse_given
from owkg.errors import naming
from owkg.terminal.progress import progress

_SAMPLING = "Without all scores"
# Options that only rank tables and lists have.
_OF_TABLES = (
    "queries", "unseen", "tolerance", "precision", "name", "popularity", "score", "lists", "depth",
    "block_mib",
)  # fmt: skip
_ONLY_PARQUET = "only .parquet keeps by which splits"


def evaluate(
    context: typer.Context,
    run: RunFolder = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Rank table to write: .parquet, .csv, .tsv, .csv.gz or .tsv.gz; with --sample, .csv of the "
            "estimates."
        ),
    ] = None,
    embeddings: EmbeddingsFile = None,
    model: ModelOfEmbeddings = None,
    norm: Norm = None,
    option: ModelOption = None,
    layout: Layout = None,
    relation_layout: RelationLayout = None,
    kg: GraphFolder = None,
    step: Step = None,
    split: Annotated[str, typer.Option(help="Whose triples are ranked.")] = "test",
    filter_: Annotated[
        str | None,
        typer.Option(
            "--filter",
            help="Splits whose known answers leave the candidates, or none.",
            show_default="train,valid,test, as far as the graph has them, and --split",
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Ask only these queries, such as queries.tsv of owkg sample."),
    ] = None,
    unseen: Annotated[
        str,
        typer.Option(
            metavar="error|drop|last",
            help="What becomes of triples with an entity or relation of the graph that the model has never "
            "seen: an error, left out, or ranked last. Candidates are what it has seen.",
        ),
    ] = "error",
    raw: Annotated[
        bool, typer.Option("--raw", help="As --filter none: no answer leaves the candidates.")
    ] = False,
    sides: Annotated[str, typer.Option(help="That are asked for: head, tail, or both.")] = "head,tail",
    tolerance: Annotated[float, typer.Option(help="Scores that differ by at most this are ties.")] = 0.0,
    precision: Annotated[
        str | None,
        typer.Option(
            metavar="float32|float64",
            help="That scores are computed in. Devices and libraries add up in different orders, which may "
            "turn near ties; hardly any in float64.",
            show_default="float64 with --embeddings, else float32",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="For the column model.",
            show_default="no such column; the name of RUN where it has several seeds",
        ),
    ] = None,
    popularity: Annotated[
        bool, typer.Option("--popularity", help="Add popularity and relation category, counted in train.")
    ] = False,
    score: Annotated[
        bool, typer.Option("--score", help="Add the score of each answer: what other labels need.")
    ] = False,
    lists: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the best answers to each query as a TREC run."),
    ] = None,
    depth: Annotated[int, typer.Option(min=1, help="How many of them, of --lists.")] = 100,
    block_mib: Annotated[
        int | None,
        typer.Option(min=1, help="MiB of scores at a time; by the free memory when absent. Changes no rank."),
    ] = None,
    sample: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Estimate metrics without bias from about this share of the scores, such as 0.01, "
            "and those of candidates typical of each relation, which may be more; no rank table.",
            rich_help_panel=_SAMPLING,
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="Of --sample: mrr, p-mrr@P, log-mrr, hits@K; several with commas.",
            show_default="mrr,hits@1,hits@10",
            rich_help_panel=_SAMPLING,
        ),
    ] = None,
    ties: Annotated[
        str,
        typer.Option(
            metavar="optimistic|realistic|pessimistic", help="Of --sample.", rich_help_panel=_SAMPLING
        ),
    ] = "realistic",
    typical: Annotated[
        float,
        typer.Option(
            help="Of --sample: entities that are typical of a relation beside those that it has, as a "
            "share of all.",
            rich_help_panel=_SAMPLING,
        ),
    ] = 0.02,
    seed: Annotated[int, typer.Option(help="Of --sample.", min=0, rich_help_panel=_SAMPLING)] = 0,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Ranks the answer of every triple of a split among all entities, on both sides, filtered.

    Entities are shared out among all devices that JAX sees; the number of devices changes no rank.

    The ranks of all runs of owkg train --seeds go into one table with the columns model and seed.

    With --sample, metrics of these ranks are estimated instead. The mean over seeds is the metric of full
    evaluation. The sampling error is that of the candidates that are not scored; the interval holds it too.
    """
    import polars as pl

    from owkg.evaluation import ranks
    from owkg.ranks import write_ranks
    from owkg.ranks.build import default_filters
    from owkg.ranks.files import path_checked
    from owkg.ranks.seeds import require_same_tasks, seeds_of
    from owkg.ranks.unseen import unseen_checked
    from owkg.train import seed_runs

    if sample is None:
        if out is None:
            raise ValueError("`out` must say where to write the rank table; --sample needs none.")
        out = path_checked(out)
        refuse_given(context, ["metric"], "without --sample; owkg metrics has all of rank tables")
        refuse_given(context, ["ties", "typical", "seed"], "without --sample")
        if lists is None:
            refuse_given(context, ["depth"], "without --lists")
    else:
        refuse_given(context, _OF_TABLES, "with --sample")
    unseen = unseen_checked(unseen)
    if raw and filter_ is not None:
        raise ValueError(f"`filter` has no effect with --raw, got {filter_!r}.")
    filters = [] if raw else _filters(filter_)
    given = source_of(run, embeddings, model, norm, option, layout, relation_layout, kg, step)
    seeds = seed_runs(run) if run is not None and embeddings is None else {}
    runs = {number: given._replace(run=folder) for number, folder in seeds.items()}
    check_readable([queries])
    check_writable([out, lists], [queries, given.path])
    if sample is not None:
        if runs:
            raise ValueError(
                f"`sample` is of one run, and {run} has {len(runs)} seeds: name one of its runs."
            )
        chosen = [part for one in metric or ["mrr,hits@1,hits@10"] for part in _names(one)]
        options = {"share": sample, "more": typical, "ties": ties, "seed": seed, "split": split}
        options |= {"filter_splits": filters, "sides": _names(sides)}
        show_estimates(given, chosen, options, out, form)
        return
    assert out is not None
    seeded = bool(runs)
    if seeded and lists is not None:
        raise ValueError(
            f"`lists` is of one run, and {given.path} has {len(runs)} seeds: name one of its runs."
        )
    if precision is None:
        precision = "float32" if embeddings is None else "float64"
    graphs = cache(graph_in)
    tables, notes, about = [], [], {}
    scorer, asked = None, None
    for of_seed, one in [*runs.items()] or [(None, given)]:
        scorer, more = scorer_of(one, unseen, read=graphs)
        notes += [text for text in more if text not in notes]
        splits = default_filters(scorer.graph, split) if filters is None else filters
        asked, about = _asked(scorer, queries, split, splits, unseen)
        bar = progress("Ranking" if of_seed is None else f"Ranking, seed {of_seed}", "ranks")
        with bar as update, naming({"trained": f"{one.path}: its parameters"}):
            table = ranks(
                scorer.trained,
                scorer.seen if unseen == "drop" else scorer.graph,
                seen=None if unseen == "drop" else scorer.seen,
                split=split,
                queries=asked,
                sides=_names(sides),
                tolerance=tolerance,
                precision=precision,
                name=(name or given.path.resolve().name) if seeded else name,
                popularity=popularity,
                score=score,
                block_bytes=None if block_mib is None else block_mib * 2**20,
                on_progress=update,
                filter_splits=splits,
            )
        tables.append(table if of_seed is None else table.with_columns(seed=pl.lit(of_seed, pl.Int64)))
    table, source, filters = pl.concat(tables), given.path, about["filter"]
    if precision != "float32":
        about["precision"] = precision
    if seeded:
        require_same_tasks(table, seeds_of(table))
    write_ranks(table, out, about)
    kept = "" if out.suffix.lower() == ".parquet" else f" ({_ONLY_PARQUET})"
    of = f" of {len(runs)} seeds" if seeded else ""
    written = [f"wrote {out}: {table.height:,} ranks{of}, {filtered_by(filters)}{kept}"]
    if lists is not None and scorer is not None:
        from owkg.pools.lists import write_lists

        count = write_lists(
            lists,
            scorer.trained,
            scorer.seen,
            split=split,
            sides=_names(sides),
            depth=depth,
            name=name or source.name.partition(".")[0],
            queries=asked,
            precision=precision,
        )
        written.append(
            f"wrote {lists}: the best {min(depth, scorer.seen.num_entities):,} answers to {count:,} queries"
        )
    notes += filter_note(table, split, filters) + unseen_note(about.get("unseen", {}), split)
    show_ranks(source, table, out, about, notes, form)
    if form is Format.TABLE:
        for text in (*written, *(f"note: {note}" for note in notes)):
            print(text)


def _asked(
    scorer: Any, queries: Path | None, split: str, filters: list[str], unseen: str
) -> tuple[Any, dict[str, Any]]:
    """(the queries that are asked, None for all; what the rank table says of how it was made)."""
    from owkg.evaluation import read_queries
    from owkg.kg import joined_splits
    from owkg.ranks.unseen import about_unseen

    about: dict[str, Any] = {"split": split, "filter": filters}
    asked = None
    if queries is not None:
        asked = read_queries(queries, scorer.graph)
        about["queries"] = {"file": queries.name, "asked": asked.height}
    if scorer.seen is not scorer.graph:
        triples = joined_splits(scorer.graph, [split])
        about["unseen"] = about_unseen(scorer.graph, scorer.seen, triples, unseen)
    return asked, about


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _filters(text: str | None) -> list[str] | None:
    """The splits that `--filter` names; None: those that there are."""
    if text is None:
        return None
    names = _names(text)
    if not names:
        raise ValueError(f"`filter` must name splits, or be none, got {text!r}.")
    return [] if names == ["none"] else names
