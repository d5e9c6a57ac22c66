"""All metrics together: constant, random and perfect scorers, invariances, edges."""

import jax
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import owkg
from owkg.metrics import Adjustment, Ties, adjusted, evaluate, metric, part_of, queries, tasks, tasks_of
from owkg.metrics.measures import AveragePrecision, BestAnswer, DiscountedGain, Dispersion, Median
from owkg.rank_weights import MR, MRR, hits_at, tables

# Every measure, each adjustment of it; medians apart, as their chance level takes long to draw.
AVERAGED = [
    "mr",
    "mrr",
    "log-mrr",
    "hits@1",
    "hits@3",
    "p-mrr@0.5",
    "probe@0.5,0.5",
    "probe@0,0",
    "probe@inf,0",
]
AVERAGED += ["strat-mrr@0.5", "macro-mrr", "macro-mr", "macro-hits@3", "macro-map@4", "macro-ndcg@4"]
LINKED = ["gmr", "igmr", "imr", "hmr", "power-mean@-2", "wgmr"]


def _with_adjustments(names):
    made = []
    for name in names:
        plain = metric(name)
        kinds = [Adjustment.NONE, Adjustment.INDEX, Adjustment.Z]
        kinds += [] if plain.larger_is_better else [Adjustment.RATIO]
        made += [adjusted(plain, kind) for kind in kinds]
    return made


EXACT = _with_adjustments(AVERAGED)
ALL = EXACT + _with_adjustments(LINKED)
# Without those whose chance level is drawn where tasks have weights, which takes long.
WEIGHTED = EXACT + _with_adjustments(["gmr", "igmr", "wgmr"])
PLAIN = [made for made in WEIGHTED if made.adjustment is Adjustment.NONE]


def _chosen(made, which, **options):
    return evaluate(made, which, ties=["exact"], level=None, **options)[Ties.EXACT]


def _popular(low, high, candidates, query, rng):
    """Tasks with everything that some metric asks for."""
    return tasks(low, high, candidates, query=query, popularity=rng.integers(0, 50, len(low)))


# --- constant, random and perfect scorers


def _constant(answers, rng):
    query = np.repeat(np.arange(len(answers)), answers)
    candidates = rng.integers(2, 300, len(answers))[query]
    return _popular(np.ones(len(query), int), candidates, candidates, query, rng)


def test_a_constant_scorer_is_at_chance():
    rng = np.random.default_rng(0)
    made = _constant(rng.integers(1, 5, 150), rng)
    found = _chosen(made, ALL)
    for wanted in EXACT:
        own = found[wanted.name]
        if wanted.adjustment in (Adjustment.INDEX, Adjustment.Z):
            assert abs(own.value) < 1e-9, wanted.name  # exactly, but for rounding
        if wanted.adjustment is Adjustment.NONE:
            np.testing.assert_allclose(own.value, own.expectation, rtol=1e-11, err_msg=wanted.name)
    for wanted in set(ALL) - set(EXACT):
        # The function of an expectation is not the expectation of the function: within a share of one sd.
        if wanted.adjustment is Adjustment.Z:
            assert abs(found[wanted.name].value) < 0.2, wanted.name


def test_the_median_of_a_constant_scorer_is_at_chance():
    rng = np.random.default_rng(1)
    made = _constant(np.ones(700, int), rng)
    found = _chosen(made, [metric("zmedian_rank"), metric("amedian_ranki")])
    assert abs(found["zmedian_rank"].value) < 0.2
    assert abs(found["amedian_ranki"].value) < 0.01


def test_the_other_tie_rules_do_not_leave_a_constant_scorer_at_chance():
    rng = np.random.default_rng(0)
    made = _constant(np.ones(150, int), rng)
    found = evaluate(made, [metric("zmrr"), metric("zmr")], level=None)
    assert found[Ties.OPTIMISTIC]["zmrr"].value > 10
    assert found[Ties.PESSIMISTIC]["zmr"].value < -10
    assert found[Ties.REALISTIC]["zmrr"].value < -3  # 1 / mean rank is below the mean of 1 / rank
    assert abs(found[Ties.REALISTIC]["zmr"].value) < 1e-9  # the mean rank is a mean of ranks


