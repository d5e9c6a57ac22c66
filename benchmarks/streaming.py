"""Ranks that do not fit in memory: `owkg metrics` of a dataset, compared with a table in memory.

The dataset is many Parquet files, and each query has ranks in all of them. The table is made of the first
files, joined into one. The time for each row of the dataset is compared with the time for each row of the
table, and the printed metrics of these first files with the printed metrics of the table.

    python benchmarks/streaming.py --out out

The script writes 3 GB of ranks, and twice as much while it reads them, into the folder that TMPDIR names.
"""

import csv
import io
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from benchmarks.metrics import drawn_ranks
from benchmarks.timing import machine, measured_command
from owkg.files.storage import writable_folder
from simulations.script import Out, Quick, run_script, save_table

# Promises: peak memory in GiB, time for each row relative to memory, relative difference of the metrics.
MOST_MEMORY, MOST_TIME, MOST_DIFFERENCE = 2.0, 1.5, 1e-12
_ENTITIES, _RELATIONS = 100_000, 237


@dataclass(frozen=True)
class Config:
    """Numbers of rows and files."""

    rows: int = 100_000_000
    files: int = 20
    files_in_memory: int = 2


def rank_file(number: int, files: int, rows: int) -> pl.DataFrame:
    """Ranks of one file: both sides of random triples whose tails no other file has; with labels.

    Args:
        number: number of the file.
        files: number of files.
        rows: number of rows; a few less are made, because no triple appears twice.
    """
    rng = np.random.default_rng(number)
    count = rows // 2
    triples = pl.DataFrame(
        {
            "head": (_ENTITIES * rng.random(count) ** 2).astype(np.int64),
            "relation": rng.integers(0, _RELATIONS, count),
            "tail": rng.integers(0, _ENTITIES // files, count) * files + number,
        }
    ).unique(maintain_order=True)
    sides = pl.concat([triples.with_columns(side=pl.lit(side)) for side in ("head", "tail")])
    known = pl.when(side="head").then("tail").otherwise("head")
    most = (_ENTITIES - sides.select(known % 1500).to_series()).to_numpy()
    low, high, _, _ = drawn_ranks(len(sides), seed=number)
    names = {name: pl.format("e{}", name) for name in ("head", "tail")}
    return sides.with_columns(
        **names,
        relation=pl.format("r{}", "relation"),
        optimistic=np.minimum(low, most),
        pessimistic=np.minimum(high, most),
        candidates=most,
    ).cast(dict.fromkeys(("head", "relation", "tail", "side"), pl.Categorical))


def metrics_of(source: Path, form: str) -> tuple[str, float, float]:
    """(output of `owkg metrics` for a file or a folder, seconds, peak memory in GiB)."""
    return measured_command([sys.executable, "-m", "owkg", "metrics", str(source), "--format", form])


def largest_difference(one: str, other: str) -> float:
    """Largest relative difference between two CSV tables that agree in everything but numbers."""
    worst = 0.0
    rows = [list(csv.reader(io.StringIO(text))) for text in (one, other)]
    for left, right in zip(*rows, strict=True):
        for a, b in zip(left, right, strict=True):
            if a != b:
                x, y = float(a), float(b)
                worst = max(worst, abs(x - y) / max(abs(x), abs(y)))
    return worst


def run(config: Config, folder: Path) -> pl.DataFrame:
    """The table: what, rows, seconds, microseconds for a row, peak memory, and the promised values."""
    ranks, first = folder / "ranks", folder / "first"
    ranks.mkdir()
    first.mkdir()
    total, within = 0, []
    for number in range(config.files):
        table = rank_file(number, config.files, config.rows // config.files)
        table.write_parquet(ranks / f"part-{number:03}.parquet")
        total += len(table)
        if number < config.files_in_memory:
            (first / f"part-{number:03}.parquet").symlink_to(ranks / f"part-{number:03}.parquet")
            within.append(table)
    whole = pl.concat(within)
    del within
    whole.write_parquet(folder / "whole.parquet")
    few = len(whole)
    del whole
    rows = []
    for what, source, count in (
        ("in memory, one file", folder / "whole.parquet", few),
        ("a dataset of these rows", first, few),
        ("a dataset", ranks, total),
    ):
        for form in ("table", "csv") if count == few else ("table",):
            printed, seconds, peak = metrics_of(source, form)
            shown = what if form == "table" else f"{what}, all sides and tie rules"
            rows.append((shown, count, seconds, seconds / count * 1e6, peak, printed))
    by_name = {row[0]: row for row in rows}
    memory, data = by_name["in memory, one file"], by_name["a dataset"]
    everywhere = ", all sides and tie rules"
    difference = largest_difference(
        by_name[f"in memory, one file{everywhere}"][-1], by_name[f"a dataset of these rows{everywhere}"][-1]
    )
    print(f"largest relative difference: {difference:.2g} (at most {MOST_DIFFERENCE:g})")
    print(f"peak memory: {data[4]:.2f} GiB (at most {MOST_MEMORY:g})")
    print(f"time for a row, relative to memory: {data[3] / memory[3]:.2f} (at most {MOST_TIME:g})")
    columns = ["what", "rows", "seconds", "microseconds_a_row", "peak_gib"]
    return pl.DataFrame([row[:-1] for row in rows], schema=columns, orient="row")


def main(out: Out = Path("out"), quick: Quick = False) -> None:
    """Times `owkg metrics` of datasets, and writes the table."""
    writable_folder(out)
    print(machine())
    with TemporaryDirectory(prefix="owkg-benchmark-") as folder:
        table = run(Config(rows=1_000_000) if quick else Config(), Path(folder))
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=160, fmt_str_lengths=60,
                   tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True):  # fmt: skip
        print(table)
    save_table(table, out / "benchmark_streaming.csv")


if __name__ == "__main__":
    run_script(main)
