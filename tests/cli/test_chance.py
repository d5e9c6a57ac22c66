"""`owkg chance` as its users meet it."""

import numpy as np
import polars as pl
import pytest

from owkg.kg import KnowledgeGraph, write_labelled


@pytest.fixture
def folder(tmp_path):
    facts = np.array([[0, 0, 1], [0, 0, 2], [3, 0, 1], [1, 1, 0]], np.int32)
    graph = KnowledgeGraph(tuple("abcd"), ("r", "s"), {"train": facts[:2], "test": facts[2:]})
    write_labelled(graph, tmp_path / "graph")
    return tmp_path / "graph"


def test_chance_levels_and_published_values(folder, call, answer, tmp_path):
    options = ("--metric", "mrr,mr", "--adjust", "mrr=0.5", "--out", tmp_path / "c.parquet")
    code, out, _ = call("chance", folder, *options)
    assert (code, "Random ranking of test" in out, "amrr" in out) == (0, True, True)
    said = answer("chance", folder, *options)
    assert [row["metric"] for row in said["adjusted"]] == ["amrr", "zmrr"]
    table = pl.read_parquet(tmp_path / "c.parquet")
    assert [row["expectation"] for row in said["chance"]] == table["expectation"].to_list()
    mean = table.filter(side="both", metric="mrr")["expectation"].item()
    assert said["adjusted"][0]["value"] == pytest.approx((0.5 - mean) / (1 - mean))


def test_several_graphs_and_raw_ranks(folder, answer):
    rows = answer("chance", folder, folder, "--metric", "mr", "--filter", "none")["chance"]
    assert len(rows) == 6
    assert {row["expectation"] for row in rows} == {2.5}  # among 4 entities


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--adjust", "mrr"), "--adjust must be NAME=VALUE"),
        (("--adjust", "mrr=high"), "--adjust must be NAME=VALUE"),
        (("--adjust", "amrr=0.1"), "amrr cannot be adjusted"),
        (("--split", "dev"), "--split must be one of"),
        (("--metric", "mmr"), "mmr"),
        (
            ("--sides", "left", "--adjust", "mrr=0.1"),
            "--sides must be head, tail, or head,tail for both, got",
        ),
        (("--adjust", "mrr=1.5"), "--adjust must be in"),
        (("--adjust", "mrr=0.5", "--adjust", "mrr=0.6"), "--adjust must name each metric once"),
        (("--sides", "head"), "--sides has no effect without --adjust"),
        (("--out", "c.txt"), "--out must end in .parquet or .csv"),
    ],
)
def test_a_bad_option_is_one_line(folder, refused, options, message):
    err = refused("chance", folder, *options)
    assert message in err.splitlines()[-1]
