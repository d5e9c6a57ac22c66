"""Chance levels by Monte Carlo, for metrics without a closed form; always with a standard error."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from owkg.keys import Seed, generator
from owkg.metrics.chance import Chance, Shapes

DRAWS = 2**17
"""Draws of a whole test set; the variance of a nearly normal statistic has a relative error of 0.4 %."""

# Largest number of ranks drawn in all, and the fewest draws of a test set, even if they exceed it.
_RANKS, _FEWEST_DRAWS = 2**27, 2**8
# Number of ranks in memory at the same time.
_CHUNK = 2**18

Statistic = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(ranks [draws, tasks], weights that sum to 1 [tasks]) -> [draws]."""


def monte_carlo_chance(key: Seed, statistic: Statistic, shapes: Shapes, *, draws: int = DRAWS) -> Chance:
    """Mean and variance of a statistic of random ranks, with standard errors.

    Args:
        key: seed, or key of `jax.random.key`; equal keys give equal results.
        statistic: function of the ranks of many draws, such as `weighted_median` or a function of a mean.
        shapes: candidates and weights of the tasks; their order does not matter.
        draws: number of draws of a whole test set. Fewer are made if these would take more than 134 million
            ranks in all.
    """
    candidates, weight, _ = shapes.each()
    rng = generator(key)
    # Tasks are sorted, so that the random numbers of a task do not depend on the order of the table's rows.
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
    """Median of the ranks of each draw, with weights that sum to 1.

    If exactly half of the weight lies below, the median is the mean of the two middle ranks.
    """
    count = ranks.shape[1]
    if (share == share[0]).all():
        middle = [(count - 1) // 2, count // 2]
        ranks.partition(middle, axis=1)
        return ranks[:, middle].mean(axis=1)
    order = np.argsort(ranks, axis=1)
    below = np.cumsum(share[order], axis=1)
    # The margin covers the rounding of sums of weights.
    middle = np.stack([(below > half).argmax(1) for half in (0.5 - 1e-9, 0.5 + 1e-9)], axis=1)
    return np.take_along_axis(ranks, np.take_along_axis(order, middle, 1), 1).mean(1)
