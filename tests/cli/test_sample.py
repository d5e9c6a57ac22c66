"""`owkg sample` as its users meet it."""

import gzip
import json
import os
from functools import partial

import polars as pl
import pytest

import family_tree
from owkg import sampling
from owkg.cli.main import main
from owkg.kg import read_graph
from owkg.openworld import NodeBased, PopularityBased

PEOPLE = [f"person {i:02}" for i in range(30)]
FACTS = [
    f"{a}\t{relation}\t{b}\n"
    for i, a in enumerate(PEOPLE)
    for j, b in enumerate(PEOPLE)
    for relation, every in (("knows", 1), ("likes", 2), ("marries", 13))
    if i != j and (i + j) % every == 0
]
USUAL = ("--density", 0.75, "--num-queries", 20, "--min-answers", 5)


@pytest.fixture
def facts(tmp_path):
    path = tmp_path / "facts.tsv"
    path.write_text("".join(FACTS))
    return path


@pytest.fixture
def call(call):
    """As `call`, of `owkg sample`."""
    return partial(call, "sample")


def _contents(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_one_density_goes_into_the_folder_itself(done, facts, tmp_path):
    out = done(facts, tmp_path / "new", *USUAL)
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        *("train.txt", "test_sparse.txt", "test_full.txt", "missing.txt", "entities.dict", "relations.dict"),
        *("queries.tsv", "queries_sparse.txt", "queries_full.txt", "qrels_sparse.txt", "qrels_full.txt"),
        *("README.md", "metadata.json", "card.png", "openke", "libkge"),
    }
    card = json.loads((tmp_path / "new/metadata.json").read_text())
    said = {line.rsplit("  ", 2)[0].strip(): line.split()[-1] for line in out.splitlines() if line.strip()}
    assert said["density"] == "0.75"
    assert said["facts in train"] == f"{card['splits']['train']:,}"
    assert said["alpha realised"] == f"{card['alpha']['realised']:.4f}"
    assert said["queries"] == "20"
    assert f"wrote {tmp_path / 'new'}" in out


def test_a_small_world_asks_all_that_there_is_to_ask(call, done, facts, tmp_path):
    out = done(facts, tmp_path / "new", "--density", "0.75,0.5", "--min-answers", 5)
    cards = [json.loads((tmp_path / f"new/d{d}/metadata.json").read_text()) for d in (0.75, 0.5)]
    for density, card in zip(("0.75", "0.5"), cards, strict=True):
        asked = card["parameters"]["num_queries"]
        assert 0 < asked < 500
        assert asked == card["queries"]["eligible"] == card["queries"]["drawn"]
        assert f"note: density {density}: only {asked} queries, not 500, have at least 5 answers" in out
    # The same as when they are asked for.
    alone = ("--density", 0.75, "--min-answers", 5, "--num-queries", cards[0]["parameters"]["num_queries"])
    assert call(facts, tmp_path / "alone", *alone)[0] == 0
    assert _contents(tmp_path / "alone") == _contents(tmp_path / "new/d0.75")
    code, _, err = call(facts, tmp_path / "none", "--density", 0.75, "--min-answers", 50)
    assert (code, err.count("\n")) == (2, 1)
    assert "--num-queries must be at most 0, the number of queries with at least 50 full-test answers" in err


def test_several_densities_and_json(done, facts, tmp_path):
    out = done(
        facts,
        tmp_path / "new",
        *("--density", "0.95, 0.5,1", "--nested", "--sides", "head,tail", "--valid-rate", 0.1, "--seed", 3),
        *(
            "--missing",
            "node",
            "--node-spread",
            0.1,
            "--num-queries",
            "all",
            "--write-layouts",
            "none",
            "--no-card-figure",
        ),
        *("--format", "json"),
    )
    found = json.loads(out)
    assert found["out"] == str(tmp_path / "new")
    assert [world["parameters"]["density"] for world in found["worlds"]] == [0.95, 0.5, 1.0]
    for world in found["worlds"]:
        folder = tmp_path / "new" / f"d{world['parameters']['density']}"
        written = json.loads((folder / "metadata.json").read_text())
        assert {key: written[key] for key in world} == world
        assert world["parameters"]["missing"] == {"model": "node", "spread": 0.1}
        assert world["queries"]["drawn"] == world["queries"]["eligible"]
        assert not (folder / "openke").exists()
        assert not (folder / "card.png").exists()
        graph = read_graph(folder)
        assert {name: len(triples) for name, triples in graph.splits.items()} == world["splits"]


