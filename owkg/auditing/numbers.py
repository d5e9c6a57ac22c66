"""Numbers of missing answers, inferred from the numbers of known answers."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64
from scipy import special

# Each number up to this one is in the grid; above, the grid grows by this factor.
_EACH = 64
_STEP = 1.02
# Rounds of the fit, and steps of expectation and maximisation in each round.
_ROUNDS = 12
_STEPS = 40
# Largest probability of going missing that is tried.
_MOST = 0.995
# Number of points of the normal distribution of missing rates over queries.
_POINTS = 9
# Largest standard deviation of logits that is fitted, and number of halvings of the way to an interval's end.
_MOST_UNEVEN = 3.0
_HALVINGS = 6
# How often the standard deviation of log n is updated from the fit that it led to.
_SPREADS = 2
# Steps of the fit at each level of uneven rates; the highest logit of a level, and the step between levels.
_UNEVEN_STEPS = 100
_HIGHEST, _RISE = 12.0, 1.0
# If rates rise with the number of answers: the first level that is tried, the share of the wanted missing
# answers that is enough, and the factor on the standard deviation of log n if there are fewer.
_LOWEST, _ENOUGH, _WIDER = -9.0, 0.7, 1.7
# Number of levels that are tried between the last one with too few missing answers and the first one with
# enough, and how near one must come. The numbers are then scaled to the wanted sum.
_TRIES, _NEAR = 8, 0.01
# Expected number up to which binomials are summed exactly.
_FEW = 40


class Unevenness(NamedTuple):
    """How much the missing rate differs from query to query.

    The logit of the rate of a query with n answers is a + deviation z + size log(n) / sd, where z is standard
    normal and sd is the standard deviation of log n over the queries in the test.

    Attributes:
        deviation: standard deviation of the logits over queries of one size, at least 0.
        size: change of the logit per standard deviation of log n. Above 0, queries with more answers miss a
            larger share of them.
    """

    deviation: float = 0.0
    size: float = 0.0


EVEN = Unevenness()
"""Unevenness of 0: one missing rate for all queries."""


class Missing(NamedTuple):
    """Distribution of the number of missing answers, given the number of known answers.

    Attributes:
        numbers: numbers of missing answers, [numbers], increasing from 0.
        chance: probability of each number, by number of known answers, [counts, numbers]; rows sum to
            1.
        rate: probability that an answer is missing, over queries with and without known answers. If rates
            differ, the median over queries with as many answers as the mean query.
    """

    numbers: Int64[np.ndarray, "numbers"]
    chance: Float64[np.ndarray, "counts numbers"]
    rate: float


def missing_numbers(
    counts: Int64[np.ndarray, "counts"],
    queries: Float64[np.ndarray, "counts"],
    sparsity: float,
    unevenness: Unevenness = EVEN,
) -> Missing:
    """Posterior of the number of missing answers to a query.

    Each answer to a query is missing with the query's own rate, which differs from query to query as
    `unevenness` states. So the number s of known answers of a query with n answers has a mixture of
    binomials, restricted to s > 0 because a query without known answers is not in the test. The distribution
    of n over queries is fitted to the known numbers without an assumption about its form (nonparametric
    maximum likelihood by EM; Laird 1978). The rates are fitted so that a share `sparsity` of all answers to
    the queries in the test is missing. If no distribution does that, for example because all queries have one
    known answer, the prior is flat.

    Args:
        counts: numbers of known answers of a query, [counts], each once, at least 1.
        queries: number or share of the queries with each number, [counts].
        sparsity: share of the answers that is missing, in [0, 1).
        unevenness: unevenness of the missing rates. Default: one rate for all queries.

    References:
        Laird (JASA 73, 1978), "Nonparametric maximum likelihood estimation of a mixing distribution".
    """
    shares = (queries / queries.sum()).tobytes()
    return _fitted(counts.astype(np.int64).tobytes(), shares, float(sparsity), unevenness)


@lru_cache(maxsize=256)
def _fitted(counts_bytes: bytes, queries_bytes: bytes, sparsity: float, unevenness: Unevenness) -> Missing:
    counts, queries = np.frombuffer(counts_bytes, np.int64), np.frombuffer(queries_bytes)
    if sparsity < 1e-5:
        return Missing(np.zeros(1, np.int64), np.ones((len(counts), 1)), 0.0)
    # Large numbers of known answers that are close together count as one number.
    label = np.where(counts <= _EACH, counts, np.round(np.log(np.maximum(counts, 1)) / np.log(_STEP)) + 10**6)
    _, group = np.unique(label, return_inverse=True)
    share = np.bincount(group, queries)
    known = np.maximum(np.round(np.bincount(group, queries * counts) / share), 1).astype(np.int64)
    most = int(known.max() / (1 - sparsity) * 1.5 + 40 / (1 - sparsity))
    whole = _grid(1, most)
    total = (queries * counts).sum() / (1 - sparsity)  # answers per query, known or missing
    wanted = total - (queries * counts).sum()
    if unevenness == EVEN:
        posterior, missing, rate = _even(known, share, whole, wanted, sparsity)
        found = 0.9 < missing / wanted < 1.1
    else:
        posterior, missing, rate = _uneven_fit(known, share, whole, wanted, sparsity, unevenness)
        # The number of missing answers may jump between neighbouring levels of the rates. If all queries have
        # the same number of known answers, they do not show how rates change with the number of answers.
        found = 0.2 < missing / wanted < 5 and not (unevenness.size > 0 and len(known) == 1)
    if not found:
        # If all queries have one known answer, for example, the likelihood is largest with nothing missing at
        # any rate.
        flat = _flat(known, share, wanted, most, unevenness.deviation)
        return flat._replace(chance=flat.chance[group])
    each = np.maximum(whole - known[:, None], 0) * (wanted / missing)
    numbers = _grid(0, int(np.ceil(each.max())) + 1)
    above = np.clip(np.searchsorted(numbers, each, side="right"), 1, len(numbers) - 1)
    low, high = numbers[above - 1], numbers[above]
    part = np.clip((each - low) / (high - low), 0, 1)
    chance = np.zeros((len(known), len(numbers)))
    rows = np.arange(len(known))[:, None]
    np.add.at(chance, (rows, above - 1), posterior * (1 - part))
    np.add.at(chance, (rows, above), posterior * part)
    return Missing(numbers, chance[group], float(rate))


def fitted_unevenness(
    missing: Int64[np.ndarray, "queries"], whole: Int64[np.ndarray, "queries"], level: float = 0.95
) -> tuple[Unevenness, ...]:
    """Unevenness of missing rates by maximum likelihood, from queries whose answers are all known.

    The number of missing answers is binomial with the query's own rate (`Unevenness`), given that at least
    one answer is known. Each of the two deviations has an interval by its profile likelihood.

    Args:
        missing: number of missing answers of each query, [queries].
        whole: number of all answers of each query, [queries], more than `missing`.
        level: level of the intervals. Default 0.95.

    Returns:
        The estimate, then the ends of the interval of each deviation with the other deviation at its
        estimate.
    """
    from scipy import optimize

    z, weights = special.roots_hermitenorm(_POINTS)
    weights = weights / weights.sum()
    log = np.log(whole)
    size = (log - log.mean()) / max(log.std(), 1e-6)
    among = _log_choose(whole, missing)
    share = np.clip(missing.sum() / whole.sum(), 1e-3, 1 - 1e-3)

    def unlikely(at: float, deviation: float, slope: float) -> float:
        logits = at + slope * size + deviation * z[:, None]
        log_rate, log_kept = -np.logaddexp(0, -logits), -np.logaddexp(0, logits)
        told = weights @ np.exp(among + missing * log_rate + (whole - missing) * log_kept)
        asked = weights @ -np.expm1(whole * log_rate)
        return -float(np.log(np.maximum(told, 1e-300)).sum() - np.log(np.maximum(asked, 1e-300)).sum())

    def least(**fixed: float) -> tuple[float, dict[str, float]]:
        start = {"at": float(special.logit(share)), "deviation": 0.5, "slope": 0.0}
        free = [name for name in start if name not in fixed]
        bounds = {"at": (-12, 12), "deviation": (0, _MOST_UNEVEN), "slope": (-_MOST_UNEVEN, _MOST_UNEVEN)}
        found = optimize.minimize(
            lambda x: unlikely(**(fixed | dict(zip(free, x.tolist(), strict=True)))),
            [start[name] for name in free],
            method="L-BFGS-B",
            bounds=[bounds[name] for name in free],
        )
        return float(found.fun), fixed | dict(zip(free, found.x.tolist(), strict=True))

    best, found = least()
    allowed = best + special.chdtri(1, 1 - level) / 2

    def end(name: str, beyond: float) -> float:
        """Where the likelihood falls below the allowed one, between the estimate and `beyond`."""
        inside = found[name]
        if least(**{name: beyond})[0] <= allowed:
            return beyond
        for _ in range(_HALVINGS):
            middle = (inside + beyond) / 2
            inside, beyond = (middle, beyond) if least(**{name: middle})[0] <= allowed else (inside, middle)
        return beyond

    ends = {"deviation": [end("deviation", 0.0), end("deviation", _MOST_UNEVEN)]}
    ends["slope"] = [end("slope", -_MOST_UNEVEN), end("slope", _MOST_UNEVEN)]
    each = [(found["deviation"], found["slope"])]
    each += [(end, found["slope"]) for end in ends["deviation"]]
    each += [(found["deviation"], end) for end in ends["slope"]]
    return tuple(dict.fromkeys(Unevenness(*(round(float(x), 6) for x in one)) for one in each))


def _even(
    known: np.ndarray, share: np.ndarray, whole: np.ndarray, wanted: float, sparsity: float
) -> tuple[np.ndarray, float, float]:
    """Posterior of the whole numbers under one rate, how many answers are then missing, and the rate."""
    missing, rate, prior = wanted, sparsity, np.full(len(whole), 1 / len(whole))
    posterior = np.zeros((len(known), len(whole)))
    for _ in range(_ROUNDS):
        likelihood = _binomial(known[:, None], whole, 1 - rate)
        asked = -np.expm1(whole * np.log(rate))
        for _ in range(_STEPS):
            posterior = likelihood * prior
            with np.errstate(invalid="ignore"):  # NaN where no number explains a count: a flat prior
                posterior /= posterior.sum(1, keepdims=True)
            prior = share @ posterior / asked
            prior /= prior.sum()
        missing = (share @ posterior @ whole) - (share * known).sum()
        if abs(missing - wanted) < 1e-4 * wanted:
            break
        odds = rate / (1 - rate) * wanted / max(missing, 1e-9)
        rate = min(max(odds / (1 + odds), sparsity / 4), _MOST)
    return posterior, missing, rate


def _uneven_fit(
    known: np.ndarray,
    share: np.ndarray,
    whole: np.ndarray,
    wanted: float,
    sparsity: float,
    unevenness: Unevenness,
) -> tuple[np.ndarray, float, float]:
    """`_even` for rates that differ, with a standard deviation of log n that agrees with the fit."""
    level = float(special.logit(sparsity))
    if not unevenness.size:
        return _uneven(known, share, whole, wanted, unevenness, 1.0, level)
    even, *_ = _even(known, share, whole, wanted, sparsity)
    spread = _log_spread(even, share, whole)
    if unevenness.size < 0:
        fit = _uneven(known, share, whole, wanted, unevenness, spread, level)
        for _ in range(_SPREADS):
            spread, level = _log_spread(fit[0], share, whole), float(special.logit(fit[2]))
            fit = _uneven(known, share, whole, wanted, unevenness, spread, level)
        return fit
    # Known numbers are then closer to each other than whole numbers, so this first spread may be too small.
    # It is, if no level of the rates gives enough missing answers.
    spread = max(spread, _log_spread(np.eye(len(known)), share, known))
    fit = _uneven(known, share, whole, wanted, unevenness, spread, _LOWEST)
    for _ in range(_SPREADS):
        enough = fit[1] > _ENOUGH * wanted
        # Steps are half of the way on the log scale, because a wider assumed spread may give less spread
        # numbers.
        spread = np.sqrt(_log_spread(fit[0], share, whole) * spread) if enough else _WIDER * spread
        again = _uneven(known, share, whole, wanted, unevenness, spread, _LOWEST)
        if not enough or again[1] > _ENOUGH * wanted:
            fit = again
    return fit


def _uneven(
    known: np.ndarray,
    share: np.ndarray,
    whole: np.ndarray,
    wanted: float,
    unevenness: Unevenness,
    spread: float,
    level: float,
) -> tuple[np.ndarray, float, float]:
    """`_even` for rates that differ, at the level of the rates that gives the wanted missing answers.

    The search starts at `level`. If rates rise steeply with the number of answers, queries with more answers
    may have fewer known ones, and the same numbers of known answers have several explanations. The lowest
    level is then the right one, so `level` must be low.
    """
    z, weights = special.roots_hermitenorm(_POINTS if unevenness.deviation else 1)
    weights, among = weights / weights.sum(), _log_choose(whole, known[:, None])
    center = np.log(share @ known + wanted)
    apart = unevenness.deviation * z[:, None] + unevenness.size / spread * (np.log(whole) - center)
    left = np.maximum(whole - known[:, None], 0)
    start = 1 / whole / (1 / whole).sum()

    def at(level: float) -> tuple[np.ndarray, float]:
        rates = np.clip(special.expit(level + apart), 1e-9, 1 - 1e-9)
        logs = [among + known[:, None] * np.log1p(-rate) + left * np.log(rate) for rate in rates]
        # The scale of a row has no effect, and probabilities of many answers may underflow.
        most = np.max([log.max(1, keepdims=True) for log in logs], axis=0)
        likelihood = sum(weight * np.exp(log - most) for log, weight in zip(logs, weights, strict=True))
        asked = weights @ -np.expm1(whole * np.log(rates))
        prior = start
        for _ in range(_UNEVEN_STEPS):
            prior = prior * ((share / np.maximum(likelihood @ prior, 1e-300)) @ likelihood) / asked
            prior = prior / prior.sum()
        posterior = likelihood * prior
        posterior = posterior / np.maximum(posterior.sum(1, keepdims=True), 1e-300)
        return posterior, float(share @ posterior @ whole - share @ known)

    low = high = level
    posterior, missing = at(level)
    few = many = missing
    rate = level
    while many < wanted and high < _HIGHEST:
        low, few, high = high, many, high + _RISE
        posterior, many = at(high)
        missing, rate = many, high
    while few > wanted and low > -_HIGHEST:
        high, many, low = low, few, low - _RISE
        posterior, few = at(low)
        missing, rate = few, low
    for _ in range(_TRIES):
        if not 0 < few < wanted < many or abs(missing - wanted) < _NEAR * wanted:
            break
        # The logarithm of the number of missing answers is almost linear in the level; steps are at least a
        # tenth.
        part = np.log(wanted / few) / np.log(many / few)
        middle = low + np.clip(part, 0.1, 0.9) * (high - low)
        tried, missing_there = at(middle)
        if abs(np.log(missing_there / wanted)) < abs(np.log(missing / wanted)):
            posterior, missing, rate = tried, missing_there, middle
        if missing_there < wanted:
            low, few = middle, missing_there
        else:
            high, many = middle, missing_there
    return posterior, missing, float(special.expit(rate))


def _log_spread(posterior: np.ndarray, share: np.ndarray, whole: np.ndarray) -> float:
    """Standard deviation of the logarithm of the number of answers of a query."""
    chance, log = np.nan_to_num(share @ posterior), np.log(whole)
    chance = chance / max(chance.sum(), 1e-300)
    return max(float(np.sqrt(chance @ (log - chance @ log) ** 2)), 0.1)


def _flat(known: np.ndarray, share: np.ndarray, wanted: float, most: int, deviation: float) -> Missing:
    """Posterior under a flat prior, with the wanted number of missing answers in all.

    It is a negative binomial with s + 1 successes, or a mixture of these if rates differ. Rates do not depend
    on the number of answers here, because nothing is known of it.
    """
    odds, weights = np.ones(1), np.ones(1)
    if deviation:
        z, weights = special.roots_hermitenorm(_POINTS)
        odds, weights = np.exp(deviation * z), weights / weights.sum()
    middle = wanted / (share @ (known + 1)) / (weights @ odds)
    numbers = _grid(0, most)
    edges = np.floor(np.minimum(np.append((numbers[:-1] + numbers[1:]) / 2, np.inf), 1e15)) + 1
    kept = 1 / (1 + middle * odds)
    below = sum(
        weight * special.betainc(known[:, None] + 1.0, edges, own)
        for weight, own in zip(weights, kept, strict=True)
    )
    chance = np.diff(below, axis=1, prepend=0)
    return Missing(numbers, chance / chance.sum(1, keepdims=True), float(middle / (1 + middle)))


def _grid(first: int, last: int) -> Int64[np.ndarray, "numbers"]:
    """Whole numbers from `first` to the first one at or above `last`: all at first, then by equal factors."""
    few = np.arange(first, _EACH + 1)
    steps = max(int(np.ceil(np.log(max(last, 1) / _EACH) / np.log(_STEP))), 0)
    more = np.round(_EACH * _STEP ** np.arange(1, steps + 1)).astype(np.int64)
    grid = np.concatenate([few, more])
    return grid[: int(np.searchsorted(grid, last)) + 1]


def expectations(
    values: Float64[np.ndarray, "kinds k"], last: int, chance: Float64[np.ndarray, "points"]
) -> Float64[np.ndarray, "kinds numbers points"]:
    """E[values at k], where k is binomial with each number of the grid up to `last` and each probability.

    Exact if the expected k is at most 40, otherwise by the normal distribution.

    Args:
        values: values at k = 0, 1, ..., [kinds, k]; larger k have the last value.
        last: largest number.
        chance: probabilities, [points], in [0, 1].
    """
    n = _grid(0, last)[:, None]
    end = values.shape[1] - 1
    mean = n * chance
    found = np.empty((len(values), *mean.shape))
    few = mean <= _FEW
    k = np.arange(3 * _FEW + 8)
    left, among = np.maximum(n - k, 0), _log_choose(n, k)
    # Here 0 times a logarithm is 0; clipping changes no probability by more than rounding.
    certain = np.clip(chance, 1e-300, 1 - 2.0**-53)
    log_yes, log_no = np.log(certain)[:, None], np.log1p(-certain)[:, None]
    row, column = np.nonzero(few)
    for part in np.array_split(np.arange(len(row)), max(len(row) // 4096, 1)):
        each = np.exp(among[row[part]] + k * log_yes[column[part]] + left[row[part]] * log_no[column[part]])
        each /= each.sum(1, keepdims=True)
        found[:, row[part], column[part]] = values[:, np.minimum(k, end)] @ each.T
    nodes, weights = special.roots_hermitenorm(15)
    row, column = np.nonzero(~few)
    middle, spread = mean[row, column], np.sqrt(mean * (1 - chance))[row, column]
    at = np.clip(middle[:, None] + spread[:, None] * nodes, 0, min(end, n.max()))
    weights = weights / weights.sum()
    for kind, own in enumerate(values):
        found[kind, row, column] = np.interp(at, np.arange(end + 1), own) @ weights
    return found


def _binomial(k: np.ndarray, n: np.ndarray, p: float) -> np.ndarray:
    """P(k of n); 0 where k is above n."""
    return np.exp(_log_choose(n, k) + special.xlogy(k, p) + special.xlog1py(np.maximum(n - k, 0), -p))


def _log_choose(n: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Logarithm of n over k; -infinity where k is above n."""
    log = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(np.maximum(n - k, 0) + 1)
    return np.where(k <= n, log, -np.inf)
