"""Judgements of a drawn pool: validation, complete units, and the evidence for all estimates."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Bool, Int

from owkg.errors import ArgumentError
from owkg.estimation.annotators import ErrorRates
from owkg.estimation.drawing import Asked, Drawing
from owkg.estimation.population import UNKNOWN, Population
from owkg.estimation.proxy import Probabilities
from owkg.estimation.regression import Sample
from owkg.judge.qrels import judgements_checked
from owkg.judge.schema import QRELS

_PAIR = ["query", "answer"]


class DrawnPool(NamedTuple):
    """A pool whose judgements are drawn by a design.

    Attributes:
        people: the population. Its lists extend below the pool if the design draws there.
        drawing: the design and the units drawn so far.
        proxy: probabilities of the candidates at the time of the draw.
        known: judgements made before the draw.
        depth: depth of the pool for which metrics are estimated.
        categories: category of each relation, such as "1-N"; None: not known.
        asked: request for which candidates are drawn, if it is not P at the depth of the pool for each
            system; otherwise None.
    """

    people: Population
    drawing: Drawing
    proxy: Probabilities
    known: pl.DataFrame
    depth: int
    categories: dict[str, str] | None = None
    asked: Asked | None = None

    def more(self, count: int) -> "DrawnPool":
        """The pool with `count` further units drawn by the same design; drawn units stay drawn.

        Raises:
            ValueError: naming `more`, if `count` is below 1 or nothing is left to draw.
        """
        return self._replace(drawing=self.drawing.more(count))


class Expert(NamedTuple):
    """Judgements by an expert of queries that annotators judged.

    Attributes:
        labels: label of each candidate, `UNKNOWN` if neither known before nor judged by the expert.
        units: the queries, as places in the frame; the first drawn ones in each stratum.
    """

    labels: Int[np.ndarray, "candidates"]
    units: Int[np.ndarray, "expert"]


class Evidence(NamedTuple):
    """Labels, sample and options from which all metrics are estimated.

    Attributes:
        drawn: the pool with its design.
        labels: label of each candidate: 1, 0 or `UNKNOWN`.
        units: judged units, as places in the frame, in the order of the draw.
        gaps: whether some of these units are open, in whole or in part.
        proxies: probabilities of the candidates; each vector is one covariate.
        level: confidence level of the intervals.
        pairs: whether pairs of systems are estimated.
        of_these: whether the values are for the queries of the runs, rather than for queries like these.
        errors: error rates of the annotators; None: none.
        exact: whether limits are exact.
        several: whether there are several looks.
        expert: expert judgements of a part of the units; None: none.
    """

    drawn: DrawnPool
    labels: Int[np.ndarray, "candidates"]
    units: Int[np.ndarray, "judged"]
    gaps: bool
    proxies: Sequence[Probabilities]
    level: float
    pairs: bool
    of_these: bool
    errors: ErrorRates | None = None
    exact: bool = False
    several: bool = False
    expert: Expert | None = None

    @property
    def sample(self) -> Sample:
        """The judged queries; queries that an expert judged come first."""
        drawing = self.drawn.drawing
        if self.expert is None:
            return drawing.sample(np.sort(drawing.frame[self.units]))
        rest = self.units[~np.isin(self.units, self.expert.units)]
        return drawing.sample(drawing.frame[np.concatenate([self.expert.units, rest])])

    @property
    def judgements(self) -> int:
        """Number of labels given after the draw, including labels by an expert."""
        unknown = self.drawn.people.label == UNKNOWN
        tables = [self.labels, *([] if self.expert is None else [self.expert.labels])]
        return sum(int(((one != UNKNOWN) & unknown).sum()) for one in tables)


def labels_of(drawn: DrawnPool, judged: pl.DataFrame, name: str = "judged") -> Int[np.ndarray, "candidates"]:
    """Label of each candidate after the judgements: 1, 0 or `UNKNOWN`.

    Args:
        drawn: the pool.
        judged: the judgements.
        name: name of the argument that holds the judgements, for error messages.

    Raises:
        ValueError: naming the argument, if a judgement is outside the draw or contradicts a label known
            before.
    """
    people = drawn.people
    frame = judgements_checked(name, judged).filter(pl.col("relevance") >= 0)
    before = drawn.known.filter(pl.col("relevance") >= 0).select(*_PAIR, before="relevance")
    frame = frame.join(before, on=_PAIR, how="left", maintain_order="left")
    torn = frame.filter((pl.col("before") > 0) != (pl.col("relevance") > 0))
    if len(torn):
        row = torn.row(0, named=True)
        raise ArgumentError(
            name,
            f"must agree with the judgements before the draw: {row['answer']!r} to {row['query']!r} was "
            f"{'relevant' if row['before'] > 0 else 'not relevant'}.",
        )
    frame = frame.filter(pl.col("before").is_null())
    other = outside_draw(drawn, frame)
    if len(other):
        raise ArgumentError(name, not_drawn(other))
    said = people.labelled(frame.select(QRELS))
    return np.where(people.label == UNKNOWN, said, people.label)


def outside_draw(drawn: DrawnPool, frame: pl.DataFrame) -> pl.DataFrame:
    """Judgements of candidates that were neither drawn nor judged before the draw."""
    people, drawing = drawn.people, drawn.drawing
    asked = drawing.candidates(people, people.label, drawing.order()[0])
    allowed = people.pairs(np.flatnonzero(asked)).select(_PAIR)
    left = frame.join(
        drawn.known.filter(pl.col("relevance") >= 0), on=_PAIR, how="anti", maintain_order="left"
    )
    return left.join(allowed, on=_PAIR, how="anti", maintain_order="left")


def not_drawn(other: pl.DataFrame) -> str:
    """Error message for judgements outside the draw."""
    query, answer = other.select(_PAIR).row(0)
    return (
        f"must be of drawn units: {len(other):,} are not, such as {answer!r} to {query!r}. Judgements "
        "of other candidates are known answers, which a new pool can take as its truth."
    )


def judged_units(
    drawing: Drawing,
    people: Population,
    labels: Int[np.ndarray, "candidates"],
    *,
    gaps: bool = False,
    name: str = "judged",
) -> tuple[Int[np.ndarray, "judged"], int]:
    """The judged units of a draw, as places in the frame in drawn order, and the number of unjudged units.

    In each stratum these are the units before the first incompletely judged unit. With gaps, they are all
    units up to the last completely judged one.

    Args:
        drawing: the design.
        people: the population.
        labels: label of each candidate known so far.
        gaps: whether units may be open. Default False.
        name: name of the argument that holds the judgements, for error messages.

    Raises:
        ValueError: naming the argument, if a unit is judged while an earlier unit of its stratum is not.
    """
    order, _ = drawing.order()
    lacking = lacks(drawing, people, labels, order)
    place, stratum = np.arange(len(order)), drawing.stratum[order]
    done = ~lacking & lacks(drawing, people, people.label, order)
    last = np.full(len(drawing.sizes), -1)
    np.maximum.at(last, stratum[done], place[done])
    open_ = lacking & (place > last[stratum])
    end = np.full(len(last), len(order))
    np.minimum.at(end, stratum[open_], place[open_])
    inside = place < end[stratum]
    skipped = np.flatnonzero(lacking & inside)
    if len(skipped) and not gaps:
        raise ArgumentError(
            name,
            f"must leave no gap: {_named(drawing, people, int(order[skipped[0]]))} is not completely judged"
            f"{_lacking(drawing, people, labels, int(order[skipped[0]]))}, but later ones are. Judge it, or "
            "remove the judgements after it, because which units are skipped may "
            "depend on their answers.",
        )
    return order[inside], len(order) - int(inside.sum()) + len(skipped)


def lacks(
    drawing: Drawing, people: Population, labels: Int[np.ndarray, "candidates"], units: Int[np.ndarray, "n"]
) -> Bool[np.ndarray, "n"]:
    """Mask of the units that have a candidate which must still be judged."""
    is_open = drawing.candidates(people, labels, units)
    if not drawing.unit.of_queries:
        return is_open[drawing.frame[units]]
    return np.bincount(people.query[is_open], minlength=len(people.queries))[drawing.frame[units]] > 0


def expert_of(
    drawn: DrawnPool, judged: pl.DataFrame, units: Int[np.ndarray, "judged"], *, least: int
) -> Expert:
    """Expert judgements of the first queries of a draw.

    Args:
        drawn: the pool.
        judged: the judgements by the expert.
        units: the queries that annotators judged.
        least: fewest queries that the expert must judge.

    Raises:
        ValueError: naming `expert`, if a query is judged in part, is not among the first of the draw, was not
            judged by annotators, or if there are too few queries.
    """
    people, drawing = drawn.people, drawn.drawing
    labels = labels_of(drawn, judged, "expert")
    order, _ = drawing.order()
    unknown = people.label == UNKNOWN
    size = len(people.queries)
    asked, said = (
        np.bincount(people.query[mask], minlength=size)[drawing.frame[order]]
        for mask in (unknown, unknown & (labels != UNKNOWN))
    )
    for at in np.flatnonzero((said > 0) & (said < asked))[:1]:
        raise ArgumentError(
            "expert",
            f"must judge queries completely: {asked[at] - said[at]} of {asked[at]} candidates of "
            f"{_named(drawing, people, int(order[at]))} are not judged.",
        )
    chosen, _ = judged_units(drawing, people, labels, name="expert")
    # Queries without anything to judge count as judged by annotators.
    other = chosen[~np.isin(chosen, units)]
    for unit in other[lacks(drawing, people, people.label, other)][:1]:
        raise ArgumentError(
            "expert",
            f"must judge queries that annotators judged: {_named(drawing, people, int(unit))} is not.",
        )
    chosen = chosen[np.isin(chosen, units)]
    if len(chosen) < least:
        raise ArgumentError("expert", f"must judge at least the first {least} queries, got {len(chosen)}.")
    each = np.bincount(drawing.stratum[chosen], minlength=len(drawing.sizes))
    if each.min() < 2:
        raise ArgumentError(
            "expert", f"must judge two queries in each of {len(each)} strata, got {each.min()} in one."
        )
    return Expert(labels, chosen)


def _lacking(drawing: Drawing, people: Population, labels: np.ndarray, unit: int) -> str:
    """An answer of a query that must still be judged, in words."""
    if not drawing.unit.of_queries:
        return ""
    at = np.flatnonzero(drawing.candidates(people, labels, np.array([unit])))
    return f" (it needs {people.answers[int(at[0])]!r}; {len(at):,} in all)"


def _named(drawing: Drawing, people: Population, unit: int) -> str:
    at = int(drawing.frame[unit])
    if drawing.unit.of_queries:
        return f"the query {people.queries['query'][at]!r}"
    return f"{people.answers[at]!r} to {people.queries['query'][int(people.query[at])]!r}"