def test_each_missing_model(call, facts, tmp_path):
    models = {
        "independent": (),
        "node": (),
        "relation": ("--relation-spread", 0.1),
        "popularity": ("--popularity-exponent", 2),
    }
    sets = set()
    for name, options in models.items():
        assert call(facts, tmp_path / name, *USUAL, "--missing", name, *options)[0] == 0
        sets.add((tmp_path / name / "missing.txt").read_bytes())
    assert len(sets) == len(models)


def test_a_density_is_the_same_whatever_others_are_asked(call, facts, tmp_path):
    for nested in ((), ("--nested",)):
        for name, densities in (("one", "0.75"), ("two", "0.6,0.75")):
            folder = tmp_path / f"{name}{len(nested)}"
            assert call(facts, folder, *USUAL, *nested, "--density", densities)[0] == 0
        assert _contents(tmp_path / f"one{len(nested)}") == _contents(
            tmp_path / f"two{len(nested)}" / "d0.75"
        )


@pytest.mark.parametrize("name", ["facts.tsv.gz", "facts.parquet", "turned.tsv"])
def test_other_files_with_the_same_facts_give_the_same_world(call, facts, tmp_path, name):
    other = tmp_path / name
    if name.endswith("gz"):
        other.write_bytes(gzip.compress("".join(FACTS).encode()))
    elif name.endswith("parquet"):
        rows = [line.rstrip("\n").split("\t") for line in FACTS]
        pl.DataFrame(rows, schema=["head", "relation", "tail"], orient="row").write_parquet(other)
    else:
        other.write_text("".join(reversed(FACTS)))
    for path, out in ((facts, "one"), (other, "two")):
        assert call(path, tmp_path / out, *USUAL, "--no-card-figure")[0] == 0
    one, two = (_contents(tmp_path / out) for out in ("one", "two"))
    for told in ("README.md", "metadata.json"):  # they name the file
        assert one.pop(told) != two.pop(told)
    assert one == two


def test_the_folder_works_with_the_other_commands(call, facts, tmp_path, capsys):
    folder = tmp_path / "new"
    assert call(facts, folder, *USUAL, "--sides", "head,tail")[0] == 0
    for test in ("sparse", "full"):
        # A system that retrieves the first of the right answers to each query, and nothing else.
        qrels = [line.split("\t") for line in (folder / f"qrels_{test}.txt").read_text().splitlines()]
        first = {query: answer for query, _, answer, _ in reversed(qrels)}
        run = tmp_path / f"{test}.run"
        run.write_text("".join(f"{q}\tQ0\t{a}\t1\t1.5\tfirst\n" for q, a in first.items()))
        ranks = tmp_path / f"{test}.parquet"
        files = ["--kg", str(folder), "--qrels", str(folder / f"qrels_{test}.txt"), "--out", str(ranks)]
        code = main(["ranks", "convert", str(run), *files, "--filter", "train"])
        assert (code, capsys.readouterr().err) == (0, "")
        table = pl.read_parquet(ranks)
        assert len(table) == len(qrels)
        assert (table["optimistic"] == 1).sum() >= len(first) == 20
    assert main(["kg", "info", str(folder), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    card = json.loads((folder / "metadata.json").read_text())
    assert found["triples"] == card["splits"]
    assert not any(count for split in found["leakage"].values() for count in split.values())
    assert not any(found["duplicates"].values())


def test_repeated_lines_are_said(call, facts, tmp_path):
    facts.write_text("".join(FACTS + FACTS[:3]))
    code, out, _ = call(facts, tmp_path / "new", *USUAL)
    assert code == 0
    assert f"note: {facts}: 3 of {len(FACTS) + 3} lines repeat an earlier fact" in out
    assert "note: 30 labels hold white space" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--density", "0"), "--density must be in (0, 1], got 0.0."),
        (("--density", "0.5,1.5"), "--density must be in (0, 1], got 1.5."),
        (("--density", "nan"), "--density must be in (0, 1], got nan."),
        (("--density", "0.5,"), "--density must be numbers in (0, 1], separated by commas, got '0.5,'."),
        (("--density", "0.5,0.50"), "--density must not contain a number twice, got 0.5 twice."),
        (("--train-rate", "1"), "--train-rate must be in (0, 1), got 1.0."),
        (("--valid-rate", "0.3"), "--valid-rate must be below 1 - --train-rate, 0.3, got 0.3."),
        (("--min-answers", "0"), "--min-answers must be a whole number of at least 1, got 0."),
        (("--num-queries", "0"), "--num-queries must be a whole number of at least 1, got 0."),
        (("--num-queries", "some"), "--num-queries must be a whole number or all, got 'some'."),
        (("--num-queries", "500"), "at density 0.75, --num-queries must be at most "),
        (("--seed", "-1"), "--seed must be a whole number of at least 0, got -1."),
        (("--missing", "node", "--node-spread", "0"), "--node-spread must be in [1e-06, 10], got 0.0."),
        (("--missing", "relation", "--relation-spread", "11"), "--relation-spread"),
        (("--node-spread", "0.1"), "--node-spread has no effect with --missing independent."),
        (("--write-layouts", "rotate"), "--write-layouts must be among openke, libkge, got 'rotate'."),
    ],
)
def test_bad_options_are_named_in_one_line_and_nothing_is_written(
    refused, facts, tmp_path, arguments, message
):
    err = refused(facts, tmp_path / "new", *USUAL, *arguments)
    assert message in err
    assert list(tmp_path.iterdir()) == [facts]


