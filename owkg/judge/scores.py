"""Per-query scores of every system: what rankings, tests and intervals are computed from."""

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
from owkg.metrics.gathered import InMemory
from owkg.metrics.measures import rises
from owkg.metrics.query_sums import QuerySums, query_sums_by_ties
from owkg.ranks import RankTable
from owkg.ranks.seeds import seeds_of
from owkg.ranks.table import RANKS
from owkg.ranks.tasks import weighed
from owkg.stats.nested import NO_SEEDS, SeedSpread, crossed_spread
from owkg.stats.rank_correlation import round_ties

QUERY = ("side", "entity", "relation")
"""Columns that tell queries apart: which side is asked, and what is known of the triple."""

_TASK = ("side", "head", "relation", "tail")
# What a table means that lacks a column which another one has.
_MEANT = {"weight": 1.0, "filtered": True}


class Seeds(NamedTuple):
    """The scores of one system under each of its seeds.

    Attributes:
        seeds: in increasing order, at least two.
        value: as that of `Scores`, [metrics, seeds, queries].
    """

    seeds: tuple[int, ...]
    value: Float64[np.ndarray, "metrics seeds queries"]


class Scores(NamedTuple):
    """Per-query scores of systems, by metric.

    The metric of a system is sum of `value` over sum of `weight`. Of a macro metric, the weight of a
    query is 1 and its value that of the query; of a micro metric, the weight is the number of its
    answers and the value the sum over them.

    Attributes:
        systems: their names, at least one.
        metrics: their names.
        larger_is_better: of each metric.
        queries: columns side, entity, relation.
        value: [metrics, systems, queries].
        weight: the same for all systems, at least 0, [metrics, queries].
        seeds: of each system, the scores under its seeds, whose mean `value` has; None of a system with one
            seed. Empty where no system has several.
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
        """The metric of each system over all queries."""
        return self.value.sum(2) / self.weight.sum(1)[:, None]

    @property
    def strength(self) -> Float64[np.ndarray, "metrics systems"]:
        """`mean`, turned where smaller is better."""
        return self.mean * np.where(self.larger_is_better, 1.0, -1.0)[:, None]

    @property
    def places(self) -> Int64[np.ndarray, "metrics systems"]:
        """Rank of each system by each metric, 1 for the best; equal systems share the best of their ranks."""
        strength = round_ties(self.strength)
        return 1 + (strength[:, None, :] > strength[:, :, None]).sum(2)

    @property
    def num_seeds(self) -> Int64[np.ndarray, "systems"]:
        """How many seeds each system has."""
        every = self.seeds or (None,) * len(self.systems)
        return np.array([1 if one is None else len(one.seeds) for one in every])

    @property
    def seeded(self) -> Bool[np.ndarray, "systems"]:
        """Whether each system has several seeds."""
        return self.num_seeds > 1

    def of_queries(self, index: np.ndarray) -> "Scores":
        """The scores on some of the queries."""
        seeds = tuple(one and one._replace(value=one.value[..., index]) for one in self.seeds)
        return self._replace(
            queries=self.queries[index],
            value=self.value[..., index],
            weight=self.weight[:, index],
            seeds=seeds,
        )

    def by_seed(self, metric: int) -> list[np.ndarray | None]:
        """One metric of each system under each of its seeds, [seeds]; None of a system with one seed."""
        weight = self.weight[metric].sum()
        every = self.seeds or (None,) * len(self.systems)
        return [None if one is None else one.value[metric].sum(1) / weight for one in every]

    def spread(self, metric: int) -> SeedSpread:
        """What seeds add to the variance of one metric of each system, [systems]; 0 of a single seed."""
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
        tables: a rank table of each system, by its name; a column model is not looked at. With a column
            seed of several seeds, the score of a query is the mean over seeds (`Scores.seeds` keeps each).
        metrics: means over answers or over queries, plain or adjusted as an index; no median, no
            standard deviation, no z metric, nothing with a link (such as the geometric mean rank).
        ties: the rule.
        intersect: keep what every system ranks (`intersected`), where it differs; else that is an error.

    Returns:
        (scores, number of queries that are left out). Queries are in the order of their texts,
        whatever the order of the rows, so that what is drawn of them is the same.

    Raises:
        ValueError: if there is no system, a table is malformed, the systems do not answer the same
            queries, a query has other answers in another system or under another seed, or a metric is none
            of those.

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
    """The scores of every system, and its metrics with intervals, from the same sums over queries.

    Args:
        tables, metrics, ties: as of `scores`.
        level: of the intervals; None: none.

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
    """The scores; and the estimates of each system, where there are options."""
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
    """What metrics take of tasks, with the sums over each query."""
    return InMemory(tasks, (rule,), by_query=True, keep=True, num_entities=None)


