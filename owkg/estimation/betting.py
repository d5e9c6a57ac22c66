"""Limits of means in [0, 1] that hold exactly for any number of draws, by betting.

A gambler bets against each possible mean of the population. If the mean is right the bets are fair, so the capital exceeds
1 / error with a probability of at most the error (Ville 1939). Means against which capital has grown so far are out.
"""

import numpy as np
from jaxtyping import Float

from owkg import checks
from owkg.errors import ArgumentError

_SHARE = 0.75
"""Of the capital, the most that one bet may lose."""
_STEPS = 50  # of the bisection


def betting_limits(
    values: Float[np.ndarray, "targets n"], population: int, level: float = 0.95
) -> tuple[Float[np.ndarray, "targets"], Float[np.ndarray, "targets"]]:
    """Limits of the means of a finite population of values in [0, 1], drawn one by one without replacement.

    The capital that bets on more than m falls with m, the capital that bets on less rises, so both limits are found by
    bisection. Each is out where its capital has reached 2 / (1 - level) at any time. Bets depend on earlier draws alone.

    Args:
        values: in the order in which they were drawn.
        population: N, units that could be drawn.
        level: of the interval.

    Raises:
        ValueError: if a value is outside [0, 1], more are drawn than there are, or the level is outside (0, 1).

    Source: Waudby-Smith and Ramdas (2023), Estimating means of bounded random variables by betting, sections 4 and 5, with the
    predictable plug-in bets of their equation for fixed n.

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
        raise ArgumentError("values", f"must be at most {size} a target, as the population, got {x.shape[1]}.")
    error = (1 - checks.level("level", level)) / 2
    bets = _bets(x, error)
    low = _least(x, bets, size, error)
    return low, 1 - _least(1 - x, bets, size, error)


def _bets(x: Float[np.ndarray, "targets n"], error: float) -> Float[np.ndarray, "targets n"]:
    """sqrt(2 log(1 / error) / (n variance)), the variance of the draws before, with one draw of 1/2 and of variance 1/4."""
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
    x: Float[np.ndarray, "targets n"], bets: Float[np.ndarray, "targets n"], means: Float[np.ndarray, "targets n"]
) -> Float[np.ndarray, "targets"]:
    """The largest log capital of a gambler who says that the mean is larger.

    Args:
        x: the draws.
        bets: before the limit on what one may lose.
        means: of what is left, before each draw, if the mean of the population is the one bet against.
    """
    m = np.maximum(means, 1e-12)
    return np.cumsum(np.log1p(np.minimum(bets, _SHARE / m) * (x - m)), axis=1).max(axis=1)
