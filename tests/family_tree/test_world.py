"""Closed worlds as folders: what is written, whole folders or none, and what verification finds."""

import hashlib
import json

import polars as pl
import pytest

from family_tree import (
    close,
    closure,
    fact_counts,
    ontology,
    read_people,
    sample_people,
    verify,
    write_people,
)
from family_tree.world import fact_table, write_world
from owkg.provenance import read_metadata


@pytest.fixture(scope="module")
def people():
    return sample_people(num_trees=3, max_tree_size=60, seed=5)


@pytest.fixture
def inputs(tmp_path, people):
    write_people(people, tmp_path)
    return {"people": tmp_path / "people.tsv", "parents": tmp_path / "parents.tsv"}


@pytest.fixture
def world(tmp_path, inputs):
    close(**inputs, out=tmp_path / "world")
    return tmp_path / "world"


def expected(people, name="published"):
    relations = ontology(name)
    return pl.concat([fact_table(facts, people, relations) for facts in closure(people, relations)])


@pytest.mark.parametrize("name", ["published", "hohenecker"])
def test_the_files_of_a_world(tmp_path, inputs, people, name):
    out = tmp_path / "deep" / "world"
    content = close(**inputs, out=out, relations=name)
    files = ["facts.tsv", "metadata.json", "parents.tsv", "people.tsv", "relations.toml"]
    assert sorted(path.name for path in out.iterdir()) == files
    lines = (out / "facts.tsv").read_bytes().splitlines(keepends=True)
    assert lines == sorted(lines)
    assert [tuple(line.decode()[:-1].split("\t")) for line in lines] == expected(people, name).rows()
    assert read_people(out / "people.tsv", out / "parents.tsv").labels.equals(people.labels)
    assert (out / "people.tsv").read_bytes() == inputs["people"].read_bytes()
    assert (out / "relations.toml").read_text() == ontology(name).text

    assert content == json.loads((out / "metadata.json").read_bytes()) == read_metadata(out)
    assert content["parameters"] == {"relations": name, "facts_format": "tsv"}
    assert (content["people"], content["facts"]) == (len(people.labels), len(lines))
    assert content["relations"] == fact_counts(people, ontology(name))
    assert content["versions"]["polars"] == pl.__version__
    assert content["sha256"].keys() == {*files} - {"metadata.json"}
    for file, found in content["sha256"].items():
        assert found == hashlib.sha256((out / file).read_bytes()).hexdigest()
    assert content["inputs"]["people"] == content["sha256"]["people.tsv"]


def test_the_order_of_lines_changes_nothing(tmp_path, inputs, world):
    for path in inputs.values():
        header, *lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join([header, *lines[::-1]]))
    close(**inputs, out=tmp_path / "turned")
    for file in ("facts.tsv", "people.tsv", "parents.tsv"):
        assert (tmp_path / "turned" / file).read_bytes() == (world / file).read_bytes()


def test_parquet_holds_the_same_facts(tmp_path, inputs, people):
    content = close(**inputs, out=tmp_path / "world", facts_format="parquet")
    assert not (tmp_path / "world" / "facts.tsv").exists()
    assert "facts.parquet" in content["sha256"]
    assert pl.read_parquet(tmp_path / "world" / "facts.parquet").equals(expected(people))
    assert verify(tmp_path / "world") == []


def test_labels_with_quotes_and_other_letters(tmp_path):
    (tmp_path / "people.tsv").write_text('person\tgender\n"Ann" \tfemale\nÉ,"\tmale\n\'x\tmale\n', "utf-8")
    (tmp_path / "parents.tsv").write_text('parent\tchild\n"Ann" \tÉ,"\n\'x\tÉ,"\n', "utf-8")
    for kind in ("tsv", "parquet"):
        close(tmp_path / "people.tsv", tmp_path / "parents.tsv", tmp_path / kind, facts_format=kind)
        assert verify(tmp_path / kind) == []
    lines = (tmp_path / "tsv" / "facts.tsv").read_text("utf-8").splitlines()
    assert '"Ann" \tmotherOf\tÉ,"' in lines
    assert pl.read_parquet(tmp_path / "parquet" / "facts.parquet").rows() == [
        tuple(x.split("\t")) for x in lines
    ]


@pytest.mark.parametrize("kind", ["tsv", "parquet"])
def test_a_world_without_facts(tmp_path, kind):
    (tmp_path / "people.tsv").write_text("person\tgender\nann\tfemale\n")
    (tmp_path / "parents.tsv").write_text("parent\tchild\n")
    content = close(tmp_path / "people.tsv", tmp_path / "parents.tsv", tmp_path / "world", facts_format=kind)
    assert content["facts"] == 0
    assert verify(tmp_path / "world") == []


