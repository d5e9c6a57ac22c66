"""Closed form, Monte Carlo and published number of every metric, by missing-fact model.

python -m simulations.yang2022 closed-forms --quick --out out
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import polars as pl

from owkg import openworld, simulate, theory
from owkg.files.storage import writable_folder
from owkg.rank_weights import rank_weight
from owkg.terminal.progress import progress
from simulations.script import Out, Quick, Seed, save_table
from simulations.yang2022.published import published_simulations


@dataclass(frozen=True)
class Config:
    """The paper's example setting, with `trials` queries a row (a tenth of them where scores are drawn)."""

    strength: float = 0.7
    sparsity: float = 0.35
    num_answers: int = 43
    num_entities: int = 14505
    metrics: tuple[str, ...] = ("mrr", "hits@1", "hits@10", "log-mrr", "p-mrr@1/2", "mr")
    trials: int = 2_000_000
    seed: int = 0


MISSING = (openworld.Independent(), openworld.NodeBased(), openworld.PopularityBased())
PREDICTION = (openworld.Classification(), openworld.Score())


def run(config: Config) -> pl.DataFrame:
    """One row for each prediction model, missing-fact model and metric."""
    chosen = [rank_weight(name) for name in config.metrics]
    setting = {
        "strength": config.strength,
        "sparsity": config.sparsity,
        "num_answers": config.num_answers,
        "num_entities": config.num_entities,
    }
    keys = jax.random.split(jax.random.key(config.seed), (len(PREDICTION), len(MISSING)))
    rows = []
    for i, prediction in enumerate(PREDICTION):
        scored = prediction == openworld.Score()
        for j, missing in enumerate(MISSING):
            with progress(f"{missing}, {prediction}", "trials") as on_progress:
                drawn = simulate.estimate(
                    keys[i, j],
                    chosen,
                    trials=config.trials // (10 if scored else 1),
                    missing=missing,
                    prediction=prediction,
                    on_progress=on_progress,
                    **setting,
                )
            for n, metric in enumerate(chosen):
                row: dict[str, Any] = {
                    "prediction": type(prediction).__name__.lower(),
                    "missing": type(missing).__name__.lower(),
                    "metric": metric.name,
                }
                if scored:
                    mean = theory.score_expectation(metric, missing=missing, **setting)
                    variance = None
                else:
                    mean, variance = map(float, theory.moments(metric, missing=missing, **setting))
                row |= {
                    "exact_mean": float(mean),
                    "monte_carlo_mean": drawn.mean[n],
                    "mean_difference_in_standard_errors": (drawn.mean[n] - mean) / drawn.standard_error[n],
                    "exact_variance": variance,
                    "monte_carlo_variance": drawn.variance[n],
                    "variance_difference_in_standard_errors": None
                    if variance is None
                    else (drawn.variance[n] - variance) / drawn.variance_standard_error[n],
                    "trials": drawn.trials,
                }
                rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def with_published(table: pl.DataFrame, published: pl.DataFrame | None, config: Config) -> pl.DataFrame:
    """Adds `published_mean`, which is known for the MRR of the paper's own models at this setting."""
    if published is None:
        print("published: not compared, OWKG_DATA is not set")
        return table.with_columns(published_mean=pl.lit(None, pl.Float64))
    point = published.filter(
        pl.col("rho") == 0,
        (pl.col("alpha") - (1 - config.sparsity)).abs() < 1e-9,
        (pl.col("strength") - config.strength).abs() < 1e-9,
    )
    own = (
        (pl.col("metric") == "mrr")
        & (pl.col("prediction") == "classification")
        & (pl.col("missing") == "independent")
    )
    mean = point["mrr_mean"].item() if len(point) == 1 else None
    error = point["mrr_standard_error"].item() if len(point) == 1 else None
    return table.with_columns(
        published_mean=pl.when(own).then(pl.lit(mean, pl.Float64)),
        published_standard_error=pl.when(own).then(pl.lit(error, pl.Float64)),
    )


def main(out: Out = Path("out"), seed: Seed = 0, quick: Quick = False) -> None:
    """Prints and saves the table that compares closed forms, Monte Carlo and the published number."""
    config = Config(seed=seed, trials=100_000 if quick else Config.trials)
    writable_folder(out)
    published = published_simulations()
    table = with_published(run(config), published, config)
    short = table.select(
        "prediction",
        "missing",
        "metric",
        exact=pl.col("exact_mean"),
        simulated=pl.col("monte_carlo_mean"),
        z=pl.col("mean_difference_in_standard_errors").round(2),
        variance=pl.col("exact_variance"),
        simulated_variance=pl.col("monte_carlo_variance"),
        z_variance=pl.col("variance_difference_in_standard_errors").round(2),
        published=pl.col("published_mean"),
    )
    with pl.Config(
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=200,
        float_precision=6,
        tbl_hide_column_data_types=True,
        tbl_hide_dataframe_shape=True,
    ):
        print(short)
    save_table(table, out / "closed_form_table.csv")
