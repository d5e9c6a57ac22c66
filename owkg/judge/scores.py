"""Per-query scores of every system, from which rankings, tests and intervals are computed."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Bool, Float64, Int64

from owkg.errors import ArgumentError
from owkg.kg.names import known_entity
from owkg.metrics import Adjustment, Metric, Tasks, Ties, part_of, tasks_of
from owkg.metrics.evaluate import Estimates, EvaluationOptions, checked_options, estimates
from owkg.metrics.few import heavy_queries
from owkg.metrics.gathered import InMemory
from owkg.metrics.measures import rises
from owkg.metrics.query_sums import QuerySums, moments_of, query_sums_by_ties
from owkg.ranks import RankTable
from owkg.ranks.seeds import seeds_of
from owkg.ranks.table import RANKS
from owkg.ranks.tasks import weighed
from owkg.stats.nested import NO_SEEDS, SeedSpread, crossed_spread
from owkg.stats.rank_correlation import round_ties

QUERY = ("side", "entity", "relation")
"""Columns that identify a query: the side asked for, and the known entity and relation."""

_TASK = ("side", "head", "relation", "tail")
# Default of a column that only some of the tables have.
_MEANT = {"weight": 1.0, "filtered": True}


class Seeds(NamedTuple):
    """Scores of one system under each of its seeds.

    Attributes:
        seeds: at least two seeds, in increasing order.
        value: values as in `Scores`, [metrics, seeds, queries].
    """

    seeds: tuple[int, ...]
    value: Float64[np.ndarray, "metrics seeds queries"]


class Scores(NamedTuple):
    """Per-query scores of systems by several metrics.

    The metric of a system is the sum of `value` divided by the sum of `weight`. For a macro metric, the
    weight of a query is 1 and its value is the metric on this query. For a micro metric, the weight is the
    number of its answers and the value is the sum over them.

    Attributes:
        systems: names of the systems, at least one.
        metrics: names of the metrics.
        larger_is_better: whether larger values of each metric are better.
        queries: columns side, entity, relation.
        value: values, [metrics, systems, queries].
        weight: weights, at least 0 and equal for all systems, [metrics, queries].
        seeds: scores of each system under its seeds, whose mean is in `value`; None for a system with one
            seed. Empty if no system has several.
    """

    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    larger_is_better: tuple[bool, ...]
    queries: pl.DataFrame
    value: Float64[np.ndarray, "metrics systems queries"]
    weight: Float64[np.ndarray, "metrics queries"]
    seeds: tuple[Seeds | None, ...] = ()

    @property
    def mean(self) -> Float64[np.ndarray, "metrics systems"]:
        """Metric of each system over all queries, [metrics, systems]."""
        return self.value.sum(2) / self.weight.sum(1)[:, None]

    @property
    def strength(self) -> Float64[np.ndarray, "metrics systems"]:
        """Metric of each system, with the sign reversed if smaller is better, [metrics, systems]."""
        return self.mean * np.where(self.larger_is_better, 1.0, -1.0)[:, None]

    @property
    def places(self) -> Int64[np.ndarray, "metrics systems"]:
        """Rank of each system by each metric, 1 for the best; equal systems share the best of their ranks."""
        strength = round_ties(self.strength)
        return 1 + (strength[:, None, :] > strength[:, :, None]).sum(2)

    @property
    def num_seeds(self) -> Int64[np.ndarray, "systems"]:
        """Number of seeds of each system."""
        every = self.seeds or (None,) * len(self.systems)
        return np.array([1 if one is None else len(one.seeds) for one in every])

    @property
    def seeded(self) -> Bool[np.ndarray, "systems"]:
        """Whether each system has several seeds."""
        return self.num_seeds > 1

    def heavy_queries(self) -> list[str]:
        """A sentence on systems whose heaviest queries carry much of the variance and score differently."""
        rows = []
        for m, metric in enumerate(self.metrics):
            weight = self.weight[m]
            if weight.min() == weight.max():  # no query is heavier than another
                continue
            none = np.zeros_like(weight)
            for s, system in enumerate(self.systems):
                sums = QuerySums(
                    value=self.value[m, s], weight=weight, chance=none, variance=none, best=none, worst=0.0
                )
                slope = np.array([-self.mean[m, s], 1.0, 0.0, 0.0, 0.0]) / weight.sum()
                found = moments_of({Ties.REALISTIC: sums})[Ties.REALISTIC].heavy_share(slope)
                rows.append((system, metric, found))
        schema = {"model": pl.String, "metric": pl.String, "heavy_share": pl.Float64}
        return heavy_queries(pl.DataFrame(rows, schema, orient="row"))

    def of_queries(self, index: np.ndarray) -> "Scores":
        """Scores on some of the queries.

        Args:
            index: indices of these queries.
        """
        seeds = tuple(one and one._replace(value=one.value[..., index]) for one in self.seeds)
        return self._replace(
            queries=self.queries[index],
            value=self.value[..., index],
            weight=self.weight[:, index],
            seeds=seeds,
        )

    def by_seed(self, metric: int) -> list[np.ndarray | None]:
        """One metric of each system under each of its seeds, [seeds]; None for a system with one seed.

        Args:
            metric: index of the metric.
        """
        weight = self.weight[metric].sum()
        every = self.seeds or (None,) * len(self.systems)
        return [None if one is None else one.value[metric].sum(1) / weight for one in every]

    def spread(self, metric: int) -> SeedSpread:
        """Variance that seeds add to one metric of each system, [systems]; 0 for a single seed.

        Args:
            metric: index of the metric.
        """
        weight = self.weight[metric]
        every = self.seeds or (None,) * len(self.systems)
        found = [NO_SEEDS if one is None else crossed_spread(one.value[metric], weight) for one in every]
        return SeedSpread(*(np.array(column, np.float64) for column in zip(*found, strict=True)))


def scores(
    tables: Mapping[str, RankTable | pl.DataFrame],
    metrics: Metric | Sequence[Metric],
    *,
    ties: str = Ties.REALISTIC,
    intersect: bool = False,
) -> tuple[Scores, int]:
    """Per-query scores of every system, from their rank tables.

    Args:
        tables: rank table of each system, by name; a column model is ignored. If the column seed has several
            seeds, the score of a query is the mean over seeds (`Scores.seeds` keeps each).
        metrics: means over answers or over queries, plain or adjusted as an index; not medians, standard
            deviations, z metrics, or metrics with a link (such as the geometric mean rank).
        ties: tie rule. Default "realistic".
        intersect: whether to keep only the answers that every system ranks (`intersected`); otherwise a
            difference is an error. Default False.

    Returns:
        Scores, and the number of queries that are left out. Queries are sorted by their texts, so that random
        draws do not depend on the order of the rows.

    Raises:
        ValueError: if there is no system, a table is malformed, the systems do not answer the same queries,
            the answers to a query differ between systems or seeds, or a metric is not such a mean.

    Examples:
        >>> from owkg.metrics import metric
        >>> row = {"relation": "r", "tail": "b", "side": "tail", "candidates": 9}
        >>> of = lambda ranks: pl.DataFrame(
        ...     [row | {"head": f"h{i}", "optimistic": r, "pessimistic": r} for i, r in enumerate(ranks)]
        ... )
        >>> scores({"one": of([1, 2]), "two": of([4, 1])}, [metric("mrr")])[0].mean.tolist()
        [[0.75, 0.625]]
    """
    if not isinstance(tables, Mapping) or not tables:
        raise ArgumentError("tables", f"must hold a rank table for each system, got {tables!r}.")
    chosen, rule = averaged(metrics), checked_rule(ties)
    left_out = 0
    if intersect:
        asked = pl.concat([_tasks(table) for table in tables.values()])
        tables, left = intersected(tables)
        left_out = _counted(asked)[0] - left["queries"][0]
    return _read(tables, chosen, rule, None)[0], left_out


def scores_and_estimates(
    tables: Mapping[str, RankTable | pl.DataFrame],
    metrics: Metric | Sequence[Metric],
    *,
    ties: str = Ties.REALISTIC,
    level: float | None = 0.95,
) -> tuple[Scores, dict[str, Estimates]]:
    """Scores of every system, and its metrics with intervals, from the same sums over queries.

    Args:
        tables, metrics, ties: as for `scores`.
        level: level of the intervals; None for no intervals. Default 0.95.

    Returns:
        Scores, and the estimates by system.

    Raises:
        ValueError: as `scores`.
    """
    chosen, rule = averaged(metrics), checked_rule(ties)
    return _read(tables, chosen, rule, checked_options(chosen, ties=rule, level=level))


def _read(
    tables: Mapping[str, RankTable | pl.DataFrame],
    chosen: Sequence[Metric],
    rule: Ties,
    options: EvaluationOptions | None,
) -> tuple[Scores, dict[str, Estimates]]:
    """Scores; and the estimates of each system, if there are options."""
    runs, owners = runs_of(tables)
    tasks, table = joined(runs)
    model = table["model"].to_numpy()
    estimated: dict[str, Estimates] = {}
    if options is None:
        found = [ratios(part_of(tasks, model == name), chosen, rule) for name in runs]
    else:
        kept = {name: _source(part_of(tasks, model == name), rule) for name in runs}
        for name in tables:
            own = [run for run, (owner, _) in zip(runs, owners, strict=True) if owner == name]
            if len(own) == 1:
                estimated[name] = estimates(kept[own[0]], options)
            else:
                pooled = _source(part_of(tasks, np.isin(model, own)), rule)
                estimated[name] = estimates(pooled, options, [kept[run] for run in own])
        found = [
            [_ratio_of(one, source.parts.get((one.measure, one.weighting)), rule) for one in chosen]
            for source in kept.values()
        ]
    value = np.array([[of_run[i][0] for of_run in found] for i in range(len(chosen))])
    weights = np.array([[of_run[i][1] for of_run in found] for i in range(len(chosen))])
    if not np.allclose(weights, weights[:, :1], rtol=1e-9, atol=0):
        raise ArgumentError("tables", "must have the same candidates and weights in every system.")
    first = table.filter(model == next(iter(runs)))
    queries = _queries(first, part_of(tasks, model == next(iter(runs))).query)
    order = queries.select(pl.col(QUERY).cast(pl.String)).with_row_index("row").sort(QUERY)["row"].to_numpy()
    value, seeds = over_seeds(value[..., order], owners)
    return Scores(
        systems=tuple(tables),
        metrics=tuple(metric.name for metric in chosen),
        larger_is_better=tuple(metric.larger_is_better for metric in chosen),
        queries=queries[order],
        value=value,
        weight=weights[:, 0][:, order],
        seeds=seeds,
    ), estimated


def _source(tasks: Tasks, rule: Ties) -> InMemory:
    """Tasks with the sums over each query, from which metrics are computed."""
    return InMemory(tasks, (rule,), by_query=True, keep=True, num_entities=None)


Run = tuple[str, int | None]
"""Name of a system and one of its seeds; the seed is None if there is only one."""


def runs_of(
    tables: Mapping[str, RankTable | pl.DataFrame],
) -> tuple[dict[str, RankTable | pl.DataFrame], list[Run]]:
    """Rank table of each run: one for each system, or for each of its seeds if it has several.

    Returns:
        Tables by the name of the run in messages, and the runs in the same order.

    Raises:
        ValueError: if the seeds of a system rank different tasks.
    """
    found: dict[str, RankTable | pl.DataFrame] = {}
    owners: list[Run] = []
    for name, table in tables.items():
        frame = table.frame if isinstance(table, RankTable) else table
        seeds = several_seeds(frame)
        if not seeds:
            found[name] = table
            owners.append((name, None))
            continue
        parts = RankTable.of_entities(table, source=name).frame.partition_by("seed", as_dict=True)
        for seed in seeds:
            called = f"{name}, seed {seed}"
            while called in tables:  # a system may be called so
                called += "'"
            found[called] = RankTable.trusted(parts[(seed,)])
            owners.append((name, seed))
    return found, owners


def several_seeds(frame: pl.DataFrame) -> tuple[int, ...]:
    """Seeds of the rank table of one system if it has several, otherwise empty; a column model is ignored."""
    return seeds_of(frame.select("seed")).get(None, ()) if "seed" in frame.columns else ()


def over_seeds(
    value: Float64[np.ndarray, "metrics runs queries"], owners: Sequence[Run]
) -> tuple[Float64[np.ndarray, "metrics systems queries"], tuple[Seeds | None, ...]]:
    """Mean over the seeds of each system, and the scores under each seed."""
    if all(seed is None for _, seed in owners):
        return value, ()
    means: list[np.ndarray] = []
    found: list[Seeds | None] = []
    for name in dict.fromkeys(name for name, _ in owners):
        at = [i for i, (owner, _) in enumerate(owners) if owner == name]
        own = value[:, at]
        seeds = tuple(seed for owner, seed in owners if owner == name and seed is not None)
        means.append(own.mean(1))
        found.append(Seeds(seeds, own) if seeds else None)
    return np.stack(means, 1), tuple(found)


def joined(tables: Mapping[str, RankTable | pl.DataFrame]) -> tuple[Tasks, pl.DataFrame]:
    """Tasks with positive weight of all systems, which answer the same queries, and their rows, with `model`.

    Raises:
        ValueError: if a table is malformed, or the systems have different queries, answers or weights. All
            weights are 1 in a table without them.
    """
    parts = [
        RankTable.of_entities(table, source=name)
        .frame.drop("seed", strict=False)
        .with_columns(model=pl.lit(name))
        for name, table in tables.items()
    ]
    for column, meant in _MEANT.items():
        if any(column in part.columns for part in parts):
            filled = pl.lit(meant).alias(column)
            parts = [part if column in part.columns else part.with_columns(filled) for part in parts]
    _refuse_mixed(parts)
    # Further columns are kept if they have the same type in all tables.
    kinds = [part.schema for part in parts]
    shared = [name for name, kind in kinds[0].items() if all(own.get(name) == kind for own in kinds)]
    try:
        tasks, table = tasks_of(RankTable.trusted(pl.concat([part.select(shared) for part in parts])))
    except ValueError:
        for name, one in tables.items():
            _require_tasks(name, one)
        raise
    everything = tasks.query if tasks.query is not None else np.arange(len(table))
    _refuse_other_answers(table, everything, tuple(tables))
    if len((own := weighed(tasks)).optimistic) < len(table):
        return own, table.filter(pl.col("weight") > 0)
    return tasks, table


def _refuse_mixed(parts: Iterable[pl.DataFrame]) -> None:
    """ArgumentError if some tables hold labels and others hold ids."""
    schemas = [part.schema for part in parts]
    for what, name in (("entities", "head"), ("relations", "relation")):
        if len({schema[name] for schema in schemas}) > 1:
            raise ArgumentError(
                "tables", f"must all hold labels (text) of {what}, or all ids (whole numbers), in {name}."
            )


def _require_tasks(name: str, table: RankTable | pl.DataFrame) -> None:
    """ValueError naming the file or the system if rows rank the same task differently."""
    try:
        tasks_of(table)
    except ValueError as error:
        source = table.about.get("source") if isinstance(table, RankTable) else None
        raise ValueError(f"{source or name}: {error}") from None


def ratios(
    own: Tasks, chosen: Sequence[Metric], rule: Ties, *, by_query: bool = True
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Value and weight of each metric of one system, by query or in one entry; the metric is sum over sum."""
    found = []
    for metric in chosen:
        read = query_sums_by_ties(metric.measure, metric.weighting, own, (rule,), by_query=by_query)
        found.append(_ratio_of(metric, read, rule))
    return found


