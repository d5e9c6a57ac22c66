"""Variance of means over seeds and queries, with its degrees of freedom."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike


class SeedSpread(NamedTuple):
    """Contribution of seeds to the variance of a mean over seeds and queries.

    Seeds and queries are crossed: every seed answers every query. The scores of a query differ over seeds, so
    even seeds of equal quality differ on a sample of queries. The variance over queries of the mean over
    seeds already includes this part. It is subtracted here, so that it counts once.

    Attributes:
        component: variance that seeds add to the variance over queries; may be below 0 by chance.
        square: squared variance from which `component` is estimated, divided by its degrees of freedom.
    """

    component: Any
    square: Any


NO_SEEDS = SeedSpread(0.0, 0.0)
"""Spread of a single seed, which tells nothing about other seeds."""


def seed_spread(values: Float64[np.ndarray, "*more seeds"], shared: ArrayLike) -> SeedSpread:
    """Spread of a mean over seeds.

    Args:
        values: metric under each seed, [..., seeds].
        shared: variance of one seed's metric, over samples of queries, that is due to how the seed differs
            from the other seeds from query to query.
    """
    seeds = values.shape[-1]
    whole = values.var(-1, ddof=1) / seeds
    return SeedSpread(whole - shared / seeds, whole**2 / (seeds - 1))


def crossed_spread(
    value: Float64[np.ndarray, "seeds queries"], weight: Float64[np.ndarray, "queries"]
) -> SeedSpread:
    """Spread of sum(value) / sum(weight) over seeds, from the scores of each query under each seed.

    The interaction of seeds and queries is the residual of the scores after subtracting the mean of each
    query over seeds and the metric of each seed. Its mean square is the mean square of a two-way layout; a
    ratio of sums is linearised.
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

    The degrees of freedom follow Welch and Satterthwaite and are at least 1. If the seeds differ by no more
    than their queries explain, variance and degrees of freedom are the given ones of the queries.

    Args:
        variance: variance of the mean over seeds, over samples of queries.
        freedom: degrees of freedom of `variance`.
        component, square: of `SeedSpread`; for a difference, the sums over both systems.

    Returns:
        Arrays of the broadcast shape.

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
    # The subtraction can leave less than one degree of freedom, which no estimate of a variance has.
    least = np.minimum(freedom, 1.0)
    return total, np.where(more & (parts > 0), np.maximum(satterthwaite, least), freedom)
