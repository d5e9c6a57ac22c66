"""TREC runs whatever their topics are called: trec_eval's values, names, files, bad input."""

import json
import re

import numpy as np
import polars as pl
import pytest
import pytrec_eval

import owkg
from owkg.cli.main import main
from owkg.ir.names import EXAMPLES, measure, measures_named
from owkg.ir.trec import read_run
from owkg.judge.topics import evaluate_runs
from owkg.kg import KnowledgeGraph
from owkg.stats.interval import student

THEIRS = {
    "AP": "map",
    "AP@10": "map_cut_10",
    "nDCG": "ndcg",
    "nDCG@10": "ndcg_cut_10",
    "P@5": "P_5",
    "Recall@20": "recall_20",
    "Success@5": "success_5",
    "RR": "recip_rank",
    "Rprec": "Rprec",
    "Bpref": "bpref",
    "infAP": "infAP",
}


def written(folder, queries=40, seed=0):
    """A run with ties and judgements with grades, some queries without either."""
    rng = np.random.default_rng(seed)
    run, qrels = [], []
    for topic in range(queries):
        name = f"{301 + topic}" if topic % 2 else f"MB-{topic} é"
        name = name.replace(" ", "_")
        documents = rng.permutation(60)
        if topic != 3:
            scores = rng.integers(0, 12, 30) / 4
            run += [f"{name} Q0 D{d} 0 {s} sys" for d, s in zip(documents[:30], scores, strict=True)]
        if topic != 5:
            qrels += [f"{name} 0 D{d} {rng.integers(-2, 4)}" for d in rng.permutation(60)[:25]]
    (folder / "a.run").write_text("\n".join(run) + "\n")
    (folder / "a.qrels").write_text("\n".join(qrels) + "\n")
    return folder / "a.run", folder / "a.qrels"


def theirs(run, qrels):
    with run.open() as file:
        lists = pytrec_eval.parse_run(file)
    with qrels.open() as file:
        judged = pytrec_eval.parse_qrel(file)
    return pytrec_eval.RelevanceEvaluator(judged, set(THEIRS.values())).evaluate(lists)


def test_values_of_each_query_are_those_of_trec_eval(tmp_path):
    run, qrels = written(tmp_path)
    expected = theirs(run, qrels)
    with pytest.warns(UserWarning, match="judge"):
        found, each = evaluate_runs(run, qrels, list(THEIRS))
    for query, name, value in each.select("query", "measure", "value").rows():
        if query in expected:
            assert value == pytest.approx(expected[query][THEIRS[name]], abs=5e-6), (query, name)
    assert each["query"].n_unique() == 39
    assert set(expected) < set(each["query"])
    means = each.group_by("measure").agg(pl.col("value").mean())
    for name, value in means.rows():
        assert found.filter(metric=name)["value"].item() == pytest.approx(value)
    assert (found["lower"] <= found["value"]).all()
    assert (found["value"] <= found["upper"]).all()
    with pytest.warns(UserWarning, match="judge"):
        shared, _ = evaluate_runs(run, qrels, ["AP"], intersect=True)
    assert shared["value"].item() == pytest.approx(np.mean([one["map"] for one in expected.values()]))


