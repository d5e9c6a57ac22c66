"""From sums to numbers: adjustments, their slopes, standard errors, and the coverage of intervals."""

import numpy as np
import pytest
from scipy import optimize, special, stats

from owkg.metrics import Ties, evaluate, metric, tasks, tasks_of
from owkg.metrics.chance import Chance
from owkg.metrics.estimate import adjusted_chance, adjusted_value, plain_chance, slopes
from owkg.metrics.median import below, distribution, quantile, rank_histogram, woodruff
from owkg.metrics.query_sums import query_sums_by_ties
from owkg.rank_weights import MR, MRR
from owkg.stats import IntervalMethod
from owkg.stats.interval import share_limits

AVERAGED = ["mrr", "mr", "hits@3", "amr", "amri", "amrr", "zmr", "zmrr", "ahits@3", "zhits@3"]
AVERAGED += ["probe@0.5,0.5", "aprobe@1,1", "zprobe@1,1", "macro-map@3", "amacro-map@3", "zmacro-ndcg@4"]


def test_adjustments():
    chance = Chance(4.0, 9.0)
    assert adjusted_value(metric("mr"), 2.0, chance, 1.0) == 2
    assert adjusted_value(metric("amr"), 2.0, chance, 1.0) == 0.5
    assert adjusted_value(metric("amri"), 2.0, chance, 1.0) == pytest.approx(2 / 3)
    assert adjusted_value(metric("zmr"), 2.0, chance, 1.0) == pytest.approx(2 / 3)
    assert adjusted_value(metric("zmrr"), 7.0, chance, 10.0) == pytest.approx(1)
    assert adjusted_value(metric("amrr"), 7.0, chance, 10.0) == pytest.approx(0.5)
    assert adjusted_chance(metric("mr"), chance, 1.0) == chance
    assert adjusted_chance(metric("amr"), chance, 1.0)[:2] == (1, 9 / 16)
    assert adjusted_chance(metric("amri"), chance, 1.0)[:2] == (0, 1)
    assert adjusted_chance(metric("zmr"), chance, 1.0)[:2] == (0, 1)


@pytest.mark.parametrize("name", ["amri", "zmr", "amrr", "zmrr"])
def test_chance_itself_is_0_without_a_sign(name):
    assert str(float(adjusted_value(metric(name), 4.0, Chance(4.0, 9.0), 1.0))) == "0.0"


def test_nothing_to_rank_is_no_number():
    nothing = Chance(1.0, 0.0)
    for name in ("amri", "zmr", "amrr", "zmrr"):
        assert np.isnan(adjusted_value(metric(name), 1.0, nothing, 1.0))
        assert np.isnan(adjusted_chance(metric(name), nothing, 1.0)[:2]).all()


@pytest.mark.parametrize("name", ["mr", "amr", "amri", "zmr", "amrr", "zmrr", "mrr"])
def test_slopes_by_finite_differences(name):
    totals = np.array([20.0, 61.0, 92.0, 33.0, 20.0])
    if name.endswith("mrr"):
        totals = np.array([20.0, 13.0, 8.0, 1.5, 20.0])
    made = metric(name)

    def value(totals):
        best = totals[4] / totals[0]
        return float(adjusted_value(made, totals[1] / totals[0], plain_chance(totals), best))

    steps = 1e-6 * totals
    numeric = [
        (value(totals + step) - value(totals - step)) / (2 * size)
        for step, size in zip(np.diag(steps), steps, strict=True)
    ]
    np.testing.assert_allclose(slopes(totals, made, value(totals)), numeric, rtol=1e-6, atol=1e-9)


def test_the_standard_error_of_a_mean():
    ranks = np.array([1, 5, 2, 40, 3, 3, 8])
    found = evaluate(tasks(ranks, candidates=50), [metric("mrr"), metric("mr")], level=0.9)[Ties.EXACT]
    for name, x in (("mrr", 1 / ranks), ("mr", ranks)):
        error = x.std(ddof=1) / np.sqrt(len(x))
        np.testing.assert_allclose(found[name].standard_error, error, rtol=1e-11)
        ends = _interval(x.mean(), error, (0.02, 1) if name == "mrr" else (50, 1), len(x), 0.9)
        np.testing.assert_allclose((found[name].ci_low, found[name].ci_high), ends, rtol=1e-8)


