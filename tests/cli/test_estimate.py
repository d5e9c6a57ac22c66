"""`owkg pool --draw`, `--plan`, `--more` and `owkg estimate` as their users meet them."""

import json
import re

import polars as pl
import pytest

from owkg.judge.qrels import write_judgements
from owkg.judge.runs import write_run
from owkg.kg import known_splits, read_graph
from owkg.pools import read_sheet
from tests.estimation.worlds import world

RUNS = ("m0.run", "m1.run", "m2.run")
POOL = ("pool", *RUNS, "--kg", "kg", "--depth", 5, "--seed", 7)


@pytest.fixture(scope="module")
def truth_and_folder(tmp_path_factory):
    """A folder with a graph, three runs, and all true answers."""
    folder = tmp_path_factory.mktemp("campaign")
    run, before, truth = world(queries=80)
    for name in ("m0", "m1", "m2"):
        write_run(run.filter(model=name), folder / f"{name}.run")
    write_judgements(truth, folder / "truth.qrels")
    (folder / "kg").mkdir()
    lines = ["\t".join(row) for row in before.select("entity", "relation", "answer").rows()]
    (folder / "kg" / "test.txt").write_text("\n".join(lines) + "\n")
    answers = sorted(set(run["answer"]) | set(truth["answer"]))
    (folder / "kg" / "train.txt").write_text("".join(f"x\tr0\t{a}\n" for a in answers))
    return truth, folder


@pytest.fixture
def folder(truth_and_folder, tmp_path, monkeypatch):
    """The current folder, whose inputs are those."""
    _, source = truth_and_folder
    for one in source.iterdir():
        (tmp_path / one.name).symlink_to(one)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def filled(truth, sheet, *, rows=10**9):
    """Fills in the first rows of a sheet."""
    true = set(truth.select("query", "answer").rows())
    head, *lines = sheet.read_text().splitlines()
    cells = [line.split("\t") for line in lines]
    for i, cell in enumerate(cells):
        cell[4] = str(int((cell[0], cell[1]) in true)) if i < rows else ""
    sheet.write_text("\n".join([head, *("\t".join(cell) for cell in cells)]) + "\n")


def test_a_campaign(folder, truth_and_folder, done, answer, refused):
    truth, _ = truth_and_folder
    done(*POOL, "--draw", "queries:30", "--out", "pool", notes=True)
    assert {"design.json", "design.tsv", "frame.parquet"} <= {one.name for one in (folder / "pool").iterdir()}
    drawn = pl.read_csv("pool/design.tsv", separator="\t")
    assert drawn["place"].to_list() == list(range(1, 31))
    assert drawn["probability"].unique().to_list() == [30 / 80]
    sheet = pl.read_csv("pool/sheet.tsv", separator="\t")
    # Queries with something to judge stand in the order of the draw.
    order = sheet["question_id"].unique(maintain_order=True).to_list()
    assert order == [query for query in drawn["query"] if query in set(order)]
    assert "are as they were written" in refused("estimate", "--pool", "pool")

    filled(truth, folder / "pool" / "sheet.tsv")
    found = answer("estimate", *RUNS, "--pool", "pool", "--metric", "rr,ap,mrr")
    assert found["target"] == "the pool of depth 5"
    assert [row["model"] for row in found["metrics"][:3]] == ["m0", "m1", "m2"]
    assert set(found["metrics"][0]) == {
        "model", "metric", "value", "ci_low", "ci_high", "method", "r", "bounds", "judgements",
        "equivalent_judgements",
    }  # fmt: skip
    assert set(found["differences"][0]) == {
        "first", "second", "metric", "value", "ci_low", "ci_high", "p_value", "method"
    }  # fmt: skip
    assert set(found["missing_share"]) == {"value", "low", "high", "scope", "by_category"}
    for row in found["metrics"]:
        assert row["bounds"][0] <= row["ci_low"] <= row["value"] <= row["ci_high"] <= row["bounds"][1]

    # More of the same: nothing is lost, and intervals are narrower.
    before = (folder / "pool" / "sheet.tsv").read_bytes()
    assert "wrote pool/sheet2.tsv" in done("pool", "--pool", "pool", "--more", 20)
    assert (folder / "pool" / "sheet.tsv").read_bytes() == before
    assert answer("estimate", "--pool", "pool", "--metric", "rr")["unjudged"] == 20
    filled(truth, folder / "pool" / "sheet2.tsv")
    more = answer("estimate", "--pool", "pool", "--metric", "rr", "--no-compare")
    assert more["unjudged"] == 0
    assert more["differences"] == []
    widths = [row["ci_high"] - row["ci_low"] for rows in (more, found) for row in rows["metrics"][:3]]
    assert sum(widths[:3]) < sum(widths[3:])
    table = done("estimate", "--pool", "pool", "--metric", "rr", notes=True)
    assert "50 of 50 drawn queries judged, of 80" in table