Run = tuple[str, int | None]
"""A system and one of its seeds; None where it has one."""


def runs_of(
    tables: Mapping[str, RankTable | pl.DataFrame],
) -> tuple[dict[str, RankTable | pl.DataFrame], list[Run]]:
    """The rank table of each run: of each system, or of each of its seeds where it has several.

    Returns:
        (tables by what messages call the run, the runs in this order).

    Raises:
        ValueError: if a seed of a system ranks other tasks than another one.
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
    """The seeds of the rank table of one system, where it has several; a column model is not looked at."""
    return seeds_of(frame.select("seed")).get(None, ()) if "seed" in frame.columns else ()


def over_seeds(
    value: Float64[np.ndarray, "metrics runs queries"], owners: Sequence[Run]
) -> tuple[Float64[np.ndarray, "metrics systems queries"], tuple[Seeds | None, ...]]:
    """The mean over the seeds of each system, and the scores under each seed."""
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
    """The tasks of some weight of all systems, which answer the same queries, and their rows, by `model`.

    Raises:
        ValueError: if a table is malformed, or the systems have other queries, answers or weights. A table
            without weights has weights of 1.
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
    # Of further columns, those of one type in all tables.
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
    """ValueError if some tables hold labels where others hold ids."""
    schemas = [part.schema for part in parts]
    for what, name in (("entities", "head"), ("relations", "relation")):
        if len({schema[name] for schema in schemas}) > 1:
            raise ArgumentError(
                "tables", f"must all hold labels (text) of {what}, or all ids (whole numbers), in {name}."
            )


def _require_tasks(name: str, table: RankTable | pl.DataFrame) -> None:
    """ValueError naming the file or the system, if rows rank the same task differently."""
    try:
        tasks_of(table)
    except ValueError as error:
        source = table.about.get("source") if isinstance(table, RankTable) else None
        raise ValueError(f"{source or name}: {error}") from None


def ratios(
    own: Tasks, chosen: Sequence[Metric], rule: Ties, *, by_query: bool = True
) -> list[tuple[np.ndarray, np.ndarray]]:
    """(value, weight) of each metric of one system, by query or in one entry; the metric is sum over sum."""
    found = []
    for metric in chosen:
        read = query_sums_by_ties(metric.measure, metric.weighting, own, (rule,), by_query=by_query)
        found.append(_ratio_of(metric, read, rule))
    return found


def _ratio_of(
    metric: Metric, read: Mapping[Ties, QuerySums] | None, rule: Ties
) -> tuple[np.ndarray, np.ndarray]:
    if read is None:
        raise ArgumentError(
            "metrics",
            f"has {metric.name}, and the answers of a query are in no one list: "
            "their numbers of candidates differ, or the others are not filtered.",
        )
    return _ratio(metric, read[rule])


def averaged(metrics: Metric | Sequence[Metric]) -> tuple[Metric, ...]:
    """`metrics`, one at least, if all are means; ValueError otherwise."""
    chosen = (metrics,) if isinstance(metrics, Metric) else tuple(metrics)
    if not chosen:
        raise ArgumentError("metrics", "must be at least one, got none.")
    for one in chosen:
        if not isinstance(one, Metric):
            raise ArgumentError("metrics", f"must be of owkg.metrics.metric, got {one!r}.")
        if not one.is_mean:
            raise ArgumentError("metrics", f"must be means, plain or adjusted as an index, got {one.name}.")
    if len({one.name for one in chosen}) < len(chosen):
        raise ArgumentError("metrics", f"must be different, got {', '.join(one.name for one in chosen)}.")
    return chosen


def checked_rule(ties: str) -> Ties:
    """The tie rule of that name; ValueError if there is none."""
    try:
        return Ties(ties)
    except ValueError:
        raise ArgumentError("ties", f"must be one of {', '.join(Ties)}, got {ties!r}.") from None


