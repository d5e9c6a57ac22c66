"""Closed worlds as folders: what is written, whole folders or none, and what verification finds."""

import hashlib
import json
import os

import polars as pl
import pytest

from family_tree import (
    close,
    closure,
    fact_counts,
    generate,
    generations,
    ontology,
    published_people,
    read_people,
    sample_people,
    verify,
    write_people,
)
from family_tree.world import fact_table, write_world
from owkg.files.storage import read_metadata

FILES = ["people.tsv", "parents.tsv", "relations.toml"]


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
    trees = [sample_people(num_trees=1, max_tree_size=60, seed=5, first_tree=i) for i in range(3)]
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


def test_generations_are_those_of_the_deepest_block(tmp_path):
    trees = [
        sample_people(num_trees=1, max_tree_size=size, first_tree=i) for i, size in enumerate((2, 60, 2))
    ]
    depths = [int(generations(people).max()) + 1 for people in trees]
    assert depths[1] > max(depths[0], depths[2])
    content = write_world(tmp_path, trees, ontology("published"), facts_format="tsv", parameters={})
    assert content["generations"] == depths[1]
    assert verify(tmp_path) == []


def test_what_is_read_is_what_has_the_checksum(tmp_path, inputs, world):
    """A pipe can be read once."""
    pipes = {}
    for name, path in inputs.items():
        reader, writer = os.pipe()
        os.write(writer, path.read_bytes())
        os.close(writer)
        pipes[name] = reader
    found = close(*(f"/dev/fd/{pipe}" for pipe in pipes.values()), out=tmp_path / "piped")
    for pipe in pipes.values():
        os.close(pipe)
    assert found["inputs"] == read_metadata(world)["inputs"]
    assert found["inputs"]["people"] == hashlib.sha256(inputs["people"].read_bytes()).hexdigest()
    assert found["sha256"] == read_metadata(world)["sha256"]


def test_paths_may_be_text_and_nothing_else(tmp_path, inputs, monkeypatch):
    monkeypatch.chdir(tmp_path)
    close("people.tsv", "parents.tsv", "world")
    assert verify("world") == []
    generate("other", num_trees=1, max_tree_size=5)
    for bad in (None, 3, b"world"):
        with pytest.raises(ValueError, match="`people` must be a path, got "):
            close(bad, "parents.tsv", "new")
        with pytest.raises(ValueError, match="`parents` must be a path, got "):
            close("people.tsv", bad, "new")
        with pytest.raises(ValueError, match="`out` must be a path, got "):
            close("people.tsv", "parents.tsv", bad)
        with pytest.raises(ValueError, match="`out` must be a path, got "):
            generate(bad)
        with pytest.raises(ValueError, match="`folder` must be a path, got "):
            verify(bad)
        with pytest.raises(ValueError, match="`folder` must be a path, got "):
            published_people(bad)


def test_options_are_true_or_false(tmp_path, inputs, world):
    with pytest.raises(ValueError, match="`overwrite` must be True or False, got 'no'"):
        close(**inputs, out=world, overwrite="no")
    with pytest.raises(ValueError, match="`overwrite` must be True or False, got 'no'"):
        generate(world, overwrite="no")
    with pytest.raises(ValueError, match="`strict_depth` must be True or False, got 'no'"):
        generate(tmp_path / "new", strict_depth="no")


def test_an_ontology_may_be_given_itself(tmp_path, inputs):
    mine = tmp_path / "mine.toml"
    mine.write_text('[childOf]\nrules = ["parentOf(Y, X)"]\n')
    one = close(**inputs, out=tmp_path / "one", relations=ontology(mine))
    other = close(**inputs, out=tmp_path / "other", relations=mine)
    assert one["parameters"]["relations"] == "mine"
    assert one["sha256"] == other["sha256"]


def test_great_seeds_are_written_as_they_are(tmp_path):
    assert (
        generate(tmp_path / "world", num_trees=1, max_tree_size=3, seed=10**30)["parameters"]["seed"]
        == 10**30
    )


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
    assert faults[0] == "facts.tsv: does not have the checksum in metadata.json"
    assert faults[1].startswith(where.format(last=last, after=last + 1))
    signed(world, "facts.tsv")
    assert verify(world) == faults[1:]


def test_other_rules_and_other_people_are_found(world):
    changed(world / "relations.toml", lambda text: text.replace(b"X != Y", b"male(X)"))
    assert verify(world)[0] == "relations.toml: does not have the checksum in metadata.json"
    signed(world, "relations.toml")
    assert verify(world)[0].startswith("facts.tsv, line ")


