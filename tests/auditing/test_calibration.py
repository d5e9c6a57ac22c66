"""The table of model errors: whole and sane; coverage on the published worlds, which it was not made from."""

import numpy as np
import polars as pl
import pytest
from scipy import special

from owkg.auditing import calibration
from owkg.auditing.calibration import calibrated, difference_error, full_error, order_probability

METRICS = ("mrr", "hits@1", "hits@10", "p-mrr@1/2")


def test_table():
    table = pl.read_csv(calibration.TABLE, glob=False)
    assert tuple(table["metric"].unique(maintain_order=True)) == METRICS
    for name in METRICS:
        own = table.filter(metric=name)
        assert (own["sparsity"].diff().drop_nulls() > 0).all()
        assert (own["error"].diff().drop_nulls() >= 0).all()
        narrow, wide, chance = own.select("narrow_share", "wide_share", "narrow_chance").unique().row(0)
        assert 0 < narrow < wide
        assert 0 < chance < 1
    assert len(calibration.worlds()) == len(pl.read_csv(calibration.WORLDS, glob=False)) > 4


@pytest.mark.parametrize("metric", METRICS)
def test_errors(metric):
    assert full_error(metric, 0.0, 0.5) == 0
    assert full_error(metric, 0.6, 0.5) > full_error(metric, 0.3, 0.5) > full_error(metric, 0.3, 0.9) > 0
    assert full_error(metric, 0.3, 0.2) == pytest.approx(full_error(metric, 0.3, 0.8))
    both = np.hypot(full_error(metric, 0.4, 0.3), full_error(metric, 0.4, 0.6))
    assert difference_error(metric, 0.4, 0.3, 0.6) == pytest.approx(both)
    assert order_probability(metric, 0.0, 0.1, 0.1) == pytest.approx(0.5)
    sure = [order_probability(metric, 0.2, 0.1, model) for model in (0.0, 0.05, 0.1)]
    assert sure[0] == pytest.approx(special.ndtr(2.0))
    assert sure[0] > sure[1] > sure[2] > 0.5
    assert sure[2] + order_probability(metric, -0.2, 0.1, 0.1) == pytest.approx(1)
    assert full_error(metric, np.array([[0.1], [0.2]]), np.array([0.3, 0.4, 0.5])).shape == (2, 3)


@pytest.mark.parametrize("metric", METRICS)
def test_orders_err_as_the_table_says(metric):
    """Against drawn errors: of the queries, and of the model by one of two shares."""
    row = pl.read_csv(calibration.TABLE, glob=False).filter(metric=metric).row(0, named=True)
    rng = np.random.default_rng(0)
    share = np.where(rng.uniform(size=10**6) < row["narrow_chance"], row["narrow_share"], row["wide_share"])
    truth = 0.05 + 0.03 * rng.normal(size=10**6) + 0.1 * share * rng.normal(size=10**6)
    assert order_probability(metric, 0.05, 0.03, 0.1) == pytest.approx((truth > 0).mean(), abs=0.002)
    few = 0.05 + 0.03 * rng.standard_t(4, size=10**6)
    assert order_probability(metric, 0.05, 0.03, 0.0, 4) == pytest.approx((few > 0).mean(), abs=0.002)
    for freedom, near in ((1, 0.07), (4, 0.017), (10, 0.006)):  # both: the docstring says how near
        both = 0.05 + 0.02 * rng.standard_t(freedom, size=10**6) + 0.1 * share * rng.normal(size=10**6)
        said = order_probability(metric, 0.05, 0.02, 0.1, freedom)
        assert -0.005 < said - (both > 0).mean() < near


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
    from simulations.closed_world_audit import LEAST, coverage, published, reliability

    rows = published().filter(pl.col("full") > LEAST)
    assert rows["density"].n_unique() == 4
    (held,) = coverage(rows, ())["held"]
    assert held > 0.88
    said = reliability(rows)
    off = (said["said"] - said["right"]).abs().max()
    assert 0.09 < off < 0.095  # docs/audit.md says so
