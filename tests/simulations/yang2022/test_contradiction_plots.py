"""The close-up of a contradiction and the shares of pairs: what is drawn, and which files are written."""

import jax
import numpy as np
import polars as pl
import pytest
from matplotlib.patches import Ellipse, Rectangle

from owkg.plots.figure import figure
from simulations.open_world.curves import Curves
from simulations.yang2022.claims import claims
from simulations.yang2022.contradiction_plots import (
    _ellipse,
    contradicted,
    contradiction_figure,
    draw_by_density,
    draw_by_metric,
    draw_contradiction,
    share_figures,
)
from simulations.yang2022.inconsistency import largest_contradiction


def planted(*, models=("rotate", "complex"), metric="mrr", sign=1, density=0.75):
    """Checkpoints 3, 4 and 5 of the second configuration are better than 2 of the first; 3, 4 read worse."""
    rng = np.random.default_rng(0)
    full = np.array([0.1, 0.2, 0.4, 0.45, 0.5, 0.6])
    sparse = np.array([0.1, 0.2, 0.4, 0.3, 0.25, 0.45])
    noise = 0.02 * rng.normal(size=(3, 6, 50))
    means = {"full": full, "sparse": sparse, "correlated": sparse - 0.05}
    values = {
        name: (sign * each[:, None] + extra)[None].astype(np.float32)
        for (name, each), extra in zip(means.items(), noise, strict=True)
    }
    return Curves(
        density,
        (metric,),
        ("one", "two"),
        models,
        np.array([0, 0, 0, 1, 1, 1], np.int32),
        np.arange(6, dtype=np.int64),
        values,
    )


@pytest.mark.parametrize(("metric", "sign"), [("mrr", 1), ("mr", -1)])
def test_the_contradicted_are_better_and_read_worse(metric, sign):
    curves = planted(metric=metric, sign=sign)
    found = largest_contradiction(curves, metric, "sparse")
    assert (found.better, found.worse) == (4, 2)
    assert contradicted(curves, metric, "sparse", found).tolist() == [3, 4]


@pytest.mark.parametrize("models", [("rotate", "complex"), ("rotate", "rotate")])
def test_both_checkpoints_have_a_region_and_the_better_one_lies_in_the_quadrant(models):
    curves = planted(models=models)
    found = largest_contradiction(curves, "mrr", "sparse")
    with figure(1, 1, (5, 4)) as (fig, panel):
        draw_contradiction(curves, panel, metric="mrr", test_set="sparse", found=found)
        fig.draw_without_rendering()
    mean = np.stack([curves.values[name][0].mean(axis=1, dtype=float) for name in ("full", "sparse")])
    points = {line.get_label(): line for line in panel.lines if not line.get_label().startswith("_")}
    for label, at in (("one", 2), ("two", 4)):
        np.testing.assert_allclose(points[label].get_xydata(), mean[:, [at]].T)
    assert points["one"].get_color() != points["two"].get_color()
    regions = [patch for patch in panel.patches if isinstance(patch, Ellipse)]
    (quadrant,) = (patch for patch in panel.patches if isinstance(patch, Rectangle))
    for region, at in zip(regions, (2, 4), strict=True):
        np.testing.assert_allclose(region.center, mean[:, at])
    assert quadrant.get_bbox().contains(*mean[:, 4])
    assert quadrant.get_xy()[0] == mean[0, 2]
    assert quadrant.get_y() + quadrant.get_height() == pytest.approx(mean[1, 2])
    assert panel.get_title(loc="left").startswith("two is better than one by ")
    assert f"worse by {found.z_sparse:.1f} on the sparse test" in panel.get_title(loc="left")


def test_a_region_holds_95_percent_of_resampled_means():
    rng = np.random.default_rng(3)
    values = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 2]], 400).T
    width, height, angle = _ellipse(values)
    means = values[:, rng.integers(0, 400, (4000, 400))].mean(axis=2) - values.mean(axis=1, keepdims=True)
    turn = np.radians(angle)
    along = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]) @ means
    inside = ((2 * along / np.array([[width], [height]])) ** 2).sum(axis=0) <= 1
    assert 0.93 < inside.mean() < 0.97


def test_smaller_is_better_turns_the_quadrant():
    curves = planted(metric="mr", sign=-1)
    found = largest_contradiction(curves, "mr", "sparse")
    with figure(1, 1, (5, 4)) as (_, panel):
        draw_contradiction(curves, panel, metric="mr", test_set="sparse", found=found)
    better = [curves.values[name][0, 4].mean(dtype=float) for name in ("full", "sparse")]
    (quadrant,) = (patch for patch in panel.patches if isinstance(patch, Rectangle))
    assert quadrant.get_bbox().contains(*better)


def test_the_close_up_is_written_where_there_is_one(tmp_path):
    paths = contradiction_figure(planted(), tmp_path / "new" / "figure4")
    assert [path.name for path in paths] == ["figure4.png", "figure4.svg", "figure4.pdf"]
    assert sorted((tmp_path / "new").iterdir()) == sorted(paths)
    assert max(path.stat().st_size for path in paths) < 300_000
    agreeing = planted()
    agreeing.values["sparse"][:] = agreeing.values["full"]
    assert contradiction_figure(agreeing, tmp_path / "none") == []
    assert len(list(tmp_path.iterdir())) == 1


