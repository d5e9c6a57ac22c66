"""The thirteen systems in closed worlds: what the tables say of several seeds."""

import pytest

from simulations.open_world.presets import PRESETS
from simulations.zhou2022.closed_world import _tables

NAMES = ("A", "B")


def of_seed(alone, pooled, sparse, full):
    """What `pooled` of the study gives, as far as the tables read it."""
    rows = [
        {"depth": depth, "metric": "mrr", "coefficient": name, "value": value, "lower": value - 0.1}
        | {"upper": value + 0.2}
        for depth, value in ((0, alone), (1, 9.0), (2, pooled))
        for name in ("tau", "rho")
    ]
    systems = [
        {
            "depth": depth,
            "metric": metric,
            "system": name,
            "value": value,
            "rank": 2.0 - (value == max(values)),
        }
        for depth, values in ((0, sparse), (2, (9.0, 8.0)), (None, full))
        for metric in ("mrr", "hits@1")
        for name, value in zip(NAMES, values, strict=True)
    ]
    return {"agreement": rows, "systems": systems}


@pytest.fixture
def tables():
    return _tables([of_seed(0.5, 0.75, (0.4, 0.3), (0.2, 0.6)), of_seed(-0.25, 0.25, (0.6, 0.5), (0.4, 0.2))])


def test_the_order_of_the_test_set_alone_and_with_pools(tables):
    (row,) = tables["order"].to_dicts()
    expected = {"metric": "mrr", "seeds": 2, "tau": 0.125, "least": -0.25, "tau_pooled": 0.5}
    assert {name: row[name] for name in expected} == expected
    assert (row["lower"], row["upper"]) == (pytest.approx(-0.35), pytest.approx(0.7))


def test_systems_by_their_mean_on_the_test_set(tables):
    first, second = tables["systems"].to_dicts()
    assert (first["system"], second["system"]) == NAMES
    assert first["value"] == pytest.approx(0.5)
    assert first["rank"] == 1
    assert first["value_truth"] == pytest.approx(0.3)
    assert first["rank_truth"] == 1.5


def test_the_systems_are_those_of_the_paper():
    found = [one.training().model for one in PRESETS["thirteen"]]
    assert len(set(found)) == 13
    assert {"atte", "compgcn", "hitter"} < set(found)
