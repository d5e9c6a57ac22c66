"""Losses of two processes with two devices each, compared with one process on one device; killed and resumed.

The runs are steps of `owkg train` on a random graph, with updates of whole tables and of rows. Devices are
virtual devices of the CPU; JAX connects the processes over localhost, and they exchange data by gloo. Every
run is made once undisturbed, and once killed (SIGKILL, all processes) and resumed. Resumed on as many
devices, it must end with exactly the same parameters; moved from two processes to one, its losses must agree
with the undisturbed run. The number of entities is not a multiple of the number of devices.

    python benchmarks/training_mesh.py --out out
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

# When this file is run as a script, its own name would hide the package.
sys.path[:] = [entry for entry in sys.path if Path(entry).absolute() != Path(__file__).parent]

import numpy as np
import polars as pl

from benchmarks.timing import machine
from owkg.files.storage import writable_folder
from owkg.kg import KnowledgeGraph
from owkg.kg.write import write_labelled
from owkg.train import load_run, saved_steps
from simulations.script import Out, Quick, run_script, save_table

_ROOT = Path(__file__).parents[1]
_ENTITIES, _RELATIONS = 1001, 7
_SETTINGS = {
    "model": "complex",
    "dim": 16,
    "training-loop": "negatives",
    "loss": "self_adversarial",
    # With one fact for each entity, an epoch is one step, so that the path of a run has the loss of every
    # step.
    "batch-size": 2004,
    "num-negatives": 8,
    "valid-every": 0,
    "checkpoint-every": 1,
}
_LIMIT_S = 600


class Hosts(NamedTuple):
    """Processes that train together, and the devices of each."""

    processes: int
    devices: int


ALONE, TOGETHER = Hosts(1, 1), Hosts(2, 2)


def started(hosts: Hosts, graph: Path, out: Path, settings: dict[str, Any]) -> list[subprocess.Popen[str]]:
    """Starts the processes of an `owkg train`, which resumes if `out` exists."""
    flags = f"--xla_force_host_platform_device_count={hosts.devices}"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(_ROOT)}
    options = [text for name, value in settings.items() for text in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "owkg", "train", str(graph), "--out", str(out)]
    command += ["--resume"] if out.exists() else options
    if hosts.processes > 1:
        command += ["--coordinator", f"localhost:{_free_port()}", "--num-processes", str(hosts.processes)]
    found = []
    for number in range(hosts.processes):
        own = ["--process-id", str(number)] if hosts.processes > 1 else []
        process = subprocess.Popen(  # noqa: S603
            command + own, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        found.append(process)
    return found


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return free.getsockname()[1]


def finished(processes: Sequence[subprocess.Popen[str]]) -> None:
    """Waits until all processes have ended without an error.

    Raises:
        ValueError: if a process fails, with its error output.
    """
    try:
        for process in processes:
            _, errors = process.communicate(timeout=_LIMIT_S)
            if process.returncode:
                raise ValueError(f"owkg train ended with {process.returncode}: {errors[-500:]}")
    finally:
        killed(processes)


def killed(processes: Sequence[subprocess.Popen[str]]) -> None:
    """Kills the processes, as if the machine had failed."""
    for process in processes:
        process.kill()
    for process in processes:
        process.communicate()


def killed_at(step: int, processes: Sequence[subprocess.Popen[str]], out: Path) -> int:
    """Kills the processes once `out` has a checkpoint of `step`; returns the newest checkpoint it has then.

    Raises:
        ValueError: if a process ends by itself before.
    """
    try:
        while not (steps := saved_steps(out)) or steps[-1] < step:
            if any(process.poll() for process in processes):
                raise ValueError(f"owkg train ended: {[p.communicate()[1][-500:] for p in processes]}")
            time.sleep(0.01)
    finally:
        killed(processes)
    return saved_steps(out)[-1]


def losses(run: Path) -> np.ndarray:
    """Loss of every step of a run."""
    return pl.read_parquet(run / "path.parquet")["loss"].to_numpy()


def difference(run: Path, other: Path) -> float:
    """Largest relative difference between the losses of two runs at a step."""
    one, two = losses(run), losses(other)
    return float(np.max(np.abs(one - two) / np.abs(two)))


def same_bits(run: Path, other: Path) -> bool:
    """Whether two runs ended with the same parameters."""
    one, two = (load_run(folder, step="last").trained.params for folder in (run, other))
    return all(np.array_equal(one[name], two[name]) for name in two)


def graph_of_one_fact_each() -> KnowledgeGraph:
    """Graph with one fact for every entity, with random relation and tail."""
    rng = np.random.default_rng(0)
    columns = np.arange(_ENTITIES), rng.integers(_RELATIONS, size=_ENTITIES), rng.permutation(_ENTITIES)
    entities, relations = (
        tuple(f"{kind}{i}" for i in range(n)) for kind, n in (("e", _ENTITIES), ("r", _RELATIONS))
    )
    return KnowledgeGraph(entities, relations, {"train": np.stack(columns, axis=1).astype(np.int32)})


def compared(updates: str, steps: int, folder: Path) -> list[dict[str, Any]]:
    """Rows that compare each run with an undisturbed run of one process on one device."""
    place = folder / "graph"
    write_labelled(graph_of_one_fact_each(), place)
    settings = _SETTINGS | {"steps": steps, "updates": updates}
    alone, together = folder / "alone", folder / "together"
    for hosts, out in ((ALONE, alone), (TOGETHER, together)):
        finished(started(hosts, place, out, settings))
    rows = [_row(updates, TOGETHER, None, together, alone, None)]
    cases = ((ALONE, ALONE, alone), (TOGETHER, TOGETHER, together), (TOGETHER, ALONE, None))
    for i, (hosts, then, undisturbed) in enumerate(cases):
        out = folder / f"killed{i}"
        at = killed_at(2 * steps // 5, started(hosts, place, out, settings), out)
        finished(started(then, place, out, settings))
        rows.append(_row(updates, hosts, (at, then), out, alone, undisturbed))
        shutil.rmtree(out)
    return rows


def _row(
    updates: str, hosts: Hosts, resumed: tuple[int, Hosts] | None, run: Path, alone: Path, whole: Path | None
) -> dict[str, Any]:
    def words(hosts: Hosts) -> str:
        return f"{hosts.processes} x {hosts.devices}"

    return {
        "updates": updates,
        "processes_x_devices": words(hosts),
        "killed_after_step": None if resumed is None else resumed[0],
        "resumed_on": None if resumed is None else words(resumed[1]),
        "steps": len(losses(run)),
        "last_loss": float(losses(run)[-1]),
        "largest_relative_difference": difference(run, alone),
        "bits_of_undisturbed": None if whole is None else same_bits(run, whole),
    }


def main(out: Out = Path("out"), quick: Quick = False) -> None:
    """Measures, prints and saves."""
    writable_folder(out)
    print(machine())
    rows = []
    for updates in ("dense", "rows"):
        with tempfile.TemporaryDirectory() as folder:
            for row in compared(updates, 20 if quick else 100, Path(folder)):
                print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)
                rows.append(row)
    save_table(pl.from_dicts(rows), out / "training_mesh.csv")


if __name__ == "__main__":
    run_script(main)
