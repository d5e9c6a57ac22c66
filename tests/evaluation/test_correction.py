"""What candidates that are not all scored take from a metric: exact sums, quadrature, chances."""

import math

import numpy as np
import pytest
from scipy import special

from owkg.evaluation.correction import Clocks, Weight, block_edges, corrections, reach_chances, weights_named
from owkg.evaluation.random_order import RandomOrder

WEIGHTS = weights_named(["mrr", "p-mrr@1/2", "p-mrr@2", "log-mrr"])


@pytest.mark.parametrize("among", range(1, 21))
def test_the_first_that_scores_higher_is_enough(among):
    """All b <= M <= 20: the sum over its place, by exact chances, is 1/c - 1/(c + b)."""
    for better in range(among + 1):
        places = np.arange(1, among - better + 2)
        chance = [
            math.comb(among - p, better - 1) / math.comb(among, better) if better else 0 for p in places
        ]
        for rank in (1, 2, 7):
            # E (1 - u)^c / c of the clock at a place, an order statistic of M uniform numbers.
            lost = (
                special.beta(places, among - places + 1 + rank)
                / special.beta(places, among - places + 1)
                / rank
            )
            total = math.fsum(np.array(chance) * lost)
            assert total == pytest.approx(1 / rank - 1 / (rank + better), abs=1e-12)


@pytest.mark.parametrize("weight", WEIGHTS, ids=lambda one: one.name)
def test_mixtures(weight):
    ranks = np.array([1.0, 1.5, 2, 10, 1000])
    np.testing.assert_allclose(weight.below(np.ones(5), ranks), weight.at(ranks), rtol=1e-10)
    assert (weight.below(np.zeros(5), ranks) < 0.02).all()
    # Sum over the clock of the first of `better`, by Gauss and Legendre.
    points, sizes = np.polynomial.legendre.leggauss(300)
    clock = (points + 1) / 2
    for rank, better in ((1.0, 1.0), (1.0, 4.0), (2.5, 3.0), (9.0, 30.0)):
        lost = weight.below(1 - clock, np.full(300, rank)) * better * (1 - clock) ** (better - 1)
        kept, gone = weight.at(np.array([rank, rank + better]))
        assert lost @ sizes / 2 == pytest.approx(kept - gone, abs=1e-5)


def simulated(weight, rank, higher, tied, ties, trials, budget=0.1, size=200):
    """Mean and error of the correction over random orders and random stopping, block by block."""
    rng = np.random.default_rng(0)
    edges = block_edges(size)
    ranks = np.full(trials, float(rank))
    chances = reach_chances([weight], ranks, edges, budget)
    reach = (chances > rng.random(trials)[:, None]).sum(1)
    clocks = np.sort(rng.random((trials, size)), axis=1)
    place = np.argsort(rng.random((trials, size)), axis=1)[:, : higher + tied]
    block = np.searchsorted(edges[1:], place, "right")
    seen = block < reach[:, None]

    def first(part):
        at = np.where(seen[:, part], place[:, part], size).min(1, initial=size)
        clock = np.where(
            at < size, np.append(clocks, np.full((trials, 1), np.inf), 1)[np.arange(trials), at], np.inf
        )
        return clock, np.where(at < size, np.searchsorted(edges[1:], np.minimum(at, size - 1), "right"), 0)

    high, low = first(slice(0, higher)), first(slice(higher, None))
    half = {"optimistic": 0, "realistic": 0.5, "pessimistic": 1}[ties]
    worth = np.concatenate([np.ones(higher), np.full(tied, half)])
    hit = np.full(trials, -1)
    if weight.hits:
        for number in range(len(edges) - 1):
            passed = rank + ((block <= number) * worth).sum(1) > weight.hits
            hit[(hit < 0) & passed & (reach > number)] = number
    found = corrections(
        weight, ranks, Clocks(high[0], low[0], high[1], low[1], {weight.hits: hit}), chances, ties
    )
    return found.mean(), found.std() / math.sqrt(trials)


