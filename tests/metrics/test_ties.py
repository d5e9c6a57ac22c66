"""The four tie rules."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg.metrics import Ties, tasks
from owkg.metrics.ties import half_rank_weights, rank_tables, weights_of_ranks
from owkg.rank_weights import GMR, LOG_MRR, MR, MRR, hits_at, p_mrr, tie_expectation
from owkg.rank_weights.tables import rank_weights


@cache
def _halves(metric):
    """h(k / 2) at k."""
    return np.concatenate([[np.nan, np.nan], rank_weights(metric, np.arange(2, 200) / 2)])


METRICS = [MR, MRR, LOG_MRR, GMR, hits_at(1), hits_at(3), p_mrr(0.5)]


@st.composite
def tied(draw):
    """(optimistic, pessimistic, candidates)"""
    rows = st.tuples(st.integers(1, 40), st.integers(0, 12), st.integers(0, 30))
    found = np.array(draw(st.lists(rows, min_size=1, max_size=12)))
    low = found[:, 0]
    return low, low + found[:, 1], low + found[:, 1] + found[:, 2]


@pytest.mark.parametrize("metric", METRICS, ids=str)
@given(ranks=tied())
def test_every_rule_by_hand(metric, ranks):
    low, high, candidates = ranks
    made = tasks(low, high, candidates)

    def h(rank):
        return _halves(metric)[(2 * np.asarray(rank)).astype(int)]

    by_hand = {
        Ties.OPTIMISTIC: h(low),
        Ties.PESSIMISTIC: h(high),
        Ties.REALISTIC: h((low + high) / 2),
        Ties.EXACT: [h(np.arange(a, b + 1)).mean() for a, b in zip(low, high, strict=True)],
    }
    for rule, expected in by_hand.items():
        np.testing.assert_allclose(
            weights_of_ranks(rank_tables(metric, int(made.pessimistic.max())), made, rule),
            expected,
            rtol=1e-12,
            atol=1e-13,
        )
    exact = tie_expectation(metric, low, high)
    np.testing.assert_allclose(exact, by_hand[Ties.EXACT], rtol=1e-12, atol=1e-13)
    ordered = [by_hand[rule] for rule in (Ties.OPTIMISTIC, Ties.EXACT, Ties.PESSIMISTIC)]
    sign = -1 if metric.larger_is_better else 1
    assert (np.diff(sign * np.array(ordered), axis=0) >= -1e-12).all()


def test_rules_agree_without_ties():
    made = tasks([1, 7, 20], candidates=30)
    shared = tasks([1, 7, 20], [1, 7, 20], 30)
    for rule in Ties:
        np.testing.assert_array_equal(
            weights_of_ranks(rank_tables(MRR, int(made.pessimistic.max())), made, rule), [1, 1 / 7, 1 / 20]
        )
        np.testing.assert_array_equal(
            weights_of_ranks(rank_tables(MRR, int(shared.pessimistic.max())), shared, rule),
            [1, 1 / 7, 1 / 20],
        )


def test_a_tie_of_all_has_the_mean_of_all():
    for count in (1, 2, 9, 1000):
        expected = np.mean(1 / np.arange(1, count + 1))
        np.testing.assert_allclose(
            tie_expectation(MRR, np.array([1]), np.array([count])), expected, rtol=1e-13
        )


def test_half_ranks():
    table = half_rank_weights(MRR, 20)
    np.testing.assert_allclose(table[2:41], 2 / np.arange(2, 41), rtol=1e-15)


def test_great_ranks():
    made = tasks([2**20 + 5], [2**20 + 9], 2**20 + 50)
    np.testing.assert_allclose(
        weights_of_ranks(rank_tables(MR, int(made.pessimistic.max())), made, Ties.EXACT),
        2**20 + 7,
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        weights_of_ranks(rank_tables(MRR, int(made.pessimistic.max())), made, Ties.REALISTIC),
        1 / (2**20 + 7),
        rtol=1e-12,
    )