def test_random_scorers_have_the_mean_and_variance_of_chance():
    rng = np.random.default_rng(3)
    # One answer a query: random lists would make the ranks of a query alike.
    candidates = rng.integers(2, 80, 40)
    weight, popularity = rng.uniform(0.1, 3, 40), rng.integers(0, 50, 40)
    zs = [made for made in ALL if made.adjustment is Adjustment.Z and "wgmr" not in made.name]
    key = jax.random.key(1)
    draws = []
    for _ in range(100):
        ranks = rng.integers(1, candidates + 1)
        made = tasks(ranks, candidates=candidates, weight=weight, popularity=popularity)
        draws.append([e.value for e in _chosen(made, [z for z in zs if z in EXACT], key=key).values()])
    draws = np.array(draws)
    assert np.abs(draws.mean(axis=0)).max() < 4 / np.sqrt(100)
    assert np.abs(draws.var(axis=0) - 1).max() < 4 * np.sqrt(4 / 100)


@pytest.mark.parametrize(
    "measure",
    [BestAnswer(MRR), BestAnswer(MR), BestAnswer(hits_at(3)), AveragePrecision(4), DiscountedGain(4)],
    ids=["mrr", "mr", "hits@3", "map@4", "ndcg@4"],
)
def test_random_lists_have_the_mean_and_variance_of_chance(measure):
    """20,000 times 25 random lists: z of each time has mean 0 and variance 1."""
    rng, times = np.random.default_rng(4), 20_000
    answers = rng.integers(1, 6, 25)
    total = answers + rng.integers(1, 30, 25)
    ranks, candidates, query = [], [], []
    for i, (k, n) in enumerate(zip(answers, total, strict=True)):
        places = np.sort(np.argsort(rng.random((times, n)), axis=1)[:, :k], axis=1) + 1
        ranks.append((places - np.arange(k)).ravel())
        candidates.append(np.full(times * k, n - k + 1))
        query.append(np.repeat(np.arange(times) + i * times, k))
    made = tasks(*(np.concatenate(x) for x in (ranks, ranks, candidates)), query=np.concatenate(query))
    lists = queries.answers_of(made)
    values = queries.values(measure, lists, Ties.EXACT).reshape(25, times).sum(axis=0)
    mean, variance = (
        queries.list_chance(measure, lists.cases)[:, lists.case].reshape(2, 25, times)[:, :, 0].sum(axis=1)
    )
    z = (values - mean) / np.sqrt(variance)
    assert abs(z.mean()) < 4 / np.sqrt(times)
    spread = np.sqrt(np.mean((z - z.mean()) ** 4) - z.var() ** 2)
    assert abs(z.var() - 1) < 4 * spread / np.sqrt(times)


def test_a_perfect_scorer():
    rng = np.random.default_rng(2)
    query = np.repeat(np.arange(40), 3)
    candidates = rng.integers(5, 300, 40)[query]
    ones = np.ones(len(query), int)
    made = _popular(ones, ones, candidates, query, rng)
    for level in (None, 0.95):
        found = evaluate(made, ALL, ties=["exact"], level=level)[Ties.EXACT]
        for wanted in ALL:
            own = found[wanted.name]
            if wanted.adjustment in (Adjustment.INDEX, Adjustment.NONE):
                np.testing.assert_allclose(own.value, 1, rtol=1e-12, err_msg=wanted.name)
            elif wanted.adjustment is Adjustment.Z:
                assert own.value > 2, wanted.name
                np.testing.assert_allclose(
                    own.value,
                    abs(1 - found[_plain(wanted)].expectation) / np.sqrt(found[_plain(wanted)].variance),
                )
            else:
                np.testing.assert_allclose(own.value, 1 / found[_plain(wanted)].expectation, rtol=1e-12)


