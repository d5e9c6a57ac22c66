"""A sampled closed world as a folder: what it holds, always the same, whole or not there."""

import json

import numpy as np
import polars as pl
import pytest

from family_tree import (
    closure,
    couples,
    fact_counts,
    generate,
    generations,
    ontology,
    read_people,
    sample_people,
    verify,
    write_people,
)

SMALL = {"num_trees": 3, "max_tree_size": 25, "max_depth": 2, "max_branching": 4, "seed": 5}


def contents(folder) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_the_folder_holds_people_and_their_closure(tmp_path):
    found = generate(tmp_path / "world", **SMALL)
    people = sample_people(**SMALL)
    write_people(people, tmp_path / "people")
    world = contents(tmp_path / "world")
    names = {"people.tsv", "parents.tsv", "facts.tsv", "relations.toml", "metadata.json"}
    assert world.keys() == names
    assert contents(tmp_path / "people").items() <= world.items()
    rules = ontology("published")
    labels = people.labels.to_list()
    lines = [
        f"{labels[h]}\t{rules.relations[r]}\t{labels[t]}"
        for facts in closure(people, rules)
        for h, r, t in zip(*(column.tolist() for column in facts), strict=True)
    ]
    assert world["facts.tsv"].decode().splitlines() == lines == sorted(lines)
    assert found == json.loads(world["metadata.json"])
    assert verify(tmp_path / "world") == []


def test_metadata_say_how_and_how_many(tmp_path):
    numbers = SMALL | {"num_trees": np.int64(3), "seed": 5.0}
    found = generate(tmp_path / "world", **numbers, strict_depth=True, first_tree=7, relations="hohenecker")
    people = sample_people(**SMALL, strict_depth=True, first_tree=7)
    assert found["parameters"] == SMALL | {
        "strict_depth": True,
        "first_tree": 7,
        "relations": "hohenecker",
        "facts_format": "tsv",
    }
    counts = fact_counts(people, ontology("hohenecker"))
    assert found["relations"] == counts
    assert found["facts"] == sum(counts.values())
    assert found["people"] == len(people.labels)
    assert found["couples"] == len(couples(people))
    assert found["generations"] == generations(people).max() + 1 == 3


def test_equal_arguments_give_equal_bytes(tmp_path):
    for name in ("one", "other"):
        generate(tmp_path / name, **SMALL)
    generate(tmp_path / "third", **SMALL | {"seed": 6})
    one, other, third = (contents(tmp_path / name) for name in ("one", "other", "third"))
    assert one == other
    assert {name for name in one if one[name] != third[name]} == one.keys() - {"relations.toml"}


def test_more_trees_add_lines(tmp_path):
    generate(tmp_path / "few", **SMALL)
    generate(tmp_path / "many", **SMALL | {"num_trees": 5})
    few, many = contents(tmp_path / "few"), contents(tmp_path / "many")
    assert all(many[name].startswith(few[name]) for name in ("people.tsv", "parents.tsv", "facts.tsv"))


def test_blocks_do_not_show(tmp_path):
    limits = {"num_trees": 17_000, "max_tree_size": 3}  # more than are sampled at once
    found = generate(tmp_path / "world", **limits)
    people = sample_people(**limits)
    read = read_people(tmp_path / "world" / "people.tsv", tmp_path / "world" / "parents.tsv")
    assert read.labels.equals(people.labels)
    assert np.array_equal(read.female, people.female)
    assert np.array_equal(read.parents, people.parents)
    assert found["people"] == 51_000
    assert found["couples"] == len(couples(people))


def test_parquet_holds_the_same_facts(tmp_path):
    generate(tmp_path / "tsv", **SMALL)
    generate(tmp_path / "parquet", **SMALL, facts_format="parquet")
    assert "facts.tsv" not in contents(tmp_path / "parquet")
    rows = pl.read_parquet(tmp_path / "parquet" / "facts.parquet").rows()
    assert rows == [
        tuple(line.split("\t")) for line in (tmp_path / "tsv" / "facts.tsv").read_text().splitlines()
    ]


def test_a_folder_is_replaced_only_when_asked(tmp_path):
    world = tmp_path / "world"
    generate(world, **SMALL)
    before = contents(world)
    with pytest.raises(ValueError, match="is there already; `overwrite` replaces it as a whole"):
        generate(world, **SMALL | {"seed": 6})
    assert contents(world) == before
    generate(world, **SMALL | {"seed": 6}, facts_format="parquet", overwrite=True)
    assert contents(world).keys() == before.keys() - {"facts.tsv"} | {"facts.parquet"}


@pytest.mark.parametrize("there", [False, True])
def test_an_interrupt_leaves_what_was_there(tmp_path, there):
    world = tmp_path / "world"
    if there:
        generate(world, **SMALL)
    before = contents(world) if there else None

    def interrupted(done: int, most: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(world, **SMALL | {"seed": 6}, overwrite=there, progress=interrupted)
    assert [file.name for file in tmp_path.iterdir()] == ["world"][: int(there)]
    assert not there or contents(world) == before


def test_progress_ends_with_all_people(tmp_path):
    told = []
    found = generate(tmp_path / "world", **SMALL, progress=lambda done, most: told.append((done, most)))
    done, most = zip(*told, strict=True)
    assert list(done) == sorted(done)
    assert done[-1] == found["people"]
    assert set(most) == {75}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_trees": 0}, "`num_trees` must be a whole number of at least 1, got 0"),
        ({"max_depth": 1.5}, "`max_depth` must be a whole number of at least 1, got 1.5"),
        ({"relations": "none"}, "`relations` must be .*, got 'none'"),
        ({"facts_format": "csv"}, "`facts_format` must be tsv or parquet, got 'csv'"),
    ],
)
def test_bad_arguments_leave_nothing(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        generate(tmp_path / "world", **SMALL | arguments)
    assert list(tmp_path.iterdir()) == []