def _interval(value, error, bounds, queries, level):
    """The interval written out, by a root finder and sums of binomial probabilities in the place of beta."""
    low, high = sorted(bounds)
    x, s = (value - low) / (high - low), error / (high - low) * queries
    ends = (1 - x, x)  # how far the added tenths of a query are
    if bounds[0] > bounds[1] and s > 0:
        ends = tuple(min(end, s**0.2 * end**0.8) for end in ends)
    middle = x + 0.1 * (ends[0] - ends[1]) / (queries + 0.2)
    variance = (s**2 + 0.1 * (ends[0] ** 2 + ends[1] ** 2)) / (queries + 0.2)
    ratio = stats.norm.ppf((1 + level) / 2) / stats.t.ppf((1 + level) / 2, queries - 1)
    size = middle * (1 - middle) / variance * queries * ratio**2

    def upper(p, k, n):  # P(X >= k) of a binomial, for any n and k
        return stats.beta.cdf(p, k, n - k + 1) if k > 0 else 1.0

    def limit(tail):
        k = x * size
        return optimize.brentq(
            lambda p: (upper(p, k, size) + upper(p, k + 1, size)) / 2 - tail, 0, 1, xtol=1e-15
        )

    limits = (limit((1 - level) / 2) if x > 0 else 0, limit((1 + level) / 2) if x < 1 else 1)
    return [low + (high - low) * end for end in limits]


@pytest.mark.parametrize(("k", "n"), [(0, 7), (1, 7), (3, 7), (7, 7), (2, 40)])
def test_limits_of_a_share_by_binomial_sums(k, n):
    low, high = (float(end[0]) for end in share_limits(np.array([k / n]), np.array([float(n)]), 0.025))
    assert (low == 0) == (k == 0)
    assert (high == 1) == (k == n)
    half = stats.binom.pmf(k, n, [low, high]) / 2
    if k > 0:
        assert stats.binom.sf(k, n, low) + half[0] == pytest.approx(0.025, rel=1e-9)
    if k < n:
        assert stats.binom.cdf(k - 1, n, high) + half[1] == pytest.approx(0.025, rel=1e-9)


@pytest.mark.parametrize("ranks", [[1] * 20, [7] * 20, [1] * 19 + [2], [30] * 20])
@pytest.mark.parametrize("interval", list(IntervalMethod))
def test_no_interval_of_a_sample_has_width_0(ranks, interval):
    names = ["mrr", "hits@1", "hits@10", "mr", "amri", "amrr", "zmrr", "gmr", "hmr", "imr", "macro-mrr"]
    wanted = [metric(name) for name in names]
    found = evaluate(tasks(ranks, candidates=30), wanted, interval=interval, replicates=200)[Ties.EXACT]
    for name in names:
        assert found[name].ci_low <= found[name].value <= found[name].ci_high, name
        assert found[name].ci_high - found[name].ci_low > 1e-4, name


@pytest.mark.parametrize("harder", [0, 3])
def test_the_share_of_the_heaviest_queries(harder):
    """By hand, of 100 queries; 0 where the ten heaviest do not score differently."""
    rng = np.random.default_rng(1)
    answers = np.r_[np.full(90, 2), np.arange(20, 30)]
    query = rng.permutation(100)[np.repeat(np.arange(100), answers)]
    count = np.bincount(query)
    ranks = rng.integers(1, np.where(count[query] > 2, 5 + 20 * harder, 5))
    found = evaluate(tasks(ranks, candidates=100, query=query), [metric("mrr"), metric("macro-mrr")])
    value = np.bincount(query, 1 / ranks)
    rest = value - value.sum() / count.sum() * count
    share = np.sum(rest[count > 2] ** 2) / np.sum(rest**2)
    assert found[Ties.EXACT]["mrr"].heavy_share == pytest.approx(share if harder else 0, rel=1e-9)
    assert found[Ties.EXACT]["macro-mrr"].heavy_share == 0


def test_effective_queries_and_the_heaviest():
    made = tasks([1, 2, 3, 4, 5, 6], candidates=9, query=[0, 0, 0, 0, 1, 2])
    found = evaluate(made, [metric("mrr"), metric("macro-mrr"), metric("median_rank")])[Ties.EXACT]
    for name in ("mrr", "median_rank"):
        assert found[name].effective_queries == pytest.approx(36 / 18)
        assert found[name].heaviest_query == pytest.approx(4 / 6)
    assert found["macro-mrr"].effective_queries == pytest.approx(3)
    assert found["macro-mrr"].heaviest_query == pytest.approx(1 / 3)


