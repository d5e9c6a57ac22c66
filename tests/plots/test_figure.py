"""Figures are written with equal bytes."""

import time

import pytest

from family_tree.figure import draw_family
from owkg.plots.figure import figure, write_figure, write_picture


def _drawn(path, monkeypatch, seconds):
    """A picture with text, lines and points, written when the clock says `seconds`."""
    monkeypatch.setattr(time, "time", lambda: seconds)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(seconds)))  # what matplotlib asks first
    with figure(1, 1, (3, 2)) as (fig, axes):
        axes.plot([1, 2, 4], label="a line")
        axes.scatter([1, 2], [3, 4], clip_on=True)
        axes.set_title("some text of a figure")
        axes.legend()
        write_picture(fig, path)
    return path.read_bytes()


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_equal_figures_are_equal_to_the_byte(tmp_path, monkeypatch, suffix):
    first = _drawn(tmp_path / f"a{suffix}", monkeypatch, 1e9)
    assert _drawn(tmp_path / f"b{suffix}", monkeypatch, 2e9) == first


def test_both_files_of_a_figure(tmp_path):
    for name in ("a", "b"):
        with figure(1, 1, (3, 2)) as (fig, axes):
            axes.plot([1, 2])
            paths = write_figure(fig, tmp_path / name)
        assert [path.name for path in paths] == [f"{name}.png", f"{name}.pdf"]
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()


def test_a_family_is_drawn_with_equal_bytes(tmp_path, monkeypatch):
    import family_tree

    people = family_tree.sample_people(num_trees=1, max_tree_size=12, seed=0)
    found = []
    for seconds in (1e9, 2e9):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(seconds)))
        draw_family(people, tmp_path / "tree.svg", title="a family")
        found.append((tmp_path / "tree.svg").read_bytes())
    assert found[0] == found[1]
