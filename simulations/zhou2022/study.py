"""Zhou et al. (2022) in a closed world: qrels of pools of trained models against the truth."""

import json
import sys
from contextlib import nullcontext, redirect_stdout
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli.options import Format, OutputFormat
from owkg.terminal.progress import progress
from owkg.train.workers import Where, check_scheduler, where
from simulations.open_world.runs import (
    Configurations,
    Densities,
    MostSteps,
    Preset,
    Scheduler,
    Workers,
    Worlds,
    trained,
)
from simulations.script import Out, Seed

METRICS = ("mrr", "hits@1", "hits@10", "mr", "macro-mrr", "macro-hits@10", "macro-map@20", "macro-ndcg@20")
"""Micro metrics, and the macro metrics that Zhou et al. (2022) recommend."""

# Metrics drawn by depth; with more lines, the bands would hide each other.
_DRAWN = ("mrr", "hits@10")
_STEM = "pooling"
# File with the description of the study: models, settings and steps.
_NOTE = "pooling.json"


class Systems(StrEnum):
    """Trained models that are pooled."""

    QUICK = "quick"
    CPU = "cpu"
    PAPER = "paper"
    THIRTEEN = "thirteen"


def pooling(
    preset: Annotated[
        Systems,
        typer.Option(
            help="Systems to pool. quick: six models, small families, a minute. thirteen: the paper's "
            "systems, small families, a quarter of an hour. cpu, paper: the models of simulations.yang2022 "
            "open-world, whose runs are read if they exist."
        ),
    ] = Systems.QUICK,
    worlds: Worlds = None,
    density: Densities = None,
    configuration: Configurations = None,
    max_steps: MostSteps = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    depth: Annotated[int, typer.Option(min=1, help="Depth of the deepest pool.")] = 10,
    replicates: Annotated[
        int, typer.Option(min=2, help="Number of bootstrap resamples of the queries.")
    ] = 1000,
    out: Out = Path("out"),
    seed: Seed = 0,
    form: OutputFormat = Format.TABLE,
) -> None:
    """System rankings by sparse labels, by pools of depth 1 to 10, and by the truth of a closed world.

    If the command is interrupted, run it again and it resumes where it stopped.
    """
    with redirect_stdout(sys.stderr) if form is Format.JSON else nullcontext():
        place = where(scheduler, workers)
        check_scheduler(place)
        numbers = pooled(
            preset, out, worlds, density, configuration, max_steps, place, depth, replicates, seed
        )
    if form is Format.JSON:
        numbers = {name: numbers[name] for name in ("agreement", "differences", "labels")}
        print(json.dumps(numbers, indent=2, allow_nan=False))


def pooled(
    preset: Systems,
    out: Path,
    worlds: Path | None,
    density: str | None,
    labels: list[str] | None,
    max_steps: int | None,
    place: Where | None,
    depth: int,
    replicates: int,
    seed: int,
) -> dict[str, Any]:
    """Trains the systems, pools them, writes and draws all tables, and returns them as lists of rows."""
    import polars as pl

    from owkg.keys import seeded
    from owkg.metrics import metric
    from simulations.open_world.note import described, note
    from simulations.open_world.presets import PRESETS
    from simulations.zhou2022.judged import Judged, judged
    from simulations.zhou2022.pools import pools

    if labels is not None and len({one.lower() for one in labels}) < 2:
        raise ValueError(
            "`configuration` must leave at least two systems, because a single one cannot be ranked."
        )
    small = {Systems.QUICK: "pool", Systems.THIRTEEN: "thirteen"}.get(preset)
    done = trained(
        Preset.QUICK if small else Preset(preset.value),
        out,
        worlds=worlds,
        densities="0.75" if small and density is None and worlds is None else density,
        labels=labels,
        max_steps=max_steps,
        seed=seed,
        configurations=PRESETS[small] if small else None,
        name=small,
        place=place,
    )
    asked = [
        (world, of_world, test_set)
        for world, of_world in zip(done.worlds, done.records, strict=True)
        for test_set in world.present
    ]
    found = []
    with progress("qrels", "qrels") as update:
        for i, (world, of_world, test_set) in enumerate(asked):
            total, first = len(asked) * (depth + 2), i * (depth + 2)
            found.append(
                judged(
                    seeded(seed),
                    world,
                    pools(world, of_world, done.configurations, done.runs, depth=depth),
                    [metric(name) for name in METRICS],
                    test_set=test_set,
                    replicates=replicates,
                    on_progress=lambda n, _, first=first, total=total: update(first + n, total),
                )
            )
    tables = {
        name: pl.concat([getattr(one, name) for one in found], how="vertical_relaxed")
        for name in Judged._fields
    }
    description = described(
        done.runs, done.runs.name, seed, done.worlds, done.configurations, max_steps, None
    ) | {"depth": depth, "replicates": replicates}
    note(out, description, name=_NOTE)
    stale = note(out, description, [*_write(tables, out), *draw_tables(tables, out)], name=_NOTE)
    if stale:
        print(f"left from an earlier study, not drawn again: {', '.join(stale)}")
    for line in _said(tables):
        print(line)
    return {name: _plain(table) for name, table in tables.items()}


