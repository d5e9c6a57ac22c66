"""Metrics of rank tables in one call: `owkg.evaluate`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

import polars as pl

from owkg import checks
from owkg.errors import ArgumentError, naming
from owkg.files.columns import is_named_tables, is_table
from owkg.keys import checked_key
from owkg.kg.graph import KnowledgeGraph, graph_checked
from owkg.metrics.fold import SIDES, Breakdown
from owkg.metrics.measures import Metric, micro
from owkg.metrics.registry import metric
from owkg.metrics.report import report, rules_known, warn_bounded
from owkg.metrics.ties import Ties
from owkg.rank_weights import RankWeight
from owkg.ranks import RankDataset, RankTable, annotated
from owkg.ranks.files import is_list, read_lacking
from owkg.ranks.partitions import in_parts
from owkg.ranks.reading import TableReading
from owkg.ranks.together import whole_needed

Ranks = Any
"""A rank table, a frame or an array of ranks, the path of a file, or a dataset that is read in parts."""

MetricNames = str | Metric | RankWeight | Iterable[str | Metric | RankWeight]
"""One metric or several: names, metrics, or rank weights (each stands for its micro mean)."""

# Columns that every row has, in addition to the column of a breakdown.
_ALWAYS = ("side", "ties")
_SIDES = {"both": SIDES[:3]}


def metrics_named(metrics: MetricNames | None) -> list[Metric] | None:
    """Metrics of these names, each once; None for None.

    Raises:
        ValueError: if a name is unknown; the message lists similar names.
    """
    if metrics is None:
        return None
    if isinstance(metrics, bytes) or not isinstance(metrics, str | Metric | RankWeight | Iterable):
        raise ArgumentError("metrics", f"must be names of metrics, got {metrics!r}.")
    names = [metrics] if isinstance(metrics, str | Metric | RankWeight) else list(metrics)
    if not names:
        raise ArgumentError("metrics", "must name at least one metric, got none.")
    try:
        found = [_metric(name) for name in names]
    except ValueError as error:
        raise ArgumentError("metrics", f"must name metrics: {error}") from None
    named: dict[str, Metric] = {}
    for one in found:
        if named.setdefault(one.name, one) != one:
            raise ArgumentError("metrics", f"must have different names, got two metrics called {one.name!r}.")
    return list(named.values())


def _metric(of: str | Metric | RankWeight) -> Metric:
    if isinstance(of, RankWeight):
        return micro(of)
    return of if isinstance(of, Metric) else metric(of)


def evaluate(
    ranks: Ranks,
    metrics: MetricNames | None = None,
    *,
    by: str | Sequence[str] = (),
    side: str | Sequence[str] = "both",
    ties: str | Sequence[str] | None = None,
    ci: float | None = 0.95,
    interval: Literal["analytic", "percentile", "bca"] = "analytic",
    replicates: int = 1000,
    seed: int = 0,
    num_entities: int | None = None,
    graph: KnowledgeGraph | None = None,
    columns: Mapping[str, str] | None = None,
    untied: bool = False,
    realistic: bool = False,
    candidates: Any = None,
    ids: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> pl.DataFrame:
    """Metrics of a rank table with confidence intervals and chance levels.

    Args:
        ranks: rank table from `owkg.rank` or `owkg.read_ranks`; or a polars or pandas frame, a mapping of
            columns, or a list of rows, with the columns of `owkg.ranks.validated`. Also the ranks alone, of
            shape [n], or [n, 2] for head and tail, with `candidates`; unless they are `untied`, only
            realistic metrics then have a value. Also the path of a file, as for `owkg.read_ranks`, or a
            folder of Parquet files, a pattern of file names or an `owkg.ranks.RankDataset`, which are read a
            part at a time if large. A mapping {name: table or path} evaluates several tables, each as a model
            of that name. If the table has a column `model`, each model is evaluated separately. If it has a
            column `seed` with several seeds, values are means over the seeds of a model, and intervals are
            over queries and seeds; each seed must rank the same tasks.
        metrics: names that `owkg metrics --list` prints, their aliases, `Metric` objects or rank weights.
            None: the default set.
        by: columns that divide the ranking tasks: "side", "ties", and at most one of "relation", "category",
            "popularity", "half-link" and "seed". Default: none.
        side: "head", "tail", "relation", "both" (heads and tails together), or several. Default "both". A
            table with only predicted relations is evaluated as side "relation".
        ties: "optimistic", "realistic", "pessimistic", "exact", or several. None: realistic, or all four if
            `by` has "ties".
        ci: level of the confidence intervals over queries. Default 0.95. None: no intervals, which is faster.
        interval: "analytic" for mid-P limits on the effective number of queries, "percentile" or "bca" for a
            bootstrap over queries. Default "analytic". A bootstrap needs all ranks in memory and one seed for
            each model.
        replicates: number of bootstrap resamples. Default 1000.
        seed: random seed. Default 0.
        num_entities: N of PROBE's rank transformer. None: the number of candidates of each task.
        graph: graph whose triples are ranked; adds popularity, categories and half-links, and the number of
            candidates if the table lacks it.
        columns, untied, realistic, candidates, ids: as in `owkg.read_ranks`.
        on_progress: function called with (done, total) parts of the table, or rows of a dataset.

    Returns:
        One row for each model, group, side, tie rule and metric. Columns: `model` (if the table has models),
        the column of `by`, `side`, `ties`, `metric`, `value`, `ci_low`, `ci_high`, `expectation` (the chance
        level), the other fields of `owkg.metrics.Estimate`, `tasks`, `queries`. A field without a number is
        null. `seeds` and `deviation_over_seeds` are present if some model has several seeds.

    Raises:
        ValueError: naming the argument, if the table is malformed, a metric is unknown or needs complete
            lists of answers that the table lacks, or an argument is out of range.

    Examples:
        >>> row = {"head": "a", "relation": "r", "side": "tail", "candidates": 9}
        >>> rows = [row | {"tail": t, "optimistic": r, "pessimistic": r} for t, r in (("b", 1), ("c", 4))]
        >>> evaluate(pl.DataFrame(rows), ["mrr", "hits@3"])["value"].to_list()
        [0.625, 0.5]
    """
    chosen = metrics_named(metrics)
    if is_named_tables(ranks):
        options: dict[str, Any] = {
            "by": by,
            "side": side,
            "ties": ties,
            "ci": ci,
            "interval": interval,
            "replicates": replicates,
            "seed": seed,
            "num_entities": num_entities,
            "graph": graph,
            "columns": columns,
            "untied": untied,
            "realistic": realistic,
            "candidates": candidates,
            "ids": ids,
        }
        return _by_name(ranks, chosen, on_progress=on_progress, **options)
    reading = TableReading(columns or {}, untied, realistic, candidates, ids)
    needed_by = "interval" if ci is not None and interval != "analytic" else None
    table = _table(ranks, needed_by, reading, graph)
    if ci is not None:
        checks.level("ci", ci)
    checked_key(seed, "seed")
    sides = checks.some_of("side", side, SIDES, least=1)
    streamed = isinstance(table, RankDataset)
    there = table.columns if streamed else table.frame.columns
    if "both" not in sides and not set(sides) & set(
        table.unique("side") if streamed else table.frame["side"].unique()
    ):
        raise ArgumentError("side", f"must be a side of the table, which has no rows of {', '.join(sides)}.")
    names = checks.names("by", by)
    if on_progress is not None and not callable(on_progress):
        raise ArgumentError("on_progress", f"must be a function of (done, total), got {on_progress!r}.")
    groups = [name for name in names if name not in _ALWAYS]
    if len(groups) > 1 or set(groups) - set(Breakdown):
        of = ", ".join([*_ALWAYS, *Breakdown])
        text = f"must be from {of}, with at most one besides side and ties, got {', '.join(names)}."
        raise ArgumentError("by", text)
    if "side" in names:  # each side separately
        sides = list(dict.fromkeys(one for name in sides for one in _SIDES.get(name, (name,))))
    every = tuple(Ties) if "ties" in names else Ties.REALISTIC
    rules = checks.names("ties", every if ties is None else ties)
    options = {
        "by": groups,
        "sides": sides,
        "ties": rules,
        "level": ci,
        "interval": interval,
        "replicates": replicates,
        "key": seed,
        "num_entities": num_entities,
        "on_progress": on_progress,
    }
    if isinstance(table, RankTable):
        warn_bounded("ranks", table.frame)
    options["ties"] = rules_known("ranks", table, rules)
    found = report(table, chosen, graph=graph if streamed else None, **options)
    if missing := [one.name for one in chosen or () if one.name not in found["metric"]]:
        raise ArgumentError(
            "metrics",
            f"must not contain {', '.join(missing)}: a macro metric needs all answers of a query in one "
            "list, but numbers of candidates differ within a query, or ranks are not filtered.",
        )
    found = found.filter(pl.col("by").is_not_null()) if groups else found
    group = [pl.col("group").alias(name) for name in groups]
    first = ["model"] if "model" in there else []
    rest = ["side", "ties", "metric", "value", "ci_low", "ci_high", "expectation"]
    left = [name for name in found.columns if name not in {"model", "by", "group", *rest}]
    return found.select(*first, *group, *rest, *left)


def _by_name(tables: Mapping[Any, Ranks], metrics: list[Metric] | None, **options: Any) -> pl.DataFrame:
    """Result of `evaluate` for several tables, one below the other; the column `model` holds their names."""
    found: list[pl.DataFrame] = []
    for name, table in tables.items():
        if not isinstance(name, str) or not name:
            raise ArgumentError("ranks", f"must have non-empty text as names, got {name!r}.")
        try:
            one = evaluate(table, metrics, **options)
        except ArgumentError as error:
            if error.name != "ranks":
                raise
            raise ArgumentError("ranks", f"named {name!r} {error.message}") from None
        if "model" in one.columns and (count := one["model"].n_unique()) > 1:
            text = f"must hold one model under each name, got {count} under the name {name!r}"
            raise ArgumentError("ranks", f"{text}; without names, each model is evaluated separately.")
        found.append(one.select(pl.lit(name).alias("model"), pl.exclude("model")))
    return pl.concat(found, how="diagonal_relaxed")


def _table(
    ranks: Any, needed_by: str | None, reading: TableReading, graph: KnowledgeGraph | None
) -> RankTable | RankDataset:
    """Checked rank table that `ranks` is or names; a large dataset is not read into memory."""
    if graph is not None:
        graph_checked(graph)
    if isinstance(ranks, str | PathLike):
        path = checks.path("ranks", ranks)
        if not path.is_file():
            ranks = RankDataset.of(path, reading, lacking=graph is not None)
    if isinstance(ranks, RankDataset):
        needed_by = needed_by or whole_needed(ranks.reading, [ranks])
        if in_parts(ranks.rows, needed_by=needed_by):
            return ranks
    elif not (isinstance(ranks, RankTable | str | PathLike) or is_table(ranks) or is_list(ranks)):
        must = "must be a table of owkg.read_ranks or owkg.rank, a DataFrame, columns, an array, or a path"
        raise ArgumentError("ranks", f"{must}, got {type(ranks).__name__}.")
    first = ranks[0] if isinstance(ranks, list | tuple) and ranks and not is_table(ranks) else None
    if isinstance(first, RankTable) or is_table(first):
        raise ArgumentError("ranks", "must have names if there are several tables: {name: table, ...}.")
    try:
        with naming({"table": "`ranks`"}):
            found = read_lacking(ranks, graph, reading)
        return found if graph is None else RankTable.trusted(annotated(found, graph), found.about)
    except ArgumentError:
        raise
    except ValueError as error:
        if isinstance(ranks, str | PathLike):
            raise
        raise ArgumentError("ranks", f"must be a rank table: {error}") from None
