"""Two-phase judging: all drawn queries by a cheap annotator, some of them by an expert as well.

Nothing is assumed of the cheap annotator's errors: the metric under the expert's labels is regressed on the
metric under the cheap ones, so poor labels cost width only. This serves AP, nDCG and filtered ranks too.
"""

import numpy as np
from jaxtyping import Float, Int

from owkg import checks
from owkg.errors import ArgumentError
from owkg.estimation.measures import values
from owkg.estimation.population import Population
from owkg.estimation.regression import Fitted, Sample, fitted
from owkg.estimation.targets import Prepared, contrasts, truths

LEAST_EXPERT = 20
"""The fewest queries that an expert must judge: two slopes are fitted to them."""
_PRIOR = 5  # queries by which the share of variance that cheap labels leave is drawn to 1


def two_phase(
    y: Float[np.ndarray, "targets n2"],
    cheap: Float[np.ndarray, "targets n1"],
    x: Float[np.ndarray, "covariates targets n1"],
    sample: Sample,
    floor: Float[np.ndarray, "targets"],
    *,
    of_these: bool = True,
) -> Fitted:
    """Means of an expert's values over the population, with the help of cheap values of more queries.

    The cheap values minus their regression on the covariates, u, have an estimated mean over the population.
    y is regressed on u minus this mean and on the covariates. With the slope b of u and the residuals e, the
    variance is s_e^2 (1/n2 - 1/N) + (b^2 s_u^2 + 2 b s_eu) (1/n1 - 1/N), in each stratum.

    Args:
        y: the expert's values of the first n2 drawn queries.
        cheap: the cheap annotator's values of all n1 drawn queries.
        x: covariates of these minus their means over the population.
        sample: the n1 queries, in the order in which they were drawn; its first n2 must be drawn from all
            strata.
        floor: variance of the values under the proxy, for each target.
        of_these: whether the population is meant, rather than queries like it.

    Raises:
        ValueError: if there are more expert values than cheap ones, or fewer than two of a stratum.

    Source: double sampling for regression, Cochran (1977), chapter 12.
    """
    n2, n1 = y.shape[1], cheap.shape[1]
    if n2 > n1:
        raise ArgumentError("y", f"must have at most the {n1} queries of `cheap`, got {n2}.")
    expert = Sample(sample.rows[:n2], sample.stratum[:n2], sample.sizes)
    if expert.drawn.min() < 2:
        raise ArgumentError("y", f"must have at least two queries of each stratum, got {expert.drawn.min()}.")
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
    """Means of a metric of all systems and pairs under an expert's labels.

    Args:
        ready: of `prepared`.
        people: the population, with the labels that were known before the draw.
        cheap: labels by the cheap annotator, of the candidates of all drawn queries.
        expert: labels by the expert, of the candidates of the first `count` drawn queries.
        sample: the drawn queries, in the order in which they were drawn.
        count: n2, how many of them the expert judged.
        pairs: whether pairs are estimated.
        of_these: whether these queries are meant, rather than queries like them.

    Raises:
        ValueError: if the expert judged fewer than 20 queries, or more than were drawn.
    """
    n2 = checks.whole("count", count, LEAST_EXPERT)
    if n2 > len(sample.rows):
        raise ArgumentError("count", f"must be at most the {len(sample.rows)} drawn queries, got {n2}.")
    to = contrasts(len(people.models), pairs=pairs)
    chosen = Sample(sample.rows[:n2], sample.stratum[:n2], sample.sizes)
    y, ratio, covered = _centred(ready, people, expert, chosen)
    v, _, _ = _centred(ready, people, cheap, sample)
    floor = np.maximum(np.einsum("ts,su,tu->t", to, ready.floor, to), 0)
    x = np.einsum("ts,ksn->ktn", to, ready.x[:, :, sample.rows])
    fit = two_phase(to @ y, to @ v, x, sample, floor, of_these=of_these)
    return fit._replace(mean=fit.mean + to @ ratio, freedom=np.minimum(fit.freedom, covered))


def _centred(
    ready: Prepared, people: Population, labels: np.ndarray, sample: Sample
) -> tuple[Float[np.ndarray, "systems n"], Float[np.ndarray, "systems"], float]:
    """Values; for a micro metric those of the ratio, linearised, the ratio, and what its answers count as
    queries."""
    relevant = people.relevant(truths(labels))
    found = values(ready.of, people, truths(labels), sample.rows, relevant)
    if not ready.of.micro:
        return found, np.zeros(len(found)), np.inf
    answers, weight = relevant[sample.rows], sample.weights
    mean = float(answers @ weight)
    ratio = found @ weight / mean
    covered = (weight * answers).sum() ** 2 / ((weight * answers) ** 2).sum() - len(sample.sizes)
    return (found - ratio[:, None] * answers) / mean, ratio, max(float(covered), 1.0)


def _slopes(y: np.ndarray, x: np.ndarray, sample: Sample) -> Float[np.ndarray, "targets covariates"]:
    """Least squares with an intercept, weighted by the strata."""
    weight = sample.weights
    table = np.moveaxis(x, 0, -1)
    cx = table - np.einsum("tnk,n->tk", table, weight)[:, None, :]
    cy = y - (y @ weight)[:, None]
    gram = np.einsum("tnk,tnl,n->tkl", cx, cx, weight)
    return np.einsum(
        "tkl,tl->tk", np.linalg.pinv(gram, hermitian=True), np.einsum("tnk,tn,n->tk", cx, cy, weight)
    )


def _predicted(y: np.ndarray, x: np.ndarray, sample: Sample) -> Float[np.ndarray, "targets n"]:
    """What the covariates say of y, without the intercept."""
    return np.einsum("tk,ktn->tn", _slopes(y, x, sample), x)


def _share_left(y: np.ndarray, u: np.ndarray, x: np.ndarray, sample: Sample) -> Float[np.ndarray, "targets"]:
    """The share of the variance that the proxy leaves which cheap labels leave as well, drawn to 1 by some
    queries."""
    own = y - _predicted(y, x, sample)
    both = y - _predicted(y, np.concatenate([u[None], x]), sample)
    n = y.shape[1]
    before, after = (
        _covariances(one, one, sample) @ (sample.sizes / sample.sizes.sum()) for one in (own, both)
    )
    share = np.where(before > 0, after / np.where(before > 0, before, 1.0), 1.0)
    return np.minimum((n * share + _PRIOR) / (n + _PRIOR), 1.0)


def _covariances(a: np.ndarray, b: np.ndarray, sample: Sample) -> Float[np.ndarray, "targets strata"]:
    """Of each stratum."""
    member = (sample.stratum[:, None] == np.arange(len(sample.sizes))).astype(float)
    count = sample.drawn
    means = [(one @ member / count)[:, sample.stratum] for one in (a, b)]
    return ((a - means[0]) * (b - means[1])) @ member / np.maximum(count - 1, 1)