def _plain(wanted):
    return next(
        made.name
        for made in ALL
        if (made.measure, made.weighting, made.adjustment)
        == (wanted.measure, wanted.weighting, Adjustment.NONE)
    )


def test_index_and_z_are_affine_in_the_metric(full_table):
    made, _ = tasks_of(full_table)
    found = evaluate(made, WEIGHTED, level=None)
    for wanted in WEIGHTED:
        for rule in Ties:
            own, plain = found[rule][wanted.name], found[rule][_plain(wanted)]
            mean, variance = plain.expectation, plain.variance
            sign = 1 if metric(_plain(wanted)).larger_is_better else -1
            expected = {
                Adjustment.NONE: plain.value,
                Adjustment.RATIO: plain.value / mean,
                Adjustment.INDEX: (plain.value - mean) / (1 - mean),
                Adjustment.Z: sign * (plain.value - mean) / np.sqrt(variance),
            }[wanted.adjustment]
            if "map" not in wanted.name:  # whose best is below 1 where there are more answers than positions
                np.testing.assert_allclose(own.value, expected, rtol=1e-9, atol=1e-12, err_msg=wanted.name)


# --- invariances


def _close(one, other, rtol=1e-9):
    assert one.keys() == other.keys()
    for rule in one:
        assert one[rule].keys() == other[rule].keys()
        for name in one[rule]:
            np.testing.assert_allclose(one[rule][name], other[rule][name], rtol=rtol, atol=1e-8, err_msg=name)


@settings(max_examples=5)
@given(seed=st.integers(0, 1000))
def test_the_order_of_rows_does_not_matter(full_table, seed):
    order = np.random.default_rng(seed).permutation(len(full_table))
    _close(
        evaluate(tasks_of(full_table[order.tolist()])[0], PLAIN, ties=["exact", "realistic"]),
        evaluate(tasks_of(full_table)[0], PLAIN, ties=["exact", "realistic"]),
    )


@pytest.mark.parametrize("interval", ["analytic", "bca"])
def test_a_table_twice_with_half_the_weight_is_the_table(full_table, interval):
    half = full_table.with_columns(pl.col("weight") / 2)
    twice = pl.concat([half, half]).sample(fraction=1, shuffle=True, seed=1)
    options = {"interval": interval, "replicates": 100, "ties": ["exact"]}
    # The same order of queries, so that the same ones are drawn.
    twice = pl.concat([half, half])
    _close(
        evaluate(tasks_of(twice)[0], EXACT, **options), evaluate(tasks_of(full_table)[0], EXACT, **options)
    )


def test_the_unit_of_weights_does_not_matter(full_table):
    scaled = full_table.with_columns(pl.col("weight") * 7.5)
    _close(evaluate(tasks_of(scaled)[0], WEIGHTED), evaluate(tasks_of(full_table)[0], WEIGHTED), rtol=1e-7)


def test_names_of_entities_do_not_matter(full_table):
    renamed = full_table.with_columns(
        pl.col("head").str.replace("k", "zz"), pl.col("tail").str.replace("k", "zz"), "q" + pl.col("relation")
    )
    _close(evaluate(tasks_of(renamed)[0], PLAIN), evaluate(tasks_of(full_table)[0], PLAIN))


def test_sides_add_up(full_table):
    made, table = tasks_of(full_table)
    is_head = (table["side"] == "head").to_numpy()
    wanted = [metric(name) for name in ("mr", "mrr", "hits@3", "log-mrr")]
    both, head, tail = (
        _chosen(part, wanted) for part in (made, part_of(made, is_head), part_of(made, ~is_head))
    )
    share = made.weight[is_head].sum() / made.weight.sum()
    for name in both:
        for field, a, b in (("value", share, 1 - share), ("variance", share**2, (1 - share) ** 2)):
            added = a * getattr(head[name], field) + b * getattr(tail[name], field)
            np.testing.assert_allclose(getattr(both[name], field), added, rtol=1e-12, err_msg=name)


