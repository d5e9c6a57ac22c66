"""The median rank and the scatter of ranks, under every tie rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from owkg.metrics import Ties, evaluate, metric, part_of, tasks
from owkg.metrics.measures import Spread
from owkg.metrics.median import (
    Distribution,
    below,
    distribution,
    quantile,
    rank_histogram,
    scatter,
    share_below,
    woodruff,
)


@st.composite
def ranked(draw):
    """Tasks with ties, and whole weights (None: equal)."""
    rows = draw(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), min_size=1, max_size=15))
    low = np.array([a for a, _ in rows])
    weight = draw(st.none() | st.lists(st.integers(0, 4), min_size=len(rows), max_size=len(rows)))
    weight = None if weight is None or not any(weight) else np.array(weight, float)
    return tasks(low, low + [b for _, b in rows], 20, weight=weight)


def _spread(made, rule):
    """Every rank and its weight, counted in twelfths, so that ties of up to four ranks are whole."""
    values = []
    weights = np.ones(len(made.optimistic)) if made.weight is None else made.weight
    for low, high, weight in zip(made.optimistic, made.pessimistic, weights, strict=True):
        ranks = {
            Ties.OPTIMISTIC: [low],
            Ties.PESSIMISTIC: [high],
            Ties.REALISTIC: [(low + high) / 2],
            Ties.EXACT: range(low, high + 1),
        }[rule]
        for rank in ranks:
            values += [rank] * int(12 * weight / len(ranks))
    return np.array(values, float)


@pytest.mark.parametrize("rule", list(Ties))
@given(made=ranked())
def test_median_and_scatter_by_hand(rule, made):
    values = _spread(made, rule)
    on_ranks = rank_histogram(made, rule, made.weight)
    by_rank = distribution(on_ranks)
    median = np.median(values)
    assert quantile(by_rank, 0.5) == median
    np.testing.assert_allclose(scatter(Spread.VARIANCE, on_ranks), values.var(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        scatter(Spread.STANDARD_DEVIATION, on_ranks), values.std(), rtol=1e-9, atol=1e-7
    )
    away = np.median(np.abs(values - median)) * 1.482602218505602
    np.testing.assert_allclose(scatter(Spread.MEDIAN_ABSOLUTE_DEVIATION, on_ranks), away, rtol=1e-12)
    counted = len(made.optimistic) if made.weight is None else np.count_nonzero(made.weight)
    assert evaluate(made, metric("count"))[rule]["count"].value == counted
    for rank in (0.5, 1, 3.5, 4, 30):
        below = share_below(made, rule, made.weight, rank).sum()
        np.testing.assert_allclose(below, (values <= rank).sum() / 12, rtol=1e-12)
    np.testing.assert_allclose(by_rank.share[-1], 1)
    assert (np.diff(by_rank.rank) > 0).all()


def test_the_scale_of_weights_does_not_matter():
    rng = np.random.default_rng(0)
    for scale in (1e-9, 1 / 3, 0.1, 7.7, 1e9):
        for count in (2, 3, 10, 100):
            ranks = rng.integers(1, 50, count)
            made = tasks(ranks, candidates=60, weight=np.full(count, scale))
            assert quantile(distribution(rank_histogram(made, Ties.EXACT, made.weight)), 0.5) == np.median(
                ranks
            )


def test_quantile():
    by_rank = Distribution(np.array([1.0, 2, 5]), np.array([0.25, 0.5, 1.0]))
    levels = (0, 0.1, 0.25, 0.3, 0.5, 0.51, 1)
    assert [quantile(by_rank, level) for level in levels] == [1, 1, 1.5, 2, 3.5, 5, 5]
    assert np.isnan(quantile(Distribution(np.empty(0), np.empty(0)), 0.5))


def test_no_weight_has_no_median():
    made = part_of(tasks([1, 4, 2], [1, 5, 2], 9, weight=[1, 0, 0]), slice(1, 3))
    names = ["median_rank", "zmedian_rank", "variance", "standard_deviation", "median_absolute_deviation"]
    for interval in ("analytic", "bca"):
        found = evaluate(made, [metric(n) for n in [*names, "mrr"]], interval=interval, replicates=10)
        for rule in Ties:
            for name in [*names, "mrr"]:
                assert np.isnan(found[rule][name].value)
                assert np.isnan(found[rule][name].expectation)


def test_woodruff_is_the_interval_of_order_statistics():
    ranks = np.random.default_rng(1).permutation(np.arange(1, 402))
    made = tasks(ranks, candidates=500)
    by_rank = distribution(rank_histogram(made, Ties.EXACT, None))
    error, (low, high) = woodruff(below(made, Ties.EXACT, None, quantile(by_rank, 0.5)), by_rank, 0.95)
    reach = 1.966 * np.sqrt(0.25 / 400)
    np.testing.assert_allclose((low, high), (401 * (0.5 - reach), 401 * (0.5 + reach)), atol=1.01)
    np.testing.assert_allclose(error, (high - low) / (2 * 1.9659), rtol=1e-3)


def test_woodruff_counts_queries_not_tasks():
    ranks = np.random.default_rng(2).permutation(np.arange(1, 202))
    alone = tasks(ranks, candidates=500)
    tripled = tasks(np.repeat(ranks, 3), candidates=500, query=np.repeat(np.arange(201), 3))
    by_hand = evaluate(alone, [metric("median_rank")])[Ties.EXACT]["median_rank"]
    found = evaluate(tripled, [metric("median_rank")])[Ties.EXACT]["median_rank"]
    assert (found.ci_low, found.ci_high) == (by_hand.ci_low, by_hand.ci_high)
    np.testing.assert_allclose(found.standard_error, by_hand.standard_error, rtol=1e-12)


def test_inverse_median():
    made = tasks([1, 4, 8, 8, 9], candidates=20)
    found = evaluate(made, [metric("median_rank"), metric("inverse_median_rank")])[Ties.EXACT]
    plain, inverse = found["median_rank"], found["inverse_median_rank"]
    assert inverse.value == 1 / plain.value == 1 / 8
    assert (inverse.ci_low, inverse.ci_high) == (1 / plain.ci_high, 1 / plain.ci_low)
    np.testing.assert_allclose(inverse.standard_error, plain.standard_error / 64, rtol=1e-12)


def test_woodruff_of_three_queries_by_hand():
    """The ends are quantiles whose levels are off by Student times the error over queries."""
    ranks = np.concatenate([np.arange(1, 300, 2), np.arange(301, 500), np.arange(2, 600, 3)])
    query = np.repeat([0, 1, 2], [150, 199, 200])
    made = tasks(ranks, candidates=1000, query=query)
    by_rank = distribution(rank_histogram(made, Ties.EXACT, None))
    middle = quantile(by_rank, 0.5)
    part = np.bincount(query, ranks <= middle) / len(ranks)
    moved = part - part.sum() * np.bincount(query) / len(ranks)
    for factor, equal in ((3 / 2, True), (1, False)):
        reach = stats.t.ppf(0.65, 2) * np.sqrt(factor * np.sum(moved**2))
        expected = quantile(by_rank, 0.5 - reach), quantile(by_rank, 0.5 + reach)
        assert (woodruff(below(made, Ties.EXACT, None, middle), by_rank, 0.3)[1] == expected) is equal


def test_the_power_means_at_infinity_are_the_ends_of_the_ranks():
    """Hoyt et al. (2022), Table 3."""
    made = tasks([3, 2, 9], [3, 5, 9], candidates=20)
    ends = [metric("power-mean@inf"), metric("power-mean@-inf")]
    found = evaluate(made, ends, level=None)
    assert [one.value for one in found[Ties.OPTIMISTIC].values()] == [9, 2]
    assert [one.value for one in found[Ties.PESSIMISTIC].values()] == [9, 3]
    near = [metric("power-mean@30"), metric("power-mean@-30")]
    means = evaluate(tasks([3, 2, 9], candidates=20), near, level=None)[Ties.EXACT]
    for mean, end in zip(means.values(), found[Ties.OPTIMISTIC].values(), strict=True):
        assert mean.value == pytest.approx(end.value, rel=0.05)
    # A task without weight is not there.
    weighed = evaluate(tasks([3, 2, 9], candidates=20, weight=[1, 1, 0]), ends, level=None)[Ties.EXACT]
    assert [one.value for one in weighed.values()] == [3, 2]


def test_tasks_of_no_weight_change_nothing():
    """A tie of weight 0 left rounding on its ranks, and the query that it is of counted."""
    given = {"optimistic": [4, 4, 1], "pessimistic": [5, 8, 20], "candidates": 20, "query": [0, 1, 2]}
    names = ["median_rank", "inverse_median_rank", "mrr", "macro-mrr", "count", "max_rank"]
    chosen = [metric(name) for name in names]
    whole = evaluate(tasks(**given, weight=[1.0, 3.0, 0.0]), chosen)
    cut = {name: values[:2] if isinstance(values, list) else values for name, values in given.items()}
    for rule, found in evaluate(tasks(**cut, weight=[1.0, 3.0]), chosen).items():
        for name, expected in found.items():
            np.testing.assert_array_equal(whole[rule][name], expected)
    assert whole[Ties.EXACT]["median_rank"].ci_high == 8


def test_the_ends_of_the_ranks_have_some_weight_however_little():
    for weight, ranks in (([1.0, 1e-17], (1, 9)), ([1e-300, 1e300], (1, 9)), ([1.0, 0.0], (1, 1))):
        found = evaluate(tasks([1, 9], candidates=9, weight=weight), [metric("min_rank"), metric("max_rank")])
        assert tuple(found[Ties.REALISTIC][name].value for name in ("min_rank", "max_rank")) == ranks
