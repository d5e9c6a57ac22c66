"""Comparison of systems: values, significance of differences, and agreement of qrels on the ranking."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
import polars.selectors as cs

from owkg import checks
from owkg.errors import ArgumentError, naming
from owkg.ir.names import measures_named
from owkg.judge.agreement import Agreement, agreement
from owkg.judge.qrels import qrels_from_graph
from owkg.judge.scores import Scores, require_placed, scores, scores_and_estimates
from owkg.judge.significance import SYMMETRY, PairTest, difference_intervals, other_hypothesis, pairwise
from owkg.judge.streamed import dataset_of, stream_scores
from owkg.judge.systems import (
    AS_RANKED,
    QrelsRanks,
    SeveralQrels,
    System,
    note,
    qrels_named,
    qrels_ranks,
    seed_notes,
    tie_rule,
)
from owkg.judge.topics import topic_scores, topic_values
from owkg.keys import checked_key, children
from owkg.kg import KnowledgeGraph, fact_splits
from owkg.metrics import Metric, Ties
from owkg.metrics.evaluate import Estimates
from owkg.metrics.front import MetricNames, metrics_named
from owkg.ranks import RankDataset, RankTable
from owkg.ranks.build import default_filters
from owkg.ranks.reading import TableReading
from owkg.stats.bootstrap import checked_replicates
from owkg.stats.corrections import benjamini_hochberg, holm
from owkg.stats.power import detectable_difference
from owkg.stats.rank_correlation import kendall_tau

if TYPE_CHECKING:
    import matplotlib.figure

DEFAULT = ("mrr", "hits@1", "hits@10", "macro-mrr", "macro-map@20", "macro-ndcg@20")
"""Default metrics: micro metrics, and the macro metrics that Zhou et al. (2022) recommend."""

DIVISIONS = ("side", "relation", "category")
"""Values of the argument `by` of `compare`."""

_CORRECTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "holm": holm,
    "bh": benjamini_hochberg,
    "none": lambda p: p,
}


@dataclass(frozen=True, eq=False)
class Comparison:
    """Results of a comparison of systems, as polars frames.

    Attributes:
        values: one row for each qrels, metric and system: value, interval (lower, upper) and rank (1 is
            best). If some system has several seeds, the value is the mean over seeds, and the columns seeds
            (number of seeds) and seed_deviation (standard deviation over seeds) are added.
        pairs: one row for each qrels, metric and pair of systems: difference (positive if the first system is
            better, also if smaller values are better), its interval, p-value, corrected p-value and the
            difference that a t test detects; the number of queries on which the first system is better
            (wins), equal (ties) and worse (losses); and the effect size, the mean difference of the queries
            over its standard deviation. With Wilcoxon's test also `hypothesis`: "symmetry" if the p-value
            tests that the differences of the queries are symmetric, "metric" if it tests the metric, because
            all queries have the same weight.
        metrics: number of pairs that each metric tells apart.
        agreement: rank correlations between the first qrels and each further one; each ranking uses all
            queries of its qrels, and `queries` counts the queries in both.
        parts: rank correlations on parts of the queries, if `by` names some.
    """

    values: pl.DataFrame
    pairs: pl.DataFrame
    metrics: pl.DataFrame
    agreement: pl.DataFrame
    parts: pl.DataFrame

    def items(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """Name and frame of each table."""
        return ((field.name, getattr(self, field.name)) for field in fields(self))

    def plot(self, metrics: str | list[str] | None = None) -> "matplotlib.figure.Figure":
        """Figure of the values with their intervals, one panel for each metric.

        Args:
            metrics: metrics to draw. Default: all that were compared.

        Raises:
            ValueError: if a metric was not compared.
        """
        from owkg.plots.values import values

        return values(self.values, metrics=metrics)

    def __repr__(self) -> str:
        return "\n".join(f"{name}:\n{table}" for name, table in self.items() if len(table))

    def _repr_html_(self) -> str:
        return "".join(f"<h4>{name}</h4>{table._repr_html_()}" for name, table in self.items() if len(table))


def compare(
    systems: Mapping[str, System] | Iterable[str | PathLike[str] | RankDataset],
    metrics: MetricNames | None = None,
    *,
    qrels: SeveralQrels = None,
    graph: KnowledgeGraph | None = None,
    by: str | Sequence[str] = (),
    test: Literal["randomisation", "t", "wilcoxon"] = "randomisation",
    correction: Literal["holm", "bh", "none"] = "holm",
    ci: float = 0.95,
    draws: int = 10_000,
    replicates: int = 1000,
    ties: str | None = None,
    intersect: bool = False,
    seed: int = 0,
    columns: Mapping[str, str] | None = None,
    untied: bool = False,
    realistic: bool = False,
    candidates: int | None = None,
    ids: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Comparison of systems: values with intervals, tests of all pairs, agreement of qrels on the ranking.

    Whole queries are the sampling unit throughout. A system with several seeds (column seed) is one system:
    its value is the mean over seeds, intervals are over queries and seeds, and p-values of its pairs come
    from Student's t over queries and seeds, because the tests over queries take the seeds as given. Agreement
    and parts use the ranking by these means. Issues a UserWarning if the values depend on answers that nobody
    judged, on ranks that the qrels leave open, or on queries that are left out.

    Args:
        systems: dictionary of names to rank tables, frames of polars or pandas, or paths of rank tables or
            TREC runs; or an iterable of paths, whose systems are named by the column model, or by the file
            without one. The seeds of a system may be in several files. A folder of Parquet files, a pattern
            of file names or an `owkg.ranks.RankDataset` is read in parts if it is large; `qrels`, `graph` and
            `intersect` need it in memory.
        metrics: names of means that `owkg metrics --list` prints. Default: `DEFAULT`. Or measures of lists as
            trec_eval names them (`owkg.ir.names.EXAMPLES`): systems are then TREC runs, topics any text,
            `qrels` are judgements, and no graph is needed.
        qrels: relevant answers: frames, files, or names of splits of the graph; all further qrels are
            compared with the first. Default: the answers that the rank tables rank.
        graph: knowledge graph. Needed if `qrels` names splits, if systems are TREC runs of triples, or if
            `by` names "category". Measures of lists under a split are filtered, as rank metrics are: they
            count the sides that some run answers, without the other known answers of train, valid and test.
        by: divisions of the queries, each part of which also ranks the systems: "side", "relation",
            "category". Default: none.
        test: paired, two-sided test over queries. For micro metrics, "randomisation" (default) and "t" test
            that the metrics are equal, and "wilcoxon" tests that the differences of the queries are symmetric
            around 0. Pairs with several seeds always get t over queries and seeds.
        correction: correction of the p-values of all pairs for one metric: "holm" (default), "bh" or "none".
        ci: level of all intervals; 1 - ci is the level of the tests. Default 0.95.
        draws: number of draws of the randomisation test. Default 10,000.
        replicates: number of bootstrap resamples for the rank correlations. Default 1000.
        ties: tie rule, "optimistic", "realistic", "pessimistic" or "exact". Default: realistic, or exact if
            the qrels leave open the order of answers of equal rank.
        intersect: whether to leave out queries and answers that some system lacks; otherwise they are an
            error.
        seed: seed of all random draws. Default 0.
        columns, untied, realistic, candidates, ids: arguments of `owkg.read_ranks`, applied to all rank
            tables.
        on_progress: function called with (done, total) metrics; for a dataset that is read in parts, first
            with its parts.

    Returns:
        The comparison: tables of values with intervals, of pairs with tests, of metrics, and of the agreement
        of qrels.

    Raises:
        ValueError: naming the argument, or the file and what is wrong with it.

    Examples:
        >>> row = {"relation": "r", "tail": "t", "side": "tail", "pessimistic": 9, "candidates": 9}
        >>> a = pl.DataFrame([row | {"head": h, "optimistic": r} for h, r in (("x", 1), ("y", 2), ("z", 1))])
        >>> found = compare({"a": a, "b": a.with_columns(optimistic=pl.lit(9))}, "hits@1", ties="optimistic")
        >>> found.pairs["difference"].round(3).to_list()
        [0.667]
    """
    checks.level("ci", ci)
    checked_key(seed, "seed")
    divisions = checks.some_of("by", by, DIVISIONS)
    checked_replicates(replicates)
    checks.flag("intersect", intersect)
    if on_progress is not None and not callable(on_progress):
        raise ArgumentError("on_progress", f"must be a function of (done, total), got {on_progress!r}.")
    if not isinstance(correction, str) or correction not in _CORRECTIONS:
        raise ArgumentError("correction", f"must be one of {', '.join(_CORRECTIONS)}, got {correction!r}.")
    if test not in list(PairTest):
        raise ArgumentError("test", f"must be one of {', '.join(PairTest)}, got {test!r}.")
    test_key, order_key = children(seed, 2)
    reading = TableReading(columns or {}, untied, realistic, candidates, ids)
    measures = measures_named(metrics)
    given: Any = systems
    chosen: list[Metric] = []
    rule = "realistic"
    picks: dict[str, _Pick] = {}
    keys: pl.DataFrame | None = None
    if measures is not None:
        if reading.said:
            raise ArgumentError(reading.said, "applies to rank metrics, not to measures of lists.")
        if divisions or ties is not None:
            raise ArgumentError(
                "by" if divisions else "ties", "applies to rank metrics, not to measures of lists."
            )
        if isinstance(metrics, Sequence) and any(str(one).lower().startswith("mrr") for one in metrics):
            note("mrr with measures of lists is the mean of RR: the first relevant answer of a list counts.")
        of_topics = _judgements(qrels, graph)
        read = {
            name: topic_scores(given, one, measures, intersect=intersect, known=known)
            for name, (one, known) in of_topics.items()
        }
        values = [
            topic_values(one, ci).select(pl.lit(name).alias("qrels"), pl.all()) for name, one in read.items()
        ]
    else:
        chosen = metrics_named(DEFAULT if metrics is None else metrics) or []
        needs = {"qrels": qrels is not None, "graph": graph is not None, "by": "category" in divisions}
        needs |= {"intersect": intersect}
        dataset = dataset_of(given, ties=ties, needs=needs, reading=reading, lacking=graph is not None)
        if dataset is not None:
            rule = tie_rule(ties, [])
            own, estimated = stream_scores(dataset, chosen, ties=rule, level=ci, on_progress=on_progress)
            read = {AS_RANKED: own}
            values = [_values(AS_RANKED, own, estimated, rule)]
            picks = {AS_RANKED: partial(_of_queries, own)}
            keys = _query_keys(own, divisions)
        else:
            sets = qrels_ranks(given, qrels, graph, intersect=intersect, reading=reading)
            for one in sets:
                require_placed(one.tables, chosen, ties)
            rule = tie_rule(ties, sets) if len(sets[0].tables) > 1 else rule
            read, values = {}, []
            for one in sets:
                with naming({"tables": "`systems`"}):
                    own, estimated = scores_and_estimates(one.tables, chosen, ties=rule, level=ci)
                read[one.name] = own
                values.append(_values(one.name, own, estimated, rule))
            picks = {one.name: partial(_of_rows, one.tables, chosen, rule) for one in sets}
            keys = _row_keys(sets, divisions)
    first = next(iter(read.values()))
    if len(first.systems) < 2:
        raise ArgumentError(
            "systems", "must name at least two systems, because a single one cannot be compared."
        )
    for of_set in list(read.values())[:1]:
        seed_notes(of_set)
        for sentence in of_set.heavy_queries():
            note(sentence)
        if of_set.seeded.any() and test != "t":
            note(
                f"the {test} test takes seeds as given, so that p-values of pairs with several seeds come "
                "from Student's t over queries and seeds."
            )
    if test == PairTest.WILCOXON:
        named = dict.fromkeys(name for one in read.values() for name in other_hypothesis(one))
        if named:
            note(SYMMETRY.format(", ".join(named)))
    pairs = []
    for qrels_name, of_set in read.items():
        for name in of_set.metrics:
            pairs.append(_pairs(qrels_name, of_set, name, test, correction, ci, draws, test_key))
            if on_progress is not None:
                on_progress(len(pairs), len(read) * len(of_set.metrics))
    every = pl.concat(pairs)
    rows = []
    first_name, *others = read
    for name in others:
        agreed = agreement(order_key, first, read[name], replicates=replicates, level=ci)
        rows += _agreement_rows(first_name, name, agreed)
    return Comparison(
        values=pl.concat(values),
        pairs=every,
        metrics=_by_metric(every, round(1 - ci, 12)),
        agreement=pl.DataFrame(rows, schema=_AGREEMENT),
        parts=_parts(picks, keys, first, divisions),
    )