@pytest.mark.parametrize("name", AVERAGED)
def test_the_standard_error_is_that_of_linearisation(full_table, name):
    made, _ = tasks_of(full_table)
    wanted = metric(name)
    parts = query_sums_by_ties(wanted.measure, wanted.weighting, made, (Ties.EXACT,), by_query=True)[
        Ties.EXACT
    ]
    found = evaluate(made, [wanted], ties=["exact"])[Ties.EXACT][name]
    sums = np.stack(parts[:5])

    def value(weight):
        totals = sums @ weight
        return float(
            adjusted_value(wanted, totals[1] / totals[0], plain_chance(totals), totals[4] / totals[0])
        )

    count = sums.shape[1]
    one = np.ones(count)
    np.testing.assert_allclose(value(one), found.value, rtol=1e-12)
    moved = np.array([(value(one + d) - value(one - d)) / 2e-5 for d in 1e-5 * np.eye(count)])
    error = np.sqrt(count / (count - 1) * np.sum((moved - moved.mean()) ** 2))
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-5)


@pytest.mark.parametrize(
    "name", ["gmr", "hmr", "imr", "igmr", "power-mean@2", "wgmr", "agmri", "zgmr", "zhmr"]
)
def test_the_interval_of_a_link_is_that_of_its_mean(full_table, name):
    made, _ = tasks_of(full_table)
    wanted = metric(name)
    inner = {"gmr": np.log, "igmr": np.log, "hmr": np.reciprocal, "imr": np.positive}
    plain = name.removeprefix("w").removeprefix("a").removeprefix("z").removesuffix("i")
    h = {**inner, "power-mean@2": np.square}[plain]
    weight = made.weight * ((made.candidates - 1) if name == "wgmr" else 1)
    tie = [h(np.arange(a, b + 1.0)).mean() for a, b in zip(made.optimistic, made.pessimistic, strict=True)]
    value = np.bincount(made.query, weight * tie)
    total = np.bincount(made.query, weight)
    mean = value.sum() / total.sum()
    count = made.num_queries
    width = np.sqrt(count / (count - 1) * np.sum((value - mean * total) ** 2)) / total.sum()
    effective = total.sum() ** 2 / np.dot(total, total)
    bounds = [
        np.sum(weight * h(np.asarray(x, float))) / total.sum() for x in (made.candidates, 1 + 0 * weight)
    ]
    ends = _interval(mean, width, bounds, effective, 0.95)
    outer = {
        "gmr": np.exp,
        "igmr": lambda m: np.exp(-m),
        "hmr": np.reciprocal,
        "imr": np.reciprocal,
        "power-mean@2": np.sqrt,
    }[plain]
    found = evaluate(made, [wanted, metric(plain)], ties=["exact"])[Ties.EXACT]
    ends = sorted(map(outer, ends))
    values = np.array([outer(mean), *ends])
    if wanted.adjustment != "none":
        level = found[plain]
        if name.startswith("a"):
            values = (values - level.expectation) / (1 - level.expectation)
        else:
            values = (level.expectation - values) / np.sqrt(level.variance)
        ends = sorted(values[1:])
    own = found[name]
    np.testing.assert_allclose(own.value, values[0], rtol=1e-9)
    np.testing.assert_allclose((own.ci_low, own.ci_high), ends, rtol=1e-8)
    numeric = abs(outer(mean + 1e-6) - outer(mean - 1e-6)) / 2e-6 * width
    if wanted.adjustment == "none":
        np.testing.assert_allclose(own.standard_error, numeric, rtol=1e-5)


def test_one_query_has_no_interval():
    names = [*AVERAGED, "gmr", "zgmr", "median_rank", "hmr"]
    for query in (None, [0, 0, 0]):
        size = 1 if query is None else 3
        made = tasks(np.full(size, 2), candidates=9, query=query, popularity=np.zeros(size, int))
        for interval in IntervalMethod:
            found = evaluate(
                made, [metric(name) for name in names], interval=interval, replicates=5, ties=["exact"]
            )[Ties.EXACT]
            for name in names:
                assert np.isfinite(found[name].value), name
                if interval is IntervalMethod.ANALYTIC:
                    assert np.isnan(found[name].standard_error), name
                    assert np.isnan([found[name].ci_low, found[name].ci_high]).all(), name


