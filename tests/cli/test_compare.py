"""`owkg compare` and `owkg stability`: numbers of the library, and errors in one line."""

import io
import json

import numpy as np
import polars as pl
import pytest

from owkg import kg
from owkg.judge.qrels import read_judgements
from owkg.judge.relabelled import relabelled
from owkg.judge.scores import scores
from owkg.judge.stability import stability_by_triple
from owkg.metrics import metric
from owkg.ranks import read_ranks, write_ranks
from owkg.stats.rank_correlation import kendall_tau
from owkg.terminal.tables import p_value, shown

QUERIES, ANSWERS, ENTITIES = 30, 4, 50


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rank tables of three systems, judgements with all and with some of the answers, and a graph."""
    out = tmp_path_factory.mktemp("compared")
    rng = np.random.default_rng(0)
    head = np.repeat(np.arange(QUERIES), ANSWERS)
    tail = np.concatenate([QUERIES + rng.choice(20, ANSWERS, replace=False) for _ in range(QUERIES)])
    relation = head % 2
    for better, name in enumerate(("a", "b", "c")):
        rank = 1 + np.minimum(rng.geometric(0.1 + 0.1 * better, len(head)), ENTITIES - ANSWERS)
        pl.DataFrame(
            {
                "head": [f"e{i}" for i in head],
                "relation": [f"r{i}" for i in relation],
                "tail": [f"e{i}" for i in tail],
                "side": "tail",
                "optimistic": rank,
                "pessimistic": rank,
                "candidates": ENTITIES - ANSWERS + 1,
            }
        ).write_parquet(out / f"{name}.parquet")
    some = rng.random(len(head)) < 0.6
    some[::ANSWERS] = True
    for name, kept in (("full", np.ones_like(some)), ("sparse", some)):
        lines = [
            f"e{h}|r{r}|? 0 e{t} 1\n" for h, r, t in zip(head[kept], relation[kept], tail[kept], strict=True)
        ]
        (out / f"{name}.qrels").write_text("".join(lines))
    entities, relations = tuple(f"e{i}" for i in range(ENTITIES)), ("r0", "r1")
    facts = np.stack([head, relation, tail], axis=1).astype(np.int32)
    graph = kg.KnowledgeGraph(
        entities, relations, {"train": facts[:0], "test": facts, "test_sparse": facts[some]}
    )
    for name, triples in graph.splits.items():
        lines = "".join(f"{entities[h]}\t{relations[r]}\t{entities[t]}\n" for h, r, t in triples)
        (out / "graph").mkdir(exist_ok=True)
        (out / "graph" / f"{name}.txt").write_text(lines or f"{entities[-1]}\tr0\t{entities[-2]}\n")
    runs = []
    for name in "ab":
        table = pl.read_parquet(out / f"{name}.parquet")
        rows = zip(*(table[c] for c in ("head", "relation", "tail", "optimistic")), strict=True)
        runs += [f"{h}|{r}|? Q0 {t} 1 {-rank} {name}\n" for h, r, t, rank in rows]
    (out / "both.run").write_text("".join(runs))
    return out


def tables(folder, labels=None):
    found = {name: pl.read_parquet(folder / f"{name}.parquet") for name in "abc"}
    if labels is None:
        return found
    qrels = read_judgements(folder / f"{labels}.qrels")
    return {name: relabelled(table, qrels).table for name, table in found.items()}


def three(folder):
    return [folder / f"{name}.parquet" for name in "abc"]


def test_queries_that_nobody_answers_are_told(folder, call):
    text = (folder / "sparse.qrels").read_text()
    (folder / "more.qrels").write_text(text + "nobody|r|? 0 e1 0\nnobody|r|? 0 e2 0\n")
    code, _, error = call("compare", *three(folder), "--qrels", folder / "more.qrels", "--metric", "mr")
    assert code == 0
    assert f"{folder / 'more.qrels'}: 1 judged queries are answered by no system." in error


def test_raw_ranks_beside_filtered_ones_are_refused(folder, refused):
    raw = folder / "raw.parquet"
    pl.read_parquet(folder / "a.parquet").with_columns(filtered=False).write_parquet(raw)
    error = refused("compare", raw, folder / "b.parquet", "--metric", "mrr")
    assert "FILE: raw ranks of 'raw' cannot be compared with filtered ranks of 'b'" in error


def test_wilcoxon_says_what_it_tests_of_micro_metrics(folder, call):
    asked = ("--qrels", folder / "sparse.qrels", "--metric", "mrr,macro-mrr", "--ties", "exact", "--format")
    for test, told in (("wilcoxon", True), ("t", False)):
        code, printed, error = call("compare", *three(folder), *asked, "csv", "--test", test)
        assert code == 0
        assert ("Wilcoxon's test of mrr, whose queries differ in weight, tests that the" in error) is told
        rows = pl.read_csv(printed.encode()).filter(quantity="difference")
        assert ("hypothesis" in rows.columns) is told
        if told:
            assert set(rows["metric", "hypothesis"].rows()) == {("mrr", "symmetry"), ("macro-mrr", "metric")}


def test_json_has_what_the_library_says(folder, call):
    asked = (
        "--qrels",
        folder / "full.qrels",
        "--qrels",
        folder / "sparse.qrels",
        "--metric",
        "mrr,mr,macro-mrr",
    )
    code, printed, error = call("compare", *three(folder), *asked, "--format", "json")
    assert code == 0
    assert error.startswith("owkg: note: ")
    assert "of the ranks of some system depend on the unknown order of answers of equal rank" in error
    found = json.loads(printed)
    chosen = [metric(name) for name in ("mrr", "mr", "macro-mrr")]
    full, sparse = (scores(tables(folder, name), chosen, ties="exact")[0] for name in ("full", "sparse"))
    for labels, own in (("full", full), ("sparse", sparse)):
        values = pl.DataFrame(found["values"]).filter(qrels=labels)
        np.testing.assert_allclose(values["value"].to_numpy().reshape(3, 3), own.mean.T)
        assert (values["lower"] < values["value"]).all()
        assert (values["value"] < values["upper"]).all()
        best = values.filter(metric="mr").sort("value")
        assert best["rank"].to_list() == [1, 2, 3]
        pairs = pl.DataFrame(found["pairs"]).filter(qrels=labels, metric="mr")
        assert pairs["difference"][0] == pytest.approx(own.mean[1, 1] - own.mean[1, 0])
        assert (pairs["p_corrected"] >= pairs["p_value"]).all()
        by_metric = pl.DataFrame(found["metrics"]).filter(qrels=labels, metric="mr").row(0, named=True)
        assert by_metric["area"] == pytest.approx(pairs["p_value"].mean())
        assert by_metric["significant"] == (pairs["p_corrected"] < 0.05).sum()
    # A level between p-values and corrected ones counts the corrected ones.
    pairs = pl.DataFrame(found["pairs"]).filter(qrels="full", metric="macro-mrr").sort("p_value")
    level = (pairs["p_value"][0] + pairs["p_corrected"][0]) / 2
    code, printed, _ = call("compare", *three(folder), *asked, "--format", "json", "--ci", 1 - level)
    told = pl.DataFrame(json.loads(printed)["metrics"]).filter(qrels="full", metric="macro-mrr")
    assert (pairs["p_value"] < level).sum() > told["significant"].item()
    assert told["significant"].item() == (pairs["p_corrected"] < level).sum()
    tau = [row for row in found["agreement"] if row["coefficient"] == "tau"]
    np.testing.assert_allclose([row["value"] for row in tau], kendall_tau(full.strength, sparse.strength))
    assert {(row["qrels"], row["with"], row["queries"]) for row in tau} == {("sparse", "full", QUERIES)}
    assert found["parts"] == []


def test_equal_seeds_give_equal_numbers_and_tests_differ(folder, call):
    asked = ("compare", *three(folder), "--metric", "macro-mrr", "--format", "json")
    drawn = (*asked, "--draws", 200)
    first, again, other = (call(*drawn, *more)[1] for more in ((), (), ("--seed", 1)))
    student = call(*asked, "--test", "t", "--correction", "none")[1]
    assert "--draws has no effect with --test t" in call(*drawn, "--test", "t")[2]
    assert first == again
    p = [[row["p_value"] for row in json.loads(text)["pairs"]] for text in (first, other, student)]
    assert p[0] != p[1]
    np.testing.assert_allclose(p[0], p[2], atol=0.15)
    assert all(row["p_value"] == row["p_corrected"] for row in json.loads(student)["pairs"])


def test_tables_figures_and_parts(folder, call, tmp_path):
    out = tmp_path / "out"
    labels = ("--qrels", "test", "--qrels", "test_sparse", "--kg", folder / "graph")
    code, printed, error = call(
        "compare", *three(folder), *labels, "--by", "relation", "--out", out, "--draws", 99
    )
    assert code == 0
    assert "test: value [95% interval] #place" in printed
    assert "test_sparse against test: agreement on the order of systems\n" in printed
    assert f"each order uses all queries of its qrels; both have {QUERIES} queries\n" in printed
    for name in ("values", "pairs", "metrics", "agreement", "parts"):
        assert f"compare_{name}.csv" in printed + error
        assert len(pl.read_csv(out / f"compare_{name}.csv"))
    for name in ("rankings", "labels"):
        for suffix in (".png", ".svg", ".pdf"):
            assert (out / f"compare_{name}{suffix}").stat().st_size > 2000
    # Of three systems the curve of p-values is three steps.
    assert not list(out.glob("compare_asl*"))
    parts = pl.read_csv(out / "compare_parts.csv").filter(qrels="test", metric="mrr", relation="r1")
    own = {name: table.filter(relation="r1") for name, table in tables(folder).items()}
    whole, part = (scores(of, [metric("mrr")])[0].strength for of in (tables(folder), own))
    assert (parts["tau_with_first_qrels"] == 1).all()
    by_sparse = pl.read_csv(out / "compare_parts.csv").filter(
        qrels="test_sparse", metric="mrr", relation="r1"
    )
    other = {name: table.filter(relation="r1") for name, table in tables(folder, "sparse").items()}
    less = scores(other, [metric("mrr")], ties="exact")[0].strength
    assert by_sparse["tau_with_first_qrels"].item() == pytest.approx(kendall_tau(part, less).item())
    assert parts["tau_with_all"].item() == pytest.approx(kendall_tau(whole, part).item())
    assert parts["queries"].item() == QUERIES // 2


def test_runs_are_ranked_under_each_qrels(folder, done):
    labels = ("--qrels", folder / "sparse.qrels", "--kg", folder / "graph")
    asked = ("--metric", "hits@1", "--format", "json", "--test", "t")
    printed = done("compare", folder / "both.run", *labels, *asked)
    values = json.loads(printed)["values"]
    assert [row["system"] for row in values] == ["a", "b"]
    # All that a run lists are answers: the first of a list is one, unless it is missing from the labels.
    assert all(0 < row["value"] < 1 for row in values)


def test_a_part_that_the_first_qrels_lack(folder, done, tmp_path):
    only = [line for line in (folder / "sparse.qrels").read_text().splitlines(True) if "|r0|" in line]
    (tmp_path / "few.qrels").write_text("".join(only))
    labels = ("--qrels", tmp_path / "few.qrels", "--qrels", folder / "full.qrels")
    printed = done(
        "compare",
        *three(folder),
        *labels,
        "--by",
        "relation",
        "--metric",
        "mrr",
        "--test",
        "t",
        "--format",
        "json",
        notes=True,
    )
    parts = {(row["relation"], row["qrels"]): row for row in json.loads(printed)["parts"]}
    assert ("r1", "few") not in parts
    assert parts["r1", "full"]["tau_with_first_qrels"] is None
    assert parts["r0", "full"]["tau_with_first_qrels"] is not None


def test_scores_settle_what_ranks_leave_open(folder, call, done, tmp_path):
    paths = []
    for name, table in tables(folder).items():
        # Scores that rank answers of one rank in the order of their names.
        order = -pl.col("optimistic") + pl.col("tail").str.slice(1).cast(pl.Float64) / 1000
        table.with_columns(score=order).write_parquet(tmp_path / f"{name}.parquet")
        paths.append(tmp_path / f"{name}.parquet")
    asked = ("--qrels", folder / "sparse.qrels", "--metric", "mrr", "--test", "t")
    done("compare", *paths, *asked)
    code, _, error = call("compare", *three(folder), *asked, "--ties", "realistic")
    assert code == 0
    assert "The tie rule realistic takes them for ties" in error


def test_runs_that_leave_out_queries(folder, call, refused, tmp_path):
    lines = (folder / "both.run").read_text().splitlines(True)
    fewer = [line for line in lines if not (line.startswith("e3|") and line.endswith("a\n"))]
    (tmp_path / "fewer.run").write_text("".join(fewer))
    asked = (
        tmp_path / "fewer.run",
        "--qrels",
        "test",
        "--kg",
        folder / "graph",
        "--metric",
        "mrr",
        "--test",
        "t",
    )
    error = refused("compare", *asked)
    assert "'e3|r1|?' has a relevant answer, but no list, or an empty one, under the tag 'a'" in error
    assert "--intersect allows this" in error
    code, _, error = call("compare", *asked, "--intersect")
    assert code == 0
    for name, had in (("a", "29 of 29 queries and 116 of 116"), ("b", "29 of 30 queries and 116 of 120")):
        assert f"test: {name} keeps {had} answers, which every system ranks." in error


def test_what_is_not_judged_is_said(folder, call, tmp_path):
    text = (folder / "sparse.qrels").read_text() + "e0|r0|? 0 e49 -1\n"
    (tmp_path / "unjudged.qrels").write_text(text)
    code, _, error = call("compare", *three(folder), "--qrels", tmp_path / "unjudged.qrels", "--test", "t")
    assert code == 0
    assert error.count("1 answers are pooled and not judged; ranks count them as not relevant") == 1


def test_queries_that_a_system_lacks(folder, call, refused, tmp_path):
    fewer = tmp_path / "fewer.parquet"
    tables(folder)["a"].filter(pl.col("head") != "e3").write_parquet(fewer)
    asked = (folder / "b.parquet", fewer, "--metric", "mrr", "--test", "t")
    error = refused("compare", *asked)
    assert "1 of 30 are missing in some system, such as e3|r1|? in fewer" in error
    code, _, error = call("compare", *asked, "--intersect")
    assert code == 0
    left = (("b", "29 of 30 queries and 116 of 120"), ("fewer", "29 of 29 queries and 116 of 116"))
    for name, had in left:
        assert f"owkg: note: as ranked: {name} keeps {had} answers, which every system ranks.\n" in error
    assert error.count("\n") == 2


def test_models_with_seeds_are_one_pair(folder, call, done, answer, tmp_path):
    """In every format, under qrels and by part."""
    of = {("m", 0): "a", ("m", 1): "b", ("n", 4): "b", ("n", 5): "c"}
    rows = [
        tables(folder)[name].with_columns(model=pl.lit(model), seed=seed)
        for (model, seed), name in of.items()
    ]
    write_ranks(pl.concat(rows), tmp_path / "seeds.parquet")
    asked = ("compare", tmp_path / "seeds.parquet", "--metric", "mrr", "--test", "t")
    printed = done(*asked)
    assert "if m is better (t test over queries and seeds)" in " ".join(printed.split())
    assert "value ± deviation over seeds" in printed
    found = pl.read_csv(io.StringIO(call(*asked, "--format", "csv")[1]))
    assert found["quantity"].to_list() == ["value", "value", "difference"]
    each = {name: (1 / tables(folder)[name]["optimistic"]).mean() for name in "abc"}
    assert found["value"][2] == pytest.approx((each["a"] - each["c"]) / 2)
    assert found["seed_deviation"][:2].to_list() == pytest.approx(
        [abs(each["a"] - each["b"]) / 2**0.5, abs(each["b"] - each["c"]) / 2**0.5]
    )
    assert r" \pm " in call(*asked, "--format", "latex")[1]
    assert " ± " in call(*asked, "--format", "markdown")[1]
    qrels = ("--qrels", folder / "full.qrels", "--qrels", folder / "sparse.qrels", "--by", "relation")
    said = answer(*asked, *qrels)
    assert len(said["pairs"]) == 2
    assert len(said["parts"]) == 4
    done("stability", tmp_path / "seeds.parquet", "--metric", "mrr", "--size", "0.5")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("{a}",), "FILE must name at least two systems"),
        (("{a}", "{a}"), "a.parquet: is given twice"),
        (("{a}", "{b}", "--by", "ties"), "--by must be of side, relation, category, got ties"),
        (("{a}", "{b}", "--by", "category"), "--by category needs --kg"),
        (("{a}", "{b}", "--metric", "mmr"), "--metric must name metrics: unknown metric"),
        (("{a}", "{b}", "--metric", "zmrr"), "must be means, plain or adjusted as an index, got zmrr"),
        (("{a}", "{b}", "--ties", "best"), "--ties must be one of"),
        (("{a}", "{b}", "--ci", "1"), "--ci must be"),
        (("{a}", "{b}", "--qrels", "nothing"), "'nothing' is not a file, and there is no graph"),
        (("{a}", "{b}", "--qrels", "nothing", "--kg", "{graph}"), "--qrels must be a file, or a split of"),
        (
            ("{a}", "{b}", "--qrels", "test", "--qrels", "test", "--kg", "{graph}"),
            "--qrels must be different",
        ),
        (("{run}", "--qrels", "test"), "If it is a run, --kg must give"),
        (("{a}", "{none}"), "none.parquet"),
    ],
)
def test_refused(arguments, message, folder, refused):
    places = {"a": folder / "a.parquet", "b": folder / "b.parquet", "run": folder / "both.run"}
    places |= {"graph": folder / "graph", "none": folder / "none.parquet"}
    error = refused("compare", *(one.format(**places) for one in arguments))
    assert message in error
    assert error.count("\n") == 1


def test_stability(folder, call, done, tmp_path):
    asked = ("stability", *three(folder), "--metric", "mrr,macro-mrr", "--size", "0.5,0.1")
    printed = done(*asked, "--format", "json")
    rows = json.loads(printed)["results"]
    assert [(row["metric"], row["share"], row["queries"]) for row in rows] == [
        ("mrr", 0.1, 3),
        ("mrr", 0.5, 15),
        ("macro-mrr", 0.1, 3),
        ("macro-mrr", 0.5, 15),
    ]
    assert rows[0]["mean"] < rows[1]["mean"] <= 1
    assert call(*asked, "--format", "json")[1] == printed
    printed = done(*asked, "--out", tmp_path / "out", notes=True)
    assert "tau between the order by a share of 30 queries" in printed
    draws = pl.read_csv(tmp_path / "out" / "stability_draws.csv")
    assert draws.shape == (200, 4)
    own = draws.filter(metric="mrr", share=0.5)["tau"].mean()
    assert own == pytest.approx(rows[1]["mean"])
    assert (tmp_path / "out" / "stability.png").stat().st_size > 2000


def test_stability_is_drawn(folder, call, refused, tmp_path):
    asked = ("stability", *three(folder), "--metric", "mrr", "--size", "0.5", "--figure")
    code, _, err = call(*asked, tmp_path / "new" / "s.pdf")
    assert (code, f"wrote {tmp_path / 'new' / 's.pdf'}" in err) == (0, True)
    assert (tmp_path / "new" / "s.pdf").read_bytes().startswith(b"%PDF")
    assert "--figure must end in .png, .pdf or .svg" in refused(*asked, tmp_path / "s.csv")


def test_stability_by_triple(folder, call, done, tmp_path):
    asked = ("stability", *three(folder), "--metric", "mrr,macro-mrr", "--size", "0.5", "--draws", "6")
    printed = done(*asked, "--unit", "triple", "--format", "json")
    shown = json.loads(printed)
    tables = {name: read_ranks(folder / f"{name}.parquet") for name in "abc"}
    found = stability_by_triple(0, tables, [metric("mrr"), metric("macro-mrr")], [0.5], 6)
    assert shown["unit"] == "triple"
    assert [row["triples"] for row in shown["results"]] == [found.queries[0]] * 2
    assert [row["mean"] for row in shown["results"]] == pytest.approx(found.mean[:, 0])
    assert json.loads(call(*asked, "--format", "json")[1])["unit"] == "query"
    printed = done(*asked, "--unit", "triple", "--out", tmp_path / "out", notes=True)
    assert f"by a share of {2 * found.queries[0]} triples and the order by all" in printed
    assert pl.read_csv(tmp_path / "out" / "stability.csv").columns[2] == "triples"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--size", "half"), "--size must be numbers, separated by commas, got 'half'"),
        (("--size", "1.5"), "must be in (0, 1)"),
        (("--coefficient", "r"), "--coefficient must be one of tau, tau-ap, spearman, got 'r'"),
    ],
)
def test_stability_refuses(arguments, message, folder, call, refused):
    error = refused("stability", *three(folder), *arguments)
    assert message in error
    code, _, error = call("stability", folder / "a.parquet")
    assert (code, error) == (
        2, "owkg: error: FILE must name at least two systems: a single one cannot be ranked.\n"
    )  # fmt: skip
    error = refused("stability", *three(folder), "--size", "0.99")
    assert "--size must be small enough to leave out one of the 30 queries" in error


# --- what is shown


def test_two_systems_show_their_difference_first(folder, call, done):
    asked = ("compare", folder / "a.parquet", folder / "b.parquet", "--metric", "mrr,mr,macro-mrr")
    found = json.loads(call(*asked, "--format", "json")[1])["pairs"]
    printed = done(*asked)
    first = printed.split("interval] #place")[0]
    for row in found:
        assert row["lower"] < row["difference"] < row["upper"]
        numbers = (row[name] for name in ("difference", "lower", "upper"))
        of, lower, upper = (("+" if value >= 0 else "") + shown(value) for value in numbers)
        told = f"{of} [{lower}, {upper}]"
        line = next(line for line in first.splitlines() if told in line)
        assert line.split()[0] == row["metric"]
        assert p_value(row["p_value"], 10_000) in line
    assert "area of p" not in printed


@pytest.mark.parametrize("command", ["compare", "stability"])
def test_tables_fit_eighty_columns(folder, done, command, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    name = "a system of a long name, as people give them when they try many settings"
    many = []
    for better in range(7):
        path = tmp_path / f"{name} {better}.parquet"
        tables(folder)["abc"[better % 3]].with_columns(model=pl.lit(f"{name} {better}")).write_parquet(path)
        many.append(path)
    labels = ("--qrels", folder / "full.qrels", "--qrels", folder / "sparse.qrels")
    more = (*labels, "--draws", 9) if command == "compare" else ("--draws", 5)
    printed = done(command, *many, *more, notes=command == "compare")
    assert max(map(len, printed.splitlines())) <= 81
    assert all(len(line) <= 80 for line in printed.splitlines() if line.startswith("  "))
    assert ("and 15 more pairs" in printed) == (command == "compare")


def test_csv_latex_and_markdown(folder, call, done):
    labels = ("--qrels", folder / "full.qrels", "--qrels", folder / "sparse.qrels")
    asked = ("compare", *three(folder), *labels, "--metric", "mrr,macro-mrr", "--draws", 99)
    printed = done(*asked, "--format", "csv", notes=True)
    table = pl.read_csv(printed.encode())
    found = json.loads(call(*asked, "--format", "json")[1])
    assert len(table) == len(found["values"]) + len(found["pairs"]) + len(found["agreement"]) + 2
    for row in found["pairs"]:
        own = table.filter(
            quantity="difference",
            qrels=row["qrels"],
            **{name: row[name] for name in ("metric", "first", "second")},
        )
        assert own["value"].item() == pytest.approx(row["difference"])
        assert own["p_corrected"].item() == pytest.approx(row["p_corrected"])
    tau = table.filter(quantity="tau", metric="mrr")
    assert tau["interval"].to_list() == ["replication", "confidence"]
    assert tau["value"].n_unique() == 1
    printed = done(*asked, "--format", "latex", notes=True)
    assert printed.count(r"\begin{tabular}{lrr}") == printed.count(r"\end{tabular}") == 4
    assert r"\textsc{a} -- \textsc{b} & $" in printed
    assert all(line.startswith(("%", "\\")) or line.endswith(r"\\") for line in printed.splitlines())
    printed = done(*asked, "--format", "markdown", notes=True)
    assert printed.count("|---|---:|---:|") == 4
    assert "| a - b | -" in printed


def test_labels_are_neither_markup_nor_commands(folder, call, done, tmp_path):
    strange = "[/bold]\x1b[31m"
    paths = []
    for name in "ab":
        paths.append(tmp_path / f"{name}.parquet")
        tables(folder)[name].with_columns(
            relation=pl.format("{}{}", pl.lit(strange), "relation"), model=pl.lit(f"[/]{name}")
        ).write_parquet(paths[-1])
    asked = (*paths, "--metric", "mrr", "--test", "t", "--by", "relation")
    for more in ((), ("--format", "latex"), ("--format", "markdown")):
        printed = done("compare", *asked, *more)
        assert "\x1b" not in printed
    assert r"[/bold]\x1b[31mr0" in call("compare", *asked)[1]
    printed = done("metrics", *paths, "--by", "relation", "--metric", "mrr", notes=True)
    assert "\x1b" not in printed
    assert r"[/bold]\x1b[31mr0" in printed
    assert "[/]a" in printed


def test_json_is_alone_and_a_full_disk_leaves_nothing(folder, call, tmp_path, monkeypatch):
    out = tmp_path / "out"
    out.mkdir()
    (out / "compare_values.csv").write_text("of an earlier run")
    (out / "other").write_text("of somebody")
    for command, first in (("compare", "compare_pairs.csv"), ("stability", "stability_draws.csv")):
        asked = (command, *three(folder), "--metric", "mrr", "--draws", 9, "--out", out, "--format", "json")

        def full(table, path, *rest, name=first, write=pl.DataFrame.write_csv):
            if path is not None and path.name == name:
                raise OSError(28, "No space left on device", str(path))
            return write(table, path, *rest)

        with monkeypatch.context() as patch:
            patch.setattr(pl.DataFrame, "write_csv", full)
            code, printed, error = call(*asked)
        assert (code, printed) == (2, "")
        assert error.splitlines()[-1] == f"owkg: error: {out}: cannot be written: No space left on device."
        there = {path.name for path in out.iterdir()}
        assert not [name for name in there if name.startswith((".", "stability"))]
        if command == "compare":
            assert there == {"compare_values.csv", "other"}
            assert (out / "compare_values.csv").read_text() == "of an earlier run"
        code, printed, error = call(*asked)
        assert code == 0
        json.loads(printed)
        assert f"wrote {out / first}" in error
        assert not [path for path in out.iterdir() if path.name.startswith(".")]
    assert (out / "other").read_text() == "of somebody"


def test_the_interval_of_infinitely_many_queries_is_named(folder, call):
    labels = ("--qrels", folder / "full.qrels", "--qrels", folder / "sparse.qrels")
    asked = ("compare", *three(folder), *labels, "--metric", "mrr", "--test", "t")
    rows = json.loads(call(*asked, "--format", "json")[1])["agreement"]
    for row in rows:
        ends = [row[f"confidence_{end}"] for end in ("lower", "upper")]
        assert (ends == [None, None]) == (row["coefficient"] != "tau")
        assert ends == [None, None] or ends[0] <= row["value"] <= ends[1]
    printed = call(*asked)[1]
    assert "[95% replication interval]: its range if as many queries are drawn again" in printed
    assert "infinitely many queries: 95% confidence interval of that tau" in printed


def test_the_order_of_rows_changes_nothing(folder, call, tmp_path):
    mixed = []
    for name, table in tables(folder).items():
        mixed.append(tmp_path / f"{name}.parquet")
        table.sample(fraction=1, shuffle=True, seed=len(mixed)).write_parquet(mixed[-1])
    for command, name in (("compare", "pairs"), ("stability", "results")):
        asked = ("--metric", "mrr,macro-mrr", "--draws", 99, "--format", "json")
        one, two = (json.loads(call(command, *paths, *asked)[1])[name] for paths in (three(folder), mixed))
        for left, right in zip(one, two, strict=True):
            assert left == {
                k: pytest.approx(v, rel=1e-12) if isinstance(v, float) else v for k, v in right.items()
            }


def test_answers_that_a_system_lacks(folder, call, refused, tmp_path):
    fewer = tmp_path / "fewer.parquet"
    tables(folder)["a"][1:].write_parquet(fewer)
    asked = (folder / "b.parquet", fewer, "--metric", "mrr", "--test", "t")
    error = refused("compare", *asked)
    assert "1 are not in all" in error
    code, _, error = call("compare", *asked, "--intersect")
    assert code == 0
    assert "b keeps 30 of 30 queries and 119 of 120 answers" in error
    assert call("stability", *asked[:4], "--intersect")[0] == 0


def test_relevances_below_unjudged_are_unjudged(folder, call, tmp_path):
    outputs = []
    for relevance in (-1, -2):
        text = (folder / "full.qrels").read_text() + f"e0|r0|? 0 e1 {relevance}\n"
        (tmp_path / "some.qrels").write_text(text)
        asked = ("--qrels", tmp_path / "some.qrels", "--test", "t", "--format", "json")
        outputs.append(call("compare", *three(folder), *asked))
    assert outputs[0][0] == 0
    assert outputs[0] == outputs[1]


def test_systems_that_other_facts_filter(folder, call, refused, tmp_path):
    table = read_ranks(folder / "a.parquet").frame
    for name, filters in (
        ("a", ["known"]),
        ("b", ["known", "time"]),
        ("c", ["train"]),
        ("d", ["train", "test"]),
    ):
        write_ranks(table, tmp_path / f"{name}.parquet", {"filter": filters})
    ranks = {name: tmp_path / f"{name}.parquet" for name in "abcd"}
    for one, other in ("ab", "ac"):
        err = refused("compare", ranks[one], ranks[other], "--test", "t")
        assert "FILE: ranks filtered by known ('a') and by " in err
    code, _, err = call("compare", ranks["c"], ranks["d"], "--test", "t")
    assert code == 0
    assert "ranks are filtered by train ('c') and by train, test ('d'): they can only be compared if" in err
