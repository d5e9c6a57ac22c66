"""Figures of tests of a precision: their course, nested sets and relations, as the results say them."""

import numpy as np
import polars as pl
import pytest

import owkg
from owkg.estimation.acceptance import boundary, lower_limits, one_set
from tests.pools.test_accepting import GRAPH, labelled, run_of

RUN = run_of(queries=80)


def accepted(right, **options):
    """Test whose first predictions are judged; `right` says which are right."""
    options = {"precision": 0.8, "size": 200} | options
    start = owkg.accept(RUN, GRAPH, **options)
    return owkg.accept(RUN, GRAPH, labelled(start.following.head(len(right)), right), **options)


def lines(panel):
    return {line.get_label(): line for line in panel.lines}


def test_the_course_of_a_test_by_number_of_judgements():
    right = [1, 1, 0, 1, 1, 1, 1, 0, 1, 1] * 5
    found = accepted(right)
    left, limit = found.plot().axes
    wrong = lines(left)["wrong predictions"]
    assert wrong.get_ydata().tolist() == [0, *np.cumsum(1 - np.array(right))]
    assert wrong.get_xdata().tolist() == list(range(51))
    lower = lines(limit)["95 % lower limit"].get_ydata()
    assert lower[-1] == pytest.approx(found.lower)
    assert lines(limit)["wanted precision 0.8"].get_ydata()[0] == 0.8
    assert lines(limit)["share of right ones"].get_ydata()[-1] == 0.8
    assert left.figure.get_suptitle() == "Open: the best 200 predictions; 10 of 50 judged are wrong"


def test_the_area_of_acceptance_is_entered_where_the_limit_reaches_the_precision():
    found = accepted([1] * 30)
    left, limit = found.plot().axes
    lower = lines(limit)["95 % lower limit"].get_ydata()
    (area,) = left.collections
    first = area.get_paths()[0].vertices[:, 0].min()
    assert first == 1 + np.argmax(boundary(200, 0.8) >= 0) == np.argmax(lower >= 0.8)
    assert "refused" not in lines(left)


def test_a_refused_set_crosses_its_line_and_a_test_that_begins_shows_the_way():
    left, _ = accepted([0] * 41 + [1] * 9).plot().axes
    assert lines(left)["refused"].get_ydata()[0] == 41
    left, _ = accepted([], precision=0.95).plot().axes
    first = left.collections[0].get_paths()[0].vertices[:, 0].min()
    assert 0 < first < left.get_xlim()[1]
    assert left.figure.get_suptitle().endswith("none is judged yet")


def test_lower_limits_are_those_of_every_look():
    labels = np.random.default_rng(0).integers(0, 4, 60).clip(0, 1)
    found = lower_limits(100, np.cumsum(labels == 0), 20.0)
    for judged in (1, 2, 7, 30, 59, 60):
        said = np.full(100, -1)
        said[:judged] = labels[:judged]
        assert found[judged - 1] == pytest.approx(one_set(said, np.arange(100), precision=0.5).lower)


def test_nested_sets_by_size():
    found = accepted([1] * 35 + [0] * 2 + [1] * 43, drawn=80)
    (panel,) = found.plot().axes
    points = lines(panel)["judged ones"]
    assert points.get_xdata().tolist() == list(range(20, 201, 20))
    assert points.get_ydata()[-1] == 78 / 80
    head = found.candidates.head(60).drop_nulls("label")["label"]
    assert points.get_ydata()[2] == pytest.approx(head.mean())
    (area,) = panel.patches
    assert area.get_width() == found.candidates.rows().index(found.accepted.row(-1)) + 1
    (panel,) = accepted([1] * 5, drawn=80).plot().axes
    assert not panel.patches


def test_relations_with_their_states_and_limits():
    found = accepted([1] * 90, by="relation")
    (panel,) = found.plot().axes
    assert [label.get_text() for label in panel.get_yticklabels()] == found.by["relation"].to_list()
    ends = [lines.get_segments()[0][:, 0].tolist() for lines in panel.collections]
    assert ends == [[lower, 1.0] for lower in found.by["lower"]]
    shown = {text.get_text() for text in panel.texts}
    assert shown == {
        f"{row['judged']} of {row['candidates']} judged" for row in found.by.iter_rows(named=True)
    }
    rows = pl.concat([found.by.with_columns(relation=pl.lit(f"r{i}")) for i in range(30)])
    fig = found._replace(by=rows).plot()
    assert len(fig.axes[0].get_yticklabels()) == 40
    assert "60 relations, the 40 with most predictions" in fig.get_suptitle()
