"""Chance levels against all combinations of ranks, against drawn ranks, and at their limits."""

import math

import jax
import numpy as np
import pytest
from scipy import special

from owkg.metrics import chance
from owkg.metrics.chance import (
    Shapes,
    geometric_chance,
    log_rank_cumulants,
    median_chance,
    rank_moments,
    reciprocal_chance,
)
from owkg.metrics.evaluate import chance_of_median as chosen_median_chance
from owkg.metrics.evaluate import linked_chance
from owkg.rank_weights import (
    GMR,
    HMR,
    IGMR,
    IMR,
    LOG_MRR,
    MR,
    MRR,
    RankWeight,
    hits_at,
    many,
    p_mrr,
    power_mean,
)
from owkg.rank_weights.tables import rank_weights

SIZES = [[1], [2], [50], [1, 1], [3, 50], [2, 3, 4], [7, 7, 7], [1, 500], [4, 1, 5, 3]]


def _weights(sizes):
    return np.linspace(0.2, 3, len(sizes)) ** 2


# --- means of a rank weight


@pytest.mark.parametrize("metric", [MR, MRR, LOG_MRR, GMR, hits_at(1), hits_at(10), p_mrr(0.5)], ids=str)
def test_rank_moments(metric):
    moments = rank_moments(metric, np.arange(301))
    for n in (1, 2, 9, 10, 11, 300):
        weight = rank_weights(metric, np.arange(1, n + 1))
        np.testing.assert_allclose(moments[0, n], weight.mean(), rtol=1e-13)
        np.testing.assert_allclose(moments[1, n], weight.var(), rtol=1e-10, atol=1e-14)
    assert moments[1, 1] == 0


def test_rank_moments_in_closed_form():
    n = np.array([2, 17, 14_541, 40_943])
    first, second = rank_moments(MR, n)
    np.testing.assert_allclose(first, (n + 1) / 2, rtol=1e-14)
    np.testing.assert_allclose(second, (n.astype(float) ** 2 - 1) / 12, rtol=1e-11)
    first, second = rank_moments(MRR, n)
    harmonic = special.digamma(n + 1) + np.euler_gamma
    np.testing.assert_allclose(first, harmonic / n, rtol=1e-12)
    squares = np.pi**2 / 6 - special.polygamma(1, n + 1)
    np.testing.assert_allclose(second, squares / n - (harmonic / n) ** 2, rtol=1e-11)
    first, second = rank_moments(hits_at(10), n)
    share = np.minimum(10 / n, 1)
    np.testing.assert_allclose(first, share, rtol=1e-14)
    np.testing.assert_allclose(second, share * (1 - share), rtol=1e-12)
    assert second[0] == 0  # every rank among two is a hit at ten


# --- geometric means


@pytest.mark.parametrize("inverse", [False, True])
def test_tasks_of_one_size_and_weight_are_summed_together(monkeypatch, inverse):
    sizes = np.random.default_rng(0).integers(2, 40, 300)
    for weight, groups in ((sizes - 1.0, len(set(sizes))), (np.linspace(1, 2, 300), 300)):
        shapes = Shapes(sizes, weight)
        one_by_one = geometric_chance(shapes, inverse=inverse)
        with monkeypatch.context() as patch:
            patch.setattr("owkg.metrics.chance._MANY", 1)
            assert len(shapes.alike().candidates) == groups
            np.testing.assert_allclose(geometric_chance(shapes, inverse=inverse), one_by_one, rtol=1e-12)


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_geometric_chance_is_that_of_all_ranks(all_ranks, sizes, weighted, inverse):
    weight = _weights(sizes) if weighted else None
    mean = np.average(np.log(all_ranks(sizes)), axis=1, weights=weight)
    values = np.exp(-mean if inverse else mean)
    found = geometric_chance(Shapes(np.array(sizes), weight), inverse=inverse)
    np.testing.assert_allclose(found.expectation, values.mean(), rtol=1e-13)
    np.testing.assert_allclose(found.variance, values.var(), rtol=1e-11, atol=1e-15)
    assert found.expectation_standard_error == found.variance_standard_error == 0


