"""Desiderata of rank metrics, for every metric of the registry (Hoyt et al. 2022; PROBE, Property 2).

Here they are tried on random ranks and sizes, against the table of `simulations.hoyt2022.desiderata`, which
`docs/reference/desiderata.md` shows.
"""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from owkg.metrics import Ties, evaluate, metric, tasks
from owkg.rank_weights import RankWeight
from owkg.rank_weights.tables import on_numpy, rank_weights
from simulations.hoyt2022.desiderata import DESIDERATA, SIZES, desiderata, markdown, registered, values
from simulations.hoyt2022.printed import TABLE_1

ROOT = Path(__file__).parents[2]
METRICS = registered()
RANKS = st.lists(st.integers(1, SIZES[1]), min_size=3, max_size=3)


@pytest.fixture(scope="module")
def table():
    return desiderata(METRICS.values())


@pytest.fixture(scope="module")
def met(table):
    """By the name of a metric, the desiderata that it meets."""
    return {row["metric"]: {name for name in DESIDERATA if row[name]} for row in table.to_dicts()}


def test_every_metric_that_has_a_better_end_is_there():
    assert len(METRICS) == 79
    assert {"mrr", "amr", "amri", "zhits@10", "cdf-zgmr", "macro-map@20", "probe@0.5,0.5"} <= set(METRICS)
    assert not {"count", "variance", "max_rank", "zmedian_rank"} & set(METRICS)


def test_the_page_shows_the_table(table):
    assert f"\n\n{markdown(table)}\n\n" in (ROOT / "docs/reference/desiderata.md").read_text(encoding="utf-8")


def test_only_amri_meets_all(met):
    assert {name for name, those in met.items() if those == set(DESIDERATA)} == {"amri"}


@given(ranks=RANKS, i=st.integers(0, 2), step=st.integers(1, SIZES[1]))
def test_a_better_rank_is_a_larger_anti_monotonic_metric(met, ranks, i, step):
    better = [max(1, rank - step) if j == i else rank for j, rank in enumerate(ranks)]
    both = (values(METRICS.values(), these, SIZES[1]) for these in (ranks, better))
    for (name, one), before, after in zip(METRICS.items(), *both, strict=True):
        if not one.larger_is_better:
            assert after <= before
            assert "anti-monotonic" not in met[name]
            continue
        assert after >= before - 1e-12
        # Far up, the normal cdf is 1 in floating point.
        if "anti-monotonic" in met[name] and better != ranks and before < 1 - 1e-9:
            assert after > before


@settings(max_examples=20)
@given(candidates=st.integers(22, 3000))
def test_best_and_worst_values_are_the_same_for_all_sizes_or_not(met, candidates):
    for which, rank_of in {"fixed optimum": lambda n: 1, "fixed pessimum": lambda n: n}.items():
        both = (values(METRICS.values(), [rank_of(n)] * 3, n) for n in (candidates, 21))
        for name, here, there in zip(METRICS, *both, strict=True):
            if not name.startswith("cdf"):
                assert (here == pytest.approx(there, rel=1e-9, abs=1e-12)) == (which in met[name])


@settings(max_examples=3)
@given(candidates=st.integers(22, 60))
def test_means_by_chance_are_the_same_for_all_sizes_or_not(met, candidates):
    def mean(n):
        return np.mean([values(METRICS.values(), [r], n) for r in range(1, n + 1)], axis=0)

    for name, here, there in zip(METRICS, mean(candidates), mean(21), strict=True):
        assert (here == pytest.approx(there, rel=1e-9, abs=1e-9)) == ("size invariant" in met[name])


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, one in METRICS.items()
        if one.adjustment == "none" and isinstance(one.measure, RankWeight)
    ],
)
def test_plain_metrics_are_as_their_rank_weights_say(name, met):
    """By f = g(h) of a rank alone, with no metric computed."""
    weight = METRICS[name].measure
    ranks = np.concatenate([np.arange(1, 2000), np.geomspace(1e4, 1e12, 9)])
    f = rank_weights(weight, ranks)
    f = f if weight.link is None else on_numpy(weight.link, f)
    assert ("fixed optimum" in met[name]) == bool(f[0] == 1)
    assert ("asymptotic pessimum" in met[name]) == bool(f[-1] < 0.03)
    assert ("anti-monotonic" in met[name]) == bool((np.diff(f) < 0).all())
    assert ("fixed pessimum" in met[name]) == bool((f[11:] == f[-1]).all())


def test_table_1_but_for_the_optimum_of_mr(met, owkg_data):
    printed = pl.read_csv(owkg_data / "printed" / "001_table1_desiderata.csv", glob=False)
    columns = {"MR": "mr", "MRR": "mrr", "H_k": "hits@10"}
    differs = []
    for desideratum, row in zip(TABLE_1, printed.iter_rows(named=True), strict=True):
        assert TABLE_1[desideratum] == "".join(row[column] for column in columns)
        for column, name in columns.items():
            if (row[column] == "✓") != (desideratum in met[name]):
                differs.append((desideratum, column))
    assert differs == [("fixed optimum", "MR")]
    for n in (2, 21, 1000):
        assert values([metric("mr")], [1], n).item() == 1


def test_no_mean_is_proportional_to_the_candidates():
    for name, mean in {
        "mr": lambda n: (n + 1) / 2,
        "mrr": lambda n: (1 / np.arange(1, n + 1)).sum() / n,
        "hits@10": lambda n: 10 / n,
    }.items():
        for n in (20, 40):
            by_chance = np.mean([values([metric(name)], [r], n) for r in range(1, n + 1)])
            assert by_chance == pytest.approx(mean(n), rel=1e-13)
        assert mean(40) != pytest.approx(2 * mean(20), rel=0.01)
        assert mean(40) != pytest.approx(mean(20), rel=0.01)


def test_the_normal_cdf_leaves_the_optimum_of_z_metrics_unfixed(met):
    best = [values([metric("cdf-zmr")], [1], n).item() for n in (24, 1000)]
    np.testing.assert_allclose(best, [0.9517, 0.9582], atol=5e-5)
    for name in ("mr", "mrr", "hits@10"):
        assert "fixed optimum" not in met[f"cdf-z{name}"]
        assert ("size invariant" in met[f"cdf-z{name}"]) == (name == "mr")


def test_what_probe_says_of_its_pessimum_and_that_of_others(met):
    """Property 2; and MRR, p-MRR and strat-MRR, which it names, only approach theirs."""
    assert {"fixed optimum", "fixed pessimum"} <= met["probe@0.5,0.5"]
    for name in ("mrr", "p-mrr@0.5", "strat-mrr@0.5"):
        assert "asymptotic pessimum" in met[name]
        assert "fixed pessimum" not in met[name]


def test_chance_levels_say_which_metrics_are_size_invariant(met):
    """The expectation that `owkg.metrics` reports, against the mean of the metric over all ranks."""
    chosen = [one for name, one in METRICS.items() if "cdf" not in name and "median" not in name]
    same = {one.name: [] for one in chosen}
    for n in SIZES[:2]:
        of = tasks([1], candidates=n, query=[0], popularity=[1], relation_popularity=[1])
        for name, estimate in evaluate(of, chosen, ties=[Ties.EXACT], level=None)[Ties.EXACT].items():
            same[name].append(estimate.expectation)
    for name, (here, there) in same.items():
        assert (here == pytest.approx(there, rel=1e-9, abs=1e-9)) == ("size invariant" in met[name])


def test_probe_at_sharpness_minus_1_meets_all():
    assert desiderata([metric("probe@-1,0")]).row(0)[1:] == (True,) * len(DESIDERATA)
