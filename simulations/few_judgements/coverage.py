"""Coverage and width for every world, kind of missing answers, design and size."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import polars as pl
import typer

from owkg.files.parquet import read_parquet
from owkg.files.storage import writable_folder, written_aside
from owkg.plots.figure import COLOURS, figure
from owkg.terminal.progress import progress
from simulations.few_judgements.replays import DESIGNS, replayed, sizes_of
from simulations.few_judgements.worlds import KINDS, WORLDS, world
from simulations.script import Out, Quick, Seed, save_figure, save_table

# In the popular world, answers are already missing by popularity.
SETTINGS = [
    *((name, "edge") for name in WORLDS),
    *(("clustered", kind) for kind in KINDS if kind not in ("edge", "popularity")),
]
QUERIES, CANDIDATES = (20, 50, 100, 400), (100, 200, 400, 800)
_BLOCK = 250  # replays after which results are saved


class Setting(NamedTuple):
    """The replays that belong together: world, kind of missing answers, design and size."""

    world: str
    missing: str
    queries: int
    design: str
    drawn: int

    @property
    def name(self) -> str:
        """Name of the setting's file."""
        return "-".join(str(part).replace(" ", "_").replace(",", "") for part in self)


def settings(quick: bool) -> list[Setting]:
    """All settings, the smallest first."""
    found = []
    for name, kind in SETTINGS[:1] + SETTINGS[-1:] if quick else SETTINGS:
        for size in (300,) if quick else (300, 2000):
            made = world(name, kind, queries=size)
            for design in DESIGNS:
                drawn = ((50,), (200,)) if quick else (QUERIES, CANDIDATES)
                found += [Setting(name, kind, size, design, n) for n in sizes_of(design, made, *drawn)]
    return sorted(found, key=lambda one: (one.queries * one.drawn, *one))


class _Task(NamedTuple):
    """A block of replays, and the file that keeps it."""

    setting: Setting
    seed: int
    block: int
    replays: int
    file: Path