@settings(max_examples=5)
@given(seed=st.integers(0, 10**6))
def test_better_ranks_are_better(full_table, seed):
    made, _ = tasks_of(full_table)
    rng = np.random.default_rng(seed)
    low = np.maximum(made.optimistic - rng.integers(0, 4, len(made.optimistic)), 1)
    high = np.maximum(made.pessimistic - (made.optimistic - low), low)
    micro = [
        metric(name) for name in ("mr", "mrr", "hits@3", "probe@0.5,0.5", "gmr", "hmr", "imr", "amri", "zmrr")
    ]
    before, after = (
        evaluate(made, micro, level=None, draws=2),
        evaluate(made._replace(optimistic=low, pessimistic=high), micro, level=None, draws=2),
    )
    for rule in Ties:
        for wanted in micro:
            gain = after[rule][wanted.name].value - before[rule][wanted.name].value
            assert (gain if wanted.larger_is_better else -gain) >= -1e-12, wanted.name


def test_tie_rules_are_ordered(full_table):
    made, _ = tasks_of(full_table)
    found = evaluate(made, WEIGHTED, level=None)
    for wanted in WEIGHTED:
        sign = 1 if wanted.larger_is_better else -1
        best, exact, middle, worst = (
            sign * found[rule][wanted.name].value
            for rule in (Ties.OPTIMISTIC, Ties.EXACT, Ties.REALISTIC, Ties.PESSIMISTIC)
        )
        assert best >= exact - 1e-12, wanted.name
        assert exact >= worst - 1e-12, wanted.name
        assert best + 1e-12 >= middle >= worst - 1e-12, wanted.name


def test_intervals_change_no_value(full_table):
    made, _ = tasks_of(full_table)
    with_interval, without = evaluate(made, WEIGHTED), evaluate(made, WEIGHTED, level=None)
    for rule in Ties:
        for name, own in with_interval[rule].items():
            other = without[rule][name]
            np.testing.assert_allclose(own[:3], other[:3], rtol=1e-9, atol=1e-12, err_msg=name)
            assert np.isnan([other.standard_error, other.ci_low, other.ci_high]).all()


# --- edges


@pytest.mark.parametrize("interval", ["analytic", "percentile", "bca"])
def test_nothing_to_rank(interval):
    made = tasks([1, 1, 1], candidates=1, popularity=[0, 1, 2])
    found = evaluate(made, ALL, interval=interval, replicates=10, ties=["exact"])[Ties.EXACT]
    for wanted in ALL:
        own = found[wanted.name]
        if wanted.adjustment in (Adjustment.INDEX, Adjustment.Z) or "wgmr" in wanted.name:
            assert np.isnan(own.value), wanted.name
        else:
            np.testing.assert_allclose(own.value, 1, rtol=1e-12, err_msg=wanted.name)


def test_a_million_candidates():
    made = tasks([1, 10**6, 500_000], candidates=10**6)
    names = ["mr", "amri", "mrr", "zmrr", "hits@10", "gmr", "probe@1,0"]
    found = _chosen(made, [metric(name) for name in names])
    np.testing.assert_allclose(found["mr"].value, 500_000 + 1 / 3, rtol=1e-12)
    np.testing.assert_allclose(found["mr"].variance, (1e12 - 1) / 36, rtol=1e-9)
    np.testing.assert_allclose(found["amri"].value, 1 - 2 * (500_000 + 1 / 3 - 1) / (10**6 - 1), rtol=1e-9)
    np.testing.assert_allclose(found["mrr"].expectation, 14.392726722864989e-6, rtol=1e-9)
    assert found["hits@10"].expectation == pytest.approx(1e-5, rel=1e-12)


def test_every_rule_and_every_name_in_order(full_table):
    made, _ = tasks_of(full_table)
    found = evaluate(made, PLAIN, ties=["exact", Ties.OPTIMISTIC], level=None)
    assert list(found) == [Ties.EXACT, Ties.OPTIMISTIC]
    assert list(found[Ties.EXACT]) == [wanted.name for wanted in PLAIN]
    assert isinstance(metric("count").measure, Dispersion)
    assert isinstance(metric("median").measure, Median)


