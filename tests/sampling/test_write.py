"""What is written is the world that was drawn, in every layout, and the card says so."""

import hashlib
import json
import re
import shutil
from pathlib import Path

import jax
import numpy as np
import polars as pl
import pytest

from owkg.cli.main import main
from owkg.files.storage import __version__, checksum
from owkg.ir.trec import read_qrels
from owkg.kg import KnowledgeGraph, read_graph, relation_categories
from owkg.models import Trained, model, write_embeddings
from owkg.openworld import Independent, NodeBased, PopularityBased
from owkg.ranks import read_ranks
from owkg.sampling import RelationBased, alpha, describe, query_table, sample, write_worlds

SOURCE = Path(__file__)
SETS = ("train", "valid", "test_sparse", "test_full", "missing")


def _sample(graph, **given):
    usual = {"density": 0.75, "train_rate": 0.6, "min_answers": 5, "num_queries": 30, "seed": 0}
    return sample(graph, **(usual | given))


@pytest.fixture(scope="module")
def world(closed):
    return _sample(closed, valid_rate=0.1, both_sides=True, missing=NodeBased(0.3))


@pytest.fixture(scope="module")
def folder(world, tmp_path_factory):
    path = tmp_path_factory.mktemp("out") / "new"
    write_worlds([world], path, source=SOURCE)
    return path


def _rows(triples):
    return set(map(tuple, triples.tolist()))


def test_the_labelled_files_are_the_sets(world, folder):
    graph = read_graph(folder, duplicates="error")
    assert graph[:2] == world[:2]
    assert graph.splits.keys() == set(SETS)
    for name in SETS:
        np.testing.assert_array_equal(graph.splits[name], getattr(world, name))


@pytest.mark.parametrize("layout", ["openke", "libkge"])
def test_other_layouts_hold_the_same(world, folder, layout):
    graph = read_graph(folder / layout, duplicates="error", layout=layout)
    assert graph[:2] == world[:2]
    same = {"train": "train", "valid": "valid", "test": "test_sparse", "test_full": "test_full"}
    assert graph.splits.keys() == same.keys()
    for name, attribute in same.items():
        np.testing.assert_array_equal(graph.splits[name], getattr(world, attribute))


def test_openke_knows_the_types_of_known_facts(world, folder):
    first, *lines = (folder / "openke" / "type_constrain.txt").read_text().splitlines()
    assert int(first) == len(world.relations)
    known = np.concatenate([world.train, world.valid, world.test_sparse])
    for relation in range(len(world.relations)):
        of_relation = known[known[:, 1] == relation]
        for line, column in zip(lines[2 * relation : 2 * relation + 2], (0, 2), strict=True):
            entities = np.unique(of_relation[:, column]).tolist()
            assert list(map(int, line.split("\t"))) == [relation, len(entities), *entities]


def test_what_is_not_known_is_counted_and_has_no_types(tmp_path):
    facts = np.array([[h, 0, t] for h in range(9) for t in range(9)] + [[0, 1, 9]], np.int32)
    graph = KnowledgeGraph(tuple("abcdefghij"), ("r", "s"), {"facts": facts})
    worlds = (_sample(graph, density=0.5, min_answers=1, num_queries=1, seed=seed) for seed in range(99))
    world = next(w for w in worlds if (w.missing[:, 1] == 1).any())
    (card,) = write_worlds([world], tmp_path / "new", source=SOURCE)
    assert card["untrained"] == {"entities": 1, "relations": 1}
    assert (tmp_path / "new/openke/type_constrain.txt").read_text().endswith("\n1\t0\n1\t0\n")


def test_queries_and_judgements_are_the_answers_of_the_drawn_queries(world, folder):
    queries = pl.read_csv(folder / "queries.tsv", separator="\t")
    assert queries.equals(query_table(world), null_equal=False)
    for name in ("sparse", "full"):
        facts, expected, triples = getattr(world, f"test_{name}"), set(), set()
        for row in queries.iter_rows(named=True):
            known, asked = (0, 2) if row["side"] == "tail" else (2, 0)
            entity, relation = world.entities.index(row["entity"]), world.relations.index(row["relation"])
            right = facts[(facts[:, known] == entity) & (facts[:, 1] == relation)]
            assert len(right) == row[name]
            expected |= {(row["query"], world.entities[answer]) for answer in right[:, asked]}
            triples |= _rows(right)
        qrels = read_qrels(folder / f"qrels_{name}.txt")
        assert (qrels["relevance"] == 1).all()
        assert set(qrels.select("query", "answer").iter_rows()) == expected
        assert len(qrels) == len(expected)
        sides = qrels.select("query", "side", "entity", "relation").unique()
        assert sides.sort("query").equals(queries.select(sides.columns).sort("query"))
        lines = (folder / f"queries_{name}.txt").read_text().splitlines()
        entity, relation = ({x: i for i, x in enumerate(labels)} for labels in world[:2])
        found = [(entity[h], relation[r], entity[t]) for h, r, t in (line.split("\t") for line in lines)]
        assert len(found) == len(set(found))
        assert set(found) == triples


