"""Flattening: slopes of thirds and fits, against curves of known shape."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulations.open_world.curves import Curves
from simulations.yang2022.flattening import flattening, line, over_curves, thirds
from simulations.yang2022.resampling import Resampled, interval, query_counts, with_all
from simulations.yang2022.selection import checked_curves, metric_index

KEY = jax.random.key(3)


def curves_of(full, sparse, config=None, *, metrics=("mrr",), labels=None):
    """Curves of one metric from values [checkpoints, queries] on both tests."""
    full, sparse = np.atleast_2d(full), np.atleast_2d(sparse)
    config = np.zeros(len(full), np.int32) if config is None else np.asarray(config, np.int32)
    labels = labels or tuple(f"c{i}" for i in range(int(config.max()) + 1))
    values = {"full": full, "sparse": sparse}
    return Curves(
        0.75,
        metrics,
        labels,
        tuple("rotate" for _ in labels),
        config,
        np.arange(len(full), dtype=np.int64),
        {name: each[None].astype(np.float32) for name, each in values.items()},
    )


def shaped(shape, *, queries=60, checkpoints=30, noise=0.0, seed=0, low=0.1, high=0.9):
    """One curve: full means on a grid, queries around it; sparse = shape(full mean) and shared noise."""
    rng = np.random.default_rng(seed)
    x = np.linspace(low, high, checkpoints)[:, None]
    of_query = rng.normal(size=queries) * 0.02
    of_query -= of_query.mean()
    own = noise * rng.normal(size=(checkpoints, queries))
    return curves_of(x + of_query, shape(x) + of_query + own)


def measured(curves, replicates=20):
    counts = query_counts(KEY, curves.values["full"].shape[-1], replicates)
    return flattening(curves, "mrr", "sparse", counts)


# --- lines and thirds


@given(st.integers(3, 12), st.integers(0, 10**6))
def test_lines_are_those_of_numpy(points, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 4, points))
    found = line(x, y)
    for i in range(4):
        np.testing.assert_allclose(found.slope[i], np.polyfit(x[i], y[i], 1)[0], rtol=1e-8)
        np.testing.assert_allclose(found.r2[i], np.corrcoef(x[i], y[i])[0, 1] ** 2, rtol=1e-8)


def test_a_line_needs_points_that_differ():
    x = np.array([[0.3, 0.3, 0.3], [0.1, 0.2, 0.3]])
    y = np.array([[0.1, 0.2, 0.3], [0.7, 0.7, 0.7]])
    found = line(x, y)
    assert np.isnan(found.slope[0])
    assert abs(found.slope[1]) < 1e-12
    assert np.isnan(found.r2).all()


def test_thirds_are_of_the_range_not_of_the_number():
    low, high = thirds(np.array([0.0, 0.01, 0.02, 0.3, 0.5, 0.9]))
    assert low.tolist() == [True] * 4 + [False] * 2
    assert high.tolist() == [False] * 5 + [True]


# --- curves of known shape


def test_equal_tests_have_slope_and_ratio_one():
    curves = shaped(lambda x: x)
    curves.values["sparse"][:] = curves.values["full"]
    found = measured(curves)
    for each in (found.slope_low, found.slope_high, found.slope_ratio, found.r2_linear):
        np.testing.assert_allclose(each.value, [1], rtol=1e-6)
        np.testing.assert_allclose(each.replicates, 1, rtol=1e-6)
    assert found.r2_gain.value[0] < 0


def test_a_logarithm_flattens_and_its_fit_wins():
    found = measured(shaped(lambda x: 0.5 + 0.2 * np.log(x), noise=0.01))
    x = np.linspace(0.1, 0.9, 30)
    expected = [np.polyfit(x[part], 0.2 * np.log(x[part]), 1)[0] for part in (slice(10), slice(20, None))]
    np.testing.assert_allclose(found.slope_low.value, expected[0], rtol=0.05)
    np.testing.assert_allclose(found.slope_high.value, expected[1], rtol=0.05)
    np.testing.assert_allclose(found.slope_ratio.value, expected[1] / expected[0], rtol=0.07)
    assert found.r2_log.value[0] > 0.995
    assert found.r2_gain.value[0] == found.r2_log.value[0] - found.r2_linear.value[0] > 0.01
    assert (found.r2_gain.replicates > 0).all()


def test_a_line_does_not_flatten_and_its_fit_wins():
    found = measured(shaped(lambda x: 0.1 + 0.4 * x, noise=0.005))
    np.testing.assert_allclose(found.slope_ratio.value, [1], atol=0.1)
    assert found.r2_gain.value[0] < -0.01


def test_replicates_are_the_numbers_of_resampled_queries():
    curves = shaped(np.sqrt, noise=0.05, queries=25)
    counts = query_counts(KEY, 25, 6)
    found = flattening(curves, "mrr", "sparse", counts)
    # The thirds stay those of all queries: here the grid makes them the same.
    for i, count in enumerate(counts):
        drawn = np.repeat(np.arange(25), count.astype(int))
        full, sparse = (
            curves.values[name][0][:, drawn].mean(axis=1, dtype=float) for name in ("full", "sparse")
        )
        low, high = thirds(curves.values["full"][0].mean(axis=1, dtype=float))
        slopes = [np.polyfit(full[part], sparse[part], 1)[0] for part in (low, high)]
        np.testing.assert_allclose(found.slope_low.replicates[i], slopes[0], rtol=1e-6)
        np.testing.assert_allclose(found.slope_ratio.replicates[i], slopes[1] / slopes[0], rtol=1e-6)
        # Towards 0 there is no logarithm to fit.
        r2 = np.corrcoef(np.log(full[~low]), sparse[~low])[0, 1] ** 2
        np.testing.assert_allclose(found.r2_log.replicates[i], r2, rtol=1e-6)


# --- what cannot be measured


def test_what_cannot_be_measured_says_why():
    rng = np.random.default_rng(0)
    good = np.linspace(0.1, 0.9, 12)
    early = np.array([0.1, 0.12, 0.14, 0.15, 0.9])
    flat = np.full(4, 0.5)
    zero = np.linspace(0.0, 0.9, 12)
    x = np.concatenate([good, early, flat, zero])[:, None] + np.zeros((1, 8))
    config = np.repeat(range(4), [12, 5, 4, 12])
    curves = curves_of(x, x / 2 + 0.01 * rng.normal(size=x.shape), config, labels=tuple("abcde"))
    found = measured(curves)
    assert np.isfinite(found.slope_ratio.value).tolist() == [True, False, False, True, False]
    assert np.isfinite(found.r2_log.value).tolist() == [True, False, False, True, False]
    assert found.slope_remarks == (
        "",
        "1 checkpoints in the highest third, 3 are needed",
        "all checkpoints have one full value",
        "",
        "no checkpoints",
    )
    assert found.fit_remarks == (
        "",
        "1 checkpoints above the lowest third, 3 are needed",
        "0 checkpoints above the lowest third, 3 are needed",
        "",
        "no checkpoints",
    )
    pooled = over_curves(found.slope_ratio)
    np.testing.assert_allclose(pooled.value, found.slope_ratio.value[[0, 3]].mean())
    np.testing.assert_allclose(pooled.replicates, found.slope_ratio.replicates[:, [0, 3]].mean(axis=1))


def test_nothing_measurable_pools_to_nothing():
    pooled = over_curves(Resampled(np.full(2, np.nan), np.full((5, 2), np.nan)))
    assert np.isnan(pooled.value)
    assert np.isnan(pooled.replicates).all()
    assert all(np.isnan(end) for end in interval(pooled))


# --- the bootstrap


def test_counts_are_draws_with_replacement():
    counts = query_counts(KEY, 40, 3000)
    assert (counts.sum(axis=1) == 40).all()
    np.testing.assert_allclose(counts.mean(axis=0), 1, atol=4.5 * np.sqrt(1 / 3000))
    np.testing.assert_allclose(counts.var(), 39 / 40, rtol=0.02)
    np.testing.assert_array_equal(query_counts(KEY, 40, 7), counts[:7])
    assert (query_counts(jax.random.key(4), 40, 7) != counts[:7]).any()


def test_weights_begin_with_all_queries():
    weights = with_all(query_counts(KEY, 10, 3))
    np.testing.assert_allclose(weights[0], 0.1)
    np.testing.assert_allclose(weights.sum(axis=1), 1)


def test_the_interval_is_around_the_value():
    replicates = np.random.default_rng(0).normal(5, 1, 20_001)
    low, high = interval(Resampled(np.asarray(2.0), replicates))
    np.testing.assert_allclose([low, high], [2 - 1.96, 2 + 1.96], atol=0.05)
    low, high = interval(Resampled(np.asarray(2.0), replicates), 0.5, within=(1.9, 9))
    np.testing.assert_allclose([low, high], [1.9, 2.674], atol=0.03)
    replicates[17] = np.nan
    assert all(np.isnan(end) for end in interval(Resampled(np.asarray(2.0), replicates)))


def test_intervals_cover_at_about_their_level():
    """Slopes, over samples of queries from a world where they are known."""
    rng = np.random.default_rng(5)
    x = np.linspace(0.1, 0.9, 12)[:, None]
    covered = []
    for i in range(200):
        easy = 0.2 * rng.normal(size=80)
        full, noise = x * (1 + easy), 0.2 * rng.normal(size=(12, 80))
        found = flattening(
            curves_of(full, 0.3 * x + 0.1 * easy + noise),
            "mrr",
            "sparse",
            query_counts(jax.random.key(i), 80, 200),
        )
        low, high = interval(found.slope_high)
        covered.append(low[0] <= 0.3 <= high[0])
    # 95 % of 200, give or take three standard errors, and 2 % for the bootstrap.
    assert 0.88 <= np.mean(covered) <= 0.996


# --- bad input


def test_unknown_names_are_answered_with_the_known_ones():
    curves = shaped(np.sqrt)
    counts = query_counts(KEY, 60, 2)
    with pytest.raises(ValueError, match=r"`metric` must be one of mrr, got 'mr'"):
        flattening(curves, "mr", "sparse", counts)
    with pytest.raises(ValueError, match=r"`metric` must be one of mrr, got 'nonsense'"):
        flattening(curves, "nonsense", "sparse", counts)
    for name in ("full", "correlated"):
        with pytest.raises(ValueError, match=rf"`test_set` must be one of sparse, got '{name}'"):
            flattening(curves, "mrr", name, counts)


def test_synonyms_of_a_metric_are_found():
    curves = shaped(np.sqrt)._replace(metrics=("p-mrr@1/4",))
    assert metric_index(curves, "p-mrr@0.25") == metric_index(curves, "p-mrr@1/4") == 0
    assert metric_index(curves._replace(metrics=("my own",)), "my own") == 0


def test_curves_that_do_not_hold_together():
    curves = shaped(np.sqrt)
    full, sparse = curves.values["full"], curves.values["sparse"]
    holed = sparse.copy()
    holed[0, 3, 7] = np.nan
    for values, message in (
        ({"full": full}, "must have the test set full and another one, got full"),
        ({"sparse": sparse, "other": full}, "must have the test set full and another one, got sparse, other"),
        ({"full": full, "sparse": sparse[..., 1:]}, r"got \(1, 30, 59\) on sparse"),
        (
            {"full": full, "sparse": holed},
            r"`curves.values\['sparse'\]` must be finite, got nan at index \(0, 3, 7\)",
        ),
        ({"full": full[..., :1], "sparse": sparse[..., :1]}, "at least two queries"),
    ):
        with pytest.raises(ValueError, match=message):
            checked_curves(curves._replace(values=values))
    with pytest.raises(ValueError, match=r"`curves.config` must be below 1, got 4 at index \(2,\)"):
        checked_curves(curves._replace(config=np.where(np.arange(30) == 2, 4, 0).astype(np.int32)))
    with pytest.raises(ValueError, match="a model for each of its 1 configurations, got 30 and 2"):
        checked_curves(curves._replace(models=("a", "b")))
    with pytest.raises(ValueError, match="`curves` must be a Curves, got dict"):
        checked_curves({})


@pytest.mark.parametrize("replicates", [0, 1, 2.5, None, "9"])
def test_bad_replicates(replicates):
    with pytest.raises(ValueError, match="`replicates` must be a whole number of at least 2"):
        query_counts(KEY, 5, replicates)


@pytest.mark.parametrize("key", [-1, None, np.zeros(2, np.uint32)])
def test_bad_keys(key):
    with pytest.raises(ValueError, match="`key` must be one key"):
        query_counts(key, 5)
