"""`owkg.audit`: what may be concluded from the ranks of several models when true answers are missing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

import polars as pl

from owkg import checks
from owkg.auditing.assumptions import assumptions, beyond_calibration, borrowed, of_seeds, refuted, symmetry
from owkg.auditing.box import box_of, judgements_of
from owkg.auditing.focus import weights_of_pairs
from owkg.auditing.lists import Prepared
from owkg.auditing.plans import judging_plans
from owkg.auditing.result import PLANS, Audit
from owkg.auditing.sources import Lists, lists_of, systems_of
from owkg.auditing.tables import AVERAGES, GIVEN, frames, metric_part, unevenness_points
from owkg.errors import ArgumentError
from owkg.ir.trec import qrels_of
from owkg.judge.scores import require_placed, scores
from owkg.judge.systems import Qrels, System, note, seed_notes
from owkg.keys import checked_key
from owkg.kg import KnowledgeGraph
from owkg.metrics import Metric
from owkg.metrics.front import MetricNames, metrics_named
from owkg.metrics.ties import Ties
from owkg.pools.missing import judgements
from owkg.ranks.reading import TableReading

DEFAULT = ("mrr", "hits@10")
"""The metrics of an audit that names none."""


_AVERAGES = {"micro": "answers", "macro": "queries", "query-averaged": "queries"}

_QUERY_AVERAGED = (
    "Means over queries are query-averaged metrics: the mean over all answers of a query, then over queries. "
    "They are not macro-mrr and its like, which take the best answer of each query."
)


def audit(
    systems: Mapping[str, System] | Iterable[str | PathLike[str]],
    metrics: MetricNames = DEFAULT,
    *,
    qrels: Qrels | None = None,
    graph: KnowledgeGraph | None = None,
    lists: Lists | None = None,
    average: str | Sequence[str] = "answers",
    sparsity: Any = None,
    correlation: Any = None,
    unevenness: Any = None,
    judged: Qrels | Sequence[Qrels] | None = None,
    design: str | Sequence[str] | None = None,
    sample: Qrels | None = None,
    test: Literal["randomisation", "t", "wilcoxon"] = "randomisation",
    ties: str | None = None,
    ci: float = 0.95,
    seed: int = 0,
    columns: Mapping[str, str] | None = None,
    untied: bool = False,
    realistic: bool = False,
    candidates: int | None = None,
    ids: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """What may be concluded from the ranks of models, when many true answers are missing.

    Three things of each pair, which assume more and more: how many missing answers turn the order, whatever
    they are (`breakdown`); how likely the order is the right one under the model of Yang et al. (2022), over
    a box of sparsities and correlations; and what the test set says without a thought of missing answers.

    Args:
        systems: filtered rank tables, frames of polars or pandas, or paths of tables or of TREC runs, by
            name; or paths. A system with several seeds (column seed) is one system: the order is that of the
            means over seeds.
        metrics: plain means of weights that fall with the rank, such as mrr, hits@10, p-mrr@1/2.
        qrels: which answers are relevant, for TREC runs; a frame, a file, or a split of the graph.
        graph: of the ranks: needed for judgements, for lists of rank tables, and for TREC runs that do not
            list every candidate.
        lists: a run of each system, by name or as files: its best candidates to each query. With them
            labellings that turn an order are demonstrated. Systems that are TREC runs of every candidate,
            without a graph, are their own lists by default.
        average: answers (micro), queries, or both. The mean over queries is of the mean over the answers of
            each: the query-averaged MRR, which is not macro-mrr (the best answer of each query).
        sparsity: share of the true answers that the test lacks: a number or (low, high), in [0, 1). None:
            nothing is assumed, and results are given for a grid.
        correlation: of being missing and being found: a number or (low, high). None: what complete judgements
            and lists say, or else 0, and verdicts name that.
        unevenness: how much the missing rates of queries differ: standard deviation of their logits, a number
            or (low, high), at least 0. 0 says that every answer is equally likely to be missing. Rates may
            differ at random, or rise or fall with the number of answers. None: what complete judgements say,
            or else 0 to 1.5, the range on which intervals were measured.
        judged: judgements of the test's queries: a frame, a file, or the folder of a pool; or several. With
            lists they are labels to start breakdown numbers from: candidates that are relevant count as
            answers, others can never become any. What else they say depends on their design: a lower bound of
            the sparsity (`missing_share`), which counts unless `sparsity` is given; or for complete ones an
            interval, and with lists the correlation of each system (`judged_strengths`). These narrow the
            ranges that are given, unless they exclude each other: then what is given stands. A sheet in
            addition to `sparsity`, or to other judgements, gives labels alone.
        design: how the judged candidates were chosen, of `owkg.pools.design.Design`; one for all, or one for
            each of `judged`. None: as it is written in the folder of a pool or next to a file; a sheet is a
            sheet, others are sampled-pool with `sample` and otherwise unknown.
        sample: the test answers that were drawn to have their queries judged: a frame or a file of qrels.
            None: all queries that are judged count alike.
        test: of the observed difference; paired, two-sided, over queries.
        ties: optimistic, realistic, pessimistic or exact. None: realistic.
        ci: level of all intervals, and probability from which an order counts as sure.
        seed: of what is drawn.
        columns, untied, realistic, candidates, ids: of `owkg.read_ranks`, for all rank tables.
        on_progress: called with (done, total) steps.

    Returns:
        `Audit`.

    Raises:
        ValueError: naming the argument, or the file and what is wrong with it: systems of other queries,
            filters or candidates, lists that lack known answers, a sparsity of 1, a box without any feasible
            correlation, judgements of other queries.

    Examples:
        >>> row = {"relation": "r", "tail": "t", "side": "tail", "candidates": 99}
        >>> of = lambda ranks: pl.DataFrame(
        ...     [
        ...         row | {"head": f"h{i}", "optimistic": r, "pessimistic": r}
        ...         for i, r in enumerate(ranks)
        ...     ]
        ... )
        >>> found = audit({"a": of([1, 1, 2] * 20), "b": of([4, 9, 1] * 20)}, "mrr", sparsity=(0.2, 0.5))
        >>> found.pairs["verdict"].to_list()
        ['holds if missing and retrieved are independent']
    """
    checks.level("ci", ci)
    checked_key(seed, "seed")
    if on_progress is not None and not callable(on_progress):
        raise ArgumentError("on_progress", f"must be a function of (done, total), got {on_progress!r}.")
    if ties is not None and ties not in tuple(Ties):
        raise ArgumentError("ties", f"must be of {', '.join(Ties)}, got {ties!r}.")
    chosen = _decreasing(metrics)
    averages = list(dict.fromkeys(_AVERAGES.get(one, one) for one in checks.names("average", average)))
    if not averages or set(averages) - set(AVERAGES):
        known = "answers (micro) and queries (query-averaged)"
        raise ArgumentError("average", f"must be of {known}, got {', '.join(averages) or 'none'}.")
    stated = _limits("sparsity", sparsity, 0.0, 1.0)
    own = _limits("correlation", correlation, -1.0, 1.0)
    rates = _limits("unevenness", unevenness, 0.0, 3.0)
    reading = TableReading(columns or {}, untied, realistic, candidates, ids)
    tables, rule, whole_runs = systems_of(systems, qrels, graph, ties, reading)
    if len(tables) < 2:
        raise ArgumentError("systems", f"must hold at least two systems, got {len(tables)}.")
    require_placed(tables, chosen, ties)
    runs, placed = (whole_runs, "") if lists is None else lists_of(lists, tuple(tables))
    try:
        ready = Prepared(tables, graph, runs, rule, all_ranked=whole_runs is not None)
    except ArgumentError as error:
        if error.name.partition(", seed ")[0] not in tables:
            raise
        text = f"must rank the same answers among the same candidates: {error.name!r} {error.message}"
        raise ArgumentError("systems", text) from None
    if placed:
        note(placed)
    if len(ready.queries) < 2:
        raise ArgumentError("systems", "must rank two queries at least: of one, nothing varies.")
    if isinstance(sample, Mapping):
        sample = qrels_of("sample", sample)
    drawn = sample if sample is None or isinstance(sample, pl.DataFrame) else judgements(sample).qrels
    known = judgements_of(judged, design, drawn, sparsity_stated=stated is not None)
    box, seen = box_of(ready, stated, own, known, drawn, graph, ci)
    if rates is not None:
        told = str(box.source.get("unevenness") or "")
        most = max(max(one.deviation, abs(one.size)) for one in box.unevenness)
        # What complete judgements show narrows a stated range that holds it.
        if told and rates[0] == 0 and most <= rates[1]:
            source = f"{GIVEN}, and {told}"
        else:
            box, source = box._replace(unevenness=unevenness_points(*rates)), GIVEN
        box = box._replace(source=box.source | {"unevenness": source})
    start = ready if known.labels is None or ready.depth is None else ready.labelled(known.labels)
    if known.labels is not None and graph is not None:
        found = ready.found(known.labels, graph) if ready.depth is None else start.num_found
        box = box._replace(num_found=found)
    of = scores(tables, chosen, ties=rule)[0]
    seed_notes(of)
    tell = on_progress or (lambda done, total: None)
    parts: list[dict[str, pl.DataFrame]] = []
    beyond: list[str] = []
    for kind in averages:
        for metric in chosen:
            part = metric_part(of, metric, kind, tables)
            beyond += beyond_calibration(part, box) if metric is chosen[0] else []
            parts.append(frames(part, box, start, ci, test, seed))
            tell(len(parts), len(chosen) * len(averages))
    whole = {name: pl.concat([part[name] for part in parts]) for name in parts[0]}
    weights: list[pl.DataFrame] = []
    for kind in averages:
        order = whole["models"].filter(metric=chosen[0].name, average=kind)["model"]
        required, failed = weights_of_pairs(ready, tuple(order), kind, seed=seed)
        weights.append(required)
        beyond += failed
    plans, depth = pl.DataFrame(schema=PLANS), None
    if runs is not None and graph is not None:
        names = [one.name for one in chosen] if "answers" in averages else []
        plans, depth = judging_plans(ready, runs, graph, known.labels, names, ci)
    return Audit(
        **whole,
        weights=pl.concat(weights),
        judged=seen,
        plans=plans,
        assumptions=assumptions(
            of,
            tables,
            box,
            ci,
            rule,
            test,
            start,
            known,
            [
                *of_seeds(of),
                *symmetry(of, averages, test),
                *([_QUERY_AVERAGED] if "queries" in averages else []),
                *borrowed(chosen),
                *beyond,
                *refuted(whole["models"]),
            ],
        )
        | {"plan": depth},
    )


def _decreasing(metrics: MetricNames) -> list[Metric]:
    """The metrics, plain means of weights that fall with the rank."""
    chosen = metrics_named(metrics) or []
    for one in chosen:
        if not one.falls_with_rank:
            of = one.name.removeprefix("macro-")
            other = f"; `average` queries gives the query-averaged {of}, of all answers, not of the best one"
            hint = other if of != one.name else ""
            raise ArgumentError(
                "metrics",
                f"must be plain means of weights that fall with the rank, such as mrr and hits@10, got "
                f"{one.name}{hint}.",
            )
    return chosen


def _limits(name: str, value: Any, least: float, most: float) -> tuple[float, float] | None:
    """(low, high) of a number or of two."""
    if value is None:
        return None
    limits = checks.real(name, value, least, most, closed="low" if name == "sparsity" else True)
    if limits.shape not in ((), (2,)):
        raise ArgumentError(name, f"must be a number, or a lower and an upper one, got {value!r}.")
    low, high = (float(x) for x in limits.ravel()[[0, -1]])
    if name == "sparsity" and 0.9999 < high < 1:
        raise ArgumentError(name, f"must be at most 0.9999, got {high!r}.")
    if low > high:
        raise ArgumentError(name, f"must be an interval that is not empty, got {low:g} to {high:g}.")
    return low, high
