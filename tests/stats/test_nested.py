"""Variance over seeds and queries: mean squares of a two-way layout."""

import numpy as np
import pytest

from owkg.stats.nested import NO_SEEDS, crossed_spread, nested, seed_spread


def layout(*, seeds=4, queries=30, effect=0.3, rng=None):
    rng = rng or np.random.default_rng(0)
    own = rng.normal(size=(seeds, 1)) * effect + rng.normal(size=queries)
    return own + 0.5 * rng.normal(size=(seeds, queries))


def test_the_variance_is_that_of_the_mean_squares():
    value = layout()
    seeds, queries = value.shape
    by_seed, by_query, mean = value.mean(1), value.mean(0), value.mean()
    left = value - by_seed[:, None] - by_query + mean
    of_seeds = queries * ((by_seed - mean) ** 2).sum() / (seeds - 1)
    of_queries = seeds * ((by_query - mean) ** 2).sum() / (queries - 1)
    rest = (left**2).sum() / ((seeds - 1) * (queries - 1))
    size = seeds * queries
    spread = crossed_spread(value, np.full(queries, 3.0) / 3)
    variance, freedom = nested(by_query.var(ddof=1) / queries, queries - 1, *spread)
    assert variance == pytest.approx((of_queries + of_seeds - rest) / size)
    below = (of_queries / size) ** 2 / (queries - 1) + (of_seeds / size) ** 2 / (seeds - 1)
    assert freedom == pytest.approx(variance**2 / below)


def test_equal_seeds_leave_what_queries_say():
    value = layout(effect=0.0)
    value = value - value.mean(1, keepdims=True)
    variance, freedom = nested(0.01, 29, *crossed_spread(value, np.ones(30)))
    assert (variance, freedom) == (0.01, 29)
    assert nested(0.01, 29, *NO_SEEDS) == (0.01, 29)


def test_weights_of_queries():
    """A metric that is a ratio of sums: seeds in proportion to the weights do not interact with queries."""
    weight = np.array([1.0, 2.0, 5.0, 9.0])
    value = np.array([[0.2], [0.3], [0.7]]) * weight
    spread = crossed_spread(value, weight)
    metric = value.sum(1) / weight.sum()
    assert spread.component == pytest.approx(metric.var(ddof=1) / 3)
    assert spread == pytest.approx(seed_spread(metric, 0.0))


def test_at_least_one_degree_of_freedom():
    """Two seeds that differ by little more than their queries explain: nearly all of it is taken off."""
    variance, freedom = nested(1e-4, 39, 1e-5, 0.25)
    assert (variance, freedom) == (pytest.approx(1.1e-4), 1)
    assert nested(1e-4, 0.5, 1e-5, 0.25)[1] == 0.5
