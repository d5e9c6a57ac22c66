"""`python -m simulations.zhou2022 pooling`: pools in a small closed world, and what it refuses."""

import json

import numpy as np
import polars as pl
import pytest

from owkg import kg
from owkg.sampling import sample, write_worlds
from simulations.zhou2022.__main__ import main

MAIN = main

TWO = ("--configuration", "ComplEx 8", "--configuration", "DistMult 32")


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    rng = np.random.default_rng(0)
    facts = np.unique(rng.integers(0, (25, 3, 25), (700, 3)), axis=0).astype(np.int32)
    names = tuple(f"e{i}" for i in range(25)), ("r", "s", "t")
    closed = kg.KnowledgeGraph(*names, {"train": facts})
    folder = tmp_path_factory.mktemp("worlds") / "worlds"
    drawn = [sample(closed, density=0.7, train_rate=0.6, num_queries=12, min_answers=3, seed=0)]
    write_worlds(drawn, folder)
    return folder


def test_tables_figures_json_and_runs_that_are_kept(worlds, call, tmp_path):
    asked = ("pooling", "--worlds", worlds, *TWO, "--depth", 3, "--replicates", 20, "--out", tmp_path)
    code, printed, error = call(*asked)
    assert (code, error) == (0, "")
    assert "2/2 DistMult 32, d = 0.7" in printed
    assert "d = 0.7, sparse, macro-map@20: tau with the truth alone" in printed
    for name in ("agreement", "differences", "labels", "systems", "left_out"):
        assert len(pl.read_csv(tmp_path / f"pooling_{name}.csv"))
    for name in ("depth", "rankings"):
        assert (tmp_path / f"pooling_{name}.png").stat().st_size > 2000
    labels = pl.read_csv(tmp_path / "pooling_labels.csv")
    assert labels["depth"].to_list() == [0, 1, 2, 3]
    assert labels["labels"].is_sorted()
    noted = json.loads((tmp_path / "pooling.json").read_text())
    assert (noted["preset"], noted["depth"], noted["densities"]) == ("pool", 3, [0.7])
    assert len(noted["results"]) == 11
    csv = (tmp_path / "pooling_agreement.csv").read_bytes()
    code, printed, error = call(*asked, "--format", "json")
    assert code == 0
    assert "the rest takes about" not in error
    assert (tmp_path / "pooling_agreement.csv").read_bytes() == csv
    assert {row["depth"] for row in json.loads(printed)["agreement"]} == {0, 1, 2, 3}


def test_a_single_system_is_refused_before_any_training(worlds, call, tmp_path):
    asked = ("--worlds", worlds, *TWO[:2], "--out", tmp_path / "out")
    code, _, error = call("pooling", *asked)
    assert code == 2
    assert "--configuration must leave at least two systems, because a single one cannot be ranked" in error
    assert not (tmp_path / "out" / "runs").exists()
