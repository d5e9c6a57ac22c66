"""Chance levels by Monte Carlo, where no closed form is at hand; always with a standard error."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from owkg.keys import Seed, generator
from owkg.metrics.chance import Chance, Shapes

DRAWS = 2**17
"""Draws of a whole test set, of a relative error of 0.4 % in the variance of a nearly normal statistic."""

# Ranks drawn in all, and the fewest draws that this allows.
_RANKS, _FEWEST_DRAWS = 2**27, 2**8
# Ranks in memory at a time.
_CHUNK = 2**18

Statistic = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(ranks [draws, tasks], weights that sum to 1 [tasks]) -> [draws]."""


def monte_carlo_chance(key: Seed, statistic: Statistic, shapes: Shapes, *, draws: int = DRAWS) -> Chance:
    """Mean and variance of a statistic of random ranks, with standard errors.

    Args:
        key: a seed, or a key of `jax.random.key`; equal keys give equal results.
        statistic: of the ranks of many draws; `weighted_median`, or a function of a mean.
        shapes: of the tasks; their order does not matter.
        draws: of a whole test set; fewer where they would take more than 134 million ranks in all.
    """
    candidates, weight, _ = shapes.each()
    rng = generator(key)
    # In an order of their own: which task a random number falls to does not depend on the rows of a table.
    order = np.argsort(candidates) if weight is None else np.lexsort((weight, candidates))
    candidates, count = candidates[order], len(candidates)
    share = np.full(count, 1 / count) if weight is None else weight[order] / weight.sum()
    draws = int(min(draws, max(_FEWEST_DRAWS, _RANKS // count)))
    values, size = np.empty(draws), max(1, _CHUNK // count)
    for start in range(0, draws, size):
        part = values[start : start + size]
        part[:] = statistic(rng.integers(1, candidates + 1, (len(part), count)), share)
    centred = values - values.mean()
    second, fourth = np.mean(centred**2), np.mean(centred**4)
    return Chance(
        float(values.mean()),
        float(second * draws / (draws - 1)),
        float(np.sqrt(second / draws)),
        float(np.sqrt(max(fourth - second**2, 0.0) / draws)),
    )


def weighted_median(
    ranks: Int[np.ndarray, "draws tasks"], share: Float[np.ndarray, "tasks"]
) -> Float[np.ndarray, "draws"]:
    """The median of the ranks of each draw, of weights that sum to 1.

    Where exactly half of the weight lies below, it is the mean of the two ranks in the middle.
    """
    count = ranks.shape[1]
    if (share == share[0]).all():
        middle = [(count - 1) // 2, count // 2]
        ranks.partition(middle, axis=1)
        return ranks[:, middle].mean(axis=1)
    order = np.argsort(ranks, axis=1)
    below = np.cumsum(share[order], axis=1)
    # Sums of weights are known up to rounding.
    middle = np.stack([(below > half).argmax(1) for half in (0.5 - 1e-9, 0.5 + 1e-9)], axis=1)
    return np.take_along_axis(ranks, np.take_along_axis(order, middle, 1), 1).mean(1)