def test_the_command_prints_what_trec_eval_prints(tmp_path, capsys):
    run, qrels = written(tmp_path, seed=3)
    expected = theirs(run, qrels)
    names = ",".join(THEIRS.values())
    assert main(["ir", str(run), "--qrels", str(qrels), "--metric", names, "--format", "trec"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 40 * len(THEIRS) + 2
    assert lines[-len(THEIRS) - 1] == ["num_q", "all", "39"]
    # Query by query, as trec_eval -q has it.
    assert [query for _, query, _ in lines[: len(THEIRS)]] == [lines[0][1]] * len(THEIRS)
    for name, query, value in lines:
        if query in expected:
            assert float(value) == pytest.approx(expected[query][name], abs=1e-4)


def test_topics_may_hold_a_bar_and_mrr_is_the_mean_of_rr(tmp_path, capsys):
    run, qrels = written(tmp_path)
    first = run.read_text().split()[0]
    for path in (run, qrels):
        path.write_text(re.sub(rf"^{first}\b", "Oslo|capital", path.read_text(), flags=re.MULTILINE))
    assert main(["ir", str(run), "--qrels", str(qrels), "--metric", "MRR,MRR@10", "--format", "json"]) == 0
    values = json.loads(capsys.readouterr().out)["values"]
    assert [row["metric"] for row in values] == ["RR", "RR@10"]
    pool = ["pool", str(run), "--depth", "3", "--out", str(tmp_path / "pool"), "--format", "json"]
    assert main(pool) == 0
    assert "Oslo|capital" in (tmp_path / "pool" / "pool.tsv").read_text()


def test_forms_and_files(tmp_path, capsys):
    run, qrels = written(tmp_path)
    line = ["ir", str(run), "--qrels", str(qrels)]
    assert main([*line, "--format", "json", "--per-query", str(tmp_path / "each.csv")]) == 0
    told = json.loads(capsys.readouterr().out)
    each = pl.read_csv(tmp_path / "each.csv", glob=False)
    assert len(each) == len(told["queries"]) == 39 * 5
    assert main([*line, "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("metric,system,value,lower,upper,rank\n")
    assert main(line) == 0
    assert "39 queries: mean [95% interval]" in capsys.readouterr().out


def test_under_a_split_of_a_graph_lists_are_filtered_and_of_the_sides_that_they_ask():
    rng = np.random.default_rng(2)
    facts = np.unique(
        np.stack([rng.integers(9, size=60), np.zeros(60, int), rng.integers(9, size=60)], 1), axis=0
    )
    rng.shuffle(facts)
    splits = {"train": facts[:15], "valid": facts[15:20], "test": facts[20:]}
    labels = tuple("abcdefghi")
    graph = KnowledgeGraph(labels, ("r",), {name: x.astype(np.int32) for name, x in splits.items()})
    rows = [(f"{h}|r|?", t, float(rng.random())) for h in labels for t in labels]
    runs = {
        name: pl.DataFrame(rows, ["query", "answer", "score"], orient="row").sample(fraction=0.8, seed=seed)
        for seed, name in enumerate("xy")
    }
    found = owkg.compare(runs, "AP", qrels="test", graph=graph, test="t").values
    for name, run in runs.items():
        expected = []
        for h in np.unique(splits["test"][:, 0]):
            test, known = ({t for a, _, t in splits[split].tolist() if a == h} for split in ("test", "train"))
            known |= {t for a, _, t in splits["valid"].tolist() if a == h}
            own = run.filter(query=f"{labels[h]}|r|?").sort("score", descending=True)["answer"].to_list()
            own = [x for x in own if labels.index(x) not in known - test]
            hits = np.cumsum([labels.index(x) in test for x in own])
            at = [hits[i] / (i + 1) for i, x in enumerate(own) if labels.index(x) in test]
            expected.append(sum(at) / len(test))
        assert found.filter(system=name)["value"].item() == pytest.approx(np.mean(expected), rel=1e-12)
    heads = {name: run.with_columns(query=pl.lit("?|s|a")) for name, run in runs.items()}
    with pytest.raises(ValueError, match="`qrels` must judge queries that the systems answer"):
        owkg.compare(heads, "AP", qrels="test", graph=graph)


def test_compare_and_stability_of_topics(tmp_path, capsys):
    run, qrels = written(tmp_path)
    other = tmp_path / "b.run"
    lines = [line.split() for line in run.read_text().splitlines()]
    other.write_text(
        "\n".join(" ".join([*parts[:4], str(-float(parts[4])), "other"]) for parts in lines) + "\n"
    )
    with pytest.warns(UserWarning, match="judge"):
        found = owkg.compare([run, other], ["AP", "P@5"], qrels=qrels, test="t")
    with pytest.warns(UserWarning, match="judge"):
        each = evaluate_runs([run, other], qrels, ["AP", "P@5"])[1]
    wide = each.filter(measure="AP").pivot("system", index="query", values="value")
    gaps = (wide["sys"] - wide["other"]).to_numpy()
    row = found.pairs.filter(metric="AP").row(0, named=True)
    assert row["difference"] == pytest.approx(gaps.mean())
    assert (row["wins"], row["ties"], row["losses"]) == (
        (gaps > 0).sum(),
        (gaps == 0).sum(),
        (gaps < 0).sum(),
    )
    assert row["effect"] == pytest.approx(gaps.mean() / gaps.std(ddof=1))
    # A t interval, and half a query at each end.
    half = student(0.95, len(gaps)) * gaps.std(ddof=1) / np.sqrt(len(gaps))
    assert 2 * half < row["upper"] - row["lower"] < 3 * half
    options = ["--qrels", str(qrels), "--metric", "AP"]
    for form in ("table", "json", "csv", "latex"):
        assert main(["compare", str(run), str(other), *options, "--format", form]) == 0
        assert "AP" in capsys.readouterr().out
    assert main(["stability", str(run), str(other), *options, "--draws", "5", "--size", "0.5"]) == 0
    assert "AP" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("map", "AP"),
        ("P_10", "P@10"),
        ("ndcg_cut_5", "nDCG@5"),
        ("R@100", "Recall@100"),
        ("recip_rank", "RR"),
        ("infAP", "infAP"),
        ("rbp", "RBP(p=0.8)"),
        ("RBP(p=.5)", "RBP(p=0.5)"),
        ("rbp@0.95", "RBP(p=0.95)"),
        ("P.5", "P@5"),
        ("success_1", "Success@1"),
    ],
)
def test_names(text, name):
    assert measure(text).name == name


def test_a_no_break_space_is_part_of_a_field(tmp_path):
    path = tmp_path / "one.run"
    path.write_text("q1 Q0 New\u00a0York 1 2.5 m\n")
    assert read_run(path, topics=True)["answer"].item() == "New\u00a0York"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("P", "P needs a cutoff, a whole number from 1 to 2\\^53, as in P@10, got 'P'"),
        ("ndcg_cut.0", "nDCG needs a cutoff"),
        (f"nDCG@{10**20}", r"nDCG needs a cutoff, a whole number from 1 to 2\^53, as in nDCG@10"),
        ("P@1.5", "P needs a cutoff"),
        ("RBP(p=1.2)", r"RBP needs a persistence between 0 and 1, as in RBP\(p=0.8\), got"),
        ("Rprec@5", "Rprec has no cutoff"),
    ],
)
def test_a_parameter_that_a_measure_cannot_have(text, fault):
    for names in (text, ["AP", text]):
        with pytest.raises(ValueError, match=fault):
            measures_named(names)


