"""`owkg metrics --sampled-negatives` as its users meet it."""

import json

import numpy as np
import polars as pl
import pytest

import owkg.metrics
from owkg.ranks import read_ranks

PUBLISHED = "mrr=0.98,hits@1=0.97,hits@10=0.99"


@pytest.fixture
def sampled(tmp_path):
    """A file of 300 ranks among 20 negatives."""
    rng = np.random.default_rng(3)
    path = tmp_path / "sampled.parquet"
    rank = 1 + rng.binomial(20, rng.beta(1, 9, 300))
    columns = {"head": [f"h{i}" for i in range(300)], "relation": "r", "tail": "t", "side": "tail"}
    columns |= {"optimistic": rank, "pessimistic": rank, "candidates": 21}
    pl.DataFrame(columns).write_parquet(path)
    return path


def test_published_values(call):
    """The library's rows, in each format."""
    asked = ["metrics", "--sampled-negatives", 500, "--num-entities", 2_500_604, "--published", PUBLISHED]
    expected = owkg.metrics.full_values_of_published(
        {"mrr": 0.98, "hits@1": 0.97, "hits@10": 0.99},
        ["mrr", "p-mrr@1/2"],
        negatives=500,
        num_entities=2_500_604,
        rounding=0.005,  # of two digits
    )
    code, out, err = call(*asked, "--metric", "mrr,p-mrr@1/2", "--format", "json")
    assert (code, err, json.loads(out)) == (0, "", expected.to_dicts())
    code, out, _ = call(*asked, "--metric", "mrr,p-mrr@1/2", "--format", "csv")
    assert (code, out) == (0, expected.write_csv())
    code, out, _ = call(*asked)
    assert code == 0
    assert "0.0065      0.9750" in out
    # A digit more says more.
    code, out, _ = call(*asked[:-1], "mrr=0.980,hits@1=0.970,hits@10=0.990")
    assert code == 0
    assert "0.0092      0.9569" in out


def test_files_of_ranks(call, sampled):
    asked = ["metrics", sampled, "--sampled-negatives", 20, "--num-entities", 1000, "--format", "json"]
    code, out, _ = call(*asked)
    expected = owkg.metrics.full_values(
        read_ranks(sampled), ["mrr", "hits@1", "hits@10"], num_entities=1000
    ).to_dicts()
    assert code == 0
    assert json.loads(out) == [{"file": str(sampled)} | row for row in expected]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--num-entities", 100], "--sampled-negatives"),
        (["--sampled-negatives", 20], "--num-entities"),
        (["--sampled-negatives", 20, "--num-entities", 100, "--published", "mrr=1"], "not both"),
        (["--sampled-negatives", 30, "--num-entities", 100], "must rank 31 candidates"),
        (["--sampled-negatives", 20, "--num-entities", 100, "--format", "latex"], "--format"),
        (["--sampled-negatives", 20, "--num-entities", 10], "--num-entities"),
        (["--sampled-negatives", 20, "--num-entities", 100, "--by", "side"], "--by has no effect with"),
        (
            ["--sampled-negatives", 20, "--num-entities", 100, "--metric", ","],
            "--metric must contain at least one name",
        ),
        (
            ["--sampled-negatives", 20, "--num-entities", 100, "--published", "mrr=0.5", "--ci", "0.9"],
            "--ci has no effect with --published",
        ),
    ],
)
def test_bad_input(refused, sampled, options, message):
    err = refused("metrics", sampled, *options)
    assert message in err


@pytest.mark.parametrize("values", ["mrr", "mrr=x", "mrr=2", "mr=3", "hits@1=0.9,mrr=0.1", "mrr=0.5,mrr=0.6"])
def test_bad_published_values(refused, values):
    """No number, no value of the metric, a metric without one, values that contradict each other."""
    refused("metrics", "--sampled-negatives", 20, "--num-entities", 100, "--published", values)


@pytest.mark.parametrize("value", ["nan", "1e-3x", "", "high"])
def test_published_values_are_numbers(refused, value):
    err = refused("metrics", "--sampled-negatives", 5, "--num-entities", 99, "--published", f"mrr={value}")
    assert "--published must be METRIC=VALUE" in err


def test_a_folder_is_as_its_file(call, sampled, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.parquet").write_bytes(sampled.read_bytes())
    asked = ("--sampled-negatives", 20, "--num-entities", 500, "--format", "json")
    file, folder = (json.loads(call("metrics", path, *asked)[1]) for path in (sampled, tmp_path / "folder"))
    assert [row | {"file": ""} for row in file] == [row | {"file": ""} for row in folder]
