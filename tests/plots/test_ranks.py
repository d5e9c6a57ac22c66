"""The figures of rank tables: what is drawn, which files are written, and bad input."""

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg.metrics import Ties, evaluate, probe, tasks
from owkg.plots.figure import blank_panels, figure, panel_grid
from owkg.plots.histogram import binned_ranks, draw_histograms, rank_edges
from owkg.plots.probe import ROBUSTNESS, SHARPNESS, draw_lines, draw_order, draw_surfaces, probe_surface
from owkg.plots.ranks import rank_figures


def rank_table(ranks, *, model=None, popularity=None, candidates=60, ties=0):
    """Tail tasks, each a query of its own."""
    count = len(ranks)
    table = pl.DataFrame(
        {
            "head": [f"h{i}" for i in range(count)],
            "relation": "r",
            "tail": "t",
            "side": "tail",
            "optimistic": ranks,
            "pessimistic": np.minimum(np.asarray(ranks) + ties, candidates),
            "candidates": candidates,
        }
    )
    if model is not None:
        table = table.with_columns(model=pl.lit(model))
    if popularity is not None:
        table = table.with_columns(popularity=pl.Series(popularity))
    return table


GOOD, BAD = [1, 1, 2, 3, 9], [40, 2, 1, 60, 22]
POPULAR = [50, 0, 3, 1, 9]


# --- histogram


@given(st.integers(1, 10**6))
def test_edges_hold_every_rank(candidates):
    edges = rank_edges(candidates)
    assert edges[0] == 1
    assert edges[-1] > candidates >= edges[-2]
    assert (np.diff(edges) > 0).all()
    if candidates > 24:
        assert (edges[1:] == 2 * edges[:-1]).all()


@given(
    st.lists(
        st.tuples(st.integers(1, 90), st.integers(0, 30), st.integers(0, 200), st.floats(0.1, 9)),
        min_size=1,
        max_size=30,
    )
)
def test_shares_are_those_of_counting(rows):
    low, tied, more, weight = (np.array(column) for column in zip(*rows, strict=True))
    ranks = tasks(low, low + tied, low + tied + more, weight=weight)
    edges = rank_edges(int(ranks.candidates.max()))
    found = binned_ranks(ranks, edges)
    for rank, shares in (
        (low, found.optimistic),
        (low + tied, found.pessimistic),
        (low + tied / 2, found.realistic),
    ):
        counted = np.histogram(rank, edges, weights=weight)[0] / weight.sum()
        np.testing.assert_allclose(shares, counted, atol=1e-12)
    by_chance = [np.histogram(np.arange(1, n + 1), edges)[0] / n for n in ranks.candidates]
    np.testing.assert_allclose(found.random, np.average(by_chance, axis=0, weights=weight), atol=1e-12)
    assert found.tied == np.mean(tied > 0)


def drawn(models):
    with figure(1, len(models), (4, 3), squeeze=False) as (fig, axes):
        draw_histograms(models, axes)
        fig.draw_without_rendering()
    return axes


def steps(panel):
    return {patch.get_label(): patch.get_data().values for patch in panel.patches}


def test_panels_show_the_histogram_and_chance():
    ranks = tasks(GOOD, candidates=60)
    panel = drawn({"good": ranks})[0, 0]
    found = binned_ranks(ranks, rank_edges(60))
    shown = steps(panel)
    assert set(shown) == {"realistic ranks", "by chance"}
    np.testing.assert_array_equal(shown["realistic ranks"], found.realistic)
    np.testing.assert_array_equal(shown["by chance"], found.random)
    assert panel.get_title() == "good"
    assert panel.get_ylabel() == "share of the tasks"


def test_the_ends_of_ties_are_shown_above_one_percent():
    few = tasks(np.ones(200, int), np.r_[2, 2, np.ones(198, int)], 60)
    many = tasks(np.ones(200, int), np.r_[2, 2, 2, np.ones(197, int)], 60)
    axes = drawn({"few": few, "many": many})
    assert set(steps(axes[0, 0])) == {"realistic ranks", "by chance"}
    assert set(steps(axes[0, 1])) == {"realistic ranks", "by chance", "optimistic", "pessimistic"}
    assert axes[0, 0].get_legend() is None
    assert len(axes[0, 1].get_legend().get_texts()) == 4  # the panel that has all lines
    assert [panel.get_title() for panel in axes.flat] == ["few (1% tied)", "many (2% tied)"]


