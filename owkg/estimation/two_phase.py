"""Two-phase judging: a cheap annotator judges all drawn queries, an expert judges some of them again.

The metric under the labels of the expert is regressed on the metric under the cheap labels. Nothing is
assumed about the errors of the cheap annotator, so poor labels only make intervals wider. The method also
serves AP, nDCG and filtered ranks.
"""

import numpy as np
from jaxtyping import Float, Int

from owkg import checks
from owkg.errors import ArgumentError
from owkg.estimation.measures import values
from owkg.estimation.population import Population
from owkg.estimation.regression import Fitted, Sample, fitted
from owkg.estimation.targets import (
    Limits,
    Prepared,
    centred,
    contrasts,
    floor_of,
    interval_limits,
    population_bounds,
    truths,
    with_exact,
    with_few_others,
)

LEAST_EXPERT = 20
"""Fewest queries that an expert must judge, because two slopes are fitted to them."""
_PRIOR = 40  # weight, in queries, of the shrinkage of the remaining share of variance towards 1


def two_phase(
    y: Float[np.ndarray, "targets n2"],
    cheap: Float[np.ndarray, "targets n1"],
    x: Float[np.ndarray, "covariates targets n1"],
    sample: Sample,
    floor: Float[np.ndarray, "targets"],
    *,
    of_these: bool = True,
) -> Fitted:
    """Means of expert values over the population, with the help of cheap values of more queries.

    Let u be the cheap values minus their regression on the covariates; their mean over the population is
    estimated. The expert values y are regressed on u minus this mean and on the covariates. With the slope b
    of u and the residuals e, the variance is s_e^2 (1/n2 - 1/N) + (b^2 s_u^2 + 2 b s_eu) (1/n1 - 1/N), in
    each stratum.

    Args:
        y: values under the labels of the expert, of the first n2 drawn queries.
        cheap: values under the labels of the cheap annotator, of all n1 drawn queries.
        x: covariates of the n1 queries minus their means over the population.
        sample: the n1 queries, in the order of the draw; its first n2 must come from all strata.
        floor: variance of each target under the proxy.
        of_these: True (default): the means are over this population; False: over a larger one from which this
            population is itself a random sample.

    Raises:
        ValueError: if there are more expert values than cheap ones, or fewer than two in a stratum.

    Source: Cochran (1977), "Sampling techniques", chapter 12, on double sampling for regression.
    """
    n2, n1 = y.shape[1], cheap.shape[1]
    if n2 > n1:
        raise ArgumentError("y", f"must have at most the {n1} queries of `cheap`, got {n2}.")
    expert = _first(sample, n2)
    if expert.drawn.min() < 2:
        raise ArgumentError("y", f"must have at least two queries in each stratum, got {expert.drawn.min()}.")
    nothing = np.zeros(len(y))
    first = fitted(cheap, x, sample, nothing, of_these=of_these)
    rest = cheap - _predicted(cheap, x, sample)
    u = (rest - first.mean[:, None])[:, :n2]
    both = np.concatenate([u[None], x[..., :n2]])
    left = _share_left(y, u, x[..., :n2], expert)
    second = fitted(y, both, expert, floor * left, of_these=of_these)
    slope = _slopes(y, both, expert)[:, 0]
    error = y - _predicted(y, both, expert)
    size = sample.sizes / sample.sizes.sum()
    less = 1 / sample.drawn - (1 / sample.sizes if of_these else 0.0)
    with_error = 2 * slope * (_covariances(error, u, expert) @ (size**2 * less))
    more = np.maximum(slope**2 * first.variance + with_error, 0.0)
    variance = second.variance + more
    parts = second.variance**2 / second.freedom + more**2 / first.freedom
    freedom = np.where(parts > 0, variance**2 / np.where(parts > 0, parts, 1.0), second.freedom)
    return Fitted(second.mean, variance, freedom, second.r)


def of_two_phases(
    ready: Prepared,
    people: Population,
    cheap: Int[np.ndarray, "candidates"],
    expert: Int[np.ndarray, "candidates"],
    sample: Sample,
    count: int,
    *,
    pairs: bool = True,
    of_these: bool = True,
) -> Fitted:
    """Means of a metric for all systems and pairs under the labels of an expert.

    Args:
        ready: result of `prepared`.
        people: the population, with the labels that were known before the draw.
        cheap: labels by the cheap annotator of the candidates of all drawn queries.
        expert: labels by the expert of the candidates of the first `count` drawn queries.
        sample: the drawn queries, in the order of the draw.
        count: n2, the number of queries that the expert judged.
        pairs: whether pairs are estimated. Default True.
        of_these: True (default): the values are for these queries; False: for queries like these.

    Raises:
        ValueError: if the expert judged fewer than 20 queries, or more than were drawn.
    """
    n2 = checks.whole("count", count, LEAST_EXPERT)
    if n2 > len(sample.rows):
        raise ArgumentError("count", f"must be at most the {len(sample.rows)} drawn queries, got {n2}.")
    return _phases(ready, people, cheap, expert, sample, n2, pairs=pairs, of_these=of_these)[0]