def test_blocks_of_people_make_one_world(tmp_path, people, world):
    (tmp_path / "blocks").mkdir()
    trees = (sample_people(num_trees=1, max_tree_size=60, seed=5, first_tree=i) for i in range(3))
    content = write_world(
        tmp_path / "blocks", trees, ontology("published"), facts_format="tsv", parameters={}
    )
    assert content["sha256"] == read_metadata(world)["sha256"]


def test_a_folder_that_is_there_is_kept_or_replaced_as_a_whole(tmp_path, inputs, world):
    before = {path.name: path.read_bytes() for path in world.iterdir()}
    with pytest.raises(ValueError, match="is there already; `overwrite` replaces it"):
        close(**inputs, out=world)
    inputs["parents"].write_text("parent\tchild\nnobody\tnobody\n")
    with pytest.raises(ValueError, match=r"parents\.tsv, line 2: the parent 'nobody' is not in"):
        close(**inputs, out=world, overwrite=True)
    assert {path.name: path.read_bytes() for path in world.iterdir()} == before
    inputs["parents"].write_text("parent\tchild\n")
    close(**inputs, out=world, overwrite=True, facts_format="parquet")
    assert not (world / "facts.tsv").exists()
    assert verify(world) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_is_interrupted_leaves_nothing(tmp_path, inputs, error):
    def stop(done, total):
        assert 0 < done <= total
        raise error

    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(error):
        close(**inputs, out=tmp_path / "world", progress=stop)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("kind", ["csv", "", None, "TSV", ["tsv"]])
def test_formats_that_are_none(tmp_path, inputs, kind):
    with pytest.raises(ValueError, match="`facts_format` must be tsv or parquet"):
        close(**inputs, out=tmp_path / "world", facts_format=kind)


def test_a_world_as_it_was_written_is_verified(world):
    told = []
    assert verify(world, progress=lambda *numbers: told.append(numbers)) == []
    assert told[-1] == (read_metadata(world)["people"],) * 2


def changed(path, change):
    path.write_bytes(change(path.read_bytes()))


def signed(world, file):
    """Puts the checksum of a changed file into the metadata."""
    content = read_metadata(world)
    content["sha256"][file] = hashlib.sha256((world / file).read_bytes()).hexdigest()
    (world / "metadata.json").write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda text: text[:-1], "facts.tsv, line {last}: "),
        (lambda text: text[text.index(b"\n") + 1 :], "facts.tsv, line 1: must be "),
        (lambda text: text + b"ann\tauntOf\tbob\n", "facts.tsv, line {after}: must be the end, got 'ann"),
        (lambda text: text[: text.rstrip().rindex(b"\n") + 1], "facts.tsv, line {last}: must be "),
        (lambda text: text.replace(b"uncleOf", b"auntOf", 1), "facts.tsv, line "),
        (lambda text: b"", "facts.tsv, line 1: must be "),
    ],
)
def test_facts_that_are_not_the_closure_are_found(world, change, where):
    last = read_metadata(world)["facts"]
    changed(world / "facts.tsv", change)
    faults = verify(world)
    assert faults[0] == "facts.tsv: is not the file of which metadata.json tells"
    assert faults[1].startswith(where.format(last=last, after=last + 1))
    signed(world, "facts.tsv")
    assert verify(world) == faults[1:]


def test_other_rules_and_other_people_are_found(world):
    changed(world / "relations.toml", lambda text: text.replace(b"X != Y", b"male(X)"))
    assert verify(world)[0] == "relations.toml: is not the file of which metadata.json tells"
    signed(world, "relations.toml")
    assert verify(world)[0].startswith("facts.tsv, line ")


def test_other_numbers_and_absent_files_are_found(world):
    content = read_metadata(world)
    content["relations"]["auntOf"] += 1
    (world / "metadata.json").write_text(json.dumps(content))
    assert verify(world)[0].startswith("metadata.json: relations must be {'auntOf': ")
    (world / "people.tsv").unlink()
    assert verify(world) == ["people.tsv: is not there"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "holds no metadata.json"),
        ("{", "metadata.json: must be JSON"),
        ("[]", "metadata.json: must hold checksums under sha256, got None"),
        ('{"sha256": {"people.tsv": 1}}', "metadata.json: must hold checksums under sha256, got"),
        ('{"sha256": {}}', "metadata.json: must name people, parents, relations and facts"),
    ],
)
def test_folders_that_are_no_world(tmp_path, text, message):
    if text is not None:
        (tmp_path / "metadata.json").write_text(text)
    with pytest.raises(ValueError, match=r".") as caught:
        verify(tmp_path)
    assert message in str(caught.value)
