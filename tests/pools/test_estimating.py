"""`owkg.estimate` on folders and on pools in memory."""

import json

import polars as pl
import pytest

import owkg
from owkg.judge.runs import write_run
from owkg.pools.drawn import read_drawn
from owkg.pools.folder import write_pool
from tests.estimation.worlds import world


@pytest.fixture
def made(tmp_path):
    """The folder of a pool without a graph's splits to filter by, and its judgements."""
    run, before, truth = world(queries=60)
    for name in ("m0", "m1"):
        write_run(run.filter(model=name), tmp_path / f"{name}.run")
    (tmp_path / "kg").mkdir()
    lines = ["\t".join(row) for row in before.select("entity", "relation", "answer").rows()]
    (tmp_path / "kg" / "test.txt").write_text("\n".join(lines) + "\n")
    answers = sorted(set(run["answer"]) | set(truth["answer"]))
    (tmp_path / "kg" / "train.txt").write_text("".join(f"x\tr0\t{a}\n" for a in answers))
    settings = {
        **dict.fromkeys(("truth", "filter", "budget", "strata", "for")),
        **dict.fromkeys(("closed_world", "covered", "intersect", "sampled"), False),
        "depth": 5, "rules": [], "min_share": 1, "sample": True, "draw": "queries:40", "below_depth": 100,
        "seed": 3,
    }  # fmt: skip
    folder = tmp_path / "pool"
    runs = [tmp_path / "m0.run", tmp_path / "m1.run"]
    write_pool(runs, tmp_path / "kg", folder, settings, names=None, overwrite=False)
    drawn, _ = read_drawn(folder)
    sheet = pl.read_csv(folder / "sheet.tsv", separator="\t", infer_schema=False)
    asked = sheet.select(query="question_id", answer="answer_id")
    rows = drawn.people.pairs(drawn.people.unknown)
    true = truth.select("query", "answer", relevance=pl.lit(1, pl.Int64))
    rows = rows.join(asked, on=["query", "answer"], how="semi").join(true, on=["query", "answer"], how="left")
    return folder, drawn, rows.with_columns(pl.col("relevance").fill_null(0)), run


def test_a_folder_records_looks_and_a_pool_in_memory_does_not(made):
    folder, drawn, judged, _ = made
    inside = owkg.estimate(drawn, judged, "rr")
    assert inside.looks.made is None
    assert not (folder / "looks.json").exists()
    outside = owkg.estimate(folder, judged, "rr")
    assert outside.metrics.equals(inside.metrics)
    assert json.loads((folder / "looks.json").read_text())["made"] == [outside.judged]


def test_errors_may_be_a_frame_of_gold_items(made):
    _, drawn, judged, _ = made
    gold = pl.DataFrame(
        [(f"q{i}", "a", i % 2 if i % 20 else 1 - i % 2, i % 2) for i in range(80)],
        ["query", "answer", "label", "truth"],
        orient="row",
    )
    known = owkg.estimation.ErrorRates(0.1, 0.0)
    found, other = (owkg.estimate(drawn, judged, "p", errors=one).metrics for one in (gold, known))
    assert found["value"].to_list() == pytest.approx(other["value"].to_list())


def test_runs_and_graphs_need_a_folder(made, tmp_path):
    folder, drawn, judged, run = made
    with pytest.raises(ValueError, match="`others` must be a frame for a pool in memory"):
        owkg.estimate(drawn, judged, "rr", others=[tmp_path / "m0.run"])
    with pytest.raises(ValueError, match="`kg` has no effect without runs of systems that were not pooled"):
        owkg.estimate(folder, judged, "rr", kg=tmp_path / "kg")
    write_run(run.filter(model="m2"), tmp_path / "m2.run")
    found = owkg.estimate(folder, judged, "rr", others=[tmp_path / "m2.run"], kg=tmp_path / "kg")
    assert found.metrics["model"].to_list() == ["m0", "m1", "m2"]
