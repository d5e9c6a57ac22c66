"""Histograms of a model's ranks, compared with the ranks of a random ranking."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from owkg.metrics import Tasks
from owkg.plots.figure import COLOURS, blank_panels

# Largest number of candidates at which every rank has a bin of its own; otherwise bins are octaves: 1, 2-3,
# 4-7, 8-15, ...
_FEW_RANKS = 24

# Share of tied tasks above which both ends of the ties are drawn.
_MANY_TIES = 0.01


class Histogram(NamedTuple):
    """Shares of the tasks' weight in bins of ranks: edges[i] <= rank < edges[i + 1].

    Attributes:
        realistic: shares of the mean of the optimistic and the pessimistic rank.
        optimistic, pessimistic: shares of the two ends of the ties.
        random: expected shares if every rank is uniform on 1 .. its number of candidates.
        tied: share of the tasks whose two ends differ.
    """

    realistic: Float[np.ndarray, "bins"]
    optimistic: Float[np.ndarray, "bins"]
    pessimistic: Float[np.ndarray, "bins"]
    random: Float[np.ndarray, "bins"]
    tied: float


def rank_edges(candidates: int) -> Int[np.ndarray, "edges"]:
    """Edges of the bins for ranks 1 .. `candidates`: one bin for each rank if there are few, else octaves.

    Octaves have equal widths on a logarithmic axis, so that their shares can be compared.

    Examples:
        >>> rank_edges(3), rank_edges(100)
        (array([1, 2, 3, 4]), array([  1,   2,   4,   8,  16,  32,  64, 128]))
    """
    if candidates <= _FEW_RANKS:
        return np.arange(1, candidates + 2)
    return 2 ** np.arange(int(candidates).bit_length() + 1)


def binned_ranks(tasks: Tasks, edges: Int[np.ndarray, "edges"]) -> Histogram:
    """Histogram of the ranks of `tasks`; edges increase from 1 and end above the largest rank.

    Examples:
        >>> from owkg.metrics import tasks
        >>> found = binned_ranks(tasks([1, 1, 3], [1, 3, 3], 4), rank_edges(4))
        >>> found.realistic.round(3).tolist(), found.random.tolist()
        ([0.333, 0.333, 0.333, 0.0], [0.25, 0.25, 0.25, 0.25])
    """
    weight = np.ones(len(tasks.optimistic)) if tasks.weight is None else tasks.weight
    share = weight / weight.sum()

    def shares(ranks: np.ndarray) -> np.ndarray:
        bins = np.searchsorted(edges, ranks, side="right") - 1
        return np.bincount(bins, share, len(edges) - 1)

    sizes, back = np.unique(tasks.candidates, return_inverse=True)
    of_size = np.bincount(back, share)
    below = np.minimum(edges - 1, sizes[:, None]) / sizes[:, None]  # P(rank < edge)
    return Histogram(
        shares((tasks.optimistic + tasks.pessimistic) / 2),
        shares(tasks.optimistic),
        shares(tasks.pessimistic),
        of_size @ np.diff(below, axis=1),
        float(np.mean(tasks.optimistic < tasks.pessimistic)),
    )


def draw_histograms(models: Mapping[str, Tasks], axes: np.ndarray) -> None:
    """Draws a panel for each model: bars for realistic ranks and a line for random ranking.

    If many tasks are tied, thin lines show both ends of the ties. `axes` may have more panels than there are
    models.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    edges = rank_edges(max(int(tasks.candidates.max()) for tasks in models.values()))
    found = {name: binned_ranks(tasks, edges) for name, tasks in models.items()}
    ties = any(histogram.tied > _MANY_TIES for histogram in found.values())
    ticks = edges[:: -(-len(edges) // 9)]
    for panel, (name, histogram) in zip(axes.flat, found.items(), strict=False):
        panel.stairs(
            histogram.realistic, edges, fill=True, color=COLOURS[0], alpha=0.55, label="realistic ranks"
        )
        if histogram.tied > _MANY_TIES:
            for values, style, label in (
                (histogram.optimistic, ":", "optimistic"),
                (histogram.pessimistic, "--", "pessimistic"),
            ):
                panel.stairs(values, edges, color=COLOURS[0], ls=style, lw=1.1, label=label)
        panel.stairs(histogram.random, edges, color="0.25", lw=1.2, label="by chance")
        panel.set_xscale("log", base=2)
        panel.xaxis.set_major_locator(FixedLocator(ticks.tolist()))
        panel.xaxis.set_minor_locator(NullLocator())
        panel.xaxis.set_major_formatter(FuncFormatter(lambda rank, _: f"{rank:,.0f}"))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))
        panel.set_xlim(edges[0], edges[-1])
        panel.grid(axis="x", visible=False)
        panel.set_title(name + (f" ({histogram.tied:.0%} tied)" if ties else ""))
        panel.set_xlabel("rank, log scale" + ("" if edges[-1] <= _FEW_RANKS + 1 else ", in octaves"))
    weighted = any(tasks.weight is not None for tasks in models.values())
    for panel in axes[:, 0]:
        panel.set_ylabel(f"share of the {'weight' if weighted else 'tasks'}")
    # The panel with the most lines has the legend for all panels.
    most = int(np.argmax([histogram.tied > _MANY_TIES for histogram in found.values()]))
    axes.flat[most].legend(fontsize=8)
    blank_panels(axes, len(found))
