"""Plans: the fewest units for a wished width, before any label and after a pilot."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from owkg.estimation import Asked, DrawnPool, Unit, after_pilot, draw, estimate, free_proxy, plan, units_for
from owkg.estimation.measures import measure
from owkg.estimation.population import population
from owkg.estimation.spread import spread
from tests.estimation.worlds import populated, world


@pytest.fixture(scope="module")
def people():
    return populated(queries=200)[0]


def test_whole_queries_follow_the_formula(people):
    """n = A / (1 + A / N), A = (2 t)^2 s^2 / W^2, for the median system and a spread that is 1.1 as large."""
    proxy, wish = free_proxy(people), 0.08
    found = units_for(people, proxy, {"ap": wish}).row(0, named=True)
    deviation = np.median(np.sqrt(np.diag(spread(measure("ap", 5), people, proxy)))) * 1.1
    n = found["count"]
    t = stats.t.ppf(0.975, n - 1)
    a = (2 * t * deviation / wish) ** 2
    assert n == np.ceil(a / (1 + a / 200))
    assert found["judgements"] == round(n * len(people.unknown) / 200)
    assert found["hours"] == pytest.approx((found["judgements"] * 25 + n * 45) / 3600)


def test_the_number_is_the_fewest(people):
    proxy = free_proxy(people)
    for row in units_for(people, proxy, {"rr": 0.1, "p@3": 0.05}).to_dicts():
        sizes = (row["count"] - 1, row["count"])
        near = plan(people, proxy, row["metric"], queries=sizes, candidates=sizes).filter(unit=row["unit"])
        below, own = near["width"].to_list()
        assert own == row["width"] <= row["wish"] < below


def test_no_number_of_prefixes_is_enough_for_a_tiny_width(people):
    """Values of prefixes are estimated, even where all queries are drawn; whole queries have none left."""
    found = units_for(people, free_proxy(people), {"rr": 1e-6}).rows_by_key("unit", named=True)
    (cut,), (whole,) = found["prefixes"], found["queries"]
    assert (cut["count"], cut["judgements"], cut["hours"]) == (None, None, None)
    assert cut["width"] > 0.01
    assert whole["count"] == 200


@pytest.fixture(scope="module")
def pools():
    """A pool of each design whose first units are judged, the judgements of all, and how many are first."""
    run, before, truth = world(0, queries=300)
    people = population(run, 5, before)
    proxy = free_proxy(people)
    true = np.maximum(people.labelled(truth), 0)
    found = {}
    for unit, first in ((Unit.QUERIES, 40), (Unit.PREFIXES, 60), (Unit.CANDIDATES, 150)):
        drawing = draw(people, Asked(unit, first), seed=1, proxy=proxy)
        found[unit] = DrawnPool(people, drawing, proxy, before, 5), true, first
    return found


def judged(pool, true):
    """All that a pool asks about, judged by the truth."""
    asked = np.flatnonzero(pool.drawing.candidates(pool.people, pool.people.label, pool.drawing.order()[0]))
    return pool.people.pairs(asked).with_columns(relevance=pl.Series(true[asked].astype(np.int64)))


@pytest.mark.parametrize(
    ("unit", "metric"), [(Unit.QUERIES, "ap"), (Unit.PREFIXES, "rr"), (Unit.CANDIDATES, "p")], ids=str
)
def test_a_pilot_foresees_the_width(pools, unit, metric):
    pool, true, first = pools[unit]
    found = estimate(pool, judged(pool, true), [metric])
    table = after_pilot(pool, found)
    own = (found.metrics["ci_high"] - found.metrics["ci_low"]).median()
    assert table.row(0, named=True)["width"] == pytest.approx(own)
    assert table["width"].is_sorted(descending=True)
    last = table.filter(pl.col("count") == {Unit.CANDIDATES: 400}.get(unit, 100)).row(0, named=True)
    assert last["more"] == last["count"] - first
    longer = pool.more(last["more"])
    real = estimate(longer, judged(longer, true), [metric]).metrics
    assert last["width"] == pytest.approx((real["ci_high"] - real["ci_low"]).median(), rel=0.3)
    # The wish for this width takes as many units.
    wish = after_pilot(pool, found, {metric: last["width"] * (1 + 1e-9)}).row(0, named=True)
    assert (wish["count"], wish["more"]) == (last["count"], last["more"])


def test_after_a_pilot_no_number_may_be_enough(pools):
    pool, true, _ = pools[Unit.PREFIXES]
    found = after_pilot(pool, estimate(pool, judged(pool, true), ["rr"]), {"rr": 1e-6}).row(0, named=True)
    assert (found["count"], found["more"], found["judgements"]) == (None, None, None)
    assert found["width"] > 0.01


def test_what_cannot_be_planned(pools, people):
    pool, true, _ = pools[Unit.QUERIES]
    found = estimate(pool, judged(pool, true), ["ap"])
    for widths, message in (
        ({"ap": 0.0}, "`width` must be"),
        ({"xy": 0.1}, "`metric` must be one of"),
        ({"rr": 0.1}, "`width` must name metrics that are estimated, got RR@5"),
        ({"ap": 0.1, "map": 0.2}, "`width` must name each metric once, got AP@5 twice"),
        ({}, "`width` must name at least one metric"),
    ):
        with pytest.raises(ValueError, match=message):
            after_pilot(pool, found, widths)
    few = found._replace(judged=19)
    with pytest.raises(ValueError, match=r"`judged` must cover at least 20 drawn queries .* got 19"):
        after_pilot(pool, few)
    with pytest.raises(ValueError, match="`judged` must leave something to judge: all 300 queries are"):
        after_pilot(pool, found._replace(judged=300))
    below = pool._replace(drawing=pool.drawing._replace(unit=Unit.BELOW))
    with pytest.raises(ValueError, match="`plan` must be left out if answers below the pool are drawn"):
        after_pilot(below, found)