def _ratio_of(
    metric: Metric, read: Mapping[Ties, QuerySums] | None, rule: Ties
) -> tuple[np.ndarray, np.ndarray]:
    """Value and weight of one metric; ArgumentError if the answers of a query do not form one list."""
    if read is None:
        raise ArgumentError(
            "metrics",
            f"must not include {metric.name}, because the answers of a query do not form one list: "
            "their numbers of candidates differ, or other answers are not filtered.",
        )
    return _ratio(metric, read[rule])


def averaged(metrics: Metric | Sequence[Metric]) -> tuple[Metric, ...]:
    """Metrics, at least one, all of them means; ArgumentError otherwise."""
    chosen = (metrics,) if isinstance(metrics, Metric) else tuple(metrics)
    if not chosen:
        raise ArgumentError("metrics", "must name at least one metric, got none.")
    for one in chosen:
        if not isinstance(one, Metric):
            raise ArgumentError("metrics", f"must be metrics from owkg.metrics.metric, got {one!r}.")
        if not one.is_mean:
            raise ArgumentError("metrics", f"must be means, plain or adjusted as an index, got {one.name}.")
    if len({one.name for one in chosen}) < len(chosen):
        raise ArgumentError("metrics", f"must be different, got {', '.join(one.name for one in chosen)}.")
    return chosen