def test_bad_files_are_named(refused, facts, tmp_path):
    facts.write_text("a\tr\tb\na\tr\n")
    for path, message in (
        (facts, f"{facts}, line 2: must be head, relation and tail"),
        (tmp_path / "no", "no"),
    ):
        err = refused(path, tmp_path / "new", *USUAL)
        assert message in err
    assert list(tmp_path.iterdir()) == [facts]


def test_a_folder_is_replaced_only_when_asked_and_as_a_whole(call, refused, facts, tmp_path):
    out = tmp_path / "new"
    assert call(facts, out, *USUAL)[0] == 0
    before = _contents(out)
    assert "--overwrite" in refused(facts, out, *USUAL, "--seed", 1)
    assert "--num-queries" in refused(facts, out, *USUAL, "--num-queries", 5000, "--overwrite")
    assert _contents(out) == before
    assert call(facts, out, *USUAL, "--seed", 1, "--overwrite")[0] == 0
    after = _contents(out)
    assert after.keys() == before.keys()
    assert after["train.txt"] != before["train.txt"]
    assert "was not made by owkg sample" in refused(facts, tmp_path, *USUAL, "--overwrite")


@pytest.mark.parametrize(
    ("options", "given"),
    [
        ((), {}),
        (("--nested",), {"nested": True}),
        (("--sides", "head,tail"), {"both_sides": True}),
        (("--train-rate", 0.5, "--valid-rate", 0.25), {"train_rate": 0.5, "valid_rate": 0.25}),
        (("--seed", 9), {"seed": 9}),
        (("--missing", "node", "--node-spread", 0.3), {"missing": NodeBased(0.3)}),
        (("--missing", "relation"), {"missing": sampling.RelationBased()}),
        (("--missing", "popularity", "--popularity-exponent", 2), {"missing": PopularityBased(2)}),
    ],
)
def test_every_option_reaches_the_sample(done, facts, tmp_path, options, given):
    done(facts, tmp_path / "new", *USUAL, *options, "--no-card-figure", "--write-layouts", "none")
    usual = {"density": 0.75, "train_rate": 0.7, "num_queries": 20, "min_answers": 5, "seed": 0}
    world = sampling.sample(sampling.read_facts(facts), **(usual | given))
    labels = (world.entities, world.relations, world.entities)
    for name in ("train", "valid", "test_sparse", "missing"):
        triples = getattr(world, name)
        lines = ["\t".join(of[i] for of, i in zip(labels, t, strict=True)) for t in triples.tolist()]
        path = tmp_path / "new" / f"{name}.txt"
        assert (path.read_text().splitlines() if path.exists() else []) == lines
    table = pl.read_csv(tmp_path / "new" / "queries.tsv", separator="\t")
    assert table.equals(sampling.query_table(world), null_equal=False)


def test_a_pipe_is_refused(refused, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        err = refused(path, tmp_path / "new", *USUAL)
        assert "must be a file that can be read twice" in err


def test_a_closed_world_is_not_replaced_by_what_is_drawn_from_it(refused, tmp_path):
    family_tree.generate(tmp_path / "families", num_trees=2, max_tree_size=60)
    before = _contents(tmp_path / "families")
    facts = tmp_path / "families" / "facts.tsv"
    assert "was not made by owkg sample" in refused(
        facts, tmp_path / "families", "--density", 0.5, "--num-queries", 1, "--overwrite"
    )
    assert _contents(tmp_path / "families") == before
