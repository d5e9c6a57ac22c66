"""The figures of sparse against full curves: what is drawn, which files are written, and bad input."""

import numpy as np
import pytest

from owkg.plots.figure import COLOURS, figure
from simulations.open_world.curves import Curves
from simulations.yang2022.curve_plots import (
    Layer,
    correlation_figure,
    density_figure,
    draw_curves,
    highlighted,
    looks,
    metric_figure,
    shown_name,
)

LABELS = ("RotatE 100", "RotatE 500", "ComplEx")


def study(density=0.75, *, checkpoints=5, metrics=("mrr", "p-mrr@1/4"), queries=8, seed=0):
    rng = np.random.default_rng(seed)
    config = np.repeat(range(3), checkpoints).astype(np.int32)
    shape = (len(metrics), len(config), queries)
    return Curves(
        density,
        metrics,
        LABELS,
        ("rotate", "rotate", "complex"),
        config,
        # Not in the order of training.
        np.tile(np.arange(checkpoints)[::-1], 3).astype(np.int64),
        {name: rng.random(shape, dtype=np.float32) for name in ("full", "sparse", "correlated")},
    )


def lines(panel):
    """The drawn lines by label; the diagonal apart."""
    found = {line.get_label(): line for line in panel.lines}
    return found, found.pop("sparse = full")


def drawn(curves, **options):
    with figure(1, 1, (4, 3)) as (fig, panel):
        draw_curves(curves, panel, looks([curves]), metric="mrr", **options)
        fig.draw_without_rendering()
    return panel


def sizes(paths):
    return [path.stat().st_size for path in paths]


# --- what is drawn


def test_a_line_a_configuration_along_its_training():
    curves = study()
    panel = drawn(curves)
    found, diagonal = lines(panel)
    assert tuple(found) == LABELS
    for i, label in enumerate(LABELS):
        own = np.flatnonzero(curves.config == i)[::-1]  # steps fall
        for data, name in ((found[label].get_xdata(), "full"), (found[label].get_ydata(), "sparse")):
            np.testing.assert_allclose(data, curves.values[name][0, own].mean(axis=1, dtype=float))
    assert diagonal.get_slope() == 1
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("MRR, full test", "MRR, sparse test")


def test_colours_are_of_models_and_styles_of_configurations():
    found, _ = lines(drawn(study()))
    look = [(found[label].get_color(), found[label].get_linestyle()) for label in LABELS]
    assert look == [(COLOURS[0], "-"), (COLOURS[0], "--"), (COLOURS[1], "-")]


def test_looks_are_the_same_in_every_panel():
    one = study()
    other = one._replace(labels=("ComplEx", "new", "RotatE 500"), models=("complex", "betae", "rotate"))
    both = looks([one, other])
    assert {label: both[label] for label in LABELS} == looks([one])
    assert both["new"].colour == COLOURS[2]
    with pytest.raises(ValueError, match="one model a label, got rotate and betae for RotatE 100"):
        looks([one, one._replace(models=("betae", "rotate", "complex"))])


def test_the_best_the_middle_and_the_worst_are_highlighted():
    curves = study()._replace(labels=("a", "b", "c", "d", "e"), models=("x",) * 3 + ("y", "z"))
    curves = curves._replace(config=np.repeat(range(5), 3).astype(np.int32), step=np.tile(np.arange(3), 5))
    # At the end of training; what was there before says nothing.
    curves.values["full"][0] = np.tile([0.99, 0.5, 0.0], 5)[:, None]
    curves.values["full"][0, 2::3] = np.array([0.2, 0.5, 0.3, 0.1, 0.4])[:, None]
    assert highlighted(curves, "mrr") == ("b", "c", "d")
    found = looks([curves], highlighted(curves, "mrr"))
    assert [label for label, look in found.items() if look.highlighted] == ["b", "c", "d"]
    assert len({(found[label].colour, found[label].style) for label in "bcd"}) == 3
    assert found["a"] == found["e"] != found["d"]
    with figure(1, 1, (4, 3)) as (_, panel):
        draw_curves(curves, panel, found, metric="mrr")
    assert list(dict.fromkeys(lines(panel)[0])) == ["b", "c", "d", "other models"]
    assert highlighted(study(), "mrr") == LABELS


def test_eighteen_configurations_look_different():
    models = ("betae",) * 5 + ("rotate",) * 5 + ("complex",) * 3 + ("protate",) * 5
    curves = study()._replace(labels=tuple(map(str, range(18))), models=models)
    found = looks([curves])
    assert len(set(found.values())) == 18
    assert len({look.colour for look in found.values()}) == 4


def test_layers_lie_behind():
    curves = study()
    sparse = curves.values["sparse"][0].mean(axis=1, dtype=float)
    layer = Layer(np.stack([sparse - 0.1, sparse + 0.2]), np.array([[0.1, 0.4], [0.2, 0.3]]))
    panel = drawn(curves, layer=layer)
    found, _ = lines(panel)
    np.testing.assert_array_equal(found["theory"].get_data(), layer.theory)
    assert len(panel.collections) == 3
    heights = [path.vertices[:, 1] for band in panel.collections for path in band.get_paths()]
    np.testing.assert_allclose(min(map(np.min, heights)), sparse.min() - 0.1)
    np.testing.assert_allclose(max(map(np.max, heights)), sparse.max() + 0.2)


def test_many_points_are_drawn_as_a_picture():
    few, many = (lines(drawn(study(checkpoints=n, queries=2)))[0] for n in (5, 1400))
    assert not few["ComplEx"].get_rasterized()
    assert many["ComplEx"].get_rasterized()


