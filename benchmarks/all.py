"""All benchmarks that are due, the most important first, and the page of all speeds.

    python benchmarks/all.py --out out
    python benchmarks/all.py --parts simulation,metrics --peers .venv-peers/bin/python

A benchmark is due if the sources that it measures have changed since its last run, by their last commit. The
record of the runs, docs/reproduction/benchmarks.json, is written after each of them, so that an interrupted
call goes on with the next one. The page keeps the tables of benchmarks that are not due.
"""

import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from benchmarks.page import PAGE, RECORD_OF_RUNS, write_page
from owkg.files.storage import writable_folder, written_aside
from simulations.script import Out, run_script

ROOT = Path(__file__).parents[1]


class Part(NamedTuple):
    """A benchmark, by the name of its script.

    Attributes:
        sources: files and folders whose change makes it due, in addition to the script.
        arguments: arguments of the script.
        with_peers: arguments if there is an interpreter with peers, whose path follows them. None: the script
            itself is then run by this interpreter.
    """

    sources: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    with_peers: tuple[str, ...] | None = ()


PARTS = {
    "startup": Part(("owkg/cli", "owkg/terminal", "owkg/__init__.py")),
    "simulation": Part(("owkg/simulate", "owkg/theory", "owkg/openworld", "owkg/rank_weights")),
    "metrics": Part(("owkg/metrics", "owkg/ranks", "owkg/stats", "owkg/ir"), with_peers=None),
    "judge": Part(("owkg/judge", "owkg/stats"), with_peers=None),
    "thinning": Part(("owkg/simulate", "owkg/rank_weights")),
    "evaluation": Part(("owkg/evaluation", "owkg/models"), with_peers=("--pykeen",)),
    "growth": Part(
        (
            *("owkg/simulate", "owkg/theory", "owkg/metrics", "owkg/judge", "owkg/ir", "owkg/evaluation"),
            *("owkg/kg", "owkg/train", "family_tree"),
        )
    ),
    "training": Part(("owkg/train", "owkg/models"), with_peers=("--pykeen",)),
    "audit": Part(("owkg/auditing", "owkg/report")),
    "family_tree": Part(("family_tree", "owkg/sampling")),
    "alignment": Part(("owkg/align",)),
    "training_rows": Part(("owkg/train", "owkg/models")),
    "streaming": Part(("owkg/metrics", "owkg/ranks"), ("--quick",)),
    "training_mesh": Part(("owkg/train",), ("--quick",)),
    "cluster": Part(("simulations",), ("--quick",)),
    "large_graph": Part(("owkg/kg",)),
    "sampled_evaluation": Part(("owkg/evaluation", "owkg/kg")),
}
"""Benchmarks, the most important first."""


def commit_of(name: str) -> str:
    """Last commit that changed a benchmark or what it measures; "" without git."""
    paths = [f"benchmarks/{name}.py", *PARTS[name].sources]
    command = ["git", "log", "-1", "--format=%h", "--", *paths]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)  # noqa: S603
    return done.stdout.strip() if done.returncode == 0 else ""


def is_due(name: str, record: dict[str, Any]) -> bool:
    """Whether a benchmark has not been run since its last change."""
    commit = commit_of(name)
    return not commit or record.get(name, {}).get("commit") != commit


def command_of(name: str, out: Path, peers: Path | None) -> list[str]:
    """Command line of a benchmark."""
    part = PARTS[name]
    python = str(peers) if peers is not None and part.with_peers is None else sys.executable
    others = (*part.with_peers, str(peers)) if peers is not None and part.with_peers else ()
    return [python, f"benchmarks/{name}.py", "--out", str(out.absolute()), *part.arguments, *others]


def main(
    out: Out = Path("out"),
    parts: Annotated[
        str | None,
        typer.Option(help="Benchmarks to run, with commas, due or not. Default: all that are due."),
    ] = None,
    peers: Annotated[
        Path | None,
        typer.Option(help="Python interpreter of an environment with owkg, PyKEEN, ranx and pytrec_eval."),
    ] = None,
    minutes: Annotated[float, typer.Option(help="Begin no benchmark after so many minutes.", min=0)] = 30,
    page: Annotated[Path, typer.Option(help="Markdown file to write.")] = PAGE,
) -> None:
    """Runs the benchmarks that are due, and writes the page of all speeds."""
    writable_folder(out)
    if peers is not None and not peers.is_file():
        raise ValueError(f"`peers` must be a Python interpreter, but there is no file {peers}.")
    chosen = None if parts is None else parts.split(",")
    for name in chosen or ():
        if name not in PARTS:
            raise ValueError(f"`parts` must be from {', '.join(PARTS)}, got {name!r}.")
    record: dict[str, Any] = json.loads(RECORD_OF_RUNS.read_text()) if RECORD_OF_RUNS.is_file() else {}
    begin, failed = time.monotonic(), []
    for name in chosen or [name for name in PARTS if is_due(name, record)]:
        if time.monotonic() - begin > 60 * minutes:
            print(f"==> {name}: left for another call, after {minutes:g} minutes", flush=True)
            continue
        print(f"==> {name}", flush=True)
        started, commit = time.monotonic(), commit_of(name)
        done = subprocess.run(command_of(name, out, peers), check=False, cwd=ROOT)  # noqa: S603
        if done.returncode:
            failed.append(name)
            continue
        record[name] = {
            "commit": commit,
            "measured": f"{datetime.now(UTC):%Y-%m-%d}",
            "seconds": round(time.monotonic() - started, 1),
        }
        with written_aside(RECORD_OF_RUNS) as aside:
            aside.write_text(json.dumps(record, indent=2) + "\n")
        write_page(out, page, [name])
    if failed:
        raise ValueError(f"these benchmarks failed: {', '.join(failed)}.")


if __name__ == "__main__":
    run_script(main)
