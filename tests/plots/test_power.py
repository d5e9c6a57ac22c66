"""The figure of focus shows the frontier, and every metric that some number of queries suffices for."""

import pytest

from owkg.plots.power import focus_figure


def row(focus, queries, **more):
    return more | {"focus": focus, "required_queries": queries, "required_queries_paired": queries}


def test_the_frontier_is_a_line_and_metrics_are_points(tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr("owkg.plots.power.save_figure", lambda fig, path: figures.append((fig, path)))
    metrics = [row(0.1, 500, metric="mrr"), row(1.0, None, metric="hits@1"), row(0.01, 90, metric="mr")]
    focus_figure(metrics, [row(1.0, None), row(0.5, 400), row(0.05, 20)], tmp_path / "a.png")
    ((drawn, path),) = figures
    assert path == tmp_path / "a.png"
    (panel,) = drawn.axes
    line, points = panel.lines[:2]
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([0.5, 0.05], [400, 20])
    assert (list(points.get_xdata()), list(points.get_ydata())) == ([0.1, 0.01], [500, 90])
    assert [text.get_text() for text in panel.texts] == ["mrr", "mr"]
    assert len(panel.lines) == 4


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_equal_figures_are_equal_to_the_byte(tmp_path, suffix):
    paths = [tmp_path / f"{name}{suffix}" for name in "ab"]
    for path in paths:
        focus_figure([row(0.1, 500, metric="mrr")], [row(0.5, 400), row(0.05, 20)], path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
