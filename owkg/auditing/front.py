"""`owkg.audit`: what may be concluded from the ranks of several models when true answers are missing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from owkg import checks
from owkg.auditing.calibration import calibrated, most_missing, worlds
from owkg.auditing.focus import weights_of_pairs
from owkg.auditing.implied import missing_answers
from owkg.auditing.judged import strengths_of
from owkg.auditing.lists import Prepared
from owkg.auditing.numbers import Unevenness, fitted_unevenness
from owkg.auditing.result import JUDGED, Audit
from owkg.auditing.sources import Lists, lists_of, systems_of
from owkg.auditing.tables import (
    AVERAGES,
    GIVEN,
    LARGEST,
    LIMITS,
    Box,
    Part,
    frames,
    metric_part,
    unevenness_points,
)
from owkg.errors import ArgumentError, naming
from owkg.files.storage import versions
from owkg.ir.trec import qrels_of
from owkg.judge.named import is_dictionary
from owkg.judge.qrels import merged
from owkg.judge.scores import Scores, require_placed, scores
from owkg.judge.significance import SYMMETRY, PairTest, other_hypothesis
from owkg.judge.systems import Qrels, System, note, seed_notes
from owkg.keys import checked_key
from owkg.kg import KnowledgeGraph
from owkg.metrics import Metric
from owkg.metrics.front import MetricNames, metrics_named
from owkg.metrics.ties import Ties
from owkg.pools.design import Design
from owkg.pools.missing import design_of, judgements, known_and_found, require_names
from owkg.rank_weights import rank_weight
from owkg.rank_weights.tables import rank_weights
from owkg.ranks import RankTable
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
    known = _judgements(judged, design, drawn, sparsity_stated=stated is not None)
    box, seen = _box(ready, stated, own, known, drawn, graph, ci)
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
            beyond += _beyond(part, box) if metric is chosen[0] else []
            parts.append(frames(part, box, start, ci, test, seed))
            tell(len(parts), len(chosen) * len(averages))
    whole = {name: pl.concat([part[name] for part in parts]) for name in parts[0]}
    weights: list[pl.DataFrame] = []
    for kind in averages:
        order = whole["models"].filter(metric=chosen[0].name, average=kind)["model"]
        required, failed = weights_of_pairs(ready, tuple(order), kind, seed=seed)
        weights.append(required)
        beyond += failed
    return Audit(
        **whole,
        weights=pl.concat(weights),
        judged=seen,
        assumptions=_assumptions(
            of,
            tables,
            box,
            ci,
            rule,
            test,
            start,
            known,
            [
                *_of_seeds(of),
                *_symmetry(of, averages, test),
                *([_QUERY_AVERAGED] if "queries" in averages else []),
                *_borrowed(chosen),
                *beyond,
                *_refuted(whole["models"]),
            ],
        ),
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


class _Judged(NamedTuple):
    """Judgements.

    Attributes:
        labels: of all sources together; None without any.
        sample: those that sparsity and correlations are estimated from; None where there are none such.
        design: of the latter.
    """

    labels: pl.DataFrame | None = None
    sample: pl.DataFrame | None = None
    design: Design = Design.UNKNOWN


# What is estimated from which sources: the first of these that there are.
_FIRST = (
    (Design.COMPLETE,),
    (Design.SAMPLED_POOL,),
    (Design.SAMPLED_BUDGET,),
    (Design.POOL, Design.BUDGET, Design.UNKNOWN),
    (Design.SHEET,),
)


def _judgements(judged: Any, design: Any, sample: pl.DataFrame | None, *, sparsity_stated: bool) -> _Judged:
    """The judgements of all sources.

    The candidates of a sheet may be those that turn an order, which are not a sample. So sheets in addition
    to other judgements, or to a stated sparsity, give labels alone.
    """
    if judged is None:
        for name, value in (("sample", sample), ("design", design)):
            if value is not None:
                raise ArgumentError(name, "is of judgements, and there are none.")
        return _Judged()
    judged = qrels_of("judged", judged) if is_dictionary(judged) else judged
    one = isinstance(judged, pl.DataFrame | str | PathLike)
    if not one and (not isinstance(judged, Iterable) or isinstance(judged, Mapping)):
        raise ArgumentError("judged", f"must be judgements, or several of them, got {judged!r}.")
    sources = [judged] if one else list(judged)
    if not sources:
        raise ArgumentError("judged", "must be judgements, or several of them, got none.")
    named = [design] * len(sources) if design is None or isinstance(design, str) else list(design)
    if len(named) == 1:
        named *= len(sources)
    if len(named) != len(sources):
        text = f"must be one for all judgements or one for each of {len(sources)}, got {len(named)}."
        raise ArgumentError("design", text)
    read: list[tuple[str, pl.DataFrame, Design]] = []
    for source, how in zip(sources, named, strict=True):
        if isinstance(source, pl.DataFrame):
            read.append(("a frame", source, design_of(how, source, sample)))
        elif isinstance(source, str | PathLike) and str(source):
            found = judgements(source, how)
            drawn = None if found.design is Design.SHEET else sample
            read.append((str(source), found.qrels, design_of(found.design, found.qrels, drawn)))
        else:
            raise ArgumentError("judged", f"must be frames or paths of judgements, got {source!r}.")
    best = next(group for group in _FIRST if any(how in group for *_, how in read))
    samples = [entry for entry in read if entry[2] in best]
    if best == (Design.SHEET,) and sparsity_stated:
        return _Judged(_merged(read), None, Design.SHEET)
    designs = {how for *_, how in samples}
    how = designs.pop() if len(designs) == 1 else Design.UNKNOWN
    whole = _merged(samples)
    return _Judged(_merged(read), whole, how.of(whole))


def _merged(read: Sequence[tuple[str, pl.DataFrame, Design]]) -> pl.DataFrame:
    """The judgements of all, which must not contradict each other."""
    found = read[0][1]
    for i, (name, frame, _) in enumerate(read[1:], 1):
        before = ", ".join(dict.fromkeys(name for name, *_ in read[:i]))
        with naming({"first": before, "second": name}, "`judged`: "):
            found = merged(found, frame)
    return found


def _box(
    ready: Prepared,
    sparsity: tuple[float, float] | None,
    correlation: tuple[float, float] | None,
    judged: _Judged,
    sample: pl.DataFrame | None,
    graph: KnowledgeGraph | None,
    ci: float,
) -> tuple[Box, pl.DataFrame]:
    """What is stated, or else what judgements show; and the latter."""
    own = None if correlation is None else dict.fromkeys(ready.systems, correlation)
    source = {"sparsity": GIVEN if sparsity else None, "correlation": GIVEN if own else None}
    if judged.labels is not None and graph is None:
        raise ArgumentError("graph", "must be given with judgements: it says which answers are known.")
    if judged.labels is not None and graph is not None:
        with naming(lambda _: "`judged`"):
            require_names(judged.labels, graph)
        if not judged.labels["query"].is_in(ready.queries["query"].implode()).any():
            raise ArgumentError("judged", "must judge queries that the systems answer, got none such.")
    if judged.sample is None or graph is None:
        return Box(sparsity, own, source), pl.DataFrame(schema=JUDGED)
    how = design_of(judged.design, judged.sample, sample)
    options: Any = {"ci": ci, "sample": sample, "design": how}
    groups = ((), ("side", "category"))
    with naming({"qrels": "`judged`"}):
        seen = pl.concat([strengths_of(ready, judged.sample, graph, by=by, **options) for by in groups])
    whole = seen.filter(pl.col("side").is_null())
    share, low, high = whole.select("sparsity", "sparsity_low", "sparsity_high").row(0)
    bound = None
    if how.estimates:
        sparsity, source["sparsity"] = _both(sparsity, (low, high), how)
    elif sparsity is None:
        bound = share if low is None else low, min(share, _MOST)
        source["sparsity"] = _from(how)
    if max((sparsity or (0.0,))[-1], (bound or (0.0,))[0]) >= 1:
        least = (sparsity or bound or (1.0,))[0]
        raise ArgumentError(
            "judged", f"must leave known answers: it gives a sparsity of {least:.3f} to 1. State `sparsity`."
        )
    if how.estimates and ready.depth is not None:
        limits = whole.select("model", "correlation_low", "correlation_high")
        if limits["correlation_low"].is_not_null().any():
            # A system that finds all or nothing has no correlation: any is the same.
            rows = limits.fill_null(0.0).rows()
            both = {name: _both(correlation, (low, high), how) for name, low, high in rows}
            own = {name: limits for name, (limits, _) in both.items()}
            # "given" as long as no range is narrowed.
            source["correlation"] = max((told for _, told in both.values()), key=len)
    box = Box(sparsity, own, source, bound, limit=share if low is None else low)
    if how.estimates:
        told = _unevenness(ready, judged.sample, graph, options)
        if told is not None:
            box = box._replace(unevenness=told, source=source | {"unevenness": _from(how)})
    return box, seen


def _unevenness(
    ready: Prepared, qrels: pl.DataFrame, graph: KnowledgeGraph, options: dict[str, Any]
) -> tuple[Unevenness, ...] | None:
    """How much missing rates differ, by queries that are judged completely; None where these are few."""
    of = {name: options[name] for name in ("sample", "design")}
    kept, found, _ = known_and_found(qrels, graph, split=ready.split or "test", level=1, **of)
    counts = kept.group_by("query").agg(known=pl.len())
    counts = counts.join(found.group_by("query").agg(missing=pl.len()), on="query", how="left")
    counts = counts.join(ready.queries.select("query"), on="query", how="semi").fill_null(0)
    if len(counts) < _FEWEST:
        return None
    missing = counts["missing"].to_numpy().astype(np.int64)
    return fitted_unevenness(missing, missing + counts["known"].to_numpy().astype(np.int64), options["ci"])


# Judged queries from which on the unevenness of missing rates is fitted.
_FEWEST = 50


def _both(
    stated: tuple[float, float] | None, estimated: tuple[float, float], design: Design
) -> tuple[tuple[float, float], str]:
    """The part of a stated range that an estimate leaves, and where it is from.

    What is stated stands where the two exclude each other.
    """
    if stated is None:
        return estimated, _from(design)
    low, high = max(stated[0], estimated[0]), min(stated[1], estimated[1])
    if low > high or (low, high) == stated:
        return stated, GIVEN
    return (low, high), f"{GIVEN}, and {_from(design)}"


# A found share at which something is still known.
_MOST = 0.999


def _from(design: Design) -> str:
    """Where a sparsity that was not stated is from."""
    return f"judgements of {design.in_words}" if design is not Design.UNKNOWN else design.in_words


_INDEPENDENT = "nothing: 0 is taken"
_RANGE = "not stated: the range on which intervals were measured"


def _assumptions(
    of: Scores,
    tables: Mapping[str, RankTable],
    box: Box,
    ci: float,
    rule: str,
    test: str,
    ready: Prepared,
    judged: _Judged,
    further: list[str],
) -> dict[str, Any]:
    """What the numbers rest on."""
    frame = next(iter(tables.values())).frame
    low, high = frame["candidates"].min(), frame["candidates"].max()
    rates = [max(one.deviation, abs(one.size)) for one in box.unevenness]
    ranges = None if box.correlation is None else [list(limits) for limits in box.correlation.values()]
    one = ranges is not None and all(limits == ranges[0] for limits in ranges)
    return {
        "sparsity": box.sparsity and list(box.sparsity),
        "sparsity_at_least": box.found and box.found[0],
        "correlation": ranges
        and (ranges[0] if one else dict(zip(box.correlation or (), ranges, strict=True))),
        "sparsity_from": box.source["sparsity"],
        "correlation_from": box.source["correlation"] or _INDEPENDENT,
        "unevenness": [min(rates), max(rates)],
        "unevenness_from": box.source.get("unevenness") or _RANGE,
        "design": None if judged.sample is None else str(judged.design),
        "level": ci,
        "test": test,
        "ties": str(rule),
        "filtered": bool(frame["filtered"].all()) if "filtered" in frame.columns else True,
        "candidates": [low, high],
        "queries": len(of.queries),
        "answers": len(frame) // max(ready.seeds(next(iter(tables))), 1),
        "lists": ready.depth,
        "judged_labels": [ready.num_found, ready.num_rejected]
        if ready.num_found + ready.num_rejected
        else None,
        "calibration": worlds(),
        "versions": versions(),
        "notes": [*_notes(box, ready, judged), *_of_candidates(frame["candidates"]), *further],
    }


def _of_candidates(candidates: pl.Series) -> list[str]:
    """A sentence where queries have so different numbers of candidates that the model of all alike is off."""
    few, many = (candidates.quantile(q, "nearest") or 0 for q in (0.1, 0.9))
    if 2 * few >= many:
        return []
    return [
        f"The model takes as many candidates for every query, and here they are {few:,.0f} to {many:,.0f} "
        "(of eight tenths of the answers): implied full-test metrics and probabilities of orders are rough. "
        "Observed values, their intervals and breakdown numbers are not concerned."
    ]


def _of_seeds(of: Scores) -> list[str]:
    """Sentences on systems with several seeds."""
    if not of.seeded.any():
        return []
    each = [of.by_seed(m) for m in range(len(of.metrics))]
    said = []
    for s, (name, one) in enumerate(zip(of.systems, of.seeds, strict=True)):
        own = [values[s] for values in each]
        deviations = [
            f"{metric} {values.std(ddof=1):.4f}"
            for metric, values in zip(of.metrics, own, strict=True)
            if values is not None
        ]
        said += [f"{name} has {len(one.seeds)} (deviation of {', '.join(deviations)})"] if one else []
    return [
        f"Seeds: {'; '.join(said)}. Values are means over seeds; intervals, p-values and probabilities of "
        "orders are over queries and seeds, by Student's t. Certified numbers are of the mean over seeds; "
        "none is demonstrated, and no weights are compared, because these are of one run."
    ]


def _borrowed(metrics: list[Metric]) -> list[str]:
    """A sentence where metrics have the errors of others."""
    ranks = np.arange(1, 100)
    weights = {one.name: rank_weights(one.rank_weight, ranks) for one in metrics if one.rank_weight}
    others = [
        f"{name}: {of}"
        for name, own in weights.items()
        if not np.array_equal(rank_weights(rank_weight(of := calibrated(name)), ranks), own)
    ]
    if not others:
        return []
    return [
        "Metrics that were not calibrated have the errors of the most similar one that was: "
        f"{', '.join(others)}."
    ]


def _beyond(part: Part, box: Box) -> list[str]:
    """A sentence where queries miss more answers than on any world of the calibration."""
    most = most_missing(part.metric.name)
    # As many are missing as known ones count at a sparsity of one half.
    last = most / (most + missing_answers(part.seen.answers, 0.5))
    if last >= max(LARGEST, box.sparsity[1] if box.sparsity else 0.0):
        return []
    return [
        f"Above a sparsity of {last:.2f} the error of the model is extrapolated (means over {part.average}): "
        "queries would miss more answers on average than on any closed world of the calibration."
    ]


def _refuted(models: pl.DataFrame) -> list[str]:
    """In sentences, which values the range does not allow."""
    some = models.filter(pl.col("refuted") > 0)
    return [
        f"A {metric} of {value:.3f} ({model}) is not possible in {share:.0%} of the range; that part is "
        "left out."
        for model, metric, value, share in some.select("model", "metric", "value", "refuted").rows()
    ]


def _symmetry(of: Scores, averages: Sequence[str], test: str) -> list[str]:
    """What Wilcoxon's test says of means over answers."""
    named = other_hypothesis(of) if test == PairTest.WILCOXON and "answers" in averages else []
    return [SYMMETRY.format(", ".join(named))] if named else []


