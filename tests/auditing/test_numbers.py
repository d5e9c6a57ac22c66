"""Numbers of missing answers: drawn worlds, expectations by exact sums, means of metrics on drawn worlds."""

import numpy as np
import pytest
from scipy import special, stats

from owkg.auditing import Answers, implied, sparse_mean
from owkg.auditing.numbers import EVEN, Unevenness, expectations, fitted_unevenness, missing_numbers

DRAWS = {
    "few": lambda rng: rng.geometric(0.4, 100_000),
    "alike": lambda rng: rng.integers(8, 20, 60_000),
    "uneven": lambda rng: np.where(rng.uniform(size=100_000) < 0.9, rng.geometric(0.6, 100_000), 40),
}


def drawn(kind, rate, seed=0):
    """(known, missing) answers of the queries that keep some."""
    rng = np.random.default_rng(seed)
    whole = DRAWS[kind](rng)
    known = rng.binomial(whole, 1 - rate)
    return known[known > 0], (whole - known)[known > 0]


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("rate", [0.2, 0.6])
def test_posterior_of_drawn_queries(kind, rate):
    known, missing = drawn(kind, rate)
    counts, queries = np.unique(known, return_counts=True)
    share = missing.sum() / (missing.sum() + known.sum())
    found = missing_numbers(counts, queries.astype(float), share)
    np.testing.assert_allclose(found.chance.sum(1), 1)
    assert found.rate == pytest.approx(rate, abs=0.03)
    means = found.chance @ found.numbers
    assert queries @ means == pytest.approx(missing.sum(), rel=0.01)
    for count, size, mean in zip(counts, queries, means, strict=True):
        if size > 3000:
            of = missing[known == count]
            assert mean == pytest.approx(of.mean(), abs=0.12 * max(of.mean(), 1))


def uneven(kind, unevenness, sparsity, seed=0, size=60_000):
    """(known, missing) answers of queries whose missing rates differ; a share `sparsity` is missing."""
    rng = np.random.default_rng(seed)
    whole = DRAWS[kind](rng)[:size]
    log = np.log(whole)
    logits = (
        unevenness.deviation * rng.normal(size=len(whole)) + unevenness.size * (log - log.mean()) / log.std()
    )
    uniform = rng.uniform(size=len(whole))
    low, high = -8.0, 8.0
    for _ in range(30):
        middle = (low + high) / 2
        known = stats.binom.ppf(uniform, whole, special.expit(-middle - logits)).astype(np.int64)
        asked = known > 0
        few = 1 - known[asked].sum() / whole[asked].sum() < sparsity
        low, high = (middle, high) if few else (low, middle)
    return known[asked], (whole - known)[asked]


@pytest.mark.parametrize("kind", ["few", "uneven"])
@pytest.mark.parametrize("unevenness", [Unevenness(1.0), Unevenness(0, -1.0), Unevenness(0, 0.7)], ids=str)
def test_posterior_where_rates_differ(kind, unevenness):
    """Against queries drawn so: nearer to them than one rate for all, and near in all."""
    known, missing = uneven(kind, unevenness, 0.4)
    share = missing.sum() / (missing.sum() + known.sum())
    counts, queries = np.unique(known, return_counts=True)
    told, even = (missing_numbers(counts, queries.astype(float), share, one) for one in (unevenness, EVEN))
    of = np.array([missing[known == count].mean() for count in counts])
    off, off_even = (
        np.sqrt(queries @ (one.chance @ one.numbers - of) ** 2 / queries.sum()) for one in (told, even)
    )
    assert off < 0.25 * max(of.mean(), 1)
    assert off < off_even
    np.testing.assert_allclose(told.chance.sum(1), 1)
    assert queries @ (told.chance @ told.numbers) == pytest.approx(missing.sum(), rel=0.02)


@pytest.mark.parametrize("kind", ["alike", "uneven"])
def test_rates_that_rise_steeply_with_the_answers(kind):
    """Known numbers are alike then, though whole ones are not: the nearest explanation is one rate."""
    known, missing = uneven(kind, Unevenness(0, 1.5), 0.5)
    share = missing.sum() / (missing.sum() + known.sum())
    counts, queries = np.unique(known, return_counts=True)
    of = np.array([missing[known == count].mean() for count in counts])
    told, even = (missing_numbers(counts, queries * 1.0, share, one) for one in (Unevenness(0, 1.5), EVEN))
    off, off_even = (queries @ (one.chance @ one.numbers - of) ** 2 for one in (told, even))
    assert off < off_even / 2


