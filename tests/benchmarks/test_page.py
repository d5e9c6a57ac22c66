"""The page of all speeds: every table that is there, and by name what is not."""

import json
from pathlib import Path

import polars as pl

from benchmarks import all as all_benchmarks
from benchmarks import goals
from benchmarks import page as pages
from benchmarks.all import PARTS, command_of, is_due
from benchmarks.goals import Goal
from benchmarks.page import TABLES, described, page

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_what_is_there_is_shown_and_what_is_not_is_named(tmp_path):
    pl.DataFrame({"what_it_is": ["a|b"], "first_s": [0.123456], "rows": [12345]}).write_csv(
        tmp_path / "benchmark_judge.csv"
    )
    text = page(tmp_path, {"judge": {"commit": "abc1234", "measured": "2026-11-29"}})
    assert "| what it is | first, s | rows |" in text
    assert "| a\\|b | 0.1235 | 12,345 |" in text
    assert "## Judge\n\nSpeed of rankings on parts of the queries" in text
    assert "Measured on 2026-11-29, last changed by commit abc1234." in text
    last = text.splitlines()[-1]
    assert all(name in last for name in TABLES if name != "judge")
    assert "judge" not in last


def test_other_parts_stay(tmp_path):
    earlier = (
        "# Performance\n\n## Startup\n\nold\n\n## Judge\n\nold too\n\n<!-- on an accelerator -->\n## More\n"
    )
    for name in ("benchmark_judge", "benchmark_simulation"):
        pl.DataFrame({"count": [7]}).write_csv(tmp_path / f"{name}.csv")
    text = page(tmp_path, {}, earlier, ["judge"])
    assert "## Startup\n\nold\n" in text
    assert "old too" not in text
    assert "## Simulation" not in text
    assert "More" not in text
    again = page(tmp_path, {}, page(tmp_path, {}, text, ["judge"]), ["judge"])
    assert again.count("Not measured yet") == 1


def test_a_benchmark_is_due_after_a_change(monkeypatch):
    monkeypatch.setattr(all_benchmarks, "commit_of", lambda name: {"judge": "abc", "audit": ""}[name])
    assert not is_due("judge", {"judge": {"commit": "abc"}})
    assert is_due("judge", {"judge": {"commit": "abd"}})
    assert is_due("judge", {})
    assert is_due("audit", {"audit": {"commit": ""}})  # without git nothing is known


def test_every_benchmark_exists_and_peers_are_given_to_it():
    assert set(PARTS) == set(TABLES)
    for name, part in PARTS.items():
        assert (BENCHMARKS / f"{name}.py").is_file()
        assert all((BENCHMARKS.parent / source).exists() for source in part.sources), name
    own, theirs = (command_of("evaluation", Path("out"), peers) for peers in (None, Path("other")))
    assert theirs == [*own, "--pykeen", "other"]
    assert command_of("metrics", Path("out"), Path("other"))[0] == "other"


def test_every_table_is_that_of_a_benchmark():
    """A table that no benchmark writes would be missing for ever."""
    for name, tables in TABLES.items():
        source = (BENCHMARKS / f"{name}.py").read_text()
        assert all(f'"{table}.csv"' in source for table in tables)
        assert described(BENCHMARKS / f"{name}.py")


def test_goals_are_shown_once_all_their_numbers_are_there(tmp_path, monkeypatch):
    monkeypatch.setattr(
        goals,
        "GOALS",
        (
            Goal("first", "seconds", 1.5, "speed", "seconds", "one$"),
            Goal("second", "times first", 1.2, "speed", "seconds", "two of", "one$"),
        ),
    )
    monkeypatch.setattr(pages, "EARLIER", tmp_path / "goals.json")
    (tmp_path / "goals.json").write_text(
        json.dumps(
            {
                "commit": "abc1234",
                "measured": "2026-11-01",
                "import_jax_s": 0.5,
                "numbers": {"first": {"number": 9.0, "seconds": 9.0}},
            }
        )
    )
    earlier = "# Performance\n\n## Goals\n\nold\n"
    for names in (["one"], ["one more", "two of them"]):
        pl.DataFrame({"what": names, "seconds": [1.5] * len(names)}).write_csv(tmp_path / "speed.csv")
        assert "## Goals\n\nold\n" in page(tmp_path, {}, earlier)
    start = pl.DataFrame({"what": ["python", "import jax"], "seconds": [0.01, 0.4]})
    start.write_csv(tmp_path / "benchmark_startup.csv")
    table = pl.DataFrame({"what": ["one", "two of them"], "seconds": [1.5, 3.0]})
    table.write_csv(tmp_path / "speed.csv")
    text = page(tmp_path, {}, earlier)
    assert "| first | seconds | 1.5 | 9 | 1.5 | yes | 9 | 1.5 |\n" in text
    assert "| second | times first | 1.2 |  | 2 | no |  | 3 |\n" in text
    assert "commit abc1234" in text
    assert "`import jax` took 0.50 s before and\n0.40 s now" in text
    assert "old" not in text


def test_goals_name_tables_of_benchmarks():
    written = {table for tables in TABLES.values() for table in tables}
    assert {one.table for one in goals.GOALS} <= written
