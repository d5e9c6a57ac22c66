"""The figure of estimates: values over differences, which pairs are drawn, bounds, and what is refused."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest

from owkg.estimation.estimate import Estimate
from owkg.estimation.made_looks import Looks


def estimate(systems=3, metrics=("mrr", "hits@10"), unpooled=()):
    """System i has the value 0.1 i, and 0.9 - 0.1 i by the second metric."""
    names = [f"m{i}" for i in range(systems)]
    value = {
        (name, metric): 0.9 * (m % 2) + 0.05 * i * (-1) ** (m % 2)
        for m, metric in enumerate(metrics)
        for i, name in enumerate(names)
    }
    rows = [(name, metric, v, v - 0.02, v + 0.03, 0.0, 1.0) for (name, metric), v in value.items()]
    rows += [(name, metric, None, None, None, 0.2, 0.7) for metric in metrics for name in unpooled]
    pairs = [
        (a, b, metric, v := value[a, metric] - value[b, metric], v - 0.01, v + 0.04)
        for metric in metrics
        for a, b in combinations(names, 2)
    ]
    ends = dict.fromkeys(("value", "ci_low", "ci_high"), pl.Float64)
    text = dict.fromkeys(("first", "second", "metric"), pl.String)
    found = pl.DataFrame(
        rows,
        {"model": pl.String, "metric": pl.String, **ends, "least": pl.Float64, "most": pl.Float64},
        orient="row",
    )
    differences = pl.DataFrame(pairs, text | ends, orient="row")
    return Estimate("", "", found, differences, None, 1, 0, Looks(), [])


def names(panel):
    shown = panel.yaxis.get_major_formatter()  # panels at the right show no labels of their own
    return [shown(at) for at in panel.get_yticks()]


def drawn(panel):
    """Value and interval of each row, by name."""
    (points,) = (line for line in panel.lines if line.get_label() == "value")
    (ends,) = (lines for lines in panel.collections if lines.get_label() == "interval")
    found = zip(points.get_xdata(), ends.get_segments(), points.get_ydata(), strict=True)
    return {names(panel)[int(at)]: (x, *segment[:, 0]) for x, segment, at in found}


def test_values_stand_over_differences_with_a_line_at_0():
    found = estimate()
    fig = found.plot()
    titles = [panel.get_title() for panel in fig.axes]
    assert titles == ["mrr", "hits@10", "mrr, differences", "hits@10, differences"]
    for panel, metric in zip(fig.axes, ["mrr", "hits@10"] * 2, strict=True):
        of_pairs = "differences" in panel.get_title()
        rows = found.differences if of_pairs else found.metrics
        for row in rows.filter(metric=metric).iter_rows(named=True):
            name = f"{row['first']} - {row['second']}" if of_pairs else row["model"]
            assert drawn(panel)[name] == (row["value"], row["ci_low"], row["ci_high"])
        assert any(list(line.get_xdata()) == [0, 0] for line in panel.lines) == of_pairs
        low, high = panel.get_xlim()
        assert low <= 0 < high


def test_many_pairs_are_those_of_the_best_system():
    (_, pairs) = estimate(12, ("mrr",)).plot().axes
    assert names(pairs) == [f"m11 - m{i}" for i in range(11)]
    assert drawn(pairs)["m11 - m3"] == pytest.approx((0.4, 0.36, 0.41))
    (_, pairs) = estimate(12, ("mrr",)).plot(against="m1").axes
    assert names(pairs) == ["m1 - m0", *(f"m1 - m{i}" for i in range(2, 12))]
    assert drawn(pairs)["m1 - m0"] == pytest.approx((0.05, 0.01, 0.06))
    assert drawn(pairs)["m1 - m2"] == pytest.approx((-0.05, -0.06, -0.01))
    (_, pairs) = estimate(6, ("mrr",)).plot().axes
    assert len(names(pairs)) == 15


def test_systems_without_an_interval_have_bounds_and_open_labels_have_no_value():
    found = estimate(2, ("mrr",), unpooled=["new"])
    (values, _) = found.plot().axes
    (bounds,) = (lines for lines in values.collections if lines.get_label() == "bounds, not pooled")
    np.testing.assert_array_equal(bounds.get_segments()[0], [[0.2, 2], [0.7, 2]])
    assert set(drawn(values)) == {"m0", "m1"}
    gaps = found._replace(
        metrics=found.metrics.with_columns(value=None), differences=found.differences.clear()
    )
    (values,) = gaps.plot().axes
    assert np.isnan([x for x, *_ in drawn(values).values()]).all()


def test_a_part_that_was_not_estimated_is_left_out():
    found = estimate(3, ("mrr", "ap", "hits@10", "p"))
    assert len(found.plot().axes) == 8
    assert [panel.get_title() for panel in found.plot(["p", "mrr", "ap"]).axes][:3] == ["p", "mrr", "ap"]
    (pairs,) = found._replace(metrics=found.metrics.clear()).plot("ap").axes
    assert pairs.get_title() == "ap, differences"
    (values,) = estimate(1, ("mrr",)).plot().axes
    assert names(values) == ["m0"]


@pytest.mark.parametrize(
    ("found", "options", "message"),
    [
        (estimate(), {"metrics": "mr"}, "`metrics` must be of mrr, hits@10, got mr"),
        (estimate(), {"against": "x"}, "`against` must be one of m0, m1, m2, got 'x'"),
        (estimate(1), {"against": "m0"}, "`against` must be left out without differences, got 'm0'"),
        (estimate(0), {}, "must have estimates of a metric, got none"),
    ],
)
def test_estimates_that_cannot_be_drawn_are_refused(found, options, message):
    with pytest.raises(ValueError, match=message):
        found.plot(**options)
