"""P-values of pairs of systems, against SciPy and every sign pattern."""

from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from owkg.judge.scores import Scores
from owkg.judge.significance import PairTest, contributions, difference_intervals, pairwise
from owkg.stats.sign_flips import randomisation

KEY = 5


def made(value, weight=None, larger=True):
    value = np.asarray(value, np.float64)[None]
    _, systems, queries = value.shape
    asked = pl.DataFrame({"side": "tail", "entity": [f"e{i}" for i in range(queries)], "relation": "r"})
    weight = np.ones((1, queries)) if weight is None else np.asarray(weight, np.float64)[None]
    return Scores(tuple("abcdefgh"[:systems]), ("m",), (larger,), asked, value, weight)


def micro(queries=60, systems=4, larger=True):
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 6, queries)
    return made(weight * rng.random((systems, queries)) + 0.1 * np.arange(systems)[:, None], weight, larger)


@pytest.mark.parametrize("larger", [True, False])
def test_contributions_average_to_what_a_system_reads(larger):
    scores = micro(larger=larger)
    each = contributions(scores, "m")
    assert each.mean(1) == pytest.approx(scores.strength[0], rel=1e-12)
    found = pairwise(scores, "m")
    assert found.difference == pytest.approx(
        scores.strength[0][found.first] - scores.strength[0][found.second]
    )
    gaps = each[found.first] - each[found.second]
    assert found.deviation == pytest.approx(gaps.std(1, ddof=1))
    assert found.queries == 60


def test_student_is_that_of_scipy():
    scores = made(micro().value[0])
    found = pairwise(scores, "m", test="t")
    for first, second, p in zip(found.first, found.second, found.p, strict=True):
        value = scores.value[0]
        assert p == pytest.approx(stats.ttest_rel(value[first], value[second]).pvalue, abs=1e-10)
        assert found.matrix[first, second] == found.matrix[second, first] == p
    assert (np.diagonal(found.matrix) == 1).all()
    assert (found.systems, found.test, len(found.p)) == (("a", "b", "c", "d"), "t", 6)


@pytest.mark.parametrize("trend", [0.0, 0.3])
def test_p_of_a_ratio_is_that_of_its_interval(trend):
    """1 - p is the level at which the interval ends at 0: weights of a metric are as random as its values."""
    scores = micro()
    weight = scores.weight[0]
    scores = made(scores.value[0] - trend * weight * (weight > 3) * np.arange(4)[:, None], weight)
    found = pairwise(scores, "m", test="t")
    for i, p in enumerate(found.p):
        low, high = (ends[i] for ends in difference_intervals(scores, "m", level=1 - p))
        assert min(abs(low), abs(high)) == pytest.approx(0, abs=1e-6 * (high - low))


def test_the_error_of_a_ratio_is_the_jackknifes():
    """Of 60 queries that all differ, heavier and lighter ones alike; every query is left out in turn."""
    rng = np.random.default_rng(3)
    weight = rng.integers(1, 6, 60).astype(float)
    value = weight * (1 + 0.1 * rng.normal(size=(2, 60)))
    found = pairwise(made(value, weight), "m", test="t")
    gap = value[0] - value[1]
    left = (gap.sum() - gap) / (weight.sum() - weight)
    # All weights but that of the query count in its ratio, (60 - 1) / 60 of them on average.
    variance = np.sum((left - gap.sum() / weight.sum()) ** 2)
    scarce = (10 / 60) ** 2 * (np.ptp(value / weight) / 60) ** 2
    assert found.error[0] == pytest.approx(np.sqrt(variance + scarce), rel=1e-9)
    assert found.effective == pytest.approx(weight.sum() ** 2 / (weight @ weight))


def test_intervals_reach_further_to_where_heavier_queries_are():
    """Better on small queries and worse on large ones: what the sample may lack is large."""
    rng = np.random.default_rng(0)
    weight = np.r_[np.ones(200), np.full(10, 20.0)]
    share = np.where(weight > 1, 0.3, 0.6) + 0.05 * rng.normal(size=210)
    scores = made(np.stack([weight * share, weight * 0.5]), weight)
    (low,), (high,) = difference_intervals(scores, "m")
    middle = pairwise(scores, "m").difference[0]
    assert middle - low > 1.05 * (high - middle)
    turned = scores._replace(value=scores.value[:, ::-1])
    assert difference_intervals(turned, "m") == (pytest.approx(-high), pytest.approx(-low))
    # Where they differ no more than others, both sides are alike.
    share = 0.5 + 0.05 * np.resize([1.0, -1.0], 210) + 0.01
    alike = made(np.stack([weight * share, weight * 0.5]), weight)
    (low,), (high,) = difference_intervals(alike, "m")
    assert high + low == pytest.approx(2 * pairwise(alike, "m").difference[0])


