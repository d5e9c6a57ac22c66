"""Figures of rankings under other judgements: what is drawn, where legends stand, what is refused."""

from functools import partial

import numpy as np
import polars as pl
import pytest
from scipy import stats

from owkg.judge.stability import Stability
from owkg.plots import judging
from owkg.plots.judging import asl_figure, depth_figure, qrels_figure, ranking_figure, stability_figure

SYSTEMS = [f"system {i}" for i in range(13)]


@pytest.fixture
def drawn(monkeypatch):
    """The figures that were to be written."""
    kept = []
    monkeypatch.setattr(judging, "save_figure", lambda fig, stem: kept.append(fig) or [])
    return kept


def lines(panel):
    return {line.get_label(): line for line in panel.lines if not line.get_label().startswith("_")}


def by_depth(*, panels=("one",), metrics=("mrr", "hits@10")):
    rng = np.random.default_rng(0)
    rows = [
        (panel, metric, depth, tau, tau - 0.1, tau + 0.1)
        for panel in panels
        for metric in metrics
        for depth, tau in zip((5, 0, 2), rng.uniform(-0.4, 0.9, 3), strict=True)
    ]
    return pl.DataFrame(rows, ["panel", "metric", "depth", "tau", "lower", "upper"], orient="row")


def test_lines_run_by_depth_and_bands_lie_around_them(drawn, tmp_path):
    table = by_depth(panels=("against 0", "against 10"))
    depth_figure(table, tmp_path / "f")
    fig = drawn[0]
    assert [panel.get_title() for panel in fig.axes] == ["against 0", "against 10"]
    for panel in fig.axes:
        assert set(lines(panel)) == {"mrr", "hits@10"}
        for band, (metric, line) in zip(panel.collections, lines(panel).items(), strict=True):
            rows = table.filter(panel=panel.get_title(), metric=metric).sort("depth")
            np.testing.assert_array_equal(line.get_xdata(), [0, 2, 5])
            np.testing.assert_array_equal(line.get_ydata(), rows["tau"])
            vertices = band.get_paths()[0].vertices
            assert {vertices[:, 1].min(), vertices[:, 1].max()} == {rows["lower"].min(), rows["upper"].max()}
    depth_figure(table.drop("lower", "upper"), tmp_path / "f")
    assert not any(panel.collections for panel in drawn[1].axes)


def test_a_null_is_a_gap_and_a_line_marks_zero_where_it_is_crossed(drawn, tmp_path):
    table = by_depth(metrics=("mrr",)).drop("panel", "lower", "upper")
    gap = table.with_columns(tau=pl.when(pl.col("depth") != 2).then(pl.lit(0.5)))
    depth_figure(gap, tmp_path / "f")
    (panel,) = drawn[0].axes
    np.testing.assert_array_equal(lines(panel)["mrr"].get_ydata(), [0.5, np.nan, 0.5])
    assert len(panel.lines) == 1
    depth_figure(table.with_columns(tau=pl.Series([-0.2, 1.0, 0.3])), tmp_path / "f")
    assert len(drawn[1].axes[0].lines) == 2


def stable(count=2, **changed):
    """Agreement of `count` metrics at two shares; the first metric ties all systems at the larger share."""
    mean = np.linspace(0.2, 0.9, 2 * count).reshape(count, 2)
    mean[0, 1] = np.nan
    names = tuple(f"metric {i}" for i in range(count))
    quantiles = np.stack([mean, mean + 0.05, mean - 0.1])
    sizes = np.array([0.9, 0.1])
    found = Stability(names, sizes, np.array([9, 1]), mean[..., None], mean, mean, quantiles, (0.5, 0.9, 0.1))
    return found._replace(**changed)


def test_stability_is_drawn_by_share_with_a_band_between_the_outer_quantiles():
    found = stable()
    (panel,) = stability_figure(found).axes
    for row, line in enumerate(lines(panel).values()):
        np.testing.assert_array_equal(line.get_xdata(), [0.1, 0.9])
        np.testing.assert_array_equal(line.get_ydata(), found.mean[row, ::-1])
    heights = panel.collections[1].get_paths()[0].vertices[:, 1]
    np.testing.assert_allclose([heights.min(), heights.max()], found.mean[1] + [-0.1, 0.05])
    assert panel.get_title(loc="left") == "mean, and 10 to 90 % quantiles"
    assert (panel.get_xlabel(), panel.get_ylabel()) == (
        "share of the queries",
        "Kendall's tau with all queries",
    )


def test_stability_of_chosen_or_of_many_metrics():
    (panel,) = stable(3, unit="triple", coefficient="spearman").plot(["metric 2", "metric 1"]).axes
    assert list(lines(panel)) == ["metric 2", "metric 1"]
    assert panel.get_ylabel() == "Spearman's rho with all triples"
    (panel,) = stable(12).plot().axes
    assert len(lines(panel)) == 12
    assert not panel.collections
    with pytest.raises(ValueError, match="`metrics` must be of metric 0, metric 1, got mrr"):
        stable().plot("mrr")


