"""The figure of a benchmark card shows every query and every relation."""

import numpy as np
import pytest

from owkg.kg import KnowledgeGraph
from owkg.plots.sampling import draw_card
from owkg.sampling import describe, sample


@pytest.mark.parametrize("density", [0.7, 1])
def test_the_card_is_drawn(density, tmp_path, monkeypatch):
    facts = np.array([[h, (h + t) % 3, t] for h in range(40) for t in range(40)], np.int32)
    graph = KnowledgeGraph(tuple(map(str, range(40))), ("r", "s", "t"), {"facts": facts})
    world = sample(graph, density=density, train_rate=0.5, min_answers=5, num_queries=30, seed=0)
    figures = []
    monkeypatch.setattr("owkg.plots.sampling.save_figure", lambda fig, path: figures.append((fig, path)))
    card = describe(world)
    draw_card(world, card, tmp_path / "card.png")
    ((drawn, path),) = figures
    assert path == tmp_path / "card.png"
    left, right = drawn.axes
    dots, line = left.lines
    assert np.abs(dots.get_xdata() - world.queries.full).max() < 0.5
    assert np.abs(dots.get_ydata() - world.queries.sparse).max() < 0.5
    np.testing.assert_allclose(line.get_ydata(), card["alpha"]["expected"] * line.get_xdata())
    alphas = [row["alpha"] for row in card["relations"].values()]
    assert right.lines[1].get_ydata().tolist() == alphas


def test_the_file_is_a_picture(tmp_path):
    facts = np.array([[h, 0, t] for h in range(20) for t in range(20)], np.int32)
    graph = KnowledgeGraph(tuple(map(str, range(20))), ("r",), {"facts": facts})
    world = sample(graph, density=0.7, train_rate=0.5, min_answers=1, num_queries=3, seed=0)
    draw_card(world, describe(world), tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