@pytest.mark.parametrize("test", list(PairTest))
def test_queries_of_no_weight_say_nothing(test):
    scores = micro()
    more = made(np.pad(scores.value[0], ((0, 0), (2, 3))), np.pad(scores.weight[0], (2, 3)))
    for of in (scores, scores._replace(weight=np.ones_like(scores.weight))):
        padded = more if of is scores else more._replace(weight=(more.weight > 0).astype(float))
        one, two = (pairwise(each, "m", test=test, key=KEY, draws=99) for each in (of, padded))
        np.testing.assert_array_equal(one.p, two.p)
        assert two.queries == 60
        np.testing.assert_array_equal(difference_intervals(of, "m"), difference_intervals(padded, "m"))


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=12, max_size=12))
def test_wilcoxon_is_that_of_scipy_with_ties_and_zeros(rows):
    value = np.array(rows, float).T / 7
    found = pairwise(made(value), "m", test="wilcoxon")
    for first, second, p in zip(found.first, found.second, found.p, strict=True):
        gap = np.round(7 * (value[first] - value[second]))
        if not gap.any():
            assert p == 1
        else:
            peer = stats.wilcoxon(gap, zero_method="wilcox", correction=False, method="asymptotic")
            assert p == pytest.approx(peer.pvalue, abs=1e-10)


def test_pairs_in_parts(monkeypatch):
    scores = micro()
    whole = [pairwise(scores, "m", test=test, key=KEY, draws=300) for test in PairTest]
    monkeypatch.setattr("owkg.judge.significance._CHUNK", 60)
    monkeypatch.setattr("owkg.stats.sign_flips._SIGNS", 1)
    for test, expected in zip(PairTest, whole, strict=True):
        found = pairwise(scores, "m", test=test, key=KEY, draws=300)
        assert found.p == pytest.approx(expected.p, rel=1e-12)
        assert found.deviation == pytest.approx(expected.deviation, rel=1e-12)


def _every_pattern(gap):
    """The definition, in whole numbers."""
    statistics = [
        abs(sum(s * d for s, d in zip(signs, gap, strict=True)))
        for signs in product((1, -1), repeat=len(gap))
    ]
    return np.mean([statistic >= abs(sum(gap)) for statistic in statistics])


@given(st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=7, max_size=7))
def test_the_enumeration_is_exact(rows):
    value = np.array(rows).T
    # Sevenths are no binary fractions: equal sums differ in their last digits.
    found = randomisation(KEY, value / 7, draws=128)
    pairs = zip(*np.triu_indices(3, 1), strict=True)
    expected = [_every_pattern((value[a] - value[b]).tolist()) for a, b in pairs]
    assert found == pytest.approx(expected, abs=1e-12)


def _every_t(gap, wider):
    """The same of Student's t, the observed one with a variance so many times as large."""

    def parts(signed):
        return signed.mean() ** 2, signed.var()

    mean, variance = parts(gap)
    flips = np.array([parts(gap * np.array(signs)) for signs in product((1, -1), repeat=len(gap))])
    return np.mean(flips[:, 0] * variance * wider >= mean * flips[:, 1] * (1 - 1e-9) - 1e-20)


@given(st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=7, max_size=7))
def test_the_enumeration_with_a_wider_error_is_exact(rows):
    value, wider = np.array(rows).T / 7, np.array([1.0, 1.3, 4.1])
    found = randomisation(KEY, value, wider=wider, draws=128)
    for p, times, first, second in zip(found, wider, *np.triu_indices(3, 1), strict=True):
        gap = value[first] - value[second]
        assert p == pytest.approx(_every_t(gap, times) if gap.any() else 1, abs=1e-12)