@pytest.mark.parametrize("inverse", [False, True])
def test_the_series_of_small_shares_is_the_product(inverse):
    rng = np.random.default_rng(3)
    candidates = rng.integers(1, 400, 700)
    weight = rng.exponential(size=700)
    weight[:3] = 40, 25, 0  # two shares above 1/100, one of nothing
    share = weight / weight.sum()
    assert (share > 0.01).sum() >= 2
    sign = -1 if inverse else 1
    logs = [np.log(np.arange(1, n + 1)) for n in candidates]
    first, second = (
        sum(special.logsumexp(sign * m * e * x) - np.log(len(x)) for e, x in zip(share, logs, strict=True))
        for m in (1, 2)
    )
    found = geometric_chance(Shapes(candidates, weight), inverse=inverse)
    np.testing.assert_allclose(found.expectation, np.exp(first), rtol=1e-12)
    np.testing.assert_allclose(found.variance, np.exp(2 * first) * np.expm1(second - 2 * first), rtol=1e-9)


def test_cumulants_of_the_logarithm():
    kappa = log_rank_cumulants(50_000)
    for n in (1, 2, 30):
        logs = np.log(np.arange(1, n + 1))
        centred = logs - logs.mean()
        m2, m3, m4 = (np.mean(centred**k) for k in (2, 3, 4))
        expected = [logs.mean(), m2, m3, m4 - 3 * m2**2]
        np.testing.assert_allclose(kappa[:4, n], expected, rtol=1e-10, atol=1e-13)
    # log(rank / N) becomes minus an exponential variable: cumulants (-1)^k (k - 1)!.
    signs = np.array([1, -2, 6, -24])  # of the second to the fifth
    np.testing.assert_allclose(kappa[1:5, 50_000] / signs, 1, atol=0.1)
    np.testing.assert_allclose(kappa[0, 50_000], np.log(50_000) - 1, rtol=2e-5)


def test_sums_of_logarithms_of_many_ranks_are_those_that_are_added_up():
    sizes = np.array([1, 7, 2**20, 2**20 + 1, 3_000_000])
    logs = np.log(np.arange(1, sizes[-1] + 1))
    found = chance.log_power_sums(sizes)
    for k in (1, 2, 5, 8):
        expected = [math.fsum(logs[:n] ** k) for n in sizes]
        np.testing.assert_allclose(found[k - 1], expected, rtol=1e-13)
    for power in (-2.0, -1.0, -1 + 1e-9, 0.3, 2.0):
        expected = math.log(math.fsum(np.arange(1, 3_000_001.0) ** power) / 3e6)
        np.testing.assert_allclose(chance._log_mean_power(3_000_000, power), expected, rtol=1e-13)


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_chance_of_a_geometric_mean_is_that_of_a_smaller_table(monkeypatch, inverse, weighted):
    """With and without tables over all ranks; 2^53 candidates take no memory and no time."""
    random = np.random.default_rng(0)
    candidates = random.integers(20, 5000, size=400)
    weight = np.where(np.arange(400) < 2, 300.0, random.random(400)) if weighted else None
    expected = geometric_chance(Shapes(candidates, weight), inverse=inverse)
    monkeypatch.setattr(chance, "_DENSE", 700)
    found = geometric_chance(Shapes(candidates, weight), inverse=inverse)
    np.testing.assert_allclose(found[:2], expected[:2], rtol=1e-10)
    monkeypatch.undo()
    huge = geometric_chance(Shapes(np.full(400, 2**53 - 1), weight), inverse=inverse)
    assert np.isfinite(huge[:2]).all()
    if weight is None:  # log r - log N is minus an exponential
        limit = (1 + (-1) ** inverse / 400) ** -400.0
        np.testing.assert_allclose(huge.expectation / (2.0**53) ** (-1) ** inverse, limit, rtol=1e-9)


