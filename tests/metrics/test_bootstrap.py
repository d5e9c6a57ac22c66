"""The bootstrap over queries: deterministic, of whole queries, and with scipy's ends."""

import jax
import numpy as np
import pytest
from scipy import stats

from owkg.metrics import Ties, evaluate, metric, tasks, tasks_of
from owkg.metrics.median import distribution, quantile, rank_histogram, resampled_medians
from owkg.stats import IntervalMethod
from owkg.stats.bootstrap import bounds, resampled_sums

KEY = jax.random.key(7)


def test_replicates_are_sums_over_as_many_queries():
    count = 37
    sums = resampled_sums(KEY, np.stack([np.ones(count), np.arange(count), np.eye(count)[5]]), 4000)
    assert sums.shape == (4000, 3)
    assert (sums[:, 0] == count).all()
    assert abs(sums[:, 1].mean() - 666) < 4 * np.sqrt(count * (count**2 - 1) / 12 / 4000)
    np.testing.assert_allclose(sums[:, 1].var(), count * (count**2 - 1) / 12, rtol=0.1)
    # How often one query is drawn is binomial.
    observed = np.bincount(sums[:, 2].astype(int), minlength=7)
    expected = 4000 * stats.binom.pmf(np.arange(len(observed)), count, 1 / count)
    assert abs(observed[0] - expected[0]) < 4 * np.sqrt(expected[0])
    assert abs(observed[2] - expected[2]) < 4 * np.sqrt(expected[2])


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 300])
def test_a_prefix_of_replicates_is_the_same_whatever_is_summed(count):
    rng = np.random.default_rng(count)
    parts = rng.random((3, count))
    long = resampled_sums(KEY, parts, 50)
    np.testing.assert_array_equal(resampled_sums(KEY, parts, 20), long[:20])
    np.testing.assert_array_equal(resampled_sums(KEY, parts, 50), long)
    alone = resampled_sums(KEY, parts[1:2], 50)
    np.testing.assert_allclose(alone[:, 0], long[:, 1], rtol=1e-13)
    other = resampled_sums(jax.random.key(8), parts, 50)
    assert count == 1 or (other != long).any()


@pytest.mark.parametrize("rule", list(Ties))
@pytest.mark.parametrize("weighted", [False, True])
def test_medians_are_of_the_queries_that_the_sums_draw(full_table, rule, weighted):
    made, _ = tasks_of(full_table)
    weight = made.weight if weighted else None
    count = made.num_queries
    drawn = resampled_sums(KEY, np.eye(count), 12).round().astype(int)
    found = resampled_medians(KEY, made, rule, weight, 12)
    each = np.ones(len(made.optimistic)) if weight is None else weight
    for times, median in zip(drawn, found, strict=True):
        assert times.sum() == count
        part = each * times[made.query]
        assert median == quantile(distribution(rank_histogram(made, rule, part)), 0.5)


def test_a_replicate_without_weight_has_no_number():
    made = tasks([1, 4, 2], candidates=9, weight=[1.0, 0.0, 0.0])
    medians = resampled_medians(KEY, made, Ties.EXACT, made.weight, 200)
    assert np.isnan(medians).any()
    assert (medians[~np.isnan(medians)] == 1).all()
    found = evaluate(
        made,
        [metric(n) for n in ("mrr", "median_rank", "zmr", "gmr")],
        interval="bca",
        ties=["exact"],
        draws=2,
    )[Ties.EXACT]
    for estimate in found.values():
        assert np.isfinite(estimate.value)
        assert np.isnan([estimate.ci_low, estimate.ci_high]).all()


def _tasks(count=80, seed=0):
    rng = np.random.default_rng(seed)
    return tasks(np.minimum(rng.geometric(0.1, count), 60), candidates=60)


STATISTICS = {
    "mrr": lambda r, axis: np.mean(1 / r, axis=axis),
    "mr": lambda r, axis: np.mean(r, axis=axis),
    "hits@3": lambda r, axis: np.mean(r <= 3, axis=axis),
    "gmr": lambda r, axis: np.exp(np.mean(np.log(r), axis=axis)),
    "hmr": lambda r, axis: 1 / np.mean(1 / r, axis=axis),
    "median_rank": lambda r, axis: np.median(r, axis=axis),
    "amri": lambda r, axis: 1 - 2 * np.mean(r - 1, axis=axis) / 59,
}


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_against_scipy(method):
    made = _tasks()
    names = [name for name in STATISTICS if not (method == "bca" and name == "median_rank")]
    found = evaluate(
        made, [metric(name) for name in names], interval=method, replicates=20_000, ties=["exact"], key=KEY
    )[Ties.EXACT]
    for name in names:
        theirs = stats.bootstrap(
            (made.optimistic.astype(float),),
            STATISTICS[name],
            method=method,
            n_resamples=20_000,
            rng=np.random.default_rng(1),
        ).confidence_interval
        width = theirs.high - theirs.low
        own = found[name]
        assert abs(own.ci_low - theirs.low) <= 0.04 * width, (name, own, theirs)
        assert abs(own.ci_high - theirs.high) <= 0.04 * width, (name, own, theirs)


