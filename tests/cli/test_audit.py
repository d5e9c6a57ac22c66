"""`owkg audit` and `owkg missing` as their users meet them."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

import owkg
from owkg.auditing.box import judgements_of
from owkg.judge import qrels_from_graph, read_judgements, write_judgements
from owkg.pools import read_sheet

INPUT = Path(__file__).parents[1] / "golden" / "input"
TWO = ("oracle.csv", "frequency.csv")
RUNS = ("one.run", "two.run")
LISTED = ("--qrels", "test", "--kg", "graph", "--lists", "one.run", "--lists", "two.run", "--ties", "exact")


@pytest.fixture(autouse=True)
def _here(monkeypatch):
    monkeypatch.chdir(INPUT)


def test_the_table(call, done):
    out = done("audit", *TWO, "--metric", "mrr", "--test", "t", "--sparsity", "0.2,0.4")
    for said in (
        "oracle > frequency",
        "P(better)",
        "full test: mrr, if independent",
        "verdicts",
        "sparsity: 0.2 to 0.4",
        "correlation: not",
    ):
        assert said in out
    code, out, _ = call("audit", *TWO, "--metric", "mrr", "--test", "t")
    assert code == 0
    assert "full-test mrr that each sparsity would imply" in out
    assert "P(better)" not in out
    assert "sparsity: not stated, so owkg claims no full-test metric" in " ".join(out.split())


def test_json_is_what_the_library_gives(call):
    options = (
        "--metric",
        "mrr,hits@10",
        "--average",
        "answers,queries",
        "--sparsity",
        "0.3",
        "--correlation=-0.1,0.1",
    )
    code, out, _ = call("audit", *TWO, *options, "--test", "t", "--format", "json")
    assert code == 0
    box = {"sparsity": 0.3, "correlation": (-0.1, 0.1), "average": ["answers", "queries"]}
    found = owkg.audit(list(TWO), ["mrr", "hits@10"], test="t", **box)
    assert json.loads(out) == json.loads(json.dumps(found.payload()))


def test_a_figure(call, refused, tmp_path):
    figure = tmp_path / "new" / "audit.svg"
    code, _, err = call("audit", *TWO, "--metric", "mrr", "--test", "t", "--figure", figure)
    assert code == 0
    assert f"wrote {figure}" in err
    assert figure.read_bytes().startswith(b"<?xml")
    assert "--figure must end in .png, .pdf or .svg" in refused("audit", *TWO, "--figure", "audit.html")


def test_files(call, answer, refused, tmp_path):
    out, page, text = tmp_path / "audited", tmp_path / "audit.html", tmp_path / "audit.md"
    options = ("--metric", "mrr", "--test", "t", *LISTED, "--judged", "judgements.qrels", "--out", out)
    reports = ("--report", page, "--report", text, "--title", "Words & things")
    code, printed, err = call("audit", *RUNS, *options, *reports)
    assert code == 0
    assert "estimates from the judgements" in printed
    assert f"wrote {page}" in err
    assert "<!DOCTYPE html>" in page.read_text()[:20]
    assert "<title>Words &amp; things</title>" in page.read_text()
    assert "one" in text.read_text()
    told = json.loads((out / "audit.json").read_text())
    assert set(told) == {"models", "pairs", "judged", "plans", "assumptions"}
    assert told["assumptions"]["sparsity_from"] == "judgements of unknown design"
    assert told["assumptions"]["sparsity"] is None
    assert json.loads((out / "audit_sheet.tsv.design.json").read_text())["design"] == "sheet"
    pairs = pl.read_csv(out / "audit_pairs.csv", glob=False)
    (pair,) = told["pairs"]
    assert pairs["demonstrated"].item() == pair["breakdown"]["demonstrated"]
    facts = pl.read_csv(out / "audit_facts.csv", glob=False)
    assert len(facts) == pair["breakdown"]["demonstrated"]
    sheet = out / "audit_sheet.tsv"
    sheet.write_text(sheet.read_text().replace("\t\t\n", "\tyes\t\n"))
    assert (
        read_sheet(sheet)
        .select("query", "answer")
        .sort("query", "answer")
        .equals(facts.select("query", "answer").sort("query", "answer"))
    )
    # The sheet is judgements, and no later audit writes over it.
    assert answer("missing", sheet, "--kg", "graph")["sparsity"][0]["found"] == len(
        facts.unique(["query", "answer"])
    )
    err = refused("audit", *RUNS, "--metric", "mrr", "--out", out)
    assert "audit_sheet.tsv is from an earlier audit and may have been filled in." in err


def test_rounds_of_judging(call, refused, tmp_path):
    """What the first sheet found true turns the order; what it refuted leaves, and other facts are named."""
    common = ("--metric", "mrr", "--test", "t", "--sparsity", "0.3", *LISTED)

    def audited(name, *judged):
        given = [part for file in judged for part in ("--judged", file)]
        code, printed, err = call("audit", *RUNS, *common, *given, "--out", tmp_path / name)
        assert code == 0, err
        return json.loads((tmp_path / name / "audit.json").read_text()), printed

    def filled(name, label):
        sheet = tmp_path / name / "audit_sheet.tsv"
        sheet.write_text(sheet.read_text().replace("\t\t\n", f"\t{label}\t\n"))
        return read_sheet(sheet)

    before = audited("first")[0]["pairs"][0]["breakdown"]
    first = filled("first", "yes")
    told, printed = audited("turned", tmp_path / "first")
    assert told["pairs"][0]["breakdown"] | {"gamma": None} == {
        "certified": 0,
        "demonstrated": 0,
        "share": 0.0,
        "gamma": None,
    }
    assert told["pairs"][0]["verdict"] == "turned by judged answers"
    assert told["assumptions"]["sparsity_from"] == "given"
    text = " ".join(printed.split())
    assert f"Answers that judging found: {len(first)}; candidates that it ruled out: 0." in text
    assert "The judgements are sheets, which owkg uses only as labels" in text
    assert told["assumptions"]["judged_labels"] == [len(first), 0]
    assert (told["assumptions"]["correlation"], "judged" in told) == (None, False)
    assert not (tmp_path / "turned" / "audit_sheet.tsv").exists()
    sheet = tmp_path / "first" / "audit_sheet.tsv"
    sheet.write_text(sheet.read_text().replace("\tyes\t", "\tno\t"))
    told, _ = audited("second", sheet)
    after = told["pairs"][0]["breakdown"]
    assert after["certified"] >= before["certified"]
    second = filled("second", "no")
    assert not len(second.join(first, on=["query", "answer"]))
    told, _ = audited("third", sheet, tmp_path / "second" / "audit_sheet.tsv")
    last = told["pairs"][0]["breakdown"]["certified"]
    assert last is None or last >= after["certified"]
    # Beside other judgements a sheet is no sample of what is missing; alone it is said to be none.
    head, *lines = sheet.read_text().splitlines(keepends=True)
    told_otherwise = read_judgements("judgements.qrels").filter(pl.col("relevance") > 0)
    rows = read_sheet(sheet).with_row_index("at").join(told_otherwise, on=["query", "answer"], how="anti")
    assert len(rows) > 1
    agreed = tmp_path / "agreed.tsv"
    agreed.write_text(head + "".join(lines[at] for at in rows["at"]))
    both = ("--judged", "judgements.qrels", "--judged", agreed)
    some = ("audit", *RUNS, "--metric", "mrr", "--test", "t", *LISTED, "--format", "json")
    with_sheet, without = (json.loads(call(*some, *asked)[1]) for asked in (both, both[:2]))
    for key in ("sparsity_at_least", "design", "sparsity_from"):
        assert with_sheet["assumptions"][key] == without["assumptions"][key]
    for form in (tmp_path / "first", sheet):
        said = json.loads(call(*some, "--judged", form)[1])["assumptions"]
        assert said["sparsity_from"] == "judgements of a sheet"
        assert said["sparsity"] is None
    # Where nothing was judged, nothing changes; a folder without a sheet says so.
    unsure = tmp_path / "unsure.tsv"
    unsure.write_text(sheet.read_text().replace("\tno\t", "\t?\t"))
    assert audited("unsure", unsure)[0]["pairs"][0]["breakdown"] == before
    for command in ("audit", "missing"):
        files = (*RUNS, *common, "--judged") if command == "audit" else ("--kg", "graph")
        err = refused(command, *files, tmp_path / "turned", notes=command == "audit")
        assert "turned: holds no audit_sheet.tsv, because that audit named no facts to judge." in err
    # Sheets that contradict each other.
    other = tmp_path / "other.tsv"
    other.write_text(sheet.read_text().replace("\tno\t", "\tyes\t"))
    err = refused("audit", *RUNS, *common, "--judged", sheet, "--judged", other, notes=True)
    assert f"--judged: {sheet} and {other} must not contradict each other: " in err


def test_labels_that_change_nothing_are_said(call, refused, tmp_path):
    common = ("--metric", "mrr", "--ties", "exact", "--test", "t", "--sparsity", "0.3", "--judged")
    code, out, _ = call("audit", *RUNS, *common, "judgements.qrels", "--qrels", "test", "--kg", "graph")
    assert code == 0
    assert "Without lists the judged labels do not change breakdown numbers." in " ".join(out.split())
    # Known answers that are judged not relevant stay; where all are, no sparsity follows.
    known = qrels_from_graph(owkg.read_graph("graph"), "test").with_columns(relevance=pl.lit(0, pl.Int64))
    doubted = merged_labels(known, tmp_path / "doubted.qrels")
    code, out, _ = call("audit", *RUNS, *common, doubted, "--correlation", "0", *LISTED)
    assert code == 0
    assert f"Known answers that were judged not relevant: {len(known.filter(side='tail'))}." in " ".join(
        out.split()
    )
    err = refused("audit", *RUNS, "--metric", "mrr", "--test", "t", "--judged", doubted, *LISTED, notes=True)
    assert "--judged must leave known answers, but gives a sparsity of" in err
    # More is found than the stated sparsity allows.
    code, out, _ = call(
        "audit",
        *RUNS,
        "--metric",
        "mrr",
        "--test",
        "t",
        "--sparsity",
        "0.01",
        "--judged",
        "judgements.qrels",
        *LISTED,
        "--correlation",
        "0",
    )
    assert "than the stated sparsity allows." in " ".join(out.split())


def merged_labels(known, path):
    """The judgements, with those of known answers, as a file."""
    judged = read_judgements("judgements.qrels")
    keys = ["query", "answer"]
    write_judgements(pl.concat([judged.join(known, on=keys, how="anti"), known.select(judged.columns)]), path)
    return path


@pytest.mark.parametrize(
    "judged", [3, [3], [None], {"a": "b"}, [], pl.LazyFrame(), ""], ids=lambda it: type(it).__name__
)
def test_judgements_of_other_kinds(judged):
    with pytest.raises(ValueError, match="`judged` must be"):
        judgements_of(judged, None, None, sparsity_stated=True)


def test_the_grid_is_at_the_stated_correlations():
    grids = [owkg.audit(list(TWO), "mrr", test="t", correlation=rho).grid for rho in (None, 0.0, (0.1, 0.3))]
    assert grids[0].equals(grids[1])
    at = [grid.filter(sparsity=0.4)["full"].to_numpy() for grid in grids[1:]]
    assert (at[0] < at[1]).all()


def test_few_and_different_candidates(call, tmp_path):
    """Observed intervals are those of the ranks; that the model is off is said."""
    few = pl.DataFrame({"head": [f"h{i}" for i in range(60)], "relation": "r", "tail": "t", "side": "tail"})
    many = pl.Series([6] * 40 + [10_000] * 20)
    for name, far in (("a", 3), ("b", 40)):
        rank = pl.Series([1, 2] * 20 + [far, 1] * 10)
        table = few.with_columns(candidates=many, optimistic=rank, pessimistic=rank)
        table.write_parquet(tmp_path / f"{name}.parquet")
        table[:40].write_parquet(tmp_path / f"{name}_few.parquet")
    both = [tmp_path / f"{name}.parquet" for name in "ab"]
    found = owkg.audit(both, ["mrr", "hits@10"], test="t")
    alone = owkg.evaluate(both[1], ["mrr", "hits@10"], side="tail")
    own = found.models.filter(model="b")
    for end in ("ci_low", "ci_high"):
        assert own.sort("metric")[end].to_list() == pytest.approx(
            alone.sort("metric")[end].to_list(), rel=1e-3
        )
    assert "here they are 6 to 10,000" in " ".join(found.assumptions["notes"])
    # With six candidates every system has Hits@10 of 1, whatever its strength.
    few_of = [tmp_path / f"{name}_few.parquet" for name in "ab"]
    for sparsity in ("0", "0,0.3"):
        code, out, _ = call("audit", *few_of, "--metric", "hits@10", "--sparsity", sparsity, "--test", "t")
        assert code == 0
        assert "1.0000" in out


def test_neighbours_of_many_systems(call, tmp_path):
    whole = pl.read_csv("oracle.csv", glob=False)
    parts = []
    for i in range(7):
        worse = (pl.col("optimistic") + i * (pl.int_range(pl.len()) % 3)).clip(
            upper_bound=pl.col("candidates")
        )
        parts.append(whole.with_columns(optimistic=worse, pessimistic=worse, model=pl.lit(f"m{i}")))
    pl.concat(parts).drop("score").write_parquet(tmp_path / "many.parquet")
    code, out, _ = call("audit", tmp_path / "many.parquet", "--metric", "mrr", "--test", "t")
    assert code == 0
    assert "(only neighbours in the ranking; --out and --format json contain all pairs)" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--sparsity", "1"), "--sparsity must be in [0, 1), got 1.0."),
        (("--sparsity", "0.4,0.2"), "--sparsity must have a lower number that is not above the upper one"),
        (
            ("--ties", "random"),
            "--ties must be one of optimistic, pessimistic, realistic, exact, got 'random'.",
        ),
        (("--sparsity", "much"), "--sparsity must be a number or LOW,HIGH such as 0.2,0.4, got 'much'."),
        (("--sparsity", "20,40"), "--sparsity must be a share, so that 20 % is 0.2, got 40."),
        (("--sparsity", "0.2", "--correlation", "0.9"), "under the stated correlations"),
        (("--metric", "amri"), "--metric must be plain means of weights that fall with the rank"),
        (("--lists", "one.run"), "--lists must include a list of"),
        (("--lists", "one.run", "--lists", "two.run"), "--kg must be given with lists"),
        (("--judged", "full.qrels"), "--kg must be given with judgements"),
        (("--judged", "full.qrels", "--kg", "graph"), "--judged must judge answers that are not yet known"),
        (
            (*LISTED[2:], "--metric", "mrr"),
            "--lists must list the known answers where the ranks have them: 'oracle'",
        ),
        (("--metric", " ,"), "--metric must contain at least one name, got ' ,'."),
        (("--judged-sample", "full.qrels"), "--judged-sample is of judgements, and there are none."),
        (
            ("--judged", "one.run", "--kg", "graph"),
            "one.run, line 1: must be lines `query 0 answer relevance` (TREC)",
        ),
        (("--title", "x", "--report", "a.md"), "--title needs a --report that ends in .html"),
        (("--report", "audit.pdf"), "--report must end in .html, .md, .tex, got 'audit.pdf'."),
        (("--judged", "nowhere.qrels", "--kg", "graph"), "No such file or directory: 'nowhere.qrels'"),
        (("--judged", "graph", "--kg", "graph"), "graph: must be a folder that owkg pool wrote."),
    ],
)
def test_bad_input_is_one_line(call, options, message):
    code, out, err = call("audit", *TWO, "--test", "t", *options)
    assert code == 2
    assert out == ""
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_other_queries(refused, tmp_path):
    whole = pl.read_csv("frequency.csv", glob=False)
    whole[:-3].write_csv(tmp_path / "fewer.csv")
    err = refused("audit", "oracle.csv", tmp_path / "fewer.csv")
    assert len(err.strip().splitlines()) == 1
    whole.with_columns(filtered=False).write_csv(tmp_path / "raw.csv")
    err = refused("audit", "oracle.csv", tmp_path / "raw.csv")
    assert "filtered" in err


def test_missing_of_a_pool(call, refused, tmp_path):
    """A pool is read as it is, and with its sheet once that is filled in."""
    pool = tmp_path / "pool"
    assert (
        call("pool", "one.run", "two.run", "--depth", "3", "--kg", "graph", "--out", pool, "--truth", "test")[
            0
        ]
        == 0
    )
    err = refused("missing", pool, "--kg", "graph")
    assert f"{pool}: must judge answers that are not yet known" in err
    assert "got none, because no pooled candidate is judged yet" in err
    sheet = pl.read_csv(pool / "sheet.tsv", separator="\t", infer_schema=False, glob=False)
    label = pl.when(pl.int_range(pl.len()) % 3 == 0).then(pl.lit("yes")).otherwise(pl.lit("no"))
    sheet.with_columns(label=label).write_csv(pool / "sheet.tsv", separator="\t")
    out = call("missing", pool, "--kg", "graph", "--format", "json")[1]
    told = json.loads(out)
    assert [row["depth"] for row in told["depths"]] == [1, 2, 3]
    assert sum(row["judged"] for row in told["depths"]) == len(sheet)
    assert sum(row["found"] for row in told["depths"]) == -(-len(sheet) // 3)
    assert told["sparsity"][0]["sparsity_at_least"] > 0
    out = call("missing", pool, "--kg", "graph")[1]
    assert "Judged candidates by depth" in out
    # A sheet that is filled in by half is no judgement.
    sheet.with_columns(label=pl.lit("")).with_columns(comment=pl.lit("later")).write_csv(
        pool / "sheet.tsv", separator="\t"
    )
    err = refused("missing", pool, "--kg", "graph")
    assert "sheet.tsv, line 2: the label must not be blank" in err
    # Nor is a pool without depths one.
    table = pl.read_csv(pool / "pool.tsv", separator="\t", infer_schema=False, glob=False)
    table.drop("depth").write_csv(pool / "pool.tsv", separator="\t")
    err = refused("missing", pool, "--kg", "graph")
    assert "pool.tsv: must have a whole number as depth of each candidate." in err


def test_a_folder_of_tables(call, refused, tmp_path):
    """Its own tables are those of this audit alone, and what is read is not written over."""
    out = tmp_path / "out"
    judged = ("--judged", "judgements.qrels", "--kg", "graph")
    assert call("audit", *TWO, "--test", "t", "--out", out, *judged)[0] == 0
    assert (out / "audit_judged.csv").is_file()
    assert call("audit", *TWO, "--test", "t", "--out", out)[0] == 0
    assert not (out / "audit_judged.csv").exists()
    ranks = out / "audit_pairs.csv"
    shutil.copy("oracle.csv", ranks)
    error = refused("audit", ranks, "frequency.csv", "--test", "t", "--out", out)
    assert "cannot be written: it is an input as well" in error
    assert ranks.read_bytes() == Path("oracle.csv").read_bytes()