def checked_rule(ties: str) -> Ties:
    """Tie rule of that name; ArgumentError if there is none."""
    try:
        return Ties(ties)
    except ValueError:
        raise ArgumentError("ties", f"must be one of {', '.join(Ties)}, got {ties!r}.") from None


def _ratio(metric: Metric, parts: QuerySums) -> tuple[np.ndarray, np.ndarray]:
    """Sums over each query whose ratio is the metric; (M - E) / (B - E) for an index."""
    if metric.adjustment is Adjustment.INDEX:
        sign = 1.0 if rises(metric.measure) else -1.0  # so that the weight is positive
        return sign * np.asarray(parts.value - parts.chance), sign * np.asarray(parts.best - parts.chance)
    return np.asarray(parts.value), np.asarray(parts.weight)


def _tasks(table: RankTable | pl.DataFrame) -> pl.DataFrame:
    """Side, head, relation and tail of each row, as text."""
    frame = table.frame if isinstance(table, RankTable) else table
    return frame.select(pl.col(_TASK).cast(pl.String))


def intersected(tables: Mapping[str, RankTable | pl.DataFrame]) -> tuple[dict[str, RankTable], pl.DataFrame]:
    """Rank tables with only the answers that every system ranks.

    Ranks do not change. This is exact for filtered ranks, because an answer that is left out is not a
    candidate of the remaining ones.

    Args:
        tables: rank table of each system, by name.

    Returns:
        Tables, and one row for each system: system; queries and answers, the numbers that remain; of_queries
        and of_answers, the numbers before.

    Raises:
        ValueError: if no answer is in every table.

    Examples:
        >>> row = {"head": "a", "relation": "r", "side": "tail", "candidates": 9}
        >>> of = lambda tails: pl.DataFrame(
        ...     [row | {"tail": t, "optimistic": 1, "pessimistic": 1} for t in tails]
        ... )
        >>> cut, left = intersected({"one": of("bc"), "two": of("cde")})
        >>> left.select("system", "answers", "of_answers").rows()
        [('one', 1, 2), ('two', 1, 3)]
    """
    given = {name: RankTable.of_entities(table, source=name) for name, table in tables.items()}
    keys = {name: _tasks(table) for name, table in given.items()}
    counted = pl.concat([_ranked(table.frame) for table in given.values()]).group_by(_TASK).len()
    shared = counted.filter(pl.col("len") == len(keys)).drop("len")
    if shared.is_empty():
        raise ArgumentError("tables", "have no query that every system answers.")
    found, rows = {}, []
    for name, key in keys.items():
        kept = key.join(shared.with_columns(kept=True), on=_TASK, how="left", maintain_order="left")["kept"]
        found[name] = RankTable.trusted(given[name].frame.filter(kept.fill_null(False)), given[name].about)
        before, after = _counted(key), _counted(key.filter(kept.fill_null(False)))
        rows.append((name, after[0], before[0], after[1], before[1]))
    columns = ("system", "queries", "of_queries", "answers", "of_answers")
    return found, pl.DataFrame(rows, schema=columns, orient="row")