def expert_limits(
    ready: Prepared,
    people: Population,
    cheap: Int[np.ndarray, "candidates"],
    expert: Int[np.ndarray, "candidates"],
    sample: Sample,
    count: int,
    *,
    level: float = 0.95,
    pairs: bool = True,
    of_these: bool = True,
) -> Limits:
    """Wilson's and Student's limits of a metric for all systems and pairs under the labels of an expert.

    If the expert changed fewer than `FEW_CHANGES` of the queries, the limits are widened by exact limits from
    these queries.

    Args: as `of_two_phases`, and
        level: confidence level of the intervals. Default 0.95.

    Raises:
        ValueError: as `of_two_phases`.
    """
    n2 = checks.whole("count", count, LEAST_EXPERT)
    fit, change = _phases(ready, people, cheap, expert, sample, n2, pairs=pairs, of_these=of_these)
    systems = len(people.models)
    to = contrasts(systems, pairs=pairs)
    least, most = population_bounds(to, ready)
    limits = interval_limits(fit, systems, least, most, level, n2)
    first = _first(sample, n2)
    limits = with_exact(limits, to, np.abs(to @ change) > 1e-12, ready, first, level)
    return with_few_others(limits, to, to @ (change + ready.before[:, first.rows]), ready, first, level)


def _phases(
    ready: Prepared,
    people: Population,
    cheap: np.ndarray,
    expert: np.ndarray,
    sample: Sample,
    count: int,
    *,
    pairs: bool,
    of_these: bool,
) -> tuple[Fitted, Float[np.ndarray, "systems n2"]]:
    """Means of the targets, and the change of the values of each system by the expert."""
    to = contrasts(len(people.models), pairs=pairs)
    chosen = _first(sample, count)
    found, relevant = _valued(ready, people, expert, chosen)
    y, ratio, covered = centred(ready, found, relevant, chosen)
    v, _, _ = centred(ready, *_valued(ready, people, cheap, sample), sample)
    x = np.einsum("ts,ksn->ktn", to, ready.x[:, :, sample.rows])
    fit = two_phase(to @ y, to @ v, x, sample, floor_of(ready, to), of_these=of_these)
    fit = fit._replace(mean=fit.mean + to @ ratio, freedom=np.minimum(fit.freedom, covered))
    return fit, found - ready.before[:, chosen.rows]


def _first(sample: Sample, count: int) -> Sample:
    return Sample(sample.rows[:count], sample.stratum[:count], sample.sizes)


def _valued(
    ready: Prepared, people: Population, labels: np.ndarray, sample: Sample
) -> tuple[Float[np.ndarray, "systems n"], Float[np.ndarray, "n"]]:
    """Values of drawn queries under given labels, and their numbers of relevant answers."""
    relevant = people.relevant(truths(labels))
    return values(ready.of, people, truths(labels), sample.rows, relevant), relevant[sample.rows]


def _slopes(y: np.ndarray, x: np.ndarray, sample: Sample) -> Float[np.ndarray, "targets covariates"]:
    """Slopes of least squares with an intercept, weighted by the strata."""
    weight = sample.weights
    table = np.moveaxis(x, 0, -1)
    cx = table - np.einsum("tnk,n->tk", table, weight)[:, None, :]
    cy = y - (y @ weight)[:, None]
    gram = np.einsum("tnk,tnl,n->tkl", cx, cx, weight)
    return np.einsum(
        "tkl,tl->tk", np.linalg.pinv(gram, hermitian=True), np.einsum("tnk,tn,n->tk", cx, cy, weight)
    )


def _predicted(y: np.ndarray, x: np.ndarray, sample: Sample) -> Float[np.ndarray, "targets n"]:
    """Prediction of y by the covariates, without the intercept."""
    return np.einsum("tk,ktn->tn", _slopes(y, x, sample), x)


def _share_left(y: np.ndarray, u: np.ndarray, x: np.ndarray, sample: Sample) -> Float[np.ndarray, "targets"]:
    """Share of the variance left by the proxy that cheap labels leave too, shrunk towards 1."""
    own = y - _predicted(y, x, sample)
    both = y - _predicted(y, np.concatenate([u[None], x]), sample)
    n = y.shape[1]
    before, after = (
        _covariances(one, one, sample) @ (sample.sizes / sample.sizes.sum()) for one in (own, both)
    )
    share = np.where(before > 0, after / np.where(before > 0, before, 1.0), 1.0)
    return np.minimum((n * share + _PRIOR) / (n + _PRIOR), 1.0)


def _covariances(a: np.ndarray, b: np.ndarray, sample: Sample) -> Float[np.ndarray, "targets strata"]:
    """Covariances within each stratum."""
    member = (sample.stratum[:, None] == np.arange(len(sample.sizes))).astype(float)
    count = sample.drawn
    means = [(one @ member / count)[:, sample.stratum] for one in (a, b)]
    return ((a - means[0]) * (b - means[1])) @ member / np.maximum(count - 1, 1)