def test_a_median_before_a_drawn_chance_level_changes_nothing():
    made = tasks([1, 4, 2], candidates=[9, 5, 7], weight=[1.0, 2.0, 3.0])
    names = ["median_rank", "hmr"]
    for interval in ("analytic", "percentile"):
        both = evaluate(made, [metric(name) for name in names], interval=interval, replicates=9)
        alone = evaluate(made, [metric("hmr")], interval=interval, replicates=9)
        assert both[Ties.EXACT]["hmr"] == alone[Ties.EXACT]["hmr"]


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("tasks", {"tasks": None}),
        ("tasks", {"tasks": [1, 2, 3]}),
        ("tasks", {"tasks": pl.DataFrame({"optimistic": [1]})}),
        ("metrics", {"metrics": ["mrr"]}),
        ("metrics", {"metrics": [None]}),
        ("ties", {"ties": ["random"]}),
        ("ties", {"ties": []}),
        ("ties", {"ties": [3]}),
        ("key", {"key": -3}),
        ("key", {"key": "seed"}),
        ("key", {"key": np.zeros(2, np.uint32)}),
        ("ranks", {"tasks": tasks([1], candidates=10**9)}),
    ],
)
def test_bad_arguments(argument, change):
    good = {"tasks": tasks([1, 2], candidates=9), "metrics": [metric("mrr")]}
    evaluate(**good)
    call = {**good, **change}
    with pytest.raises(ValueError, match=f"`{argument}`"):
        evaluate(call.pop("tasks"), call.pop("metrics"), **call)


def test_one_metric_needs_no_list():
    ranks = tasks([1, 3, 2], candidates=9)
    one = evaluate(ranks, metric("mrr"), ties="exact")
    assert one == evaluate(ranks, [metric("mrr")], ties=[Ties.EXACT])
    with pytest.raises(ValueError, match="metrics"):
        evaluate(ranks, None)


@pytest.mark.parametrize("ties", ["realistic", "pessimistic", "exact"])
def test_without_tables_over_all_candidates_the_same(monkeypatch, ties):
    """As of graphs of a hundred million entities: no table has a row for each."""
    rng = np.random.default_rng(2)
    candidates = rng.integers(300, 400, 50)
    low = rng.integers(1, 200, 50)
    frame = pl.DataFrame(
        {
            "head": [f"h{i % 20}" for i in range(50)], "relation": ["r"] * 50, "side": ["tail"] * 50,
            "tail": [f"t{i}" for i in range(50)], "optimistic": low, "filtered": [True] * 50,
            "pessimistic": low + rng.integers(0, 90, 50), "candidates": candidates[np.arange(50) % 20],
        }
    )  # fmt: skip
    names = ["mrr", "mr", "hits@10", "amri", "probe@1,0", "macro-mrr"]
    for ci in (0.95, None):
        expected = owkg.evaluate(frame, names, ties=ties, ci=ci)
        with monkeypatch.context() as patch:
            patch.setattr(tables, "_KEPT", ((100, 1),))
            patch.setattr(tables, "_PART", 64)
            found = owkg.evaluate(frame, names, ties=ties, ci=ci)
        assert_frame_equal(found, expected, abs_tol=1e-12, rel_tol=1e-12)


def test_without_intervals_all_tasks_are_one_query():
    rows = [
        {"head": f"h{i}", "tail": "t", "relation": "r", "side": "tail", "candidates": 9} for i in range(4)
    ]
    frame = pl.DataFrame([row | {"optimistic": 1 + i, "pessimistic": 2 + i} for i, row in enumerate(rows)])
    found = owkg.evaluate(frame, ["mrr", "median_rank"], ci=None)
    assert found["value"][1] == 3.0
    assert found["effective_queries"].to_list() == found["heaviest_query"].to_list() == [1.0, 1.0]