@pytest.mark.parametrize(("draw", "metric"), [("prefixes:40", "RR@5"), ("candidates:120", "P@5")])
def test_cheaper_designs(folder, truth_and_folder, done, answer, draw, metric):
    truth, _ = truth_and_folder
    done(*POOL, "--draw", draw, "--out", "pool", notes=True)
    filled(truth, folder / "pool" / "sheet.tsv")
    found = answer("estimate", "--pool", "pool")
    assert found["metrics"][0]["metric"] == metric
    assert (found["missing_share"] is None) == draw.startswith("prefixes")


def test_sheets_of_several_annotators_may_be_half_filled(folder, truth_and_folder, done, answer):
    truth, _ = truth_and_folder
    done(*POOL, "--draw", "queries:30", "--out", "pool", notes=True)
    sheet = folder / "pool" / "sheet.tsv"
    blank = sheet.read_bytes()
    for name in ("ana.tsv", "ben.tsv"):
        filled(truth, sheet, rows=len(blank.splitlines()) - 20)
        sheet.rename(folder / name)
        sheet.write_bytes(blank)
    done(
        "pool",
        "--read",
        "ana.tsv",
        "--read",
        "ben.tsv",
        "--pool",
        "pool",
        "--out",
        "judged.qrels",
        notes=True,
    )
    found = answer("estimate", "--pool", "pool", "--judged", "judged.qrels", "--metric", "rr")
    assert 0 < found["unjudged"] < 15


def test_the_same_seed_draws_the_same_on_any_machine(folder, done):
    for out in ("one", "two"):
        done(*POOL, "--draw", "candidates:50", "--for", "m0-m2:p@5", "--out", out, notes=True)
    for name in ("design.tsv", "sheet.tsv", "design.json"):
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes()


def test_a_plan_writes_nothing(folder, answer):
    before = sorted(folder.iterdir())
    found = answer(*POOL, "--plan", "--metric", "rr,p@5,ap")
    assert sorted(folder.iterdir()) == before
    rows = pl.DataFrame(found["plan"])
    assert set(rows.filter(metric="RR@5")["unit"]) == {"queries", "prefixes"}
    assert set(rows.filter(metric="P@5")["unit"]) == {"queries", "candidates"}
    assert set(rows.filter(metric="AP@5")["unit"]) == {"queries"}
    for _, own in rows.group_by("metric", "unit", maintain_order=True):
        assert own["width"].is_sorted(descending=True)


def test_labels_of_a_proxy_join(folder, truth_and_folder, done, answer, refused):
    truth, _ = truth_and_folder
    done(*POOL, "--draw", "queries:30", "--out", "pool", notes=True)
    filled(truth, folder / "pool" / "sheet.tsv")
    pool = pl.read_csv("pool/pool.tsv", separator="\t", infer_schema=False)
    guessed = pool.select("query", "answer").join(
        truth.select("query", "answer", t=1.0), on=["query", "answer"], how="left"
    )
    guessed = guessed.select("query", "answer", probability=pl.col("t").fill_null(0) * 0.8 + 0.1)
    guessed.write_csv("llm.tsv", separator="\t")
    plain, helped = (
        answer("estimate", "--pool", "pool", "--metric", "ap", *more)["metrics"]
        for more in ((), ("--proxy", "llm.tsv"))
    )
    assert sum(row["ci_high"] - row["ci_low"] for row in helped) < sum(
        row["ci_high"] - row["ci_low"] for row in plain
    )
    guessed.write_parquet("llm.parquet")
    same = answer("estimate", "--pool", "pool", "--metric", "ap", "--proxy", "llm.parquet")["metrics"]
    assert same == helped
    line = refused("estimate", "--pool", "pool", "--errors", "fp=0.6,fn=0.6")
    assert "--errors: fp must add up with fn to less than 1" in line
    guessed[1:].write_csv("llm.tsv", separator="\t")
    assert "--proxy llm.tsv: must give every unjudged candidate" in refused(
        "estimate", "--pool", "pool", "--proxy", "llm.tsv"
    )


def test_sheets_of_other_pools_and_changed_pools_are_refused(folder, truth_and_folder, done, refused):
    truth, _ = truth_and_folder
    done(*POOL, "--draw", "queries:30", "--out", "pool", notes=True)
    done(
        "pool",
        *RUNS,
        "--kg",
        "kg",
        "--depth",
        5,
        "--seed",
        8,
        "--draw",
        "queries:30",
        "--out",
        "other",
        notes=True,
    )
    for one in ("pool", "other"):
        filled(truth, folder / one / "sheet.tsv")
    assert "must be of what was drawn" in refused("estimate", "--pool", "pool", "--judged", "other/sheet.tsv")
    (folder / "m0.run").unlink()
    (folder / "m0.run").write_text((folder / "m1.run").read_text().replace("m1", "m0"))
    assert "m0.run: has changed since it was pooled in pool" in refused(
        "estimate", "m0.run", "--pool", "pool"
    )
    said = json.loads((folder / "pool" / "design.json").read_text())
    said["batches"][0]["drawn"] = [20]
    (folder / "pool" / "design.json").write_text(json.dumps(said))
    assert "design.json changed since the pool was written" in refused("estimate", "--pool", "pool")


