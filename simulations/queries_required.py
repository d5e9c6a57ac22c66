"""Queries required to tell two models apart, by metric and sparsity: "focus on top" as a number.

The numbers are the exact form of Corollary 4.4 of Yang et al. (2022), for two models measured on separate
test sets (dashed) and for two models on one test set, which therefore share its missing facts (solid). The
script also prints the corollary's worked example and its corrected value.

    python simulations/queries_required.py --quick --out out
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import typer

from owkg import theory
from owkg.files.storage import writable_folder
from owkg.plots.figure import COLOURS, figure
from owkg.rank_weights import MRR, rank_weight
from simulations.script import Out, Quick, run_script, save_figure, save_table


@dataclass(frozen=True)
class Config:
    """Two strengths, the metrics, and the sparsities of the horizontal axis."""

    strength: float = 0.70
    other_strength: float = 0.75
    inconsistency: float = 0.05
    num_answers: int = 43
    num_entities: int = 14505
    metrics: tuple[str, ...] = ("hits@1", "mrr", "hits@3", "log-mrr", "p-mrr@1/2", "p-mrr@1/4", "hits@10")
    points: int = 91


def run(config: Config) -> pl.DataFrame:
    """One row for each metric and sparsity."""
    sparsity = np.unique(np.append(np.linspace(0.05, 0.95, config.points), 0.35).round(6))
    setting = {
        "strength": config.strength,
        "other_strength": config.other_strength,
        "sparsity": sparsity,
        "num_answers": config.num_answers,
        "num_entities": config.num_entities,
        "inconsistency": config.inconsistency,
    }
    return pl.concat(
        pl.DataFrame(
            {
                "metric": name,
                "sparsity": sparsity,
                "required_queries": theory.required_queries(rank_weight(name), **setting),
                "required_queries_paired": theory.required_queries(rank_weight(name), **setting, paired=True),
            }
        )
        for name in config.metrics
    )


def draw(table: pl.DataFrame, config: Config, stem: Path) -> None:
    """Plots required queries against sparsity, one line for each metric."""
    with figure(1, 1, (7, 4.5)) as (fig, axes):
        lines = table.group_by("metric", maintain_order=True)
        for colour, ((name,), rows) in zip(COLOURS, lines, strict=True):
            axes.plot(rows["sparsity"], rows["required_queries_paired"], color=colour, label=name)
            axes.plot(rows["sparsity"], rows["required_queries"], color=colour, ls="--", lw=0.8)
        axes.plot([], [], color="0.4", label="one test set")
        axes.plot([], [], color="0.4", ls="--", lw=0.8, label="separate test sets")
        axes.set(
            xlabel="sparsity β (share of answers missing)",
            ylabel="queries required",
            yscale="log",
            ylim=(1, 1e8),
            title=f"To see ℓ = {config.strength:g} against {config.other_strength:g} "
            f"with at most {config.inconsistency:.0%} inconsistency",
        )
        axes.legend(fontsize=8, ncols=2)
        save_figure(fig, stem)


def worked_example() -> pl.DataFrame:
    """The example after Corollary 4.4 (beta = 0.35, N = 43, l = 0.7, 5 %): as printed, and corrected."""
    exact = theory.moments(MRR, strength=0.7, sparsity=0.35, num_answers=43, num_entities=14505).variance
    rows = []
    for label, variance in (("printed variance", 7.4e-3), ("exact variance", float(exact))):
        needed = {
            d: theory.log_required_queries(
                strength=0.7, difference=d, sparsity=0.35, num_answers=43,
                variance=variance, inconsistency=0.05,
            )
            for d in (1.0, 0.05, 0.01)
        }  # fmt: skip
        rows.append((label, variance, *map(float, needed.values())))
    rows.append(("printed result", 7.4e-3, 2.85, 1140.0, 28500.0))
    columns = ["form", "variance", "c", "queries_difference_0.05", "queries_difference_0.01"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def main(
    out: Out = Path("out"),
    quick: Quick = False,
    strength: Annotated[
        float, typer.Option(help="Strength of the first model, in [0, 1].")
    ] = Config.strength,
    other_strength: Annotated[
        float, typer.Option(help="Strength of the second model, in [0, 1].")
    ] = Config.other_strength,
) -> None:
    """Draws the required queries against the sparsity, by metric."""
    writable_folder(out)
    config = Config(strength=strength, other_strength=other_strength, points=19 if quick else 91)
    table = run(config)
    save_table(table, out / "queries_required.csv")
    save_table(worked_example(), out / "queries_required_worked_example.csv")
    at_example = table.filter(pl.col("sparsity") == 0.35).drop("sparsity")
    with pl.Config(tbl_rows=-1, tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True):
        print("queries required at sparsity 0.35:")
        with pl.Config(fmt_float="full", float_precision=0, thousands_separator=True):
            print(at_example)
        print("worked example after Corollary 4.4 (c = queries times squared difference):")
        print(worked_example())
    draw(table, config, out / "queries_required")


if __name__ == "__main__":
    run_script(main)
