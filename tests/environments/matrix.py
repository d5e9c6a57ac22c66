"""Every command in every environment: right numbers, or one line that says what is wrong.

`python tests/environments/matrix.py` runs all cells, which takes half an hour, and writes the table of
docs/evidence/environments.md. `test_environments.py` runs some of them.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from safetensors.numpy import load_file

ROOT = Path(__file__).parents[2]
INPUT = ROOT / "tests" / "golden" / "input"
PAGE = ROOT / "docs" / "evidence" / "environments.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of the table -->"

SETTING = "--sparsity 0.35 --num-answers 5 --num-entities 50"
# What a cell writes goes to OUT; what it prints is compared with what it prints in an ordinary environment.
COMMANDS = {
    "help": "train --help",
    "theory": f"theory --strength 0.7 {SETTING} --missing node --format json",
    "theory (a grid)": "theory --strength 0.7 --sparsity 0.35 --num-answers 12:300,43:200,60:10 "
    "--num-entities 14505 --missing popularity --format json",
    "simulate": f"simulate --strength 0.7 {SETTING} --trials 64 --format json",
    "power": f"power --strength 0.7 --other-strength 0.75 {SETTING} --format json",
    "metrics": "metrics oracle.csv random.csv --kg graph --by side --format json",
    "metrics (figures)": "metrics oracle.csv --metric mrr --figures OUT --format json",
    "chance": "chance graph --metric mrr,hits@10 --format json",
    "train": "train graph --model distmult --dim 4 --epochs 2 --valid-every 1 --out OUT/run --format json",
    "train (negatives)": "train graph --model transe --dim 4 --epochs 2 --out OUT/run --format json",
    "train (workers)": "train graph --model distmult --dim 4 --epochs 1 --seeds 0,1 --workers 2 "
    "--out OUT/runs --format json",
    "rank": "rank run --split test --score --out OUT/r.csv --format json",
    "rank (embeddings)": "rank --embeddings embeddings.npz --kg graph --out OUT/r.csv --format json",
    "classify": "classify run --negatives uniform --out OUT/scored.csv --format json",
    "align": "align pairs --dim 4 --steps 12 --out OUT/r.csv --assign --format json",
    "pool": "pool one.run two.run --depth 5 --kg graph --out OUT/pool --truth valid --format json",
    "pool (drawn)": "pool one.run two.run --depth 5 --kg graph --draw candidates:24 --out OUT/drawn "
    "--format json",
    "estimate": "estimate --pool drawn --judged filled.tsv --metric rr,ap,mrr --format json",
    "accept": "accept one.run --kg graph --precision 0.3 --size 60 --sheet OUT/sheet.tsv --format json",
    "missing": "missing judgements.qrels --kg graph --format json",
    "audit": "audit random.csv frequency.csv oracle.csv --metric mrr --sparsity 0.2,0.4 "
    "--report OUT/audit.html --format json",
    "ir": "ir one.run --qrels full.qrels --format json",
    "compare": "compare random.csv frequency.csv oracle.csv --qrels full.qrels --metric mrr --format json",
    "stability": "stability random.csv oracle.csv --metric mrr --draws 20 --size 0.5 --format json",
    "conformance": "conformance --format json",
    "family-tree": "family-tree generate OUT/families --num-trees 2 --max-tree-size 8 --format json",
    "sample": "sample facts.tsv OUT/benchmark --density 0.75 --min-answers 2 --num-queries 10 --format json",
    "kg info": "kg info graph --format json",
    "ranks convert": "ranks convert scores.npz --kg graph --score --out OUT/r.parquet",
    "models": "models --format json",
    "example": "example OUT/example --format json",
    "family-tree close": "family-tree close --people families/people.tsv --parents families/parents.tsv "
    "OUT/closed",
    "family-tree draw": "family-tree draw families --tree 1 --out OUT/family.svg",
    "family-tree relations": "family-tree relations published --format markdown",
    "family-tree verify": "family-tree verify families",
    "kg sample": "kg sample graph OUT/sample --share 0.5 --format json",
    "ranks filtered": "ranks filtered visits_scores.npz visits_asked.csv --known visits.csv --key time "
    "--out OUT/r.csv --format json",
    "ranks generated": "ranks generated answers.jsonl --kg graph --out OUT/r.parquet --format json",
    "rules": "rules graph --out OUT/rules --format json",
    "rules explain": "rules explain mined --query e02|many_to_one_1|?",
}
# Made once, in an ordinary environment, for the commands above.
MADE = (
    "train graph --model distmult --dim 4 --epochs 1 --out run",
    "family-tree generate families --num-trees 3 --max-tree-size 10 --seed 1",
    "pool one.run two.run --depth 5 --kg graph --draw queries:22 --seed 3 --out drawn",
    "rules graph --out mined",
)
# Differ from run to run.
_VOLATILE = {
    "notes",
    "seconds",
    "examples_per_s",
    "versions",
    "written",
    "created",
    "sha256",
    "machine",
    "wall_s",
}


class Environment(NamedTuple):
    """Where a command runs.

    Attributes:
        about: what is unusual there.
        variables: of the environment; None: not set.
        through: what runs the command, whose words are "$@".
        python: options of the interpreter.
        silent: whether what it prints cannot be seen, so that only its exit code and files count.
    """

    about: str
    variables: dict[str, str | None] = {}  # noqa: RUF012
    through: str = '"$@"'
    python: tuple[str, ...] = ()
    silent: bool = False


def _of(name: str, value: str, about: str) -> Environment:
    return Environment(f"`{name}={value}`: {about}", {name: value})


ENVIRONMENTS = {
    "x64": _of("JAX_ENABLE_X64", "1", "JAX computes in double precision"),
    "promotion": Environment(
        "`JAX_NUMPY_DTYPE_PROMOTION=strict JAX_NUMPY_RANK_PROMOTION=raise`: JAX mixes no types or ranks",
        {"JAX_NUMPY_DTYPE_PROMOTION": "strict", "JAX_NUMPY_RANK_PROMOTION": "raise"},
    ),
    "cuda": _of("JAX_PLATFORMS", "cuda", "a GPU that is not there"),
    "bogus platform": _of("JAX_PLATFORMS", "bogus", "a platform that JAX does not know"),
    "platform name": _of("JAX_PLATFORM_NAME", "gpu", "a GPU that is not there"),
    "default device": _of("JAX_DEFAULT_DEVICE", "gpu", "a GPU that is not there"),
    "transfer guard": _of("JAX_TRANSFER_GUARD", "disallow", "JAX refuses implicit copies to the device"),
    "nans": Environment(
        "`JAX_DEBUG_NANS=1 JAX_DEBUG_INFS=1`: JAX stops at NaN and infinity",
        {"JAX_DEBUG_NANS": "1", "JAX_DEBUG_INFS": "1"},
    ),
    "no jit": _of("JAX_DISABLE_JIT", "1", "JAX compiles nothing"),
    "draws": Environment(
        "`JAX_THREEFRY_PARTITIONABLE=0 JAX_DEFAULT_PRNG_IMPL=rbg`: JAX draws other numbers",
        {"JAX_THREEFRY_PARTITIONABLE": "0", "JAX_DEFAULT_PRNG_IMPL": "rbg"},
    ),
    "cache": Environment(
        "`JAX_COMPILATION_CACHE_DIR=/proc/none JAX_LOG_COMPILES=1`: no cache, and a log",
        {"JAX_COMPILATION_CACHE_DIR": "/proc/none", "JAX_LOG_COMPILES": "1"},
    ),
    "xla flags": _of("XLA_FLAGS", "--bogus", "an option that XLA does not know"),
    "device memory": _of("XLA_PYTHON_CLIENT_MEM_FRACTION", "2", "more than a device has"),
    "no threads": _of("POLARS_MAX_THREADS", "0", "polars has no threads"),
    "no OMP threads": _of("OMP_NUM_THREADS", "0", "libraries of linear algebra have no threads"),
    "no TMPDIR": Environment(
        "`TMPDIR=/proc/none POLARS_TEMP_DIR=/proc/none`: folders that cannot be made",
        {"TMPDIR": "/proc/none", "POLARS_TEMP_DIR": "/proc/none"},
    ),
    "no HOME": Environment("`HOME` is not set", {"HOME": None}),
    "HOME elsewhere": Environment(
        "`HOME=/proc MPLCONFIGDIR=/proc/none`: folders that cannot be written",
        {"HOME": "/proc", "MPLCONFIGDIR": "/proc/none"},
    ),
    "MPLBACKEND": _of("MPLBACKEND", "bogus", "a backend that matplotlib does not know"),
    "ASCII": Environment(
        "`LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0`: a terminal of ASCII letters",
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"},
    ),
    "width": Environment(
        "`COLUMNS=1 TERM=dumb NO_COLOR=1 TZ=Asia/Kathmandu PYTHONHASHSEED=7`",
        {"COLUMNS": "1", "TERM": "dumb", "NO_COLOR": "1", "TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "7"},
    ),
    "warnings": _of("PYTHONWARNINGS", "error", "warnings of Python are errors"),
    "optimised": Environment("`python -OO`: no docstrings, no assertions", python=("-OO",)),
    "stdin closed": Environment("standard input is closed", through='"$@" <&-'),
    "stdout closed": Environment("standard output is closed", through='"$@" >&-', silent=True),
    "stderr closed": Environment("standard error is closed", through='"$@" 2>&-'),
    "stdout full": Environment("standard output is a full disk", through='"$@" >/dev/full', silent=True),
    "stdout unread": Environment(
        "standard output is a pipe that nobody reads",
        through='set -o pipefail; "$@" | sleep 0; exit ${PIPESTATUS[0]}',
        silent=True,
    ),
    "folder gone": Environment(
        "the current folder has been removed", through='mkdir OUT/gone; cd OUT/gone; rmdir ../gone; "$@"'
    ),
    "64 files": Environment("`ulimit -n 64`: 64 open files", through='ulimit -n 64; "$@"'),
    "700 MB": Environment("`ulimit -v 700000`: 0.7 GB of memory", through='ulimit -v 700000; "$@"'),
    "3 GB": Environment("`ulimit -v 3000000`: 3 GB of memory", through='ulimit -v 3000000; "$@"'),
}


class Outcome(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str
    files: dict[str, Any]


def prepared(folder: Path, *, made: bool = True) -> Path:
    """`folder`, filled with the inputs of all commands; without those that commands make, if not `made`."""
    shutil.copytree(INPUT, folder, dirs_exist_ok=True)
    _pairs(folder / "pairs")
    if not made:
        return folder
    for line in MADE:
        done = subprocess.run(_command(line), cwd=folder, env=environ({}), capture_output=True, text=True)
        if done.returncode:
            raise ValueError(f"{line}: {done.stderr}")
    shutil.copy(folder / "families" / "facts.tsv", folder)
    _embeddings(folder)
    head, *rows = (folder / "drawn" / "sheet.tsv").read_text().splitlines()
    labelled = [f"{row.rsplit(chr(9), 2)[0]}\t{i % 2}\t" for i, row in enumerate(rows)]
    (folder / "filled.tsv").write_text("\n".join([head, *labelled]) + "\n")
    return folder


def _embeddings(folder: Path) -> None:
    code = (
        "import numpy as np, owkg\n"
        "g = owkg.read_graph('graph'); r = np.random.default_rng(0)\n"
        "e, r = (r.normal(size=(n, 4)).astype('f4') for n in (g.num_entities, g.num_relations))\n"
        "labels = {'entity_labels': np.array(g.entities), 'relation_labels': np.array(g.relations)}\n"
        "np.savez('embeddings.npz', model='distmult', entity=e, relation=r, **labels)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=folder, env=environ({}), check=True)


def _pairs(folder: Path) -> None:
    """Two small graphs in the layout of DBP15k."""
    folder.mkdir()
    for number, first in ((1, 0), (2, 100)):
        ids = range(first, first + 20)
        (folder / f"ent_ids_{number}").write_text("".join(f"{i}\te{i}\n" for i in ids))
        facts = {(first + i % 20, i % 3, first + (i * i + 1) % 20) for i in range(60)}
        (folder / f"triples_{number}").write_text("".join(f"{h}\t{r}\t{t}\n" for h, r, t in sorted(facts)))
    (folder / "ref_ent_ids").write_text("".join(f"{i}\t{i + 100}\n" for i in range(20)))


def _command(line: str, python: Iterable[str] = ()) -> list[str]:
    return [sys.executable, *python, "-m", "owkg", *line.split()]


def environ(variables: dict[str, str | None]) -> dict[str, str]:
    """The environment of a command, without the variables that are None."""
    usual = {"PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg", "COLUMNS": "120"}
    return {name: value for name, value in (os.environ | usual | variables).items() if value is not None}


def outcome(folder: Path, name: str, where: Environment | None = None) -> Outcome:
    """What a command does in an environment (None: an ordinary one), with the inputs in `folder`."""
    where = where or Environment("")
    with tempfile.TemporaryDirectory() as out:
        words = [word.replace("OUT", out) for word in COMMANDS[name].split()]
        words = [str(folder / word) if (folder / word).exists() else word for word in words]
        command = ["bash", "-c", where.through.replace("OUT", out), "bash"]
        command += [sys.executable, *where.python, "-m", "owkg", *words]
        done = subprocess.run(
            command, cwd=folder, env=environ(where.variables), capture_output=True, timeout=300
        )
        texts = [text.decode("utf-8", "replace").replace(out, "OUT") for text in (done.stdout, done.stderr)]
        return Outcome(done.returncode, *texts, _files(Path(out)))


def _files(folder: Path) -> dict[str, Any]:
    """What is comparable of the files in a folder: tables and arrays, and else that they are there."""
    found: dict[str, Any] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = re.sub(r"\d{6,}", "N", path.relative_to(folder).as_posix())
        if path.suffix == ".safetensors":  # without its header, which has the time
            found[name] = {key: (x.shape, x.tobytes()) for key, x in load_file(path).items()}
        else:
            compared = path.suffix in {".csv", ".tsv", ".txt", ".parquet"} and path.stem != "path"
            found[name] = path.read_bytes() if compared else "there"
    return found


def _plain(text: str) -> Any:
    """The JSON of a command without what differs from run to run; other text as it is."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(of) for key, of in value.items() if key not in _VOLATILE}
        return [plain(of) for of in value] if isinstance(value, list) else value

    try:
        return plain(json.loads(text))
    except ValueError:  # help, whose lines are broken and framed otherwise on other terminals
        return sorted(re.findall("[A-Za-z]", text))