def test_names_are_those_of_the_paper():
    curves = study(metrics=("p-mrr@1/4", "log-mrr", "hits@10"))
    assert [shown_name(curves, m) for m in ("p-mrr@0.25", "log-mrr", "hits@10")] == [
        "p-MRR@1/4",
        "log-MRR",
        "Hits@10",
    ]


# --- figures and files


@pytest.fixture
def seen(monkeypatch):
    """The panels of every figure that is written: titles, labels of lines; and the legend."""
    from simulations.yang2022 import curve_plots as curves

    figures = []

    def spy(fig, stem):
        panels = {
            panel.get_title(): (panel.get_ylabel(), {line.get_label() for line in panel.lines})
            for panel in fig.axes
        }
        figures.append((panels, [text.get_text() for text in fig.legends[0].get_texts()]))
        return write(fig, stem)

    write = curves.save_figure
    monkeypatch.setattr(curves, "save_figure", spy)
    return figures


def test_a_panel_a_density_the_densest_first(tmp_path, seen, capsys):
    densities = (0.65, 0.95, 0.75)
    curves = [study(d, seed=i) for i, d in enumerate(densities)]
    paths = density_figure(curves, tmp_path / "new" / "figure3")
    assert paths == [tmp_path / "new" / f"figure3.{end}" for end in ("png", "svg", "pdf")]
    assert sorted((tmp_path / "new").iterdir()) == sorted(paths)
    ((panels, legend),) = seen
    assert list(panels) == ["density 0.95", "density 0.75", "density 0.65"]
    assert all(set(LABELS) < labels for _, labels in panels.values())
    assert legend == [*LABELS, "sparse = full"]
    assert min(sizes(paths)) > 5000
    assert capsys.readouterr() == ("", "")


def test_a_legend_explains_layers(tmp_path, seen):
    curves = [study(0.75), study(0.95, seed=1)]
    band = np.stack([np.zeros(15), np.ones(15)])
    density_figure(curves, tmp_path / "f", layers=[Layer(band), Layer(theory=np.ones((2, 3)))])
    ((_, legend),) = seen
    assert legend == [*LABELS, "theory", "sparse = full", "95 % of resampled test sets"]


def test_test_sets_side_by_side(tmp_path, seen):
    correlation_figure(study(), tmp_path / "figure5a")
    ((panels, _),) = seen
    assert list(panels) == ["independently missing facts", "missing facts correlated with a model"]


def test_a_panel_a_metric(tmp_path, seen):
    curves = study(metrics=("mrr", "log-mrr", "p-mrr@1/4", "hits@10"))
    metric_figure(curves, tmp_path / "all")
    metric_figure(curves, tmp_path / "two", metrics=["p-mrr@0.25", "mrr"], test_set="correlated")
    (every, _), (two, _) = seen
    assert list(every) == ["MRR", "log-MRR", "p-MRR@1/4", "Hits@10"]
    assert {title: label for title, (label, _) in two.items()} == {
        "p-MRR@1/4": "correlated test",
        "MRR": "",  # the axis of the panel to its left
    }


def test_four_metrics_are_drawn_on_equal_axes(tmp_path, monkeypatch):
    from simulations.yang2022 import curve_plots

    figures = []
    monkeypatch.setattr(curve_plots, "_written", lambda fig, _: figures.append(fig) or [])
    shown = ("mrr", "hits@10", "p-mrr@1/4", "probe@0")
    curves = study(metrics=("log-mrr", *shown))
    metric_figure(curves, tmp_path / "f")
    assert [panel.get_title() for panel in figures[0].axes] == ["MRR", "Hits@10", "p-MRR@1/4", "PROBE@0"]
    assert {(panel.get_xlim(), panel.get_ylim()) for panel in figures[0].axes} == {((0, 1), (0, 1))}
    curves.values["full"][1] *= 40
    metric_figure(curves, tmp_path / "f")
    assert figures[1].axes[0].get_xlim()[1] > 1


def test_large_pictures_are_written_anew_with_fewer_dots(tmp_path, monkeypatch):
    from simulations.yang2022 import curve_plots as curves

    whole = sizes(metric_figure(study(), tmp_path / "whole"))
    most = int(0.7 * whole[0])
    monkeypatch.setattr(curves, "_MOST_BYTES", most)
    smaller = sizes(metric_figure(study(), tmp_path / "smaller"))
    assert smaller[0] <= most
    assert smaller[1] > 0.9 * whole[1]
    monkeypatch.setattr(curves, "_MOST_BYTES", 1)
    least = sizes(metric_figure(study(), tmp_path / "least"))
    assert 1 < least[0] < smaller[0]


# --- bad input


def test_unknown_names_and_wrong_layers_write_nothing(tmp_path):
    curves, stem = study(), tmp_path / "f"
    for message, call in (
        (
            "`metric` must be one of mrr, p-mrr@1/4, got 'mr'",
            lambda: density_figure([curves], stem, metric="mr"),
        ),
        (
            "`test_set` must be one of sparse, correlated, got 'full'",
            lambda: density_figure([curves], stem, test_set="full"),
        ),
        ("`curves` must have at least one entry", lambda: density_figure([], stem)),
        ("`metrics` must have at least one entry", lambda: metric_figure(curves, stem, metrics=[])),
        ("got 'other'", lambda: correlation_figure(curves, stem, test_sets=["sparse", "other"])),
        (
            "`layers` must be one for each of 1 `curves`, got 2",
            lambda: density_figure([curves], stem, layers=[Layer(), Layer()]),
        ),
        (
            r"`layers` must have bands of the shape \(2, 15\).*got \(2, 3\)",
            lambda: density_figure([curves], stem, layers=[Layer(np.zeros((2, 3)))]),
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert not list(tmp_path.iterdir())
