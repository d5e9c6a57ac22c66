"""The figure of values: what each panel shows, of which tables, and what is refused."""

import numpy as np
import polars as pl
import pytest

from owkg import plots
from owkg.metrics.front import evaluate


def ranks(seed, count=60):
    rng = np.random.default_rng(seed)
    best = rng.integers(1, 40, count)
    return pl.DataFrame(
        {
            "head": [f"h{i}" for i in range(count)],
            "relation": "r",
            "tail": [f"t{i}" for i in range(count)],
            "side": ["head", "tail"] * (count // 2),
            "optimistic": best,
            "pessimistic": best,
            "candidates": 50,
        }
    )


def drawn(panel):
    return {line.get_label(): line for line in panel.lines}


def names(fig):
    return [label.get_text() for label in fig.axes[0].get_yticklabels()]


def test_a_panel_a_metric_and_a_row_a_model():
    table = evaluate({"a": ranks(0), "b": ranks(1)}, ["mrr", "hits@10"])
    fig = plots.values(table)
    assert [panel.get_title() for panel in fig.axes] == ["mrr", "hits@10"]
    assert names(fig) == ["a", "b"]
    for panel in fig.axes:
        own = table.filter(metric=panel.get_title())
        np.testing.assert_array_equal(drawn(panel)["value"].get_xdata(), own["value"])
        np.testing.assert_array_equal(drawn(panel)["value"].get_ydata(), [0, 1])
        np.testing.assert_array_equal(drawn(panel)["chance level"].get_xdata(), own["expectation"])
        (intervals,) = panel.collections
        ends = np.array([segment[:, 0] for segment in intervals.get_segments()])
        np.testing.assert_array_equal(ends, own.select("ci_low", "ci_high").to_numpy())
        assert panel.get_xlim()[0] == 0
        assert panel.get_ylim()[0] > panel.get_ylim()[1]  # the first model on top


def test_chosen_metrics_stand_in_their_order():
    table = evaluate({"a": ranks(0)}, ["mrr", "hits@10", "amri"])
    fig = plots.values(table, metrics=["amri", "mrr"])
    assert [panel.get_title() for panel in fig.axes] == ["amri", "mrr"]
    assert names(fig) == ["a"]


def test_rows_are_named_by_what_differs():
    by_side = evaluate({"a": ranks(0), "b": ranks(1)}, "mrr", by="side")
    assert names(plots.values(by_side)) == ["a, head", "a, tail", "b, head", "b, tail"]
    assert names(plots.values(evaluate(ranks(0), "mrr", by="side"))) == ["head", "tail"]
    assert names(plots.values(evaluate(ranks(0), "mrr"))) == [""]


def test_values_of_a_comparison_have_no_chance_level():
    table = pl.DataFrame(
        {
            "qrels": ["full", "full", "sparse", "sparse"],
            "metric": "mrr",
            "system": ["x", "y"] * 2,
            "value": [0.3, None, 0.2, 0.1],
            "lower": [0.2, None, -0.1, None],
            "upper": [0.4, None, 0.3, None],
        }
    )
    fig = plots.values(table)
    assert names(fig) == ["x, full", "x, sparse", "y, sparse"]
    (panel,) = fig.axes
    assert set(drawn(panel)) == {"value"}
    assert panel.get_xlim()[0] < -0.1


TABLE = pl.DataFrame({"model": ["a", "b"], "metric": "mrr", "value": [0.1, 0.2]})


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ([1], {}, "`table` must be a polars frame, got list"),
        (TABLE.drop("value"), {}, "there is no value"),
        (TABLE.with_columns(value=None), {}, "must have a value in some row"),
        (TABLE.with_columns(model=pl.lit("a")), {}, "one row for each metric and model, got two of 'a'"),
        (TABLE, {"metrics": "mr"}, "`metrics` must be of mrr, got mr"),
    ],
)
def test_tables_that_cannot_be_drawn_are_refused(table, options, message):
    with pytest.raises(ValueError, match=message):
        plots.values(table, **options)
