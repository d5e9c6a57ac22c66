"""Metrics of the completely judged pool, estimated from judgements that were drawn by a design."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Bool, Float, Int
from scipy import special

from owkg import checks
from owkg.errors import ArgumentError
from owkg.estimation.annotators import ErrorRates, corrected, rate_variance, require_correctable
from owkg.estimation.betting import exact_of_queries
from owkg.estimation.candidates import Sums, contributions, few_limits, limits, of_candidates
from owkg.estimation.drawing import Drawing, Unit
from owkg.estimation.looks import look_levels
from owkg.estimation.measures import Measure, Needs, measures, values
from owkg.estimation.population import UNKNOWN, Population
from owkg.estimation.prefixes import reach
from owkg.estimation.proxy import Probabilities, proxy_of, refitted
from owkg.estimation.regression import Fitted, Sample, fitted, t_quantile
from owkg.estimation.targets import Limits, contrasts, means, of_prefix_queries, of_queries, prepared, truths
from owkg.judge.qrels import judgements_checked
from owkg.judge.schema import QRELS

LEAST_QUERIES = 10
"""Judged queries without which nothing is estimated."""
FEW_QUERIES = 20
"""Judged queries below which no regression is used, and no micro metric is estimated."""
SURE_QUERIES = 50
"""Judged units below which a note says that single intervals may cover less than their level."""
REFIT = 30
"""Judged queries from which the free proxy is fitted again to what annotators said."""
OWN = 50
"""Judged queries from which the values by known answers alone are one more covariate."""

_METRICS = {
    "model": pl.String, "metric": pl.String, "value": pl.Float64, "ci_low": pl.Float64, "ci_high": pl.Float64,
    "method": pl.String, "r": pl.Float64, "least": pl.Float64, "most": pl.Float64, "judgements": pl.Int64,
    "equivalent_judgements": pl.Int64,
}  # fmt: skip
_DIFFERENCES = {
    "first": pl.String, "second": pl.String, "metric": pl.String, "value": pl.Float64, "ci_low": pl.Float64,
    "ci_high": pl.Float64, "p_value": pl.Float64, "method": pl.String,
}  # fmt: skip


class DrawnPool(NamedTuple):
    """A pool whose judgements are drawn by a design.

    Attributes:
        people: the population; its lists reach below the pool where the design draws there.
        drawing: the design and its draws.
        proxy: probabilities of the candidates, as they were when the draw was made.
        known: judgements that stood before the draw.
        depth: of the pool that metrics are of.
    """

    people: Population
    drawing: Drawing
    proxy: Probabilities
    known: pl.DataFrame
    depth: int

    def more(self, count: int) -> "DrawnPool":
        """The pool with so many further units, drawn by the same design; what was drawn stays.

        Raises:
            ValueError: naming `more`, if `count` is below 1 or nothing is left to draw.
        """
        return self._replace(drawing=self.drawing.more(count))


class Missing(NamedTuple):
    """The share of the true answers that is not known, beta.

    Attributes:
        value, low, high: estimate and interval.
        scope: which answers are counted, in words.
        found: missing answers, estimated; with an interval.
        known: known answers.
    """

    value: float | None
    low: float
    high: float
    scope: str
    found: tuple[float, float, float]
    known: int


class Estimate(NamedTuple):
    """What drawn judgements say of the completely judged pool.

    Attributes:
        target: what the values are of, in words.
        design: what was drawn, in words.
        metrics: a row a system and metric: model, metric, value, ci_low, ci_high, method, r, least and most
            (what the unknown labels leave), judgements, equivalent_judgements (of a plain sample of queries).
        differences: a row a pair and metric: first, second, metric, value, ci_low, ci_high, p_value, method.
        missing: the share of missing answers; None where the design does not answer it.
        judged: drawn units that are judged.
        unjudged: drawn units that are not.
        notes: what to know before using the values.
    """

    target: str
    design: str
    metrics: pl.DataFrame
    differences: pl.DataFrame
    missing: Missing | None
    judged: int
    unjudged: int
    notes: list[str]


def estimate(
    drawn: DrawnPool,
    judged: pl.DataFrame,
    metrics: str | Iterable[str] | None = None,
    *,
    compare: bool = True,
    proxies: Mapping[str, pl.DataFrame] | None = None,
    errors: ErrorRates | None = None,
    exact: bool = False,
    looks: Sequence[int] | None = None,
    ci: float = 0.95,
    of_these: bool = True,
) -> Estimate:
    """Metrics of all systems as if the whole pool were judged, from the judgements of a design.

    Args:
        drawn: the pool with its design.
        judged: judgements of what was drawn; a relevance above 0 is relevant, -1 not judged.
        metrics: names as of `owkg.estimation.measures.measure`; None: those that the design answers.
        compare: whether the differences of all pairs are estimated.
        proxies: further probabilities of the candidates by name, columns query, answer, probability.
        errors: how often annotators err; None: never. Labels are corrected by it, so that values stay
            unbiased.
        exact: whether limits are exact for any number of queries, and wider. So they are for less than 20.
        looks: numbers of units after which estimates are looked at, as planned before the first; the last one
            is the whole draw. None: there is one look. Intervals of all looks together hold at the level.
        ci: level of the intervals.
        of_these: whether the queries of the runs are meant, rather than queries like them.

    Raises:
        ValueError: if a judgement is outside the draw, a metric is not answered by the design, a drawn unit
            is skipped, or too few are judged.

    References:
        Särndal, Swensson, Wretman (1992), "Model assisted survey sampling", chapter 6; Angelopoulos et al.
        (Science 382, 2023), "Prediction-powered inference".
    """
    checks.level("ci", ci)
    people, drawing = drawn.people, drawn.drawing
    labels = labels_of(drawn, judged)
    units, unjudged = judged_units(drawing, people, labels)
    chosen = _chosen(drawn, metrics)
    others = [proxy_of(people, frame, name) for name, frame in (proxies or {}).items()]
    _require_enough(drawing, units, chosen)
    level = ci if looks is None else _level_of_look(looks, len(units), drawing, ci)
    few = drawing.unit.of_queries and len(units) < FEW_QUERIES and len(drawing.sizes) == 1
    exact = exact or (few and drawing.unit is Unit.QUERIES)
    covariates = [drawn.proxy, *others]
    several = looks is not None and len(looks) > 1
    state = _State(drawn, labels, units, covariates, level, compare, of_these, errors, exact, several)
    _require_possible(state, chosen)
    notes = _notes(drawing.unit, len(units), unjudged, chosen, drawn)
    if looks is None and (unjudged or len(drawing.batches) > 1):
        notes.append(
            "intervals hold at one look: if you also looked earlier, or will look again, plan all looks "
            "(`looks`)."
        )
    if compare and len(people.models) > 2 and chosen and not several:
        notes.append("each p-value is of its pair alone: it is not corrected for the number of pairs.")
    found = [(one, _FOUND[drawing.unit](state, one)) for one in chosen]
    rows, pairs = _tables(state, found)
    return Estimate(
        f"the pool of depth {drawn.depth}"
        + (f" and what is below it, to depth {people.depth}" if drawing.unit is Unit.BELOW else ""),
        f"{len(units):,} of {drawing.counts.sum():,} drawn {drawing.unit} judged, of {len(drawing.frame):,}",
        pl.DataFrame(rows, _METRICS, orient="row"),
        pl.DataFrame(pairs, _DIFFERENCES, orient="row"),
        _missing(state),
        len(units),
        unjudged,
        notes,
    )


def labels_of(drawn: DrawnPool, judged: pl.DataFrame) -> Int[np.ndarray, "candidates"]:
    """What is known of each candidate once judgements are in: 1, 0 or `UNKNOWN`.

    Raises:
        ValueError: naming `judged`, if one is of no candidate that was drawn.
    """
    people, drawing = drawn.people, drawn.drawing
    frame = judgements_checked("judged", judged).filter(pl.col("relevance") >= 0)
    pair = ["query", "answer"]
    before = drawn.known.filter(pl.col("relevance") >= 0).select(*pair, before="relevance")
    frame = frame.join(before, on=pair, how="left", maintain_order="left")
    torn = frame.filter((pl.col("before") > 0) != (pl.col("relevance") > 0))
    if len(torn):
        row = torn.row(0, named=True)
        raise ArgumentError(
            "judged",
            f"must agree with what was known before the draw: {row['answer']!r} to {row['query']!r} was "
            f"{'relevant' if row['before'] > 0 else 'not relevant'}.",
        )
    frame = frame.filter(pl.col("before").is_null())
    asked = drawing.candidates(people, people.label, drawing.order()[0])
    allowed = people.pairs(np.flatnonzero(asked)).select(pair)
    other = frame.join(allowed, on=pair, how="anti", maintain_order="left")
    if len(other):
        query, answer = other.select(pair).row(0)
        raise ArgumentError(
            "judged",
            f"must be of what was drawn: {len(other):,} are not, such as {answer!r} to {query!r}. Judgements "
            "of other candidates are known answers: a new pool takes them as its truth.",
        )
    said = people.labelled(frame.select(QRELS))
    return np.where(people.label == UNKNOWN, said, people.label)


def judged_units(
    drawing: Drawing, people: Population, labels: Int[np.ndarray, "candidates"]
) -> tuple[Int[np.ndarray, "judged"], int]:
    """The drawn units that are completely judged, as places in the frame, in their order; and how many are
    not.

    Raises:
        ValueError: naming `judged`, if a unit is judged while one before it, in its stratum, is not.
    """
    order, _ = drawing.order()
    is_open = drawing.candidates(people, labels, order)
    if drawing.unit.of_queries:
        lacking = np.bincount(people.query[is_open], minlength=len(people.queries))[drawing.frame[order]] > 0
    else:
        lacking = is_open[drawing.frame[order]]
    stratum = drawing.stratum[order]
    gone = np.zeros(len(drawing.sizes), bool)
    first = np.full(len(drawing.sizes), len(order))
    for h in range(len(gone)):
        open_here = np.flatnonzero(lacking & (stratum == h))
        first[h] = open_here[0] if len(open_here) else len(order)
    skipped = ~lacking & (np.arange(len(order)) > first[stratum]) & _has_work(drawing, people, order)
    if skipped.any():
        at = int(np.flatnonzero(lacking & (np.arange(len(order)) < np.flatnonzero(skipped)[-1]))[0])
        raise ArgumentError(
            "judged",
            f"must leave no gap: {_named(drawing, people, int(order[at]))} is not completely judged, and "
            f"later "
            "ones are. Judge it, or take the judgements behind it out: which ones are skipped may depend on "
            "their answers.",
        )
    done = order[~lacking & (np.arange(len(order)) < first[stratum])]
    return done, len(order) - len(done)


def _has_work(drawing: Drawing, people: Population, order: np.ndarray) -> Bool[np.ndarray, "n"]:
    """Whether a unit has anything to judge: others are done from the start."""
    is_open = drawing.candidates(people, people.label, order)
    if not drawing.unit.of_queries:
        return is_open[drawing.frame[order]]
    return np.bincount(people.query[is_open], minlength=len(people.queries))[drawing.frame[order]] > 0


def _named(drawing: Drawing, people: Population, unit: int) -> str:
    at = int(drawing.frame[unit])
    if drawing.unit.of_queries:
        return f"the query {people.queries['query'][at]!r}"
    return f"{people.answers[at]!r} to {people.queries['query'][int(people.query[at])]!r}"


def _level_of_look(looks: Sequence[int], judged: int, drawing: Drawing, ci: float) -> float:
    """The level of confidence of the look at so many judged units."""
    planned = checks.integer("looks", list(looks), 1).tolist()
    if judged not in planned:
        raise ArgumentError(
            "looks", f"must be where the judged units are, {judged}, got {', '.join(map(str, planned))}."
        )
    return float(look_levels(planned, len(drawing.frame), ci)[planned.index(judged)])


def _require_possible(state: "_State", chosen: Sequence[Measure]) -> None:
    """ValueError if errors of annotators, or exact limits, are asked of what cannot have them."""
    unit = state.drawn.drawing.unit
    if state.exact and unit is not Unit.QUERIES:
        raise ArgumentError("exact", f"must be absent where {unit} are drawn.")
    if state.errors is None:
        return
    if unit in (Unit.PREFIXES, Unit.BELOW):
        raise ArgumentError(
            "errors",
            f"must be absent where {unit} are drawn: what is judged depends on the labels, whose errors "
            f"have no "
            "unbiased correction there; draw whole queries.",
        )
    if state.exact:
        raise ArgumentError("errors", "must be absent with exact limits, which corrected labels do not have.")
    for one in chosen:
        require_correctable(one, state.errors)


class _State(NamedTuple):
    """What all metrics are estimated from."""

    drawn: DrawnPool
    labels: Int[np.ndarray, "candidates"]
    units: Int[np.ndarray, "judged"]
    proxies: Sequence[Probabilities]
    level: float
    pairs: bool
    of_these: bool
    errors: ErrorRates | None
    exact: bool
    looks: bool

    @property
    def sample(self) -> Sample:
        drawing = self.drawn.drawing
        return drawing.sample(np.sort(drawing.frame[self.units]))

    @property
    def judgements(self) -> int:
        return int(((self.labels != UNKNOWN) & (self.drawn.people.label == UNKNOWN)).sum())


_ANSWERS = {
    Unit.QUERIES: (Needs.QUERY, Needs.PREFIX, Needs.CANDIDATES),
    Unit.PREFIXES: (Needs.PREFIX,),
    Unit.CANDIDATES: (Needs.CANDIDATES,),
    Unit.BELOW: (),
}


def _chosen(drawn: DrawnPool, names: str | Iterable[str] | None) -> tuple[Measure, ...]:
    """The metrics asked for, which the design must answer."""
    unit, depth = drawn.drawing.unit, drawn.depth
    if names is None:
        names = {
            Unit.QUERIES: (f"RR@{depth}", f"P@{depth}", f"AP@{depth}"),
            Unit.PREFIXES: (f"RR@{depth}", f"Success@{depth}"),
            Unit.CANDIDATES: (f"P@{depth}",),
        }.get(unit, ())
        return measures(names, depth) if names else ()
    chosen = measures(names, depth)
    for one in chosen:
        if one.needs not in _ANSWERS[unit]:
            able = " or ".join(other for other in Unit if one.needs in _ANSWERS[other])
            raise ArgumentError(
                "metric", f"must be answered by drawn {unit}, and {one.name} is not: it needs drawn {able}."
            )
    return chosen


def _require_enough(drawing: Drawing, units: Int[np.ndarray, "judged"], chosen: Sequence[Measure]) -> None:
    unit, count = drawing.unit, len(units)
    least = LEAST_QUERIES if unit is Unit.QUERIES else FEW_QUERIES
    if count < least:
        raise ArgumentError("judged", f"must be of at least {least} drawn {unit}, got {count}.")
    judged = np.bincount(drawing.stratum[units], minlength=len(drawing.sizes))
    if (judged < np.minimum(drawing.sizes, 2)).any():
        raise ArgumentError(
            "judged",
            f"must be of two drawn {unit} in each of {len(drawing.sizes)} strata, got {judged.min()} "
            "in one: judge further.",
        )
    if unit.of_queries and count < FEW_QUERIES and any(one.micro for one in chosen):
        micro = next(one.name for one in chosen if one.micro)
        raise ArgumentError("judged", f"must be of at least {FEW_QUERIES} queries for {micro}, got {count}.")


def _notes(unit: Unit, count: int, unjudged: int, chosen: Sequence[Measure], drawn: DrawnPool) -> list[str]:
    notes = []
    if count < SURE_QUERIES:
        notes.append(f"{count} {unit} are few: single intervals may cover about 90 % instead of their level.")
    if unjudged:
        notes.append(
            f"{unjudged:,} drawn {unit} are not judged yet; the judged ones are the first of the draw."
        )
    whole = [one.name for one in chosen if one.needs is Needs.QUERY]
    if whole:
        notes.append(
            f"{', '.join(whole)} count answers to depth {drawn.depth} and known ones: true answers that no "
            f"list "
            "holds are not in the denominator."
        )
    if any(one.name == f"RR@{drawn.depth}" for one in chosen):
        notes.append(
            f"MRR is between RR@{drawn.depth} and RR@{drawn.depth} + (1 - Success@{drawn.depth}) / "
            f"{drawn.depth + 1}."
        )
    if any(one.micro for one in chosen) and len(drawn.drawing.sizes) == 1:
        notes.append("micro metrics have narrower intervals if queries are drawn in strata of their size.")
    return notes


def _by_queries(state: _State, of: Measure) -> Limits:
    people, sample = state.drawn.people, state.sample
    ready = prepared(of, people, state.proxies, own=len(sample.rows) >= OWN)
    folds = None
    if len(sample.rows) >= REFIT and people.slot.size <= _REFITTED:
        folds = refitted(people, state.labels, state.drawn.proxy, sample.rows)
    if state.exact:
        drawing = state.drawn.drawing
        in_order = drawing.sample(drawing.frame[state.units])
        return exact_of_queries(ready, people, state.labels, in_order, level=state.level, pairs=state.pairs)
    options = {"folds": folds, "pairs": state.pairs, "of_these": state.of_these}
    if state.errors is None:
        return of_queries(ready, people, state.labels, sample, level=state.level, **options)
    noise = rate_variance(
        lambda labels: means(ready, people, labels, sample, **options).mean,
        people,
        state.labels,
        state.errors,
    )
    labels = corrected(people, state.labels, state.errors)
    return of_queries(ready, people, labels, sample, level=state.level, noise=noise, **options)


_REFITTED = 1_000_000  # places in lists, above which the proxy is not fitted again


def _by_prefixes(state: _State, of: Measure) -> Limits:
    people, drawing, sample = state.drawn.people, state.drawn.drawing, state.sample
    assert drawing.deep is not None
    reached = reach(people.depth)
    ready = prepared(of, people, state.proxies, reached=reached)
    deep = drawing.deep[np.searchsorted(drawing.frame, sample.rows)]
    return of_prefix_queries(
        ready,
        people,
        state.labels,
        state.drawn.proxy,
        sample,
        deep,
        reached,
        level=state.level,
        pairs=state.pairs,
    )


def _by_candidates(state: _State, of: Measure) -> Limits:
    people = state.drawn.people
    frame = state.drawn.drawing.frame
    systems = len(people.models)
    to = contrasts(systems, pairs=state.pairs)
    known = values(of, people, (people.label == 1).astype(float)).mean(1)
    added = to @ contributions(of, people, frame)
    found = _summed(state, added)
    least, most = np.minimum(added, 0).sum(1), np.maximum(added, 0).sum(1)
    low, high = limits(found, state.level)
    base = to @ known
    value = np.clip(found.value, least, most)
    return Limits(
        base + value,
        base + np.clip(np.minimum(low, value), least, most),
        base + np.clip(np.maximum(high, value), least, most),
        ["t"] * len(value),
        found.r,
        base + least,
        base + most,
        found.variance,
        found.freedom,
    )


def _summed(state: _State, added: Float[np.ndarray, "targets units"]) -> Sums:
    drawing = state.drawn.drawing
    proxy = np.stack([one[drawing.frame] for one in state.proxies])
    rows = drawing.frame[state.units]

    def summed(labels: Float[np.ndarray, "candidates"]) -> Sums:
        return of_candidates(added, labels[rows], proxy, drawing.drawn(state.units))

    if state.errors is None:
        return summed(truths(state.labels))
    people = state.drawn.people
    noise = rate_variance(lambda labels: summed(labels).value, people, state.labels, state.errors)
    found = summed(corrected(people, state.labels, state.errors))
    return found._replace(variance=found.variance + noise)


def _none(state: _State, of: Measure) -> Limits:
    raise AssertionError(f"{of.name} is refused before")


_FOUND = {
    Unit.QUERIES: _by_queries,
    Unit.PREFIXES: _by_prefixes,
    Unit.CANDIDATES: _by_candidates,
    Unit.BELOW: _none,
}


def _tables(
    state: _State, found: Sequence[tuple[Measure, Limits]]
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    models = state.drawn.people.models
    judgements = state.judgements
    rows, pairs = [], []
    for of, own in found:
        for s, model in enumerate(models):
            equal = round(judgements / max(1 - own.r[s] ** 2, 1e-9))
            numbers = (own.value[s], own.low[s], own.high[s])
            rest = (own.r[s], own.least[s], own.most[s], judgements, equal)
            rows.append(
                (model, of.name, *map(float, numbers), own.method[s], *map(float, rest[:3]), *rest[3:])
            )
        if not state.pairs:
            continue
        for i, (first, second) in enumerate(combinations(models, 2), len(models)):
            p = None if state.looks else _p_value(own, i)
            pairs.append(
                (
                    first,
                    second,
                    of.name,
                    float(own.value[i]),
                    float(own.low[i]),
                    float(own.high[i]),
                    p,
                    own.method[i],
                )
            )
    return rows, pairs


def _p_value(own: Limits, i: int) -> float | None:
    """Student's two-sided p value of a difference at one look; None where its interval is not Student's."""
    if own.method[i] != "t" or own.variance[i] <= 0:
        return None
    return float(2 * special.stdtr(own.freedom[i], -abs(own.value[i]) / np.sqrt(own.variance[i])))


def _missing(state: _State) -> Missing | None:
    """The share of missing answers among the true ones."""
    drawn = state.drawn
    people, drawing = drawn.people, drawn.drawing
    known = int((people.label == 1).sum() + people.outside.sum())
    if drawing.unit is Unit.CANDIDATES:
        found = _summed(state, np.ones((1, len(drawing.frame))))
        low, high = limits(found, state.level)
        count = (float(found.value[0]), float(low[0]), float(high[0]))
        scope = f"the pool of depth {drawn.depth}, with known answers"
    elif drawing.unit is Unit.BELOW:
        at = drawing.stratum[state.units]
        weights = (drawing.sizes / np.maximum(np.bincount(at, minlength=len(drawing.sizes)), 1))[at]
        said = np.maximum(state.labels[drawing.frame[state.units]], 0).astype(float)
        count = (float(said @ weights), *few_limits(said, weights, state.level))
        scope = f"ranks {drawn.depth + 1} to {people.depth}, with known answers"
    elif drawing.unit is Unit.QUERIES:
        count = _counted(state)
        scope = f"the pool of depth {drawn.depth}, with known answers"
    else:
        return None
    value, low, high = (min(max(one, 0.0), float(len(people.unknown))) for one in count)

    def share(missing: float) -> float:
        return missing / (missing + known) if missing + known else 0.0

    return Missing(share(value), share(low), share(high), scope, (value, low, high), known)


def _counted(state: _State) -> tuple[float, float, float]:
    """Missing answers of the pool from completely judged queries: a mean over queries times their number."""
    people, sample = state.drawn.people, state.sample
    size, unknown = len(people.queries), people.label == UNKNOWN
    p = np.where(unknown, state.drawn.proxy, 0.0)
    x = np.bincount(people.query, p, size)
    spread = np.bincount(people.query, p * (1 - p), size).mean()
    centred = (x - x.mean())[sample.rows]

    def counted(labels: Float[np.ndarray, "candidates"]) -> Fitted:
        y = np.bincount(people.query, unknown * labels, size)[sample.rows]
        return fitted(y[None], centred[None, None], sample, np.array([spread]), of_these=state.of_these)

    if state.errors is None:
        fit = counted(truths(state.labels))
    else:
        noise = rate_variance(lambda labels: counted(labels).mean, people, state.labels, state.errors)
        fit = counted(corrected(people, state.labels, state.errors))
        fit = fit._replace(variance=fit.variance + noise)
    half = t_quantile(fit.freedom, state.level) * np.sqrt(fit.variance)
    low, high = fit.mean - half, fit.mean + half
    return float(fit.mean[0] * size), float(low[0] * size), float(high[0] * size)
