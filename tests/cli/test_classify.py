"""`owkg classify` as its users meet it."""

import json

import numpy as np
import polars as pl
import pytest

from owkg.classification import read_triples


@pytest.fixture
def run(tmp_path, monkeypatch, call):
    """A trained run on a small graph with hard negatives, in the current folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    folder = tmp_path / "graph"
    folder.mkdir()
    facts = np.unique(rng.integers(0, [30, 3, 30], (500, 3)), axis=0)
    rng.shuffle(facts)
    names = {"train": 300, "valid": 40, "valid_negatives": 40, "test": 40, "test_negatives": 40}
    at = 0
    for name, size in names.items():
        rows = facts[at : at + size]
        (folder / f"{name}.txt").write_text("".join(f"e{h}\tr{r}\te{t}\n" for h, r, t in rows))
        at += size
    assert call("train", folder, "--model", "distmult", "--dim", 8, "--epochs", 2, "--out", "run")[0] == 0
    return "run"


def test_a_run_then_its_table_say_the_same(run, call):
    code, out, _ = call("classify", run, "--out", "a.parquet", "--figure", "c.png")
    assert code == 0
    assert "Triple classification of test, 80 triples, 40 positive, 40 negative" in out
    assert "wrote a.parquet: 160 scored triples" in out
    first = json.loads(call("classify", run, "--format", "json")[1])
    again = json.loads(call("classify", "a.parquet", "--format", "json")[1])
    assert first == again
    assert len(first["values"]) == 8
    assert first["thresholds"][0]["relation"] is None
    assert (first["pairs"], first["notes"]) == ([], [])


def test_several_tables_are_compared(run, call):
    assert call("classify", run, "--out", "a.parquet")[0] == 0
    read_triples("a.parquet").with_columns(-pl.col("score")).write_csv("b.csv")
    code, out, _ = call(
        "classify", "a.parquet", "b.csv", "--metric", "auc,accuracy", "--thresholds", "global"
    )
    assert (code, "Differences, with p-values" in out) == (0, True)
    found = json.loads(call("classify", "a.parquet", "b.csv", "--metric", "auc", "--format", "json")[1])
    values = {row["model"]: row["value"] for row in found["values"]}
    assert values["a"] == pytest.approx(1 - values["b"])
    assert found["pairs"][0]["difference"] == pytest.approx(values["a"] - values["b"])


def test_models_of_tables_are_named_by_their_files(run, call, refused, tmp_path):
    assert call("classify", run, "--out", "m.v1.csv")[0] == 0
    read_triples("m.v1.csv").write_csv("m.v2.csv")
    found = json.loads(call("classify", "m.v1.csv", "m.v2.csv", "--metric", "auc", "--format", "json")[1])
    assert [row["model"] for row in found["values"]] == ["m.v1", "m.v2"]
    (tmp_path / "x").mkdir()
    read_triples("m.v1.csv").write_csv("x/m.v1.csv")
    assert "x/m.v1.csv: the model 'm.v1' is in m.v1.csv too" in refused("classify", "m.v1.csv", "x/m.v1.csv")


def test_narrow_tables_name_every_row(run, call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert call("classify", run, "--out", "a.parquet")[0] == 0
    read_triples("a.parquet").with_columns(-pl.col("score")).write_csv("b.csv")
    _, out, _ = call("classify", "a.parquet", "b.csv", "--metric", "auc,accuracy")
    assert out.count("a b accuracy") == 2  # the p-values stand in a table of their own


def test_drawn_negatives_are_told(run, call):
    found = json.loads(call("classify", run, "--negatives", "frequency", "--seed", 3, "--format", "json")[1])
    assert found["notes"] == ["negative triples are drawn (frequency, seed 3): some may be missing facts"]


def test_groups_and_no_intervals(run, call):
    lines = ("classify", run, "--by", "relation", "--metric", "f1", "--ci", "0", "--format", "json")
    found = json.loads(call(*lines)[1])
    assert [row["relation"] for row in found["values"]] == ["r0", "r1", "r2"]
    assert {row["ci_low"] for row in found["values"]} == {None}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--metric", "foo"), "--metric must be from accuracy"),
        (("--thresholds", "x"), "--thresholds must be relation, global or a number, got 'x'"),
        (("--negatives", "hard"), "--negatives must be one of uniform, frequency"),
        (("--by", "colour"), "--by must be columns of the table"),
        (("--fit", "dev"), "dev"),
        (("--figure", "c.bmp"), "--figure must end in .png, .pdf or .svg"),
        (("--out", "c.txt"), "--out must end in .parquet"),
        (("a.csv",), "tables of scored triples cannot be combined with RUN"),
        (("other",), "name one RUN"),
        (("--embeddings", "x.npz"), "name either RUN"),
    ],
)
def test_bad_arguments(run, call, arguments, message):
    code, out, err = call("classify", run, *arguments)
    assert (code, out, message in err) == (2, "", True), err


def test_neither_run_nor_table(refused):
    assert "name either RUN" in refused("classify")
