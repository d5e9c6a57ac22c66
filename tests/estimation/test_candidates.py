"""Candidates and prefixes drawn at random: all samples of small populations."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from owkg.estimation.candidates import (
    Drawn,
    allocation,
    contributions,
    equal_strata,
    few_limits,
    horvitz_thompson,
    limits,
    of_candidates,
)
from owkg.estimation.measures import measure, values
from owkg.estimation.population import UNKNOWN
from owkg.estimation.prefixes import needed, of_prefixes, reach
from owkg.estimation.proxy import free_proxy
from owkg.estimation.regression import Sample
from owkg.estimation.targets import contrasts, of_prefix_queries, prepared
from tests.estimation.worlds import populated


def test_horvitz_thompson_over_all_samples():
    y, stratum = np.array([0.2, 0.5, 0.1, 0.9, 0.4, 0.6]), np.array([0, 0, 0, 0, 1, 1])
    found = []
    for first in combinations(range(4), 2):
        for second in combinations((4, 5), 1):
            chosen = np.array([*first, *second])
            found.append(horvitz_thompson(y[None, chosen], Drawn(np.arange(6), stratum, chosen))[0])
    assert np.mean(found) == pytest.approx(y.sum())


def test_with_no_proxy_it_is_horvitz_thompson_and_its_variance_is_unbiased():
    added, labels = np.array([[0.5, 0.2, 0.3, 0.9, 0.4, 0.6]]), np.array([1.0, 0, 1, 1, 0, 1])
    stratum = np.array([0, 0, 0, 1, 1, 1])
    sums, variances = [], []
    for first in combinations(range(3), 2):
        for second in combinations(range(3, 6), 2):
            chosen = np.array([*first, *second])
            found = of_candidates(
                added, labels[chosen], np.zeros((1, 6)), Drawn(np.arange(6), stratum, chosen)
            )
            expected = horvitz_thompson(
                added[:, chosen] * labels[chosen], Drawn(np.arange(6), stratum, chosen)
            )
            assert found.value == pytest.approx(expected)
            sums.append(found.value[0])
            variances.append(found.variance[0])
    assert np.mean(sums) == pytest.approx((added * labels).sum())
    assert np.mean(variances) == pytest.approx(np.var(sums))


def test_sums_cover_the_metric_of_all_labels():
    people, true = populated(3, queries=300)
    proxy, frame = free_proxy(people), people.unknown
    of = measure("p@5", 5)
    added = contributions(of, people, frame)
    whole = values(of, people, true).mean(1) - values(of, people, (people.label == 1).astype(float)).mean(1)
    np.testing.assert_allclose(added @ true[frame], whole, atol=1e-12)
    stratum = equal_strata(added.sum(0) * np.sqrt(proxy[frame] * (1 - proxy[frame])), 6)
    counts = allocation(150, np.bincount(stratum), np.ones(stratum.max() + 1) / (stratum.max() + 1))
    rng, held = np.random.default_rng(0), np.zeros(3)
    for _ in range(300):
        chosen = np.concatenate(
            [rng.choice(np.flatnonzero(stratum == h), n, replace=False) for h, n in enumerate(counts)]
        )
        low, high = limits(
            of_candidates(added, true[frame][chosen], proxy[None, frame], Drawn(frame, stratum, chosen)), 0.95
        )
        held += (low <= whole) & (whole <= high)
    assert held.min() / 300 > 0.91


@pytest.mark.parametrize("total", [4, 9, 17, 20])
def test_allocations_add_up(total):
    sizes = np.array([2, 10, 8])
    found = allocation(total, sizes, np.array([0.5, 0.3, 0.2]))
    assert found.sum() == max(total, 6)
    assert (found <= sizes).all()
    more = allocation(20, sizes, np.array([0.5, 0.3, 0.2]), least=found)
    assert (more >= found).all()


def test_strata_have_equal_importance_and_no_single_member():
    weight = np.random.default_rng(0).lognormal(0, 1, 500)
    stratum = equal_strata(weight, 8)
    shares = np.bincount(stratum, weight) / weight.sum()
    assert abs(shares - 1 / 8).max() < 0.02
    assert np.bincount(equal_strata(np.array([0, 0, 0, 5.0, 100.0]), 8)).min() >= 2
    assert equal_strata(np.zeros(4), 8).tolist() == [0, 0, 0, 0]


def test_few_limits_are_poisson_limits_at_equal_weights():
    low, high = few_limits(np.array([1.0] * 4 + [0.0] * 96), np.full(100, 3.0), 0.95)
    assert low == pytest.approx(3 * stats.gamma.ppf(0.025, 4))
    assert high == pytest.approx(3 * stats.gamma.ppf(0.975, 5))
    assert few_limits(np.zeros(5), np.full(5, 2.0), 0.95) == (
        0.0,
        pytest.approx(2 * stats.gamma.ppf(0.975, 1)),
    )


@pytest.mark.parametrize("name", ["rr", "success@5"])
def test_prefixes_are_unbiased_over_all_depths(name):
    people, true = populated(0, queries=4)
    of, proxy, reached = measure(name, 5), free_proxy(people), reach(5, sure=2, beyond=0.4)
    chances = {2: 0.6, 5: 0.4}
    rows, total = np.arange(4), 0.0
    for deep in product(chances, repeat=4):
        chance = np.prod([chances[one] for one in deep])
        total = total + chance * of_prefixes(of, people, true, proxy, rows, np.array(deep), reached)
    np.testing.assert_allclose(total, values(of, people, true), atol=1e-12)


@pytest.mark.parametrize("name", ["rr", "success@5"])
def test_prefixes_over_all_samples_and_depths(name):
    """Without covariates, means of 2 of 4 queries are unbiased, and so are their variances.

    For queries like these, variances are larger.
    """
    people, true = populated(2, queries=4)
    of, proxy, reached = measure(name, 5), free_proxy(people), reach(5, sure=2, beyond=0.4)
    to = contrasts(3, pairs=True)
    ready = prepared(of, people, [proxy], reached=reached)
    wide = np.full_like(ready.low, 99.0)
    ready = ready._replace(x=ready.x[:0], floor=np.zeros((3, 3)), low=-wide, high=wide)
    chances = {2: 0.6, 5: 0.4}
    found, weights = [], []
    for rows in combinations(range(4), 2):
        sample = Sample(np.array(rows), np.zeros(2, int), np.array([4]))
        for deep in product(chances, repeat=2):
            given = (ready, people, true, proxy, sample, np.array(deep), reached)
            limits = of_prefix_queries(*given)
            found.append((limits.value, limits.variance, of_prefix_queries(*given, of_these=False).variance))
            weights.append(np.prod([chances[one] for one in deep]) / 6)
    value, variance, elsewhere = np.moveaxis(np.array(found), 1, 0)
    mean = np.array(weights) @ value
    np.testing.assert_allclose(mean, to @ values(of, people, true).mean(1), atol=1e-12)
    np.testing.assert_allclose(
        np.array(weights) @ variance, np.array(weights) @ (value - mean) ** 2, atol=1e-12
    )
    assert (np.array(weights) @ (elsewhere - variance) > 0).all()


def test_a_prefix_needs_its_list_down_to_the_first_relevant_answer():
    people, _ = populated(0, queries=8)
    rows, deep = np.arange(8), np.array([3, 5] * 4)
    chosen = needed(people, people.label, rows, deep)
    for c in range(len(people.answers)):
        q = people.query[c]
        wanted = False
        for s in range(3):
            row = people.slot[s, q].tolist()
            if c in row and row.index(c) < deep[q]:
                above = row[: row.index(c)]
                wanted |= not any(people.label[a] == 1 for a in above)
        assert chosen[c] == (wanted and people.label[c] == UNKNOWN)
