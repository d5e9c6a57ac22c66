"""What the papers on rank metrics print wrong, and what holds (docs/errata.md), by counting all rankings."""

import numpy as np
import pytest

from owkg.metrics import Ties, evaluate, metric, probe, tasks


def _of(ranks, candidates, name):
    return evaluate(tasks(ranks, candidates=candidates), [metric(name)], level=None)[Ties.EXACT][name]


def test_amr():
    ranks, n = np.array([2, 7, 3, 10]), 11
    holds = 2 / (len(ranks) * (n + 1)) * ranks.sum()
    printed = 2 / (n * (n - 1)) * ranks.sum()
    assert _of(ranks, n, "amr").value == pytest.approx(holds, rel=1e-14)
    assert _of(ranks, n, "amr").value != pytest.approx(printed, rel=0.5)


def test_variance_of_hits(all_ranks):
    n, k, count = 5, 2, 3
    every = (all_ranks([n] * count) <= k).mean(axis=1)
    found = _of(np.ones(count, np.int64), n, f"hits@{k}").variance
    assert found == pytest.approx(every.var(), rel=1e-13)
    assert found == pytest.approx(k * (n - k) / (count * n**2), rel=1e-13)
    assert found != pytest.approx(k * (n - k) / (count**2 * n**2), rel=0.5)


@pytest.mark.parametrize("name", ["mr", "hmr", "gmr"])
def test_ratios_to_chance_exceed_1(name, all_ranks):
    n = 6
    chance = _of(np.ones(3, np.int64), n, name).expectation
    for rank in (1, n):
        ratio = _of(np.full(3, rank), n, f"a{name}").value
        assert ratio == pytest.approx(rank / chance, rel=1e-13)
        assert (ratio > 1) == (rank == n)
    every = [_of(ranks.astype(int), n, f"a{name}").value for ranks in all_ranks([n] * 2)]
    assert np.mean(every) == pytest.approx(1, rel=1e-13)


def test_the_least_amrr_is_above_the_printed_end():
    n = 6
    for plain, index, least in (("mrr", "amrr", 1 / n), ("hits@2", "ahits@2", 0)):
        worst, chance = np.full(3, n), _of(np.ones(3, np.int64), n, plain).expectation
        found, printed = _of(worst, n, index).value, -chance / (1 - chance)
        assert found == pytest.approx((least - chance) / (1 - chance), rel=1e-13)
        assert (found > printed + 0.1) == (plain == "mrr")


@pytest.mark.parametrize("name", ["zmr", "zmrr", "zgmr", "zhmr", "zimr", "zigmr", "zhits@3", "zmedian_rank"])
def test_z_metrics_rise(name):
    better, worse = (_of(np.full(9, rank), 20, name).value for rank in (2, 15))
    assert better > 0 > worse


def test_amri():
    ranks, candidates = np.array([2, 7, 3, 10]), np.array([9, 8, 20, 11])
    quotient = 2 * (ranks - 1).sum() / (candidates - 1).sum()
    assert _of(ranks, candidates, "amri").value == pytest.approx(1 - quotient, rel=1e-14)


def test_probe():
    """Equation 2 in its printed form equals the affine image; equation 5 with 1/n would shrink with n."""
    ranks, n, a = np.array([1, 4, 9, 9]), 9, 0.5
    f = ranks**-a
    score = (f - 1) / (1 - n**-a) + 1
    np.testing.assert_allclose(score, (f - n**-a) / (1 - n**-a), rtol=1e-14, atol=1e-15)
    popularity = np.array([0, 3, 8, 99])
    weight = (popularity + 1.0) ** -0.5
    ranked = tasks(ranks, candidates=n, popularity=popularity)
    found = evaluate(ranked, [probe(a, 0.5)], level=None)[Ties.EXACT]["probe@0.5,0.5"].value
    assert found == pytest.approx(np.dot(weight / weight.sum(), score), rel=1e-13)
    assert found != pytest.approx(np.dot(weight / weight.sum(), score) / len(ranks), rel=0.5)