def verdict(usual: Outcome, found: Outcome, where: Environment) -> str:
    """right, one line, or what is wrong."""
    ours = [line for line in found.err.splitlines() if line.startswith("owkg: error: ")]
    if found.code == 2 and (len(ours) == 1 or "closed" in where.about):
        return "one line" if not found.files or where.silent else "half written"
    if found.code == 141 and where.silent:
        return "one line"
    if found.code and len(found.err.splitlines()) == 1 and any(name in found.err for name in where.variables):
        return "one line"  # of the library that the variable is of
    if found.code:
        return f"exit {found.code}"
    if "Traceback" in found.err:
        return "traceback"
    if not where.silent and _plain(found.out) != _plain(usual.out):
        return "other output"
    return "right" if found.files == usual.files else "other files"


def table(names: Iterable[str], commands: Iterable[str], jobs: int = 2) -> dict[str, dict[str, str]]:
    """The verdict on each command, by environment."""
    commands = list(commands)
    with tempfile.TemporaryDirectory() as given, ThreadPoolExecutor(jobs) as pool:
        folder = prepared(Path(given))
        usual = dict(zip(commands, pool.map(lambda name: outcome(folder, name), commands), strict=True))
        for name, one in usual.items():
            if one.code:
                raise ValueError(f"{name}: {one.err}")
        rows = {}
        for name in names:
            where = ENVIRONMENTS[name]
            found = list(pool.map(lambda one, where=where: outcome(folder, one, where), commands))
            rows[name] = {c: verdict(usual[c], one, where) for c, one in zip(commands, found, strict=True)}
            for command, one in zip(commands, found, strict=True):
                if (said := rows[name][command]) != "right":
                    print(f"{name} | {command} | {said} | {one.err.strip()[-300:]}", file=sys.stderr)  # noqa: T201
    return rows