def test_bca_of_skewed_numbers_is_not_the_percentile():
    made = _tasks(30)
    by = {
        kind: evaluate(made, [metric("gmr")], interval=kind, replicates=5000)[Ties.EXACT]["gmr"]
        for kind in IntervalMethod
    }
    assert len({estimate.ci_low for estimate in by.values()}) == 3
    assert len({estimate.value for estimate in by.values()}) == 1
    assert len({estimate.standard_error for estimate in by.values()}) == 1


def test_the_spread_of_replicates_is_the_standard_error(full_table):
    made, _ = tasks_of(full_table)
    names = ["mrr", "mr", "amri", "amr", "zmrr", "gmr", "agmri", "macro-map@5", "probe@1,0.5"]
    analytic = evaluate(made, [metric(name) for name in names], ties=["exact"], level=0.6827)[Ties.EXACT]
    drawn = evaluate(
        made,
        [metric(name) for name in names],
        ties=["exact"],
        level=0.6827,
        interval="percentile",
        replicates=4000,
        key=KEY,
    )[Ties.EXACT]
    for name in names:
        spread = (drawn[name].ci_high - drawn[name].ci_low) / 2
        np.testing.assert_allclose(spread, analytic[name].standard_error, rtol=0.1, err_msg=name)


def test_keys_decide(full_table):
    made, _ = tasks_of(full_table)

    def ends(key):
        found = evaluate(made, [metric("mrr")], interval="percentile", key=key, replicates=50)
        return found[Ties.EXACT]["mrr"]

    assert ends(KEY) == ends(jax.random.key(7)) != ends(jax.random.key(8))
    assert ends(None) == ends(jax.random.key(0))


def test_bounds():
    replicates = np.random.default_rng(0).normal(3, 1, 200_001)
    low, high = bounds(IntervalMethod.PERCENTILE, 3.0, replicates, 0.95)
    np.testing.assert_allclose((low, high), (3 - 1.96, 3 + 1.96), atol=0.02)
    # No bias and no acceleration: BCa is the percentile.
    np.testing.assert_allclose(bounds(IntervalMethod.BCA, 3.0, replicates, 0.95), (low, high), atol=0.02)
    # Bias alone: the ends are Phi(2 z0 +- 1.96).
    shifted = bounds(IntervalMethod.BCA, 3.1, replicates, 0.95)
    np.testing.assert_allclose(shifted, (3.2 - 1.96, 3.2 + 1.96), atol=0.03)
    # Acceleration alone.
    influence = np.array([-1.0] * 9 + [9.0])
    a = np.sum(influence**3) / (6 * np.sum(influence**2) ** 1.5)
    ends = [3 + z / (1 - a * z) for z in (-1.95996, 1.95996)]
    found = bounds(IntervalMethod.BCA, 3.0, replicates, 0.95, influence)
    np.testing.assert_allclose(found, ends, atol=0.05)
    assert np.isnan(bounds(IntervalMethod.BCA, np.nan, replicates, 0.95)).all()
    assert np.isnan(bounds(IntervalMethod.BCA, 3.0, np.append(replicates, np.nan), 0.95)).all()
    assert bounds(IntervalMethod.BCA, 2.0, np.full(9, 2.0), 0.95) == (2, 2)


@pytest.mark.parametrize("replicates", [0, 1, -5, 2.5, "10", None, float("nan")])
def test_bad_replicates(replicates):
    with pytest.raises(ValueError, match="`replicates`"):
        evaluate(_tasks(), [metric("mrr")], interval="bca", replicates=replicates)


@pytest.mark.parametrize("interval", ["normal", "", None, 3])
def test_bad_interval(interval):
    with pytest.raises(ValueError, match="`interval` must be one of analytic, percentile, bca"):
        evaluate(_tasks(), [metric("mrr")], interval=interval)
