"""How a graph is read: the options that all commands share, and what becomes of files beside a graph."""

import json
from pathlib import Path

import numpy as np
import pytest
import typer.main

from owkg.cli.main import app

READS = (
    "kg info", "kg sample", "train", "rank", "classify", "chance", "metrics", "ranks convert",
    "ranks generated", "pool", "compare", "stability", "missing", "audit", "estimate",
)  # fmt: skip
NUMBERS = {"train": "30\t17\t183\n183\t36\t64\n64\t17\t183\n", "test": "183\t36\t30\n"}
TRAIN = ("--model", "distmult", "--dim", 4, "--epochs", 1, "--valid-every", 0, "--out", "run")


@pytest.fixture
def graph(tmp_path, monkeypatch):
    """A folder of sparse numbers that are labels, in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("graph").mkdir()
    for name, text in NUMBERS.items():
        Path(f"graph/{name}.txt").write_text(text)
    return Path("graph")


@pytest.mark.parametrize("words", READS)
def test_every_command_that_reads_a_graph_has_the_options(words):
    command = typer.main.get_command(app)
    for word in words.split():
        command = command.commands[word]
    options = {flag: one for one in command.params for flag in one.opts}
    assert options["--layout"].help.startswith("Layout of the graph's folder: labelled, integer, openke,")
    assert "--duplicates" in options


@pytest.mark.parametrize("words", ["metrics", "compare", "stability", "audit", "ranks convert"])
def test_options_of_a_graph_need_one(refused, tmp_path, words):
    header = "head,relation,tail,side,optimistic,pessimistic,candidates\n"
    (tmp_path / "a.csv").write_text(f"{header}a,r,b,tail,1,1,3\n")
    out = ("--out", tmp_path / "out.csv") if words == "ranks convert" else ()
    for option, value in (("--layout", "labelled"), ("--duplicates", "drop")):
        err = refused(*words.split(), tmp_path / "a.csv", *out, option, value)
        assert f"{option} has no effect without --kg, got '{value}'" in err


def test_a_run_notes_how_its_graph_was_read(call, refused, graph):
    assert "give --layout labelled" in refused("train", graph, *TRAIN)
    assert call("train", graph, *TRAIN, "--layout", "labelled", "--duplicates", "drop")[0] == 0
    noted = json.loads(Path("run/metadata.json").read_text())["graph_reading"]
    assert noted == {"layout": "labelled", "duplicates": "drop"}
    assert call("rank", "run", "--out", "ranks.csv")[0] == 0
    assert call("rank", "run", "--kg", graph, "--out", "ranks.csv")[0] == 0
    assert call("train", graph, "--out", "run", "--resume")[0] == 0
    Path("graph").rename("moved")
    assert "--layout labelled" in refused("rank", "run", "--kg", "moved", "--out", "ranks.csv")
    assert call("rank", "run", "--kg", "moved", "--layout", "labelled", "--out", "ranks.csv")[0] == 0
    assert call("metrics", "ranks.csv", "--kg", "moved", "--layout", "labelled", "--by", "category")[0] == 0


def test_runs_of_several_seeds_note_it_too(call, graph):
    assert call("train", graph, *TRAIN, "--layout", "labelled", "--seeds", "0,1")[0] == 0
    assert call("rank", "run", "--out", "ranks.csv")[0] == 0


def test_notes_name_the_options(call, graph):
    (graph / "train.txt").write_text(NUMBERS["train"] * 2)
    arguments = ("--layout", "labelled", "--metric", "mr")
    code, out, err = call("train", graph, *TRAIN, "--layout", "labelled")
    assert code == 0
    assert "all are kept (--duplicates drop keeps one of each)" in " ".join((out + err).split())
    assert "line 4: the triple" in call("chance", graph, *arguments, "--duplicates", "error")[2]
    for wrong in (("--layout", "x"), ("--duplicates", "x")):
        assert f"{wrong[0]} must be one of" in call("chance", graph, *wrong)[2]


def test_files_with_classes_are_classified(call, answer, graph):
    facts = [f"{h}\tr\t{t}" for h in "abcd" for t in "abcd" if h < t]
    (graph / "train.txt").write_text("".join(f"{fact}\n" for fact in facts[:4]))
    for name in ("dev", "test"):
        lines = f"{facts[4]}\t1\na\tr\ta\t-1\n{facts[5]}\t1\nb\tr\tb\t-1\n"
        (graph / f"{name}.txt").write_text(lines)
    assert call("train", graph, *TRAIN)[0] == 0
    found = answer("classify", "run", "--metric", "accuracy,roc-auc")["values"]
    assert {(row["positive"], row["negative"]) for row in found} == {(2, 2)}


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("graph/test_ranks.tsv", "its folder holds a graph, and this file would be part of it"),
        ("graph/valid.tsv.gz", "its folder holds a graph"),
        ("graph/ranks.csv", None),
        ("graph/test_ranks.csv", None),
        ("other/test_ranks.tsv", None),
    ],
)
def test_no_output_becomes_a_split_of_the_graph(call, refused, graph, out, words):
    np.savez("e.npz", entity=np.ones((3, 2)), relation=np.ones((2, 2)))
    given = ("rank", "--embeddings", "e.npz", "--model", "distmult", "--kg", graph)
    given = (*given, "--layout", "labelled")
    if words is not None:
        assert words in refused(*given, "--out", out)
        assert Path("graph/train.txt").read_text() == NUMBERS["train"]
        return
    code, told, err = call(*given, "--out", out)
    assert (code, err) == (0, "")
    assert "e.npz: has no entity_labels and no relation_labels" in " ".join(told.split())


def test_the_layout_of_embeddings_has_an_option_of_its_own(refused, call, graph):
    np.savez("e.npz", entity=np.ones((3, 4)), relation=np.ones((2, 4)))
    given = ("rank", "--embeddings", "e.npz", "--model", "complex", "--kg", graph)
    given = (*given, "--layout", "labelled")
    err = refused(*given, "--out", "r.csv")
    assert "--embedding-layout real-imaginary" in err
    assert call(*given, "--embedding-layout", "real-imaginary", "--out", "r.csv")[0] == 0
