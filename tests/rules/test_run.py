"""Runs of rules and of predictions, as their users meet them."""

import json
import re
from importlib import import_module

import numpy as np
import polars as pl
import pytest

from owkg.cli.main import main
from owkg.evaluation import score_triples, top_answers
from owkg.models import score_all
from owkg.models.table import table_of
from owkg.train import load_run

pytestmark = pytest.mark.usefixtures("quick_compilation")

TRAIN = (
    "a\tlikes\tb\nb\tlikes\ta\nc\tlikes\td\nd\tlikes\tc\ne\tlikes\tf\na\tknows\tb\nc\tknows\td\ne\tknows\tf\n"
)


@pytest.fixture
def folder(tmp_path):
    graph = tmp_path / "graph"
    graph.mkdir()
    (graph / "train.txt").write_text(TRAIN)
    (graph / "test.txt").write_text("f\tlikes\te\n")
    (graph / "valid.txt").write_text("f\tlikes\te\n")
    return graph


def test_table_is_looked_up():
    table = table_of(
        np.array([5, 0, 5]), np.array([3, 1, 2]), np.array([1, 7, 2]), num_entities=4, num_relations=1
    )
    assert score_all(table, [0, 1], [0, 0], "tail").tolist() == [[0, 7, 0, 0], [0, 0, 0, 0]]
    assert score_all(table, [1], [0], "head", [3, 2]).tolist() == [[1, 2]]
    assert score_triples(table, [[0, 0, 1], [1, 0, 3]]).tolist() == [7, 0]
    assert top_answers(table, [1], [0], "head", known=None, depth=2).answer.tolist() == [[2, 3]]


def test_long_answers_are_written_in_passes():
    answer = np.random.default_rng(0).permutation(300)
    table = table_of(np.zeros(300, int), answer, np.arange(1, 301), num_entities=300, num_relations=1)
    assert np.asarray(score_all(table, [0], [0], "tail"))[0, answer].tolist() == [*range(1, 301)]


def test_rules_are_a_run_that_is_evaluated_and_explained(folder, tmp_path, capsys):
    run, ranks = tmp_path / "run", tmp_path / "ranks.parquet"
    command = ["rules", str(folder), "--out", str(run), "--min-confidence", "0.01"]
    assert main([*command, "--format", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["valid"]["mrr"] == 1
    path = load_run(run).path
    assert (path["loss"].to_list(), path["valid_mrr"].to_list()) == ([None], [1])
    words = pl.read_parquet(run / "rules.parquet")["rule"].to_list()
    assert {"likes(X,Y) <- likes(Y,X)", "likes(X,Y) <- knows(X,Y)"} <= set(words)
    assert main(["rank", str(run), "--out", str(ranks)]) == 0
    assert pl.read_parquet(ranks)["pessimistic"].to_list() == [1, 1]
    capsys.readouterr()
    assert main(["rules", "explain", str(run), "--query", "f|likes|?", "--format", "json"]) == 0
    (best, *_) = json.loads(capsys.readouterr().out)["answers"]
    assert (best["answer"], best["place"], best["known"]) == ("e", 1, False)
    # e likes f; of five pairs y likes x, four are facts.
    assert (best["rule"], best["support"], best["bodies"]) == ("likes(X,Y) <- likes(Y,X)", 4, 5)
    assert main(["rank", str(run), "--split", "train", "--out", str(tmp_path / "train.parquet")]) == 2
    assert "owkg rules was not run on this query; with --splits all" in capsys.readouterr().err
    assert main(["classify", str(run)]) == 2
    assert "owkg rules was not run on this query" in capsys.readouterr().err
    assert main(command) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert main([*command, "--overwrite"]) == 0


def test_predictions_of_others_are_a_run(folder, tmp_path):
    path, run = tmp_path / "anyburl.txt", tmp_path / "run"
    path.write_text("f likes e\nHeads: f\t0.9\ta\t0.2\t\nTails: a\t0.8\te\t0.8\tb\t0.1\t\n")
    assert main(["rules", str(folder), "--predictions", str(path), "--out", str(run)]) == 0
    loaded = load_run(run)
    ids = {label: i for i, label in enumerate(loaded.entities)}
    scores = score_all(loaded.trained, [ids["f"]], [loaded.relations.index("likes")], "tail")[0]
    assert {label: float(scores[i]) for label, i in ids.items() if scores[i]} == {"a": 2, "e": 2, "b": 1}


def test_queries_without_predictions_are_told(folder, tmp_path, capsys):
    (path := tmp_path / "anyburl.txt").write_text("f likes e\nHeads: f\t0.9\t\nTails: \n")
    assert main(["rules", str(folder), "--predictions", str(path), "--out", str(tmp_path / "run")]) == 0
    assert "1 of 2 queries of valid and test have no answer" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f likes e\nHeads: f\t0.9\nTails: z\t0.8\n", "line 3: the graph has no entity 'z'"),
        ("f likes e\nHeads: f\tnan\nTails: a\t0.8\n", "line 2: must be candidates with scores"),
        ("f likes e\nHeads: f\tinf\nTails: a\t0.8\n", "line 2: a score must be finite"),
        ("f likes e\nHeads: \nTails: \n", "must have at least one candidate, got none for any triple"),
    ],
)
def test_bad_predictions_are_named_by_line(folder, tmp_path, capsys, text, message):
    path = tmp_path / "anyburl.txt"
    path.write_text(text)
    assert main(["rules", str(folder), "--predictions", str(path), "--out", str(tmp_path / "run")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--length", "4"], "--length must be 1, 2 or 3"),
        (["--aggregate", "mean"], "--aggregate"),
        (["--splits", "dev"], "--splits must be all or splits of the graph"),
        (["--min-confidence", "1"], "--min-confidence leaves no rule"),
        (["--predictions", "x", "--length", "1"], "--length has no effect with --predictions"),
        (["--system", "drum"], "--system must be one of rules, rnnlogic, plogicnet"),
        (["--rounds", "2"], "--rounds has no effect with --system rules"),
        (["--system", "plogicnet", "--length", "2"], "--length has no effect with --system plogicnet"),
        (["--system", "rnnlogic", "--min-confidence", "1"], "--min-confidence leaves no rule"),
        (["--system", "plogicnet", "--precision", "nan"], "--precision must be in [0, 1]"),
        (["--system", "plogicnet", "--precision", "1", "--min-support", "4"], "--precision leaves no rule"),
        (["--system", "plogicnet", "--balance", "inf"], "--balance must be a finite number"),
    ],
)
def test_bad_options_are_named(folder, tmp_path, capsys, options, message):
    assert main(["rules", str(folder), "--out", str(tmp_path / "run"), *options]) == 2
    assert message in capsys.readouterr().err.replace("`", "")
    assert not (tmp_path / "run").exists()


