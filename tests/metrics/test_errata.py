"""What papers on rank metrics print wrong, and what holds (docs/evidence/errata.md), by counting."""

import numpy as np
import polars as pl
import pytest
from scipy import special

from owkg import ir
from owkg.kg import read_graph
from owkg.metrics import Ties, evaluate, metric, probe, tasks
from simulations.probe2026.printed import places


def _of(ranks, candidates, name):
    return evaluate(tasks(ranks, candidates=candidates), [metric(name)], level=None)[Ties.EXACT][name]


def test_p_value_of_a_rank_correlation():
    """That of any coefficient that rounds to -.041, for 38,960 entities, is above the printed 9.22e-17."""
    n = 38_960
    p = [
        2 * special.stdtr(n - 2, -rho * np.sqrt((n - 2) / (1 - rho**2)))
        for rho in np.linspace(0.0405, 0.0415, 11)
    ]
    assert 2.4e-16 < min(p) < max(p) < 1.4e-15


def test_chance_of_the_inverse_geometric_mean_rank(all_ranks):
    """IGMR has the closed form of GMR, with the exponent -1 / n."""
    n, count = 6, 3
    expected = np.mean(np.arange(1.0, n + 1) ** (-1 / count)) ** count
    found = _of(np.ones(count, np.int64), n, "igmr").expectation
    assert found == pytest.approx(expected, rel=1e-13)
    assert found == pytest.approx((all_ranks([n] * count) ** (-1 / count)).prod(1).mean(), rel=1e-13)


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
    # With |S| for |S| - 1 below, the worst ranks would not give -1.
    worst = _of(candidates, candidates, "amri").value
    assert worst == pytest.approx(-1, rel=1e-14)
    assert 1 - 2 * (candidates - 1).sum() / candidates.sum() > worst + 0.1


def test_hits_are_not_precision():
    """P@k has k in the denominator: of queries with one answer, it is Hits@k / k. Hits@k is success@k."""
    ranks, n, k = [1, 3, 4, 9], 9, 3
    found = {"query": np.repeat(ranks, n), "answer": np.tile(np.arange(n) + 1, len(ranks))}
    run = pl.DataFrame(found).with_columns(score=-pl.col("answer").cast(pl.Float64))
    qrels = pl.DataFrame({"query": ranks, "answer": ranks}).with_columns(relevance=1)
    judged = ir.judge(run, qrels)
    hits = _of(np.array(ranks), n, f"hits@{k}").value
    assert ir.success(judged, k).mean() == hits == 0.5
    assert ir.precision(judged, k).mean() == pytest.approx(hits / k, rel=1e-14)


def test_realistic_rank_of_equal_scores():
    """Equal scores and scores at random have the same rank (n+1)/2, for which 1/n divides by candidates."""
    for n in (1, 2, 9):
        alike = evaluate(tasks([1], [n], n), [metric("mr")], ties=[Ties.REALISTIC], level=None)
        assert alike[Ties.REALISTIC]["mr"].value == (n + 1) / 2 != n / 2
        for count in (1, 4):
            assert _of(np.ones(count, np.int64), n, "mr").expectation == pytest.approx((n + 1) / 2)


def test_entities_of_wn18rr(owkg_data):
    assert read_graph(owkg_data / "wn18rr").num_entities == 40_943


def test_places_in_the_table_of_probe():
    """No column with a sharpness has RNNLogic last on WN18RR."""
    last = [places("P1", "WN18RR", column)[-1] for column in range(1, 5)]
    assert last == [3, 2, 1, 1]


@pytest.mark.parametrize(("name", "printed"), [("fb15k237", 37.5), ("wn18rr", 4.3)])
def test_mean_degree(owkg_data, name, printed):
    graph = read_graph(owkg_data / name)
    ends = np.bincount(graph.splits["train"][:, [0, 2]].ravel(), minlength=graph.num_entities)
    assert round(ends[ends > 0].mean(), 1) == printed
    assert round(ends.mean(), 1) < printed


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
