"""Means of queries that were drawn: against direct regression, all samples, and what intervals promise."""

from itertools import combinations

import numpy as np
import pytest

from owkg.estimation.measures import measure, values
from owkg.estimation.prefixes import reach
from owkg.estimation.proxy import free_proxy
from owkg.estimation.regression import Sample, fitted, most_changed, wilson
from owkg.estimation.targets import contrasts, of_prefix_queries, of_queries, prepared
from tests.estimation.worlds import populated


def of_all(size, n):
    return Sample(np.arange(n), np.zeros(n, int), np.array([size]))


@pytest.mark.parametrize("covariates", [1, 2])
def test_slopes_leave_each_query_out(covariates):
    rng = np.random.default_rng(0)
    n = 12
    x = rng.normal(size=(covariates, 1, n))
    y = x.sum(0) + rng.normal(size=(1, n))
    left = []
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        design = np.column_stack([np.ones(n - 1), *x[:, 0, rest]])
        ridge = np.diag([0.0, *(0.02 * (x[:, 0] ** 2).sum(1) if covariates > 1 else np.zeros(covariates))])
        slope = np.linalg.solve(design.T @ design + ridge, design.T @ y[0, rest])
        left.append(y[0, i] - slope[1:] @ x[:, 0, i])
    found = fitted(y, x, of_all(100, n), np.zeros(1))
    assert found.mean[0] == pytest.approx(np.mean(left))
    assert found.variance[0] == pytest.approx(np.var(left, ddof=1) * (1 - n / 100) / n)


def test_without_covariates_it_is_the_plain_mean_over_all_samples():
    population = np.random.default_rng(1).random(7)
    means, variances = [], []
    for rows in combinations(range(7), 3):
        sample = Sample(np.array(rows), np.zeros(3, int), np.array([7]))
        found = fitted(population[None, list(rows)], np.zeros((0, 1, 3)), sample, np.zeros(1))
        means.append(found.mean[0])
        variances.append(found.variance[0])
    assert np.mean(means) == pytest.approx(population.mean())
    assert np.mean(variances) == pytest.approx(np.var(means))


def test_strata_are_weighted_over_all_samples():
    population, stratum = np.random.default_rng(2).random(8), np.repeat([0, 1], [5, 3])
    means, variances = [], []
    for first in combinations(range(5), 2):
        for second in combinations(range(5, 8), 2):
            rows = np.array([*first, *second])
            sample = Sample(rows, stratum[rows], np.array([5, 3]))
            found = fitted(population[None, rows], np.zeros((0, 1, 4)), sample, np.zeros(1))
            means.append(found.mean[0])
            variances.append(found.variance[0])
    assert np.mean(means) == pytest.approx(population.mean())
    assert np.mean(variances) == pytest.approx(np.var(means))


def test_a_perfect_covariate_leaves_the_floor_alone():
    x = np.random.default_rng(3).random(20)
    found = fitted(2 * x[None], (x - 0.5)[None, None], of_all(100, 20), np.array([0.04]))
    assert found.mean[0] == pytest.approx(1.0)
    assert found.r[0] == pytest.approx(1.0)
    assert found.variance[0] == pytest.approx(20 * 0.04 / 39 * 0.8 / 20, rel=1e-6)
    everything = fitted(2 * x[None], (x - 0.5)[None, None], of_all(20, 20), np.array([0.04]))
    assert everything.variance[0] == 0


def test_wilson_is_the_classical_interval_at_many_degrees_of_freedom():
    n, m = 50, 0.3
    found = fitted(np.zeros((1, 2)), np.zeros((0, 1, 2)), of_all(9, 2), np.zeros(1))
    found = found._replace(mean=np.array([m]), variance=np.array([m * (1 - m) / n]), freedom=np.array([1e9]))
    low, high = wilson(found, 0.95, n)
    assert (low[0], high[0]) == pytest.approx((0.19103, 0.43752), abs=1e-4)


def test_most_changed_is_the_limit_of_clopper_and_pearson():
    assert most_changed(0, 50, 1000, 0.95) == 72  # 1 - .025^(1/50) = .0711
    assert most_changed(3, 20, 20, 0.95) == 3
    assert most_changed(20, 20, 100, 0.95) == 100


NAMES = ("rr", "p@5", "ap", "macro-mrr", "mrr", "success@5")


def test_intervals_cover():
    """300 samples of 20 of 300 queries: at least 92 % of all intervals hold the value of the whole."""
    people, true = populated(4, queries=300)
    proxy = free_proxy(people)
    to = contrasts(3, pairs=True)
    rng = np.random.default_rng(5)
    for name in NAMES:
        of = measure(name, 5)
        found = values(of, people, true)
        whole = to @ (found.sum(1) / people.relevant(true).sum() if of.micro else found.mean(1))
        ready = prepared(of, people, [proxy])
        held = np.zeros(len(to))
        for _ in range(300):
            sample = Sample(np.sort(rng.choice(300, 30, replace=False)), np.zeros(30, int), np.array([300]))
            limits = of_queries(ready, people, true, sample)
            held += (limits.low <= whole + 1e-12) & (whole <= limits.high + 1e-12)
        assert held.mean() / 300 > 0.93, (name, held / 300)
        assert held.min() / 300 > 0.89, (name, held / 300)


def test_intervals_of_prefixes_cover():
    people, true = populated(4, queries=300)
    proxy, reached, to = free_proxy(people), reach(5), contrasts(3, pairs=True)
    rng = np.random.default_rng(6)
    for name in ("rr", "success@5"):
        of = measure(name, 5)
        whole = to @ values(of, people, true).mean(1)
        ready = prepared(of, people, [proxy], reached=reached)
        held = np.zeros(len(to))
        for _ in range(300):
            sample = Sample(np.sort(rng.choice(300, 40, replace=False)), np.zeros(40, int), np.array([300]))
            deep = (rng.random((40, 1)) < reached).sum(1)
            limits = of_prefix_queries(ready, people, true, proxy, sample, deep, reached)
            held += (limits.low <= whole + 1e-12) & (whole <= limits.high + 1e-12)
        assert held.mean() / 300 > 0.93, (name, held / 300)


def test_all_queries_give_the_value_itself():
    people, true = populated(1)
    sample = Sample(np.arange(60), np.zeros(60, int), np.array([60]))
    for name in NAMES:
        of = measure(name, 5)
        found = values(of, people, true)
        whole = found.sum(1) / people.relevant(true).sum() if of.micro else found.mean(1)
        limits = of_queries(prepared(of, people, [free_proxy(people)]), people, true, sample)
        np.testing.assert_allclose(limits.value[:3], whole, atol=1e-12)
        np.testing.assert_allclose(limits.high - limits.low, 0, atol=1e-7)


def test_few_other_values_have_exact_limits():
    """All of 20 drawn queries have a relevant answer: at most so many of the others have none."""
    people, truth = populated(queries=60)
    one = measure("success@5", 5)
    truth = np.where(people.label == 0, 0, 1).astype(float)  # whatever is listed is relevant
    rows, size = np.arange(20), len(people.queries)
    found = of_queries(prepared(one, people, []), people, truth, of_all(size, 20))
    is_open = np.bincount(people.query[people.unknown], minlength=size) > 0
    known = values(one, people, (people.label == 1).astype(float))[0]
    at_most = most_changed(0, int(is_open[rows].sum()), int(is_open.sum()), 0.95)
    free = min(at_most, int((known[is_open] == 0).sum()))  # a known answer keeps a list at 1
    assert found.method[0] == "exact"
    assert found.low[0] == pytest.approx(1 - free / size)
    assert found.high[0] == pytest.approx(1)