_AGREEMENT: dict[str, Any] = {
    **dict.fromkeys(("qrels", "with", "metric", "coefficient"), str),
    **dict.fromkeys(("value", "lower", "upper", "confidence_lower", "confidence_upper"), float),
    "queries": int,
}


def _judgements(
    qrels: SeveralQrels, graph: KnowledgeGraph | None
) -> dict[str, tuple[Any, pl.DataFrame | None]]:
    """Judgements by name, from frames, files or splits; for a split also the answers that filtering drops."""
    given = qrels_named(qrels)
    if not given:
        raise ArgumentError(
            "qrels", "must be given with measures of lists, because they name the relevant answers."
        )
    splits = {} if graph is None else fact_splits(graph)
    found: dict[str, tuple[Any, pl.DataFrame | None]] = {}
    for name, one in given.items():
        found[name] = one, None
        if graph is not None and isinstance(one, str) and one in splits:
            found[name] = qrels_from_graph(graph, one), qrels_from_graph(graph, default_filters(graph, one))
    if graph is not None and all(known is None for _, known in found.values()):
        raise ArgumentError("graph", "has no effect on measures of lists unless `qrels` names a split of it.")
    return found


def _scores(tables: Mapping[str, RankTable], metrics: list[Metric], ties: str) -> Scores:
    """Scores of the tables; errors name the argument of `compare`."""
    with naming({"tables": "`systems`"}):
        return scores(tables, metrics, ties=ties)[0]


