"""Variance of metrics under a proxy: labels drawn independently with its probabilities."""

import numpy as np
from jaxtyping import Float

from owkg.estimation.measures import Measure, values
from owkg.estimation.population import UNKNOWN, Population
from owkg.estimation.prefixes import first_relevant, of_prefixes

DRAWS = 24
_QUERIES = 4000  # most queries; more change the mean of a variance little


def spread(
    of: Measure, people: Population, probabilities: Float[np.ndarray, "candidates"], *, seed: int = 0
) -> Float[np.ndarray, "systems systems"]:
    """Covariance of the values of a metric between systems under independent labels, mean over queries.

    For a micro metric, the value of a query is the sum over its answers minus the expected ratio times its
    number of answers, divided by the mean number of answers.

    Args:
        of: the metric.
        people: the population.
        probabilities: probability of each candidate, with known labels as 0 and 1.
        seed: seed of the simulated labels. Default 0.
    """
    random = np.random.default_rng(seed)
    size = len(people.queries)
    if size > _QUERIES:
        rows = np.sort(random.choice(size, _QUERIES, replace=False))
        chosen = np.zeros(size, bool)
        chosen[rows] = True
        probabilities = probabilities[chosen[people.query]]
        people = people.part(rows)
    is_open = people.label == UNKNOWN
    rows = np.flatnonzero(np.bincount(people.query[is_open], minlength=len(people.queries)))
    total = np.zeros((len(people.models),) * 2)
    if not len(rows):
        return total
    drawn = probabilities.copy()
    mean, products = np.zeros((len(people.models), len(rows))), np.zeros_like(total)
    for _ in range(DRAWS):
        drawn[is_open] = random.random(int(is_open.sum())) < probabilities[is_open]
        found = _scores(of, people, drawn, probabilities, rows)
        mean += found
        products += found @ found.T
    # Sums over draws and queries of squared deviations from the mean of each query.
    total = products - (mean @ mean.T) / DRAWS
    return total / (DRAWS - 1) / len(people.queries)


def prefix_spread(
    of: Measure,
    people: Population,
    probabilities: Float[np.ndarray, "candidates"],
    reached: Float[np.ndarray, "depth"],
    *,
    seed: int = 0,
) -> tuple[Float[np.ndarray, "systems systems"], float]:
    """Covariance as in `spread` for values from randomised prefixes, and judgements per drawn query.

    Args:
        of: a metric of the first relevant answer.
        people: the population.
        probabilities: probability of each candidate, with known labels as 0 and 1.
        reached: pi_r, the probability that rank r is within reach.
        seed: seed of the simulated labels and depths. Default 0.
    """
    assert of.first is not None
    random = np.random.default_rng(seed)
    rows = np.arange(len(people.queries))
    if len(rows) > _QUERIES:
        rows = np.sort(random.choice(rows, _QUERIES, replace=False))
    slot = people.slot[:, rows]
    expected = first_relevant(np.append(probabilities, 0.0)[slot]) @ of.first(people.depth)
    is_open = people.label == UNKNOWN
    asked = np.append(is_open, False)[slot]
    total, used = np.zeros((len(people.models),) * 2), 0
    for _ in range(DRAWS):
        labels = probabilities.copy()
        labels[is_open] = random.random(int(is_open.sum())) < probabilities[is_open]
        deep = (random.random((len(rows), 1)) < reached).sum(1)
        left = of_prefixes(of, people, labels, probabilities, rows, deep, reached) - expected
        total += left @ left.T
        seen = np.append(labels, 0.0)[slot]
        above = np.cumsum(seen, axis=-1) - seen > 0
        used += len(np.unique(slot[~above & (np.arange(people.depth) < deep[:, None]) & asked]))
    return total / DRAWS / len(rows), used / DRAWS / len(rows)


def _scores(
    of: Measure, people: Population, drawn: np.ndarray, expected: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    relevant = people.relevant(drawn)
    found = values(of, people, drawn, rows, relevant)
    if not of.micro:
        return found
    total = people.relevant(expected)
    share = values(of, people, expected, None, total).sum(1) / total.sum()
    return (found - share[:, None] * relevant[rows]) / total.mean()