def markdown(rows: dict[str, dict[str, str]]) -> str:
    """The table of a page: of each environment, how many commands are right and which end in one line."""
    lines = ["| environment | right | ends in one line | other |", "|---|---:|---|---|"]
    for name, row in rows.items():
        by = {kind: [c for c, one in row.items() if one == kind] for kind in ("right", "one line")}
        other = [f"{c}: {one}" for c, one in row.items() if one not in by]
        stops = "all" if len(by["one line"]) == len(row) else ", ".join(by["one line"]) or "-"
        right = f"{len(by['right'])} of {len(row)}"
        lines.append(f"| {ENVIRONMENTS[name].about} | {right} | {stops} | {'; '.join(other) or '-'} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Writes the table, of some environments and commands or of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", action="append", choices=ENVIRONMENTS, help="Only these.")
    parser.add_argument("--command", action="append", choices=COMMANDS, help="Only these.")
    parser.add_argument("--page", type=Path, help="Write the table into this page; without, print it.")
    given = parser.parse_args()
    rows = table(given.environment or ENVIRONMENTS, given.command or COMMANDS)
    text = markdown(rows)
    if given.page is None:
        print(text)  # noqa: T201
    else:
        page = given.page.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        given.page.write_text(before + BEGIN + text + END + rest.split(END)[1], encoding="utf-8")
    return int(any(one not in ("right", "one line") for row in rows.values() for one in row.values()))


if __name__ == "__main__":
    sys.exit(main())