def test_the_curve_of_p_values_falls_over_its_area(drawn, tmp_path):
    p = {"mrr": [0.01, 0.7, 0.04, 0.05], "mr": [0.9, 0.2, 0.3, 0.001]}
    table = pl.DataFrame(
        [(m, value) for m, of in p.items() for value in of], ["metric", "p_value"], orient="row"
    )
    asl_figure(table, tmp_path / "f")
    curves = lines(drawn[0].axes[0])
    # The more telling metric first.
    assert list(curves) == ["mrr: area 0.200, 50% below 0.05", "mr: area 0.350, 25% below 0.05"]
    for name, curve in zip(("mrr", "mr"), curves.values(), strict=True):
        np.testing.assert_array_equal(curve.get_ydata()[:-1], sorted(p[name], reverse=True))
        np.testing.assert_array_equal(curve.get_xdata(), range(5))
        assert curve.get_drawstyle() == "steps-post"
    asl_figure(table, tmp_path / "f", alpha=0.25)
    assert "mr: area 0.350, 50% below 0.25" in lines(drawn[1].axes[0])


def ranked():
    rng = np.random.default_rng(1)
    rows = [(name, system, rng.uniform()) for name in ("sparse", "pooled", "full") for system in SYSTEMS]
    return pl.DataFrame(rows, ["qrels", "system", "value"], orient="row")


def test_ranks_are_those_of_scipy_and_systems_are_named_at_both_ends(drawn, tmp_path):
    # The order within a qrels says nothing.
    table = pl.concat(
        [part.sample(fraction=1, shuffle=True, seed=3) for part in ranked().partition_by("qrels")]
    )
    ranking_figure(table, tmp_path / "f")
    (panel,) = drawn[0].axes
    assert [label.get_text() for label in panel.get_xticklabels()] == ["sparse", "pooled", "full"]
    by_set = {name: part.sort("system") for (name,), part in table.group_by("qrels")}
    wanted = np.array([stats.rankdata(-by_set[name]["value"]) for name in ("sparse", "pooled", "full")]).T
    found = [line.get_ydata() for line in panel.lines]
    assert sorted(map(tuple, found)) == sorted(map(tuple, wanted))
    ends = {(text.get_text(), *text.xy) for text in panel.texts}
    names = sorted(SYSTEMS)
    assert ends == {(names[i], at, wanted[i, at]) for i in range(13) for at in (0, 2)}
    assert panel.get_ylim() == (13.5, 0.5)  # the best on top


def test_tied_systems_share_their_rank_and_are_named_together(drawn, tmp_path):
    rows = [("a", 0.3, 0.1), ("b", 0.3, 0.2), ("c", 0.1, 0.3)]
    table = pl.DataFrame(rows, ["system", "sparse", "full"], orient="row")
    ranking_figure(table.unpivot(index="system", variable_name="qrels"), tmp_path / "f")
    (panel,) = drawn[0].axes
    assert [line.get_ydata().tolist() for line in panel.lines] == [[1.5, 3], [1.5, 2], [3, 1]]
    assert {(text.get_text(), text.xy) for text in panel.texts} >= {("a, b", (0, 1.5)), ("c", (0, 3.0))}


def query_values():
    rng = np.random.default_rng(2)
    first = rng.uniform(0.3, 0.4, 13)
    table = pl.DataFrame(
        {"panel": "mrr", "system": SYSTEMS, "first": first, "second": first + rng.normal(0, 0.02, 13)}
    )
    return pl.concat([table, table.with_columns(panel=pl.lit("mr"), second=pl.col("second") * 100)])


def test_a_point_a_system_and_tau_of_the_rankings(drawn, tmp_path):
    table = query_values()
    qrels_figure(table, tmp_path / "f", xlabel="old", ylabel="new")
    for panel in drawn[0].axes:
        rows = table.filter(panel=panel.get_title().split(":")[0])
        points = lines(panel)
        assert points["equal"].get_slope() == 1
        assert panel.get_xlim() == panel.get_ylim()
        assert panel.get_xlim()[0] == 0
        found = {name: (*points[name].get_xdata(), *points[name].get_ydata()) for name in SYSTEMS}
        assert found == {name: (x, y) for name, x, y in rows.select("system", "first", "second").rows()}
        tau = stats.kendalltau(rows["first"], rows["second"]).statistic
        assert panel.get_title().endswith(f": tau {tau:.3f}")
        assert (panel.get_xlabel(), panel.get_ylabel()) == ("old", "new")
        looks = {(points[name].get_color(), points[name].get_marker()) for name in SYSTEMS}
        assert len(looks) == 13
    qrels_figure(table.filter(panel="mr").drop("panel").with_columns(first=0.5), tmp_path / "f")
    assert drawn[1].axes[0].get_title() == "no tau: all tied"


