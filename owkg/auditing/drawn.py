"""Results of a drawn pool for an audit: a lower bound of the sparsity, and correlations."""

from typing import NamedTuple

import numpy as np
import polars as pl

from owkg.auditing.lists import Prepared
from owkg.auditing.result import JUDGED
from owkg.errors import ArgumentError
from owkg.estimation import DrawnPool
from owkg.estimation.correlation import judged_correlations
from owkg.estimation.drawing import Unit
from owkg.estimation.estimate import missing_answers
from owkg.estimation.judged import judged_units, labels_of
from owkg.estimation.missing_share import Missing
from owkg.pools.design import Design

_POINTS = 9  # points in a range of sparsities


class DrawnJudgements(NamedTuple):
    """A drawn pool with its judgements.

    Attributes:
        pool: pool with its design.
        judged: judgements of the drawn candidates.
    """

    pool: DrawnPool
    judged: pl.DataFrame


class Shown(NamedTuple):
    """Results of a drawn pool for the queries of an audit.

    Attributes:
        missing: share of missing answers in the pool; None if it cannot be estimated.
        correlations: (low, high) of each pooled system over the stated sparsities; empty if the design does
            not allow it or no range of sparsities is stated.
        why: reason why something cannot be estimated, as a sentence; "" otherwise.
    """

    missing: Missing | None
    correlations: dict[str, tuple[float, float]]
    why: str


def shown_by(
    ready: Prepared, drawn: DrawnJudgements, sparsity: tuple[float, float] | None, ci: float
) -> Shown:
    """Sparsity and correlations by the inference of the design of a drawn pool.

    The pool must have the queries of the audit. Its share of missing answers is estimated. More answers may
    be missing below the pool, so the lower limit of this share is a lower bound of the sparsity. Correlations
    of the pooled systems follow if whole queries were drawn and a range of the sparsity is stated.
    """
    people = drawn.pool.people
    if set(people.queries["query"]) != set(ready.queries["query"]):
        return Shown(None, {}, "The drawn pool has other queries than the systems: it gives only labels.")
    try:
        found = missing_answers(drawn.pool, drawn.judged, ci)
    except ArgumentError as error:
        return Shown(None, {}, f"The drawn judgements give only labels: they {error.message}")
    if found is None:
        return Shown(None, {}, "Drawn prefixes give no sparsity, only labels.")
    if drawn.pool.drawing.unit is not Unit.QUERIES or sparsity is None or ready.depth is None:
        return Shown(found, {}, "")
    return Shown(found, _correlations(ready, drawn, sparsity, found, ci), "")


def _correlations(
    ready: Prepared, drawn: DrawnJudgements, sparsity: tuple[float, float], found: Missing, ci: float
) -> dict[str, tuple[float, float]]:
    """Limits of the correlation of each pooled system, over the stated sparsities that judging allows."""
    low, high = max(sparsity[0], found.low, 1e-6), sparsity[1]
    if low > high:
        return {}
    people, drawing = drawn.pool.people, drawn.pool.drawing
    labels = labels_of(drawn.pool, drawn.judged)
    units, _ = judged_units(drawing, people, labels)
    rows = np.sort(drawing.frame[units])
    seen = judged_correlations(people, labels, drawing.sample(rows), np.linspace(low, high, _POINTS), ci)
    queries = people.queries[rows]["query"]
    limits = {}
    for name, lows, highs in zip(people.models, seen.low, seen.high, strict=True):
        if name in ready.systems and np.isfinite(lows).all() and _was_pooled(ready, name, drawn, queries):
            limits[name] = (float(lows.min()), float(highs.max()))
    return limits


def _was_pooled(ready: Prepared, system: str, drawn: DrawnJudgements, queries: pl.Series) -> bool:
    """Whether the first candidate of a system's list is judged in each of some queries."""
    first = ready.of(system)[1].filter(pl.col("place") == 1, pl.col("query").is_in(queries.implode()))
    judged = pl.concat([drawn.judged, drawn.pool.known], how="diagonal_relaxed")
    judged = judged.filter(pl.col("relevance") >= 0)
    return first.join(judged, on=["query", "answer"], how="anti").is_empty()


def judged_rows(ready: Prepared, drawn: DrawnJudgements, shown: Shown) -> pl.DataFrame:
    """One row for each system: judged and found answers, and the share of missing answers."""
    found = shown.missing
    if found is None:
        return pl.DataFrame(schema=JUDGED)
    rows = [
        {
            "model": name,
            "queries": drawn.judged["query"].n_unique(),
            "known": found.known,
            "found": round(found.found[0]),  # in the pool, estimated
            "design": str(Design.DRAWN),
            "sparsity": found.value,
            "sparsity_low": found.low,
            "correlation_low": shown.correlations.get(name, (None, None))[0],
            "correlation_high": shown.correlations.get(name, (None, None))[1],
        }
        for name in ready.systems
    ]
    return pl.DataFrame(rows, pl.Schema(JUDGED))