def _ratio(metric: Metric, parts: QuerySums) -> tuple[np.ndarray, np.ndarray]:
    """Sums over each query whose ratio is the metric: (M - E) / (B - E) of an index."""
    if metric.adjustment is Adjustment.INDEX:
        sign = 1.0 if rises(metric.measure) else -1.0  # so that the weight is positive
        return sign * np.asarray(parts.value - parts.chance), sign * np.asarray(parts.best - parts.chance)
    return np.asarray(parts.value), np.asarray(parts.weight)


def _tasks(table: RankTable | pl.DataFrame) -> pl.DataFrame:
    frame = table.frame if isinstance(table, RankTable) else table
    return frame.select(pl.col(_TASK).cast(pl.String))


def intersected(tables: Mapping[str, RankTable | pl.DataFrame]) -> tuple[dict[str, RankTable], pl.DataFrame]:
    """What every system ranks: the rows of the answers that stand in every table.

    Ranks stay as they are. Of filtered ranks that is exact: an answer that is left out is no candidate of the
    others.

    Args:
        tables: a rank table of each system, by its name.

    Returns:
        (tables, what is left): a row a system, with system; queries and answers that are left; of_queries
        and of_answers that it had.

    Raises:
        ValueError: if no answer stands in every table.

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
    """The tasks that every seed of a system ranks, each once."""
    key = pl.col(_TASK).cast(pl.String)
    if not (seeds := several_seeds(frame)):
        return frame.select(key).unique()
    every = frame.select(key, "seed").unique().group_by(_TASK).len()
    return every.filter(pl.col("len") == len(seeds)).drop("len")


def require_placed(
    tables: Mapping[str, RankTable | pl.DataFrame], metrics: Sequence[Metric], ties: str | None
) -> None:
    """Refuses metrics that depend on where answers stand whose ranks are bounds (column `bounded`).

    Warns where `ties` state which of the bounds count.

    Raises:
        ValueError: naming the system, its file and the bounds of the metric, if nothing is stated.
    """
    for name, table in tables.items():
        if (known := RankTable.of(table, source=name)).averaged and ties not in (None, "realistic"):
            raise ArgumentError(
                "ties", f"must be realistic: only realistic ranks of {name!r} are known, got {ties}."
            )
        frame = known.frame
        if "bounded" not in frame.columns or not (open_ := int(frame["bounded"].sum())):
            continue
        source = table.about.get("source") if isinstance(table, RankTable) else None
        many = f"{open_:,} of {len(frame):,} ranks of {name!r}{f' ({source})' if source else ''} are bounds"
        if ties is not None:
            text = f"{many}: the tie rule {ties} says which of them count."
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
                f"must say where answers stand that are not listed: {many}, between which its "
                f"{metrics[int(apart[0])].name} is {least:.4f} to {most:.4f}. pessimistic puts them last, "
                "optimistic next.",
            )


def _counted(keys: pl.DataFrame) -> tuple[int, int]:
    """How many queries, and how many answers to them."""
    return keys.select("side", known_entity(), "relation").n_unique(), keys.n_unique()


def _refuse_other_answers(table: pl.DataFrame, query: np.ndarray, systems: tuple[str, ...]) -> None:
    """ValueError if the systems do not rank the same answers to the same queries."""
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
    """The least and the most weight of an answer over systems, if there are weights."""
    weight = pl.col("weight")
    return [weight.min().alias("least"), weight.max().alias("most")] if "weight" in columns else []


def refuse_other_weights(name: str, answers: pl.DataFrame) -> None:
    """ValueError naming `name`, if an answer has other weights in other systems; by `weights_of`."""
    if "least" not in answers.columns:
        return
    other = answers.filter(pl.col("most") - pl.col("least") > 1e-9 * pl.col("most"))
    if len(other):
        row = other.sort(*_TASK).row(0, named=True)
        raise ArgumentError(
            name,
            "must have the same weights in every system, which are 1 in tables without weights: those of "
            f"{len(other):,} answers differ, such as {row[row['side']]!r} to {asked(row)}, {row['least']:g} "
            f"and {row['most']:g}.",
        )


def asked(row: dict[str, Any]) -> str:
    """The query of a ranking task, as `head|relation|?`."""
    triple = [row["head"], row["relation"], row["tail"]]
    triple[0 if row["side"] == "head" else 2] = "?"
    return "|".join(map(str, triple))


def _queries(table: pl.DataFrame, query: np.ndarray | None) -> pl.DataFrame:
    """Side, known entity and relation of each query, in the order of their ids."""
    asked = table.select("side", known_entity(), "relation")
    if query is None:
        return asked
    return asked[np.unique(query, return_index=True)[1]]
