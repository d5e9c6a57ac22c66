"""Published numbers without their ranks are adjusted as tables of ranks are."""

import numpy as np
import pytest

from owkg.metrics import Ties, adjusted_from, evaluate, metric, tasks

RNG = np.random.default_rng(5)
CANDIDATES = RNG.integers(2, 90, 700)
RANKS = RNG.integers(1, CANDIDATES + 1)
WEIGHT = RNG.uniform(0.2, 3, 700)
PLAIN = {"amr": "mr", "amri": "mr", "zmr": "mr", "amrr": "mrr", "zmrr": "mrr", "ahits@3": "hits@3"}
PLAIN |= {"zhits@3": "hits@3", "agmri": "gmr", "zgmr": "gmr", "ahmri": "hmr", "zwgmr": "wgmr"}
PLAIN |= {"amedian_ranki": "median_rank", "aprobe@1,0": "probe@1,0", "cdf-zmr": "mr"}


@pytest.mark.parametrize("name", PLAIN)
def test_it_is_the_adjusted_metric_of_the_table(name):
    table = tasks(RANKS, candidates=CANDIDATES)
    found = evaluate(table, [metric(name), metric(PLAIN[name])], level=None)[Ties.EXACT]
    own = adjusted_from(metric(name), found[PLAIN[name]].value, CANDIDATES)
    assert own == pytest.approx(found[name].value, rel=1e-12, abs=1e-12)


def test_weights_count():
    table = tasks(RANKS, candidates=CANDIDATES, weight=WEIGHT)
    found = evaluate(table, [metric("zmrr"), metric("mrr")], level=None)[Ties.EXACT]
    own = adjusted_from(metric("zmrr"), found["mrr"].value, CANDIDATES, weight=WEIGHT)
    assert own == pytest.approx(found["zmrr"].value, rel=1e-12)


def test_nothing_to_rank():
    assert np.isnan(adjusted_from(metric("amri"), 1.0, [1, 1]))


@pytest.mark.parametrize(
    ("name", "value", "candidates", "shown"),
    [
        ("mr", 3.0, [9], "metric"),
        ("amacro-mrr", 0.3, [9], "metric"),
        ("amri", float("nan"), [9], "value"),
        ("amri", 3.0, [0], "candidates"),
        ("amri", [3.0, 4.0], [9], "value"),
        ("astrat-mrr@1", 0.3, [9], "popularity"),
    ],
)
def test_bad_arguments_are_named(name, value, candidates, shown):
    with pytest.raises(ValueError, match=shown):
        adjusted_from(metric(name), value, candidates)