@pytest.mark.parametrize(
    "text", ["P", "P@0", "P@1.5", "AP@", "rbp@1", "Rprec@5", "mrr", "hits@10", "", "AP(p=0.5)"]
)
def test_no_names(text):
    assert measure(text) is None


def test_examples_are_names():
    assert [measure(name).name for name in EXAMPLES] == list(EXAMPLES)
    assert measures_named("mrr") is None
    assert measures_named(None) is None
    with pytest.raises(
        ValueError, match=r"all measures share one \(owkg ir --level 2\), got 'AP\(rel=2\)@5'"
    ):
        measures_named(["AP(rel=2)@5"])
    assert [one.name for one in measures_named(["AP", "mrr", "MRR@10"]) or []] == ["AP", "RR", "RR@10"]
    with pytest.raises(ValueError, match="got 'mr' among measures of lists"):
        measures_named(["AP", "mr"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["--metric", "AQ"], "--metric must be among AP"),
        (["--qrels", "nowhere"], "No such file"),
        (["--level", "0"], "--level"),
    ],
)
def test_bad_options(line, message, tmp_path, capsys):
    run, qrels = written(tmp_path)
    given = ["ir", str(run), *(["--qrels", str(qrels)] if "--qrels" not in line else []), *line]
    assert main(given) == 2
    assert message in capsys.readouterr().err


def test_bad_files(tmp_path):
    run, qrels = written(tmp_path)
    (tmp_path / "bad.run").write_text("301 Q0 D1 1 high sys\n")
    with pytest.raises(ValueError, match=r"bad\.run, line 1: a score must be a number"):
        evaluate_runs(tmp_path / "bad.run", qrels)
    (tmp_path / "other.qrels").write_text("999 0 D1 1\n")
    with pytest.raises(ValueError, match="`qrels` must judge queries that sys answers, got none"):
        evaluate_runs(run, tmp_path / "other.qrels")
    with pytest.raises(ValueError, match=r"a\.run: is given twice"):
        evaluate_runs([run, run], qrels)
    with pytest.raises(ValueError, match="`qrels` must be given with measures of lists"):
        owkg.compare([run, run], "AP")
    both = tmp_path / "both.run"
    both.write_text("301 Q0 D1 1 2 x\n301 Q0 D1 1 2 y\n")
    with pytest.raises(
        ValueError, match=r"both\.run: holds 2 systems \('x', 'y'\), which cannot all be named 'a'"
    ):
        evaluate_runs({"a": both}, qrels)
    with pytest.raises(ValueError, match="`by` applies to rank metrics"):
        owkg.compare([run, run], "AP", qrels=qrels, by="side")


