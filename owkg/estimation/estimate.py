"""Metrics of the completely judged pool, estimated from judgements drawn by a design."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Int
from scipy import special

from owkg import checks
from owkg.errors import ArgumentError
from owkg.estimation.annotators import ErrorRates, require_correctable, require_possible_rates
from owkg.estimation.drawing import Asked, Drawing, Unit, pair_of
from owkg.estimation.judged import DrawnPool, Evidence, expert_of, judged_units, labels_of, lacks
from owkg.estimation.made_looks import Looks, look
from owkg.estimation.measures import Measure, Needs, measures
from owkg.estimation.missing_share import Missing, missing_share
from owkg.estimation.of_designs import OWN, REFIT, estimated
from owkg.estimation.proxy import joined_proxies
from owkg.estimation.targets import Limits
from owkg.estimation.two_phase import LEAST_EXPERT
from owkg.estimation.unpooled import unpooled_bounds

if TYPE_CHECKING:
    import matplotlib.figure

LEAST_QUERIES = 10
"""Fewest judged queries from which anything is estimated."""
FEW_QUERIES = 20
"""Fewest judged queries for a regression and for micro metrics."""
SURE_QUERIES = 50
"""Fewest judged units without a note that single intervals may cover less than their level."""

__all__ = ["OWN", "REFIT", "DrawnPool", "Estimate", "Missing", "estimate", "judged_units", "labels_of"]

Gaps = Literal["refuse", "bounds"]

_METRICS = {
    "model": pl.String, "metric": pl.String, "value": pl.Float64, "ci_low": pl.Float64, "ci_high": pl.Float64,
    "method": pl.String, "r": pl.Float64, "least": pl.Float64, "most": pl.Float64, "judgements": pl.Int64,
    "equivalent_judgements": pl.Int64,
}  # fmt: skip
_DIFFERENCES = {
    "first": pl.String, "second": pl.String, "metric": pl.String, "value": pl.Float64, "ci_low": pl.Float64,
    "ci_high": pl.Float64, "p_value": pl.Float64, "method": pl.String,
}  # fmt: skip


class Estimate(NamedTuple):
    """Estimates for the completely judged pool from drawn judgements.

    Attributes:
        target: what the values refer to, in words.
        design: what was drawn and judged, in words.
        metrics: table with one row for each system and metric: model, metric, value, ci_low, ci_high, method,
            r, least and most (bounds that hold whatever the unknown labels are), judgements,
            equivalent_judgements (number of judgements that a plain sample of queries would need for the same
            precision). With method "bounds" the value is null: for a pooled system the limits hold whatever
            the open labels are, and a system that was not pooled has only least and most.
        differences: table with one row for each pair and metric: first, second, metric, value, ci_low,
            ci_high, p_value, method.
        missing: share of missing answers; None if the design does not answer it.
        judged: number of drawn units that are completely judged.
        unjudged: number of drawn units that are not.
        looks: numbers of judged units at which estimates are looked at.
        notes: warnings to read before you use the values.
    """

    target: str
    design: str
    metrics: pl.DataFrame
    differences: pl.DataFrame
    missing: Missing | None
    judged: int
    unjudged: int
    looks: Looks
    notes: list[str]

    def plot(
        self, metrics: str | Sequence[str] | None = None, *, against: str | None = None
    ) -> "matplotlib.figure.Figure":
        """Figure of the values and the differences with their intervals, two panels for each metric.

        Arguments and errors are the same as in `owkg.plots.estimate_figure`.
        """
        from owkg.plots.estimates import estimate_figure

        return estimate_figure(self, metrics=metrics, against=against)


def estimate(
    drawn: DrawnPool,
    judged: pl.DataFrame,
    metrics: str | Iterable[str] | None = None,
    *,
    compare: bool = True,
    proxies: Mapping[str, pl.DataFrame] | None = None,
    errors: ErrorRates | None = None,
    expert: pl.DataFrame | None = None,
    exact: bool = False,
    gaps: Gaps = "refuse",
    looks: Sequence[int] | None = None,
    before: Looks | None = None,
    others: pl.DataFrame | None = None,
    ci: float = 0.95,
    of_these: bool = True,
) -> Estimate:
    """Metrics of all systems as if the whole pool were judged, estimated from the judgements of a design.

    Args:
        drawn: the pool with its design.
        judged: judgements of the drawn units. A relevance above 0 is relevant, 0 is not relevant, -1 is not
            judged.
        metrics: names of metrics, as `owkg.estimation.measures.measure` accepts them. Default None: the usual
            metrics that the design answers.
        compare: whether to estimate the differences of all pairs. Default True.
        proxies: further probabilities of the candidates, by name; tables with columns query, answer,
            probability.
        errors: error rates of the annotators, for which owkg corrects the labels so that values stay
            unbiased. Default None: annotators do not err.
        expert: judgements by an expert of the first drawn queries, at least 20. The values then estimate what
            the expert's labels would give, whatever the errors of the annotators, and the annotators' labels
            make the intervals narrower.
        exact: whether limits are exact for any number of queries, and therefore wider. Default False, except
            with fewer than 20 queries from one stratum, where limits are always exact.
        gaps: "refuse" (default): raise an error if a unit is skipped. "bounds": give limits that hold
            whatever the labels of skipped units are.
        looks: numbers of judged units at which you look at estimates, as planned before the first look; the
            last one is the whole draw. Intervals of all looks together hold at the level. Default None: one
            look.
        before: record of earlier looks. Default None: no record.
        others: lists of systems that were not pooled, with the columns that
            `owkg.estimation.population.population` takes. These systems get bounds only.
        ci: confidence level of the intervals. Default 0.95.
        of_these: True (default): the values are for the queries of the runs; False: for queries like these.

    Raises:
        ValueError: if a judgement is outside the draw, the design does not answer a metric, a drawn unit is
            skipped, too few units are judged, the expert judged other than the first queries, or this is the
            third look without a plan.

    References:
        Särndal, Swensson, Wretman (1992), "Model assisted survey sampling", chapter 6; Angelopoulos et al.
        (Science 382, 2023), "Prediction-powered inference".
    """
    checks.level("ci", ci)
    people, drawing = drawn.people, drawn.drawing
    before = before or Looks()
    errors = None if errors is not None and errors.never else errors
    planned = looks is not None or before.planned is not None
    given = _Given(errors, expert is not None, exact, gaps, planned, others is not None)
    _require_together(drawing.unit, given)
    chosen = _chosen(drawn, metrics)
    labels = labels_of(drawn, judged)
    units, unjudged = judged_units(drawing, people, labels, gaps=gaps == "bounds")
    _require_enough(drawing, units, chosen)
    level, all_looks, notes = look(len(units), len(drawing.frame), looks, before, ci)
    said = None if expert is None else expert_of(drawn, expert, units, least=LEAST_EXPERT)
    sure = len(units) if said is None else len(said.units)
    covariates, of_proxies = joined_proxies(people, drawn.proxy, proxies or {}, sure)
    open_units = int(lacks(drawing, people, labels, units).sum())
    few = drawing.unit is Unit.QUERIES and len(units) < FEW_QUERIES and len(drawing.sizes) == 1
    # If annotators judged no further query, only the expert's labels count.
    alone = said is not None and sure == len(units)
    evidence = Evidence(
        drawn,
        said.labels if said is not None and alone else labels,
        units,
        open_units > 0,
        covariates,
        level,
        compare,
        of_these,
        errors,
        exact or few,
        all_looks.planned is not None and len(all_looks.planned) > 1,
        None if alone else said,
    )
    _require_limits(evidence, chosen)
    if errors is not None:
        require_possible_rates(people, labels, errors)
    found = [(one, estimated(evidence, one)) for one in chosen]
    rows, pairs = _tables(evidence, found)
    aimed = drawn.asked
    if aimed is not None and aimed.pair is not None:
        both = pair_of(aimed.pair, people.models)
        rows, pairs = [], [row for row in pairs if set(row[:2]) == set(both)]
    if others is not None:
        rows += _unpooled(evidence, judged, others, chosen)
    return Estimate(
        f"the pool of depth {drawn.depth}"
        + (f" and what is below it, to depth {people.depth}" if drawing.unit is Unit.BELOW else ""),
        _in_words(drawing, len(units) - open_units, None if said is None else sure),
        pl.DataFrame(rows, _METRICS, orient="row"),
        pl.DataFrame(pairs, _DIFFERENCES, orient="row"),
        missing_share(evidence) if aimed is None else None,
        len(units) - open_units,
        unjudged,
        all_looks,
        [
            *_notes(drawing.unit, sure, unjudged - open_units, chosen, drawn),
            *_notes_of_limits(evidence, open_units, given),
            *notes,
            *of_proxies,
            *_notes_of_looks(evidence, unjudged, all_looks, given),
            *_notes_of_aims(drawn),
            *([_APART] if pairs and rows else []),
        ],
    )


_APART = (
    "each difference has its own regression slope, so it may differ from the difference of "
    "the two values. Report the difference with its interval."
)


def _notes_of_aims(drawn: DrawnPool) -> list[str]:
    """Notes on what cannot be estimated from candidates drawn for particular metrics or one pair."""
    if drawn.asked is None:
        return []
    if drawn.asked.pair is None:
        return [
            "candidates were drawn for particular metrics: the share of missing answers is not estimated."
        ]
    first, second = pair_of(drawn.asked.pair, drawn.people.models)
    return [
        f"candidates were drawn for the difference of {first} and {second}: values of single systems and the "
        "share of missing answers are not estimated."
    ]


def _in_words(drawing: Drawing, judged: int, expert: int | None) -> str:
    """Sentence part that says how many units were drawn and judged."""
    by_expert = "" if expert is None else f"; an expert judged the first {expert:,} of them"
    drawn = f"{judged:,} of {drawing.counts.sum():,} drawn {drawing.unit} judged"
    return f"{drawn}, of {len(drawing.frame):,}{by_expert}"


def missing_answers(drawn: DrawnPool, judged: pl.DataFrame, ci: float = 0.95) -> Missing | None:
    """Share of missing answers as in `estimate`, without metrics; None if the design does not answer it.

    Raises:
        ValueError: as `estimate`.
    """
    level = checks.level("ci", ci)
    labels = labels_of(drawn, judged)
    units, _ = judged_units(drawn.drawing, drawn.people, labels)
    _require_enough(drawn.drawing, units, ())
    return missing_share(Evidence(drawn, labels, units, False, [drawn.proxy], level, False, True))


def _notes_of_limits(evidence: Evidence, open_units: int, given: "_Given") -> list[str]:
    """Notes on gaps, pairs and systems that were not pooled."""
    notes = []
    if open_units:
        notes.append(
            f"{open_units:,} {evidence.drawn.drawing.unit} before the last judged one have open labels: "
            "limits hold for both labels, and there are no values."
        )
    several = evidence.several or not evidence.pairs or evidence.gaps
    if (
        not several
        and len(evidence.drawn.people.models) > 2
        and evidence.drawn.drawing.unit is not Unit.BELOW
    ):
        notes.append("p-values are not corrected for the number of pairs.")
    if given.others:
        notes.append(
            "systems that were not pooled have only bounds, because candidates that only they list were not "
            "judged."
        )
    return notes


def _notes_of_looks(evidence: Evidence, unjudged: int, made: Looks, given: "_Given") -> list[str]:
    """Notes on the effect of further looks."""
    if given.expert:
        return ["intervals hold at one look at the expert's labels: further looks are not recorded."]
    first = made.planned is None and len(made.made or ()) < 2
    if not first or not (unjudged or len(evidence.drawn.drawing.batches) > 1):
        return []
    return ["intervals hold at one look: if you looked earlier or will look again, plan all looks (`looks`)."]


class _Given(NamedTuple):
    """Options of `estimate` that exclude one another."""

    errors: ErrorRates | None
    expert: bool
    exact: bool
    gaps: str
    looks: bool
    others: bool


def _require_together(unit: Unit, given: _Given) -> None:
    """Raise ValueError for an option that the design or another option excludes."""
    if given.gaps not in ("refuse", "bounds"):
        raise ArgumentError("gaps", f"must be refuse or bounds, got {given.gaps!r}.")
    bounded, not_queries = given.gaps == "bounds", unit is not Unit.QUERIES
    depends = "the labels decide which candidates are judged"
    rules = (
        (
            "errors",
            given.errors is not None and unit in (Unit.PREFIXES, Unit.BELOW),
            f"if {unit} are drawn: {depends}, so their errors have no unbiased correction; draw whole "
            "queries",
        ),
        ("exact", given.exact and not_queries, f"if {unit} are drawn"),
        ("gaps", bounded and unit is Unit.PREFIXES, f"if {unit} are drawn: {depends}"),
        ("expert", given.expert and not_queries, f"if {unit} are drawn: an expert judges whole queries"),
        (
            "others",
            given.others and not_queries,
            f"if {unit} are drawn: only whole queries give bounds for systems that were not pooled",
        ),
        (
            "errors",
            given.errors is not None and given.exact,
            "with exact limits, which corrected labels do not have",
        ),
        (
            "expert",
            given.expert and given.errors is not None,
            "with `errors`: the labels of an expert replace error rates",
        ),
        ("expert", given.expert and given.exact, "with exact limits, which two annotations do not have"),
        (
            "expert",
            given.expert and given.looks,
            "with several looks, whose levels are not known for experts",
        ),
        (
            "gaps",
            bounded and given.errors is not None,
            "with `errors`, which need a label for each candidate",
        ),
        ("gaps", bounded and given.exact, "with exact limits, which need a label for each candidate"),
        ("gaps", bounded and given.expert, "with `expert`, which needs a label for each candidate"),
        (
            "others",
            given.others and (given.errors is not None or given.expert),
            "with `errors` or `expert`: bounds for systems that were not pooled assume labels without errors",
        ),
    )
    for name, wrong, why in rules:
        if wrong:
            raise ArgumentError(name, f"must be left out {why}.")


def _require_limits(evidence: Evidence, chosen: Sequence[Measure]) -> None:
    """Raise ValueError if gaps or errors of annotators meet exact limits, or a metric cannot be corrected."""
    if evidence.gaps and evidence.exact:
        raise ArgumentError(
            "gaps", f"must be left out with fewer than {FEW_QUERIES} queries, got {len(evidence.units)}."
        )
    if evidence.errors is None:
        return
    if evidence.exact:
        raise ArgumentError(
            "errors", "must be left out with exact limits, which corrected labels do not have."
        )
    for one in chosen:
        require_correctable(one, evidence.errors)


def _unpooled(
    evidence: Evidence, judged: pl.DataFrame, run: pl.DataFrame, chosen: Sequence[Measure]
) -> list[tuple[Any, ...]]:
    """Rows of systems that were not pooled."""
    found = [(one.name, *unpooled_bounds(evidence.drawn, judged, run, one)) for one in chosen]
    nothing = (None, None, None, "bounds", None)
    return [
        (model, name, *nothing, float(least), float(most), evidence.judgements, None)
        for name, models, low, high in found
        for model, least, most in zip(models, low, high, strict=True)
    ]


_ANSWERS = {
    Unit.QUERIES: (Needs.QUERY, Needs.PREFIX, Needs.CANDIDATES),
    Unit.PREFIXES: (Needs.PREFIX,),
    Unit.CANDIDATES: (Needs.CANDIDATES,),
    Unit.BELOW: (),
}


def _chosen(drawn: DrawnPool, names: str | Iterable[str] | None) -> tuple[Measure, ...]:
    """The metrics asked for, after checking that the design answers them."""
    unit, depth = drawn.drawing.unit, drawn.depth
    if drawn.asked is not None:
        return _aimed(drawn.asked, depth, names)
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
                "metric",
                f"must be a metric that drawn {unit} answer, got {one.name}, which needs drawn {able}.",
            )
    return chosen


def _aimed(asked: Asked, depth: int, names: str | Iterable[str] | None) -> tuple[Measure, ...]:
    """The metrics that candidates were drawn for; the draw is too imprecise for other metrics."""
    drawn_for = measures(asked.aims or f"P@{depth}", depth)
    if names is None:
        return drawn_for
    chosen, known = measures(names, depth), [one.name for one in drawn_for]
    for one in chosen:
        if one.name not in known:
            raise ArgumentError(
                "metric",
                f"must be a metric that candidates were drawn for, {', '.join(known)}, got {one.name}.",
            )
    return chosen


def _require_enough(drawing: Drawing, units: Int[np.ndarray, "judged"], chosen: Sequence[Measure]) -> None:
    unit, count = drawing.unit, len(units)
    least = LEAST_QUERIES if unit is Unit.QUERIES else FEW_QUERIES
    if count < least:
        raise ArgumentError("judged", f"must cover at least {least} drawn {unit}, got {count}.")
    judged = np.bincount(drawing.stratum[units], minlength=len(drawing.sizes))
    if (judged < np.minimum(drawing.sizes, 2)).any():
        raise ArgumentError(
            "judged",
            f"must cover two drawn {unit} in each of {len(drawing.sizes)} strata, got {judged.min()} "
            "in one: judge further.",
        )
    if unit.of_queries and count < FEW_QUERIES and any(one.micro for one in chosen):
        micro = next(one.name for one in chosen if one.micro)
        raise ArgumentError("judged", f"must cover at least {FEW_QUERIES} queries for {micro}, got {count}.")


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
            f"{', '.join(whole)} count known answers and answers to depth {drawn.depth}: true answers that "
            "no list holds are not in the denominator."
        )
    if any(one.name == f"RR@{drawn.depth}" for one in chosen):
        notes.append(
            f"MRR is between RR@{drawn.depth} and RR@{drawn.depth} + (1 - Success@{drawn.depth}) / "
            f"{drawn.depth + 1}."
        )
    if any(one.micro for one in chosen) and len(drawn.drawing.sizes) == 1:
        notes.append(
            "micro metrics have narrower intervals if queries are drawn in strata by number of known answers."
        )
    return notes


def _tables(
    evidence: Evidence, found: Sequence[tuple[Measure, Limits]]
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    models = evidence.drawn.people.models
    judgements = evidence.judgements
    rows, pairs = [], []
    for of, own in found:
        for s, model in enumerate(models):
            equal = None
            if evidence.expert is None and not np.isnan(own.r[s]):
                equal = round(judgements / max(1 - own.r[s] ** 2, 1e-9))
            numbers = (own.value[s], own.low[s], own.high[s])
            rest = (_number(own.r[s]), float(own.least[s]), float(own.most[s]), judgements, equal)
            rows.append((model, of.name, *map(_number, numbers), own.method[s], *rest))
        if not evidence.pairs:
            continue
        for i, (first, second) in enumerate(combinations(models, 2), len(models)):
            p = None if evidence.several else _p_value(own, i)
            numbers = (own.value[i], own.low[i], own.high[i])
            pairs.append((first, second, of.name, *map(_number, numbers), p, own.method[i]))
    return rows, pairs


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _p_value(own: Limits, i: int) -> float | None:
    """Two-sided p-value of a difference by Student's t at one look; None for another kind of interval."""
    if own.method[i] != "t" or own.variance[i] <= 0:
        return None
    return float(2 * special.stdtr(own.freedom[i], -abs(own.value[i]) / np.sqrt(own.variance[i])))