@pytest.mark.parametrize("name", ["people", "couples", "generations", "facts", "relations"])
def test_other_numbers_are_found(world, name):
    content = read_metadata(world)
    right = content[name]
    for wrong in (right | {"auntOf": right["auntOf"] + 1} if name == "relations" else right + 1, None, "7"):
        (world / "metadata.json").write_text(json.dumps(content | {name: wrong}))
        (fault,) = verify(world)
        assert fault.startswith(f"metadata.json: {name} must be {right}, got ")
    del content[name]
    (world / "metadata.json").write_text(json.dumps(content))
    assert verify(world) == [f"metadata.json: {name} must be {right}, got None"]


def test_numbers_are_compared_whatever_the_facts(world):
    content = read_metadata(world)
    (world / "metadata.json").write_text(json.dumps(content | {"people": 1}))
    changed(world / "facts.tsv", lambda text: text[:-1])
    checksum, line, people = verify(world)
    assert checksum == "facts.tsv: does not have the checksum in metadata.json"
    assert line.startswith("facts.tsv, line ")
    assert people == f"metadata.json: people must be {content['people']}, got 1"


def test_files_that_are_absent_or_too_many_are_found(world):
    (world / "inner").mkdir()
    (world / "inner" / "more").write_text("")
    (world / "facts.parquet").write_text("")
    assert verify(world) == [
        "facts.parquet: is not named in metadata.json",
        "inner/more: is not named in metadata.json",
    ]
    (world / "people.tsv").unlink()
    assert verify(world) == ["people.tsv: is not there"]


@pytest.mark.parametrize(
    ("file", "text", "fault"),
    [
        ("people.tsv", b"person\n", "people.tsv, line 1: must be the header"),
        ("people.tsv", b"\xff", "people.tsv, line 1: must be UTF-8 text"),
        ("parents.tsv", b"parent\tchild\nann\tbob\n", "parents.tsv, line 2: the parent 'ann' is not in "),
        ("relations.toml", b"[", "relations.toml: must be TOML in UTF-8"),
        (
            "relations.toml",
            b"a = " + b"[" * 20_000,
            "relations.toml: must be TOML that is not nested so deep",
        ),
    ],
)
def test_files_that_cannot_be_read_are_found(world, file, text, fault):
    (world / file).write_bytes(text)
    checksum, why = verify(world)
    assert checksum == f"{file}: does not have the checksum in metadata.json"
    assert why.startswith(fault)
    signed(world, file)
    assert verify(world) == [why]


@pytest.fixture
def parquet(tmp_path, inputs):
    close(**inputs, out=tmp_path / "parquet", facts_format="parquet")
    return tmp_path / "parquet"


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: data[:100] + bytes(100) + data[200:],
        lambda data: b"ann\tauntOf\tbob\n",
    ],
)
def test_damaged_parquet_is_found(parquet, damage):
    changed(parquet / "facts.parquet", damage)
    assert verify(parquet) == ["facts.parquet: does not have the checksum in metadata.json"]


def test_parquet_of_something_else_is_found(parquet):
    path = parquet / "facts.parquet"
    facts = pl.read_parquet(path)
    for other, fault in (
        (
            facts.rename({"head": "subject"}),
            "facts.parquet: must have columns head, relation, tail of text, got ",
        ),
        (facts.with_columns(tail=1), "facts.parquet: must have columns head, relation, tail of text, got "),
        (facts[::-1], "facts.parquet, line 1: must be "),
        (facts[:-1], f"facts.parquet, line {len(facts)}: must be "),
    ):
        other.write_parquet(path)
        signed(parquet, path.name)
        (found,) = verify(parquet)
        assert found.startswith(fault)
    path.write_bytes(b"PAR1 and more")
    signed(parquet, path.name)
    (found,) = verify(parquet)
    assert found.startswith("facts.parquet: must be Parquet (")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "holds no metadata.json"),
        ("{", "metadata.json: must be JSON"),
        ("[]", "metadata.json: must hold checksums under sha256, got None"),
        ('{"sha256": {"people.tsv": 1}}', "metadata.json: must hold checksums under sha256, got"),
        ('{"sha256": {}}', "metadata.json: must name people, parents, relations and facts"),
        (
            json.dumps({"sha256": dict.fromkeys([*FILES, "facts.tsv", "facts.parquet"], "0")}),
            "metadata.json: must name people, parents, relations and facts, each in one file",
        ),
        ("[" * 100_000, "metadata.json: must be JSON that is not nested so deep"),
    ],
)
def test_folders_that_are_no_world(tmp_path, text, message):
    if text is not None:
        (tmp_path / "metadata.json").write_text(text)
    with pytest.raises(ValueError, match=r".") as caught:
        verify(tmp_path)
    assert message in str(caught.value)
