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
# Wanted seconds of help, and of commands that need no JAX; others are compared with `import jax`.
_HELP, _SMALL = 0.25, 0.6
# The command line, or the arguments of Python, and the wanted seconds.
COMMANDS = {
    "python": ("-c pass", None),
    "import jax": ("-c import~jax", None),
    "import owkg": ("-c import~owkg", 0.1),
    "owkg --help": ("-m owkg --help", _HELP),
    "owkg metrics --help": ("-m owkg metrics --help", _HELP),
    "owkg kg info": ("-m owkg kg info {input}/graph", _SMALL),
    "owkg metrics, five metrics": (
        "-m owkg metrics {input}/oracle.csv --metric mrr,hits@10,amri,gmr,macro-map@20",
        _SMALL,
    ),
    "owkg metrics, all of them": ("-m owkg metrics {input}/oracle.csv", _SMALL),
    "owkg chance": ("-m owkg chance {input}/graph", _SMALL),
    "owkg ir": ("-m owkg ir {input}/one.run --qrels {input}/judgements.qrels", _SMALL),
    "owkg pool": (
        "-m owkg pool {input}/one.run {input}/two.run --depth 3 --kg {input}/graph "
        "--out {out}/pool --overwrite",
        _SMALL,
    ),
    "owkg family-tree generate": (
        "-m owkg family-tree generate {out}/families --num-trees 2 --max-tree-size 8 --overwrite",
        _SMALL,
    ),
    "owkg compare": ("-m owkg compare {input}/oracle.csv {input}/random.csv", _SMALL),
    "owkg stability": ("-m owkg stability {input}/oracle.csv {input}/random.csv", None),
    "owkg theory": (f"-m owkg theory {_SETTING}", None),
    "owkg power": (f"-m owkg power {_SETTING} --other-strength 0.75", None),
    "owkg models": ("-m owkg models", None),
    "owkg simulate": (f"-m owkg simulate {_SETTING} --trials 1000", None),
    "owkg audit": ("-m owkg audit {input}/oracle.csv {input}/random.csv", None),
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