@pytest.mark.parametrize("name", ["sparse", "full"])
def test_the_commands_of_the_card_evaluate_on_its_tests(world, folder, name, tmp_path, monkeypatch):
    command = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))["commands"][name]
    assert f"$ {command}\n" in (folder / "README.md").read_text(encoding="utf-8")
    monkeypatch.chdir(shutil.copytree(folder, tmp_path / "copy"))
    scorer = model("distmult", dim=3, reciprocal=False)
    params, _ = scorer.init(jax.random.key(0), len(world.entities), len(world.relations))
    labels = {"entities": world.entities, "relations": world.relations}
    write_embeddings("e.npz", Trained(scorer, params), **labels)
    words = command.replace(" run ", " --embeddings e.npz --model distmult ").split()
    assert main(words[1:]) == 0
    table = read_ranks(f"{name}.parquet").frame
    facts, known = getattr(world, f"test_{name}"), [world.train, world.valid, getattr(world, f"test_{name}")]
    assert table["filtered"].all()
    assert len(table) == getattr(world.queries, name).sum()
    known = {tuple(fact) for facts in known for fact in facts.tolist()}
    for row in table.sample(20, seed=0).rows(named=True):
        h, t = world.entities.index(row["head"]), world.entities.index(row["tail"])
        r = world.relations.index(row["relation"])
        assert (h, r, t) in set(map(tuple, facts.tolist()))
        others = [(h, r, e) if row["side"] == "tail" else (e, r, t) for e in range(len(world.entities))]
        assert row["candidates"] == len(others) - sum(one in known for one in others) + 1


