"""Exact confidence limits of means in [0, 1] for any number of draws, by betting.

A gambler bets against each possible mean of the population. If that mean is the true one, the bets are fair,
so the capital ever exceeds 1 / error with a probability of at most the error (Ville 1939). The limits exclude
the means against which the capital has grown that far.
"""

import numpy as np
from jaxtyping import Float, Int

from owkg import checks
from owkg.errors import ArgumentError
from owkg.estimation.measures import values as metric_values
from owkg.estimation.population import Population
from owkg.estimation.regression import Sample
from owkg.estimation.targets import Limits, Prepared, contrasts, means, population_bounds, truths

_SHARE = 0.75
"""Largest share of the capital that one bet may lose."""
_STEPS = 50  # of the bisection
_HALF = 0.5  # share of the covariate that is subtracted, with at least _ENOUGH queries
_ENOUGH = 30


def betting_limits(
    values: Float[np.ndarray, "targets n"], population: int, level: float = 0.95
) -> tuple[Float[np.ndarray, "targets"], Float[np.ndarray, "targets"]]:
    """Confidence limits of the means of a finite population of values in [0, 1], drawn without replacement.

    The capital from betting that the mean is above m falls with m, and the capital from betting that it is
    below m rises with m, so bisection finds both limits. A mean is excluded if a capital has reached 2 / (1 -
    level) at any time. Each bet depends on earlier draws only.

    Args:
        values: drawn values in the order of the draw, [targets, n].
        population: N, the number of units that could be drawn.
        level: confidence level of the interval. Default 0.95.

    Raises:
        ValueError: if a value is outside [0, 1], more values are drawn than the population has, or the level
            is outside (0, 1).

    Source: Waudby-Smith and Ramdas (2023), "Estimating means of bounded random variables by betting",
    sections 4 and 5, with the predictable plug-in bets of their equation for fixed n.

    Examples:
        >>> low, high = betting_limits(np.array([[0.5] * 20, [0.0] * 20]), 1000)
        >>> low.round(3).tolist(), high.round(3).tolist()
        ([0.393, 0.0], [0.607, 0.211])
    """
    x = checks.real("values", values, 0, 1)
    if x.ndim != 2:
        raise ArgumentError("values", f"must be an array [targets, n], got one of shape {x.shape}.")
    size = checks.whole("population", population, 1)
    if x.shape[1] > size:
        raise ArgumentError(
            "values",
            f"must hold at most {size} values a target, the size of the population, got {x.shape[1]}.",
        )
    error = (1 - checks.level("level", level)) / 2
    bets = _bets(x, error)
    low = _least(x, bets, size, error)
    return low, 1 - _least(1 - x, bets, size, error)


def exact_of_queries(
    ready: Prepared,
    people: Population,
    labels: Int[np.ndarray, "candidates"],
    sample: Sample,
    *,
    level: float = 0.95,
    pairs: bool = True,
) -> Limits:
    """Exact limits of a metric for all systems and pairs, from any number of completely judged queries.

    With at least 30 queries, the bets are on the value of a system minus half of its first covariate, because
    this gives narrower limits then; with fewer queries they are on the value itself. Bets on a pair are
    always on the difference itself.

    Args:
        ready: result of `prepared`.
        people: the population, with the labels that were known before the draw.
        labels: labels of the candidates of drawn queries.
        sample: the drawn queries, in the order of the draw.
        level: confidence level of each interval. Default 0.95.
        pairs: whether pairs are estimated. Default True.

    Raises:
        ValueError: naming `metric` for a micro metric, which is a ratio rather than a mean of values; naming
            `exact` if there are several strata.
    """
    if ready.of.micro:
        raise ArgumentError(
            "metric", f"must be a mean over queries to have exact limits, got {ready.of.name}."
        )
    if len(sample.sizes) > 1:
        raise ArgumentError("exact", f"must be used with one stratum of queries, got {len(sample.sizes)}.")
    rows, systems = sample.rows, len(people.models)
    to = contrasts(systems, pairs=pairs)
    slope = np.where(
        np.arange(len(to)) < systems, _HALF if len(rows) >= _ENOUGH and len(ready.x) else 0.0, 0.0
    )
    shift = slope[:, None] * (to @ ready.x[0]) if len(ready.x) else np.zeros((len(to), ready.low.shape[1]))
    plus, minus = np.maximum(to, 0), np.maximum(-to, 0)
    bottom = (plus @ ready.low - minus @ ready.high - shift).min(1)
    room = np.maximum((plus @ ready.high - minus @ ready.low - shift).max(1) - bottom, 1e-12)
    y = to @ metric_values(ready.of, people, truths(labels), rows) - shift[:, rows]
    scaled = np.clip((y - bottom[:, None]) / room[:, None], 0, 1)
    low, high = (bottom + room * one for one in betting_limits(scaled, int(sample.sizes[0]), level))
    least, most = population_bounds(to, ready)
    fit = means(ready, people, labels, sample, pairs=pairs)
    low, high = np.clip(low, least, most), np.clip(high, least, most)
    value = np.clip(fit.mean, low, high)
    return Limits(value, low, high, ["betting"] * len(to), fit.r, least, most, fit.variance, fit.freedom)


def _bets(x: Float[np.ndarray, "targets n"], error: float) -> Float[np.ndarray, "targets n"]:
    """Bets sqrt(2 log(1 / error) / (n variance)), with the variance of earlier draws and one prior draw."""
    n = x.shape[1]
    count = np.arange(1, n + 1)
    mean = (0.5 + np.cumsum(x, axis=1)) / (count + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2, axis=1)) / (count + 1)
    before = np.concatenate([np.full((len(x), 1), 0.25), variance[:, :-1]], axis=1)
    return np.sqrt(-2 * np.log(error) / (n * before))


def _least(
    x: Float[np.ndarray, "targets n"], bets: Float[np.ndarray, "targets n"], size: int, error: float
) -> Float[np.ndarray, "targets"]:
    """Lower limit: the largest mean from below that the capital excludes."""
    drawn = np.cumsum(x, axis=1)
    below = np.concatenate([np.zeros((len(x), 1)), drawn[:, :-1]], axis=1)
    rest = size - np.arange(x.shape[1])
    # The mean cannot be below the sum of the drawn values over N.
    low, high = drawn[:, -1] / size, (drawn[:, -1] + rest[-1] - 1) / size
    for _ in range(_STEPS):
        middle = (low + high) / 2
        out = _gain(x, bets, (size * middle[:, None] - below) / rest) >= -np.log(error)
        low, high = np.where(out, middle, low), np.where(out, high, middle)
    return low


def _gain(
    x: Float[np.ndarray, "targets n"],
    bets: Float[np.ndarray, "targets n"],
    means: Float[np.ndarray, "targets n"],
) -> Float[np.ndarray, "targets"]:
    """Largest log capital of a gambler who bets that the mean is larger.

    Args:
        x: drawn values.
        bets: bets before the cap on what one bet may lose.
        means: mean of the undrawn units before each draw, if the population has the mean that is bet against.
    """
    m = np.maximum(means, 1e-12)
    return np.cumsum(np.log1p(np.minimum(bets, _SHARE / m) * (x - m)), axis=1).max(axis=1)
