"""Randomised prefixes: lists judged from the top down to a random depth or their first relevant answer."""

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from owkg.estimation.measures import Measure, none_before
from owkg.estimation.population import UNKNOWN, Population

SURE = 3
"""Depth to which every drawn query is judged."""
BEYOND = 0.34
"""Probability that a drawn query is judged below this depth."""


def reach(depth: int, *, sure: int = SURE, beyond: float = BEYOND) -> Float[np.ndarray, "depth"]:
    """pi_r: the probability that rank r of a drawn query is within reach."""
    return np.where(np.arange(1, depth + 1) <= sure, 1.0, beyond)


def first_relevant(rels: Float[np.ndarray, "*lists depth"]) -> Float[np.ndarray, "*lists depth"]:
    """P(the first relevant answer is at rank r), for labels, probabilities or corrected labels."""
    return rels * none_before(rels)


def needed(
    people: Population,
    labels: Int[np.ndarray, "candidates"],
    rows: Int[np.ndarray, "n"],
    deep: Int[np.ndarray, "n"],
) -> Bool[np.ndarray, "candidates"]:
    """Mask of the candidates whose labels are still needed, given the labels so far.

    A list needs the labels of its answers from the top down to the depth of its query or to its first
    relevant answer. Unknown answers count as not relevant, so the mask holds every candidate that may still
    be needed.

    Args:
        people: the population.
        labels: 1, 0 or `UNKNOWN`.
        rows: rows of the drawn queries.
        deep: depth to which each drawn query may be judged.
    """
    slot = people.slot[:, rows]
    label = np.append(labels, 0)[slot]
    found = np.cumsum(label == 1, axis=-1) - (label == 1) > 0  # a relevant answer is above
    wanted = (
        ~found & (np.arange(people.depth) < deep[:, None]) & (label == UNKNOWN) & (slot < len(people.answers))
    )
    chosen = np.zeros(len(people.answers), bool)
    chosen[slot[wanted]] = True
    return chosen


def of_prefixes(
    of: Measure,
    people: Population,
    labels: Shaped[np.ndarray, "candidates"],
    probabilities: Float[np.ndarray, "candidates"],
    rows: Int[np.ndarray, "n"],
    deep: Int[np.ndarray, "n"],
    reached: Float[np.ndarray, "depth"],
) -> Float[np.ndarray, "systems n"]:
    """Unbiased values of a metric of the first relevant answer, one for each drawn query and system.

    The value is the sum over r of w_r [p_r + 1{L >= r} / pi_r (1{first = r} - p_r)].

    Args:
        of: the metric, RR or Success.
        people: the population.
        labels: labels of the candidates; labels below a prefix are ignored.
        probabilities: probabilities of the free proxy, with known labels as 0 and 1.
        rows: rows of the drawn queries.
        deep: L, the depth of each drawn query.
        reached: pi_r.
    """
    assert of.first is not None
    expected, found, within = _firsts(people, labels, probabilities, rows, deep)
    return (expected + within / reached * (found - expected)) @ of.first(people.depth)


def cut_variance(
    of: Measure,
    people: Population,
    labels: Shaped[np.ndarray, "candidates"],
    probabilities: Float[np.ndarray, "candidates"],
    rows: Int[np.ndarray, "n"],
    deep: Int[np.ndarray, "n"],
    reached: Float[np.ndarray, "depth"],
    to: Float[np.ndarray, "targets systems"],
) -> Float[np.ndarray, "targets n"]:
    """Unbiased variance of each value of `of_prefixes` that is due to the random depth.

    This is the Horvitz-Thompson estimate of the variance: the sum over r and s of d_r d_s (pi_m / (pi_r pi_s)
    - 1) 1{L >= m} / pi_m, where m is the deeper of r and s, and d_r = w_r (1{first = r} - p_r).

    Args: as `of_prefixes`, and
        to: rows of `owkg.estimation.targets.contrasts`.
    """
    assert of.first is not None
    expected, found, within = _firsts(people, labels, probabilities, rows, deep)
    each = np.einsum("ts,snr->tnr", to, within * (found - expected) * of.first(people.depth))
    deeper, other = np.minimum.outer(reached, reached), np.maximum.outer(reached, reached)
    return np.einsum("tnr,rs,tns->tn", each, (1 / other - 1) / deeper, each, optimize=True)


def _firsts(
    people: Population, labels: np.ndarray, probabilities: np.ndarray, rows: np.ndarray, deep: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P(first relevant answer at rank r) by the proxy, the same by labels, and the ranks in reach."""
    slot = people.slot[:, rows]
    expected = first_relevant(np.append(probabilities, 0.0)[slot])
    within = np.arange(people.depth) < deep[:, None]
    seen = np.where(within, np.append(np.maximum(labels, 0), 0.0)[slot], 0.0)
    return expected, first_relevant(seen), within