def test_intervals_on_equal_axes(drawn, tmp_path):
    table = pl.DataFrame(
        {
            "system": ["a", "b"],
            "full": [0.2, 0.3],
            "full_lower": [0.1, None],
            "full_upper": [0.4, None],
            "sparse": [0.1, 0.05],
            "sparse_lower": [0.05, 0.01],
            "sparse_upper": [0.15, 0.1],
        }
    )
    (panel,) = judging.sparse_against_full(table).axes
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("complete test", "incomplete test")
    assert panel.get_title() == "tau -1.000"
    ends = [segment.tolist() for bars in panel.collections for segment in bars.get_segments()]
    expected = [[[0.1, 0.1], [0.4, 0.1]], [[0.2, 0.05], [0.2, 0.15]], [[0.3, 0.01], [0.3, 0.1]]]
    np.testing.assert_allclose(ends, expected)
    assert panel.get_xlim() == panel.get_ylim()
    for wrong, message in ((table.drop("full"), "no full"), (table.drop("full_lower"), "no first_lower")):
        with pytest.raises(ValueError, match=message):
            judging.sparse_against_full(wrong)


def test_all_panels_share_one_scale(drawn, tmp_path):
    depth_figure(by_depth(panels=("one", "two")), tmp_path / "f")
    first, second = drawn[0].axes
    assert first.get_ylim() == second.get_ylim()
    assert first.get_ylim()[0] < -0.1


def test_many_panels_stand_in_two_rows(tmp_path):
    table = pl.concat(DEPTHS.with_columns(panel=pl.lit(str(i))) for i in range(5))
    png = depth_figure(table, tmp_path / "f")[0].read_bytes()
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    assert (width, height) == (round((3 * 2.5 + 1.5) * 160), round(2 * 2.4 * 160))


@pytest.mark.parametrize(("draw", "table"), [(depth_figure, by_depth()), (qrels_figure, query_values())])
def test_legends_stand_beside_the_panels(draw, table, drawn, tmp_path):
    draw(table, tmp_path / "f")
    fig = drawn[0]
    fig.draw_without_rendering()
    (legend,) = fig.legends
    box = legend.get_window_extent()
    assert not any(box.overlaps(panel.get_window_extent()) for panel in fig.axes)
    assert box.x1 <= fig.bbox.x1


def test_twenty_eight_lines_look_different():
    looks = judging._looks(pl.Series(map(str, range(28))), markers=True)
    assert len({(look["color"], look["ls"]) for look in looks.values()}) == 28
    assert len({(look["color"], look["marker"]) for look in looks.values()}) == 28


def test_files_are_written(tmp_path):
    paths = ranking_figure(ranked(), tmp_path / "new" / "ranks")
    assert paths == [tmp_path / "new" / f"ranks{suffix}" for suffix in (".png", ".svg", ".pdf")]
    assert all(path.stat().st_size > 2000 for path in paths)


DEPTHS, RANKED, P = by_depth(), ranked(), pl.DataFrame({"metric": "mrr", "p_value": [0.1, 0.2]})


@pytest.mark.parametrize(
    ("draw", "table", "message"),
    [
        (depth_figure, [1], "`table` must be a polars frame with rows, got .1."),
        (depth_figure, DEPTHS[:0], "`table` must be a polars frame with rows"),
        (depth_figure, DEPTHS.drop("tau"), "there is no tau"),
        (depth_figure, DEPTHS.drop("lower"), "there is no lower"),
        (depth_figure, DEPTHS.with_columns(tau=1.5), "`tau` must be in .-1, 1., got 1.5"),
        (depth_figure, DEPTHS.with_columns(tau=np.nan), "`tau` must be in .-1, 1., got nan"),
        (depth_figure, DEPTHS.with_columns(depth=None), "a depth in every row, got null"),
        (depth_figure, DEPTHS.with_columns(metric=None), "a metric in every row, got null"),
        (depth_figure, DEPTHS.with_columns(tau=pl.lit("x")), "numbers in the column tau, got String"),
        (depth_figure, DEPTHS.with_columns(depth=1), "one row for each panel, metric, depth"),
        (asl_figure, P.with_columns(p_value=1.1), "`p_value` must be in .0, 1., got 1.1"),
        (asl_figure, P.with_columns(p_value=None), "a p_value in every row, got null"),
        (partial(asl_figure, alpha=0), P, "`alpha` must be in .0, 1., got 0"),
        (ranking_figure, RANKED[1:], "each of 13 systems once in sparse, got 12 rows"),
        (ranking_figure, RANKED.with_columns(value=np.inf), "`value` must be finite, got inf"),
        (qrels_figure, pl.concat([query_values()] * 2), "13 systems once in mrr, got 26 rows"),
    ],
)
def test_tables_that_cannot_be_drawn_are_refused(draw, table, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        draw(table, tmp_path / "f")
    assert list(tmp_path.iterdir()) == []