def _ranked(frame: pl.DataFrame) -> pl.DataFrame:
    """Tasks that every seed of a system ranks, each once."""
    key = pl.col(_TASK).cast(pl.String)
    if not (seeds := several_seeds(frame)):
        return frame.select(key).unique()
    every = frame.select(key, "seed").unique().group_by(_TASK).len()
    return every.filter(pl.col("len") == len(seeds)).drop("len")


def require_placed(
    tables: Mapping[str, RankTable | pl.DataFrame], metrics: Sequence[Metric], ties: str | None
) -> None:
    """Raises an error for metrics that depend on ranks of which only bounds are known (column `bounded`).

    If `ties` states which of the bounds count, a warning is issued instead.

    Raises:
        ValueError: naming the system, its file and the bounds of the metric, if `ties` is None.
    """
    for name, table in tables.items():
        if (known := RankTable.of(table, source=name)).averaged and ties not in (None, "realistic"):
            raise ArgumentError(
                "ties", f"must be realistic, because only realistic ranks of {name!r} are known, got {ties}."
            )
        frame = known.frame
        if "bounded" not in frame.columns or not (open_ := int(frame["bounded"].sum())):
            continue
        source = table.about.get("source") if isinstance(table, RankTable) else None
        many = f"{open_:,} of {len(frame):,} ranks of {name!r}{f' ({source})' if source else ''} are bounds"
        if ties is not None:
            text = f"{many}: the tie rule {ties} selects the bounds that count."
            warnings.warn(text, UserWarning, stacklevel=2)
            continue
        ends = [
            frame.with_columns(pl.when("bounded").then(end).otherwise(of).alias(of) for of in RANKS[:2])
            for end in RANKS[:2]
        ]
        high, low = (scores({name: RankTable.trusted(end)}, metrics)[0].mean[:, 0] for end in ends)
        if len(apart := np.flatnonzero(~np.isclose(low, high, rtol=1e-12, atol=0))):
            least, most = sorted((low[apart[0]], high[apart[0]]))
            raise ArgumentError(
                "ties",
                f"must state the rank of answers that are not listed: {many}, between which its "
                f"{metrics[int(apart[0])].name} is {least:.4f} to {most:.4f}. pessimistic ranks them last, "
                "optimistic next.",
            )