def test_the_readme_shows_the_numbers_of_the_card(world, folder):
    text = (folder / "README.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE))
    full, sparse, share = world.queries.full, world.queries.sparse, alpha(world)
    assert rows["density realised"] == f"{1 - len(world.missing) / len(world.facts):.4f}"
    assert rows["alpha expected"] == f"{share.expected:.4f} ± {share.deviation:.4f}"
    assert rows["alpha realised"] == f"{share.realised:.4f}"
    assert rows["z"] == f"{share.z:+.2f}"
    for name in SETS:
        if len(facts := getattr(world, name)):
            assert rows[f"facts in {name}"] == f"{len(facts):,}"
    assert rows["queries that may be asked"] == f"{world.num_eligible:,}"
    assert rows["queries"] == "30"
    for name, answers in (("full", full), ("sparse", sparse)):
        assert float(rows[f"{name} answers: mean"]) == pytest.approx(answers.mean(), rel=1e-3)
        assert float(rows[f"{name} answers: median"]) == np.median(answers)
        assert float(rows[f"{name} answers: most"]) == answers.max()


def test_the_card_describes_the_world(world, folder):
    card = json.loads((folder / "metadata.json").read_text())
    assert {key: card[key] for key in describe(world)} == json.loads(json.dumps(describe(world)))
    assert card["versions"]["owkg"] == __version__
    assert card["source"] == {"file": SOURCE.name, "sha256": checksum(SOURCE)}
    assert card["parameters"]["missing"] == {"model": "node", "spread": 0.3}
    assert card["splits"] == {name: len(getattr(world, name)) for name in SETS}
    assert card["alpha"] == alpha(world)._asdict()
    assert card["density"]["realised"] == pytest.approx(1 - len(world.missing) / len(world.facts))
    assert card["queries"]["full"]["mean"] == world.queries.full.mean()
    assert card["queries"]["sparse"]["median"] == np.median(world.queries.sparse)
    assert card["queries"]["drawn"] == card["queries"]["head"] + card["queries"]["tail"] == 30
    categories = relation_categories(world.train, len(world.relations)).tolist()
    assert [row["category"] for row in card["relations"].values()] == categories
    assert sum(row["test_sparse"] for row in card["relations"].values()) == len(world.test_sparse)
    row = card["relations"]["likes"]
    assert row["alpha"] == row["test_sparse"] / (row["test_sparse"] + row["missing"])


def test_every_file_is_there_with_its_checksum(folder):
    files = json.loads((folder / "metadata.json").read_text())["sha256"]
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert files.keys() == there - {"metadata.json"}
    for name, digest in files.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


def test_equal_worlds_give_equal_bytes(closed, world, folder, tmp_path):
    again = _sample(closed, valid_rate=0.1, both_sides=True, missing=NodeBased(0.3))
    write_worlds([again], tmp_path / "again", source=SOURCE)
    for path in folder.rglob("*"):
        if path.is_file():
            assert (tmp_path / "again" / path.relative_to(folder)).read_bytes() == path.read_bytes()


def test_the_readme_says_what_is_there_and_its_snippet_runs(folder, monkeypatch):
    text = (folder / "README.md").read_text()
    files = set(re.findall(r"`([\w.]+\.(?:txt|tsv|dict|json))`", text)) - {"test2id.txt", "test_full2id.txt"}
    assert files - {"facts.tsv"} == {path.name for path in folder.iterdir() if path.is_file()} - {"README.md"}
    assert "card.png" not in text
    assert "stand in" not in text
    monkeypatch.chdir(folder)
    code = next(c for c in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "owkg" in c)
    scope = {}
    exec(code, scope)  # noqa: S102
    assert scope["graph"].splits.keys() == set(SETS)


def test_without_validation_two_training_facts_stand_in_where_loaders_need_some(closed, tmp_path):
    world = _sample(closed)
    write_worlds([world], tmp_path / "new", source=SOURCE)
    assert not (tmp_path / "new/valid.txt").exists()
    for layout in ("openke", "libkge"):
        valid = read_graph(tmp_path / "new" / layout).splits["valid"]
        np.testing.assert_array_equal(valid, world.train[:2])
    assert "first\ntwo training facts instead" in (tmp_path / "new/README.md").read_text()


def test_sets_without_facts_have_no_file(closed, tmp_path):
    write_worlds([_sample(closed, density=1)], tmp_path / "new", source=SOURCE, layouts=())
    assert not (tmp_path / "new/missing.txt").exists()
    assert not (tmp_path / "new/openke").exists()
    graph = read_graph(tmp_path / "new")
    np.testing.assert_array_equal(graph.splits["test_full"], graph.splits["test_sparse"])


def test_several_worlds_are_compared(closed, tmp_path):
    drawn = []

    def draw(world, card, path):
        assert card["alpha"] == alpha(world)._asdict()
        drawn.append(world.design.density)
        path.write_bytes(b"figure")

    worlds = [_sample(closed, density=d, nested=True) for d in (0.95, 0.65)]
    cards = write_worlds(worlds, tmp_path / "new", source=SOURCE, draw=draw)
    assert drawn == [0.95, 0.65]
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        "d0.95",
        "d0.65",
        "README.md",
        "metadata.json",
    }
    top = json.loads((tmp_path / "new/metadata.json").read_text())
    for card, name in zip(cards, ("d0.95", "d0.65"), strict=True):
        own = (tmp_path / "new" / name / "metadata.json").read_bytes()
        assert json.loads(own) == json.loads(json.dumps(card))
        assert top["sha256"][f"{name}/metadata.json"] == hashlib.sha256(own).hexdigest()
        assert top["worlds"][name]["alpha"] == card["alpha"]
        assert "![" in (tmp_path / "new" / name / "README.md").read_text()
    asked = [set(query_table(world)["query"]) for world in worlds]
    assert top["shared_queries"] == len(asked[0] & asked[1]) > 0
    assert "They are nested" in (tmp_path / "new/README.md").read_text()


def test_progress_is_told(closed, tmp_path):
    told = []
    worlds = [_sample(closed, density=d) for d in (0.9, 0.8)]
    write_worlds(worlds, tmp_path / "new", source=SOURCE, on_progress=lambda *counts: told.append(counts))
    assert told == [(0, 2), (1, 2)]


def test_a_folder_that_is_there_is_refused_before_anything_is_drawn(closed, tmp_path):
    def never():
        raise AssertionError
        yield

    (tmp_path / "there").mkdir()
    with pytest.raises(ValueError, match="is there already"):
        write_worlds(never(), tmp_path / "there", source=SOURCE)
    (tmp_path / "there/else").touch()
    with pytest.raises(ValueError, match="was not made by owkg sample"):
        write_worlds(never(), tmp_path / "there", source=SOURCE, overwrite=True)