def test_a_chance_level_that_does_not_fit_in_memory_is_refused(monkeypatch):
    monkeypatch.setattr(chance, "free_memory", lambda: 2**30)
    shapes = Shapes(np.array([10**8]))
    own = RankWeight("own", lambda rank: rank, link=IMR.link)
    for level in (lambda: reciprocal_chance(own, 1.0, shapes), lambda: median_chance(shapes)):
        with pytest.raises(ValueError, match=r"must leave memory for its chance level at 100,000,000 ranks"):
            level()
    geometric_chance(shapes, inverse=False)


def test_the_geometric_mean_of_many_ranks_is_a_constant():
    found = geometric_chance(Shapes(np.full(10**5, 1000)), inverse=False)
    typical = np.exp(np.log(np.arange(1, 1001)).mean())
    np.testing.assert_allclose(found.expectation, typical, rtol=1e-4)
    delta = typical**2 * np.log(np.arange(1, 1001)).var() / 10**5
    np.testing.assert_allclose(found.variance, delta, rtol=1e-4)


# --- reciprocals and powers


@pytest.mark.parametrize("sizes", [*SIZES, [14_541], [30, 30]], ids=str)
@pytest.mark.parametrize("p", [1, -1, -0.001, -0.01, -0.3, -2, -4, -8])
def test_reciprocal_chance_is_that_of_all_ranks(all_ranks, sizes, p):
    metric = IMR if p == 1 else HMR if p == -1 else power_mean(p)
    power = 1.0 if p == 1 else -1 / p
    values = (all_ranks(sizes) ** p).mean(axis=1) ** -power
    found = reciprocal_chance(metric, power, Shapes(np.array(sizes)))
    np.testing.assert_allclose(found.expectation, values.mean(), rtol=1e-10)
    np.testing.assert_allclose(found.variance, values.var(), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("sizes", [[5000], [5000, 30], [3000, 4001, 4002, 4002]], ids=str)
@pytest.mark.parametrize("metric", [IMR, HMR, power_mean(-0.3), power_mean(-4)], ids=str)
def test_reciprocal_chance_of_many_ranks_is_that_of_all(monkeypatch, metric, sizes):
    power, shapes = -metric.link.exponent, Shapes(np.sort(sizes))
    expected = reciprocal_chance(metric, power, shapes)
    monkeypatch.setattr(chance, "_DENSE", 2048)
    monkeypatch.setattr(many, "_DENSE", 2048)
    monkeypatch.setattr(chance, "_require_memory", None)  # which all ranks are asked
    found = reciprocal_chance(metric, power, shapes)
    np.testing.assert_allclose(found[:2], expected[:2], rtol=1e-10)


@pytest.mark.parametrize("metric", [HMR, IMR], ids=str)
def test_reciprocal_chance_of_a_hundred_million_ranks_takes_little_memory(monkeypatch, metric):
    monkeypatch.setattr(chance, "free_memory", lambda: 2**25)
    n = 10**8
    found = reciprocal_chance(metric, 1.0, Shapes(np.array([n])))
    if metric == HMR:  # the rank itself
        expected = (n + 1) / 2, (n**2 - 1) / 12
    else:
        first = (math.log(n) + np.euler_gamma + 1 / (2 * n)) / n
        expected = first, (np.pi**2 / 6 - 1 / n) / n - first**2
    np.testing.assert_allclose(found[:2], expected, rtol=1e-9)


def test_one_task_has_the_harmonic_mean_of_a_rank():
    found = reciprocal_chance(HMR, 1.0, Shapes(np.array([99])))
    np.testing.assert_allclose(found[:2], [50, (99**2 - 1) / 12], rtol=1e-10)


@pytest.mark.parametrize("metric", [IMR, HMR, power_mean(-0.5)], ids=str)
def test_the_reciprocal_of_a_mean_of_many_is_that_of_its_expectation(metric):
    n, count = 200, 10**6
    power = {"imr": 1.0, "hmr": 1.0}.get(metric.name, 2.0)
    first, second = rank_moments(metric, np.array([n]))[:, 0]
    found = reciprocal_chance(metric, power, Shapes(np.full(count, n)))
    relative = second / count / first**2
    # Two terms of the delta method; the next is of order 1 / count^2.
    expected = first**-power * (1 + power * (power + 1) / 2 * relative)
    np.testing.assert_allclose(found.expectation, expected, rtol=1e-8)
    np.testing.assert_allclose(found.variance, first ** (-2 * power) * power**2 * relative, rtol=1e-3)


@pytest.mark.parametrize("metric", [IMR, HMR, GMR, IGMR, power_mean(2), power_mean(-2)], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_linked_chance_against_drawn_ranks(metric, weighted):
    rng = np.random.default_rng(5)
    candidates = rng.integers(1, 90, 40)
    weight = rng.exponential(size=40) if weighted else None
    found = linked_chance(metric, Shapes(candidates, weight), jax.random.key(1))
    ranks = rng.integers(1, candidates + 1, (200_000, 40))
    means = np.average(rank_weights(metric, np.arange(1, 91))[ranks - 1], axis=1, weights=weight)
    values = {
        "imr": lambda m: 1 / m,
        "hmr": lambda m: 1 / m,
        "gmr": np.exp,
        "igmr": lambda m: np.exp(-m),
        "power-mean@2": np.sqrt,
        "power-mean@-2": lambda m: m**-0.5,
    }[metric.name](means)
    error = np.hypot(values.std() / np.sqrt(len(values)), found.expectation_standard_error)
    assert abs(found.expectation - values.mean()) < 4 * error
    centred = (values - values.mean()) ** 2
    error = np.hypot(centred.std() / np.sqrt(len(values)), found.variance_standard_error)
    assert abs(found.variance - centred.mean()) < 4 * error
    is_exact = metric in (GMR, IGMR) or (not weighted and metric != power_mean(2))
    assert (found.expectation_standard_error == 0) == is_exact


def test_equal_weights_are_no_weights():
    candidates = np.array([5, 9, 30])
    for metric in (IMR, GMR, HMR):
        plain = linked_chance(metric, Shapes(candidates), jax.random.key(0))
        assert linked_chance(metric, Shapes(candidates, np.full(3, 0.25)), jax.random.key(0)) == plain


# --- medians


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("sizes", [[1], [5], [4, 4], [2, 9, 5], [6, 6, 2, 8], [3, 3, 3, 3, 3]], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_median_of_few_is_drawn(all_ranks, sizes, weighted, inverse):
    weight = np.arange(1.0, len(sizes) + 1) if weighted else None
    ranks = all_ranks(sizes)
    medians = np.median(ranks, axis=1) if weight is None else [_weighted_median(r, weight) for r in ranks]
    values = 1 / np.array(medians) if inverse else np.array(medians)
    key = jax.random.key(4)
    found = chosen_median_chance(Shapes(np.array(sizes), weight), key, inverse=inverse)
    # Four standard errors, with some more as there are 24 such tests.
    assert abs(found.expectation - values.mean()) <= 4.5 * found.expectation_standard_error
    assert abs(found.variance - values.var()) <= 4.5 * found.variance_standard_error + 1e-12
    assert found == chosen_median_chance(Shapes(np.array(sizes), weight), key, inverse=inverse)


def _weighted_median(ranks, weight):
    order = np.argsort(ranks, kind="stable")
    share = np.cumsum(weight[order]) / weight.sum()
    low = ranks[order][np.searchsorted(share, 0.5 - 1e-9)]
    high = ranks[order][np.searchsorted(share, 0.5 + 1e-9)]
    return (low + high) / 2


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize(
    ("count", "low", "high"), [(601, 100, 101), (600, 100, 101), (1000, 2, 3000), (601, 2, 9)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_median_of_many_by_draws(count, low, high, weighted, inverse):
    rng = np.random.default_rng(6)
    candidates = rng.integers(low, high, count)
    weight = 1 + rng.exponential(size=count) if weighted else None
    found = median_chance(Shapes(candidates, weight), inverse=inverse)
    ranks = np.sort(rng.integers(1, candidates + 1, (20_000, count)), axis=1) if weight is None else None
    if ranks is not None:
        medians = np.median(ranks, axis=1)
    else:
        draws = rng.integers(1, candidates + 1, (6000, count))
        medians = np.array([_weighted_median(r, weight) for r in draws])
    values = 1 / medians if inverse else medians
    error = 4 * values.std() / np.sqrt(len(values))
    assert abs(found.expectation - values.mean()) < error + 2e-4 * values.mean()
    assert abs(found.variance / values.var() - 1) < 0.08


def test_the_median_of_many_at_its_limits():
    found = median_chance(Shapes(np.ones(1000, int)))
    assert found[:2] == (1, 0)
    # Var(median) -> 1 / (4 n f^2) with f = 1 / N.
    n, size = 10**6 + 1, 10**5
    found = median_chance(Shapes(np.full(n, size)))
    np.testing.assert_allclose(found.expectation, (size + 1) / 2, rtol=1e-6)
    np.testing.assert_allclose(found.variance, size**2 / (4 * n), rtol=1e-3)


def test_few_heavy_tasks_are_few_tasks():
    candidates = np.full(2000, 50)
    weight = np.ones(2000)
    weight[0] = 4000.0  # its rank is the median
    found = chosen_median_chance(Shapes(candidates, weight), jax.random.key(0), inverse=False)
    assert found.variance_standard_error > 0
    assert abs(found.expectation - 25.5) < 4 * found.expectation_standard_error
    assert abs(found.variance - (50**2 - 1) / 12) < 4 * found.variance_standard_error
    even = chosen_median_chance(Shapes(candidates, np.full(2000, 2.0)), jax.random.key(0), inverse=False)
    assert even.variance_standard_error == 0


def _of_counts(up_to, beyond, many):
    """P(so many ranks of this kind, all others of that), by the number; sizes differ in both."""
    found = np.ones(1)
    for p, q, n in zip(up_to, beyond, many, strict=True):
        k = np.arange(n + 1)
        ways = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
        found = np.convolve(found, np.exp(ways + special.xlogy(k, p) + special.xlogy(n - k, q)))
    return found


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize(
    ("many", "sizes", "error"),
    [
        ([1025], [7], 1e-5),
        ([1024], [7], 1e-5),
        ([600], [2], 1e-8),
        ([257, 258], [3, 4], 1e-4),
        ([200, 201, 200], [9, 10, 11], 1e-4),
        ([170, 172, 172], [5, 7, 30], 1e-4),
        ([172, 172, 172], [1, 2, 3], 1e-3),
    ],
    ids=str,
)
def test_the_median_of_many_by_all_counts(many, sizes, error, inverse):
    """The two ranks in the middle are A and B: half of all are up to a, and none from there to b."""
    sizes, half, largest = np.array(sizes), sum(many) // 2, max(sizes)
    share = np.minimum(np.arange(largest + 1)[:, None] / sizes, 1)
    counts = [_of_counts(p, 1 - p, many) for p in share]
    middle = np.zeros((largest + 1,) * 2)  # P(A <= a, B > b)
    for a in range(1, largest + 1):
        for b in range(a, largest + 1):
            middle[a, b] = 0 if sum(many) % 2 else _of_counts(share[a], 1 - share[b], many)[half]
    pairs = np.zeros((largest + 1,) * 2)
    for a in range(1, largest + 1):
        for b in range(a + 1, largest + 1):
            pairs[a, b] = middle[a, b - 1] - middle[a - 1, b - 1] - middle[a, b] + middle[a - 1, b]
    upper = np.diff([0.0] + [count[half + 1 :].sum() for count in counts[1:]], prepend=0.0)[1:]  # P(B = b)
    rank = np.arange(1, largest + 1.0)
    pairs = pairs[1:, 1:]
    pairs[np.diag_indices(largest)] = upper - pairs.sum(0)
    median = (rank[:, None] + rank) / 2
    value = 1 / median if inverse else median
    mean = np.sum(pairs * value)
    found = median_chance(Shapes(np.repeat(sizes, many)), inverse=inverse)
    assert found.expectation == pytest.approx(mean, rel=1e-5)
    assert found.variance == pytest.approx(np.sum(pairs * (value - mean) ** 2), rel=error)
