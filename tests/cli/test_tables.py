"""Tables as people have them in every command that reads them."""

import os
import subprocess
import sys
import threading

import numpy as np
import polars as pl
import pytest

from owkg.ranks import read_ranks

GRAPH = {"train": "a r b\nd s a\n", "valid": "b r c\n", "test": "a r c\na s c\n"}
OWN = "subject,relation,object,which,place\na,r,c,T,1\na,r,c,H,2\na,s,c,T,4\n"
NAMES = "head=subject,tail=object,side=which,rank=place"


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g").mkdir()
    for name, text in GRAPH.items():
        (tmp_path / "g" / f"{name}.txt").write_text(text.replace(" ", "\t"))
    for name in ("m", "n"):
        (tmp_path / f"{name}.csv").write_text(OWN)
        (tmp_path / name).mkdir()
        pl.read_csv(tmp_path / f"{name}.csv").write_parquet(tmp_path / name / "0.parquet")
    np.save(tmp_path / "r.npy", np.array([[1, 2], [1, 4]]))


@pytest.mark.parametrize("sources", ["m.csv n.csv", "m n", "m/*.parquet n.csv"])
@pytest.mark.parametrize(
    "command",
    [
        "metrics {} --metric mrr,amri",
        "compare {} --metric mrr --test t",
        "stability {} --metric mrr --size 0.5 --draws 9",
    ],
)
def test_every_command_takes_names_of_columns(call, command, sources):
    words = command.format(sources).split()
    code, out, err = call(*words, "--columns", NAMES, "--no-ties", "--kg", "g")
    assert (code, "error" in err) == (0, False)
    assert "n" in out
    assert call(*words, "--columns", NAMES, "--no-ties")[0] == 2


@pytest.mark.parametrize(
    "line",
    [
        f"ranks convert m.csv --columns {NAMES} --no-ties --kg g --out o.parquet",
        f"ranks convert m --columns {NAMES} --no-ties --kg g --out o.parquet",
        f"ranks convert n/*.parquet --columns {NAMES} --realistic --kg g --out o.parquet",
        "ranks convert m.csv --columns head=subject --columns tail=object,side=which --columns rank=place "
        "--no-ties --candidates 9 --out o.parquet",
    ],
)
def test_conversion(call, line):
    assert call(*line.split())[0] == 0
    rows = read_ranks("o.parquet").frame
    assert rows["candidates"].to_list() == ([9] * 3 if "--candidates" in line else [3, 3, 4])
    assert rows["side"].to_list() == ["tail", "head", "tail"]


def test_arrays(call):
    def run(line):
        code, _, err = call(*line.split())
        return code, err

    code, err = run("metrics r.npy --no-ties --kg g --metric mrr")
    assert code == 0
    assert "column 0 is taken as the ranks of heads" in err
    assert "row i is taken as triple i of the split test" in err
    code, err = run("ranks convert r.npy --no-ties --kg g --split valid --out o.csv")
    assert (code, "owkg ranks convert --split NAME takes another split" in err) == (2, True)
    code, err = run("metrics r.npy --candidates 4 --metric mrr --format json")
    assert (code, "ranks are taken as realistic" in err) == (0, True)
    assert run("metrics r.npy --realistic --candidates 4 --metric mrr --format json")[0] == 0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("metrics m.csv --columns head", "--columns must be NAME=COLUMN, such as head=subject, got 'head'"),
        ("metrics m.csv --columns head=subject,head=object", "--columns must name each column once"),
        ("metrics m.csv --columns head=nope", "m.csv: --columns names 'nope'; columns found: 'subject', "),
        ("metrics m.csv --columns who=subject", "--columns must give columns to head, "),
        ("metrics m.csv --columns relation=subject", "m.csv: --columns gives the name relation to"),
        (f"metrics m.csv --columns {NAMES}", "ranks do not state their ties: --no-ties takes"),
        (f"metrics m.csv --columns {NAMES} --no-ties --realistic", "--realistic must be left out with"),
        (f"metrics m.csv --columns {NAMES} --no-ties", "no column candidates; give their number in"),
        (f"compare m.csv n.csv --columns {NAMES} --no-ties --candidates 3", "candidates (3), got 4"),
        ("metrics m.csv", "m.csv: no column head, tail, side, optimistic, pessimistic, candidates; columns"),
        ("audit m.csv n.csv --columns head=nope", "m.csv: --columns names 'nope'"),
        ("stability m n --columns head=nope", "0.parquet: --columns names 'nope'"),
        ("pool m.csv n.csv --depth 1 --out p --columns head=nope", "m.csv: --columns names 'nope'"),
        ("metrics r.npy --no-ties --kg g --ids", "--ids has no effect on r.npy, whose rows do not name"),
        ("metrics r.npy --no-ties --kg g --columns head=1", "no column rank; columns found: 0, 1; --columns"),
        ("metrics r.npy --no-ties", "r.npy: no column candidates; give their number in --candidates"),
        ("ranks convert m.csv --columns head=nope --out o.csv", "m.csv: --columns names 'nope'"),
        ("ranks convert g --out o.csv", "INPUT must hold .parquet files"),
        (f"metrics m.csv --columns {NAMES} --no-ties --ids --kg g", "line 2: head must be a number, got 'a'"),
    ],
)  # fmt: skip
def test_what_cannot_be(call, line, message):
    code, out, err = call(*line.split())
    assert (code, out) == (2, "")
    *notes, last = err.splitlines()
    assert all(line.startswith("owkg: note: ") for line in notes)
    assert message in last


def test_classification_and_tasks(call, tmp_path):
    (tmp_path / "t.csv").write_text("subject;relation;object;label;plausible\na;r;b;1;2.0\na;r;c;-1; 1.0\n")
    words = [
        "classify",
        "t.csv",
        "--metric",
        "roc-auc",
        "--columns",
        "head=subject,tail=object,score=plausible",
    ]
    code, out, _ = call(*words, "--format", "json")
    assert (code, '"value": 1.0' in out) == (0, True)
    code, _, err = call(*words[:-1], "head=nope")
    assert (code, "t.csv: --columns names 'nope'" in err) == (2, True)
    np.savez(tmp_path / "s.npz", scores=[[0.9, 0.5]], entity_labels=["b", "c"])
    (tmp_path / "q.csv").write_text(",from,relation,answer,side,year\n0,x,r,c,tail,1\n")
    (tmp_path / "k.csv").write_text("head,relation,tail,time\nx,r,b,1\nx,r,c,1\n")
    line = "ranks filtered s.npz q.csv --known k.csv --key time --out o.csv --columns"
    code, _, err = call(*line.split(), "head=from,tail=answer,time=year")
    assert (code, err) == (0, "")
    assert read_ranks("o.csv").frame.select("optimistic", "candidates").rows() == [(1, 1)]
    code, _, err = call(*line.split(), "head=from,tail=answer,time=years")
    assert (code, "--columns must name a column of some table, got 'years'" in err) == (2, True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
@pytest.mark.parametrize(
    "line",
    ["metrics {}", "ranks convert {} --out o.csv", "compare {} m.csv", "audit {} m.csv", "classify {}"],
)
@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_pipes_end_in_one_line(tmp_path, line, name):
    os.mkfifo(tmp_path / name)

    def write():
        with open(tmp_path / name, "w") as pipe:  # noqa: PTH123
            pipe.write(OWN)

    threading.Thread(target=write, daemon=True).start()
    command = [sys.executable, "-m", "owkg", *line.format(name).split()]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == 2
    assert f"{name}: must be a file, which can be read twice" in found.stderr
    assert found.stderr.count("\n") == 1