@pytest.mark.parametrize("known", [200, 5000])
def test_many_answers_to_every_query(known):
    """Probabilities of so many are too small for floats; nothing is NaN, as many are missing as stated."""
    counts = np.arange(known, known + 20)
    found = missing_numbers(counts, np.ones(20), 0.3, Unevenness(0, 1.5))
    assert np.isfinite(found.chance).all()
    assert 0 < found.rate < 1
    assert (found.chance @ found.numbers).sum() == pytest.approx(counts.sum() * 0.3 / 0.7, rel=0.05)


def test_rates_that_hardly_differ_are_one_rate():
    known, missing = drawn("alike", 0.4)
    counts, queries = np.unique(known, return_counts=True)
    share = missing.sum() / (missing.sum() + known.sum())
    one, other = (
        missing_numbers(counts, queries.astype(float), share, of) for of in (EVEN, Unevenness(1e-3))
    )
    assert other.rate == pytest.approx(one.rate, abs=0.02)
    np.testing.assert_allclose(other.chance @ other.numbers, one.chance @ one.numbers, rtol=0.1, atol=0.3)


def test_fitted_unevenness_holds_the_true_one():
    """Intervals of 95 % of both deviations, from 200 judged queries each."""
    held = np.zeros(2)
    for seed in range(8):
        known, missing = uneven("alike", Unevenness(0.8, 0.6), 0.5, seed=seed, size=200)
        found = fitted_unevenness(missing, known + missing)
        ends = [[one[i] for one in found] for i in (0, 1)]
        held += [min(one) <= true <= max(one) for one, true in zip(ends, (0.8, 0.6), strict=True)]
    assert (held >= 7).all()


def test_nothing_is_missing():
    found = missing_numbers(np.array([1, 4]), np.array([0.5, 0.5]), 0.0)
    assert found.numbers.tolist() == [0]
    assert found.chance.tolist() == [[1], [1]]


def test_equal_known_numbers_leave_the_stated_share():
    """What the likelihood cannot tell, the stated sparsity does."""
    found = missing_numbers(np.array([3]), np.array([1.0]), 0.5)
    assert (found.chance @ found.numbers).item() == pytest.approx(3, rel=0.05)


@pytest.mark.filterwarnings("error")
def test_counts_far_apart():
    counts = np.array([1, 10_000])
    found = missing_numbers(counts, np.ones(2), 0.05)
    np.testing.assert_allclose(found.chance.sum(1), 1)
    assert (found.chance @ found.numbers).sum() == pytest.approx(counts.sum() / 19, rel=1e-3)


def test_order_of_counts_does_not_matter():
    counts, queries = np.array([5, 1, 3]), np.array([2.0, 7.0, 4.0])
    one = missing_numbers(counts, queries, 0.4)
    other = missing_numbers(np.sort(counts), queries[np.argsort(counts)], 0.4)
    np.testing.assert_allclose(one.chance, other.chance[[2, 0, 1]])


def test_expectations_are_exact_sums():
    values = np.stack([1 / np.arange(1, 4000.0), np.arange(3999) < 10])
    chance = np.array([0.0, 0.02, 0.5, 1.0])
    found = expectations(values, 300, chance)
    for n in (0, 1, 7, 64):
        for i, p in enumerate(chance):
            exact = values[:, : n + 1] @ stats.binom.pmf(np.arange(n + 1), n, p)
            np.testing.assert_allclose(found[:, n, i], exact, atol=1e-3 if n * p > 40 else 1e-12)
    # Larger numbers stand by steps; where many are expected the normal distribution is near enough.
    exact = values[0, :301] @ stats.binom.pmf(np.arange(301), 300, 0.5)
    assert found[0, -1, 2] == pytest.approx(exact, rel=0.03)


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("metric", ["mrr", "hits@10"])
def test_mean_of_a_metric_on_drawn_worlds(kind, metric):
    """Ranks by the model of Yang et al. on drawn worlds: the mean, and the strength that it implies."""
    entities, strength, rate = 2000, 0.6, 0.6
    known, missing = drawn(kind, rate, seed=1)
    rng = np.random.default_rng(2)
    above = rng.binomial(missing, strength)
    positive = rng.uniform(size=len(known)) < strength
    rank = np.where(positive, rng.integers(1, above + 2), rng.integers(above + 1, entities - known + 2))
    value = 1 / rank if metric == "mrr" else (rank <= 10).astype(float)
    mean = (value * known).sum() / known.sum()
    error = np.sqrt((((value - mean) * known) ** 2).sum()) / known.sum()
    counts, queries = np.unique(known, return_counts=True)
    share = missing.sum() / (missing.sum() + known.sum())
    weights = counts * queries / (counts * queries).sum()
    answers = Answers(counts, weights, entities, queries)
    told = sparse_mean(metric, answers, strength=strength, sparsity=share)
    assert told == pytest.approx(mean, abs=4 * error + 1e-3)
    assert implied(metric, mean, answers, sparsity=share).strength == pytest.approx(strength, abs=0.02)