# --- shares


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    made = []
    for density in (0.65, 0.95):
        config = np.repeat(range(3), 8).astype(np.int32)
        strength = np.tile(np.linspace(0.1, 0.6, 8), 3)[:, None]
        values = {
            name: (strength * slope + 0.1 * rng.normal(size=(2, 24, 30))).astype(np.float32)
            for name, slope in (("full", 1), ("correlated", 0.05), ("sparse", 0.2))
        }
        step = np.tile(np.arange(8), 3).astype(np.int64)
        made.append(
            Curves(density, ("mrr", "hits@1"), ("a", "b", "c"), ("x", "y", "z"), config, step, values)
        )
    return claims(jax.random.key(0), made, replicates=30)


def pooled(table, **where):
    rows = table.filter([pl.col(name) == value for name, value in where.items()])
    return rows.filter(pl.col("minus").is_null() & (pl.col("configuration") == "all")).row(0, named=True)


def test_shares_by_density(table):
    with figure(1, 1, (5, 4)) as (fig, panel):
        draw_by_density(table, panel, metric="mrr", share="contradicting")
        fig.draw_without_rendering()
    assert [tick.get_text() for tick in panel.get_xticklabels()] == ["0.95", "0.65"]
    assert [bar.get_label() for bar in panel.containers] == ["independent", "correlated"]
    for bar, test_set in zip(panel.containers, ("sparse", "correlated"), strict=True):
        points, _, (intervals,) = bar
        for i, density in enumerate((0.95, 0.65)):
            row = pooled(table, claim="contradicting", metric="mrr", density=density, test_set=test_set)
            assert points.get_ydata()[i] == row["value"]
            np.testing.assert_allclose(intervals.get_segments()[i][:, 1], [row["lower"], row["upper"]])
            assert round(points.get_xdata()[i]) == i


def test_shares_by_metric(table):
    with figure(1, 1, (5, 4)) as (fig, panel):
        draw_by_metric(table, panel, density=0.65, share="contradicting")
        fig.draw_without_rendering()
    names = [tick.get_text() for tick in panel.get_yticklabels()]
    assert set(names) == {"mrr", "hits@1"}
    values = {}
    bars = [bar for bar in panel.containers if hasattr(bar, "patches")]
    for bar, test_set in zip(bars, ("sparse", "correlated"), strict=True):
        values[test_set] = [patch.get_width() for patch in bar.patches]
        for patch in bar.patches:
            name = names[round(patch.get_y() + patch.get_height() / 2)]
            row = pooled(table, claim="contradicting", metric=name, density=0.65, test_set=test_set)
            assert patch.get_width() == row["value"]
    assert len(values["sparse"]) == 2
    assert bars[0].patches[0].get_facecolor()[:3] != bars[1].patches[0].get_facecolor()[:3]
    by_height = sorted(bars[0].patches, key=lambda patch: patch.get_y())
    shown = [patch.get_width() for patch in by_height]
    assert shown == sorted(shown)


def test_share_figures_are_two_files_each(table, tmp_path, capsys):
    paths = share_figures(table, tmp_path / "new", shares=["inconsistent", "of_distinct"])
    assert [path.name for path in paths] == [
        f"{share}_by_{what}.{end}"
        for share in ("inconsistent", "of_distinct")
        for what in ("density", "metric")
        for end in ("png", "svg", "pdf")
    ]
    assert sorted((tmp_path / "new").iterdir()) == sorted(paths)
    assert capsys.readouterr() == ("", "")


def test_shares_without_a_number_are_left_blank(table, tmp_path):
    blank = table.with_columns(
        [
            pl.when(pl.col("metric") == "hits@1").then(None).otherwise(pl.col(end)).alias(end)
            for end in ("value", "lower", "upper")
        ]
    )
    with figure(1, 1, (5, 4)) as (fig, panel):
        draw_by_metric(blank, panel, density=0.95)
        fig.draw_without_rendering()
    bars = [bar for bar in panel.containers if hasattr(bar, "patches")]
    assert [len(bar.patches) for bar in bars] == [1, 1]
    assert [tick.get_text() for tick in panel.get_yticklabels()] == ["hits@1", "mrr"]
    with figure(1, 1, (5, 4)) as (fig, panel):
        draw_by_density(blank, panel, metric="hits@1")
        fig.draw_without_rendering()
    assert all(len(bar[0].get_xdata()) == 0 for bar in panel.containers)


def test_unknown_names(table, tmp_path):
    for message, options in (
        ("`metric` must be one of mrr, hits@1, got 'mr'", {"metric": "mr"}),
        (r"`density` must be one of 0.65, 0.95, got 0.5", {"density": 0.5}),
        ("`share` must be one of inconsistent, of_distinct", {"shares": ["slope_low"]}),
    ):
        with pytest.raises(ValueError, match=message):
            share_figures(table, tmp_path, **options)
