"""The page `docs/evidence/performance.md`: every speed, from the tables that `make bench` wrote.

    python benchmarks/page.py --out out --page docs/evidence/performance.md

The end of the page names the benchmarks that were not measured.
"""

import ast
import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from benchmarks.accelerator_page import joined
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
}
PAGE = Path("docs/evidence/performance.md")
RECORD = Path(__file__).parents[1] / "docs" / "reproduction" / "accelerator.json"
"""The numbers that were measured on an accelerator."""

_PACKAGES = ("numpy", "polars", "scipy", "optax")
_UNITS = {"_s": "s", "_gib": "GiB", "_gb": "GB", "_hours": "h"}
_HEAD = """# Performance

Written by `make bench` with {machine};
{versions}. Every speed is compared with a limit of the machine or with a peer, measured in the same
run. [Speed on an accelerator](#speed-on-an-accelerator) has what depends on the device.
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


def page(folder: Path) -> str:
    """The page as Markdown, from the tables in a folder."""
    versions = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    parts, missing = [_HEAD.format(machine=machine(), versions=versions)], []
    for name, tables in TABLES.items():
        found = [folder / f"{table}.csv" for table in tables if (folder / f"{table}.csv").is_file()]
        if not found:
            missing.append(name)
            continue
        title, _, text = described(Path(__file__).with_name(f"{name}.py")).partition("\n\n")
        parts.append(f"## {name.replace('_', ' ').capitalize()}\n\n{title}\n\n{text}".rstrip() + "\n")
        for path in found:
            table = pl.read_csv(path, infer_schema_length=None)
            heads = [headed(column) for column in table.columns]
            parts.append(markdown_table(heads, [[shown(x) for x in row] for row in table.rows()]))
    if missing:
        parts.append(f"Not measured in this run: {', '.join(missing)}.\n")
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def main(
    out: Out = Path("out"), to: Annotated[Path, typer.Option("--page", help="Markdown file to write.")] = PAGE
) -> None:
    """Writes the page of all speeds from the tables of the benchmarks."""
    text = page(out)
    if RECORD.is_file():
        text = joined(text, json.loads(RECORD.read_text(encoding="utf-8")))
    with written_aside(to) as aside:
        aside.write_text(text)


if __name__ == "__main__":
    run_script(main)