def test_draws_estimate_the_enumeration():
    rng = np.random.default_rng(2)
    value = np.round(rng.random((4, 12)) + 0.2 * np.arange(4)[:, None], 1)
    exact = randomisation(KEY, value, draws=4096)
    assert ((exact * 4096) % 1 == 0).all()
    draws = 4095  # one less than there are patterns
    found = randomisation(KEY, value, draws=draws)
    assert not np.array_equal(found, exact)
    error = np.sqrt(exact * (1 - exact) / draws)
    assert (np.abs(found - (draws * exact + 1) / (draws + 1)) < 4 * error + 1e-12).all()
    # A peer in the same words.
    for i, (a, b) in enumerate(zip(*np.triu_indices(4, 1), strict=True)):
        peer = stats.permutation_test(
            (value[a] - value[b],), lambda d, axis: d.mean(axis), permutation_type="samples", n_resamples=4096
        )
        assert exact[i] == pytest.approx(peer.pvalue, abs=1e-12)


def test_the_signs_are_fair_and_of_their_own():
    # Of one query that differs, nothing is ever nearer to 0; of two like it, every second draw is.
    each = np.zeros((2, 100))
    each[0, 17] = 1
    assert randomisation(KEY, each, draws=1000).item() == 1
    each[0, 99] = 1
    draws = 10_000
    found = randomisation(KEY, each, draws=draws).item()
    assert abs(found - 0.5) < 4 * 0.5 / np.sqrt(draws)
    # Many queries: near to Student's t.
    rng = np.random.default_rng(0)
    value = rng.normal(size=(3, 500)) + 0.07 * np.arange(3)[:, None]
    p = pairwise(made(value), "m").p
    found = pairwise(made(value), "m", test="randomisation", key=KEY, draws=draws).p
    assert (np.abs(found - p) < 4 * np.sqrt(p * (1 - p) / draws) + 0.005).all()


def test_equal_keys_give_equal_p_values_and_never_0():
    rng = np.random.default_rng(0)
    value = rng.random((3, 100)) + 5 * np.arange(3)[:, None]
    value[1, :50] = value[0, :50]
    one, two, other = (randomisation(key, value, draws=999) for key in (KEY, KEY, 6))
    assert (one == two).all()
    assert (one == 1 / 1000).all()
    assert (other == 1 / 1000).all()
    close = rng.random((3, 100))
    assert (randomisation(KEY, close, draws=999) == randomisation(KEY, close, draws=999)).all()
    assert (randomisation(KEY, close, draws=999) != randomisation(6, close, draws=999)).any()


def test_progress_reaches_all_draws(monkeypatch):
    monkeypatch.setattr("owkg.stats.sign_flips._SIGNS", 128 * 100)
    steps = []
    randomisation(KEY, np.eye(3, 100), draws=300, on_progress=lambda *step: steps.append(step))
    assert steps == [(128, 300), (256, 300), (300, 300)]


@pytest.mark.parametrize("test", list(PairTest))
@pytest.mark.parametrize("queries", [2, 40])
@pytest.mark.parametrize("uneven", [False, True])
def test_systems_that_read_the_same_and_others_that_differ_by_a_constant(test, queries, uneven):
    value = np.ones((3, queries)) * np.array([[1.0], [1.0], [2.0]])
    value += 0.3 * np.arange(queries) % 1
    weight = 1.0 + uneven * np.arange(queries)
    found = pairwise(made(weight * value, weight), "m", test=test, key=KEY)
    assert found.p[0] == 1
    assert np.isfinite(found.p).all()
    assert ((found.p >= 0) & (found.p <= 1)).all()
    assert (found.p[1:] <= (1e-6 if queries == 40 else 0.5) + 1e-4).all()


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({"scores": 1}, "`scores`"),
        ({"scores": micro(systems=1)}, "at least two systems, got 1"),
        ({"scores": micro(queries=1)}, "at least two queries, got 1"),
        ({"scores": made(np.ones((2, 3)), np.zeros(3))}, "a positive weight"),
        ({"metric": "x"}, "`metric` must be one of m, got 'x'"),
        ({"test": "z"}, "t, wilcoxon, randomisation, got 'z'"),
        ({"test": "randomisation"}, "`key`"),
        ({"test": "randomisation", "key": 3.0}, "`key`"),
        ({"test": "randomisation", "key": KEY, "draws": 0}, "`draws`"),
    ],
)
def test_bad_input(changed, shown):
    with pytest.raises(ValueError, match=shown):
        pairwise(**({"scores": micro(), "metric": "m"} | changed))