RUN = {"q1": {"d1": 2.0, "d2": 3.0}, "q2": {"d3": 1}}
OTHER = {"q1": {"d1": 4.0, "d2": 3.0}, "q2": {"d4": np.float32(1)}}
QRELS = {"q1": {"d1": 1, "d2": 0}, "q2": {"d3": np.int64(1)}}


@pytest.mark.filterwarnings("ignore:.*queries without judgements")
def test_dictionaries_are_runs_and_judgements():
    """As pytrec_eval and ranx have them."""
    values, _ = evaluate_runs({"a": RUN, "b": OTHER}, QRELS, "AP")
    assert dict(values.select("system", "value").rows()) == {"a": 0.75, "b": 0.5}
    assert evaluate_runs(RUN, QRELS, "AP")[0]["system"].to_list() == ["run"]
    found = owkg.compare(
        {"a": RUN, "b": OTHER}, "AP", qrels={"x": QRELS, "y": {"q1": {"d2": 1}, "q2": {"d4": 1}}}
    )
    assert found.values.filter(qrels="x")["value"].to_list() == [0.75, 0.5]
    assert found.values.filter(qrels="y")["value"].to_list() == [0.5, 0.75]


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ({"q1": {"d1": float("nan")}}, "`systems` the score of 'd1' to 'q1' must be a number, got nan"),
        ({"q1": {"d1": "2"}}, "must be a number, got '2'"),
        ({"q1": {"d1": True}}, "must be a number, got True"),
        ({"q1": {1: 2.0}}, "must have non-empty text as keys, got 1"),
        ({"q1": {"": 2.0}}, "must have non-empty text as keys, got ''"),
        ({"q1": ["d1"]}, "got list for the query 'q1'"),
        ({}, "must be"),
        ({"q1": {"\udc80": 2.0}}, r"`systems` must hold text that UTF-8 can write, got '\\udc80'"),
    ],
)
def test_bad_dictionaries(run, message):
    with pytest.raises(ValueError, match=message):
        evaluate_runs({"a": run}, QRELS)


def test_a_lone_surrogate_in_a_file_is_named(tmp_path):
    (tmp_path / "run.json").write_text('{"q1": {"\\udc80": 2.0}}')
    with pytest.raises(ValueError, match=r"run\.json, line 1: must be Unicode, got .udc80, half of a letter"):
        evaluate_runs([tmp_path / "run.json"], QRELS)


def test_dictionaries_are_ranked_against_a_graph():
    triples = np.array([[0, 0, 1], [0, 0, 2], [1, 0, 2]], np.int32)
    graph = KnowledgeGraph(("a", "b", "c", "d|e"), ("r",), {"train": triples[:0], "test": triples})
    same = {"b|r|?": {"c": 1}}
    run = {"a|r|?": {"b": 3.0, "d|e": 2.0, "c": 1.0}} | same
    systems = {"x": run, "y": {"a|r|?": {"c": 3.0, "b": 2.0, "d|e": 1.0}} | same}
    expected = {"x": pytest.approx(5 / 6), "y": 1.0}
    for qrels in ("test", {"a|r|?": {"b": 1, "c": 1}} | same):
        found = owkg.compare(systems, "mrr", qrels=qrels, graph=graph, ties="pessimistic")
        assert dict(found.values.select("system", "value").rows()) == expected
    with pytest.raises(ValueError, match="`systems`: the graph has no entity 'z'"):
        owkg.compare({"x": run, "y": {"a|r|?": {"z": 1.0}}}, "mrr", qrels="test", graph=graph)
    with pytest.raises(ValueError, match="`systems`: a query must be 'head"):
        owkg.compare({"x": run, "y": {"301": {"z": 1.0}}}, "mrr", qrels="test", graph=graph)
