"""Figure 2 of Yang et al. (2022): MRR when missing facts correlate with the model's predictions.

One panel a correlation: exact mean, Theorem 4.3's logarithm, our Monte Carlo, and, where OWKG_DATA is set,
the published points. Curves end where the correlation leaves its feasible interval; published points
beyond (hollow) come from conditional strengths that the published simulator cuts to [0, 1].

    python simulations/figure2_correlation.py --quick --out out
"""

from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
import polars as pl

from owkg import metrics, openworld, simulate, theory
from owkg.cli.progress import progress
from owkg.cli.script import Out, Quick, Seed, run_script
from owkg.report.figure import COLOURS, figure, save_figure
from owkg.report.files import save_table, writable_folder
from owkg.report.published import agreement, compared_with_published, published_simulations


@dataclass(frozen=True)
class Config:
    """The published grid; `trials` queries a point."""

    correlations: tuple[float, ...] = (-0.3, -0.2, -0.1, 0.0, 0.1, 0.2)
    alphas: tuple[float, ...] = (0.8, 0.65, 0.5, 0.35)
    strengths: tuple[float, ...] = tuple(round(0.3 + 0.01 * i, 2) for i in range(71))
    num_answers: int = 43
    num_entities: int = 14505
    trials: int = 20_000
    seed: int = 0


def run(config: Config) -> pl.DataFrame:
    """One row for each (correlation, alpha, strength); empty where the correlation is not feasible."""
    rho, alpha, strength = (
        grid.ravel()
        for grid in np.meshgrid(config.correlations, config.alphas, config.strengths, indexing="ij")
    )
    points = pl.DataFrame({"rho": rho, "alpha": alpha, "strength": strength})
    low, high = openworld.feasible_correlation(strength, 1 - alpha)
    feasible = (low <= rho) & (rho <= high)
    rho, alpha, strength = rho[feasible], alpha[feasible], strength[feasible]
    setting = {
        "strength": strength,
        "sparsity": 1 - alpha,
        "correlation": rho,
        "num_answers": config.num_answers,
        "num_entities": config.num_entities,
    }
    exact = theory.moments(metrics.MRR, **setting)
    with progress("figure 2", "trials") as on_progress:
        drawn = simulate.estimate(
            jax.random.key(config.seed),
            metrics.MRR,
            trials=config.trials,
            on_progress=on_progress,
            **setting,
        )
    mean, error = drawn.mean[:, 0], drawn.standard_error[:, 0]
    computed = pl.DataFrame(
        {
            "rho": rho,
            "alpha": alpha,
            "strength": strength,
            "expectation": exact.expectation,
            "variance": exact.variance,
            "lemma_expectation": theory.lemma_expectation(metrics.MRR, **setting),
            "log_approximation": theory.log_approximation(**setting),
            "correlation_derivative": theory.lemma_correlation_derivative(metrics.MRR, **setting),
            "monte_carlo_mean": mean,
            "monte_carlo_standard_error": error,
            "trials": config.trials,
            "standardised_difference": (mean - exact.expectation) / error,
        }
    )
    return points.join(computed, on=points.columns, how="left", maintain_order="left")


def draw(table: pl.DataFrame, published: pl.DataFrame | None, stem: Path) -> None:
    """Six panels that share their axes."""
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
        # Theorem 4.3 runs far below 0 where its error bound is large.
        key.set_ylim(0, 0.5)
        fig.suptitle("Correlation of missing facts with predictions shifts MRR, and can reverse it")
        save_figure(fig, stem)


def main(out: Out = Path("out"), seed: Seed = 0, quick: Quick = False) -> None:
    """Redraws Figure 2 (MRR against strength under correlation) with the published points on top."""
    writable_folder(out)
    published = published_simulations()
    table = run(Config(seed=seed, trials=500 if quick else Config.trials))
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


if __name__ == "__main__":
    run_script(main)
