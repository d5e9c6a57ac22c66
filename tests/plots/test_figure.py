"""Figures are written with equal bytes."""

import time

import pytest

from family_tree.figure import draw_family
from owkg.plots.figure import figure, save_figure


def _drawn(path, monkeypatch, seconds):
    """A picture with text, lines and points, written when the clock says `seconds`."""
    monkeypatch.setattr(time, "time", lambda: seconds)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(seconds)))  # what matplotlib asks first
    with figure(1, 1, (3, 2)) as (fig, axes):
        axes.plot([1, 2, 4], label="a line")
        axes.scatter([1, 2], [3, 4], clip_on=True)
        axes.set_title("some text of a figure")
        axes.legend()
        save_figure(fig, path)
    return path.read_bytes()


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_equal_figures_are_equal_to_the_byte(tmp_path, monkeypatch, suffix):
    first = _drawn(tmp_path / f"a{suffix}", monkeypatch, 1e9)
    assert _drawn(tmp_path / f"b{suffix}", monkeypatch, 2e9) == first


def test_all_files_of_a_figure(tmp_path):
    for name in ("a.1", "b.1"):
        with figure(1, 1, (3, 2)) as (fig, axes):
            axes.plot([1, 2])
            paths = save_figure(fig, tmp_path / name)
        assert paths == [tmp_path / f"{name}{suffix}" for suffix in (".png", ".svg", ".pdf")]
    starts = [path.read_bytes()[:5] for path in paths]
    assert starts == [b"\x89PNG\r", b"<?xml", b"%PDF-"]


@pytest.mark.parametrize("suffix", [".svg", ".pdf"])
def test_bytes_do_not_depend_on_who_saves(tmp_path, suffix):
    """A figure that was returned is saved outside of the style that it was drawn in."""
    paths = [tmp_path / f"{name}{suffix}" for name in "ab"]
    for inside, path in zip((True, False), paths, strict=True):
        with figure(1, 1, (3, 2)) as (fig, axes):
            axes.plot([1, 2], label="a line")
            axes.scatter([1, 2], [3, 4])
            if inside:
                save_figure(fig, path)
        if not inside:
            save_figure(fig, str(path))
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_notebooks_show_a_figure(monkeypatch):
    from IPython.core.formatters import PNGFormatter

    with figure(1, 1, (3, 2)) as (fig, _):
        pass
    picture = PNGFormatter()(fig)
    assert picture.startswith(b"\x89PNG")


def test_a_family_is_drawn_with_equal_bytes(tmp_path, monkeypatch):
    import family_tree

    people = family_tree.sample_people(num_trees=1, max_tree_size=12, seed=0)
    found = []
    for seconds in (1e9, 2e9):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(seconds)))
        draw_family(people, tmp_path / "tree.svg", title="a family")
        found.append((tmp_path / "tree.svg").read_bytes())
    assert found[0] == found[1]
