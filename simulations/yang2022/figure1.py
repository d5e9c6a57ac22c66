"""Figure 1 of Yang et al. (2022): MRR under missing facts against the true strength.

Exact mean and 95 % band of a mean over 500 queries, Theorem 4.1's logarithm, our Monte Carlo, and, where
OWKG_DATA is set, the published points; the second panel shows how far both simulations are from exact.
"""

from pathlib import Path

import numpy as np
import polars as pl

from owkg.files.storage import writable_folder
from owkg.plots.figure import COLOURS, figure
from owkg.terminal.progress import progress
from simulations.script import Out, Quick, Seed, save_figure, save_table
from simulations.yang2022.points import PublishedGrid, checked_points
from simulations.yang2022.published import agreement, compared_with_published, published_simulations

# Queries of the mean whose 95 % band is drawn; the published simulation averaged as many.
_BAND_QUERIES = 500


def run(trials: int, seed: int) -> pl.DataFrame:
    """One row for each alpha and strength, without correlation: closed forms and Monte Carlo."""
    grid = PublishedGrid()
    with progress("figure 1", "trials") as on_progress:
        return checked_points(grid, grid.points(0.0), trials, seed, on_progress)


def draw(table: pl.DataFrame, published: pl.DataFrame | None, stem: Path) -> None:
    """Left: the curves. Right: Monte Carlo and published means, in standard errors from exact."""
    with figure(1, 2, (10, 4.2), width_ratios=(3, 2)) as (fig, (curves, errors)):
        for colour, ((alpha,), rows) in zip(
            COLOURS, table.group_by("alpha", maintain_order=True), strict=False
        ):
            l, mean = rows["strength"], rows["expectation"].to_numpy()
            half = 1.96 * np.sqrt(rows["variance"].to_numpy() / _BAND_QUERIES)
            curves.fill_between(l, mean - half, mean + half, color=colour, alpha=0.15, lw=0)
            curves.plot(l, mean, color=colour, label=f"α = {alpha:g}")
            curves.plot(l, rows["log_approximation"], color=colour, ls="--", lw=0.8)
            errors.plot(l, rows["standardised_difference"], ".", color="0.6", ms=4)
            if published is not None:
                points = published.filter(pl.col("alpha") == alpha)
                curves.plot(points["strength"], points["mrr_mean"], ".", color=colour, ms=3)
                errors.plot(points["strength"], points["standardised_difference"], ".", color=colour, ms=4)
        curves.plot([], [], color="0.4", ls="--", lw=0.8, label="logarithm (Theorem 4.1)")
        curves.fill_between([], [], [], color="0.4", alpha=0.2, label="95 % of 500-query means")
        if published is not None:
            curves.plot([], [], ".", color="0.4", ms=4, label="published (500 trials)")
        curves.set(xlabel="strength ℓ", ylabel="MRR", title="Missing facts flatten MRR")
        curves.legend(fontsize=8)
        errors.plot([], [], ".", color="0.6", label="our Monte Carlo")
        for level in (-2, 2):
            errors.axhline(level, color="0.3", lw=0.6)
        errors.set(
            xlabel="strength ℓ",
            ylabel="(simulated − exact) / standard error",
            title="Both simulations agree with the exact mean",
            ylim=(-4.5, 4.5),
        )
        errors.legend(fontsize=8, loc="upper right")
        save_figure(fig, stem)


def main(out: Out = Path("out"), seed: Seed = 0, quick: Quick = False) -> None:
    """Figure 1: MRR under missing facts against the true strength, with the published points on top."""
    writable_folder(out)
    published = published_simulations()
    table = run(2_000 if quick else 50_000, seed)
    save_table(table, out / "figure1_expectation.csv")
    print(f"our Monte Carlo: {agreement(table['standardised_difference'].to_numpy())}")
    if published is None:
        print("published: not compared, OWKG_DATA is not set")
    else:
        published = compared_with_published(published)
        for rho in published["rho"].unique().sort():
            of_rho = published.filter(pl.col("rho") == rho)["standardised_difference"]
            print(f"published, ρ = {rho:g}: {agreement(of_rho.to_numpy())}")
        print(f"published, all: {agreement(published['standardised_difference'].to_numpy())}")
        save_table(published, out / "figure1_published.csv")
        published = published.filter(pl.col("rho") == 0)
    draw(table, published, out / "figure1_expectation")
