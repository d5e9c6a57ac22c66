"""Exact limits by betting: all orders of small populations, Monte Carlo, and limits."""

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from owkg.errors import ArgumentError
from owkg.estimation.betting import betting_limits, exact_of_queries
from owkg.estimation.measures import measure, values
from owkg.estimation.regression import Sample
from owkg.estimation.targets import prepared
from tests.estimation.lists import small_population


def plain_limits(x, size, level):
    """The definition, on a grid of means: capital of both gamblers, one mean after another."""
    n, error = len(x), (1 - level) / 2
    running = [np.mean([0.5, *x[: i + 1]]) for i in range(n)]
    spread = [(0.25 + sum((x[j] - running[j]) ** 2 for j in range(i))) / (i + 1) for i in range(n)]
    kept = []
    for m in np.linspace(0, 1, 801):
        if not x.sum() / size <= m <= (x.sum() + size - n) / size:
            continue
        up = down = most = 1.0
        for i in range(n):
            bet = np.sqrt(2 * np.log(1 / error) / (n * spread[i]))
            left = (size * m - x[:i].sum()) / (size - i)
            up *= 1 + min(bet, 0.75 / max(left, 1e-12)) * (x[i] - left)
            down *= 1 - min(bet, 0.75 / max(1 - left, 1e-12)) * (x[i] - left)
            most = max(most, up, down)
        if most < 1 / error:
            kept.append(m)
    return min(kept), max(kept)


@pytest.mark.parametrize(("n", "size", "level"), [(12, 40, 0.95), (25, 1000, 0.9), (6, 8, 0.6)])
def test_bisection_finds_the_means_that_the_definition_keeps(n, size, level):
    random = np.random.default_rng(n)
    for x in (random.random(n), (random.random(n) < 0.2).astype(float), random.beta(5, 1, n)):
        low, high = betting_limits(x[None], size, level)
        bottom, top = plain_limits(x, size, level)
        assert low[0] == pytest.approx(bottom, abs=1.3e-3)
        assert high[0] == pytest.approx(top, abs=1.3e-3)


@pytest.mark.parametrize("level", [0.3, 0.5, 0.7])
@pytest.mark.parametrize(
    "people", [[0, 0, 0, 0, 0, 0, 1], [0, 0, 1, 1, 0, 1, 1], [0.1, 0.5, 0.5, 0.9, 1, 0.2, 0.3]]
)
def test_over_all_orders_limits_miss_at_most_as_often_as_promised(people, level):
    x = np.array(list(permutations(people, 5)), float)
    low, high = betting_limits(x, len(people), level)
    mean = np.mean(people)
    missed = ((low > mean + 1e-12) | (high < mean - 1e-12)).mean()
    assert missed <= 1 - level
    assert (low <= high).all()
    assert (high - low).min() < 0.6  # so that the promise is not kept by saying nothing


@pytest.mark.parametrize("n", [10, 20, 100])
def test_coverage_and_width_of_draws(n):
    random = np.random.default_rng(3)
    people = 1 / np.minimum(random.geometric(0.45, 2000), 10)
    x = np.stack([random.choice(people, n, replace=False) for _ in range(500)])
    low, high = betting_limits(x, len(people))
    covered = ((low <= people.mean()) & (people.mean() <= high)).mean()
    assert covered >= 0.95
    student = 2 * stats.t.ppf(0.975, n - 1) * x.std(1, ddof=1) / np.sqrt(n)
    assert np.median(high - low) / np.median(student) < 1.3


def test_a_census_is_a_point_and_more_draws_are_narrower():
    x = np.random.default_rng(0).random((1, 50))
    low, high = betting_limits(x, 50)
    assert low[0] == pytest.approx(x.mean())
    assert high[0] == pytest.approx(x.mean())
    widths = [np.subtract(*betting_limits(x[:, :n], 50)[::-1])[0] for n in (10, 20, 30, 40, 49)]
    assert (np.diff(widths) < 0).all()


def test_limits_mirror_and_hold_nothing_impossible():
    x = np.random.default_rng(1).random((3, 20))
    low, high = betting_limits(x, 25)
    mirrored = betting_limits(1 - x, 25)
    np.testing.assert_allclose(mirrored, (1 - high, 1 - low), atol=1e-12)
    assert (low >= x.sum(1) / 25 - 1e-12).all()
    assert (high <= (x.sum(1) + 5) / 25 + 1e-12).all()


@pytest.mark.parametrize(
    ("bad", "size", "name"),
    [
        (np.array([[0.5, 1.2]]), 10, "values"),
        (np.zeros((1, 11)), 10, "values"),
        (np.full((1, 3), np.nan), 10, "values"),
    ],
)
def test_bad_values_are_named(bad, size, name):
    with pytest.raises(ArgumentError, match=name):
        betting_limits(bad, size)


@pytest.mark.parametrize("n", [12, 40])
def test_limits_of_metrics_hold_the_truth_and_stay_possible(n):
    people, truth = small_population()
    random = np.random.default_rng(n + 1)
    guess = np.where(people.label == 1, 1.0, 0.3 * truth + 0.2)
    of = measure("rr", 3)
    ready = prepared(of, people, [guess])
    true = values(of, people, truth).mean(1)
    true = np.append(true, true[0] - true[1])
    wrong = 0
    for _ in range(100):
        rows = random.permutation(60)[:n]
        found = exact_of_queries(ready, people, truth, Sample(rows, np.zeros(n, int), np.array([60])))
        wrong += (found.low > true + 1e-9) | (true > found.high + 1e-9)
        assert (found.low >= found.least).all()
        assert (found.high <= found.most).all()
        assert set(found.method) == {"betting"}
    assert (wrong <= 10).all()  # 5 expected at most, of 100
    assert (found.high - found.low < found.most - found.least).any()


def test_ratios_and_strata_are_refused():
    people, truth = small_population()
    guess = np.where(people.label == 1, 1.0, 0.3)
    rows = np.arange(20)
    with pytest.raises(ArgumentError, match="mean over queries"):
        exact_of_queries(
            prepared(measure("mrr", 3), people, [guess]),
            people,
            truth,
            Sample(rows, np.zeros(20, int), np.array([60])),
        )
    with pytest.raises(ArgumentError, match="one stratum"):
        exact_of_queries(
            prepared(measure("rr", 3), people, [guess]),
            people,
            truth,
            Sample(rows, rows % 2, np.array([30, 30])),
        )