def found_in(folder: Path, of: list[Setting], replays: int, seed: int, workers: int = 1) -> pl.DataFrame:
    """Rows of all settings, replayed in blocks; blocks that the folder already has are read."""
    tasks = [
        _Task(
            one,
            seed,
            block,
            min(_BLOCK, replays - block * _BLOCK),
            folder / f"{one.name}-{seed}-{block}.parquet",
        )
        for block in range(-(-replays // _BLOCK))
        for one in of
    ]
    left = [task for task in tasks if not _holds(task.file, task.replays)]
    done = len(tasks) - len(left)
    with progress("replays", "blocks") as told, ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for _ in pool.map(_replay, left) if workers > 1 else map(_replay, left):
            told(done := done + 1, len(tasks))
    return together(pl.concat([read_parquet(task.file) for task in tasks]))


def _file(folder: Path, one: Setting, seed: int, block: int) -> Path:
    return folder / f"{one.name}-{seed}-{block}.parquet"


def _replay(task: _Task) -> None:
    one = task.setting
    made = world(one.world, one.missing, queries=one.queries, seed=task.seed)
    rows = replayed(DESIGNS[one.design](made, one.drawn), task.replays, task.seed * 1000 + task.block)
    said = {name: pl.lit(value) for name, value in one._asdict().items()}
    with written_aside(task.file) as aside:
        rows.select(**said, **{name: pl.col(name) for name in rows.columns}).write_parquet(aside)


def _holds(file: Path, replays: int) -> bool:
    return file.is_file() and read_parquet(file)["replays"][0] == replays


def together(blocks: pl.DataFrame) -> pl.DataFrame:
    """Merges the blocks of one setting into one row; medians become the mean of the medians."""
    weight = pl.col("replays") / pl.col("replays").sum()
    keys = [*Setting._fields, "metric", "target"]
    means = {name: (pl.col(name) * weight).sum() for name in ("coverage", "width", "judgements")}
    return blocks.group_by(keys, maintain_order=True).agg(
        truth=pl.col("truth").first(),
        **means,
        plain=pl.when(pl.col("plain").is_not_null().all()).then((pl.col("plain") * weight).sum()),
        replays=pl.col("replays").sum(),
    )


def summary(rows: pl.DataFrame) -> pl.DataFrame:
    """Summary by design, target and size: mean, tenth percentile and minimum of coverage; relative width."""
    kind = pl.when(pl.col("target").str.contains("-")).then(pl.lit("difference")).otherwise(pl.lit("single"))
    return (
        rows.group_by("design", kind.alias("of"), "drawn", maintain_order=True)
        .agg(
            coverage=pl.col("coverage").mean(),
            tenth=pl.col("coverage").quantile(0.1),
            least=pl.col("coverage").min(),
            ratio=(pl.col("width") / pl.col("plain")).median(),
            judgements=pl.col("judgements").mean(),
            rows=pl.len(),
        )
        .sort("design", "of", "drawn", descending=[False, True, False])
    )


def draw(rows: pl.DataFrame, out: Path) -> list[Path]:
    """Plots coverage against size, and width against judgements, by design."""
    single = rows.filter(~pl.col("target").str.contains("-"), queries=rows["queries"].max())
    with figure(1, 2, (8, 3.2)) as (fig, (left, right)):
        for colour, design in zip(COLOURS, DESIGNS, strict=False):
            of = summary(rows).filter(design=design)
            for kind, style in (("single", "-"), ("difference", "--")):
                part = of.filter(pl.col("of") == kind)
                if len(part):
                    label = design + (" (differences)" if kind == "difference" else "")
                    left.plot(
                        part["drawn"], part["coverage"], f"o{style}", ms=3, lw=1, color=colour, label=label
                    )
        left.axhline(0.95, color="grey", lw=0.8)
        left.set(xlabel="drawn units", ylabel="coverage of 95 % intervals", xscale="log", ylim=(0.85, 1))
        _ticks(left.xaxis, [20, 50, 100, 200, 400, 800])
        left.legend(fontsize=6)
        shown: list[tuple[str, str, str]] = [
            ("queries", "RR@10", "-"),
            ("prefixes", "RR@10", "-"),
            ("queries", "P@10", "--"),
            ("candidates", "P@10", "--"),
        ]
        for colour, (design, metric, style) in zip(COLOURS, shown, strict=False):
            part = single.filter(design=design, metric=metric)
            if len(part):
                part = part.group_by("drawn").agg(pl.col("judgements", "width").mean()).sort("drawn")
                label = f"{metric}, {design}"
                right.plot(
                    part["judgements"], part["width"], f"o{style}", ms=3, lw=1, color=colour, label=label
                )
        right.set(xlabel="judgements", ylabel="width of the interval", xscale="log", yscale="log")
        _ticks(right.xaxis, [100, 300, 1000, 3000, 10_000])
        _ticks(right.yaxis, [0.02, 0.05, 0.1, 0.2])
        right.legend(fontsize=6)
        return save_figure(fig, out / "few_judgements")


def _ticks(axis: Any, at: list[float]) -> None:
    """Ticks of a logarithmic axis, as plain numbers."""
    axis.set_ticks(at, labels=[f"{one:g}" for one in at])
    axis.set_ticks([], minor=True)


def shown(frame: pl.DataFrame, **more: Any) -> None:
    """Prints a whole table."""
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=120, float_precision=3,
                   tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True, **more):  # fmt: skip
        print(frame)


def coverage(
    *,
    replays: Annotated[
        int, typer.Option(min=1, help="Number of draws of each setting; 60 with --quick.")
    ] = 2000,
    workers: Annotated[
        int, typer.Option(min=1, help="Number of processes that replay at the same time.")
    ] = 1,
    quick: Quick = False,
    seed: Seed = 0,
    out: Out = Path("out"),
) -> None:
    """Coverage and width of all designs, in four worlds and five kinds of missing answers.

    Blocks of 250 draws are kept in OUT/few_judgements. If the command is interrupted, run it again and it
    resumes.
    """
    folder = writable_folder(out) / "few_judgements"
    folder.mkdir(exist_ok=True)
    rows = found_in(folder, settings(quick), min(replays, 60) if quick else replays, seed, workers)
    save_table(rows, out / "few_judgements.csv")
    shown(summary(rows))
    draw(rows, out)
