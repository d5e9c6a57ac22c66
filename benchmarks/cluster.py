"""Runs on local Dask workers compared with one process: the same tables, even though a worker is killed.

The runs are the `cpu` preset of `python -m simulations.yang2022 figure3`, shortened, on two worlds of
families: first one after another in one process, then on workers, one of which gets SIGKILL as soon as a
third of the runs is finished. Both tables are compared byte by byte. The limit of the speed-up is the number
of cores.

    python benchmarks/cluster.py --out out
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import polars as pl
import psutil
import typer

from owkg.files.storage import writable_folder
from owkg.terminal.tables import line
from simulations.script import Out, Quick, run_script, save_table

_TABLE = "figure3_sparse_vs_full.csv"
_MODELS = ("RotatE 64", "RotatE 32", "ComplEx 100", "ComplEx 16", "pRotatE 32", "TransE 64", "DistMult 64")


def command(preset: str, steps: int, out: Path, *more: str) -> list[str]:
    """Command line of a study."""
    program = [sys.executable, "-m", "simulations.yang2022", "figure3", "--preset", preset]
    return [*program, "--max-steps", str(steps), "--out", str(out), *more]


def run(words: list[str]) -> None:
    """Runs a command without its output."""
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)  # noqa: S603


def killed(process: subprocess.Popen, runs: Path, enough: int) -> bool:
    """Whether a worker was killed while the process ran, as soon as `enough` runs are finished."""
    while process.poll() is None:
        workers = [one for one in psutil.Process(process.pid).children(recursive=True) if _works(one)]
        if workers and len(list(runs.rglob("ranks.parquet"))) >= enough:
            os.kill(max(workers, key=lambda one: one.memory_info().rss).pid, signal.SIGKILL)
            process.wait()
            return True
        time.sleep(0.2)
    return False


def _works(process: psutil.Process) -> bool:
    """Whether a process trains; the other processes of Dask do not import JAX."""
    try:
        return any("jaxlib" in one.path for one in process.memory_maps())
    except psutil.Error:
        return False


def main(
    workers: Annotated[int, typer.Option(min=2)] = 2, out: Out = Path("out"), quick: Quick = False
) -> None:
    """Times a study in one process and on workers, one of which is killed, and compares the tables."""
    writable_folder(out)
    preset, steps, chosen = ("quick", 200, ()) if quick else ("cpu", 300, _MODELS)
    more = [part for label in chosen for part in ("--configuration", label)]
    enough = 1 if quick else 2 * len(_MODELS) // 3
    with TemporaryDirectory(prefix="owkg-benchmark-") as name:
        folder = Path(name)
        worlds = folder / "worlds"
        made = ["family-tree", "generate", str(folder / "families"), "--num-trees", "30"]
        sampled = ["sample", str(folder / "families" / "facts.tsv"), str(worlds), "--density", "0.95,0.75"]
        for words in (made, [*sampled, "--num-queries", "200"]):
            run([sys.executable, "-m", "owkg", *words])
        more += ["--worlds", str(worlds)]
        begin = time.perf_counter()
        run(command(preset, steps, folder / "one", *more))
        alone = time.perf_counter() - begin
        begin = time.perf_counter()
        process = subprocess.Popen(  # noqa: S603
            command(preset, steps, folder / "many", *more, "--workers", str(workers)),
            stdout=subprocess.DEVNULL,
        )
        was_killed = killed(process, folder / "many" / "runs", enough)
        together = time.perf_counter() - begin
        if process.returncode or not was_killed:
            raise ValueError(f"{folder}: the study ended with {process.returncode}, killed: {was_killed}.")
        same = (folder / "one" / _TABLE).read_bytes() == (folder / "many" / _TABLE).read_bytes()
        line(
            f"tables of one process and of {workers} workers, one killed: {'equal' if same else 'different'}"
        )
        times = alone / together
        line(f"one process {alone:.0f} s, {workers} workers {together:.0f} s: {times:.2f} times as fast")
        row = {"workers": workers, "one_process_s": alone, "workers_s": together, "times": times}
        save_table(
            pl.DataFrame([row | {"tables": "equal" if same else "different"}]), out / "cluster_speed.csv"
        )
    if not same:
        raise ValueError(f"{_TABLE}: differs between one process and {workers} workers.")


if __name__ == "__main__":
    run_script(main)
