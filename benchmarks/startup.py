"""Start-up of the command: whole seconds of small commands, compared with a bare Python and `import jax`.

python benchmarks/startup.py --out out
"""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from benchmarks.timing import machine
from owkg.files.storage import writable_folder
from simulations.script import Out, Quick, run_script, save_table

_INPUT = Path(__file__).parents[1] / "tests" / "golden" / "input"
_SETTING = "--strength 0.7 --sparsity 0.35 --num-answers 43 --num-entities 14505"
# As for users: bytecode of earlier imports is kept.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
# The command line, or the arguments of Python, and the wanted seconds.
COMMANDS = {
    "python": ("-c pass", None),
    "import jax": ("-c import~jax", None),
    "import owkg": ("-c import~owkg", 0.1),
    "owkg --help": ("-m owkg --help", 0.3),
    "owkg metrics --help": ("-m owkg metrics --help", 0.3),
    "owkg kg info": ("-m owkg kg info {input}/graph", 0.8),
    "owkg metrics, five metrics": (
        "-m owkg metrics {input}/oracle.csv --metric mrr,hits@10,amri,gmr,macro-map@20",
        0.8,
    ),
    "owkg metrics, all of them": ("-m owkg metrics {input}/oracle.csv", 0.8),
    "owkg pool": (
        "-m owkg pool {input}/one.run {input}/two.run --depth 3 --kg {input}/graph "
        "--out {out}/pool --overwrite",
        0.8,
    ),
    "owkg family-tree generate": (
        "-m owkg family-tree generate {out}/families --num-trees 2 --max-tree-size 8 --overwrite",
        0.8,
    ),
    "owkg compare": ("-m owkg compare {input}/oracle.csv {input}/random.csv", 0.8),
    "owkg theory": (f"-m owkg theory {_SETTING}", None),
}


def seconds(line: str, out: Path, times: int) -> float:
    """Median seconds of several runs; the first run is not counted."""
    arguments = [part.replace("~", " ").format(input=_INPUT, out=out) for part in line.split()]
    taken = []
    for _ in range(times + 1):
        start = time.perf_counter()
        command = [sys.executable, *arguments]
        subprocess.run(command, check=True, capture_output=True, env=_ENVIRONMENT)  # noqa: S603
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])


def main(out: Out = Path("out"), quick: Quick = False) -> None:
    """Times commands on small input, including start-up."""
    writable_folder(out)
    print(machine())
    with TemporaryDirectory() as folder:
        rows = [
            {"what": name, "seconds": seconds(line, Path(folder), 1 if quick else 5), "wanted": wanted}
            for name, (line, wanted) in COMMANDS.items()
        ]
    table = pl.DataFrame(rows, schema_overrides={"wanted": pl.Float64})
    jax = table.filter(what="import jax")["seconds"].item()
    table = table.with_columns(times_import_jax=pl.col("seconds") / jax)
    with pl.Config(tbl_rows=-1, fmt_str_lengths=60, tbl_hide_dataframe_shape=True):
        print(table)
    save_table(table, out / "benchmark_startup.csv")


if __name__ == "__main__":
    run_script(main)
