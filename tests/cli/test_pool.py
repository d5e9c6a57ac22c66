"""`owkg pool` as its users meet it."""

import json
import re

import numpy as np
import polars as pl
import pytest

from owkg.files.storage import checksums
from owkg.judge.qrels import read_judgements
from owkg.judge.runs import read_runs, run_from_lists, write_run
from owkg.kg import KnowledgeGraph, read_graph, write_labelled
from owkg.pools.bias import pool_bias
from owkg.pools.read_back import bias_of
from owkg.ranks import write_ranks

ENTITIES = ("ann", "ben", "cat", "oslo", "rome", "lima")
RELATIONS = ("born", "knows")
GRAPH = KnowledgeGraph(
    ENTITIES,
    RELATIONS,
    {
        "train": np.array([[0, 0, 3], [1, 0, 4], [2, 0, 5], [0, 1, 1], [2, 1, 0], [2, 1, 1]], np.int32),
        "valid": np.array([[1, 1, 0]], np.int32),
        "test": np.array([[0, 1, 2], [1, 1, 2]], np.int32),
    },
)
FILES = {"metadata.json", "pool.qrels", "pool.tsv", "runs.trec.gz", "sheet.tsv"}
FILES |= {f"{name}.design.json" for name in ("pool.qrels", "sheet.tsv")}