def test_queries_that_no_rule_answers_make_no_run(folder, tmp_path, capsys):
    for split in ("valid", "test"):
        (folder / f"{split}.txt").write_text("g\tmeets\th\n")
    assert main(["rules", str(folder), "--out", str(tmp_path / "run")]) == 2
    assert "--splits must have a query that some rule answers" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_table_is_not_trained(folder, tmp_path, capsys):
    assert main(["train", str(folder), "--model", "table", "--out", str(tmp_path / "run")]) == 2
    assert "got 'table', which owkg rules makes" in capsys.readouterr().err


def test_walks_that_are_too_many_are_told_beforehand(folder, tmp_path, capsys, monkeypatch):
    mine = import_module("owkg.rules.mine")
    monkeypatch.setattr(mine, "_BODY_WALKS", 4)
    monkeypatch.setattr(mine, "_ALL_WALKS", 3)
    assert main(["rules", str(folder), "--out", str(tmp_path / "run")]) == 2
    estimate, error = capsys.readouterr().err.splitlines()
    assert re.search(
        r"note: \d+ bodies with \d+ walks along facts; left out: .* with more than 4 walks", estimate
    )
    assert re.search(r"error: --length 2 with --max-bodies 20000 needs \d+ walks .* the limit is 3:", error)
    assert not (tmp_path / "run").exists()


def test_rules_are_not_gone_on_with(folder, tmp_path, capsys):
    run = str(tmp_path / "run")
    assert main(["rules", str(folder), "--out", run]) == 0
    assert main(["train", str(folder), "--out", run, "--resume"]) == 2
    assert "got 'table', which owkg rules makes" in capsys.readouterr().err


@pytest.mark.parametrize("system", ["rules", "rnnlogic", "plogicnet"])
def test_a_graph_without_paths_has_no_rules(tmp_path, capsys, system):
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.txt").write_text("a\tr\ta\nb\tr\tb\n")
    assert main(["rules", str(tmp_path), "--system", system, "--out", str(tmp_path / "run")]) == 2
    assert "leaves no rule" in capsys.readouterr().err


def test_query_and_run_of_an_explanation_are_checked(folder, tmp_path, capsys):
    run = tmp_path / "run"
    assert main(["rules", str(folder), "--out", str(run)]) == 0
    for query, message in (("f likes", "--query must be"), ("z|likes|?", "has no entity 'z'")):
        assert main(["rules", "explain", str(run), "--query", query]) == 2
        assert message in capsys.readouterr().err
    (run / "rules.parquet").write_bytes(b"PAR1")
    assert main(["rules", "explain", str(run), "--query", "f|likes|?"]) == 2
    assert "must hold rules" in capsys.readouterr().err


@pytest.mark.parametrize("system", ["rnnlogic", "plogicnet"])
def test_rules_that_are_learned_are_a_run(folder, tmp_path, capsys, system):
    (folder / "valid.txt").unlink()
    run = tmp_path / "run"
    command = ["rules", str(folder), "--system", system, "--rounds", "1", "--out", str(run)]
    command += ["--length", "1", "--per-relation", "4"] if system == "rnnlogic" else []
    assert main([*command, "--format", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["rules"] >= 2, made["queries"], made["valid"]) == (True, 2, {})
    ids = {label: i for i, label in enumerate(load_run(run).entities)}
    scores = score_all(load_run(run).trained, [ids["f"]], [load_run(run).relations.index("likes")], "tail")[0]
    assert int(np.argmax(scores)) == ids["e"]
    done = main(["rules", "explain", str(run), "--query", "f|likes|?", "--format", "json"])
    out, err = capsys.readouterr()
    if system == "plogicnet":
        assert (done, "also uses embeddings" in err) == (2, True)
        return
    told = [row for row in json.loads(out)["answers"] if row["answer"] == "e"]
    assert "likes(X,Y) <- likes(Y,X)" in {row["rule"] for row in told}
    assert (told[0]["place"], told[0]["adds"] > 0) == (1, True)
