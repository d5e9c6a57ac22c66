"""Figure of a benchmark card: answers of the queries, and what went missing in each relation."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from owkg.plots.figure import COLOURS, figure, save_figure
from owkg.sampling import OpenWorld

if TYPE_CHECKING:
    import matplotlib.axes

# Half width of the band around the expected alpha, in standard deviations.
_WIDTH = 2


def draw_card(world: OpenWorld, card: dict[str, Any], path: Path) -> None:
    """Draws the two panels of a benchmark card into `path`, a PNG, SVG or PDF file.

    - The answers of each query in the full test against its answers in the sparse test, with the line of
      slope alpha. Dots are spread within their integers, so that equal queries are visible.
    - The realised alpha of each relation against its full-test facts, with the band of two standard
      deviations in which independent facts would lie.
    """
    with figure(1, 2, (7.6, 3.1)) as (fig, (left, right)):
        _draw_answers(world, card, left)
        _draw_relations(card, right)
        fig.suptitle(f"density {world.design.density:g}, {card['parameters']['missing']['model']} model")
        save_figure(fig, path)


def _draw_answers(world: OpenWorld, card: dict[str, Any], panel: "matplotlib.axes.Axes") -> None:
    full, sparse = world.queries.full, world.queries.sparse
    spread = np.random.default_rng(0).uniform(-0.3, 0.3, (2, len(full)))
    dots = {"ms": 5, "mew": 0, "alpha": 0.4, "color": COLOURS[0], "label": "a query"}
    panel.plot(full + spread[0], sparse + spread[1], ".", **dots)
    ends = np.array([full.min() - 0.5, full.max() + 0.5])
    expected = card["alpha"]["expected"]
    panel.plot(ends, expected * ends, color=COLOURS[1], lw=1.2, label=f"alpha = {expected:.3f}")
    panel.set_xlabel("answers in the full test")
    panel.set_ylabel("answers in the sparse test")
    panel.set_title(f"{len(full):,} queries")
    panel.legend(loc="upper left")


def _draw_relations(card: dict[str, Any], panel: "matplotlib.axes.Axes") -> None:
    rows = [row for row in card["relations"].values() if row["alpha"] is not None]
    full = np.array([row["test_sparse"] + row["missing"] for row in rows])
    sizes = np.geomspace(full.min() / 1.3, full.max() * 1.3, 200)
    expected = card["alpha"]["expected"]
    deviation = np.sqrt(expected * (1 - expected) / sizes)
    low, high = np.clip([expected - _WIDTH * deviation, expected + _WIDTH * deviation], 0, 1)
    panel.fill_between(sizes, low, high, color=COLOURS[1], alpha=0.15, lw=0, label=f"± {_WIDTH} deviations")
    panel.axhline(expected, color=COLOURS[1], lw=1.2)
    panel.plot(full, [row["alpha"] for row in rows], ".", color=COLOURS[0], label="a relation")
    panel.set_xscale("log")
    panel.set_xlabel("full-test facts of the relation")
    panel.set_ylabel("share of them in the sparse test")
    panel.set_title("alpha by relation")
    panel.legend(loc="best")
