"""Best rank weights that do not rise: fitted on the ranks of two systems, and tested on other queries."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, Real
from numpy.typing import ArrayLike
from scipy import special

from owkg.rank_weights.focus import best_decreasing, focus_of_bins

# Last ranks of the bins in each decade.
_ENDS = (1, 1.4, 2, 3, 4, 5, 7)


class Fitted(NamedTuple):
    """Best weight for each least focus.

    Attributes:
        focus: focus of the weight; nan if no weight puts the first system ahead.
        required_queries: required queries on the queries that the weight was fitted on; infinite if there is
            no weight.
        held_out: required queries for weights fitted on one half of the queries, measured on the other half.
        weights: h on each bin, with h(1) = 1, or all 0.
    """

    focus: Float[np.ndarray, "focuses"]
    required_queries: Float[np.ndarray, "focuses"]
    held_out: Float[np.ndarray, "focuses"]
    weights: Float[np.ndarray, "focuses bins"]


def bin_ends(last: int) -> Int[np.ndarray, "bins"]:
    """Last ranks of the bins of 1, ..., `last`: 1, 2, 3, 4, 5, 7, 10, 14, 20, 30, 40, ...: the usual K.

    Examples:
        >>> bin_ends(60).tolist(), len(bin_ends(14541))
        ([1, 2, 3, 4, 5, 7, 10, 14, 20, 30, 40, 50, 60], 30)
    """
    decades = 10.0 ** np.arange(len(str(last)))
    ends = np.round(np.outer(decades, _ENDS)).astype(np.int64).ravel()
    return np.unique(np.append(ends[ends < last], last))


def bin_changes(
    query: Int[np.ndarray, "answers"], ranks: Real[np.ndarray, "2 answers"], ends: Int[np.ndarray, "bins"]
) -> Float[np.ndarray, "queries bins"]:
    """Number of answers of each query in each bin of ranks: first system minus second system.

    A rank between two bins is in the later one, because a metric that is constant on the bins does the same.
    """
    at = query * len(ends) + np.searchsorted(ends, ranks)
    size = (int(query.max()) + 1) * len(ends)
    counts = [np.bincount(one, minlength=size) for one in at]
    return (counts[0] - counts[1]).reshape(-1, len(ends)) * 1.0


def fitted_weights(
    change: Float[np.ndarray, "queries bins"],
    ends: Int[np.ndarray, "bins"],
    least: Float[np.ndarray, "focuses"],
    inconsistency: float,
    seed: int,
) -> Fitted:
    """Best weights for given changes of counts and a tolerated inconsistency.

    Args:
        change: difference of the counts of answers, as from `bin_changes`.
        ends: last rank of each bin.
        least: least focuses.
        inconsistency: tolerated probability that the weaker system looks better.
        seed: seed of the split of the queries into halves.
    """
    order = np.random.default_rng(seed).permutation(len(change))
    halves = [_moments(change[part]) for part in np.array_split(order, 2)]
    whole = _together(*halves)
    weights, *own = (_weights(one, ends, least) for one in (whole, *halves))
    held_out = []
    for half, other, of_half in zip(halves, halves[::-1], own, strict=True):
        # Divided by its own spread, so that neither half outweighs the other.
        spread = np.sqrt(half.scored(of_half).spread)
        held_out.append(other.scored(of_half / np.where(spread > 0, spread, 1.0)[:, None]))
    fit, other = whole.scored(weights), _together(*held_out)
    return Fitted(
        np.array([focus_of_bins(one, ends) for one in weights]),
        queries_for_consistency(fit.mean, fit.spread, inconsistency),
        queries_for_consistency(other.mean, other.spread, inconsistency),
        weights,
    )


def queries_for_consistency(gain: ArrayLike, variance: ArrayLike, inconsistency: ArrayLike) -> Any:
    """Queries after which the mean score is above 0 except with probability `inconsistency`.

    The mean score is taken to be normal. Arguments are numbers, or arrays that broadcast. The result is
    infinite if the mean of the score, `gain`, is not above 0.
    """
    ahead = np.greater(gain, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = special.ndtri(inconsistency) ** 2 * variance / np.where(ahead, gain, 1.0) ** 2
    return np.where(ahead, np.maximum(np.ceil(needed), 1.0), np.inf)[()]


class _Moments(NamedTuple):
    """Moments over queries: means and covariance of the changes of bins, or means and variances of scores."""

    queries: int
    mean: np.ndarray
    spread: np.ndarray

    def scored(self, weights: Float[np.ndarray, "scores bins"]) -> "_Moments":
        """Moments of the scores that weights make of the bins."""
        variance = np.einsum("sb,bc,sc->s", weights, self.spread, weights, optimize=True)
        return _Moments(self.queries, np.dot(weights, self.mean), np.maximum(variance, 0.0))


def _moments(change: Float[np.ndarray, "queries bins"]) -> _Moments:
    mean = change.mean(0)
    away = change - mean
    return _Moments(len(change), mean, away.T @ away / (len(change) - 1))


def _together(first: _Moments, second: _Moments) -> _Moments:
    """Moments of bins, or of scores, over the queries of both halves."""
    queries = first.queries + second.queries
    mean = (first.queries * first.mean + second.queries * second.mean) / queries

    def squares(n: int, own: np.ndarray, spread: np.ndarray) -> np.ndarray:
        away = own - mean
        return (n - 1) * spread + n * (away**2 if spread.ndim == 1 else np.outer(away, away))

    return _Moments(queries, mean, (squares(*first) + squares(*second)) / (queries - 1))


def _weights(
    moments: _Moments, ends: Int[np.ndarray, "bins"], least: Float[np.ndarray, "focuses"]
) -> Float[np.ndarray, "focuses bins"]:
    """Best weight for each focus; 0 on the last bin, because equal weights on all ranks separate nothing."""
    mean, spread = moments.mean[:-1], moments.spread[:-1, :-1]
    found = [best_decreasing(mean, spread, ends[:-1], float(one)) for one in least]
    return np.pad(found, ((0, 0), (0, 1)))
