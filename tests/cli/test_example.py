"""`owkg example`: files of the tutorials; one comparison holds, one is open, one is reversed."""

from pathlib import Path

import pytest

from owkg.files.storage import checksums
from owkg.judge import compare, read_judgements, read_runs
from owkg.kg import read_graph
from owkg.metrics.front import evaluate
from owkg.pools.annotation import read_sheet
from owkg.ranks import read_ranks

ROOT = Path(__file__).parents[2]
SYSTEMS = ("a", "b", "c")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from owkg.example import write_example

    place = tmp_path_factory.mktemp("example")  # empty, and there
    write_example(place)
    return place


def differences(tables):
    pairs = compare(tables, ["mrr"], test="t").pairs
    return {(row["first"], row["second"]): row for row in pairs.iter_rows(named=True)}


def test_one_comparison_holds_one_is_open_and_one_is_reversed(folder):
    sparse = differences({name: folder / f"{name}.parquet" for name in SYSTEMS})
    complete = differences({name: folder / "complete" / f"{name}.parquet" for name in SYSTEMS})
    holds, is_open, is_reversed = ("a", "c"), ("a", "b"), ("b", "c")
    for found in (sparse, complete):
        assert found[holds]["difference"] > 0
        assert found[holds]["p_value"] < 0.001
    assert sparse[is_open]["p_value"] > 0.05
    assert complete[is_open]["p_value"] < 0.001
    assert sparse[is_reversed]["difference"] > 0 > complete[is_reversed]["difference"]
    assert max(found[is_reversed]["p_value"] for found in (sparse, complete)) < 0.01


def test_the_complete_test_holds_the_test_and_what_is_missing(folder):
    graph = read_graph(folder / "graph")
    truth = read_judgements(folder / "complete.qrels")
    key = ["side", "head", "relation", "tail"]
    for name in SYSTEMS:
        test, complete = (read_ranks(folder / part / f"{name}.parquet").frame for part in (".", "complete"))
        assert len(test) == 2 * len(graph.splits["test"])
        assert len(complete) == len(truth) > 1.3 * len(test)
        assert test.join(complete, on=key, how="anti").is_empty()
        assert set(read_runs([folder / f"{name}.run"])["query"]) == set(truth["query"])
    seeds = read_ranks(folder / "seeds.parquet")
    found = evaluate(seeds, ["mrr"])
    assert found["model"].to_list() == ["a", "c"]


def test_equal_seeds_give_equal_bytes(folder, tmp_path, done):
    for name, seed in (("same", 0), ("other", 1)):
        assert "wrote" in done("example", tmp_path / name, "--seed", seed)
    assert checksums(tmp_path / "same") == checksums(folder)
    other = checksums(tmp_path / "other")
    assert other.keys() == checksums(folder).keys()
    assert {name for name in other if other[name] == checksums(folder)[name]} == {"README.txt"}


def test_commands_of_the_readme_are_those_of_tutorials(folder):
    """Which tests/test_tasks.py runs."""
    text = (folder / "README.txt").read_text(encoding="utf-8")
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "get_started").glob("*.md"))
    commands = [line.strip() for line in text.splitlines() if line.startswith("  owkg ")]
    assert len(commands) == 7
    assert [command for command in commands if f"$ {command}\n" not in pages.replace("\\\n    ", "")] == []


def test_a_sheet_is_filled_in_by_the_truth(folder, tmp_path, done):
    runs = [folder / f"{name}.run" for name in SYSTEMS]
    draw = ("--depth", 3, "--draw", "queries:20", "--out", tmp_path / "pool")
    done("pool", *runs, "--kg", folder / "graph", *draw, notes=True)
    sheet = tmp_path / "pool" / "sheet.tsv"
    told = done("example", folder, "--judge", sheet)
    said = read_sheet(sheet)
    truth = read_judgements(folder / "complete.qrels")
    right = said.join(truth, on=["query", "answer"], how="semi")
    assert 0 < len(right) < len(said)
    assert set(right["relevance"]) == {1}
    assert said["relevance"].sum() == len(right)
    assert told == f"filled in {sheet} by the truth: {len(right)} answers are true\n"


def test_what_cannot_be_written_or_judged_is_one_line(folder, tmp_path, done, refused):
    assert "is there already" in refused("example", folder)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    assert "was not made by owkg example" in refused("example", tmp_path / "mine", "--overwrite")
    assert "OUT must be one that owkg example wrote" in refused("example", tmp_path / "mine", "--judge", "x")
    assert "--seed has no effect" in refused("example", folder, "--judge", "x", "--seed", 1)
    sheet = tmp_path / "sheet.tsv"
    sheet.write_text("question_id\tanswer_id\tlabel\nnobody|auntOf|?\tann\t\n")
    assert f"{sheet}, line 2: the query 'nobody|auntOf|?'" in refused("example", folder, "--judge", sheet)


def test_an_example_is_replaced_unless_it_holds_work_of_people(tmp_path, done, refused):
    place = tmp_path / "twice"
    done("example", place)
    (place / "pool").mkdir()
    done("example", place, "--overwrite")
    (place / "pool").mkdir()
    for name in ("sheet.tsv", "design.json"):
        (place / "pool" / name).write_text("judged by people")
    before = checksums(place)
    told = refused("example", place, "--overwrite")
    assert f"{place}: holds pool/design.json and 1 more, which owkg example did not write" in told
    assert checksums(place) == before
    (place / "pool" / "design.json").unlink()
    assert "holds pool/sheet.tsv, which owkg example did not write" in refused(
        "example", place, "--overwrite"
    )
