"""Commands on folders and patterns of Parquet files, as their users meet them."""

import json
import shlex

import numpy as np
import polars as pl
import pytest

from owkg.judge import streamed as judged
from owkg.kg import KnowledgeGraph, write_labelled
from owkg.metrics import fold
from owkg.ranks import partitions, write_ranks


def _ranks(seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    rows = [
        {"head": f"h{i % 40}", "relation": f"r{i % 3}", "tail": f"t{i % 37}", "side": side, "candidates": 70}
        for i in range(200)
        for side in ("head", "tail")
    ]
    asked = pl.DataFrame(rows).unique(maintain_order=True)
    low = rng.integers(1, 60, len(asked))
    return asked.with_columns(optimistic=low, pessimistic=low + rng.integers(0, 3, len(asked)))


@pytest.fixture(params=[100, 10**6], ids=["in parts", "at once"])
def call(call, tmp_path, monkeypatch, request):
    """As `call`, of a line, beside two models in files and as a dataset."""
    monkeypatch.chdir(tmp_path)
    for module in (partitions, fold, judged):
        monkeypatch.setattr(module, "rows_of_part", lambda rows: request.param)
    for seed, name in enumerate(("complex", "transe")):
        table = _ranks(seed)
        write_ranks(table, f"{name}.parquet")
        for i in range(3):
            write_ranks(table[i::3], f"ranks/model={name}/part-{i}.parquet")
    triples = _ranks(0).select("head", "relation", "tail").unique(maintain_order=True)
    entities = sorted({*triples["head"], *triples["tail"]})
    ids = [[entities.index(h), int(r[1:]), entities.index(t)] for h, r, t in triples.iter_rows()]
    splits = {"train": np.array(ids, np.int32), "test": np.array(ids[:1], np.int32)}
    write_labelled(KnowledgeGraph(tuple(entities), ("r0", "r1", "r2"), splits), tmp_path / "graph")
    return lambda line, *more: call(*shlex.split(line), *more)


def near(found, expected):
    """Equal, numbers but for rounding."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key, value in expected.items():
            near(found[key], value)
    elif isinstance(expected, list):
        for one, other in zip(found, expected, strict=True):
            near(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
    else:
        assert found == expected


@pytest.mark.parametrize("source", ["ranks", "ranks/", "'ranks/*/*.parquet'", "'ranks/model=*'"])
def test_metrics_of_a_dataset_are_those_of_its_models(call, source):
    options = "--metric mrr,zmr,gmr,variance,macro-mrr --by relation --format json"
    code, out, err = call(f"metrics {source} {options}")
    assert (code, "error" in err) == (0, False)
    near(json.loads(out), json.loads(call(f"metrics complex.parquet transe.parquet {options}")[1]))


def test_metrics_as_a_table(call):
    options = "--metric mrr,hits@10 --by side,ties"
    expected = call(f"metrics complex.parquet transe.parquet {options}")
    assert call(f"metrics ranks {options}")[:2] == expected[:2]
    assert expected[0] == 0


def test_metrics_of_several_datasets(call, refused):
    code, out, _ = call("metrics complex.parquet ranks/model=transe --metric mrr --format csv")
    assert code == 0
    assert {line.split(",")[0] for line in out.splitlines()[1:]} == {"complex", "transe"}
    err = refused("metrics ranks 'ranks/*/*.parquet'")
    assert "ranks/*/*.parquet: the model 'complex' is in ranks too" in err


def test_a_graph_adds_popularity(call):
    options = "--kg graph --metric mrr,probe@1,0.5 --by category,popularity --format json"
    code, out, err = call(f"metrics ranks {options}")
    assert (code, "error" in err) == (0, False), err
    expected = call(f"metrics complex.parquet transe.parquet {options}")
    near(json.loads(out), json.loads(expected[1]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("ranks --by category", "--by must name a column of the rank table, got category"),
        ("'none/*.parquet'", "no file matches the pattern none/*.parquet"),
        ("graph", "must hold .parquet files, got none in the folder graph"),
        ("none", "No such file or directory"),
    ],
)
def test_what_cannot_be_done_is_one_line(call, options, message):
    code, out, err = call(f"metrics {options}")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_a_task_in_two_files_is_one_line(call, tmp_path):
    write_ranks(_ranks(0)[:1], tmp_path / "ranks" / "model=complex" / "again.parquet")
    code, _, err = call("metrics ranks")
    assert (code, err.count("\n")) == (2, 1)
    assert "again.parquet and ranks/model=complex/part-0.parquet both rank the task" in err


def test_comparisons_of_a_dataset_are_those_of_its_models(call):
    options = "--metric mrr,hits@10 --draws 300 --by side --format json"
    code, out, _ = call(f"compare ranks {options}")
    assert code == 0
    near(json.loads(out), json.loads(call(f"compare complex.parquet transe.parquet {options}")[1]))


def test_the_stability_of_a_dataset_is_that_of_its_models(call):
    options = "--metric mrr,hits@10 --draws 5 --format json"
    code, out, _ = call(f"stability ranks {options}")
    assert code == 0
    near(json.loads(out), json.loads(call(f"stability complex.parquet transe.parquet {options}")[1]))


FILES = "complex.parquet transe.parquet"
NEED_ALL = (
    ("metrics", "--metric mrr --interval percentile --replicates 20 --format json", "--interval"),
    ("metrics", "--metric mrr --reweight uniform --format csv", "--reweight"),
    ("metrics", "--metric mrr --figures out --format csv", "--figures"),
    ("metrics", "--metric mrr --mean-of-sides --format json", "--mean-of-sides"),
    ("compare", "--metric mrr --test t --intersect --format json", "--intersect"),
    ("compare", "--metric mrr --test t --by category --kg graph --format json", "--kg"),
    ("stability", "--metric mrr --draws 5 --unit triple --format json", "--unit"),
    ("audit", "--metric mrr --test t --format json", "FILE"),
)


@pytest.mark.parametrize(("command", "options", "named"), NEED_ALL)
def test_every_option_works_on_files_and_folders(call, monkeypatch, command, options, named):
    """And where all ranks are needed, and do not fit, the option says how much is lacking."""
    found = call(f"{command} ranks {options}")
    assert found[0] == 0, found
    expected = call(f"{command} {FILES} {options}")
    if "json" in options:
        near(*(json.loads(out) for out in (found[1], expected[1])))
    else:
        assert found[1] == expected[1]
    monkeypatch.setattr(partitions, "rows_of_part", lambda rows: 100)
    monkeypatch.setattr(partitions, "free_memory", lambda: 2**28)
    code, out, err = call(f"{command} ranks {options}")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"{named} must leave memory for all" in err
    assert "GiB are needed at least" in err


def test_half_links_of_a_folder(call):
    options = "--metric mrr,hits@10 --kg graph --by half-link --format json"
    code, out, _ = call(f"metrics ranks {options}")
    assert code == 0
    near(json.loads(out), json.loads(call(f"metrics {FILES} {options}")[1]))
