"""The page of all speeds: every table that is there, and by name what is not."""

from pathlib import Path

import polars as pl

from benchmarks.page import TABLES, described, page

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_what_is_there_is_shown_and_what_is_not_is_named(tmp_path):
    pl.DataFrame({"what_it_is": ["a|b"], "first_s": [0.123456], "rows": [12345]}).write_csv(
        tmp_path / "benchmark_judge.csv"
    )
    text = page(tmp_path)
    assert "| what it is | first, s | rows |" in text
    assert "| a\\|b | 0.1235 | 12,345 |" in text
    assert "## Judge\n\nSpeed of rankings on parts of the queries" in text
    last = text.splitlines()[-1]
    assert all(name in last for name in TABLES if name != "judge")
    assert "judge" not in last


def test_every_table_is_that_of_a_benchmark():
    """A table that no benchmark writes would be missing for ever."""
    for name, tables in TABLES.items():
        source = (BENCHMARKS / f"{name}.py").read_text()
        assert all(f'"{table}.csv"' in source for table in tables)
        assert described(BENCHMARKS / f"{name}.py")
