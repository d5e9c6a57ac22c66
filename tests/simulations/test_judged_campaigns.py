"""Campaigns of judging in closed worlds: no audit says more than its judgements allow."""

import json

import numpy as np
import polars as pl
import pytest

from owkg.cli.main import main
from owkg.judge.runs import write_run
from owkg.kg import write_labelled
from simulations.judged_campaigns import audits, campaign, faults, true_correlations, world

MAIN = main


@pytest.mark.parametrize("design", ["budget", "sheet", "complete"])
def test_a_campaign_claims_no_more_with_less(design):
    """Nested labels and statements: verdicts only get weaker; nothing is printed that is not allowed."""
    of = world(4, queries=30, kind="popularity", biases=(0.2, 1.2))
    told = list(audits(of, campaign(of, design, 1)))
    assert len({each.judged for each in told}) > 1
    found = faults(of, campaign(of, design, 1), told)
    assert found["compared"] > 0
    assert (found["stronger"], found["beyond"], found["excluded"]) == (0, 0, 0)


def test_the_true_correlation_of_a_popularity_bias_is_below_0():
    """Popular answers are known, and who likes them finds known ones."""
    biased = true_correlations(world(1, queries=200, biases=(1.5, 1.5)))
    assert biased[1] < 0
    none = true_correlations(world(1, queries=200, kind="independent", biases=(0.0, 0.0)))
    np.testing.assert_allclose(none, 0, atol=0.06)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A closed world as files."""
    folder, of = tmp_path_factory.mktemp("world"), world(3, queries=40, biases=(0.0, 0.8))
    # A fact of each entity, so that the files name all of them.
    every = np.ones((of.graph.num_entities, 3), np.int32)
    every[:, 0] = np.arange(len(every))
    write_labelled(of.graph._replace(splits=of.graph.splits | {"train": every}), folder / "graph")
    for name, table in of.tables.items():
        table.write_parquet(folder / f"{name}.parquet")
        write_run(of.lists[name], folder / f"{name}.run")
    return folder, of


def filled(sheet, of):
    """The sheet, filled in with the truth."""
    table = pl.read_csv(sheet, separator="\t", infer_schema=False, glob=False)
    truth = of.truth.select(question_id="query", answer_id="answer", known=pl.lit("yes"))
    told = table.join(truth, on=["question_id", "answer_id"], how="left", maintain_order="left")
    told.with_columns(label=pl.col("known").fill_null("no")).drop("known").write_csv(sheet, separator="\t")


def test_a_budgeted_pool_from_the_sheet_to_the_audit(files, call, monkeypatch, tmp_path):
    """Depth 1 of some queries: a lower bound of the sparsity, no correlation, no full-test metric."""
    folder, of = files
    monkeypatch.chdir(folder)
    runs, systems = ("s0.run", "s1.run"), ("s0.parquet", "s1.parquet")
    listed = ("--kg", "graph", "--lists", "s0.run", "--lists", "s1.run", "--metric", "mrr", "--test", "t")
    made = ("pool", *runs, "--depth", "4", "--kg", "graph", "--filter", "train,test")
    assert call(*made, "--budget", "25", "--out", tmp_path / "pool")[0] == 0
    assert json.loads((tmp_path / "pool" / "metadata.json").read_text())["design"] == "budget"
    filled(tmp_path / "pool" / "sheet.tsv", of)
    read = ("pool", "--read", tmp_path / "pool" / "sheet.tsv", "--pool", tmp_path / "pool")
    assert call(*read, "--out", tmp_path / "judged.qrels")[0] == 0
    bare = tmp_path / "bare.qrels"
    bare.write_bytes((tmp_path / "judged.qrels").read_bytes())
    sources = dict.fromkeys(("pool", "pool/sheet.tsv", "judged.qrels"), "budget") | {"bare.qrels": "unknown"}
    for source, design in sources.items():
        code, out, err = call("audit", *systems, *listed, "--judged", tmp_path / source, "--format", "json")
        assert code == 0, err
        told = json.loads(out)
        said = told["assumptions"]
        assert (said["design"], said["sparsity"], said["correlation"]) == (design, None, None)
        assert 0 < said["sparsity_at_least"] <= of.sparsity
        for model in told["models"]:
            assert set(model["full"].values()) == set(model["strength"].values()) == {None}
        assert all(pair["probability"] == {"low": None, "high": None} for pair in told["pairs"])
        assert all(row["sparsity_high"] is None is row["correlation"] for row in told["judged"])
        code, out, _ = call("missing", tmp_path / source, "--kg", "graph", "--format", "json")
        (row,) = json.loads(out)["sparsity"]
        assert row["sparsity_at_least"] <= of.sparsity
        assert row["ci_high"] is None
    code, out, _ = call("audit", *systems, *listed, "--judged", tmp_path / "pool")
    assert "no upper end" in " ".join(out.split())
    assert "full-test mrr that each sparsity would imply" in " ".join(out.split())
    # What is written is not overruled; what nobody knows can be stated.
    for command in (("audit", *systems, *listed, "--judged"), ("missing", "--kg", "graph")):
        code, _, err = call(*command, tmp_path / "judged.qrels", "--design", "complete")
        assert code == 2
        assert "--design must be left out, or be budget as recorded with" in err
    code, out, _ = call("missing", bare, "--kg", "graph", "--design", "sampled-budget", "--format", "json")
    assert json.loads(out)["sparsity"][0]["ci_low"] is not None
    # Where the queries are a random sample, and the budget is for all, the pool says so.
    sampled = (*made, "--sampled-queries", "--out", tmp_path / "sampled")
    assert json.loads(call(*sampled, "--format", "json")[1])["design"] == "sampled-pool"
    damaged = tmp_path / "bare.qrels.design.json"
    damaged.write_text("{}")
    code, _, err = call("missing", bare, "--kg", "graph")
    assert code == 2
    assert "bare.qrels.design.json: must name a design" in err


def test_less_judging_gives_no_better_verdict(files):
    """A stated range stays as wide as it is stated; without it, few labels close none."""
    from owkg.auditing import audit
    from owkg.auditing.result import HOLDS_IN_RANGE, no_stronger

    _, of = files
    few = of.truth.with_columns(order=pl.int_range(pl.len())).filter(pl.col("order") % 10 == 0).drop("order")
    options = {"graph": of.graph, "judged": few, "test": "t"}
    stated = audit(of.tables, "mrr", sparsity=(0.1, 0.5), correlation=(-0.2, 0.2), **options)
    alone = audit(of.tables, "mrr", **options)
    assert stated.assumptions["sparsity"] == [0.1, 0.5]
    assert no_stronger(alone.pairs["verdict"].item(), stated.pairs["verdict"].item())
    assert alone.pairs["verdict"].item() != HOLDS_IN_RANGE
