"""Numbers of missing answers, inferred from the numbers of known ones."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64
from scipy import special

# Numbers up to which each counts by itself; above, by steps of this share.
_EACH = 64
_STEP = 1.02
# Rounds of the fit, and steps of expectation and maximisation in each.
_ROUNDS = 12
_STEPS = 40
# Largest probability of going missing that is tried.
_MOST = 0.995


class Missing(NamedTuple):
    """How many answers are missing, given how many are known.

    Attributes:
        numbers: of missing answers, increasing from 0.
        chance: of each of them, by number of known answers; rows sum to 1.
        rate: probability that an answer is missing, of queries with and without known answers.
    """

    numbers: Int64[np.ndarray, "numbers"]
    chance: Float64[np.ndarray, "counts numbers"]
    rate: float


def missing_numbers(
    counts: Int64[np.ndarray, "counts"], queries: Float64[np.ndarray, "counts"], sparsity: float
) -> Missing:
    """The posterior of the number of missing answers to a query.

    Each answer is missing with one probability. So of a query with n answers, s are known: binomial, and
    above 0, for else it would not be asked. The distribution of n over queries is fitted to the known
    numbers without assuming its form (nonparametric maximum likelihood by EM; Laird 1978), the probability
    so that a share `sparsity` of all answers to the queries asked is missing.

    Args:
        counts: numbers of known answers, each once, at least 1.
        queries: how many queries, or what share of them, have so many.
        sparsity: in [0, 1).

    References:
        Laird (JASA 73, 1978), "Nonparametric maximum likelihood estimation of a mixing distribution".
    """
    order = np.argsort(counts)
    key = counts[order].astype(np.int64).tobytes(), (queries[order] / queries.sum()).tobytes()
    found = _fitted(*key, float(sparsity))
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return found._replace(chance=found.chance[back])


@lru_cache(maxsize=64)
def _fitted(counts_bytes: bytes, queries_bytes: bytes, sparsity: float) -> Missing:
    counts, queries = np.frombuffer(counts_bytes, np.int64), np.frombuffer(queries_bytes)
    if sparsity < 1e-5:
        return Missing(np.zeros(1, np.int64), np.ones((len(counts), 1)), 0.0)
    # Large numbers of known answers that are close count as one.
    label = np.where(counts <= _EACH, counts, np.round(np.log(np.maximum(counts, 1)) / np.log(_STEP)) + 10**6)
    _, group = np.unique(label, return_inverse=True)
    share = np.bincount(group, queries)
    known = np.maximum(np.round(np.bincount(group, queries * counts) / share), 1).astype(np.int64)
    most = int(known.max() / (1 - sparsity) * 1.5 + 40 / (1 - sparsity))
    whole = _grid(1, most)
    total = (queries * counts).sum() / (1 - sparsity)  # answers a query, known or missing
    rate, prior = sparsity, np.full(len(whole), 1 / len(whole))
    posterior = np.zeros((len(known), len(whole)))
    for _ in range(_ROUNDS):
        likelihood = _binomial(known[:, None], whole, 1 - rate)
        asked = -np.expm1(whole * np.log(rate))
        for _ in range(_STEPS):
            posterior = likelihood * prior
            posterior /= posterior.sum(1, keepdims=True)
            prior = share @ posterior / asked
            prior /= prior.sum()
        missing = (share @ posterior @ whole) - (share * known).sum()
        wanted = total - (queries * counts).sum()
        if abs(missing - wanted) < 1e-4 * wanted:
            break
        odds = rate / (1 - rate) * wanted / max(missing, 1e-9)
        rate = min(max(odds / (1 + odds), sparsity / 4), _MOST)
    # What the rate leaves open, where all queries know as many, say, is made up for by scaling.
    each = np.maximum(whole - known[:, None], 0) * min(max(wanted / max(missing, 1e-9), 0.25), 4.0)
    numbers = _grid(0, int(np.ceil(each.max())) + 1)
    above = np.clip(np.searchsorted(numbers, each, side="right"), 1, len(numbers) - 1)
    low, high = numbers[above - 1], numbers[above]
    part = np.clip((each - low) / (high - low), 0, 1)
    chance = np.zeros((len(known), len(numbers)))
    rows = np.arange(len(known))[:, None]
    np.add.at(chance, (rows, above - 1), posterior * (1 - part))
    np.add.at(chance, (rows, above), posterior * part)
    return Missing(numbers, chance[group], float(rate))


def _grid(first: int, last: int) -> Int64[np.ndarray, "numbers"]:
    """Whole numbers, each one at first, then by equal shares."""
    few = np.arange(first, min(last, _EACH) + 1)
    if last <= _EACH:
        return few
    steps = int(np.ceil(np.log(last / _EACH) / np.log(_STEP)))
    more = np.round(np.geomspace(_EACH, last, steps + 1)[1:]).astype(np.int64)
    return np.unique(np.concatenate([few, more]))


def _binomial(k: np.ndarray, n: np.ndarray, p: float) -> np.ndarray:
    """P(k of n), 0 where k is above n."""
    left = np.maximum(n - k, 0)
    log = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(left + 1)
    return np.where(k <= n, np.exp(log + k * np.log(p) + left * np.log1p(-p)), 0.0)