def test_weights_are_named():
    panel = drawn({"weighted": tasks([1, 9], candidates=60, weight=[1.0, 3.0])})[0, 0]
    assert panel.get_ylabel() == "share of the weight"


# --- PROBE


def test_the_surface_is_probe():
    ranks = tasks(BAD, candidates=60, popularity=POPULAR)
    surface = probe_surface(ranks)
    assert surface.shape == (2, len(ROBUSTNESS), len(SHARPNESS))
    for b, a in ((0, 0), (5, 8), (10, 16)):
        one = probe(SHARPNESS[a], ROBUSTNESS[b])
        found = evaluate(ranks, [one], level=None)[Ties.REALISTIC][one.name]
        assert surface[:, b, a].tolist() == [found.value, found.expectation]


def test_the_surface_by_hand():
    ranks = tasks([1, 4], [1, 6], 16, popularity=[8, 0])  # 1 and, realistic, 5
    (surface,) = probe_surface(ranks, [1.0], [0.5])[:1]
    assert surface.item() == pytest.approx((1 / 3 + (1 / 5 - 1 / 16) / (1 - 1 / 16)) / (1 / 3 + 1))


SHAPE = (len(ROBUSTNESS), len(SHARPNESS))
A = np.log2(np.broadcast_to(SHARPNESS, SHAPE))
B = np.broadcast_to(np.array(ROBUSTNESS)[:, None], SHAPE)


def order_of(surfaces):
    with figure(1, 1, (6, 4)) as (fig, panel):
        draw_order(surfaces, panel)
        fig.draw_without_rendering()
    colours = panel.collections[0].get_array()
    return panel, colours[..., :3]


def test_the_map_has_the_colour_of_who_leads_and_pales_where_the_lead_is_small():
    # The first leads where sharpness is above 1, by as much as its logarithm.
    panel, colours = order_of({"sharp": 0.5 + A / 10, "flat": np.full(SHAPE, 0.5)})
    blue, orange = np.array(mpl.colors.to_rgb("#0072B2")), np.array(mpl.colors.to_rgb("#D55E00"))
    right, left = colours[:, -1], colours[:, 0]
    assert np.abs(right - (1 - 0.72 * (1 - blue))).max() < 1e-6
    assert np.abs(left - (1 - 0.72 * (1 - orange))).max() < 1e-6
    darkness = (1 - colours).sum(axis=2)[0]
    middle = len(darkness) // 2
    assert (np.diff(darkness[middle:]) > 0).all()
    texts = [text.get_text() for text in panel.get_legend().get_texts()]
    assert texts == ["sharp ahead", "flat ahead"]
    border = panel.collections[2].get_paths()[0].vertices  # after the map and the first model's border
    np.testing.assert_allclose(border[:, 0], 1.0, rtol=1e-6)


def test_who_leads_everywhere_is_said_so_and_others_are_not_in_the_legend():
    panel, _ = order_of({"low": np.full(SHAPE, 0.2), "high": 0.5 + A / 100, "middle": 0.3 + B / 100})
    assert [text.get_text() for text in panel.get_legend().get_texts()] == ["high ahead everywhere"]


def test_equal_models_are_drawn_without_a_lead():
    _, colours = order_of({"one": np.full(SHAPE, 0.5), "two": np.full(SHAPE, 0.5)})
    assert (colours == 1).all()


def test_more_models_than_colours():
    bumps = {f"m{i}": -((A - i + 4) ** 2) / 100 for i in range(9)}
    panel, _ = order_of(bumps)
    handles = panel.get_legend().legend_handles
    assert len({tuple(handle.get_facecolor()) for handle in handles}) == len(handles) == 9


def test_contours_carry_round_numbers_and_a_flat_surface_has_none():
    surfaces = {"flat": np.full(SHAPE, 0.5), "steep": 0.3 + A / 20}
    with figure(1, 2, (8, 4), squeeze=False) as (fig, axes):
        draw_surfaces(surfaces, axes, fig)
        fig.draw_without_rendering()
    flat, steep = axes.flat
    assert not flat.texts
    numbers = sorted(float(text.get_text()) for text in steep.texts)
    assert numbers == pytest.approx([0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45])
    assert flat.collections[0].get_clim() == steep.collections[0].get_clim() == (0, 0.5)