def run_of(model, lists, entity=(0, 1)):
    """A run of who (ann, ben) knows, from lists of ids."""
    relation = [1] * len(entity)
    scores = -np.arange(float(np.size(lists))).reshape(np.shape(lists))
    return run_from_lists(
        model, "tail", list(entity), relation, lists, scores, entities=ENTITIES, relations=RELATIONS
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a graph and two runs; the current one."""
    monkeypatch.chdir(tmp_path)
    write_labelled(GRAPH, tmp_path / "graph")
    # ann knows ben (train); cat is the test answer of both queries.
    write_run(run_of("one", [[1, 2, 3], [0, 2, 1]]), "one.run")
    write_run(run_of("two", [[0, 3, 2], [2, 1, 0]]), "two.run.gz")
    return tmp_path


MAKE = ["one.run", "two.run.gz", "--depth", "2", "--kg", "graph", "--out", "pool"]
RULES = ["--rule", "functional", "--rule", "type"]


def test_a_pool(call, folder):
    code, out, err = call("pool", *MAKE, *RULES, "--truth", "test")
    assert (code, err) == (0, "owkg: note: 1 queries that the truth answers are not in the runs.\n")
    assert {path.name for path in (folder / "pool").iterdir()} == FILES
    pool = pl.read_csv("pool/pool.tsv", separator="\t")
    assert pool.columns == [
        *("query", "side", "entity", "relation", "answer"),
        *("depth", "systems", "models", "rule", "relevance", "judged_by"),
    ]
    found = pool.select("entity", "answer", "depth", "models", "rule", "relevance").rows()
    # The known answers of train and valid have left the lists before they are cut at 2.
    assert found == [
        ("ann", "ann", 1, "two", None, -1),
        ("ann", "cat", 1, "one", None, 1),
        ("ann", "oslo", 2, "one,two", "type", 0),
        ("ben", "cat", 1, "one,two", None, 1),
        ("ben", "ben", 2, "one,two", None, -1),
    ]
    qrels = read_judgements(folder / "pool" / "pool.qrels")
    assert qrels["relevance"].to_list() == pool["relevance"].to_list()
    runs = read_runs([folder / "pool" / "runs.trec.gz"])
    assert runs.group_by("model").len().sort("model").rows() == [("one", 4), ("two", 4)]
    sheet = pl.read_csv("pool/sheet.tsv", separator="\t")
    assert sorted(sheet["answer_id"]) == ["ann", "ben"]
    assert "wrote pool: 2 systems, 2 candidates to judge" in out
    assert "0 functional, 1 type" in out


def test_json_and_metadata(done, folder):
    out = done("pool", *MAKE, *RULES, "--truth", "test", "--format", "json")
    shown, card = json.loads(out), json.loads((folder / "pool" / "metadata.json").read_text())
    assert shown == {"out": "pool"} | card
    assert card["sizes"] == [
        {"depth": 1, "candidates": 3, "queries": 2, "judged": 2, "relevant": 2},
        {"depth": 2, "candidates": 5, "queries": 2, "judged": 3, "relevant": 2},
    ]
    assert (card["rules"], card["to_judge"]) == ({"functional": 0, "type": 1}, 2)
    assert (card["systems"], card["filter"]) == (["one", "two"], ["train", "valid"])
    assert card["sha256"] == checksums(folder / "pool")
    assert [run["file"] for run in card["runs"]] == ["one.run", "two.run.gz"]
    # Of the test split, who knows cat is not asked.
    assert card["notes"] == ["1 queries that the truth answers are not in the runs."]


def test_equal_input_gives_equal_files(call, folder):
    for name in ("a", "b"):
        assert call("pool", *MAKE[:-1], name)[0] == 0
    assert checksums(folder / "a") == checksums(folder / "b")


def test_what_is_true_and_not_pooled(call, done, folder):
    (folder / "qrels").write_text("ann|knows|? 0 lima 1\nann|knows|? 0 oslo 0\nben|knows|? 0 cat -1\n")
    assert call("pool", *MAKE, "--truth", "qrels")[0] == 0
    relevances = dict(
        read_judgements("pool/pool.qrels").filter(entity="ann").select("answer", "relevance").rows()
    )
    assert relevances == {"ann": -1, "cat": -1, "oslo": 0, "lima": 1}
    options = ["--truth", "qrels", "--closed-world", "--overwrite"]
    out = done("pool", *MAKE, *options)
    relevances = dict(
        read_judgements("pool/pool.qrels").filter(entity="ann").select("answer", "relevance").rows()
    )
    assert relevances == {"ann": 0, "cat": 0, "oslo": 0}
    assert {path.name for path in (folder / "pool").iterdir()} == FILES - {
        "sheet.tsv",
        "sheet.tsv.design.json",
    }
    assert "0 candidates to judge" in out


def test_the_rules_know_the_truth(call, folder):
    """ann is born in oslo (train), which filters it; of a truth that says so, the rule says the same."""
    write_run(
        run_from_lists("m", "tail", [0], [0], [[3, 4]], [[2.0, 1.0]], entities=ENTITIES, relations=RELATIONS),
        "born.run",
    )
    make = [
        "pool",
        "born.run",
        *RULES,
        "--depth",
        "9",
        "--kg",
        "graph",
        "--out",
        "pool",
        "--overwrite",
        "--format",
        "json",
    ]
    rules = [
        json.loads(call(*make, *more)[1])["rules"]["functional"]
        for more in ([], ["--filter", "none"], ["--filter", "none", "--truth", "train"])
    ]
    assert rules == [1, 0, 1]


def test_one_system_is_pooled_with_a_note(call, folder):
    code, _, err = call("pool", "one.run", "--depth", "1", "--kg", "graph", "--out", "pool")
    assert code == 0
    assert "owkg: note: the pool has only one system" in err


def test_systems_that_answer_other_queries(call, refused, folder):
    write_run(run_of("three", [[2]], entity=(0,)), "three.run")
    arguments = ["pool", *MAKE, "three.run"]
    err = refused(*arguments)
    assert "1 of 2 are missing in some, such as 'ben|knows|?' in 'three'; --intersect leaves them out" in err
    assert not (folder / "pool").exists()
    code, _, err = call(*arguments, "--intersect")
    assert code == 0
    assert "owkg: note: 1 queries are left out" in err


def test_rank_tables_say_so(call, folder):
    row = {"head": "ann", "relation": "knows", "tail": "cat", "side": "tail", "candidates": 9}
    write_ranks(pl.DataFrame([row | {"optimistic": 4, "pessimistic": 4}]), folder / "ranks.parquet")
    code, _, err = call("pool", "ranks.parquet", "--depth", "1", "--kg", "graph", "--out", "pool")
    assert code == 0
    assert "owkg: note: ranks.parquet is a rank table, so only its tested answers are pooled." in err


def test_names_go_into_the_sheet(call, folder):
    (folder / "names").write_text("ann\tAnn Ash\tpainter\nknows\tis acquainted with\n")
    assert call("pool", *MAKE, "--names", "names")[0] == 0
    assert "'Ann Ash (painter)' -- is acquainted with --> X?" in (folder / "pool/sheet.tsv").read_text()


@pytest.fixture
def topics(folder):
    """Two TREC runs and qrels whose topics are no queries of a graph."""
    rows = [("301", "d1", 3), ("301", "d2", 2), ("302", "d3", 3), ("302", "d1", 2)]
    for name, of in (("bm25", {}), ("bert", {"d2": "d5"})):
        lines = [f"{query} Q0 {of.get(answer, answer)} 1 {score} {name}\n" for query, answer, score in rows]
        (folder / f"{name}.run").write_text("".join(lines))
    (folder / "topics.qrels").write_text("301 0 d2 1\n301 0 d5 0\n302 0 d1 1\n")


def test_a_pool_of_topics(call, folder, topics):
    made = ("bm25.run", "bert.run", "--depth", "2", "--out", "pool")
    assert call("pool", *made)[0] == 0
    pool = pl.read_csv("pool/pool.tsv", separator="\t", infer_schema=False)
    assert pool.select("query", "answer", "depth", "models").rows() == [
        ("301", "d1", "1", "bert,bm25"),
        ("301", "d2", "2", "bm25"),
        ("301", "d5", "2", "bert"),
        ("302", "d3", "1", "bert,bm25"),
        ("302", "d1", "2", "bert,bm25"),
    ]
    sheet = pl.read_csv("pool/sheet.tsv", separator="\t", infer_schema=False)
    assert set(sheet["question"]) == {f"Is it relevant to '{name}'?" for name in ("301", "302")}
    label = pl.when(pl.col("answer_id").is_in(["d2", "d1"])).then(pl.lit("1")).otherwise(pl.lit("0"))
    sheet.with_columns(label=label).write_csv("filled.tsv", separator="\t")
    assert call("pool", "--read", "filled.tsv", "--pool", "pool", "--out", "back.qrels")[0] == 0
    lines = sorted((folder / "back.qrels").read_text().splitlines())
    assert lines == ["301 0 d1 1", "301 0 d2 1", "301 0 d5 0", "302 0 d1 1", "302 0 d3 0"]
    assert call("pool", *made, "--overwrite", "--truth", "topics.qrels")[0] == 0
    lines = sorted((folder / "pool" / "pool.qrels").read_text().splitlines())
    assert lines == ["301 0 d1 -1", "301 0 d2 1", "301 0 d5 0", "302 0 d1 1", "302 0 d3 -1"]


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("--rule type", "--rule must be left out for topics"),
        ("--kg graph", "--kg must be left out if queries are topics, got graph"),
        ("--truth test", "--truth must be a file of qrels, got 'test'"),
        ("--filter train", "--filter must be "),
        ("one.run", "must be 'head|relation|\\?'|--kg must be given"),
    ],
)
def test_bad_topics(refused, folder, topics, arguments, shown):
    err = refused("pool", "bm25.run", "--depth", "2", "--out", "x", *arguments.split())
    assert pl.Series([err]).str.contains(shown).item(), err
    assert not (folder / "x").exists()


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("one.run", "--out must name"),
        ("--out x", "RUN is missing"),
        ("one.run --out x", "--depth must be given"),
        ("one.run --depth 2 --out x", "--kg must be given"),
        ("one.run --depth 0 --kg graph --out x", "--depth must be a whole number of at least 1"),
        ("one.run one.run --depth 2 --kg graph --out x", "one.run: is given twice"),
        ("none.run --depth 2 --kg graph --out x", "none.run: No such file|No such file or directory"),
        ("one.run --depth 2 --kg none --out x", "none"),
        ("one.run --depth 2 --kg graph --out x --truth other", "--truth must be a split .* or a file"),
        ("one.run --depth 2 --kg graph --out x --closed-world", "--closed-world needs --truth"),
        ("one.run --depth 2 --kg graph --out x --judged-queries-only", "--judged-queries-only needs --truth"),
        (
            "one.run --depth 2 --kg graph --out x --allow-changed",
            "--allow-changed has no effect without --read",
        ),
        ("--read s.tsv --out x --pool y --budget 3", "--budget has no effect with --read"),
        ("one.run --depth 2 --kg graph --out x --filter other", "--filter must be among .*'other'"),
        ("one.run --depth 2 --kg graph --out x --filter test --truth test", "must not name the split"),
        ("one.run --depth 2 --kg graph --out graph", "graph: is there already"),
        ("one.run --depth 2 --kg graph --out graph --overwrite", "was not made by owkg pool"),
        ("one.run --depth 2 --kg graph --out x --pool y", "--pool has no effect without --read"),
        ("--read s.tsv --out x", "--pool must name"),
        ("--read s.tsv --out x --pool y --depth 2", "--depth has no effect with --read"),
        ("one.run --read s.tsv --out x --pool y", "RUN has no effect with --read"),
        ("--read s.tsv --out x --pool graph", "must be a folder that owkg pool wrote"),
    ],
)
def test_bad_input(refused, folder, arguments, shown):
    err = refused("pool", *arguments.split())
    assert pl.Series([err]).str.contains(shown).item()
    assert not (folder / "x").exists()


# --- reading back


@pytest.fixture
def sheets(call, folder):
    """Two filled-in sheets of a pool, that differ in one label."""
    assert call("pool", *MAKE)[0] == 0
    header, *lines = (folder / "pool/sheet.tsv").read_text().splitlines()
    for name, answers in (
        ("first.tsv", {"cat": "y", "oslo": "n"}),
        ("second.tsv", {"cat": "y", "oslo": "y"}),
    ):
        rows = [line.split("\t") for line in lines]
        labelled = ["\t".join([*row[:4], answers.get(row[1], "?"), ""]) for row in rows]
        (folder / name).write_text("\n".join([header, *labelled]) + "\n")
    return folder


READ = ["--pool", "pool", "--out", "judged.qrels"]


def test_one_sheet(done, sheets):
    out = done("pool", "--read", "first.tsv", *READ)
    assert out.endswith("wrote judged.qrels: 5 candidates, 2 relevant, 1 not relevant, 2 not judged\n")
    before, after = read_judgements("pool/pool.qrels"), read_judgements("judged.qrels")
    assert after.drop("relevance").equals(before.drop("relevance"))
    relevance = {"cat": 1, "oslo": 0}
    assert after["relevance"].to_list() == [relevance.get(answer, -1) for answer in before["answer"]]


def test_two_annotators_are_two(call, refused, sheets):
    err = refused("pool", "--read", "first.tsv", "--read", "./first.tsv", *READ)
    assert "--read must name sheets of different annotators, got first.tsv twice" in err
    (sheets / "copy.tsv").write_bytes((sheets / "first.tsv").read_bytes())
    code, _, err = call("pool", "--read", "first.tsv", "--read", "copy.tsv", *READ)
    assert code == 0
    assert "owkg: note: first.tsv and copy.tsv have the same label for every candidate." in err


def test_a_part_of_a_sheet(call, sheets):
    lines = (sheets / "first.tsv").read_text().splitlines(keepends=True)
    (sheets / "part.tsv").write_text("".join(lines[:-1]))
    code, _, err = call("pool", "--read", "part.tsv", *READ)
    assert (code, err) == (0, "owkg: note: 1 candidates that must be judged are in no sheet.\n")


def test_what_annotators_found_decides_between_runs(call, done, refused, folder):
    """From the runs to a pool, to a sheet, to judgements, to another order of the systems."""
    assert call("pool", *MAKE, "--truth", "test")[0] == 0
    header, *lines = (folder / "pool/sheet.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines]
    found = {("ann|knows|?", "oslo")}  # which only "two" lists
    filled = ["\t".join([*row[:4], "y" if tuple(row[:2]) in found else "n", ""]) for row in rows]
    (folder / "filled.tsv").write_text("\n".join([header, *filled]) + "\n")
    assert call("pool", "--read", "filled.tsv", *READ)[0] == 0
    compare = ["compare", "one.run", "two.run.gz", "--kg", "graph", "--metric", "mrr", "--format", "json"]
    out = done(*compare, "--qrels", "judged.qrels", "--qrels", "test")
    values = {(row["qrels"], row["system"]): row["value"] for row in json.loads(out)["values"]}
    assert values["test", "one"] > 0
    assert values["judged", "two"] > values["test", "two"] * 2 / 3
    (folder / "ranks").mkdir()
    for name in ("one.run", "two.run.gz"):
        stem = name.partition(".")[0]
        assert call("ranks", "convert", name, "--kg", "graph", "--out", f"ranks/{stem}.parquet")[0] == 0
    err = refused("compare", "ranks/one.parquet", "ranks/two.parquet", "--qrels", "judged.qrels")
    assert "1 of them are not ranked, such as 'oslo' to ann|knows|?. A run has them if the system" in err


def test_what_each_system_gains_from_its_pool(call, answer, sheets):
    """Of what is relevant, only "one" lists cat for ann, within depth 2; the rest both list."""
    (sheets / "third.tsv").write_text((sheets / "first.tsv").read_text().replace("\tn\t", "\ty\t"))
    found = {row["model"]: row for row in answer("pool", "--read", "third.tsv", *READ)["systems"]}
    expected = pool_bias(read_runs(["pool/runs.trec.gz"]), read_judgements("judged.qrels"), 2)
    assert list(found.values()) == expected.to_dicts()
    assert {name: row["unique_relevant"] for name, row in found.items()} == {"one": 1, "two": 0}
    assert found["one"]["map"] > found["one"]["map_without"]
    shown = call("pool", "--read", "third.tsv", *READ, "--overwrite")[1]
    assert f"{found['one']['map_without']:.4f}" in shown


def test_what_was_judged_before_is_no_gain(call, folder):
    """The truth knows that cat answers both queries, pooled or not; rules and people do not."""
    assert call("pool", *MAKE, *RULES, "--truth", "test")[0] == 0
    header, *lines = (folder / "pool/sheet.tsv").read_text().splitlines()
    rows = ["\t".join([*line.split("\t")[:4], "y", ""]) for line in lines]
    (folder / "filled.tsv").write_text("\n".join([header, *rows]) + "\n")
    found = json.loads(call("pool", "--read", "filled.tsv", *READ, "--format", "json")[1])["systems"]
    judged, run = read_judgements("judged.qrels"), read_runs(["pool/runs.trec.gz"])
    truth = judged.filter(answer="cat")
    assert found == pool_bias(run, judged, 2, kept=truth).to_dicts()
    assert found != pool_bias(run, judged, 2).to_dicts()
    # With --closed-world it stands for annotators.
    assert call("pool", *MAKE, "--truth", "test", "--closed-world", "--overwrite")[0] == 0
    assert bias_of(folder / "pool", read_judgements("pool/pool.qrels")) == (
        pool_bias(run, read_judgements("pool/pool.qrels"), 2).to_dicts()
    )


def test_truth_decides_before_a_rule(call, folder):
    """What the truth judges stays judged, though a rule marks it too: oslo, that only "two" lists for ann."""
    write_run(run_of("one", [[2, 4, 5], [0, 2, 1]]), "one.run")
    (folder / "truth.qrels").write_text("ann|knows|? 0 oslo 0\nann|knows|? 0 cat 1\nben|knows|? 0 cat 1\n")
    assert call("pool", *MAKE, *RULES, "--truth", "truth.qrels")[0] == 0
    pool = pl.read_csv("pool/pool.tsv", separator="\t")
    oslo = pool.filter(query="ann|knows|?", answer="oslo")
    assert oslo.select("models", "rule", "relevance", "judged_by").rows() == [("two", "type", 0, "truth")]
    assert set(pool.filter(judged_by="rule")["answer"]) == {"rome"}
    judged, run = read_judgements("pool/pool.qrels"), read_runs(["pool/runs.trec.gz"])
    truth = judged.filter(pl.col("answer").is_in(["oslo", "cat"]))
    assert bias_of(folder / "pool", judged) == pool_bias(run, judged, 2, kept=truth).to_dicts()


@pytest.mark.parametrize("name", ["pool.qrels", "pool.tsv", "runs.trec.gz"])
def test_a_pool_that_changed_is_read_when_asked_for(call, refused, sheets, name):
    path = sheets / "pool" / name
    if name == "runs.trec.gz":
        write_run(read_runs([path]).filter(model="one"), path)
    else:
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[: 2 + lines[0].startswith("query")]))
    err = refused("pool", "--read", "first.tsv", *READ)
    assert (
        err
        == f"owkg: error: pool: {name} changed since the pool was written; --allow-changed reads it anyway.\n"
    )
    if name == "pool.qrels":
        return
    code, out, err = call("pool", "--read", "first.tsv", *READ, "--allow-changed", "--format", "json")
    assert (code, json.loads(out)["systems"]) == (0, [])
    assert err == f"owkg: note: pool: {name} changed since, so the contribution of each system is unknown.\n"
    path.unlink()
    assert call("pool", "--read", "first.tsv", *READ, "--overwrite", "--allow-changed")[0] == 0


def test_a_sheet_filled_in_where_it_is_changes_no_pool(call, sheets):
    (sheets / "pool/sheet.tsv").write_text((sheets / "first.tsv").read_text())
    assert call("pool", "--read", "pool/sheet.tsv", *READ)[0] == 0


def test_one_system_gains_nothing_to_speak_of(call, folder):
    assert call("pool", "one.run", *MAKE[2:], "--truth", "test")[0] == 0
    assert bias_of(folder / "pool", read_judgements("pool/pool.qrels")) == []


@pytest.mark.parametrize("options", [(), ("--format", "json")])
def test_an_annotator_who_is_unsure_throughout_costs_no_judgement(call, sheets, options):
    """Their agreement is not known, and what the other one says is written."""
    text = re.sub("\t[yn]\t", "\t?\t", (sheets / "second.tsv").read_text())
    (sheets / "unsure.tsv").write_text(text)
    for pair in (("first.tsv", "unsure.tsv"), ("unsure.tsv", "first.tsv")):
        read = [word for name in pair for word in ("--read", name)]
        code, out, err = call("pool", *read, *READ, "--overwrite", *options)
        assert code == 0
        assert f"no candidate is judged in both {pair[0]} and {pair[1]}, so their agreement is unknown" in err
        assert "agreeing" not in out
    said = read_judgements("judged.qrels").filter(pl.col("relevance") >= 0)
    assert sorted(said["relevance"].to_list()) == [0, 1, 1]  # a known answer is one of them


def test_two_sheets(done, answer, sheets):
    out = done("pool", "--read", "first.tsv", "--read", "second.tsv", *READ)
    assert "wrote judged.qrels: 5 candidates, 2 relevant, 0 not relevant, 3 not judged" in out
    assert "both judged 3, agreeing 66.67 %, kappa 0.0000" in out
    assert "2 unsure, 0 in one sheet only" in out
    asked = ("pool", "--read", "first.tsv", "--read", "second.tsv", *READ, "--overwrite")
    found = answer(*asked)
    assert found["not_judged"] == 3
    assert found["agreement"]["kappa"] == pytest.approx(0)
    assert [row["answer"] for row in found["agreement"]["disagreements"]] == ["oslo"]


def test_kappa_that_is_not_defined_is_null(call, sheets):
    text = (sheets / "first.tsv").read_text().replace("\tn\t", "\ty\t")
    (sheets / "third.tsv").write_text(text)
    arguments = ["pool", "--read", "second.tsv", "--read", "third.tsv", *READ, "--overwrite"]
    assert json.loads(call(*arguments, "--format", "json")[1])["agreement"]["kappa"] is None
    assert "kappa undefined" in call(*arguments)[1]


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("\ty\t", "\t\t", "first.tsv, line .: the label must not be blank"),
        ("\ty\t", "\tperhaps\t", "the label must be 1, y"),
        ("ann|knows|?", "ann|likes|?", "the question_id must be a query of the pool"),
    ],
)
def test_bad_sheets(refused, sheets, old, new, shown):
    path = sheets / "first.tsv"
    path.write_text(path.read_text().replace(old, new))
    err = refused("pool", "--read", "first.tsv", *READ)
    assert pl.Series([err]).str.contains(shown).item()
    assert not (sheets / "judged.qrels").exists()


def test_labels_against_the_pool(call, refused, sheets):
    assert call("pool", "--read", "first.tsv", *READ)[0] == 0
    (sheets / "pool/pool.qrels").write_text((sheets / "judged.qrels").read_text())
    err = refused("pool", "--read", "second.tsv", *READ, "--overwrite", "--allow-changed", notes=True)
    assert "such as 'oslo' to 'ann|knows|?', 0 and 1" in err


@pytest.mark.parametrize("out", ["first.tsv", "pool/pool.qrels", "judged.qrels"])
def test_nothing_is_lost(call, sheets, out):
    (sheets / "judged.qrels").write_text("of somebody")
    before = (sheets / out).read_bytes()
    asked = ("pool", "--read", "first.tsv", "--pool", "pool", "--out", out)
    for more in ((), ("--overwrite",)):
        code, _, err = call(*asked, *more)
        if more and out == "judged.qrels":
            assert code == 0
            assert (sheets / out).read_bytes() != before
            continue
        assert code == 2
        assert ("is there already" if out == "judged.qrels" else "--out must be a file of its own") in err
        assert (sheets / out).read_bytes() == before


def test_three_sheets_have_a_majority(done, answer, sheets):
    text = (sheets / "second.tsv").read_text()
    (sheets / "third.tsv").write_text(text)
    many = [part for name in ("first", "second", "third") for part in ("--read", f"{name}.tsv")]
    found = answer("pool", *many, *READ)
    assert (found["relevant"], found["not_judged"], found["no_majority"]) == (3, 2, [])
    assert found["judged_by_all"] == 3
    # Two candidates of three with 3 of 3, one with 1 and 2: P = (1 + 1 + 1/3) / 3, p = (1/9, 8/9).
    chance = (1 + 64) / 81
    assert found["fleiss_kappa"] == pytest.approx((7 / 9 - chance) / (1 - chance))
    assert [pair["sheets"] for pair in found["pairs"]] == [
        ["first.tsv", "second.tsv"],
        ["first.tsv", "third.tsv"],
        ["second.tsv", "third.tsv"],
    ]
    (sheets / "fourth.tsv").write_text((sheets / "first.tsv").read_text())
    out = done("pool", *many, "--read", "fourth.tsv", *READ, "--overwrite", notes=True)
    assert "no majority, so still unjudged" in out
    assert "all 4 judged 3: Fleiss' kappa" in out
    assert "3 not judged" in out


# --- rules, truths and budgets


def test_no_rule_unless_asked_for_and_what_it_costs(call, done, folder):
    assert call("pool", *MAKE)[0] == 0
    assert pl.read_csv("pool/pool.tsv", separator="\t")["rule"].null_count() == 5
    out = done("pool", *MAKE, *RULES, "--overwrite")
    assert "answers known to be true (valid) that the rules would reject" in out
    card = json.loads((folder / "pool" / "metadata.json").read_text())
    cost = card["rule_cost"]
    assert cost["left_out"] == "valid"
    # ben knows ann: ben has no other answer in train, and ann knows somebody.
    row = {"relation": None, "facts": 1, "functional": 0, "type": 0, "rejected": 0, "share": 0.0}
    assert cost["rows"][0].items() >= row.items()
    assert 0 == cost["rows"][0]["lower"] < cost["rows"][0]["upper"] <= 1


def test_a_truth_that_does_not_cover_the_pool(call, refused, folder):
    (folder / "few.qrels").write_text("ann|knows|? 0 cat 1\n")
    asked = ["pool", *MAKE, "--truth", "few.qrels", "--closed-world"]
    err = refused(*asked)
    assert "1 of 2 are not in few.qrels, such as 'ben|knows|?'" in err
    assert "--judged-queries-only pools only the queries that it judges" in err
    assert not (folder / "pool").exists()
    code, _, err = call(*asked, "--judged-queries-only")
    assert code == 0
    assert "owkg: note: 1 queries are left out because the truth does not judge them." in err
    assert set(pl.read_csv("pool/pool.tsv", separator="\t")["query"]) == {"ann|knows|?"}
    # What the truth leaves open is open where annotators come.
    assert call("pool", *MAKE, "--truth", "few.qrels", "--overwrite")[0] == 0


def test_a_budget_takes_shallow_layers_of_whole_queries(call, done, folder):
    assert call("pool", *MAKE, "--budget", "4")[0] == 0
    card = json.loads((folder / "pool" / "metadata.json").read_text())
    pool = pl.read_csv("pool/pool.tsv", separator="\t")
    sheet = pl.read_csv("pool/sheet.tsv", separator="\t")
    asked = pool.join(sheet, left_on=["query", "answer"], right_on=["question_id", "answer_id"])
    assert (pool["depth"].value_counts().sort("depth")["count"].to_list(), len(asked)) == ([3, 2], 4)
    assert asked["depth"].sort().to_list() == [1, 1, 1, 2]
    assert (card["to_judge"], card["beyond_budget"], card["settings"]["budget"]) == (4, 1, 4)
    assert card["notes"] == [
        "the budget leaves 1 of 5 candidates unjudged: the sheet has depths up to 1 as a whole, depth 2 of 1 "
        "of 2 queries, and nothing deeper."
    ]
    text = (folder / "pool/sheet.tsv").read_text().splitlines()
    rows = ["\t".join([*line.split("\t")[:4], "y", ""]) for line in text[1:]]
    (folder / "filled.tsv").write_text("\n".join([text[0], *rows]) + "\n")
    out = done("pool", "--read", "filled.tsv", *READ)
    assert "4 relevant, 0 not relevant, 1 not judged" in out


def test_what_the_rules_took_is_estimated(call, folder, monkeypatch):
    """Half of the known answers of a relation would be rejected: as many are lost as are found."""
    people = 400
    rng = np.random.default_rng(0)
    child = np.repeat(np.arange(people), 2)
    parent = people + rng.permutation(2 * people) // 2
    facts = np.stack([child, 0 * child, parent], 1).astype(np.int32)
    train = rng.random(len(facts)) < 0.5
    names = tuple(f"p{i}" for i in range(2 * people))
    write_labelled(
        KnowledgeGraph(names, ("childOf",), {"train": facts[train], "test": facts[~train]}), "people"
    )
    missing = facts[~train]
    # Each list holds the missing parents and one who is none.
    asked = np.unique(missing[:, 0])
    lists = np.full((len(asked), 3), -1)
    for i, one in enumerate(asked):
        right = missing[missing[:, 0] == one, 2]
        lists[i, : len(right) + 1] = [*right, people + (right[0] + 1) % people]
    scores = -np.arange(3.0) * np.ones((len(asked), 1))
    run = run_from_lists("m", "tail", asked, 0 * asked, lists, scores, entities=names, relations=["childOf"])
    write_run(run, "people.run")
    make = ["people.run", "--depth", "3", "--kg", "people", "--rule", "functional", "--out", "born"]
    assert call("pool", *make)[0] == 0
    pool = pl.read_csv("born/pool.tsv", separator="\t")
    true = {(f"p{h}", f"p{t}") for h, _, t in missing.tolist()}
    lost = sum(pair in true for pair in pool.filter(judged_by="rule").select("entity", "answer").rows())
    assert lost > 50
    header, *lines = (folder / "born/sheet.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines]
    filled = ["\t".join([*row[:4], "ny"[(row[0].split("|")[0], row[1]) in true], ""]) for row in rows]
    (folder / "filled.tsv").write_text("\n".join([header, *filled]) + "\n")
    read = ("pool", "--read", "filled.tsv", "--pool", "born", "--out", "born.qrels")
    found = json.loads(call(*read, "--format", "json")[1])
    assert abs(found["lost_by_rule"] - lost) < 0.35 * lost
    out = call(*read, "--overwrite")[1]
    assert f"about {found['lost_by_rule']:,} of them are relevant, estimated" in " ".join(out.split())


# --- own words, sources, conflicts, an expert

TEMPLATES = "knows\ttail\tWhom does {entity} know?\nborn\tboth\tWas {head} born in {tail}?\n"


def test_templates_are_what_the_sheet_asks(call, done, folder):
    (folder / "templates").write_text(TEMPLATES)
    (folder / "names").write_text("ann\tAnn Ash\tpainter\n")
    done("pool", *MAKE, "--templates", "templates", "--names", "names")
    sheet = pl.read_csv("pool/sheet.tsv", separator="\t")
    assert set(sheet["question"]) == {"Whom does Ann Ash (painter) know?", "Whom does ben know?"}
    (folder / "templates").write_text("born\ttail\tWhere was {entity} born?\n")
    code, _, err = call("pool", *MAKE, "--templates", "templates", "--overwrite")
    assert code == 0
    assert "owkg: note: 1 of 1 relations in the sheet have no template and keep the default words." in err
    assert "'ann' -- knows --> X?" in (folder / "pool/sheet.tsv").read_text()


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            "likes\ttail\tWhom does {entity} like?",
            "line 2: the relation must be one of the graph, got 'likes'",
        ),
        ("knows\ttail\tWhom does she know?", "line 2: the template must hold {entity} or {head}"),
        ("born\tsideways\tWho {entity}?", "line 2: the side must be head, tail or both, got 'sideways'"),
        ("born\ttail", "line 2: must be a relation, the side"),
    ],
)
def test_bad_templates(refused, folder, line, shown):
    (folder / "templates").write_text(TEMPLATES.splitlines()[0] + "\n" + line + "\n")
    err = refused("pool", *MAKE, "--templates", "templates")
    assert err.startswith(f"owkg: error: templates, {shown}")
    assert not (folder / "pool").exists()


def fill(sheet, out, labels, source=""):
    """The sheet with a label for each answer, as an annotator hands it in."""
    table = pl.read_csv(sheet, separator="\t", infer_schema=False)
    table = table.with_columns(label=pl.col("answer_id").replace_strict(labels, default="?"))
    if "source" in table.columns and source:
        table = table.with_columns(source=pl.lit(source))
    table.write_csv(out, separator="\t")


def test_a_column_for_sources(call, done, folder):
    assert call("pool", *MAKE, "--sources")[0] == 0
    header, first, *_ = (folder / "pool/sheet.tsv").read_text().splitlines()
    assert header.split("\t")[-2:] == ["comment", "source"]
    assert first.endswith("\t\t\t")
    template = "https://example.org/search?q={entity}&a={answer}"
    (folder / "names").write_text("ann\tAnn & Co\tpainter\n")
    words = ["--source-template", template, "--names", "names"]
    assert call("pool", *MAKE, *words, "--overwrite")[0] == 0
    sheet = pl.read_csv("pool/sheet.tsv", separator="\t")
    found = dict(
        zip(zip(sheet["question_id"], sheet["answer_id"], strict=True), sheet["source"], strict=True)
    )
    assert found["ann|knows|?", "oslo"] == "https://example.org/search?q=Ann%20%26%20Co&a=oslo"
    # Read back, and kept.
    fill("pool/sheet.tsv", "first.tsv", {"cat": "y", "oslo": "n"}, source="https://found.example")
    read = ("pool", "--read", "first.tsv", *READ, "--annotations", "labels.tsv")
    out = done(*read)
    assert "5 of 5 labels have a source" in out
    kept = pl.read_csv("labels.tsv", separator="\t")
    assert kept.columns == ["query", "answer", "relevance", "sheet", "label", "source", "comment"]
    assert set(kept["source"]) == {"https://found.example"}
    assert set(kept.select("label", "relevance").rows()) == {("y", 1), ("n", 0), ("?", -1)}
    assert call(*read, "--overwrite", "--format", "json")[0] == 0


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("example.org/{entity}", "--source-template must begin with http"),
        ("https://example.org", "--source-template must hold a placeholder"),
        ("https://example.org/{x}", "--source-template may hold {entity}, {answer}, .* got {x}"),
    ],
)
def test_bad_source_templates(refused, folder, template, shown):
    err = refused("pool", *MAKE, "--source-template", template)
    assert pl.Series([err]).str.contains(shown.replace("{", r"\{").replace("}", r"\}")).item()
    assert not (folder / "pool").exists()


TWO = ["pool", "--read", "a.tsv", "--read", "b.tsv", *READ]


@pytest.fixture
def torn(call, folder):
    """Two sheets that differ on cat (twice) and agree on the others."""
    (folder / "templates").write_text(TEMPLATES)
    words = ["--templates", "templates", "--source-template", "https://example.org/{answer}"]
    assert call("pool", *MAKE, *words)[0] == 0
    fill("pool/sheet.tsv", "a.tsv", {"ann": "n", "ben": "n", "cat": "y", "oslo": "n"})
    fill("pool/sheet.tsv", "b.tsv", {"ann": "n", "ben": "n", "cat": "n", "oslo": "n"})
    return folder


def test_a_third_annotator_decides_conflicts(call, done, refused, torn):
    out = done(*TWO, "--conflicts", "c.tsv")
    assert "wrote c.tsv: 2 candidates to judge" in out
    assert "2 not judged" in out
    original = pl.read_csv("pool/sheet.tsv", separator="\t")
    conflicts = pl.read_csv("c.tsv", separator="\t")
    assert conflicts.columns == original.columns
    same = original.filter(answer_id="cat").sort("question_id")
    assert conflicts.sort("question_id").equals(same)  # the same words and addresses, no label
    # A sheet may contain labels, so nothing replaces it.
    assert "c.tsv: is there already, and may contain labels" in refused(
        *TWO, "--conflicts", "c.tsv", "--overwrite"
    )
    fill("c.tsv", "third.tsv", {"cat": "y"})
    out = done(*TWO, "--conflicts-judged", "third.tsv", "--overwrite", "--conflicts", "again.tsv")
    assert "third.tsv decides 2 of 2 conflicts" in out
    assert "no conflicts are left, so again.tsv is not written" in out
    assert "2 relevant, 3 not relevant, 0 not judged" in out
    assert out.count("kappa") == 1  # of the two who judged all
    judged = read_judgements("judged.qrels")
    assert judged.filter(pl.col("relevance") == 1)["answer"].to_list() == ["cat", "cat"]
    fill("c.tsv", "unsure.tsv", {})
    found = json.loads(call(*TWO, "--conflicts-judged", "unsure.tsv", "--overwrite", "--format", "json")[1])
    assert (found["conflicts"], found["decided"], found["not_judged"]) == (2, 0, 2)


def test_bad_third_sheets(call, refused, torn):
    assert call(*TWO, "--conflicts", "c.tsv")[0] == 0
    lines = (torn / "c.tsv").read_text().splitlines()
    labelled = ["\t".join([*line.split("\t")[:4], "y", "", ""]) for line in lines[1:]]
    extra = (torn / "a.tsv").read_text().splitlines()
    extra = next(line for line in extra if line.startswith("ben|knows|?\tben"))
    cases = {
        "short": (
            [labelled[0]],
            "short: must label every conflict, but 1 of 2 are missing, such as 'cat' to '",
        ),
        "more": ([*labelled, extra], "more, line 4: the answer_id must be an answer in the conflicts"),
        "blank": (lines[1:], "blank, line 2: the label must not be blank"),
    }
    for name, (rows, shown) in cases.items():
        (torn / f"{name}.tsv").write_text("\n".join([lines[0], *rows]) + "\n")
        err = refused(*TWO, "--conflicts-judged", f"{name}.tsv", "--overwrite")
        assert shown.replace(name, f"{name}.tsv", 1) in err
    assert "different annotators, got a.tsv twice" in refused(
        *TWO, "--conflicts-judged", "a.tsv", "--overwrite"
    )
    read = ["pool", "--read", "a.tsv", *READ, "--overwrite", "--conflicts-judged", "short.tsv"]
    assert (
        "--conflicts-judged must be left out because there are no conflicts, got short.tsv" in call(*read)[2]
    )


def test_an_expert_checks_a_sample(call, done, refused, torn):
    one = ["pool", "--read", "a.tsv", *READ, "--expert", "e.tsv"]
    out = done(*one, "--expert-sample", "3", "--seed", "5")
    assert "wrote e.tsv: 3 candidates to judge" in out
    sample = pl.read_csv("e.tsv", separator="\t")
    assert sample["label"].null_count() == 3
    assert (sample["answer_id"] == "cat").sum() == 1
    assert "e.tsv, line 2: the label must not be blank" in refused(*one, "--overwrite")
    fill("e.tsv", "said.tsv", {"cat": "y", "ann": "n", "ben": "y", "oslo": "y"})
    back = ["pool", "--read", "a.tsv", *READ, "--expert", "said.tsv", "--overwrite"]
    out = done(*back)
    assert "labels that the expert checked" in out
    found = json.loads(call(*back, "--format", "json")[1])["expert"]
    everything, _, relevant = found["shares"]
    equal = 1 + (sample["answer_id"] == "ann").sum()
    assert (everything["candidates"], everything["equal"], found["agreeing"]) == (3, equal, equal / 3)
    assert (relevant["relevance"], relevant["share"]) == (1, 1.0)
    assert "--expert-sample must be at most the 5 judged candidates, got 9" in call(
        *one[:-1], "f.tsv", "--expert-sample", "9", "--overwrite"
    )[2]  # fmt: skip
    assert "--expert must name the file" in call(*back[:-3], "--overwrite", "--expert-sample", "3")[2]
    assert not (torn / "f.tsv").exists()


def test_options_of_the_other_half(refused, folder):
    for option in ("--conflicts", "--conflicts-judged", "--annotations", "--expert"):
        assert f"{option} has no effect without --read" in refused("pool", *MAKE, option, "x")
    for option in (["--templates", "x"], ["--sources"], ["--source-template", "x"]):
        assert f"{option[0]} has no effect with --read" in refused("pool", "--read", "s.tsv", *READ, *option)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("{e}|{r}|? Q0 nowhere 1 1 one", "bad.run, line 1: the graph has no entity 'nowhere'."),
        ("nowhere|{r}|? Q0 {e} 1 1 one", "bad.run, line 1: the graph has no entity 'nowhere'."),
        ("{e}|nowhere|? Q0 {e} 1 1 one", "bad.run, line 1: the graph has no relation 'nowhere'."),
    ],
)
def test_labels_that_the_graph_has_not(line, shown, refused, folder):
    graph = read_graph(folder / "graph")
    (folder / "bad.run").write_text(line.format(e=graph.entities[0], r=graph.relations[0]) + "\n")
    assert shown in refused("pool", "bad.run", "--depth", "2", "--kg", "graph", "--out", "x")
    assert not (folder / "x").exists()