def _values(qrels: str, of: Scores, estimated: Mapping[str, Estimates], ties: str) -> pl.DataFrame:
    """Value of each system with its interval and its rank, 1 for the best."""
    rows = []
    for s, system in enumerate(of.systems):
        for m, name in enumerate(of.metrics):
            found = estimated[system][Ties(ties)][name]
            rows.append(
                {
                    "qrels": qrels,
                    "metric": name,
                    "system": system,
                    "value": found.value,
                    "lower": found.ci_low,
                    "upper": found.ci_high,
                    "rank": int(of.places[m, s]),
                    "seeds": 1 if np.isnan(found.seeds) else int(found.seeds),
                    "seed_deviation": found.deviation_over_seeds,
                }
            )
    frame = pl.DataFrame(rows).with_columns(pl.col("seed_deviation").fill_nan(None))
    return frame if of.seeded.any() else frame.drop("seeds", "seed_deviation")


def _pairs(
    qrels: str,
    of: Scores,
    metric: str,
    test: str,
    correction: str,
    ci: float,
    draws: int,
    key: np.random.SeedSequence,
) -> pl.DataFrame:
    """Differences of all pairs, with intervals and p-values."""
    with naming({"scores": "`systems`"}):
        found = pairwise(of, metric, test=test, key=key, draws=draws)
    corrected = _CORRECTIONS[correction](found.p)
    lower, upper = difference_intervals(of, metric, level=ci)
    systems = found.systems
    varies = found.deviation > 0
    even, queries = found.effective == found.queries, found.queries
    # Deviation of as many queries of equal weight that have the standard error of the test.
    spread = found.deviation if even else found.error * np.sqrt(queries)
    detectable = np.full(len(varies), np.nan)
    if varies.any():
        # The variance over seeds does not shrink with more queries, so it is multiplied by their number.
        spread = np.sqrt(spread**2 + (queries * found.seed_variance if even else 0.0))
        detectable[varies] = detectable_difference(spread[varies], queries)
    frame = pl.DataFrame(
        {
            "qrels": [qrels] * len(found.p),
            "metric": [metric] * len(found.p),
            "first": [systems[i] for i in found.first],
            "second": [systems[i] for i in found.second],
            "difference": found.difference,
            "lower": lower,
            "upper": upper,
            "p_value": found.p,
            "p_corrected": corrected,
            "detectable": detectable,
            "wins": found.wins,
            "ties": found.queries - found.wins - found.losses,
            "losses": found.losses,
            "effect": np.divide(
                found.difference, found.deviation, out=np.full(len(varies), np.nan), where=varies
            ),
        }
    ).with_columns(pl.col("detectable", "effect").fill_nan(None))
    if test != PairTest.WILCOXON:
        return frame
    tested = even | of.seeded[found.first] | of.seeded[found.second]
    return frame.with_columns(hypothesis=pl.Series(np.where(tested, "metric", "symmetry"), dtype=pl.String))