def _counted(keys: pl.DataFrame) -> tuple[int, int]:
    """Number of queries, and number of answers to them."""
    return keys.select("side", known_entity(), "relation").n_unique(), keys.n_unique()


def _refuse_other_answers(table: pl.DataFrame, query: np.ndarray, systems: tuple[str, ...]) -> None:
    """ArgumentError if the systems do not rank the same answers to the same queries."""
    rows = table.select("model", *_TASK).with_columns(query=pl.Series(query))
    by_query = rows.group_by("query").agg(pl.col("model").n_unique(), pl.first(*_TASK))
    lacking = by_query.filter(pl.col("model") < len(systems)).sort("query")
    if len(lacking) == len(by_query):
        raise ArgumentError("tables", "have no query that every system answers.")
    if len(lacking):
        who = set(systems) - set(rows.filter(query=lacking["query"][0])["model"])
        raise ArgumentError(
            "tables",
            f"must answer the same queries: {len(lacking):,} of {len(by_query):,} are missing "
            f"in some system, such as {asked(lacking.row(0, named=True))} in {min(who)}; `intersect` "
            "leaves them out.",
        )
    weighted = table.select("weight") if "weight" in table.columns else []
    counted = rows.with_columns(weighted).group_by(*_TASK).agg(pl.len(), *weights_of(table.columns))
    answers = counted.filter(pl.col("len") < len(systems))
    if len(answers):
        row = answers.sort(*_TASK).row(0, named=True)
        raise ArgumentError(
            "tables",
            f"must have the same answers to a query in every system: {len(answers):,} are not "
            f"in all, such as {row[row['side']]!r} to {asked(row)}, in {row['len']} of {len(systems)}; "
            "`intersect` leaves them out.",
        )
    refuse_other_weights("tables", counted)