def _rates(box: Box) -> str:
    """What is taken of the missing rates of queries, as a sentence."""
    source = box.source.get("unevenness")
    if source not in (None, GIVEN):  # fitted, whether a range that holds it was stated or not
        one = box.unevenness[0]
        return (
            "The missing rates of queries differ as complete judgements show: their logits have a standard "
            f"deviation of {one.deviation:.2f} over queries, and of {one.size:.2f} with the number of "
            "answers. Intervals include the errors of both."
        )
    most = max(max(one.deviation, abs(one.size)) for one in box.unevenness)
    if most == 0:
        return "All queries have one missing rate, as you state."
    least = min(max(one.deviation, abs(one.size)) for one in box.unevenness)
    ends = f"{least:g} to {most:g}" if least < most else f"{most:g}"
    stated = "as you state" if source == GIVEN else "because none is stated"
    return (
        f"The missing rates of queries may differ by a standard deviation of their logits of {ends}, "
        f"{stated}: at random, or with the number of answers. Full-test intervals and probabilities of "
        "orders are over that range; the map and what makes both metrics equal are at its middle."
    )


def _notes(box: Box, ready: Prepared, judged: _Judged) -> list[str]:
    """In sentences, what the numbers rest on."""
    found = ["Queries are the sampling unit of every interval and test."]
    if box.found is not None:
        found.append(
            f"Judging ({judged.design.in_words}) shows a sparsity of at least {box.found[0]:.3f} "
            "and gives no upper end: no full-test metric is claimed. State a sparsity for more, or judge a "
            "random sample of queries completely."
        )
    elif box.sparsity is None:
        found.append(
            "No sparsity is stated: no full-test metric is claimed. What each would imply, and what breaks "
            "an order, rest on the model of Yang et al. (2022) and errors calibrated on closed worlds."
        )
    else:
        found.append(
            "Full-test metrics rest on the model of Yang et al. (2022), errors calibrated on closed worlds, "
            "and the sparsity, a share of the answers to the queries of the test. Systems share "
            "errors of the model: an order may be sure where intervals overlap."
        )
    found.append(
        f"What breaks an order is looked for up to a sparsity of {LIMITS[0]:g} and a correlation of "
        f"{LIMITS[1]:g} either way."
    )
    if box.correlation is None:
        found.append("No correlation is stated: being missing and being found are taken as independent.")
    elif any(low != 0 or high != 0 for low, high in box.correlation.values()):
        found.append(
            "With a correlation, answers that are missing stand among the known ones by proportional odds "
            "(docs/audit.md); in Yang et al. the found ones stand in any order."
        )
    found.append(_rates(box))
    if box.source["sparsity"] not in (None, GIVEN) and box.found is None:
        found.append(
            "The sparsity is estimated from queries that stand for all: a random sample of the test's, of "
            "which every candidate was judged, as you state."
        )
    if judged.sample is not None and not judged.design.estimates and box.correlation is None:
        found.append(
            "The judged candidates were chosen by ranks of systems, or nobody says how: they give no "
            "correlation."
        )
    if ready.num_found + ready.num_rejected:
        found.append(
            "Breakdown numbers start from the judged labels. Answers that judging found: "
            f"{ready.num_found:,}; candidates that can never become any: {ready.num_rejected:,}. Values and "
            "tests are of the test as it is."
        )
    if ready.num_disputed:
        found.append(
            f"Known answers that were judged not relevant: {ready.num_disputed:,}. They stay in values, "
            "tests and breakdown numbers."
        )
    if judged.labels is not None and ready.depth is None:
        found.append("Without lists the judged labels do not change breakdown numbers.")
    if judged.labels is not None and judged.sample is None:
        found.append(
            "The judgements are sheets, and give labels alone: their candidates were chosen, and are not a "
            "random sample from which sparsity or correlations could be estimated."
        )
    if str(box.source["sparsity"]).startswith(GIVEN) and box.sparsity is not None:
        known = ready.num_answers - ready.num_found
        if box.num_found > known * box.sparsity[1] / (1 - box.sparsity[1]):
            found.append(f"Judging found more answers ({box.num_found:,}) than the stated sparsity allows.")
        elif box.limit > box.sparsity[1]:
            found.append(
                f"The stated sparsity of at most {box.sparsity[1]:.3g} stands, although judging "
                f"({judged.design.in_words}) shows at least {box.limit:.3f}."
            )
    if ready.depth is None:
        found.append(
            "There are no lists: breakdown numbers are certified for the worst lists, none is demonstrated."
        )
    return found
