"""Paths are names, not patterns: whatever reads a file by polars says so."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(
    file for part in ("owkg", "family_tree", "simulations") for file in (ROOT / part).rglob("*.py")
)
READERS = {
    *("read_csv", "scan_csv", "read_csv_batched", "read_parquet", "scan_parquet", "read_parquet_schema"),
    *("read_ipc", "scan_ipc", "read_ndjson", "scan_ndjson", "scan_lines"),
}


def readers_of_patterns(source: str) -> list[int]:
    """The lines on which polars reads a path that may be a pattern."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and node.attr in READERS
        and ast.unparse(node.value) in ("pl", "polars")
        and not _without_patterns(source, node)
    ]


def _without_patterns(source: str, reader: ast.Attribute) -> bool:
    """Whether `reader` is called, with glob=False."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return any(
        (call.func.lineno, call.func.col_offset) == (reader.lineno, reader.col_offset)
        and any(word.arg == "glob" and ast.unparse(word.value) == "False" for word in call.keywords)
        for call in calls
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_no_path_is_a_pattern(file):
    assert readers_of_patterns(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("line", ["pl.read_csv(x)", "map(pl.read_parquet, x)", "pl.scan_csv(x, glob=True)"])
def test_patterns_are_found(line):
    assert readers_of_patterns(line) == [1]
    assert readers_of_patterns("pl.read_csv(x, glob=False)") == []
