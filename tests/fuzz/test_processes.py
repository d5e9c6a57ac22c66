"""Several processes with one output, in PID namespaces of their own, and signals at any moment."""

import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import polars as pl
import pytest

from owkg.ranks import read_ranks
from tests.fuzz.cases import NUMBER

ROUNDS = max(2, NUMBER // 200)
ROWS = 20_000
_WRITE = """
import os, sys, numpy as np, polars as pl
from owkg.ranks import write_ranks
out, value, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
i = np.arange(rows)
table = pl.DataFrame({"head": i, "relation": i * 0, "tail": i + 1, "optimistic": i * 0 + value,
                      "pessimistic": i * 0 + value, "candidates": 99 + i * 0})
table = table.with_columns(side=pl.lit("tail"))
sys.stdin.read(1)
for _ in range(5):
    write_ranks(table, out)
"""


def _namespaces() -> bool:
    """Whether this user may have PID namespaces of their own."""
    command = ["unshare", "--map-root-user", "--pid", "--fork", "true"]
    return (
        shutil.which("unshare") is not None
        and subprocess.run(command, check=False, capture_output=True).returncode == 0
    )


@pytest.mark.skipif(not _namespaces(), reason="this user may not have PID namespaces")
@pytest.mark.parametrize("name", ["ranks.parquet", "ranks.csv"])
def test_processes_of_one_number_and_one_output(name, tmp_path):
    """Each of two containers has a process 1 or 2 that writes the same file: one of them, whole."""
    out = tmp_path / name
    command = ["unshare", "--map-root-user", "--pid", "--fork", sys.executable, "-c", _WRITE, str(out)]
    with ExitStack() as stack:
        running = [
            stack.enter_context(
                subprocess.Popen(
                    [*command, str(value), str(ROWS)], stdin=subprocess.PIPE, stderr=subprocess.PIPE
                )
            )
            for value in (1, 2)
        ]
        for process in running:  # both have been started, and may begin
            process.stdin.write(b"\n")
            process.stdin.flush()
        for process in running:
            error = process.communicate()[1]
            assert (process.returncode, error) == (0, b"")
    found = read_ranks(out).frame
    assert len(found) == ROWS
    assert found["optimistic"].n_unique() == 1
    assert [path.name for path in tmp_path.iterdir()] == [name]


COMMANDS = {
    "convert": ["ranks", "convert", "{input}", "--out", "{out}/r.parquet"],
    "compare": ["compare", "{input}", "{other}", "--metric", "mrr", "--test", "t", "--out", "{out}/compared"],
    "sample": ["sample", "{facts}", "{out}/sampled", "--density", "0.9", "--min-answers", "1"],
    "generate": ["family-tree", "generate", "{out}/families"],
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Two rank tables, and facts."""
    folder = tmp_path_factory.mktemp("inputs")
    i = pl.Series(range(ROWS))
    for name in ("input", "other"):
        frame = pl.DataFrame({"head": i, "relation": i % 3, "tail": i + 1, "optimistic": i % 9 + 1})
        frame = frame.with_columns(pl.lit("tail").alias("side"), pessimistic="optimistic", candidates=99)
        frame.write_parquet(folder / f"{name}.parquet")
    lines = [f"a{i % 97}\tr{i % 5}\tb{i % 89}" for i in range(5000)]
    (folder / "facts.tsv").write_text("\n".join(dict.fromkeys(lines)) + "\n")
    return {
        "input": folder / "input.parquet",
        "other": folder / "other.parquet",
        "facts": folder / "facts.tsv",
    }


def _listed(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_signal_at_any_moment_leaves_all_or_nothing(name, inputs, tmp_path):
    """And no traceback; what SIGKILL leaves under other names the next run sweeps."""
    draw = random.Random(name)  # noqa: S311

    def command(out: Path) -> list[str]:
        return [sys.executable, "-m", "owkg", *(word.format(out=out, **inputs) for word in COMMANDS[name])]

    whole = tmp_path / "whole"
    whole.mkdir()
    began = time.monotonic()
    subprocess.run(command(whole), check=True, capture_output=True)
    takes, wanted = time.monotonic() - began, _listed(whole)
    for i in range(ROUNDS):
        out = tmp_path / str(i)
        out.mkdir()
        number = draw.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
        with subprocess.Popen(command(out), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            try:
                process.wait(draw.uniform(0.2, 1.05) * takes)
            except subprocess.TimeoutExpired:
                process.send_signal(number)
            said = process.communicate()[1].decode()
        assert process.returncode in (0, 128 + number, -number), said
        assert "Traceback" not in said
        assert "Exception ignored" not in said
        if number == signal.SIGKILL:
            again = subprocess.run(command(out), check=False, capture_output=True)
            assert again.returncode in (0, 2)
        assert {path for path in _listed(out) if not path.startswith(".")} in (set(), wanted)
        if number != signal.SIGHUP:
            assert not [path for path in out.iterdir() if path.name.startswith(".")]
