"""Correlations between missing and retrieved answers, from completely judged queries that were drawn."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from owkg.estimation.population import UNKNOWN, Population
from owkg.estimation.regression import Fitted, Sample, fitted, t_quantile
from owkg.openworld import feasible_correlation

_INSIDE = 1 - 1e-9  # largest absolute correlation that is taken to Fisher's scale


class Correlations(NamedTuple):
    """Correlation between "missing" and "retrieved" for each system at each sparsity.

    Attributes:
        value, low, high: estimates and limits of their intervals; NaN if a system retrieves no answer, or
            all.
    """

    value: Float[np.ndarray, "systems sparsities"]
    low: Float[np.ndarray, "systems sparsities"]
    high: Float[np.ndarray, "systems sparsities"]


def retrieved_answers(
    people: Population, labels: Float[np.ndarray, "candidates"], rows: Int[np.ndarray, "n"]
) -> Float[np.ndarray, "2 systems n"]:
    """Numbers of missing and of known answers that lead each list, that is, with no wrong answer above them.

    Both numbers are multilinear in the labels, so under independent probabilities they are expectations.

    Args:
        people: the population.
        labels: 1, 0, or probabilities.
        rows: rows of the queries.
    """
    slot = people.slot[:, rows]
    leads = np.cumprod(np.append(labels, 0.0)[slot], axis=-1)
    missing = np.append(people.label == UNKNOWN, False)[slot]
    return np.stack([(leads * missing).sum(-1), (leads * ~missing).sum(-1)])


def judged_correlations(
    people: Population,
    labels: Int[np.ndarray, "candidates"],
    sample: Sample,
    sparsities: Float[np.ndarray, "sparsities"],
    level: float = 0.95,
) -> Correlations:
    """Correlations between "missing" and "retrieved" by assumed share of missing answers.

    With S known answers and sparsity beta, S beta / (1 - beta) answers are missing, in the pool or below it.
    The pool shows those missing answers that lead a list. The shares l1 of the missing and l2 of the known
    answers that are retrieved therefore follow for each beta, and rho = (l1 - l2) sqrt(beta (1 - beta) / (l
    (1 - l))) with l = beta l1 + (1 - beta) l2. Variances are by the delta method over queries, and limits are
    on Fisher's scale. No proxy is used: with one, intervals are half as wide but cover only 0.90 instead of
    0.95 at 50 to 100 queries.

    Args:
        people: the population.
        labels: 1, 0 or `UNKNOWN`; no candidate of a drawn query may be unknown.
        sample: the queries, drawn and completely judged.
        sparsities: shares of the true answers that are missing, in (0, 1).
        level: confidence level of the intervals. Default 0.95.

    References:
        Yang, Lin, Zhang (NeurIPS 2022), Section 4.3.
    """
    size = len(people.queries)
    known = float((people.label == 1).sum() + people.outside.sum()) / size
    found = retrieved_answers(people, np.maximum(labels, 0).astype(np.float64), sample.rows)
    both = _means(found.reshape(-1, len(sample.rows)), sample).mean.reshape(*found.shape[:2], 1)
    slopes, value = _slopes(both[0], both[1], known, np.asarray(sparsities, np.float64))
    each = np.einsum("jsb,jsn->sbn", slopes, found).reshape(-1, len(sample.rows))
    fit = Fitted(*(one.reshape(value.shape) for one in _means(each, sample)))
    return _limits(value, fit, level, sparsities, both, known)


def _slopes(
    missing: Float[np.ndarray, "systems 1"],
    retrieved: Float[np.ndarray, "systems 1"],
    known: float,
    beta: Float[np.ndarray, "sparsities"],
) -> tuple[Float[np.ndarray, "2 systems sparsities"], Float[np.ndarray, "systems sparsities"]]:
    """Derivatives of the correlation by the retrieved missing and known answers of a query, and its value."""
    total = known / (1 - beta)
    odds = np.sqrt(beta * (1 - beta))
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = missing / (total * beta) - retrieved / known
        strength = (missing + retrieved) / total
        scale = odds / np.sqrt(strength * (1 - strength))
        turn = -gap * scale * (1 - 2 * strength) / (2 * strength * (1 - strength)) / total
        slopes = np.stack([scale / (total * beta) + turn, -scale / known + turn])
        return np.nan_to_num(slopes), gap * scale


def _means(y: Float[np.ndarray, "targets n"], sample: Sample) -> Fitted:
    """Means over the population, without covariates."""
    return fitted(y, np.zeros((0, *y.shape)), sample, np.zeros(len(y)))


def _limits(
    value: Float[np.ndarray, "systems sparsities"],
    fit: Fitted,
    level: float,
    beta: Float[np.ndarray, "sparsities"],
    both: Float[np.ndarray, "2 systems 1"],
    known: float,
) -> Correlations:
    """Limits on Fisher's scale, clipped to the feasible correlations at the strength."""
    half = t_quantile(fit.freedom, level) * np.sqrt(fit.variance)
    inside = np.clip(value, -_INSIDE, _INSIDE)
    ends = np.tanh(np.arctanh(inside) + np.stack([-half, half]) / (1 - inside**2))
    strength = np.clip((both[0] + both[1]) * (1 - beta) / known, 0, 1)
    least, most = feasible_correlation(strength, np.broadcast_to(beta, strength.shape))
    low, high = (np.where(np.isfinite(value), np.clip(one, least, most), np.nan) for one in ends)
    return Correlations(np.clip(value, -1, 1), low, high)