def test_a_pool_without_a_design_is_no_sample(folder, done, refused):
    done(*POOL, "--budget", 50, "--out", "pool", notes=True)
    line = refused("estimate", "--pool", "pool", "--judged", "truth.qrels")
    assert "pool: has no design.json: its candidates were not drawn at random" in line
    assert "has no design.json" in refused("pool", "--pool", "pool", "--more", 10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--draw", "queries"), "--draw must be one of queries:N, prefixes:N, candidates:N, below:N"),
        (("--draw", "facts:10"), "--draw must be one of queries:N"),
        (("--draw", "queries:0"), "--draw must be one of queries:N"),
        (("--draw", "queries:900"), "--draw must be at most the 80 queries"),
        (("--draw", "queries:9", "--budget", 5), "--budget has no effect with --draw"),
        (("--draw", "candidates:9", "--for", "rr"), "--for must be P@k or RBP"),
        (("--draw", "candidates:9", "--for", "m0-m7"), "--for must be two systems of the runs"),
        (
            ("--draw", "below:9", "--below-depth", 4),
            "--below-depth must be below the depth of the pool, 5, got 4",
        ),
        (("--strata", "size"), "--strata has no effect without --draw"),
        (("--plan", "--metric", "amr"), "--metric must be one of rr@k"),
        (("--metric", "rr"), "--metric has no effect without --plan"),
        (("--more", 3), "--pool must name the folder of the pool that --more belongs to"),
    ],
    ids=str,
)
def test_options_that_say_nothing(folder, call, options, message):
    out = () if "--plan" in options or "--more" in options else ("--out", "pool")
    given = ("pool", *options) if "--more" in options else (*POOL, *out, *options)
    code, printed, said = call(*given)
    lines = [line for line in said.splitlines() if not line.startswith("owkg: note")]
    assert (code, printed, len(lines)) == (2, "", 1)
    assert re.search(re.escape(message), lines[0]), lines[0]
    assert not (folder / "pool").exists()


def test_known_answers_are_those_of_the_test_split(folder, done):
    done(*POOL, "--draw", "queries:30", "--out", "pool", notes=True)
    assert json.loads((folder / "pool" / "metadata.json").read_text())["settings"]["truth"] == "test"
    graph = read_graph("kg")
    assert "test" in known_splits(graph, "test")
    with pytest.raises(ValueError, match="the label must not be blank"):
        read_sheet("pool/sheet.tsv")
    assert set(read_sheet("pool/sheet.tsv", blank=True)["relevance"]) == {-1}


def test_predictions_are_accepted(folder, truth_and_folder, done, answer, refused):
    truth, _ = truth_and_folder
    line = ("accept", "m2.run", "--kg", "kg", "--precision", 0.2, "--size", 100)
    first = done(*line, "--sheet", "a.tsv", "--rows", 30)
    assert "are expected to accept it" in first
    filled(truth, folder / "a.tsv")
    assert "must be a new file" in refused(*line, "--sheet", "a.tsv")
    found = answer(*line, "--judged", "a.tsv", "--out", "accepted.tsv")
    assert set(found) >= {"precision", "level", "accepted", "judged", "errors", "method", "by"}
    assert (found["judged"], found["state"], found["method"]) == (30, "accepted", "martingale")
    table = pl.read_csv("accepted.tsv", separator="\t")
    assert len(table) == found["accepted"] == 100 - found["errors"]
    assert table["run"].unique().to_list() == ["m2.run"]
    by = answer(*line, "--judged", "a.tsv", "--by", "relation")["by"]
    assert sum(row["judged"] for row in by) == 30
    assert "--rows has no effect without --sheet" in refused(*line, "--rows", 5)
    assert "--by must be relation" in refused(*line, "--by", "side")


def test_rules_and_rank_tables_cannot_be_drawn_from(folder, refused):
    assert "--rule must be absent where judgements are drawn" in refused(
        *POOL, "--draw", "queries:9", "--rule", "type", "--out", "p"
    )
    (folder / "r.csv").write_text(
        "head,relation,tail,side,optimistic,pessimistic,candidates\ne0,r0,a1,tail,1,1,9\n"
    )
    line = refused("pool", "r.csv", "--kg", "kg", "--depth", 5, "--draw", "queries:9", "--out", "p")
    assert "r.csv: is a rank table, whose lists hold tested answers alone" in line
