"""Limits that hold whatever the labels of open candidates are, if judged units leave gaps.

Which units are skipped may depend on their answers, so the judged units alone are not a random sample. The
drawn units up to the last judged one are a random sample, and bounds of their values are known: open
candidates count as wrong for one limit and as true for the other.
"""

import numpy as np
from jaxtyping import Float, Int

from owkg.estimation.measures import bounds
from owkg.estimation.population import UNKNOWN, Population
from owkg.estimation.regression import Sample
from owkg.estimation.targets import (
    Limits,
    Prepared,
    centred,
    contrasts,
    fitted_targets,
    interval_limits,
    population_bounds,
    with_exact,
    with_few_others,
)

Labels = Int[np.ndarray, "candidates"]


def extreme_labels(
    labels: Labels, added: Float[np.ndarray, "targets candidates"]
) -> tuple[Float[np.ndarray, "targets candidates"], Float[np.ndarray, "targets candidates"]]:
    """Labels that minimise, and labels that maximise, the sums of what candidates add.

    Args:
        labels: 1, 0 or `UNKNOWN`.
        added: what each candidate adds to each target if it is relevant.
    """
    is_open, known = labels == UNKNOWN, np.maximum(labels, 0).astype(np.float64)
    return np.where(is_open, added < 0, known) * 1.0, np.where(is_open, added > 0, known) * 1.0


def of_open_queries(
    ready: Prepared,
    people: Population,
    labels: Labels,
    sample: Sample,
    *,
    level: float = 0.95,
    pairs: bool = True,
    of_these: bool = True,
) -> Limits:
    """Limits of a metric for all systems and pairs, from drawn queries with open candidates.

    The lower limit comes from the interval for the smallest possible values, the upper limit from the
    interval for the largest possible values. There is no estimate: the value is NaN.

    Args:
        ready: result of `prepared`.
        people: the population, with the labels that were known before the draw.
        labels: labels of the candidates of drawn queries, `UNKNOWN` if open. Labels of other candidates are
            ignored.
        sample: the drawn queries, including queries with open candidates.
        level: confidence level of the intervals. Default 0.95.
        pairs: whether pairs are estimated. Default True.
        of_these: True (default): the values are for these queries; False: for queries like these.

    Source: Manski (2003), "Partial identification of probability distributions", chapter 1, for bounds
    without assumptions about missing labels.
    """
    systems = len(people.models)
    to = contrasts(systems, pairs=pairs)
    plus, minus = np.maximum(to, 0), np.maximum(-to, 0)
    now = people._replace(label=labels)
    low, high = (one[:, sample.rows] for one in bounds(ready.of, now))
    few, many = (
        np.maximum(people.relevant(mask.astype(float))[sample.rows], 1e-12)
        for mask in (labels == 1, labels != 0)
    )
    bottom, bottom_ratio, covered = centred(ready, low, many, sample)
    top, top_ratio, covered_too = centred(ready, high, few, sample)
    x = np.einsum("ts,ksn->ktn", to, ready.x[:, :, sample.rows])
    least, most = population_bounds(to, ready)
    before = ready.before[:, sample.rows]
    change = np.maximum(np.abs(low - before), np.abs(high - before))

    def limits(y: np.ndarray, ratio: np.ndarray) -> Limits:
        fit = fitted_targets(ready, y, x, sample, to, of_these=of_these)
        freedom = np.minimum(fit.freedom, min(covered, covered_too))
        fit = fit._replace(mean=fit.mean + ratio, freedom=freedom)
        if of_these and len(sample.rows) == len(ready.is_open):
            return interval_limits(fit, 0, least, most, level, len(sample.rows))
        found = interval_limits(fit, systems, least, most, level, len(sample.rows))
        # A query where a pair is equal may still have changed in either system of the pair.
        found = with_exact(found, to, np.abs(to) @ change > 1e-12, ready, sample, level)
        return with_few_others(found, to, y, ready, sample, level)

    lower = limits(plus @ bottom - minus @ top, plus @ bottom_ratio - minus @ top_ratio)
    upper = limits(plus @ top - minus @ bottom, plus @ top_ratio - minus @ bottom_ratio)
    nothing = np.full(len(to), np.nan)
    return lower._replace(
        value=nothing, high=upper.high, method=["bounds"] * len(to), r=nothing, variance=nothing
    )
