"""The variance that a proxy itself leaves: labels drawn independently with its probabilities."""

import numpy as np
from jaxtyping import Float

from owkg.estimation.measures import Measure, values
from owkg.estimation.population import UNKNOWN, Population

DRAWS = 24
_QUERIES = 4000  # more of them change the mean of a variance little


def spread(
    of: Measure, people: Population, probabilities: Float[np.ndarray, "candidates"], *, seed: int = 0
) -> Float[np.ndarray, "systems systems"]:
    """Mean over the queries of the covariance of a metric's values between systems, under independent labels.

    For a micro metric the values are sums over answers minus the expected ratio times the answers, over the
    mean
    number of answers.

    Args:
        of: the metric.
        people: the population.
        probabilities: of each candidate; known labels as 0 and 1.
        seed: of the draws.
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
    # The sums over draws and queries of squares around each query's own mean.
    total = products - (mean @ mean.T) / DRAWS
    return total / (DRAWS - 1) / len(people.queries)


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
