"""The page `docs/evidence/performance.md`: every speed, from the tables that `make bench` wrote.

    python benchmarks/page.py --out out --page docs/evidence/performance.md

Parts of the page stay as they are if the folder has no table of their benchmark; the end of the page names
the benchmarks that were never measured.
"""

import ast
import json
import re
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from benchmarks.accelerator_page import joined
from benchmarks.goals import EARLIER, goals_table, import_jax_s
from benchmarks.timing import machine
from owkg.files.storage import written_aside
from owkg.terminal.markdown import table as markdown_table
from simulations.script import Out, run_script

# Tables that each benchmark writes.
TABLES = {
    "startup": ["benchmark_startup"],
    "simulation": ["benchmark_simulation"],
    "thinning": ["benchmark_thinning"],
    "metrics": ["benchmark_metrics"],
    "streaming": ["benchmark_streaming"],
    "judge": ["benchmark_judge"],
    "audit": ["benchmark_audit"],
    "large_graph": ["benchmark_large_graph"],
    "family_tree": ["family_tree_speed"],
    "evaluation": ["evaluation_speed", "evaluation_blocks", "evaluation_models"],
    "sampled_evaluation": ["benchmark_sampled_evaluation"],
    "training": ["training_speed", "training_first_steps", "training_pykeen"],
    "training_rows": ["training_rows", "training_rows_memory"],
    "training_mesh": ["training_mesh"],
    "cluster": ["cluster_speed"],
    "alignment": ["alignment_speed"],
    "growth": ["growth_slopes", "growth_projection"],
}
FIGURES = {"growth": "growth.png"}
"""Figure of a benchmark, shown after its tables."""
PAGE = Path("docs/evidence/performance.md")
RECORD = Path(__file__).parents[1] / "docs" / "reproduction" / "accelerator.json"
"""The numbers that were measured on an accelerator."""
RECORD_OF_RUNS = RECORD.with_name("benchmarks.json")
"""Date and commit of the last run of each benchmark."""

_PACKAGES = ("numpy", "polars", "scipy", "optax")
_UNITS = {"_s": "s", "_gib": "GiB", "_gb": "GB", "_hours": "h"}
_HEAD = """# Performance

Written by `make bench`, last with {machine};
{versions}. Kernels are compared with a limit of the machine or with a peer, measured in the same run.
[Speed on an accelerator](#speed-on-an-accelerator) has what depends on the device.
"""
_GOALS = """## Goals

Each kernel and its goal. `now` is the number of the tables below, and `before` that of commit {commit},
measured on {measured} (empty: not measured there). A unit such as "times its products" compares with the
least work that the result needs, measured in the same run. The last columns are the seconds of the kernel
itself, because a limit that is measured twice differs too. `import jax` took {import_jax_s:.2f} s before and
{now_s:.2f} s now, by which machines and their load can be compared.
"""


def described(script: Path) -> str:
    """Docstring of a benchmark without its command lines."""
    text = ast.get_docstring(ast.parse(script.read_text())) or ""
    paragraphs = re.split(r"\n\n", text)
    return "\n\n".join(part for part in paragraphs if not part.startswith(("    ", "python ")))


def shown(value: Any) -> str:
    """Text of a cell, with four digits of a number."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def headed(column: str) -> str:
    """Head of a column, with its unit after a comma."""
    for end, unit in _UNITS.items():
        if column.endswith(end) and not column.endswith("_per" + end):
            return column.removesuffix(end).replace("_", " ") + f", {unit}"
    return column.replace("_", " ")


def page(folder: Path, record: dict[str, Any], earlier: str = "", names: Iterable[str] = TABLES) -> str:
    """The page as Markdown.

    Args:
        folder: folder with the tables of the benchmarks.
        record: commit and date of the run of each benchmark.
        earlier: the page so far, whose parts stay if a benchmark has no table or is not named.
        names: benchmarks whose tables are taken from the folder. Default: all.
    """
    versions = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    own, kept = set(names), parts_of(earlier)
    parts, missing = [_HEAD.format(machine=machine(), versions=versions)], []
    before = json.loads(EARLIER.read_text(encoding="utf-8")) if EARLIER.is_file() else {}
    if (goals := goals_table(folder, before.get("numbers", {}))) is not None:
        words = {"commit": "?", "measured": "?", "import_jax_s": float("nan")} | before
        parts.append(_GOALS.format(**words, now_s=import_jax_s(folder)) + "\n" + _table(goals))
    elif "## Goals" in kept:
        parts.append(kept["## Goals"])
    for name, tables in TABLES.items():
        found = [folder / f"{table}.csv" for table in tables if (folder / f"{table}.csv").is_file()]
        heading = f"## {name.replace('_', ' ').capitalize()}"
        if not found or name not in own:
            if heading in kept:
                parts.append(kept[heading])
            else:
                missing.append(name)
            continue
        title, _, text = described(Path(__file__).with_name(f"{name}.py")).partition("\n\n")
        parts.append(f"{heading}\n\n{title}\n\n{text}".rstrip() + "\n")
        if name in record:
            run = record[name]
            parts.append(f"Measured on {run['measured']}, last changed by commit {run['commit']}.\n")
        parts += [_table(pl.read_csv(path, infer_schema_length=None)) for path in found]
        if name in FIGURES:
            parts.append(f"![{title}](../reproduction/{FIGURES[name]})\n")
    if missing:
        parts.append(f"Not measured yet: {', '.join(missing)}.\n")
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _table(table: pl.DataFrame) -> str:
    heads = [headed(column) for column in table.columns]
    return markdown_table(heads, [[shown(x) for x in row] for row in table.rows()])


def parts_of(text: str) -> dict[str, str]:
    """Parts of a page by their headings of the second level, without the part of the accelerator."""
    text = re.sub(r"^Not measured yet: .*\n", "", text, flags=re.MULTILINE)
    pieces = re.split(r"^(?=## )", text.partition("<!--")[0], flags=re.MULTILINE)[1:]
    return {piece.partition("\n")[0]: piece for piece in pieces}


def write_page(folder: Path, to: Path, names: Iterable[str] = TABLES) -> None:
    """Writes the page with the tables of the named benchmarks in a folder; other parts stay as they are."""
    runs = json.loads(RECORD_OF_RUNS.read_text(encoding="utf-8")) if RECORD_OF_RUNS.is_file() else {}
    text = page(folder, runs, to.read_text(encoding="utf-8") if to.is_file() else "", names)
    for name in set(names) & set(FIGURES):
        if (drawn := folder / FIGURES[name]).is_file():
            with written_aside(RECORD.with_name(FIGURES[name])) as aside:
                aside.write_bytes(drawn.read_bytes())
    if RECORD.is_file():
        text = joined(text, json.loads(RECORD.read_text(encoding="utf-8")))
    with written_aside(to) as aside:
        aside.write_text(text, encoding="utf-8")


def main(
    out: Out = Path("out"), to: Annotated[Path, typer.Option("--page", help="Markdown file to write.")] = PAGE
) -> None:
    """Writes the page of all speeds from the tables of the benchmarks."""
    write_page(out, to)


if __name__ == "__main__":
    run_script(main)
