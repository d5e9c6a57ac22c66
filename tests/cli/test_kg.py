"""`owkg kg` as its users meet it."""

import json

import numpy as np
import pytest

from owkg import kg
from owkg.evaluation import read_queries
from owkg.judge import read_judgements, run_from_lists, write_run

FILES = {
    "train.txt": "ann\tknows\tbob\nann\tknows\tbob\nbob\tlikes\tcy\n",
    "test.txt": "cy\tlikes\tbob\nann\tknows\tbob\ndan\tknows\tann\n",
}


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_json_is_the_statistics_of_the_folder(done, folder):
    out = done("kg", "info", folder, "--format", "json")
    graph = kg.read_graph(folder, duplicates="keep")
    assert json.loads(out) == {"folder": str(folder)} | kg.graph_statistics(graph)


def test_duplicates_and_leakage_are_part_of_the_report(call, folder):
    found = json.loads(call("kg", "info", folder, "--format", "json")[1])
    assert found["duplicates"] == {"train": 1, "test": 0}
    assert found["leakage"] == {"test": {"train": 1}}
    assert found["reversed_in_train"]["test"]["triples"] == 1
    assert found["unseen_in_train"]["test"] == {"entities": 1, "relations": 0, "triples": 1}


def test_the_table_says_the_same(done, folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    out = done("kg", "info", folder)
    lines = [line.split() for line in out.splitlines()]
    assert ["4", "entities,", "2", "relations"] in lines
    assert ["train", "3", "1", "-", "-", "-", "-", "-", "-"] in lines
    assert ["test", "3", "0", "1", "1", "0.3333", "1", "0", "1"] in lines
    assert ["1-1", "2", "3"] in lines
    assert ["tail", "4", "1", "1"] in lines


def test_columns_without_values_are_left_out(call, folder):
    assert "in valid" not in call("kg", "info", folder)[1]
    assert "facts after all" not in call("kg", "info", folder)[1]
    (folder / "test_negatives.txt").write_text("cy\tknows\tcy\n")
    (folder / "valid.txt").write_text("cy\tknows\tcy\n")
    out = call("kg", "info", folder)[1]
    assert "in valid" in out
    assert "facts after all" in out


def test_the_layout_can_be_named(call, refused, folder):
    for name in ("entity2id.txt", "relation2id.txt"):
        (folder / name).write_text("1\nann\t0\n")
    err = refused("kg", "info", folder)
    assert "--layout labelled" in err
    assert call("kg", "info", folder, "--layout", "labelled")[0] == 0


def test_a_factory_of_pykeen(done, refused, tmp_path):
    tables = {
        "entity_to_id": "id\tlabel\n0\tann\n1\tbob\n",
        "relation_to_id": "id\tlabel\n0\tknows\n",
        "numeric_triples": "head\trelation\ttail\n0\t0\t1\n",
    }
    for name, text in tables.items():
        (tmp_path / f"{name}.tsv").write_text(text)
    out = done("kg", "info", tmp_path, "--format", "json")
    assert json.loads(out)["triples"] == {"train": 1}
    (tmp_path / "entity_to_id.tsv").write_text("id\tlabel\n0\tann\n")
    err = refused("kg", "info", tmp_path)
    assert "numeric_triples.tsv, line 2: the tail must be an id in [0, 1), got 1" in err


def bad_lines(folder):
    (folder / "test.txt").write_text("ann\tknows\tbob\nann\tknows\n")
    return f"{folder / 'test.txt'}, line 2: "


def empty(folder):
    (folder / "test.txt").write_text("")
    return f"{folder / 'test.txt'}, line 1: "


def no_train(folder):
    (folder / "train.txt").unlink()
    return f"{folder}: must hold the split train"


def binary(folder):
    (folder / "test.txt").write_bytes(b"ann\tknows\t\xff\n")
    return f"{folder / 'test.txt'}, line 1: must be UTF-8"


@pytest.mark.parametrize("spoil", [bad_lines, empty, no_train, binary])
def test_a_bad_folder_is_one_line_and_exit_code_2(refused, folder, spoil):
    begin = spoil(folder)
    err = refused("kg", "info", folder)
    assert err.startswith(f"owkg: error: {begin}")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["/nowhere/at/all"], "/nowhere/at/all"),
        ([], "DIR"),
        ([".", "--layout", "x"], "--layout"),
        ([".", "--format", "x"], "--format"),
        ([".", "--bogus"], "--bogus"),
    ],
)
def test_bad_arguments_are_named(refused, arguments, named):
    err = refused("kg", "info", *arguments)
    assert named in err
    assert "`" not in err


def test_every_data_set_has_statistics(done, owkg_data):
    for name in ("fb15k237", "nations", "codex-s", "family_tree_published/65"):
        out = done("kg", "info", owkg_data / name, "--format", "json")
        assert json.loads(out)["triples"]["train"] > 0


# --- sample


def test_a_sample_that_other_commands_read(call, answer, tmp_path, owkg_data):
    graph = owkg_data / "nations"
    out = tmp_path / "sample"
    command = ("kg", "sample", graph, out, "--share", "0.1", "--seed", "3")
    code, shown, err = call(*command)
    assert (code, err) == (0, "")
    assert "wrote" in shown
    assert "20 of 201 triples of test" in " ".join(shown.split())
    files = {"triples.txt", "queries.tsv", "qrels.txt", "metadata.json"}
    assert {path.name for path in out.iterdir()} == files
    whole = kg.read_graph(graph)
    queries = read_queries(out / "queries.tsv", whole)
    triples = {tuple(line.split("\t")) for line in (out / "triples.txt").read_text().splitlines()}
    asked = {("tail", h, r) for h, r, _ in triples} | {("head", t, r) for _, r, t in triples}
    assert set(queries.select("side", "entity", "relation").rows()) == asked
    judged = read_judgements(out / "qrels.txt")
    assert (len(judged), set(judged["relevance"])) == (2 * len(triples), {1})
    card = answer(*command, "--overwrite")
    assert (code, card["drawn"], card["queries"]) == (0, 20, len(queries))
    assert card["divergence"] > 0
    assert call(*command)[0] == 2
    # A pool of the queries of the sample.
    lists = np.arange(4)[None]
    head, relation, _ = (label for label in sorted(triples)[0])
    run = run_from_lists(
        "m",
        "tail",
        [whole.entities.index(head)],
        [whole.relations.index(relation)],
        lists,
        -lists.astype(float),
        entities=whole.entities,
        relations=whole.relations,
    )
    write_run(run, tmp_path / "m.run")
    make = ["pool", tmp_path / "m.run", "--depth", "4", "--kg", graph, "--out", tmp_path / "pool"]
    assert call(*make, "--truth", out / "qrels.txt", "--judged-queries-only")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--share", "0"], "--share must be in (0, 1], got 0"),
        (["--share", "1.5"], "--share must be in (0, 1], got 1.5"),
        (["--share", "0.5", "--split", "dev"], "--split must be a split with triples (train, valid, test)"),
        ([], "--share"),
    ],
)
def test_a_sample_that_cannot_be(refused, tmp_path, owkg_data, arguments, shown):
    err = refused("kg", "sample", owkg_data / "nations", tmp_path / "s", *arguments)
    assert shown in err
    assert not (tmp_path / "s").exists()
