"""Blocks of whole queries: the same numbers however the tasks are cut, sorted or stored."""

import numpy as np
import polars as pl
import pytest

from owkg.metrics import Ties, blocks, chance, default_metrics, evaluate, metric, queries, tasks, tasks_of
from owkg.metrics.blocks import Block, ordered, whole_block
from owkg.rank_weights import HMR, IMR, MRR
from owkg.stats import IntervalMethod

NAMES = [*(one.name for one in default_metrics(popularity=True)), "zmacro-map@3", "amacro-mrr", "macro-mr"]


def _same(found, expected):
    for rule, by_name in expected.items():
        for name, own in by_name.items():
            np.testing.assert_allclose(
                found[rule][name], own, rtol=1e-9, atol=1e-12, err_msg=f"{rule} {name}"
            )


@pytest.fixture(params=["plain", "seeds", "unfiltered"])
def table(full_table, request):
    if request.param == "seeds":
        worse = full_table.with_columns(optimistic=pl.col("pessimistic"), seed=pl.lit(1))
        return pl.concat([full_table.with_columns(seed=pl.lit(0)), worse])
    return full_table.with_columns(filtered=pl.lit(request.param == "plain"))


def test_blocks_of_few_tasks_give_what_one_block_gives(table, monkeypatch):
    made, _ = tasks_of(table)
    wanted = [metric(name) for name in NAMES if not name.startswith("median")]
    expected = evaluate(made, wanted, draws=500)
    monkeypatch.setattr(blocks, "_TASKS", 7)
    parts = list(blocks.blocks(whole_block(made)))
    assert len(parts) > 10
    assert sum(part.num_queries for part in parts) == made.num_queries
    assert sum(len(part.tasks.optimistic) for part in parts) == len(made.optimistic)
    _same(evaluate(made, wanted, draws=500), expected)


@pytest.mark.parametrize("interval", list(IntervalMethod))
def test_the_order_of_rows_changes_no_number(table, interval):
    wanted = [metric(name) for name in ("mrr", "amri", "gmr", "macro-mrr", "median_rank")]
    options = {"interval": interval, "replicates": 50, "draws": 500, "ties": ["exact"]}
    expected = evaluate(tasks_of(table)[0], wanted, **options)
    for seed in (1, 2):
        mixed = table.sample(fraction=1.0, shuffle=True, seed=seed)
        _same(evaluate(tasks_of(mixed)[0], wanted, **options), expected)


def test_ranks_in_32_bits_and_in_64_are_the_same():
    rng = np.random.default_rng(0)
    size = 2**28 - 1
    low = rng.integers(1, size, 50)
    narrow = ordered(tasks(low, candidates=size, query=rng.integers(0, 20, 50)))
    assert narrow.optimistic.dtype == np.int32
    assert narrow.optimistic is narrow.pessimistic
    wide = ordered(tasks(low, candidates=2**28 + 1, query=rng.integers(0, 20, 50)))
    assert wide.optimistic.dtype == np.int64
    np.testing.assert_array_equal(np.sort(narrow.optimistic), np.sort(wide.optimistic))


def test_codes_too_many_for_one_number_are_sorted_all_the_same():
    rng = np.random.default_rng(3)
    query = rng.integers(0, 2**40, 300)
    query[150:] = query[:150]
    low = rng.integers(1, 10**8, 300)
    made = ordered(tasks(low, low + rng.integers(0, 9, 300), 2 * 10**8, query=query))
    rows = list(zip(made.query.tolist(), made.optimistic.tolist(), made.pessimistic.tolist(), strict=True))
    assert rows == sorted(rows)


def test_a_block_without_queries_of_several_answers():
    whole = whole_block(tasks([3, 1, 2], candidates=[9, 8, 9]))
    assert isinstance(whole, Block)
    assert whole.answers.tolist() == [1, 1, 1]
    assert whole.cases.candidates[whole.case].tolist() == [9, 8, 9]


def test_the_first_place_by_repeated_sums_and_by_position():
    rng = np.random.default_rng(0)
    size, answers = rng.integers(40, 400, 200), rng.integers(2, 33, 200)
    sums = np.cumsum(np.concatenate([[0.0], 1 / np.arange(1, 401)]))
    squares = np.cumsum(np.concatenate([[0.0], 1 / np.arange(1, 401) ** 2]))
    summed = queries._repeated_sums(np.stack([sums, squares]), size, answers)
    gone_through = queries._by_position(np.diff(sums), np.zeros_like(size), size, answers)
    np.testing.assert_allclose(summed, gone_through, rtol=1e-10)


@pytest.mark.parametrize(("metric", "count"), [(HMR, 200_000), (IMR, 200_000), (HMR, 300), (IMR, 30)])
def test_the_series_of_cumulants_gives_what_the_sum_over_ranks_gives(metric, count, monkeypatch):
    candidates = np.random.default_rng(1).integers(50, 3000, count)
    power = 1.0
    quick = chance.reciprocal_chance(metric, power, chance.Shapes(candidates))
    monkeypatch.setattr(chance, "_weight_cumulants", lambda *_: (np.zeros(8), np.inf))
    slow = chance.reciprocal_chance(metric, power, chance.Shapes(candidates))
    np.testing.assert_allclose(quick[:2], slow[:2], rtol=1e-9)


def test_the_weight_of_a_rank_by_numpy_is_that_by_jax():
    import jax

    ranks = np.arange(1, 50.0)
    for name in ("mrr", "log-mrr", "gmr", "p-mrr@0.3", "hits@3", "power-mean@2"):
        weighted = metric(name).measure
        with jax.enable_x64(True):
            traced = np.asarray(jax.jit(lambda r, m=weighted: m.weight(r))(ranks))
        np.testing.assert_allclose(weighted.weight(ranks), traced, rtol=1e-14)
    assert isinstance(MRR.weight(ranks), np.ndarray)
    assert set(Ties) == {"optimistic", "pessimistic", "realistic", "exact"}