def _by_metric(pairs: pl.DataFrame, alpha: float) -> pl.DataFrame:
    """Number of significant pairs and detectable difference for each metric."""
    return pairs.group_by("qrels", "metric", maintain_order=True).agg(
        pairs=pl.len(),
        significant=(pl.col("p_corrected") < alpha).sum(),
        area=pl.col("p_value").mean(),
        detectable=pl.col("detectable").median(),
    )


def _agreement_rows(first: str, second: str, found: Agreement) -> list[dict[str, Any]]:
    """One row for each metric and coefficient."""
    return [
        {
            "qrels": second,
            "with": first,
            "metric": metric,
            "coefficient": coefficient,
            "value": found.value[m, c],
            "lower": found.low[m, c],
            "upper": found.high[m, c],
            "confidence_lower": found.tau_low[m] if coefficient == "tau" else None,
            "confidence_upper": found.tau_high[m] if coefficient == "tau" else None,
            "queries": found.shared,
        }
        for m, metric in enumerate(found.metrics)
        for c, coefficient in enumerate(found.coefficients)
    ]


_Pick = Callable[[Mapping[str, Any]], Scores | None]
"""Function from a part of the queries to the scores on it; None if the part is empty."""


def _of_rows(
    tables: Mapping[str, RankTable], chosen: list[Metric], ties: str, part: Mapping[str, Any]
) -> Scores | None:
    """Scores on a part of the rows of every table; None if some table has no row of positive weight there."""
    own = {name: RankTable.trusted(table.frame.filter(**part)) for name, table in tables.items()}
    some = (
        len(of) and ("weight" not in of.frame.columns or (of.frame["weight"] > 0).any())
        for of in own.values()
    )
    return _scores(own, chosen, ties) if all(some) else None


