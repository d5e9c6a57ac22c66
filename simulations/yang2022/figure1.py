"""Figure 1 of Yang et al. (2022): MRR under missing facts against the true strength.

The figure has the exact mean, the 95 % band of a mean over 500 queries, the logarithm of Theorem 4.1, the
line of the complete test above them and, if OWKG_DATA is set, the published points. The script prints how far
the published simulation and our Monte Carlo are from the exact values.
"""

from pathlib import Path

import numpy as np
import polars as pl

from owkg.files.storage import writable_folder
from owkg.plots.figure import COLOURS, figure, label_ends
from owkg.terminal.progress import progress
from simulations.script import Out, Quick, Seed, save_figure, save_table
from simulations.yang2022.points import PublishedGrid, checked_points
from simulations.yang2022.published import agreement, compared_with_published, published_simulations
from simulations.yang2022.reported import complete

# Number of queries of the mean whose 95 % band is drawn, as in the published simulation.
_BAND_QUERIES = 500


def run(trials: int, seed: int) -> pl.DataFrame:
    """One row for each alpha and strength, without correlation: closed forms and Monte Carlo."""
    grid = PublishedGrid()
    with progress("figure 1", "trials") as on_progress:
        return checked_points(grid, grid.points(0.0), trials, seed, on_progress)


def draw(table: pl.DataFrame, published: pl.DataFrame | None, stem: Path) -> None:
    """Draws a curve for each share of missing facts, named at its end, and the line of the complete test."""
    with figure(1, 1, (6.4, 4.2)) as (fig, panel):
        strengths = table["strength"].unique().sort().to_numpy()
        true = complete(strengths)
        panel.plot(strengths, true, color="0.25", lw=1.4)
        ends = [(float(true[-1]), float(strengths[-1]), "complete test", "0.25")]
        for colour, ((alpha,), rows) in zip(
            COLOURS, table.group_by("alpha", maintain_order=True), strict=False
        ):
            l, mean = rows["strength"], rows["expectation"].to_numpy()
            half = 1.96 * np.sqrt(rows["variance"].to_numpy() / _BAND_QUERIES)
            panel.fill_between(l, mean - half, mean + half, color=colour, alpha=0.2, lw=0)
            panel.plot(l, mean, color=colour, lw=1.6)
            panel.plot(l, rows["log_approximation"], color="0.1", ls=(0, (2, 3)), lw=0.9)
            ends.append((mean[-1], l[-1], f"{1 - alpha:.0%} missing", colour))
            if published is not None:
                points = published.filter(pl.col("alpha") == alpha)
                panel.plot(points["strength"], points["mrr_mean"], ".", color=colour, ms=3)
        panel.plot([], [], color="0.1", ls=(0, (2, 3)), lw=0.9, label="logarithm (Theorem 4.1)")
        panel.fill_between([], [], [], color="0.4", alpha=0.2, lw=0, label="95 % of 500-query means")
        if published is not None:
            panel.plot([], [], ".", color="0.4", ms=4, label="published (500 trials)")
        panel.set(xlabel="strength ℓ of the model", ylabel="expected MRR", xlim=(0.3, 1), ylim=(0, 1))
        panel.set_title("Missing facts flatten MRR", loc="left")
        panel.legend(fontsize=8, loc="upper left")
        label_ends(panel, ends, size=9)
        save_figure(fig, stem)


def main(out: Out = Path("out"), seed: Seed = 0, quick: Quick = False) -> None:
    """Figure 1: MRR under missing facts against the true strength, with the published points."""
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
