"""Running sums of rank weights."""

import numpy as np
import pytest

from owkg.metrics.measures import probe_loss
from owkg.rank_weights import GMR, LOG_MRR, MR, MRR, RankWeight, hits_at, many, p_mrr, power_mean, tables
from owkg.rank_weights.tables import padded_size, prefix_sums, rank_weights, sums_at


@pytest.mark.parametrize(
    ("largest", "size"),
    [
        (1, 16),
        (16, 16),
        (17, 32),
        (1000, 1024),
        (1024, 1024),
        (1025, 2048),
        (2**20, 2**20),
        (2**20 + 1, 2**21),
        (2**21, 2**21),
        (3 * 2**20 - 5, 3 * 2**20),
    ],
)
def test_padded_size(largest, size):
    assert padded_size(largest) == size


@pytest.mark.parametrize("metric", [MRR, MR, LOG_MRR, GMR, hits_at(3), power_mean(-2)], ids=str)
@pytest.mark.parametrize("largest", [1, 2, 15, 16, 17, 1000])
def test_prefix_sums_are_sums(metric, largest):
    sums = prefix_sums(metric, largest)
    weight = rank_weights(metric, np.arange(1, largest + 1))
    assert (sums[:, 0] == 0).all()
    assert np.isfinite(sums).all()
    for x in range(1, largest + 1, max(1, largest // 20)):
        np.testing.assert_allclose(sums[0, x], weight[:x].sum(), rtol=1e-13)
        np.testing.assert_allclose(sums[1, x], (weight[:x] ** 2).sum(), rtol=1e-13)
    assert not sums.flags.writeable


@pytest.mark.parametrize("metric", [MRR, MR, hits_at(3)], ids=str)
def test_sums_without_a_table_are_those_of_one(metric, monkeypatch):
    ranks = np.array([[0, 1, 7], [999, 1000, 7]])
    expected = sums_at(metric, ranks)
    np.testing.assert_array_equal(expected, prefix_sums(metric, 1000)[:, ranks])
    monkeypatch.setattr(tables, "_KEPT", ((100, 1),))
    monkeypatch.setattr(tables, "_PART", 64)
    np.testing.assert_allclose(sums_at(metric, ranks), expected, rtol=1e-13)


def test_rank_weights_are_in_double_precision():
    assert rank_weights(MRR, np.array([3]))[0] == 1 / 3


def test_a_weight_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="'bad' with inf at rank 3"):
        rank_weights(RankWeight("bad", lambda rank: 1 / (rank - 3)), np.arange(1, 5))


def test_weights_that_cannot_be_squared_are_refused():
    with pytest.raises(ValueError, match="power-mean@40"):
        prefix_sums(power_mean(40), 16_384)


def test_too_many_ranks_are_refused():
    with pytest.raises(ValueError, match="`num_entities`"):
        prefix_sums(MRR, 2 * 10**8)


WEIGHTS = (MRR, MR, LOG_MRR, GMR, hits_at(10), p_mrr(2.5), power_mean(3), probe_loss(0.5), probe_loss(np.inf))


@pytest.mark.parametrize("metric", WEIGHTS, ids=str)
def test_sums_over_many_ranks_are_those_that_are_added_up(monkeypatch, metric):
    ranks = np.array([[0, 1, 65_536, 65_537], [200_000, 200_001, 7, 300_000]])
    expected = prefix_sums(metric, 300_000)[:, ranks]
    monkeypatch.setattr(tables, "has_table", lambda _: False)
    monkeypatch.setattr(tables, "_PART", 0)  # no parts
    np.testing.assert_allclose(tables.sums_at(metric, ranks), expected, rtol=1e-12)


def test_a_weight_that_may_not_be_smooth_is_summed_rank_by_rank():
    steps = RankWeight("steps", lambda rank: rank // 1000)
    assert many.points(steps, np.array([100_000])) is None
    assert many.points(hits_at(70_000), np.array([100_000])) is None
