"""Every command on one small graph: exit codes, JSON and files as they were recorded.

`python tests/golden/test_golden.py` records them anew: do so only where a change is meant, and look at the
difference.
"""

import contextlib
import hashlib
import io
import json
import math
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars import selectors as cs

from owkg.cli.main import main

HERE = Path(__file__).parent
RECORD = HERE / "recorded.json"
# In this order, in one folder: later ones read what earlier ones wrote.
COMMANDS = dict(line.split(": ", 1) for line in (HERE / "commands.txt").read_text().splitlines())
# What a trained model reads depends on the processor in its last digits.
LOOSE = {"train", "rank", "rank raw"}
# Its scores, whose last digits do too: sizes are recorded of them, and no checksum.
SCORES = {"scored.csv"}
# Differ from run to run, or from version to version.
VOLATILE = {
    "seconds",
    "examples_per_s",
    "version",
    "versions",
    "written",
    "created",
    "sha256",
    "machine",
    "wall_s",
}
TEXT = {".csv", ".tsv", ".txt", ".qrels", ".run", ".dict", ".del", ".md", ".json"}
FIGURES = {".png", ".pdf", ".svg"}


def run_all(folder: Path) -> dict[str, Any]:
    """What each command of COMMANDS says and writes, in a copy of the input."""
    shutil.copytree(HERE / "input", folder, dirs_exist_ok=True)
    found, known = {}, files(folder)
    for name, line in COMMANDS.items():
        out, err = io.StringIO(), io.StringIO()
        with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(line.split())
        if name in ("pool", "pool drawn"):
            fill_in(folder / ("drawn" if "drawn" in name else "pool") / "sheet.tsv", folder / "filled.tsv")
        now = files(folder)
        said = out.getvalue()
        found[name] = {
            "code": code,
            "out": rounded(json.loads(said)) if said[:1] in ("{", "[") else six_digits(said).splitlines(),
            "err": err.getvalue().splitlines() if code else [],
            "files": {path: of for path, of in now.items() if known.get(path) != of},
        }
        known = now
    return found


def rounded(value: Any) -> Any:
    """Numbers to seven digits, which a record needs no more of."""
    if isinstance(value, dict):
        return {key: rounded(of) for key, of in value.items()}
    if isinstance(value, list):
        return [rounded(of) for of in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value


def six_digits(text: str) -> str:
    """The text with its decimals to six digits: the last of them depend on the processor."""

    def short(found: re.Match[str]) -> str:
        value = float(found[0])
        return f"{value if abs(value) > 1e-9 else 0.0:.6g}"

    return re.sub(r"(?<![\w.])-?\d+\.\d{5,}(e-?\d+)?(?![\w.])", short, text)


def fill_in(sheet: Path, out: Path) -> None:
    """A sheet as an annotator hands it in, who takes every other candidate for relevant."""
    table = pl.read_csv(sheet, separator="\t", quote_char=None, infer_schema=False)
    label = (pl.int_range(pl.len()) % 2).cast(pl.String)
    table.with_columns(label=label).write_csv(out, separator="\t", quote_style="never")


def files(folder: Path) -> dict[str, Any]:
    """What is comparable of each file: of text a checksum, of Parquet its columns, else that it is there."""
    found: dict[str, Any] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".parquet":
            table = pl.read_parquet(path)
            found[name] = {"columns": table.columns, "rows": len(table)}
        elif name in SCORES:
            table = pl.read_csv(path)
            sizes = table.select(cs.float().abs().mean()).row(0, named=True)
            words = hashlib.sha256(table.select(~cs.float()).write_csv().encode()).hexdigest()[:16]
            found[name] = {"columns": table.columns, "words": words, "sizes": sizes}
        elif path.suffix in TEXT - {".json"} and not name.startswith("run/"):
            text = six_digits(path.read_text(encoding="utf-8"))
            found[name] = hashlib.sha256(text.encode()).hexdigest()[:16]
        else:
            found[name] = "there"
    return found


def differences(then: Any, now: Any, loose: bool, path: str = "") -> list[str]:
    """Where two records differ: numbers by more than rounding, a hundredth where `loose`."""
    if isinstance(then, dict) and isinstance(now, dict):
        lost = [f"{path}/{key} left" for key in then.keys() - now.keys()]
        came = [f"{path}/{key} came" for key in now.keys() - then.keys()]
        both = [key for key in then if key in now and key not in VOLATILE]
        return (
            lost
            + came
            + [d for key in both for d in differences(then[key], now[key], loose, f"{path}/{key}")]
        )
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        pairs = enumerate(zip(then, now, strict=True))
        return [d for i, (a, b) in pairs for d in differences(a, b, loose, f"{path}/{i}")]
    if isinstance(then, int | float) and isinstance(now, int | float):
        of_scores = "/sizes/" in path and isinstance(then, float)
        near = 0.02 if loose else 1e-4 if of_scores else 1e-6
        close = math.isclose(then, now, rel_tol=near, abs_tol=0.02 if loose else 1e-9)
        return [] if close else [f"{path}: {then!r}, now {now!r}"]
    return [] if then == now else [f"{path}: {then!r}, now {now!r}"]


@pytest.fixture(scope="module")
def now(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the commands say today."""
    os.environ["COLUMNS"] = "120"
    return run_all(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_and_writes_what_it_did(now, name):
    """Numbers of trained models to 2 %: the ranks of a few epochs; all others to six digits."""
    then = json.loads(RECORD.read_text())[name]
    today = json.loads(json.dumps(now[name]))
    loose = name in LOOSE
    if loose:  # whose checksums depend on the last digits
        for record in (then, today):
            record["files"] = dict.fromkeys(record["files"], "there")
    assert differences(then, today, loose) == []


def test_a_difference_is_found():
    """The comparison itself can fail: a number, a key, a length."""
    assert differences({"a": [1.0, 2]}, {"a": [1.0, 2.001]}, False) == ["/a/1: 2, now 2.001"]
    assert differences({"a": 1}, {"b": 1}, False) == ["/a left", "/b came"]
    assert differences([1], [1, 2], False) == [": [1], now [1, 2]"]
    assert differences({"a": np.inf}, {"a": np.inf}, False) == []


if __name__ == "__main__":
    os.environ["COLUMNS"] = "120"
    with tempfile.TemporaryDirectory() as folder:
        recorded = run_all(Path(folder))
    RECORD.write_text(json.dumps(recorded, indent=0, ensure_ascii=False) + "\n")