def _of_queries(scores: Scores, part: Mapping[str, Any]) -> Scores | None:
    """Scores on the queries of one part."""
    at = scores.queries.select(
        pl.all_horizontal([pl.col(name) == value for name, value in part.items()]).arg_true()
    ).to_series()
    return scores.of_queries(at.to_numpy())


def _row_keys(sets: list[QrelsRanks], divisions: list[str]) -> pl.DataFrame | None:
    """Parts that occur in some table; None if nothing is divided."""
    if not divisions:
        return None
    for one in sets:
        if lacking := [d for d in divisions for t in one.tables.values() if d not in t.frame.columns]:
            raise ArgumentError("by", f"{lacking[0]} needs `graph`.")
    return pl.concat([t.frame.select(divisions).unique() for one in sets for t in one.tables.values()])


def _query_keys(scores: Scores, divisions: list[str]) -> pl.DataFrame | None:
    """Parts that occur among the queries; None if nothing is divided."""
    return scores.queries.select(divisions) if divisions else None


def _parts(
    picks: Mapping[str, _Pick], keys: pl.DataFrame | None, whole: Scores, divisions: list[str]
) -> pl.DataFrame:
    """Number of queries in each part, and tau between the ranking on it and the ranking on all queries."""
    schema = dict.fromkeys(divisions, pl.String) | {"qrels": pl.String, "metric": pl.String}
    schema |= {"queries": pl.Int64, "tau_with_all": pl.Float64, "tau_with_first_qrels": pl.Float64}
    if keys is None:
        return pl.DataFrame(schema=schema)
    nothing = [float("nan")] * len(whole.metrics)
    rows = []
    for part in keys.unique().sort(divisions).iter_rows(named=True):
        first = None
        for i, (qrels, pick) in enumerate(picks.items()):
            own = pick(part)
            if own is None:
                continue
            first = own if i == 0 else first
            with_all = kendall_tau(whole.strength, own.strength)
            with_first = nothing if first is None else kendall_tau(first.strength, own.strength)
            for m, metric in enumerate(own.metrics):
                numbers = {"tau_with_all": with_all[m], "tau_with_first_qrels": with_first[m]}
                counted = {"qrels": qrels, "metric": metric, "queries": len(own.queries)}
                rows.append({k: str(v) for k, v in part.items()} | counted | numbers)
    return pl.DataFrame(rows, schema=schema).with_columns(cs.float().fill_nan(None))