@pytest.mark.parametrize("wider", [0.5, np.nan])
def test_bad_variances(wider):
    with pytest.raises(ValueError, match=f"`wider`.*{wider}"):
        randomisation(KEY, np.eye(2), wider=wider)


@pytest.mark.parametrize(
    ("each", "shown"), [([[1.0, np.nan], [1, 2]], "nan"), ([1.0, 2.0], "shape"), ([[1.0, 2.0]], "shape")]
)
def test_bad_contributions(each, shown):
    with pytest.raises(ValueError, match=shown):
        randomisation(KEY, each)


def test_more_draws_than_counters():
    with pytest.raises(ValueError, match=r"below 2\*\*31"):
        randomisation(KEY, np.eye(2, 40), draws=2**31)


def test_wilcoxon_takes_differences_that_only_rounding_parts_for_equal():
    """0.3 - 0.2 and 0.2 - 0.1 differ in their last digit: their ranks are shared, as of exact numbers."""
    first = np.array([0.3, 0.2, 0.9, 0.1, 0.5, 0.8])
    second = np.array([0.2, 0.1, 0.5, 0.6, 0.1, 0.9])
    assert len(np.unique(np.abs(first - second))) > len(np.unique(np.abs(first - second).round(12)))
    asked = pl.DataFrame({"side": "tail", "entity": list("abcdef"), "relation": "r"})
    own = Scores(("x", "y"), ("mrr",), (True,), asked, np.array([[first, second]]), np.ones((1, 6)))
    expected = stats.wilcoxon((first - second).round(12), method="asymptotic").pvalue
    assert pairwise(own, "mrr", test="wilcoxon").p[0] == pytest.approx(expected, rel=1e-12)


def test_intervals_of_differences_hold_the_difference():
    """Of uneven queries, a ratio: 95 % of 600 samples; of even ones, Student's t."""
    rng = np.random.default_rng(0)
    held = 0
    asked = pl.DataFrame({"side": "tail", "entity": map(str, range(80)), "relation": "r"})
    for _ in range(600):
        weight = rng.geometric(0.3, 80).astype(float)
        value = weight * (rng.normal(size=(2, 80)) + np.array([[1.0], [0.8]]) + rng.normal(size=80))
        found = Scores(("a", "b"), ("mrr",), (True,), asked, value[None], weight[None])
        low, high = difference_intervals(found, "mrr")
        held += low[0] < 0.2 < high[0]
    assert abs(held / 600 - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 600)
    value = rng.normal(size=(1, 2, 80))
    for turned in (True, False):
        of = Scores(("a", "b"), ("x",), (turned,), asked, value, np.ones((1, 80)))
        low, high = difference_intervals(of, "x", level=0.9)
        sign = 1 if turned else -1
        peer = stats.ttest_1samp(sign * (value[0, 0] - value[0, 1]), 0).confidence_interval(0.9)
        half = np.hypot((peer.high - peer.low) / 2, stats.t.ppf(0.95, 79) * np.ptp(value) / 80)
        middle = (peer.low + peer.high) / 2
        np.testing.assert_allclose([low[0], high[0]], [middle - half, middle + half])


def test_intervals_of_differences_that_a_sample_hardly_shows():
    """Strong systems, right on 98 % and 94 % of 40 queries; systems that agree on all of them."""
    rng = np.random.default_rng(1)
    asked = pl.DataFrame({"side": "tail", "entity": map(str, range(40)), "relation": "r"})

    def limits(value):
        low, high = difference_intervals(
            Scores(("a", "b"), ("hits@1",), (True,), asked, value[None].astype(float), np.ones((1, 40))),
            "hits@1",
        )
        return low[0], high[0]

    held = []
    for _ in range(600):
        low, high = limits(rng.random((2, 40)) < np.array([[0.98], [0.94]]))
        held.append(low < 0.04 < high)
    assert np.mean(held) > 0.93
    for value in (np.ones((2, 40)), np.tile(rng.random(40), (2, 1))):
        low, high = limits(value)
        assert -0.06 < low < 0 < high < 0.06
    assert limits(np.zeros((2, 40))) == (0, 0)  # no answer was ever found: no scale to be wrong on
