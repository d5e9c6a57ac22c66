"""`owkg pool --draw`, `--plan`, `--more` and `owkg estimate` as their users meet them."""

import json
import re

import polars as pl
import pytest

from owkg.files.storage import checksum
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
    assert "nothing is filled in in pool" in refused("estimate", "--pool", "pool")

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
    assert "--proxy llm.tsv: must have a probability for every unjudged candidate" in refused(
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
    assert "must be of drawn units" in refused("estimate", "--pool", "pool", "--judged", "other/sheet.tsv")
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
    assert "pool: has no design.json, because its candidates were not drawn at random" in line
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


def test_estimates_and_acceptance_are_drawn(folder, truth_and_folder, call, done, refused):
    truth, _ = truth_and_folder
    done(*POOL, "--draw", "queries:30", "--out", "pool", notes=True)
    filled(truth, folder / "pool" / "sheet.tsv")
    before = {path.name: path.read_bytes() for path in (folder / "pool").iterdir()}
    asked = ("estimate", "--pool", "pool", "--metric", "rr", "--figure")
    assert "--figure must end in .png, .pdf or .svg" in refused(*asked, "rr.txt")
    judged = ("--judged", "pool/sheet.tsv")
    (folder / "sheet.png").symlink_to(folder / "pool" / "sheet.tsv")
    assert "it is an input as well" in refused(*asked, "sheet.png", *judged)
    # No look was recorded.
    assert {path.name: path.read_bytes() for path in (folder / "pool").iterdir()} == before
    code, _, err = call(*asked, "new/rr.png")
    assert (code, "wrote new/rr.png" in err) == (0, True)
    assert (folder / "new" / "rr.png").read_bytes().startswith(b"\x89PNG")

    done(*POOL, "--draw", "below:40", "--out", "deep", notes=True)
    filled(truth, folder / "deep" / "sheet.tsv")
    code, _, err = call("estimate", "--pool", "deep", "--figure", "deep.png")
    assert (code, "deep.png is not drawn, because this design estimates no metric" in err) == (0, True)
    assert not (folder / "deep.png").exists()

    line = ("accept", "m2.run", "--kg", "kg", "--precision", 0.2)
    for more in ((), ("--by", "relation"), ("--drawn", 20)):
        code, _, err = call(*line, "--size", 100, *more, "--figure", "accept.svg")
        assert (code, "wrote accept.svg" in err) == (0, True)
        assert (folder / "accept.svg").read_bytes().startswith(b"<?xml")
        (folder / "accept.svg").unlink()
    assert "--figure must end in" in refused(*line, "--figure", "accept")
    assert "--figure has no effect with --pilot-sheet" in refused(
        *line, "--pilot-sheet", "p.tsv", "--figure", "a.png"
    )
    assert not (folder / "p.tsv").exists()


def test_predictions_are_accepted(folder, truth_and_folder, done, answer, refused):
    truth, _ = truth_and_folder
    line = ("accept", "m2.run", "--kg", "kg", "--precision", 0.2, "--size", 100)
    first = done(*line, "--sheet", "a.tsv", "--rows", 30)
    assert "accepting it is expected to take about" in first
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
    assert "--rule must be left out if judgements are drawn" in refused(
        *POOL, "--draw", "queries:9", "--rule", "type", "--out", "p"
    )
    (folder / "r.csv").write_text(
        "head,relation,tail,side,optimistic,pessimistic,candidates\ne0,r0,a1,tail,1,1,9\n"
    )
    line = refused("pool", "r.csv", "--kg", "kg", "--depth", 5, "--draw", "queries:9", "--out", "p")
    assert "r.csv: is a rank table, whose lists hold only tested answers" in line


@pytest.fixture
def drawn(folder, truth_and_folder, done):
    """A pool with 60 drawn queries; gives its sheet, filled in, as lines by query."""
    truth, _ = truth_and_folder
    done(*POOL, "--draw", "queries:60", "--out", "pool", notes=True)
    sheet = folder / "pool" / "sheet.tsv"
    blank = sheet.read_bytes()
    filled(truth, sheet)
    head, *lines = sheet.read_text().splitlines()
    sheet.write_bytes(blank)
    return head, lines


def part(drawn, path, *, queries=10**9, without=()):
    """A sheet in which only some queries are filled in, by their places."""
    head, lines = drawn
    order = {}
    for line in lines:
        order.setdefault(line.split("\t")[0], len(order))
    kept = []
    for line in lines:
        cells = line.split("\t")
        place = order[cells[0]]
        cells[4] = cells[4] if place < queries and place not in without else ""
        kept.append("\t".join(cells))
    path.write_text("\n".join([head, *kept]) + "\n")
    return path


def test_looks_are_recorded_and_a_third_one_needs_a_plan(folder, drawn, answer, refused):
    line = ("estimate", "--pool", "pool", "--metric", "rr", "--judged")
    sheets = [part(drawn, folder / f"{n}.tsv", queries=n) for n in (30, 40, 45)]
    first, second = (answer(*line, sheet) for sheet in sheets[:2])
    units = [60 - one["unjudged"] for one in (first, second)]
    assert first["looks"] == {"planned": None, "made": units[:1]}
    assert second["looks"] == {"planned": None, "made": units}
    assert any("there are two looks" in note for note in second["notes"])
    assert answer(*line, sheets[0])["looks"] == second["looks"]
    error = refused(*line, sheets[2])
    assert "--looks must name all looks, such as " in error
    plan = re.search(r"such as ([\d,]+):", error)[1]
    third = answer(*line, sheets[2], "--looks", plan)
    assert third["looks"]["planned"] == [int(one) for one in plan.split(",")]
    # The plan is kept, and earlier looks have the levels of the plan.
    again = answer(*line, sheets[0])
    width = [row["ci_high"] - row["ci_low"] for one in (again, first) for row in one["metrics"]]
    assert sum(width[:3]) > 1.2 * sum(width[3:])
    assert "--looks must be as planned" in refused(*line, sheets[2], "--looks", "45,60")
    (folder / "pool" / "looks.json").write_text("[]")
    assert "looks.json: must hold the looks at a pool" in refused(*line, sheets[0])


def test_a_pool_that_cannot_be_written_is_read_with_a_note(folder, drawn, answer, monkeypatch):
    from owkg.pools import looked

    def fails(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(looked, "written_aside", fails)
    sheet = part(drawn, folder / "a.tsv")
    found = answer("estimate", "--pool", "pool", "--metric", "rr", "--judged", sheet)
    assert "this look is not recorded because pool cannot be written: count it yourself." in found["notes"]
    assert not (folder / "pool" / "looks.json").exists()


def test_probabilities_of_later_looks_are_those_of_the_first(folder, drawn, answer):
    sheet = part(drawn, folder / "a.tsv")
    line = ("estimate", "--pool", "pool", "--metric", "rr", "--judged", sheet)
    pool = pl.read_csv("pool/pool.tsv", separator="\t", infer_schema=False)
    pool.select("query", "answer", probability=pl.lit(0.5)).write_csv("llm.tsv", separator="\t")
    word = "differ from the first look (none)"
    assert not any(word in note for note in answer(*line)["notes"])
    assert any(word in note for note in answer(*line, "--proxy", "llm.tsv")["notes"])


def test_an_expert_judges_a_part(folder, drawn, answer, refused, done):
    line = ("estimate", "--pool", "pool", "--judged", part(drawn, folder / "crowd.tsv"), "--metric", "ap,rr")
    found = answer(*line, "--expert", part(drawn, folder / "expert.tsv", queries=30))
    assert re.search(r"; an expert judged the first \d+ of them", found["design"])
    assert found["metrics"][0]["equivalent_judgements"] is None
    assert "--expert must be left out with --errors" in refused(
        *line, "--expert", "expert.tsv", "--errors", "fp=.1"
    )
    few = part(drawn, folder / "few.tsv", queries=5)
    assert "--expert must judge at least the first 20 queries, got " in refused(*line, "--expert", few)
    (folder / "o.qrels").write_text("e1|r1|?\t0\tzz\t1\n")
    assert "o.qrels, line 1: must be of drawn units" in refused(*line, "--expert", "o.qrels")
    assert "an expert judged" in done(*line, "--expert", "expert.tsv", notes=True)


def test_gaps_have_bounds(folder, drawn, answer, refused, done):
    line = ("estimate", "--pool", "pool", "--judged", part(drawn, folder / "gap.tsv", without=(3, 20)))
    assert "--judged must leave no gap: the query " in refused(*line, "--metric", "rr,mrr")
    found = answer(*line, "--metric", "rr,mrr", "--gaps", "bounds")
    assert found["unjudged"] == 2
    for row in found["metrics"]:
        assert (row["method"], row["value"], row["equivalent_judgements"]) == ("bounds", None, None)
        assert row["bounds"][0] <= row["ci_low"] < row["ci_high"] <= row["bounds"][1]
    assert found["missing_share"]["value"] is None
    assert "58 of 60 drawn queries judged" in done(*line, "--gaps", "bounds", notes=True)
    few = part(drawn, folder / "few.tsv", queries=14, without=(3,))
    assert "--gaps must be left out with fewer than 20 queries" in refused(
        *line[:-1], few, "--metric", "rr", "--gaps", "bounds"
    )


def test_errors_are_counted_on_gold_items(folder, drawn, answer, refused):
    line = ("estimate", "--pool", "pool", "--judged", part(drawn, folder / "a.tsv"), "--metric", "p")
    rows = [(f"g{i}", "a", int(i % 10 > 0), 1) for i in range(60)]
    wrong = [(f"w{i}", "a", int(i % 20 == 0), 0) for i in range(60)]
    names = ["query", "answer", "label", "truth"]
    pl.DataFrame(rows, names, orient="row").write_csv("true.tsv", separator="\t")
    pl.DataFrame(rows + wrong, names, orient="row").write_csv("gold.tsv", separator="\t")
    counted, known = (answer(*line, "--errors", one)["metrics"] for one in ("gold.tsv", "fp=0.05,fn=0.1"))
    for one, other in zip(counted, known, strict=True):
        assert one["value"] == pytest.approx(other["value"])
        # Counting the rates has a variance of its own.
        assert one["ci_high"] - one["ci_low"] > other["ci_high"] - other["ci_low"]
    assert "--errors: fp must be given if no gold item is wrong" in refused(*line, "--errors", "true.tsv")
    half = answer(*line, "--errors", "true.tsv,fp=0.05")["metrics"]
    assert half[0]["value"] == pytest.approx(known[0]["value"])
    assert "gone.tsv" in refused(*line, "--errors", "gone.tsv")
    for text in ("fp=x", "a.tsv,b.tsv", "fp=.1,fp=.2", "fq=.1"):
        assert "--errors must be rates such as fp=0.05,fn=0.1, or a file of gold items" in refused(
            *line, "--errors", text
        )


def test_systems_that_were_not_pooled_have_bounds(folder, drawn, answer, refused):
    run, *_ = world(queries=80)
    new = run.filter(model="m1").with_columns(model=pl.lit("new"), score=-pl.col("score"))
    write_run(new, folder / "new.run")
    line = ("--pool", "pool", "--judged", part(drawn, folder / "a.tsv"), "--metric", "rr")
    assert "--kg must be the graph of the pool, whose answers in train left the lists" in refused(
        "estimate", "new.run", *line
    )
    found = answer("estimate", "m0.run", "new.run", *line, "--kg", "kg")
    assert [row["model"] for row in found["metrics"]] == ["m0", "m1", "m2", "new"]
    own = found["metrics"][-1]
    assert (own["value"], own["ci_low"], own["method"]) == (None, None, "bounds")
    assert 0 <= own["bounds"][0] < own["bounds"][1] <= 1
    assert {row["first"] for row in found["differences"]} == {"m0", "m1"}
    assert "--kg has no effect without runs that were not pooled" in refused(
        "estimate", "m0.run", *line, "--kg", "kg"
    )
    write_run(new.filter(pl.col("query") != new["query"][0]), folder / "short.run")
    error = refused("estimate", "short.run", *line, "--kg", "kg")
    assert "RUN must answer every query of the pool: new lacks 1 of 80, such as " in error
    (folder / "copy.run").write_text((folder / "m1.run").read_text() + "\n")
    error = refused("estimate", "copy.run", *line, "--kg", "kg")
    assert "RUN must hold further systems: m1 is already in the pool" in error
    (folder / "r.csv").write_text(
        "head,relation,tail,side,optimistic,pessimistic,candidates\ne0,r0,a1,tail,1,1,9\n"
    )
    assert "r.csv: is a rank table" in refused("estimate", "r.csv", *line, "--kg", "kg")


def test_categories_of_relations_are_those_of_the_training_facts(folder, drawn, answer, done):
    found = answer("estimate", "--pool", "pool", "--judged", part(drawn, folder / "a.tsv"), "--metric", "rr")
    by = {row["category"]: row for row in found["missing_share"]["by_category"]}
    # Training facts are of one relation, of one head with many tails.
    assert set(by) == {"1-N", "no training facts"}
    for row in by.values():
        assert 0 <= row["low"] <= row["value"] <= row["high"] <= 1
        assert row["judged"] >= 20
    said = json.loads((folder / "pool" / "design.json").read_text())["categories"]
    assert said == {"r0": "1-N", "r1": "", "r2": ""}
    table = done("estimate", "--pool", "pool", "--judged", "a.tsv", "--metric", "rr", notes=True)
    assert "missing answers by relation category" in table


@pytest.mark.parametrize("drawn_units", [900, -1])
def test_a_design_that_draws_what_is_not_there_is_refused(folder, drawn, refused, drawn_units):
    file = folder / "pool" / "design.json"
    said = json.loads(file.read_text())
    said["batches"][0]["drawn"] = [drawn_units]
    file.write_text(json.dumps(said))
    card = json.loads((folder / "pool" / "metadata.json").read_text())
    card["sha256"]["design.json"] = checksum(file)
    (folder / "pool" / "metadata.json").write_text(json.dumps(card))
    line = refused("estimate", "--pool", "pool", "--judged", part(drawn, folder / "a.tsv"))
    assert "design.json: the strata do not match frame.parquet" in line


AUDIT = ("audit", *RUNS, "--kg", "kg", "--qrels", "test", "--ties", "pessimistic", "--metric", "mrr")
AUDIT += ("--test", "t", *(part for run in RUNS for part in ("--lists", run)))


def test_an_audit_takes_the_inference_of_the_design(folder, truth_and_folder, done, answer, refused):
    truth, _ = truth_and_folder
    done(*POOL, "--draw", "queries:60", "--out", "pool", notes=True)
    assert "no sheet of the drawn pool is filled in" in refused(*AUDIT, "--judged", "pool", notes=True)
    filled(truth, folder / "pool" / "sheet.tsv")
    share = answer("estimate", "--pool", "pool", "--metric", "rr")["missing_share"]
    found = answer(*AUDIT, "--judged", "pool")
    assert found["assumptions"]["design"] == "drawn"
    assert found["assumptions"]["sparsity_at_least"] == pytest.approx(share["low"])
    assert found["assumptions"]["correlation"] is None
    row = found["judged"][0]
    assert (row["sparsity"], row["sparsity_high"]) == (pytest.approx(share["value"]), None)
    # A stated range is cut at what the pool shows, and gives each pooled system a correlation.
    stated = answer(*AUDIT, "--judged", "pool", "--sparsity", "0.1,0.8")["assumptions"]
    assert stated["sparsity"] == [pytest.approx(share["low"]), 0.8]
    assert set(stated["correlation"]) == {"m0", "m1", "m2"}
    narrow = answer(*AUDIT, "--judged", "pool", "--sparsity", "0.5,0.6", "--correlation=-0.1,0.1")
    assert all(-0.1 <= low <= high <= 0.1 for low, high in narrow["assumptions"]["correlation"].values())


def test_drawn_judgements_outside_their_pool(folder, truth_and_folder, done, answer, refused):
    truth, _ = truth_and_folder
    done(*POOL, "--draw", "queries:60", "--out", "pool", notes=True)
    filled(truth, folder / "pool" / "sheet.tsv")
    share = answer("estimate", "--pool", "pool", "--metric", "rr", "--no-compare")["missing_share"]
    done("pool", "--read", "pool/sheet.tsv", "--pool", "pool", "--out", "judged.qrels")
    alone = answer(*AUDIT, "--judged", "judged.qrels")["assumptions"]
    assert alone["design"] == "drawn"
    assert alone["sparsity_at_least"] < share["low"]
    assert answer(*AUDIT, "--judged", "pool", "--judged", "judged.qrels")["assumptions"][
        "sparsity_at_least"
    ] == pytest.approx(share["low"])
    assert "must hold one pool with a design, got 2" in refused(
        *AUDIT, "--judged", "pool", "--judged", "pool", notes=True
    )
    assert "owkg estimate --pool pool" in refused("missing", "pool", "--kg", "kg")


def test_an_audit_of_too_few_drawn_judgements_has_labels(folder, truth_and_folder, done, answer):
    truth, _ = truth_and_folder
    done(*POOL, "--draw", "queries:30", "--out", "pool", notes=True)
    filled(truth, folder / "pool" / "sheet.tsv", rows=20)
    found = answer(*AUDIT, "--judged", "pool")["assumptions"]
    assert (found["sparsity"], found["sparsity_at_least"]) == (None, None)
    assert any("must cover at least 10 drawn queries" in note for note in found["notes"])
    done(*POOL, "--draw", "prefixes:70", "--out", "prefixes", notes=True)
    filled(truth, folder / "prefixes" / "sheet.tsv")
    found = answer(*AUDIT, "--judged", "prefixes")["assumptions"]
    assert "Drawn prefixes give no sparsity, only labels." in found["notes"]


def test_an_audit_says_what_further_judgements_would_show(folder, answer, done, tmp_path):
    plans = answer(*AUDIT)["plans"]
    assert {row["unit"] for row in plans} == {"queries", "prefixes", "candidates"}
    assert next(row["metric"] for row in plans if row["unit"] == "prefixes") == "RR@6"
    for metric in ("mrr", "RR@6", "P@6"):
        widths = [row["width"] for row in plans if row["metric"] == metric]
        assert widths == sorted(widths, reverse=True)
    text = done(*AUDIT, "--report", "report.md", notes=True)
    assert "if you judge more" in text
    assert "prefixes:50" in (folder / "report.md").read_text()


def test_a_draw_for_a_pair_answers_its_difference_alone(folder, truth_and_folder, done, answer, refused):
    truth, _ = truth_and_folder
    done(*POOL, "--draw", "candidates:120", "--for", "m0-m2:p@3", "--out", "pool", notes=True)
    filled(truth, folder / "pool" / "sheet.tsv")
    found = answer("estimate", "--pool", "pool")
    assert (found["metrics"], found["missing_share"]) == ([], None)
    assert [(row["first"], row["second"], row["metric"]) for row in found["differences"]] == [
        ("m0", "m2", "P@3")
    ]
    assert any("values of single systems" in note for note in found["notes"])
    assert "--metric must be a metric that candidates were drawn for, P@3, got P@5" in refused(
        "estimate", "--pool", "pool", "--metric", "p@5"
    )
    assert "--for must be two systems" in refused(
        *POOL, "--draw", "candidates:9", "--for", "m0-m0", "--out", "other"
    )


def test_error_rates_that_no_truth_gives(folder, truth_and_folder, done, answer, refused):
    truth, _ = truth_and_folder
    done(*POOL, "--draw", "queries:60", "--out", "pool", notes=True)
    filled(truth, folder / "pool" / "sheet.tsv")
    plain = answer("estimate", "--pool", "pool", "--metric", "p")
    assert "--errors must fit the labels" in refused(
        "estimate", "--pool", "pool", "--metric", "p", "--errors", "fp=0.5,fn=0.49", notes=True
    )
    none = answer("estimate", "--pool", "pool", "--metric", "p", "--errors", "fp=0,fn=0")
    assert none["metrics"] == plain["metrics"]


def test_a_stated_sparsity_below_what_a_drawn_pool_shows_is_contradicted(
    folder, truth_and_folder, done, answer
):
    truth, _ = truth_and_folder
    done(*POOL, "--draw", "queries:60", "--out", "pool", notes=True)
    filled(truth, folder / "pool" / "sheet.tsv")
    found = answer(*AUDIT, "--judged", "pool", "--sparsity", "0.3")
    assert found["assumptions"]["sparsity"] == [0.3, 0.3]
    kinds = {row["verdict"] for row in found["pairs"]}
    assert kinds <= {
        "open: judging found more than the stated sparsity allows",
        "holds whatever is missing",
        "turned by judged answers",
    }


def test_sheets_from_a_spreadsheet(folder, truth_and_folder, done, answer):
    truth, _ = truth_and_folder
    done(*POOL, "--draw", "queries:40", "--out", "pool", notes=True)
    sheet = folder / "pool" / "sheet.tsv"
    filled(truth, sheet)
    plain = answer("estimate", "--pool", "pool", "--metric", "rr")["metrics"]
    cells = [line.split("\t") for line in sheet.read_text().splitlines()]
    for row in cells[1:]:
        row[4] += ".0"
    text = "\n".join("\t".join(row) for row in cells)
    (folder / "kept.tsv").write_text("\ufeff" + text + "\n", encoding="utf-8")
    found = answer("estimate", "--pool", "pool", "--judged", "kept.tsv", "--metric", "rr")
    assert found["metrics"] == plain
