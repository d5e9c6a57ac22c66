"""Limits of means in [0, 1] that hold exactly for any number of draws, by betting.

A gambler bets against each possible mean of the population. If the mean is right the bets are fair, so the
capital exceeds 1 / error with a probability of at most the error (Ville 1939). Means against which capital
has grown so far are out.
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
"""Of the capital, the most that one bet may lose."""
_STEPS = 50  # of the bisection
_HALF = 0.5  # of the covariate, which is taken off from so many queries on
_ENOUGH = 30


def betting_limits(
    values: Float[np.ndarray, "targets n"], population: int, level: float = 0.95
) -> tuple[Float[np.ndarray, "targets"], Float[np.ndarray, "targets"]]:
    """Limits of the means of a finite population of values in [0, 1], drawn one by one without replacement.

    The capital that bets on more than m falls with m, the capital that bets on less rises, so both limits
    are found by bisection. Each is out where its capital has reached 2 / (1 - level) at any time. Bets
    depend on earlier draws alone.

    Args:
        values: in the order in which they were drawn.
        population: N, units that could be drawn.
        level: of the interval.

    Raises:
        ValueError: if a value is outside [0, 1], more are drawn than there are, or the level is outside
            (0, 1).

    Source: Waudby-Smith and Ramdas (2023), Estimating means of bounded random variables by betting, sections
    4 and 5, with the predictable plug-in bets of their equation for fixed n.

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
            "values", f"must be at most {size} a target, as the population, got {x.shape[1]}."
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
    """A metric of all systems and pairs with exact limits, from completely judged queries, however few.

    The values of systems are bet on minus half of their covariate from 30 queries on, where this is
    narrower, and as they are before. Differences of pairs are bet on as they are.

    Args:
        ready: of `prepared`, with one covariate or more.
        people: the population, with the labels that were known before the draw.
        labels: of the candidates of drawn queries.
        sample: the drawn queries, in the order in which they were drawn.
        level: of each interval.
        pairs: whether pairs are estimated.

    Raises:
        ValueError: for a micro metric, which is a ratio and no mean of values; and for strata.
    """
    if ready.of.micro:
        raise ArgumentError(
            "metric", f"must be a mean over queries to have exact limits, got {ready.of.name}."
        )
    if len(sample.sizes) > 1:
        raise ArgumentError("exact", f"must be of queries from one stratum, got {len(sample.sizes)} strata.")
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
    """sqrt(2 log(1 / error) / (n variance)): the variance of earlier draws and of one of 1/2 with 1/4."""
    n = x.shape[1]
    count = np.arange(1, n + 1)
    mean = (0.5 + np.cumsum(x, axis=1)) / (count + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2, axis=1)) / (count + 1)
    before = np.concatenate([np.full((len(x), 1), 0.25), variance[:, :-1]], axis=1)
    return np.sqrt(-2 * np.log(error) / (n * before))


def _least(
    x: Float[np.ndarray, "targets n"], bets: Float[np.ndarray, "targets n"], size: int, error: float
) -> Float[np.ndarray, "targets"]:
    """The largest mean that is still out, from below."""
    drawn = np.cumsum(x, axis=1)
    below = np.concatenate([np.zeros((len(x), 1)), drawn[:, :-1]], axis=1)
    rest = size - np.arange(x.shape[1])
    # What has been drawn cannot be undrawn.
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
    """The largest log capital of a gambler who says that the mean is larger.

    Args:
        x: the draws.
        bets: before the limit on what one may lose.
        means: of what is left, before each draw, if the mean of the population is the one bet against.
    """
    m = np.maximum(means, 1e-12)
    return np.cumsum(np.log1p(np.minimum(bets, _SHARE / m) * (x - m)), axis=1).max(axis=1)
