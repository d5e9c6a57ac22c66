"""`owkg pool --plan --width`, plans from a pilot, `--add`, and pilots of `owkg accept`."""

import re

import pytest

from owkg.judge.runs import write_run
from tests.estimation.worlds import world
from tests.pools.folders import filled, folder_of_graph

RUNS = ("m0.run", "m1.run")
POOL = ("pool", *RUNS, "--kg", "kg", "--depth", 5, "--seed", 7)
ACCEPT = ("accept", "m2.run", "--kg", "kg", "--precision", 0.4)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """(all true answers, a folder with a graph and three runs)."""
    folder = tmp_path_factory.mktemp("campaign")
    run, before, truth = world(queries=80)
    for name in ("m0", "m1", "m2"):
        write_run(run.filter(model=name), folder / f"{name}.run")
    (folder / "kg").mkdir()
    folder_of_graph(folder / "kg", run, before, truth)
    return truth, folder


@pytest.fixture
def folder(source, tmp_path, monkeypatch):
    """The current folder, whose inputs are those."""
    for one in source[1].iterdir():
        (tmp_path / one.name).symlink_to(one)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_wished_widths(folder, answer, done):
    found = answer(*POOL, "--plan", "--width", "rr=0.15, p@5 = .08")
    assert {row["metric"] for row in found["plan"]} == {"RR@5", "P@5"}
    assert [(row["metric"], row["unit"]) for row in found["wishes"]] == [
        ("RR@5", "queries"), ("RR@5", "prefixes"), ("P@5", "queries"), ("P@5", "candidates")
    ]  # fmt: skip
    assert all(row["width"] <= row["wish"] for row in found["wishes"])
    assert answer(*POOL, "--plan", "--metric", "ap")["wishes"] is None
    table = done(*POOL, "--plan", "--metric", "ap", "--width", "rr=0.0001", notes=True)
    assert (
        "RR@5: no number of prefixes is enough for a width of 0.0001; judging all of them gives 0.0" in table
    )
    assert re.search(r"RR@5 +0\.0001 +queries:80 ", table)


def test_a_plan_from_a_pilot(folder, source, done, answer, refused):
    truth, _ = source
    done(*POOL, "--draw", "queries:30", "--out", "pool", notes=True)
    pilot = ("pool", "--pool", "pool", "--plan")
    assert "nothing is filled in in pool (sheet.tsv)" in refused(*pilot)
    filled(truth, folder / "pool" / "sheet.tsv")
    found = answer(*pilot, "--judged", "pool/sheet.tsv", "--width", "rr=0.05")
    (row,) = found["plan"]
    assert found["command"] == f"owkg pool --pool pool --more {row['more']}"
    assert row["count"] == 30 + row["more"]
    assert done(*pilot, "--width", "rr=0.05").splitlines()[-1] == f"draw them: {found['command']}"
    done(*found["command"].split()[1:])
    filled(truth, folder / "pool" / "sheet2.tsv")
    widths = [one["ci_high"] - one["ci_low"] for one in answer("estimate", "--pool", "pool")["metrics"][:2]]
    assert sum(widths) / 2 < 0.075
    assert "no further units are needed" in done(*pilot, "--width", "rr=0.5")
    assert answer(*pilot, "--metric", "ap")["plan"][0]["metric"] == "AP@5"


