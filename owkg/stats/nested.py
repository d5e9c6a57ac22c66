"""Means over seeds and queries: their variance, and its degrees of freedom."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike


class SeedSpread(NamedTuple):
    """What seeds add to the variance of a mean over seeds and queries.

    Seeds and queries are crossed: every seed answers every query. The scores of a query differ over seeds,
    so that even seeds of equal quality differ on a sample of queries. The variance over queries of the mean
    over seeds has that part already; it is taken off here, so that it counts once.

    Attributes:
        component: variance of the mean that seeds add to the variance over queries; below 0 by chance.
        square: square of the variance that `component` is estimated from, over its degrees of freedom.
    """

    component: Any
    square: Any


NO_SEEDS = SeedSpread(0.0, 0.0)
"""A single seed: nothing is known of others."""


def seed_spread(values: Float64[np.ndarray, "*more seeds"], shared: ArrayLike) -> SeedSpread:
    """The spread of a mean over seeds.

    Args:
        values: the metric under each seed.
        shared: variance of the metric of one seed that is due to how it differs from the other seeds from
            query to query, over samples of queries.
    """
    seeds = values.shape[-1]
    whole = values.var(-1, ddof=1) / seeds
    return SeedSpread(whole - shared / seeds, whole**2 / (seeds - 1))


def crossed_spread(
    value: Float64[np.ndarray, "seeds queries"], weight: Float64[np.ndarray, "queries"]
) -> SeedSpread:
    """The spread of sum(value) / sum(weight) over seeds, from the scores of each query under each seed.

    The interaction of seeds and queries is what is left of the scores without the mean of each query over
    seeds and without the metric of each seed (the mean square of a two-way layout; of a ratio of sums, by
    linearisation).
    """
    seeds, queries = value.shape
    mean = weight.mean()
    each, relative = value / mean, weight / mean
    metric = each.mean(1)
    left = each - each.mean(0) - (metric - metric.mean())[:, None] * relative
    freedom = max((queries - 1) * (seeds - 1), 1)
    return seed_spread(metric, np.einsum("sq,sq->", left, left) / freedom / queries)


def nested(
    variance: ArrayLike, freedom: ArrayLike, component: ArrayLike, square: ArrayLike
) -> tuple[Any, Any]:
    """(variance, degrees of freedom) of a mean, or of a difference of means, over queries and seeds.

    The degrees of freedom are those of Welch and Satterthwaite, at least one. Where the seeds differ by no
    more than their queries explain, both are those of the queries.

    Args:
        variance: over samples of queries, of the mean over seeds.
        freedom: of it.
        component, square: of `SeedSpread`; of a difference, the sums of both systems.

    Returns:
        Arrays of the shape of all.

    References:
        Satterthwaite (Biometrics Bulletin 2, 1946), "An approximate distribution of estimates of variance
        components".
    """
    variance, freedom, component, square = np.broadcast_arrays(
        *(np.asarray(x, np.float64) for x in (variance, freedom, component, square))
    )
    more = component > 0
    total = variance + np.where(more, component, 0.0)
    parts = variance**2 / freedom + np.where(more, square, 0.0)
    satterthwaite = total**2 / np.where(parts > 0, parts, 1.0)
    # What is taken off can leave less than one, which no estimate of a variance has.
    least = np.minimum(freedom, 1.0)
    return total, np.where(more & (parts > 0), np.maximum(satterthwaite, least), freedom)