@pytest.mark.parametrize("ties", ["optimistic", "realistic", "pessimistic"])
@pytest.mark.parametrize(
    "weight", weights_named(["mrr", "p-mrr@1/2", "log-mrr", "hits@1", "hits@3"]), ids=lambda w: w.name
)
@pytest.mark.parametrize(
    ("rank", "higher", "tied"), [(1, 3, 0), (1, 0, 4), (2, 30, 10), (1, 1, 2), (5, 2, 2)]
)
def test_random_stopping_keeps_the_mean(weight, ties, rank, higher, tied):
    mean, error = simulated(weight, rank, higher, tied, ties, 8_000)
    half = {"optimistic": 0, "realistic": 0.5, "pessimistic": 1}[ties]
    after = rank + higher + half * tied
    expected = weight.at(np.array([float(rank)]))[0] - weight.at(np.array([float(after)]))[0]
    assert abs(mean - expected) < 4.5 * error + 1e-12


def test_chances_fall_and_cost_the_budget():
    edges = block_edges(100_000)
    assert edges[[0, -1]].tolist() == [0, 100_000]
    assert (np.diff(edges) > 0).all()
    ranks = np.random.default_rng(0).integers(1, 50, 1000).astype(float)
    for budget in (0.001, 0.01, 0.1):
        chances = reach_chances(WEIGHTS, ranks, edges, budget)
        assert ((chances > 0) & (chances <= 1)).all()
        assert (np.diff(chances, axis=1) <= 1e-12).all()
        width, begin = np.diff(edges) / edges[-1], edges[:-1] / edges[-1]
        cost = (chances * (1 - begin) ** (ranks[:, None] - 1) @ width).mean()
        assert cost == pytest.approx(budget, rel=1e-3)


def test_orders_are_permutations_with_rising_clocks():
    for widths in ([7, 3, 30], [25, 10, 5], [1] * 40, [40]):
        order = RandomOrder(np.random.default_rng(1), 40)
        parts = [order.next(width) for width in widths]
        entities, clocks = (np.concatenate(part) for part in zip(*parts, strict=True))
        assert sorted(entities.tolist()) == list(range(40))
        assert (np.diff(clocks, prepend=0, append=1) > 0).all()
    order.skip_to(40)
    assert len(order) == 40


def test_orders_are_uniform():
    """Every entity at every place equally often; the clock at place i has mean (i + 1) / (n + 1)."""
    size, trials = 6, 6000
    counts, clocks = np.zeros((size, size)), np.zeros(size)
    for seed in range(trials):
        order = RandomOrder(np.random.default_rng(seed), size)
        parts = [order.next(1), order.next(2), order.next(3)]
        entities = np.concatenate([part[0] for part in parts])
        counts[np.arange(size), entities] += 1
        clocks += np.concatenate([part[1] for part in parts])
    expected = trials / size
    chi = ((counts - expected) ** 2 / expected).sum()
    assert chi < 60  # 25 degrees of freedom
    np.testing.assert_allclose(clocks / trials, np.arange(1, size + 1) / (size + 1), atol=0.01)


@pytest.mark.parametrize("name", ["mr", "gmr", "imr", "hmr"])
def test_metrics_without_an_estimate(name):
    with pytest.raises(ValueError, match=f"`metrics` must be one of mrr, .* got {name}"):
        weights_named([name])


def test_names():
    assert weights_named(["mrr", "p-mrr@0.25", "hits@10"]) == [
        Weight("mrr", power=1.0), Weight("p-mrr@0.25", power=0.25), Weight("hits@10", hits=10),
    ]  # fmt: skip


def test_metrics_count_alike():
    """Beside MRR, Hits@10 still gets what makes its searches long enough; alone, each has what it had."""
    edges, ranks = block_edges(20_000), np.random.default_rng(0).integers(1, 30, 500).astype(float)
    mrr, hits = weights_named(["mrr", "hits@10"])
    alone = [reach_chances([one], ranks, edges, 0.02) for one in (mrr, hits)]
    both = reach_chances([mrr, hits], ranks, edges, 0.02)
    for one in alone:
        some = one > 1e-3
        assert (both[some] > 0.5 * one[some]).mean() > 0.9
