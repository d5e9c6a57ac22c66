"""The table of model errors: whole and sane; coverage on the published worlds, which it was not made from."""

import re
from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy import special

from owkg.auditing import calibration
from owkg.auditing.calibration import calibrated, difference_error, full_error, order_probability
from owkg.auditing.implied import Answers, missing_answers

METRICS = ("mrr", "hits@1", "hits@10", "p-mrr@1/2")


def test_table():
    table = pl.read_csv(calibration.TABLE, glob=False)
    assert tuple(table["metric"].unique(maintain_order=True)) == METRICS
    for name in METRICS:
        own = table.filter(metric=name)
        assert (own["share"].diff().drop_nulls() > 0).all()
        assert (own["mixture_weight"] >= 0).all()
        assert own["mixture_weight"].sum() == pytest.approx(1)
        ((error, power),) = own.select("error", "power").unique().rows()
        # Of one missing answer, and less than in proportion to their number.
        assert 0 < error < 0.1
        assert 0.5 < power < 1
    worlds, told = pl.read_csv(calibration.WORLDS, glob=False), calibration.worlds()
    assert len(told) == worlds["group"].n_unique() >= 4
    assert sum(int(re.findall(r": (\d+) closed worlds", one)[0]) for one in told) == len(worlds)
    assert all(model in " ".join(told) for models in worlds["models"] for model in models.split(", "))


@pytest.mark.parametrize("metric", METRICS)
def test_errors(metric):
    assert full_error(metric, 0.0, 0.5) == 0
    assert full_error(metric, 6.0, 0.5) > full_error(metric, 3.0, 0.5) > full_error(metric, 3.0, 0.9) > 0
    assert full_error(metric, 3.0, 0.2) == pytest.approx(full_error(metric, 3.0, 0.8))
    both = np.hypot(full_error(metric, 0.4, 0.3), full_error(metric, 0.4, 0.6))
    assert difference_error(metric, 0.4, 0.3, 0.6) == pytest.approx(both)
    assert order_probability(metric, 0.0, 0.1, 0.1) == pytest.approx(0.5)
    sure = [order_probability(metric, 0.2, 0.1, model) for model in (0.0, 0.05, 0.1)]
    assert sure[0] == pytest.approx(special.ndtr(2.0))
    assert sure[0] > sure[1] > sure[2] > 0.5
    assert sure[2] + order_probability(metric, -0.2, 0.1, 0.1) == pytest.approx(1)
    assert full_error(metric, np.array([[0.1], [0.2]]), np.array([0.3, 0.4, 0.5])).shape == (2, 3)


def test_errors_are_of_the_table_that_is_given():
    law = {"metric": "mrr", "error": 0.02, "power": 0.5, "most_missing": 10.0}
    table = pl.DataFrame(law | {"share": [0.1, 1.0], "mixture_weight": [0.25, 0.75]})
    assert full_error("mrr", 9.0, 0.5, table) == pytest.approx(0.06)
    assert full_error("mrr", 1.0, 0.1, table) == pytest.approx(0.02 * 2 * 0.3)
    assert difference_error("mrr", 4.0, 0.5, 0.5, table) == pytest.approx(0.04 * np.sqrt(2))
    said = order_probability("mrr", 0.1, 0.0, 0.2, table=table)
    assert said == pytest.approx(0.25 * special.ndtr(5) + 0.75 * special.ndtr(0.5))


def test_missing_answers_of_a_query():
    answers = Answers(np.array([1, 4]), np.array([0.75, 0.25]), 100)
    assert missing_answers(answers, 0.0) == 0
    # Negative binomial with s + 1 successes; by drawing.
    rng = np.random.default_rng(0)
    drawn = [rng.negative_binomial(known + 1, 0.4, 10**6).mean() for known in (1, 4)]
    assert missing_answers(answers, 0.6) == pytest.approx(np.dot([0.75, 0.25], drawn), rel=0.005)
    np.testing.assert_allclose(missing_answers(answers, np.array([[0.5], [0.75]])), [[2.75], [8.25]])


@pytest.mark.parametrize("metric", METRICS)
def test_orders_err_as_the_table_says(metric):
    """Against drawn errors: of the queries, and of the model as the table says."""
    table = pl.read_csv(calibration.TABLE, glob=False).filter(metric=metric)
    rng = np.random.default_rng(0)
    model = rng.choice(table["share"].to_numpy(), 10**6, p=table["mixture_weight"].to_numpy()) * rng.normal(
        size=10**6
    )
    for first in (0.02, 0.05):
        alone = (first + 0.1 * model > 0).mean()
        assert order_probability(metric, first, 0.0, 0.1) == pytest.approx(alone, abs=0.002)
        few = (first + 0.03 * rng.standard_t(4, size=10**6) > 0).mean()
        assert order_probability(metric, first, 0.03, 0.0, 4) == pytest.approx(few, abs=0.002)
    # Both, as large as each other and not: the docstring says how near.
    spread = model.std()
    for freedom, near in ((1, 0.06), (4, 0.015), (1000, 0.002)):
        drawn = rng.standard_t(freedom, size=10**6)
        for first, times in product((0.5, 1, 2, 3), (0.25, 0.5, 1, 2)):
            truth = (first + drawn + times / spread * model > 0).mean()
            said = order_probability(metric, first, 1.0, times / spread, freedom)
            assert -0.003 < said - truth < near


@pytest.mark.parametrize(
    ("metric", "of"),
    [
        ("mrr", "mrr"),
        ("hits@1", "hits@1"),
        ("hits@3", "hits@1"),
        ("hits@10", "hits@10"),
        ("hits@50", "hits@10"),
        ("p-mrr@1/2", "p-mrr@1/2"),
        ("p-mrr@0.25", "p-mrr@1/2"),
        ("p-mrr@3/4", "mrr"),
        ("p-mrr@2", "hits@1"),
        ("log-mrr", "hits@1"),
    ],
)
def test_metrics_that_were_not_calibrated(metric, of):
    assert calibrated(metric) == of


@pytest.mark.usefixtures("owkg_data")
def test_published_worlds():
    from simulations.closed_world_audit.errors import LEAST
    from simulations.closed_world_audit.judgement import coverage, intervals, ordered, reliability
    from simulations.closed_world_audit.points import published

    rows = published().filter(pl.col("full") > LEAST)
    assert rows["density"].n_unique() == 4
    (held,) = coverage(intervals(rows), ("metric",))["held"]
    assert held > 0.88
    said = reliability(ordered(rows))
    assert ((said["said"] - said["right"]).abs() < 0.08).all()