def weights_of(columns: Sequence[str]) -> list[pl.Expr]:
    """Smallest and largest weight of an answer over systems, if there are weights."""
    weight = pl.col("weight")
    return [weight.min().alias("least"), weight.max().alias("most")] if "weight" in columns else []


def refuse_other_weights(name: str, answers: pl.DataFrame) -> None:
    """ArgumentError naming `name` if the weight of an answer differs between systems, by `weights_of`."""
    if "least" not in answers.columns:
        return
    other = answers.filter(pl.col("most") - pl.col("least") > 1e-9 * pl.col("most"))
    if len(other):
        row = other.sort(*_TASK).row(0, named=True)
        raise ArgumentError(
            name,
            "must have the same weights in every system (1 in tables without weights): the weights of "
            f"{len(other):,} answers differ, such as {row[row['side']]!r} to {asked(row)}, {row['least']:g} "
            f"and {row['most']:g}.",
        )


def asked(row: dict[str, Any]) -> str:
    """Query of a ranking task, as `head|relation|?`."""
    triple = [row["head"], row["relation"], row["tail"]]
    triple[0 if row["side"] == "head" else 2] = "?"
    return "|".join(map(str, triple))


def _queries(table: pl.DataFrame, query: np.ndarray | None) -> pl.DataFrame:
    """Side, known entity and relation of each query, in the order of their ids."""
    asked = table.select("side", known_entity(), "relation")
    if query is None:
        return asked
    return asked[np.unique(query, return_index=True)[1]]
