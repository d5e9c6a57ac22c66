"""`owkg rank`: ranks of a trained model, or of embeddings trained elsewhere."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from owkg.cli.commands import Given
from owkg.cli.embeddings.scorers import ScorerOptions, reader, scorer_of
from owkg.cli.inputs import check_readable, check_writable
from owkg.cli.options import Filter, Format, GraphOptions, OutputFormat, sides_given, split_list, splits_given
from owkg.cli.rank_output import filter_note, filtered_by, show_estimates, show_ranks, unseen_note
from owkg.errors import naming
from owkg.terminal.progress import progress

if TYPE_CHECKING:
    import polars as pl

    from owkg.train.scorer import Scorer

# Options that have an effect only on rank tables and lists.
_OF_TABLES = (
    "queries", "unseen", "tolerance", "precision", "name", "popularity", "score", "lists", "depth",
    "block_mib",
)  # fmt: skip
_ONLY_PARQUET = "only .parquet stores which splits"


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Estimation of metrics from a share of the scores.

    Estimate from a share of the scores:
        sample (SHARE): Estimate metrics without bias from about this share of the scores, such as 0.01,
            instead of writing a rank table. The scores of typical candidates of each relation are computed
            too, which may be more.
        metric (METRIC,...): Metrics to estimate with --sample: mrr, p-mrr@P, log-mrr, hits@K. Several with
            commas, or repeat the option. Default: mrr,hits@1,hits@10.
        ties (RULE): How tied answers are ranked with --sample: optimistic, realistic or pessimistic.
        seed (N): Seed of the sample of --sample. Equal seeds give equal numbers.

    Rarely needed:
        typical (SHARE): Share of all entities that count as typical of a relation, in addition to those that
            it has in train. Only with --sample.
    """

    sample: float | None = None
    metric: list[str] | None = None
    ties: str = "realistic"
    typical: Annotated[float, typer.Option("--typical-share")] = 0.02
    seed: Annotated[int, typer.Option(min=0)] = 0


