"""The thirteen systems of Zhou et al. (2022) in closed worlds: do sparse labels reverse their order?"""

import json
import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli.options import Format, OutputFormat
from owkg.train.workers import Where, check_scheduler, where
from simulations.open_world.runs import MostSteps, Scheduler, Workers
from simulations.script import Out
from simulations.zhou2022.study import Systems, pooled

_STEM = "closed_world"


def closed_world(
    seeds: Annotated[int, typer.Option(min=1, help="Number of worlds, each with its own trainings.")] = 3,
    density: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the facts that the benchmark knows.")
    ] = 0.75,
    max_steps: MostSteps = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    depth: Annotated[int, typer.Option(min=1, help="Depth of the deepest pool.")] = 10,
    replicates: Annotated[
        int, typer.Option(min=2, help="Number of bootstrap resamples of the queries.")
    ] = 1000,
    out: Out = Path("out"),
    form: OutputFormat = Format.TABLE,
) -> None:
    """Trains the paper's thirteen systems in worlds of known truth, and ranks them by sparse and full labels.

    Each seed samples families and trains all systems. If the command is interrupted, run it again and it
    resumes.
    """
    with redirect_stdout(sys.stderr) if form is Format.JSON else nullcontext():
        place = where(scheduler, workers)
        check_scheduler(place)
        found = [_of_seed(seed, out, density, max_steps, place, depth, replicates) for seed in range(seeds)]
        tables = _tables(found)
        _told(tables, out)
    if form is Format.JSON:
        print(
            json.dumps({name: table.to_dicts() for name, table in tables.items()}, indent=2, allow_nan=False)
        )


def _of_seed(
    seed: int, out: Path, density: float, steps: int | None, place: Where | None, depth: int, replicates: int
) -> dict[str, Any]:
    folder = out / _STEM / str(seed)
    wanted = f"{density:g}"
    return pooled(Systems.THIRTEEN, folder, None, wanted, None, steps, place, depth, replicates, seed)


def _tables(found: list[dict[str, Any]]) -> dict[str, Any]:
    """`order`: tau of the test set with the truth by metric; `systems`: mean MRR of each system."""
    import polars as pl

    taus = pl.concat(
        pl.DataFrame(one["agreement"], infer_schema_length=None)
        .filter(coefficient="tau")
        .with_columns(seed=seed)
        for seed, one in enumerate(found)
    )
    deepest = int(taus["depth"].max())  # pyright: ignore[reportArgumentType]
    alone = taus.filter(depth=0).select("metric", "seed", "value", "lower", "upper")
    below = taus.filter(depth=deepest).select("metric", "seed", pooled="value")
    order = (
        alone.join(below, on=["metric", "seed"], maintain_order="left")
        .group_by("metric", maintain_order=True)
        .agg(
            pl.len().alias("seeds"),
            pl.col("value").mean().alias("tau"),
            pl.col("value").min().alias("least"),
            pl.col("lower").min(),
            pl.col("upper").max(),
            pl.col("pooled").mean().alias("tau_pooled"),
        )
    )
    systems = _of_seeds(found, "systems", metric="mrr")
    mean = [pl.col("value").mean(), pl.col("rank").mean()]
    sparse = systems.filter(depth=0).group_by("system", maintain_order=True).agg(mean)
    full = systems.filter(pl.col("depth").is_null()).group_by("system").agg(mean)
    both = sparse.join(full, on="system", suffix="_truth").sort("value", descending=True)
    return {"order": order, "systems": both}


def _of_seeds(found: list[dict[str, Any]], name: str, **chosen: str) -> Any:
    """Chosen rows of a table of every seed, with a column `seed`."""
    import polars as pl

    tables = (pl.DataFrame(one[name], infer_schema_length=None).filter(**chosen) for one in found)
    return pl.concat(table.with_columns(seed=pl.lit(seed)) for seed, table in enumerate(tables))


def _told(tables: dict[str, Any], out: Path) -> None:
    from owkg.terminal.tables import printed
    from simulations.script import save_table

    rows = [
        [row["system"]]
        + [f"{row[name]:.3f}" for name in ("value", "value_truth")]
        + [f"{row[name]:.1f}" for name in ("rank", "rank_truth")]
        for row in tables["systems"].to_dicts()
    ]
    columns = ["system", "MRR, test set", "MRR, truth", "place, test set", "place, truth"]
    printed("Means over seeds", columns, rows)
    rows = [
        [row["metric"], f"[{row['lower']:.3f}, {row['upper']:.3f}]"]
        + [f"{row[name]:.3f}" for name in ("tau", "least", "tau_pooled")]
        for row in tables["order"].to_dicts()
    ]
    columns = ["metric", "intervals of the seeds", "mean tau with the truth", "least", "mean with pools"]
    title = "Order of the systems by the test set alone, facts missing at random"
    printed(f"{title} (Zhou et al. 2022 on FB15k-237, by micro MRR: -.231)", columns, rows)
    for name, table in tables.items():
        save_table(table, out / f"{_STEM}_{name}.csv")
