"""What PyKEEN 1.11.1 makes of the same ranks, as benchmarks/record_pykeen.py recorded it."""

import json
from pathlib import Path

import numpy as np
import pytest

from owkg.metrics import Ties, evaluate, metric, part_of, pykeen_key, tasks

RECORD = json.loads((Path(__file__).parent / "data" / "pykeen.json").read_text(encoding="utf-8"))
SETS = {ranks["name"]: ranks for ranks in RECORD["sets"]}
KEYS = sorted(SETS["constant"]["metrics"]["both"]["realistic"])
CASES = [
    (name, side, ties)
    for name, ranks in SETS.items()
    for side in ranks["metrics"]
    for ties in ranks["metrics"][side]
]


def _tasks(ranks, side):
    every = tasks(ranks["optimistic"], ranks["pessimistic"], ranks["candidates"], weight=ranks["weight"])
    return every if side == "both" else part_of(every, np.array(ranks["side"]) == side)


def test_every_key_of_pykeen_is_a_name_and_leads_back():
    assert len(KEYS) == 31
    for key in KEYS:
        assert pykeen_key(metric(key)) == key
    assert len({metric(key).name for key in KEYS}) == len(KEYS)


def _is_dispersion(key):
    return key in ("count", "median_absolute_deviation", "standard_deviation", "variance")


@pytest.mark.parametrize(("name", "side", "ties"), CASES, ids=lambda x: str(x))
def test_values_and_chance_levels(name, side, ties):
    ranks, weighted = SETS[name], SETS[name]["weight"] is not None
    part = _tasks(ranks, side)
    found = evaluate(part, {metric(key) for key in KEYS}, ties=[ties], level=None, draws=2)[Ties(ties)]
    for key, recorded in ranks["metrics"][side][ties].items():
        own, where = found[metric(key).name], f"{name} {side} {ties} {key}"
        if weighted and _is_dispersion(key) and key != "count":
            continue  # they leave weights out of the moments, and the scale out of the weighted MAD
        rtol = 1e-10 if key == "z_geometric_mean_rank" else 1e-12  # theirs loses digits
        if not np.isfinite(own.value):
            # One candidate a task, or no variance: there is no such number; they divide by 1e-12.
            assert recorded["value"] == 0, where
            assert key.startswith(("adjusted_", "z_")), where
            continue
        np.testing.assert_allclose(own.value, recorded["value"], rtol=rtol, atol=1e-13, err_msg=where)
        if recorded["expectation"] is None:
            continue
        np.testing.assert_allclose(
            own.expectation, recorded["expectation"], rtol=1e-11, atol=1e-13, err_msg=where
        )
        if recorded["variance"] is not None:
            # Their variance of the geometric mean is a difference of close products.
            rtol = 1e-8 if "geometric" in key else 1e-10
            np.testing.assert_allclose(own.variance, recorded["variance"], rtol=rtol, err_msg=where)


def test_what_pykeen_has_in_closed_form_was_compared():
    closed = {
        key
        for ranks in SETS.values()
        for key, recorded in ranks["metrics"]["both"]["realistic"].items()
        if recorded["expectation"] is not None
    }
    plain = {"arithmetic_mean_rank", "inverse_harmonic_mean_rank", "geometric_mean_rank", "hits_at_10"}
    index = {"adjusted_arithmetic_mean_rank_index", "adjusted_inverse_harmonic_mean_rank"}
    assert closed >= plain | index | {"z_arithmetic_mean_rank", "z_hits_at_3"}


def test_weights_of_dispersion_are_ours_alone():
    part = _tasks(SETS["weighted"], "both")
    own = evaluate(part, [metric("variance")], ties=["optimistic"], level=None)[Ties.OPTIMISTIC]
    recorded = SETS["weighted"]["metrics"]["both"]["optimistic"]["variance"]["value"]
    mean = np.average(part.optimistic, weights=part.weight)
    by_hand = np.average((part.optimistic - mean) ** 2, weights=part.weight)
    np.testing.assert_allclose(own["variance"].value, by_hand, rtol=1e-12)
    np.testing.assert_allclose(recorded, np.var(part.optimistic), rtol=1e-12)
