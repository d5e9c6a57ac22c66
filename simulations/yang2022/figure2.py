"""Figure 2 of Yang et al. (2022): MRR when missing facts correlate with the model's predictions.

There is one panel for each correlation, with the exact mean, the logarithm of Theorem 4.3, our Monte Carlo
and, if OWKG_DATA is set, the published points. Curves end where the correlation leaves its feasible interval.
Published points beyond this end (hollow) come from conditional strengths that the published simulator cuts to
[0, 1].
"""

from pathlib import Path

import polars as pl

from owkg import openworld
from owkg.files.storage import writable_folder
from owkg.plots.figure import COLOURS, figure
from owkg.terminal.progress import progress
from simulations.script import Out, Quick, Seed, save_figure, save_table
from simulations.yang2022.points import PublishedGrid, checked_points
from simulations.yang2022.published import agreement, compared_with_published, published_simulations


def run(trials: int, seed: int) -> pl.DataFrame:
    """One row for each (correlation, alpha, strength); empty where the correlation is not feasible."""
    grid = PublishedGrid()
    points = grid.points()
    low, high = openworld.feasible_correlation(points["strength"], 1 - points["alpha"])
    feasible = (low <= points["rho"]) & (points["rho"] <= high)
    with progress("figure 2", "trials") as on_progress:
        inside = {name: values[feasible] for name, values in points.items()}
        computed = checked_points(grid, inside, trials, seed, on_progress)
    return pl.DataFrame(points).join(computed, on=list(points), how="left", maintain_order="left")


def draw(table: pl.DataFrame, published: pl.DataFrame | None, stem: Path) -> None:
    """Draws six panels with shared axes."""
    with figure(2, 3, (10, 6), sharex=True, sharey=True) as (fig, axes):
        panels = table.group_by("rho", maintain_order=True)
        for panel, ((rho,), rows) in zip(axes.flat, panels, strict=True):
            for colour, ((alpha,), line) in zip(
                COLOURS, rows.group_by("alpha", maintain_order=True), strict=False
            ):
                l = line["strength"]
                panel.plot(l, line["expectation"], color=colour, label=f"α = {alpha:g}")
                panel.plot(l, line["log_approximation"], color=colour, ls="--", lw=0.8)
                some = line.gather_every(5)
                panel.plot(some["strength"], some["monte_carlo_mean"], "+", color=colour, ms=5)
                if published is not None:
                    points = published.filter(pl.col("alpha") == alpha, pl.col("rho") == rho)
                    for saturated, face in ((False, colour), (True, "none")):
                        of_kind = points.filter(pl.col("saturated") == saturated)
                        panel.plot(
                            of_kind["strength"], of_kind["mrr_mean"], "o", ms=2.5, mew=0.5,
                            mfc=face, mec=colour,
                        )  # fmt: skip
            panel.set_title(f"ρ = {rho:g}")
        for panel in axes[-1]:
            panel.set_xlabel("strength ℓ")
        for panel in axes[:, 0]:
            panel.set_ylabel("MRR")
        key = axes[-1, -1]
        key.plot([], [], color="0.4", ls="--", lw=0.8, label="logarithm (Theorem 4.3)")
        key.plot([], [], "+", color="0.4", label="our Monte Carlo")
        if published is not None:
            key.plot([], [], "o", color="0.4", ms=2.5, label="published (500 trials)")
        key.legend(fontsize=7, loc="upper left")
        # Theorem 4.3 falls far below 0 where its error bound is large.
        key.set_ylim(0, 0.5)
        fig.suptitle("Correlation of missing facts with predictions shifts MRR, and can reverse it")
        save_figure(fig, stem)


def main(out: Out = Path("out"), seed: Seed = 0, quick: Quick = False) -> None:
    """Figure 2: MRR against the true strength when missing facts correlate with the model's predictions."""
    writable_folder(out)
    published = published_simulations()
    table = run(500 if quick else 20_000, seed)
    save_table(table, out / "figure2_correlation.csv")
    print(f"our Monte Carlo: {agreement(table['standardised_difference'].drop_nulls().to_numpy())}")
    if published is None:
        print("published: not compared, OWKG_DATA is not set")
    else:
        published = compared_with_published(published)
        saturated = published["saturated"]
        print(f"published, all: {agreement(published['standardised_difference'].to_numpy())}")
        inside = published.filter(~saturated)["standardised_difference"]
        print(f"published, feasible correlation only: {agreement(inside.to_numpy())}")
        print(f"published standard error / exact: mean {published['standard_error_ratio'].mean():.3f}")
    draw(table, published, out / "figure2_correlation")