def test_intervals_stay_between_the_worst_and_the_best():
    made = tasks([1, 1, 1, 30], candidates=30)
    names = ["mrr", "mr", "gmr", "hits@1", "amri", "amrr", "agmri", "hmr", "imr", "probe@1,0"]
    found = evaluate(made, [metric(name) for name in names], level=0.999)[Ties.EXACT]
    for name in ("mrr", "hits@1", "probe@1,0", "imr"):
        assert 0 <= found[name].ci_low < found[name].value < found[name].ci_high <= 1, name
    for name in ("mr", "gmr", "hmr"):
        assert 1 <= found[name].ci_low < found[name].value < found[name].ci_high <= 30 + 1e-9, name
    for name in ("amri", "amrr", "agmri"):
        assert found[name].ci_low < found[name].value < found[name].ci_high <= 1, name


# --- coverage

COVERED = ["mrr", "hits@10", "amri", "zmrr", "gmr", "macro-map@20", "macro-mrr"]


def _queries(rng, count):
    """Tasks of queries whose ranks are alike: N u^4 of a uniform u with an effect of the query."""
    answers = 1 + rng.poisson(1.0, count)
    query = np.repeat(np.arange(count), answers)
    candidates = rng.integers(2000, 4000, count)[query]
    normal = (rng.normal(size=count)[query] + rng.normal(size=len(query))) / np.sqrt(2)
    ranks = np.ceil(candidates * special.ndtr(normal) ** 4).astype(int)
    return tasks(np.maximum(ranks, 1), candidates=candidates, query=query)


@pytest.fixture(scope="module")
def truth():
    # A whole population: 200,000 queries, so 1 / 30 of the standard error of 200.
    made = _queries(np.random.default_rng(100), 200_000)
    found = evaluate(made, [metric(name) for name in COVERED], ties=["exact"], level=None)[Ties.EXACT]
    values = {name: estimate.value for name, estimate in found.items()}
    values["median_rank"] = np.median(made.optimistic)
    values["zmrr"] *= np.sqrt(200 / 200_000)  # z metrics grow with the number of tasks
    return values


def _coverage(truth, interval, repetitions, seed, level, **options):
    rng = np.random.default_rng(seed)
    wanted = [metric(name) for name in COVERED]
    hits = dict.fromkeys([*COVERED, "median_rank"], 0)
    for _ in range(repetitions):
        made = _queries(rng, 200)
        found = evaluate(made, wanted, ties=["optimistic"], interval=interval, level=level, **options)
        ends = {name: (e.ci_low, e.ci_high) for name, e in found[Ties.OPTIMISTIC].items()}
        # Without its chance level, which would be drawn.
        by_rank = distribution(rank_histogram(made, Ties.OPTIMISTIC, None))
        ends["median_rank"] = woodruff(
            below(made, Ties.OPTIMISTIC, None, quantile(by_rank, 0.5)), by_rank, level
        )[1]
        for name, (low, high) in ends.items():
            hits[name] += low <= truth[name] <= high
    return {name: count / repetitions for name, count in hits.items()}


def test_coverage_of_analytic_intervals(truth):
    for name, share in _coverage(truth, "analytic", 1000, 11, 0.95).items():
        assert 0.925 < share < 0.97, (name, share)


def test_coverage_at_another_level(truth):
    for name, share in _coverage(truth, "analytic", 400, 2, 0.8).items():
        assert 0.74 < share < 0.86, (name, share)


@pytest.mark.parametrize("interval", ["percentile", "bca"])
def test_coverage_of_the_bootstrap(truth, interval):
    for name, share in _coverage(truth, interval, 400, 3, 0.9, replicates=400).items():
        assert 0.84 < share < 0.96, (name, share)


