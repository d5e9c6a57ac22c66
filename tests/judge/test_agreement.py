"""Agreement of two qrels, against a loop over resamples; what its intervals hold."""

import jax
import numpy as np
import polars as pl
import pytest
from scipy import stats

from owkg.judge.agreement import Interval, agreement, agreement_of_values
from owkg.judge.scores import Scores
from owkg.keys import children
from owkg.stats.bootstrap import resampled_sums
from owkg.stats.rank_correlation import kendall_tau, tau_ap

KEY = jax.random.key(3)


def made(value, names, larger=(True,), weight=None, systems="abcdefgh"):
    value = np.asarray(value, np.float64)
    metrics, count, queries = value.shape
    asked = pl.DataFrame({"side": "tail", "entity": [str(name) for name in names], "relation": "r"})
    weight = np.ones((metrics, queries)) if weight is None else weight
    return Scores(
        tuple(systems[:count]), tuple(f"m{i}" for i in range(metrics)), larger, asked, value, weight
    )


def pair(seed=0):
    """Two qrels of 30 and 25 queries, 20 of which are shared; two metrics, one a micro metric."""
    rng = np.random.default_rng(seed)
    weight = np.stack([np.ones(30), rng.integers(1, 5, 30)])
    value = rng.random((2, 5, 30)) * weight[:, None] + 0.1 * np.arange(5)[:, None]
    first = made(value, range(30), (True, False), weight)
    other = rng.random((2, 5, 25))
    second = made(other, rng.permutation(np.arange(10, 35)), (True, False))
    return first, second


def test_a_loop_over_resamples_agrees():
    first, second = pair()
    found = agreement(KEY, first, second, replicates=7, interval="percentile", level=0.5)
    assert (found.shared, found.only_first, found.only_second) == (20, 10, 5)
    # How often each query is drawn: columns of the identity are the counts.
    keys = children(KEY, 3)
    shared, alone, other = (
        resampled_sums(key, np.eye(n), 7) for key, n in zip(keys, (20, 10, 5), strict=True)
    )
    named = [scores.queries["entity"].cast(pl.Int64).to_numpy() for scores in (first, second)]
    for replicate in range(7):
        assert shared[replicate].sum() == 20
        drawn = dict(zip(range(10, 30), shared[replicate], strict=True))
        here = drawn | dict(zip(range(10), alone[replicate], strict=True))
        there = drawn | dict(zip(range(30, 35), other[replicate], strict=True))
        for metric, sign in ((0, 1), (1, -1)):
            read = []
            for scores, counts, names in ((first, here, named[0]), (second, there, named[1])):
                often = np.array([counts[name] for name in names])
                read.append(sign * scores.value[metric] @ often / (scores.weight[metric] @ often))
            expected = [
                stats.kendalltau(*read).statistic,
                tau_ap(*read).item(),
                stats.spearmanr(*read).statistic,
            ]
            assert found.resamples[replicate, metric] == pytest.approx(expected, abs=1e-12)
    assert found.low == pytest.approx(np.quantile(found.resamples, 0.25, axis=0))
    assert found.high == pytest.approx(np.quantile(found.resamples, 0.75, axis=0))
    assert found.value[:, 0] == pytest.approx(kendall_tau(first.strength, second.strength))
    assert found.value[:, 1] == pytest.approx(tau_ap(first.strength, second.strength))
    expected = np.clip(2 * found.value - found.resamples.mean(0), -1, 1)
    assert found.corrected == pytest.approx(expected)


def test_shared_queries_are_the_same_draw():
    # Two copies of one qrels agree in every resample, however close the systems; drawn apart, not.
    rng = np.random.default_rng(0)
    value = rng.random((1, 6, 50))
    first = made(value, range(50))
    found = agreement(KEY, first, first, replicates=200)
    assert found.resamples[..., [0, 2]] == pytest.approx(1)
    apart = agreement(KEY, first, made(value, range(100, 150)), replicates=200)
    assert apart.value[0, 0] == 1
    assert apart.resamples[..., 0].mean() < 0.9
    assert (apart.shared, apart.only_first, apart.only_second) == (0, 50, 50)


def test_order_of_systems_metrics_and_queries_does_not_matter():
    first, second = pair()
    turned = Scores(
        second.systems[::-1],
        second.metrics[::-1],
        second.larger_is_better[::-1],
        second.queries[::-1],
        second.value[::-1, ::-1, ::-1],
        second.weight[::-1, ::-1],
    )
    one, two = (agreement(KEY, first, other, replicates=200) for other in (second, turned))
    assert two.value.tolist() == one.value.tolist()
    assert two.shared == 20
    assert two.resamples.tolist() == one.resamples.tolist()
    assert two.low.tolist() == one.low.tolist()


