"""`owkg.audit`: conclusions from the ranks of several models when true answers are missing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

import numpy as np
import polars as pl

from owkg import checks
from owkg.auditing.assumptions import (
    assumptions,
    beyond_calibration,
    borrowed,
    of_seeds,
    refuted,
    symmetry,
    uneven,
    wide,
)
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
"""Default metrics of an audit."""


_AVERAGES = {"micro": "answers", "macro": "queries", "query-averaged": "queries"}

_QUERY_AVERAGED = (
    "Means over queries are query-averaged metrics: the mean over all answers of a query, then over queries. "
    "They are not macro-mrr and similar metrics, which take the best answer of each query."
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
    """Conclusions from the ranks of several models when many true answers are missing.

    For each pair, the audit reports three things: the observed difference with its test, which ignores
    missing answers; how many missing answers would reverse the order, whichever they are (`breakdown`); and
    the probability that the order is right under the model of Yang et al. (2022), over a range of sparsities
    and correlations.

    Args:
        systems: filtered rank tables by name (polars or pandas frames, or paths of tables or of TREC runs),
            or a list of paths. A system with several seeds (column seed) is one system, ranked by its mean
            over seeds.
        metrics: plain means of weights that fall with the rank, such as mrr, hits@10, p-mrr@1/2. Default: mrr
            and hits@10.
        qrels: relevant answers for TREC runs: a frame, a file, or a split of the graph.
        graph: graph of the ranks. Required for judgements, for lists of rank tables, and for TREC runs that
            do not list every candidate.
        lists: run of each system with its best candidates for each query, by name or as files. With lists,
            owkg searches for sets of missing answers that reverse an order. By default, TREC runs of every
            candidate without a graph are their own lists.
        average: "answers" (micro), "queries", or both. The mean over queries averages each query's mean over
            its answers. This is the query-averaged MRR, not macro-mrr (the best answer of each query).
        sparsity: share of the true answers that the test lacks: a number or (low, high), in [0, 1). By
            default nothing is assumed, and results are given for a grid.
        correlation: correlation between being missing and being retrieved: a number or (low, high). Default:
            estimated from complete judgements with lists, otherwise 0, which verdicts then name as an
            assumption.
        unevenness: how much the missing rates of queries differ: standard deviation of their logits, a number
            or (low, high), at least 0. 0 means that every answer is equally likely to be missing. Rates may
            differ at random, or rise or fall with the number of answers. Default: estimated from complete
            judgements, otherwise 0 to 1.5, the range on which intervals were measured.
        judged: judgements of the test's queries: a frame, a file, the folder of a pool, or several of these.
            With lists, breakdown numbers start from these labels: relevant candidates count as answers, and
            all other judged candidates can never become answers. Their design determines what else they give:
            a lower bound of the sparsity (`missing_share`), used unless `sparsity` is given; or, if they are
            complete, an interval of the sparsity and, with lists, the correlation of each system
            (`judged_strengths`). These narrow the stated ranges; if the two do not overlap, the stated range
            is kept. Sheets are used only as labels if `sparsity` or other judgements are given.
        design: how the judged candidates were chosen, a value of `owkg.pools.design.Design`: one for all, or
            one for each of `judged`. Default: as recorded in the folder of a pool or next to a file; a sheet
            is a sheet, and all others are sampled-pool with `sample` and unknown without.
        sample: test answers that were drawn to have their queries judged: a frame or a file of qrels. By
            default all judged queries have the same weight.
        test: test of the observed difference; paired, two-sided, over queries. Default "randomisation".
        ties: tie rule: optimistic, realistic, pessimistic or exact. Default realistic.
        ci: level of all intervals, and probability from which an order counts as sure. Default 0.95.
        seed: seed of all random draws. Default 0.
        columns, untied, realistic, candidates, ids: as in `owkg.read_ranks`, for all rank tables.
        on_progress: function called with (done, total) steps.

    Returns:
        `Audit`.

    Raises:
        ValueError: naming the argument, or the file and its fault: systems with other queries, filters or
            candidates, lists that lack known answers, a sparsity of 1, ranges without a feasible correlation,
            judgements of other queries.

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
        raise ArgumentError("ties", f"must be one of {', '.join(Ties)}, got {ties!r}.")
    chosen = _decreasing(metrics)
    averages = list(dict.fromkeys(_AVERAGES.get(one, one) for one in checks.names("average", average)))
    if not averages or set(averages) - set(AVERAGES):
        known = "answers (micro) and queries (query-averaged)"
        raise ArgumentError(
            "average", f"must be one or both of {known}, got {', '.join(averages) or 'none'}."
        )
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
        raise ArgumentError(
            "systems", "must rank two queries at least, because a single query shows no variation."
        )
    if isinstance(sample, Mapping):
        sample = qrels_of("sample", sample)
    drawn = sample if sample is None or isinstance(sample, pl.DataFrame) else judgements(sample).qrels
    known = judgements_of(judged, design, drawn, sparsity_stated=stated is not None)
    box, seen = box_of(ready, stated, own, known, drawn, graph, ci)
    if rates is not None:
        told = str(box.source.get("unevenness") or "")
        most = max(max(one.deviation, abs(one.size)) for one in box.unevenness)
        # Complete judgements narrow a stated range that contains their estimate.
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
            parts.append(frames(part, box, start, ci, test, seed))
            beyond += beyond_calibration(part, box, parts[-1]["pairs"]) if metric is chosen[0] else []
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
                *(uneven(of) if "answers" in averages else []),
                *beyond,
                *refuted(whole["models"]),
                *wide(whole["models"]),
            ],
        )
        | {"plan": depth},
    )


def _decreasing(metrics: MetricNames) -> list[Metric]:
    """Metrics by name, which must be plain means of weights that fall with the rank."""
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
    """(low, high) from one number or two."""
    if value is None:
        return None
    given = [x for x in np.ravel(np.asarray(value, object)) if isinstance(x, int | float)]
    if name == "sparsity" and any(1 < x <= 100 for x in given):
        raise ArgumentError(name, f"must be a share, so that 20 % is 0.2, got {max(given):g}.")
    limits = checks.real(name, value, least, most, closed="low" if name == "sparsity" else True)
    if limits.shape not in ((), (2,)):
        raise ArgumentError(name, f"must be a number, or a lower and an upper number, got {value!r}.")
    low, high = (float(x) for x in limits.ravel()[[0, -1]])
    if name == "sparsity" and 0.9999 < high < 1:
        raise ArgumentError(name, f"must be at most 0.9999, got {high!r}.")
    if low > high:
        raise ArgumentError(
            name, f"must have a lower number that is not above the upper one, got {low:g} to {high:g}."
        )
    return low, high