@pytest.mark.parametrize("interval", list(IntervalMethod))
def test_a_higher_level_is_wider(full_table, interval):
    made, _ = tasks_of(full_table)
    names = ["mrr", "mr", "gmr", "amri", "zmrr", "median_rank", "macro-map@5"]
    widths = []
    for level in (0.5, 0.9, 0.95, 0.99):
        options = {"level": level, "interval": interval, "ties": ["exact"], "replicates": 400, "draws": 500}
        found = evaluate(made, [metric(name) for name in names], **options)[Ties.EXACT]
        assert all(found[name].ci_low <= found[name].value <= found[name].ci_high for name in names)
        widths.append([found[name].ci_high - found[name].ci_low for name in names])
    widths = np.array(widths)
    assert (np.diff(widths, axis=0) >= 0).all()
    assert (widths[2] > widths[0]).all()
    assert (np.diff(widths[:, :5], axis=0) > 0).all()


@pytest.mark.parametrize("level", [0, 1, 90, 95.0, -0.5, float("nan"), "0.95", [0.9, 0.95], True])
def test_bad_level(level):
    with pytest.raises(ValueError, match="`level`"):
        evaluate(tasks([1, 2], candidates=9), [metric("mrr")], level=level)


def test_parts_of_mr_and_mrr_differ():
    # The direction decides the sign of z alone.
    made = tasks([1, 2, 1], candidates=9)
    found = evaluate(made, [metric("zmr"), metric("zmrr")], level=None)[Ties.EXACT]
    assert found["zmr"].value > 0
    assert found["zmrr"].value > 0
    assert MR.larger_is_better is False
    assert MRR.larger_is_better is True


@pytest.mark.parametrize("weight", [1e-200, 1.0, 1e200])
def test_the_size_of_all_weights_changes_nothing(weight):
    ranks, query = np.arange(1, 41), np.repeat(np.arange(20), 2)
    wanted = [metric(name) for name in ("mrr", "macro-mrr", "macro-map@3", "amacro-ndcg@3", "gmr")]
    expected = evaluate(tasks(ranks, candidates=60, query=query), wanted)[Ties.EXACT]
    made = tasks(ranks, candidates=60, query=query, weight=np.full(40, weight))
    for name, own in evaluate(made, wanted)[Ties.EXACT].items():
        np.testing.assert_allclose(own, expected[name], rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("name", ["gmr", "igmr", "hmr", "imr", "power-mean@2"])
def test_the_standard_error_where_all_ranks_are_1_is_0(name):
    found = evaluate(tasks(np.ones(9, int), candidates=60), [metric(name)])[Ties.EXACT][name]
    assert found.standard_error == 0
    assert found.ci_low <= 1 <= found.ci_high
    assert found.ci_low < found.ci_high


@pytest.mark.parametrize("interval", ["analytic", "percentile"])
@pytest.mark.parametrize("name", ["mrr", "mr", "gmr", "median_rank", "macro-mrr"])
def test_the_normal_cdf_of_z_is_the_estimate_of_z_mapped(name, interval):
    """Hoyt et al. (2022), section 4.1."""
    rng = np.random.default_rng(4)
    made = tasks(rng.integers(1, 10, 40), candidates=10, query=np.arange(40) // 2)
    z, mapped = (
        evaluate(made, [metric(f"{start}{name}")], interval=interval, ties="exact")[Ties.EXACT][
            f"{start}{name}"
        ]
        for start in ("z", "cdf-z")
    )
    for end in ("value", "ci_low", "ci_high"):
        assert getattr(mapped, end) == pytest.approx(stats.norm.cdf(getattr(z, end)), rel=1e-12)
    step = 1e-6
    slope = (stats.norm.cdf(z.value + step) - stats.norm.cdf(z.value - step)) / (2 * step)
    assert mapped.standard_error == pytest.approx(slope * z.standard_error, rel=1e-6)
    assert 0 < mapped.ci_low < mapped.value < mapped.ci_high < 1


def test_the_normal_cdf_of_z_is_about_uniform_at_random(all_ranks):
    every = [
        evaluate(tasks(r.astype(int), candidates=5), metric("cdf-zmr"), level=None)
        for r in all_ranks([5] * 5)
    ]
    found = [one[Ties.EXACT]["cdf-zmr"] for one in every]
    values = [one.value for one in found]
    assert found[0].expectation == pytest.approx(np.mean(values), abs=1e-9)  # mr is symmetric
    assert found[0].variance == pytest.approx(np.var(values), rel=0.03)
    nothing = evaluate(tasks([1, 1], candidates=1), metric("cdf-zmr"), level=None)[Ties.EXACT]["cdf-zmr"]
    assert np.isnan([nothing.value, nothing.expectation, nothing.variance]).all()