def test_lines_are_told_apart():
    models = {f"m{i}": np.tile([[0.5], [0.1]], (1, len(SHARPNESS))) for i in range(9)}
    with figure(1, 1, (6, 4)) as (_, panel):
        draw_lines(models, panel)
    drawn = {(line.get_color(), line.get_linestyle()) for line in panel.lines if line.get_label()[0] == "m"}
    assert len(drawn) == 9


# --- panels and files


@given(st.integers(1, 40))
def test_the_grid_has_room_for_all_and_no_empty_row(count):
    rows, columns = panel_grid(count)
    assert (rows - 1) * columns < count <= rows * columns


def test_unused_panels_go():
    with figure(2, 3, (4, 3)) as (fig, axes):
        blank_panels(axes, 4)
        assert len(fig.axes) == 4


def files(*stems):
    return [f"{stem}{suffix}" for stem in stems for suffix in (".png", ".svg", ".pdf")]


def test_one_model_without_popularity(tmp_path, capsys):
    paths = rank_figures([rank_table(GOOD)], tmp_path / "new" / "folder")
    assert [path.name for path in paths] == files("rank_histogram", "probe_sharpness")
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == sorted(
        path.name for path in paths
    )
    assert all(path.stat().st_size > 5000 for path in paths)
    assert capsys.readouterr() == ("", "")


def test_one_model_with_popularity_has_no_order(tmp_path):
    paths = rank_figures([rank_table(GOOD, popularity=POPULAR)], tmp_path)
    assert [path.name for path in paths] == files("rank_histogram", "probe_surface")


@pytest.mark.parametrize("split", [True, False], ids=["two tables", "one table"])
def test_several_models(tmp_path, split):
    good = rank_table(GOOD, model="good", popularity=POPULAR)
    bad = rank_table(BAD, model="bad", popularity=POPULAR, ties=3)
    tables = [good, bad] if split else [pl.concat([good, bad])]
    paths = rank_figures(tables, tmp_path)
    assert [path.name for path in paths] == files("rank_histogram", "probe_surface", "probe_order")


def test_one_table_without_popularity_makes_lines_of_all(tmp_path):
    tables = [rank_table(GOOD, model="good", popularity=POPULAR), rank_table(BAD, model="bad")]
    assert [path.name for path in rank_figures(tables, tmp_path)] == files(
        "rank_histogram", "probe_sharpness"
    )


@pytest.mark.parametrize("ranks", [[1, 1, 1], [60, 60]], ids=["perfect", "worst"])
def test_scorers_without_any_spread(tmp_path, ranks):
    rank_figures([rank_table(ranks, popularity=[3] * len(ranks))], tmp_path)


def test_a_task_with_one_candidate(tmp_path):
    rank_figures([rank_table([1], candidates=1, popularity=[0])], tmp_path)


def test_no_tables_and_models_of_one_name(tmp_path):
    with pytest.raises(ValueError, match=r"`tables` must have at least one"):
        rank_figures([], tmp_path)
    table = rank_table(GOOD, model="m")
    with pytest.raises(ValueError, match=r"different models, got 'm' twice"):
        rank_figures([table, table], tmp_path)


def test_a_bad_place_is_found_before_anything_is_computed(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        rank_figures([pl.DataFrame()], tmp_path / "file" / "out")


def test_relations_are_left_out_beside_entities(tmp_path):
    entities = rank_table([1, 4, 9])
    relations = rank_table([1, 1]).with_columns(side=pl.lit("relation"))
    for name, tables in (("alone", [entities]), ("beside", [pl.concat([entities, relations])])):
        rank_figures(tables, tmp_path / name)
    alone, beside = ((tmp_path / name / "rank_histogram.png").read_bytes() for name in ("alone", "beside"))
    assert alone == beside
    rank_figures([relations], tmp_path / "relations")
    assert (tmp_path / "relations" / "rank_histogram.png").read_bytes() != alone