def test_a_system_joins(folder, source, done, answer, refused):
    truth, _ = source
    done(*POOL, "--draw", "candidates:60", "--out", "pool", notes=True)
    filled(truth, folder / "pool" / "sheet.tsv")
    add = ("pool", "--pool", "pool", "--add")
    assert "--kg must be the graph of the pool" in refused(*add, "m2.run")
    assert "--add must hold further systems: m1 is already in" in refused(*add, "m1.run", "--kg", "kg")
    told = done(*add, "m2.run", "--kg", "kg", "--name", "new")
    assert re.search(r"added new to pool; wrote pool/sheet2.tsv: \d+ candidates that only it lists", told)
    filled(truth, folder / "pool" / "sheet2.tsv")
    assert {row["model"] for row in answer("estimate", "--pool", "pool")["metrics"]} == {"m0", "m1", "new"}
    again = answer(*add, "m2.run", "--kg", "kg", "--name", "again")
    assert again == {"systems": ["again"], "sheet": None, "to_judge": 0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            (*POOL, "--plan", "--width", "rr"),
            "--width must be METRIC=W with W above 0, such as rr=0.1, got 'rr'",
        ),
        ((*POOL, "--plan", "--width", "rr=0"), "--width must be METRIC=W with W above 0"),
        ((*POOL, "--plan", "--width", "rr=.1,rr=.2"), "--width must name each metric once, got rr again"),
        ((*POOL, "--plan", "--width", "rr=.1,rr@5=.2"), "--width must name each metric once"),
        ((*POOL, "--plan", "--width", "amr=.1"), "--metric must be one of rr@k"),
        ((*POOL, "--plan", "--judged", "m0.run"), "--judged has no effect without --pool"),
        ((*POOL, "--width", "rr=.1", "--out", "p"), "--width has no effect without --plan"),
        ((*POOL, "--judged", "m0.run", "--out", "p"), "--judged has no effect without --plan"),
        (("pool", "--pool", "p", "--plan", "--depth", 5), "--depth has no effect with --plan of --pool"),
        (("pool", "--pool", "p", "--plan", "--width", "x"), "--width must be METRIC=W"),
        (("pool", "--add", "m2.run"), "--pool must name the folder of the pool that --add belongs to"),
        (("pool", "--pool", "p", "--add", "m2.run", "--more", 3), "--add has no effect with --more"),
        (("pool", "--pool", "p", "--add", "m2.run", "--out", "q"), "--out has no effect with --add"),
        ((*ACCEPT, "--pilot", "m0.run"), "--pilot has no effect without --drawn"),
        ((*ACCEPT, "--pool", "p"), "--pool has no effect without --drawn"),
        ((*ACCEPT, "--pilot-sheet", "a.tsv", "--drawn", 9), "--drawn has no effect with --pilot-sheet"),
        ((*ACCEPT, "--pilot-sheet", "m0.run"), "--pilot-sheet must be a new file"),
        ((*ACCEPT, "--drawn", 9, "--pool", "kg"), "must be a folder that owkg pool wrote"),
        (
            ("accept", "m2.run", "--kg", "kg", "--precision", 1, "--drawn", 9),
            "--size must be given, or a pilot: by the free prediction no first predictions",
        ),
    ],
    ids=str,
)
def test_options_that_cannot_be(folder, refused, options, message):
    assert message in refused(*options)
    assert not {"p", "q", "a.tsv"} & {one.name for one in folder.iterdir()}


def test_accept_by_a_pilot(folder, source, done, answer):
    truth, _ = source
    told = done(*ACCEPT, "--pilot-sheet", "pilot.tsv", "--rows", 30)
    assert told == "wrote pilot.tsv: 30 predictions to judge; pass it with --pilot once filled in\n"
    filled(truth, folder / "pilot.tsv")
    line = (*ACCEPT, "--drawn", 60, "--pilot", "pilot.tsv")
    done(*line, "--sheet", "sheet.tsv")
    filled(truth, folder / "sheet.tsv")
    found = answer(*line, "--judged", "sheet.tsv", "--out", "accepted.tsv")
    assert (found["judged"], found["method"], found["by"]) == (60, "hypergeometric", None)
    assert found["statements"][0].endswith("a pilot of 30 judged predictions, which are left out.")
    by = answer(*ACCEPT, "--drawn", 40, "--by", "relation")
    assert by["to_judge"] == sum(min(row["candidates"], 40) for row in by["by"])
    assert by["by"][0]["lower"] is None