def rank(
    run: Path | None = None,
    *,
    given: Given,
    out: Path | None = None,
    scorer: ScorerOptions,
    how: GraphOptions,
    split: str = "test",
    filter_: Filter = None,
    queries: Path | None = None,
    unseen: str = "error",
    raw: bool = False,
    sides: str = "head,tail",
    tolerance: float = 0.0,
    precision: str | None = None,
    name: str | None = None,
    popularity: bool = False,
    score: bool = False,
    lists: Path | None = None,
    depth: Annotated[int, typer.Option(min=1)] = 100,
    block_mib: Annotated[int | None, typer.Option(min=1)] = None,
    sampling: Sampling,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Rank the answers of a split among all entities by the scores of a model, and write a rank table.

    Ranks are computed on both sides and filtered by known answers, unless you say otherwise. Entities are
    divided among all devices that JAX finds; the number of devices does not change a rank. If RUN holds
    several seeds (owkg train --seeds), their ranks go into one table with the columns model and seed.

    With --sample, owkg estimates metrics of these ranks instead. The mean over seeds of the sample is the
    metric of full evaluation. The sampling error comes from the candidates that are not scored, and the
    interval includes it.

    Args:
        run (RUN): Folder that owkg train wrote, with --seeds or without.
        out (FILE): Rank table to write: .parquet, .csv, .tsv, .csv.gz or .tsv.gz; with --sample, .csv of the
            estimates.
        split (SPLIT): Split whose triples are ranked.
        name (NAME): Name of the model in the column model. Default: no such column, or the name of RUN if it
            has several seeds.
        sides (SIDE,...): Sides that are predicted: head, tail, or both as head,tail.
        queries (FILE): Rank only the answers to these queries, such as queries.tsv of owkg sample. Default:
            all queries of the split.

    Output:
        lists (FILE): Write the best answers to each query as a TREC run, in addition to the rank table.
        depth (N): Number of answers in each list of --lists.
        score: Add a column with the score of each answer, which owkg needs to rank again under other
            judgements.
        popularity: Add columns with popularity and relation category, counted in train.

    Rarely needed:
        raw: Rank without any filter, as --filter none.
        unseen (error|drop|last): Treatment of triples with an entity or relation that the model has never
            seen: stop with an error, leave them out, or rank them last. Candidates are the entities
            that the model has seen.
        tolerance (NUMBER): Largest difference between scores that count as tied.
        precision (float32|float64): Floating-point precision of the scores. Devices and libraries add up
            numbers in different orders, which can swap nearly tied answers; in float64 hardly any. Default:
            float64 with --embeddings, otherwise float32.
        block_mib (N): Memory for scores at a time, in MiB. It changes a rank only if scores differ in their
            last bits. Default: 24, on an accelerator 256.

    Examples:
        owkg rank run --split test --out ranks.parquet
        owkg rank run --sample 0.01 --metric mrr,hits@10
        owkg rank run --split test --out ranks.parquet --lists complex.run.gz --depth 100
        owkg rank --embeddings transe.npz --model transe --norm 1 --kg data/nations --out ranks.parquet
        owkg rank --embeddings rotate.safetensors --model rotate --kg data/umls --sides tail --raw --out
            ranks.parquet
    """
    import polars as pl

    from owkg.evaluation import ranks
    from owkg.ranks import write_ranks
    from owkg.ranks.build import default_filters
    from owkg.ranks.files import path_checked
    from owkg.ranks.seeds import require_same_tasks, seeds_of
    from owkg.ranks.unseen import unseen_checked
    from owkg.train import seed_runs

    if sampling.sample is None:
        if out is None:
            raise ValueError("`out` must name the rank table to write, unless --sample is given.")
        out = path_checked(out)
        why = "has no effect without --sample; owkg metrics computes metrics of rank tables"
        given.refuse(["metric"], why)
        given.refuse(["ties", "typical", "seed"], "has no effect without --sample")
        if lists is None:
            given.refuse(["depth"], "has no effect without --lists")
    else:
        given.refuse(_OF_TABLES, "has no effect with --sample")
    unseen = unseen_checked(unseen)
    how.reading()
    if raw and filter_ is not None:
        raise ValueError(f"`filter` has no effect with --raw, got {filter_!r}.")
    filters = [] if raw else splits_given(filter_)
    sought = sides_given(sides)
    source = scorer.source(run)
    seeds = seed_runs(run) if run is not None and scorer.embeddings is None else {}
    runs = {number: source._replace(run=folder) for number, folder in seeds.items()}
    if runs and (only := next((name for name in ("sample", "lists") if name in given), None)):
        raise ValueError(
            f"`{only}` needs a single run, and {source.path} has {len(runs)} seeds: name one of its runs."
        )
    check_readable([queries])
    check_writable([out, lists], [queries, source.path])
    if sampling.sample is not None:
        options = {"share": sampling.sample, "more": sampling.typical, "ties": sampling.ties}
        options |= {"seed": sampling.seed, "split": split, "filter_splits": filters, "sides": sought}
        chosen = [part for one in sampling.metric or ["mrr,hits@1,hits@10"] for part in split_list(one)]
        show_estimates(source, reader(how), chosen, options, out, form)
        return
    assert out is not None
    seeded = bool(runs)
    if precision is None:
        precision = "float32" if scorer.embeddings is None else "float64"
    graphs = reader(how)
    tables, notes, about = [], [], {}
    model, asked = None, None
    for of_seed, one in [*runs.items()] or [(None, source)]:
        model, more = scorer_of(one, unseen, graphs)
        notes += [text for text in more if text not in notes]
        splits = default_filters(model.graph, split) if filters is None else filters
        asked, about = _asked(model, queries, split, splits, unseen)
        bar = progress("Ranking" if of_seed is None else f"Ranking, seed {of_seed}", "ranks")
        with bar as update, naming({"trained": f"{one.path}: its parameters"}):
            table = ranks(
                model.trained,
                model.seen if unseen == "drop" else model.graph,
                seen=None if unseen == "drop" else model.seen,
                split=split,
                queries=asked,
                sides=sought,
                tolerance=tolerance,
                precision=precision,
                name=(name or source.path.resolve().name) if seeded else name,
                popularity=popularity,
                score=score,
                block_bytes=None if block_mib is None else block_mib * 2**20,
                on_progress=update,
                filter_splits=splits,
            )
        tables.append(table if of_seed is None else table.with_columns(seed=pl.lit(of_seed, pl.Int64)))
    table, filters = pl.concat(tables), about["filter"]
    if precision != "float32":
        about["precision"] = precision
    if seeded:
        require_same_tasks(table, seeds_of(table))
    write_ranks(table, out, about)
    kept = "" if out.suffix.lower() == ".parquet" else f" ({_ONLY_PARQUET})"
    of = f" of {len(runs)} seeds" if seeded else ""
    written = [f"wrote {out}: {table.height:,} ranks{of}, {filtered_by(filters)}{kept}"]
    if lists is not None and model is not None:
        from owkg.pools.lists import write_lists

        count = write_lists(
            lists,
            model.trained,
            model.seen,
            split=split,
            sides=sought,
            depth=depth,
            name=name or source.path.name.partition(".")[0],
            queries=asked,
            precision=precision,
        )
        written.append(
            f"wrote {lists}: the best {min(depth, model.seen.num_entities):,} answers to {count:,} queries"
        )
    notes += filter_note(table, split, filters) + unseen_note(about.get("unseen", {}), split)
    show_ranks(source.path, table, out, about, form, written, notes)


def _asked(
    scorer: "Scorer", queries: Path | None, split: str, filters: list[str], unseen: str
) -> "tuple[pl.DataFrame | None, dict[str, Any]]":
    """(queries to answer, None for all; how the rank table is made, for its metadata)."""
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
