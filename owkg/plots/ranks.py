"""Figures of rank tables: histograms of the ranks, and PROBE over its parameters."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from owkg.errors import ArgumentError
from owkg.files.storage import writable_folder
from owkg.metrics import Tasks, part_of, tasks_of
from owkg.plots.figure import figure, panel_grid, save_figure
from owkg.plots.histogram import draw_histograms
from owkg.plots.probe import draw_lines, draw_order, draw_surfaces, probe_surface
from owkg.ranks import RankTable
from owkg.ranks.seeds import seeds_of
from owkg.ranks.table import RELATION


def rank_figures(tables: Sequence[RankTable | pl.DataFrame], folder: Path) -> list[Path]:
    """Draws the figures of rank tables into files, with a panel or a line for each model.

    Every figure is written as PNG, SVG and PDF:

    - `rank_histogram`: the ranks on a logarithmic axis, with the ranks of a random ranking.
    - `probe_surface`: PROBE over sharpness and robustness, if every table has the column `popularity`.
    - `probe_order`: the model that leads at each sharpness and robustness, if there are several models and
      every table has the column `popularity`.
    - `probe_sharpness`: PROBE over sharpness, if a table does not have the column `popularity`.

    Args:
        tables: rank tables. A model is a value of the column `model`, or a whole table without that column.
            Predicted relations are left out if there are heads and tails.
        folder: folder for the files, made if it is missing and tested before anything is computed.

    Returns:
        The paths written, in this order.

    Raises:
        ValueError: as `owkg.ranks.validated`, if there are no tables, or two tables have models with one
            name.
        OSError: if nothing can be written to the folder.
    """
    writable_folder(folder)
    models = _models(tables)
    rows, columns = panel_grid(len(models))
    size = (max(5.2, 3.9 * columns), 3.2 * rows)
    with figure(rows, columns, size, squeeze=False, sharey=True) as (fig, axes):
        draw_histograms(models, axes)
        paths = save_figure(fig, folder / "rank_histogram")
    if any(tasks.popularity is None for tasks in models.values()):
        lines = {name: probe_surface(tasks, robustness=(0.0,))[:, 0] for name, tasks in models.items()}
        with figure(1, 1, (6.4, 4)) as (fig, panel):
            draw_lines(lines, panel)
            return paths + save_figure(fig, folder / "probe_sharpness")
    surfaces = {name: probe_surface(tasks)[0] for name, tasks in models.items()}
    with figure(rows, columns, (max(6, 4.2 * columns), 3.7 * rows), squeeze=False, sharey=True) as (
        fig,
        axes,
    ):
        draw_surfaces(surfaces, axes, fig)
        paths += save_figure(fig, folder / "probe_surface")
    if len(surfaces) > 1:
        with figure(1, 1, (6.4, 4.6)) as (fig, panel):
            draw_order(surfaces, panel)
            paths += save_figure(fig, folder / "probe_order")
    return paths


def _models(tables: Sequence[RankTable | pl.DataFrame]) -> dict[str, Tasks]:
    """Tasks of each model, in the order of the tables and, within a table, of the names."""
    if not tables:
        raise ArgumentError("tables", "must have at least one rank table, got none.")
    found: dict[str, Tasks] = {}
    for number, table in enumerate(tables, start=1):
        tasks, rows = tasks_of(table)
        if seeds_of(rows):
            warnings.warn("figures show the ranks of all seeds of a model together.", stacklevel=3)
        entities = (rows["side"] != RELATION).to_numpy()
        if entities.any() and not entities.all():
            tasks, rows = part_of(tasks, entities), rows.filter(entities)
        if "model" in rows.columns:
            names = rows["model"].to_numpy()
            parts = {name: part_of(tasks, names == name) for name in np.unique(names)}
        else:
            parts = {"ranks" if len(tables) == 1 else f"table {number}": tasks}
        for name, part in parts.items():
            if name in found:
                raise ArgumentError("tables", f"must have different models, got {name!r} twice.")
            found[name] = part
    return found