def test_a_failure_leaves_what_was_there(world, closed, tmp_path):
    write_worlds([_sample(closed)], tmp_path / "out", source=SOURCE, layouts=())
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}

    def broken(world, card, path):
        raise ValueError("no figure")

    with pytest.raises(ValueError, match="no figure"):
        write_worlds([world], tmp_path / "out", source=SOURCE, draw=broken, overwrite=True)
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]
    write_worlds([world], tmp_path / "out", source=SOURCE, overwrite=True)
    assert (tmp_path / "out/valid.txt").exists()


@pytest.mark.parametrize(
    ("kind", "label", "message"),
    [
        ("entities", "a\tb", "entity labels must not hold tabs or line end"),
        ("entities", "a\nb", "entity labels must not hold tab"),
        ("entities", "a\rb", "entity labels must not hold tab"),
        ("entities", "", "entity labels .* got ''"),
        ("entities", "a ", "begin or end with a space, got 'a '"),
        ("entities", "a|b", r"entity labels must not hold a bar .* got 'a\|b'"),
        ("entities", "?", r"or be \"\?\""),
        ("entities", "\ufeffa", "entity labels"),
        ("relations", " r", "relation labels must .* got ' r'"),
        ("relations", "r\t", "relation labels must not hold tab"),
    ],
)
def test_labels_that_files_cannot_hold(closed, tmp_path, kind, label, message):
    labels = (label, *getattr(closed, kind)[1:])
    with pytest.raises(ValueError, match=message):
        write_worlds([_sample(closed._replace(**{kind: labels}))], tmp_path / "new", source=SOURCE)
    assert not list(tmp_path.iterdir())


def test_labels_that_some_tools_misread_are_noted(closed, tmp_path):
    graph = closed._replace(relations=('"knows', "likes|?", "is fond of"))
    (card,) = write_worlds([_sample(graph)], tmp_path / "new", source=SOURCE)
    assert card["notes"][0].startswith("121 labels hold white space: trec_eval")
    assert card["notes"][1].startswith("1 labels begin with a quotation mark")
    assert card["notes"][1] in (tmp_path / "new/README.md").read_text()
    qrels = read_qrels(tmp_path / "new/qrels_full.txt")
    assert set(qrels["relation"]) <= set(graph.relations)


def test_worlds_and_layouts_that_are_refused(world, tmp_path):
    for worlds, got in (([], "none"), ([world, world], "d0.75, d0.75")):
        with pytest.raises(ValueError, match=f"`worlds` must have different densities, got {got}"):
            write_worlds(worlds, tmp_path / "new", source=SOURCE)
    with pytest.raises(ValueError, match="`layouts` must be among openke, libkge, got 'rotate'"):
        write_worlds([world], tmp_path / "new", source=SOURCE, layouts=["libkge", "rotate"])
    assert not list(tmp_path.iterdir())


def test_worlds_of_different_graphs_are_refused(closed, tmp_path):
    less = closed._replace(splits={name: facts[1:] for name, facts in closed.splits.items()})
    worlds = [_sample(closed, density=0.5), _sample(less, density=0.6)]
    with pytest.raises(ValueError, match="`worlds` must have the same closed world"):
        write_worlds(worlds, tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_a_layout_that_is_named_twice_is_refused(world, tmp_path):
    with pytest.raises(ValueError, match="`layouts` must name each layout once, got libkge, libkge"):
        write_worlds([world], tmp_path / "new", layouts=["libkge", "libkge"])


def test_a_world_need_not_come_from_a_file(world, tmp_path):
    (card,) = write_worlds([world], tmp_path / "new")
    assert card["source"] is None
    assert " from a graph (" in (tmp_path / "new" / "README.md").read_text()


@pytest.mark.parametrize("model", [Independent(), NodeBased(), RelationBased(), PopularityBased()])
def test_the_card_says_what_alpha_and_z_are(closed, tmp_path, model):
    write_worlds([_sample(closed, missing=model)], tmp_path / "new")
    text = " ".join((tmp_path / "new" / "README.md").read_text().split())
    assert "Alpha is the share of the full test that is in the sparse test" in text
    assert ("it is not an error" in text) == (model != Independent())