def _write(tables: dict[str, Any], out: Path) -> list[Path]:
    import polars.selectors as cs

    from simulations.script import save_table

    return [
        save_table(table.with_columns(cs.float().round_sig_figs(4)), out / f"{_STEM}_{name}.csv")
        for name, table in tables.items()
    ]


def draw_tables(tables: dict[str, Any], out: Path) -> list[Path]:
    """Draws the figures of the tables `agreement` and `systems`, and prints their paths."""
    import polars as pl

    from owkg.plots.judging import depth_figure, ranking_figure

    panel = pl.format("{}, density {}", "test_set", "density").alias("panel")
    taus = tables["agreement"].filter(pl.col("metric").is_in(_DRAWN), coefficient="tau")
    # One row of panels for each test set.
    taus = taus.sort("test_set", descending=True, maintain_order=True)
    columns = ["panel", "metric", "depth", "tau", "lower", "upper"]
    paths = depth_figure(
        taus.rename({"value": "tau"}).with_columns(panel).select(columns).fill_nan(None),
        out / f"{_STEM}_depth",
        xlabel="pool depth (0: the test set alone)",
        ylabel="Kendall's tau with the truth",
    )
    one = tables["systems"]
    nearest = min(one["density"].unique(), key=lambda density: abs(density - 0.75))
    deepest = int(one["depth"].max())
    sets = {0: "test set", 1: "depth 1", deepest: f"depth {deepest}", None: "truth"}
    own = one.filter(pl.col("metric").is_in(["mrr", "macro-mrr"]), density=nearest)
    shown = pl.concat(
        own.filter(pl.col("depth").eq_missing(depth)).with_columns(qrels=pl.lit(name))
        for depth, name in sets.items()
    ).with_columns(panel=pl.format("{}, {}", "metric", "test_set"))
    paths += ranking_figure(shown.select("panel", "qrels", "system", "value"), out / f"{_STEM}_rankings")
    for path in paths:
        print(f"wrote {path}")
    return paths


def _said(tables: dict[str, Any]) -> list[str]:
    """Summary of the tables, a line for each density and metric."""
    import polars as pl

    lines = []
    for (density, test_set), rows in tables["labels"].group_by("density", "test_set", maintain_order=True):
        share = {row["depth"]: row for row in rows.iter_rows(named=True)}
        deepest, where = max(share), f"d = {density:g}, {test_set}"
        lines.append(
            f"{where}: {share[0]['share']:.1%} of the answers are labelled; {share[deepest]['candidates']:,} "
            f"candidates to judge at depth {deepest} find {share[deepest]['labels'] - share[0]['labels']:,} "
            f"more, {share[deepest]['share']:.1%} in all"
        )
        own = tables["agreement"].filter(density=density, test_set=test_set, coefficient="tau")
        for metric in METRICS:
            by_depth = {row["depth"]: row for row in own.filter(metric=metric).iter_rows(named=True)}
            lines.append(
                f"{where}, {metric}: tau with the truth "
                + ", ".join(
                    f"{words} {_interval(by_depth[at])}"
                    for at, words in ((0, "alone"), (1, "depth 1"), (deepest, f"depth {deepest}"))
                    if at in by_depth
                )
            )
    moved = tables["left_out"].filter(pl.col("rank") != pl.col("rank_without"))
    lines.append(
        f"left out of the pool, {len(moved)} of {len(tables['left_out'])} systems, counted by metric, "
        "change their rank"
    )
    return lines


def _interval(row: dict[str, Any]) -> str:
    return f"{row['value']:.3f} [{row['lower']:.3f}, {row['upper']:.3f}]"


def _plain(table: Any) -> list[dict[str, Any]]:
    """Rows with the values that JSON cannot express replaced."""
    import polars.selectors as cs

    return table.with_columns(cs.float().fill_nan(None)).to_dicts()
