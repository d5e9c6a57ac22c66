"""Predictions of theory for the sparse test of a trained model, from its metric on the full test.

The theory describes a model by one number, its strength: the probability that it classifies an answer as
positive. Positives rank before all other candidates, in random order. Facts are missing independently. A
query whose answers are all missing is left out, as in the resamples of `owkg.simulate`.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from owkg import checks
from owkg.rank_weights import RankWeight, tie_expectation
from owkg.rank_weights.registry import checked_metric
from owkg.theory import covariance, moments


class Predicted(NamedTuple):
    """Moments of the mean over the queries with an answer left; arrays of one shape.

    Attributes:
        mean: exact for each query; for their mean, exact up to terms of one over the number of queries.
        variance: to first order in the number of queries left. It covers the missing facts and the order in
            which the model puts the candidates; resamples of fixed scores vary only by the missing facts.
    """

    mean: Any
    variance: Any


def measured_strength(metric: RankWeight, value: Any, num_answers: Any, num_entities: Any) -> Any:
    """Strength at which theory gives `value` on the full test, where no fact is missing.

    A positive answer then ranks first and a negative one uniformly on 1 .. n, n = num_entities - N + 1, so
    that the metric is l h(1) + (1 - l) c, with c the mean of h over 1 .. n, and

        l = (value - c) / (h(1) - c).

    For MRR, c is about log(n) / n, so that the strength is close to the value.

    Args:
        metric: rank metric.
        value: mean over the queries of the metric of a model on the full test, any shape.
        num_answers: N of each query, [queries], or one number.
        num_entities: number of candidates before filtering.

    Returns:
        Strengths in the shape of `value`; below 0 if a model is worse than random ranking.

    Raises:
        ValueError: if an argument is out of range, or the metric weighs all ranks equally.

    Examples:
        >>> from owkg.rank_weights import rank_weight
        >>> round(float(measured_strength(rank_weight("mrr"), 0.4, [3, 5, 5], 5000)), 4)
        0.3989
    """
    checked_metric(metric)
    read = checks.real("value", value, -np.inf, np.inf)
    answers, counts, entities = _queries(num_answers, num_entities)
    last = entities - answers + 1
    chance = tie_expectation(metric, np.ones_like(last), last) @ counts / counts.sum()
    best = tie_expectation(metric, np.ones(1, np.int64), np.ones(1, np.int64))[0]
    if best == chance:
        raise ValueError(f"`metric` must tell ranks apart, got {metric.name!r}, the same for all ranks.")
    return ((read - chance) / (best - chance))[()]


def predicted(
    metric: RankWeight, strength: Any, sparsity: Any, num_answers: Any, num_entities: Any
) -> Predicted:
    """Mean and variance of a metric on the sparse test by the strength of the model.

    A share of 1 - sparsity^N of the queries with N answers is left, and weighs in the mean.

    Args:
        metric: rank metric.
        strength: strength of the model in [0, 1], any shape.
        sparsity: share of missing answers in (0, 1); broadcasts with `strength`.
        num_answers: N of each query of the full test, [queries].
        num_entities: number of candidates before filtering.

    Raises:
        ValueError: if an argument is out of range.
    """
    answers, counts, entities = _queries(num_answers, num_entities)
    beta = _sparsity(sparsity)
    of_one = moments(
        metric,
        strength=np.asarray(strength)[..., None],
        sparsity=beta[..., None],
        num_answers=answers,
        num_entities=entities,
    )
    return _over_queries(of_one.expectation, of_one.variance, beta, answers, counts)


def predicted_inversions(
    metric: RankWeight, strength: Any, other_strength: Any, sparsity: Any, num_answers: Any, num_entities: Any
) -> Any:
    """Probability that the weaker of two models has the better metric on the sparse test.

    Both models miss the same facts and share nothing else. The mean over queries is taken to be normal.

    Args:
        metric: rank metric.
        strength: strength of one model in [0, 1], any shape.
        other_strength: strength of the other model.
        sparsity: share of missing answers in (0, 1).
        num_answers: N of each query of the full test, [queries].
        num_entities: number of candidates before filtering.

    Returns:
        Probabilities, in the shape to which strengths and sparsity broadcast; nan for equal strengths, and
        1/2 where the means do not differ.

    Raises:
        ValueError: if an argument is out of range.
    """
    answers, counts, entities = _queries(num_answers, num_entities)
    beta = _sparsity(sparsity)
    # The functions of theory check the strengths and name a wrong one.
    one, two = np.asarray(strength)[..., None], np.asarray(other_strength)[..., None]
    world = {"sparsity": beta[..., None], "num_answers": answers, "num_entities": entities}
    shared = covariance(metric, strength=one, other_strength=two, **world)
    first, second = (moments(metric, strength=l, **world) for l in (one, two))
    gap, variance = _over_queries(
        second.expectation - first.expectation,
        np.maximum(first.variance + second.variance - 2 * shared, 0),
        beta,
        answers,
        counts,
    )
    stronger = (np.sign(two - one) * (1 if metric.larger_is_better else -1))[..., 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        z = stronger * gap / np.sqrt(variance)
    wrong = np.where(gap == 0, 0.5, stats.norm.sf(z))
    return np.where(stronger == 0, np.nan, wrong)[()]


def _queries(num_answers: Any, num_entities: Any) -> tuple[np.ndarray, np.ndarray, int]:
    """Distinct numbers of answers, how many queries have each, and the number of entities."""
    answers = checks.integer("num_answers", num_answers, 1)
    entities = checks.whole("num_entities", num_entities, 2)
    checks.require("num_answers", answers, answers < entities, f"below `num_entities` ({entities})")
    different, counts = np.unique(answers, return_counts=True)
    return different, counts, entities


def _sparsity(sparsity: Any) -> np.ndarray:
    return checks.real("sparsity", sparsity, 0, 1, closed=False)


def _over_queries(
    expectation: Any, variance: Any, beta: np.ndarray, answers: np.ndarray, counts: np.ndarray
) -> Predicted:
    """Moments of the mean over the queries that are left, from the moments of one such query.

    The mean is a ratio, sum I M / sum I, where I is 1 if a query is left. To first order it varies as sum I
    (M - mean) / E[sum I], and each query adds p (V + d^2) - p^2 d^2, where d is the distance of its own mean.

    Args:
        expectation, variance: moments of a query that is left, [*grid, different].
        beta: sparsity, broadcasts with the grid.
        answers, counts: distinct numbers of answers, and how many queries have each, [different].
    """
    left = -np.expm1(answers * np.log(beta[..., None]))
    weight = counts * left
    total = weight.sum(-1)
    mean = (weight * expectation).sum(-1) / total
    distance = (expectation - mean[..., None]) ** 2
    spread = (weight * (variance + (1 - left) * distance)).sum(-1) / total**2
    return Predicted(mean, spread)