def test_centred_intervals_hold_what_samples_say_on_average_and_percentiles_lie_too_low():
    """8 systems with close means; the qrels agree on them in the end, so that the tau there is 1."""
    rng = np.random.default_rng(1)
    mean = 0.04 * np.arange(8)[:, None]
    found = {kind: [] for kind in Interval}
    values, corrected = [], []
    for sample in range(60):
        noise = rng.normal(size=(8, 200))
        one, two = mean + noise, mean + 0.7 * noise + 0.7 * rng.normal(size=(8, 200))
        sets = [made(values[None], range(200)) for values in (one, two)]
        for kind in Interval:
            got = agreement(jax.random.key(sample), *sets, replicates=200, interval=kind)
            found[kind].append((got.low[0, 0], got.high[0, 0]))
        values.append(got.value[0, 0])
        corrected.append(got.corrected[0, 0])
    average = np.mean(values)
    assert average < 0.9
    low, high = np.array(found[Interval.CENTRED]).T
    # 95% of 60, less four standard errors.
    assert np.mean((low <= average) & (average <= high)) > 0.95 - 4 * np.sqrt(0.05 * 0.95 / 60)
    assert np.mean(high == 1) > 0.5
    low, high = np.array(found[Interval.PERCENTILE]).T
    assert np.mean(high == 1) < 0.3
    assert np.mean((low + high) / 2) < average - 0.05
    # The correction goes the right way.
    assert average < np.mean(corrected) < 1


def test_where_nothing_is_ordered_there_is_no_number():
    first, second = pair()
    level = second._replace(value=np.ones_like(second.value))
    found = agreement(KEY, first, level, replicates=200)
    for numbers in (found.value, found.corrected, found.low, found.high):
        assert np.isnan(numbers).all()
    # In some resamples only: the numbers stand, the intervals do not.
    value = np.zeros((1, 3, 4))
    value[0, :, 0] = [1, 2, 3]
    some = agreement(KEY, made(value, range(4)), made(value, range(4)), replicates=200)
    assert some.value[0, 0] == 1
    assert np.isnan(some.low).all()


def test_published_numbers():
    found = agreement_of_values({"a": 0.4, "b": 0.3, "c": 0.2}, {"c": 1.0, "a": 5.0, "b": 6.0})
    assert found == {
        "tau": pytest.approx(1 / 3),
        "tau-ap": pytest.approx(0, abs=1e-15),
        "spearman": pytest.approx(0.5),
    }


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        ({"a": 1.0, "b": 2.0}, {"a": 1.0, "c": 2.0}, "`second` lacks b"),
        ({"a": 1.0}, {"a": 1.0}, "at least two systems"),
        ({"a": 1.0, "b": 2.0}, {"a": np.nan, "b": 2.0}, "`second` must be finite, got nan"),
        ([1.0, 2.0], {"a": 1.0, "b": 2.0}, "`first` must map"),
        ({"a": 1.0, "b": 2.0}, {}, "`second` must map"),
    ],
)
def test_bad_published_numbers(first, second, shown):
    with pytest.raises(ValueError, match=shown):
        agreement_of_values(first, second)


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({"key": "0"}, "`key`"),
        ({"first": None}, "`first` must be Scores, the first result of owkg.judge.scores"),
        ({"second": pair()[1]._replace(systems=("a", "b", "c", "d", "z"))}, "same systems: `second` lacks e"),
        ({"second": pair()[1]._replace(metrics=("m0", "x"))}, "same metrics: `second` lacks m1"),
        ({"second": pair()[1]._replace(larger_is_better=(True, True))}, "larger is better"),
        (
            {"second": pair()[1]._replace(weight=np.zeros((2, 25)))},
            "`second` .* a positive weight, got none for m0",
        ),
        ({"replicates": 1}, "`replicates`"),
        ({"level": 1}, "`level`"),
        ({"interval": "bca"}, "centred, percentile, got 'bca'"),
        (
            {"first": made(np.ones((1, 1, 2)), "xy"), "second": made(np.ones((1, 1, 2)), "xy")},
            "a single system cannot be ranked",
        ),
        ({"first": pair()[0]._replace(queries=pair()[0].queries[[0] * 30])}, "once, got tail|0|r again"),
    ],
)
def test_bad_input(changed, shown):
    first, second = pair()
    arguments = {"key": KEY, "first": first, "second": second} | changed
    with pytest.raises(ValueError, match=shown):
        agreement(**arguments)
