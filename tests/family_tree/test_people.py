"""Who people can be, and the two files that say who they are."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from family_tree import (
    People,
    closed_graph,
    closure,
    couples,
    fact_counts,
    family_numbers,
    generations,
    people_checked,
    read_people,
    write_people,
)
from family_tree import family as one_family
from family_tree.layout import layout

PEOPLE = "person\tgender\neve\tfemale\nann\tfemale\nbob\tmale\ndan\tmale\nkim\tfemale\n"
PARENTS = "parent\tchild\neve\tkim\nann\tdan\nbob\tdan\ndan\tkim\n"
LABELS = ["ann", "bob", "dan", "eve", "kim"]
FEMALE = np.array([True, False, False, True, True])
EDGES = [[0, 2], [1, 2], [2, 4], [3, 4]]


def family(*, labels=LABELS, female=FEMALE, parents=EDGES) -> People:
    return People(pl.Series(labels), female, np.array(parents, np.int32).reshape(-1, 2))


def read(folder: Path, people: str = PEOPLE, parents: str = PARENTS) -> People:
    (folder / "people.tsv").write_text(people, newline="")
    (folder / "parents.tsv").write_text(parents, newline="")
    return read_people(folder / "people.tsv", folder / "parents.tsv")


def same(left: People, right: People) -> bool:
    return left.labels.equals(right.labels) and all(
        a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(left[1:], right[1:], strict=True)
    )


def test_a_family_is_checked_and_returned():
    people = family()
    assert people_checked(people) is people


@pytest.mark.parametrize(
    "parents",
    [
        [],
        [[0, 1]],  # one known parent
        [[0, 2], [0, 3], [1, 2]],  # half-siblings
        [[0, 2], [0, 4], [1, 2], [2, 4]],  # a child with their grandmother: no cycle
    ],
)
def test_families_that_can_be(parents):
    people_checked(family(parents=parents))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parents": [[0, 4], [1, 4], [2, 4]]}, "`parents`: 'kim' has more than two parents: ann, bob, dan."),
        ({"parents": [[0, 4], [3, 4]]}, "`parents`: 'kim' has two female parents: ann, eve."),
        ({"parents": [[1, 4], [2, 4]]}, "`parents`: 'kim' has two male parents: bob, dan."),
        ({"parents": [[1, 1]]}, "`parents`: 'bob' is their own ancestor: bob -> bob."),
        ({"parents": [[0, 2], [1, 3], [3, 1]]}, "`parents`: 'bob' is their own ancestor: bob -> eve -> bob."),
        ({"parents": [[0, 5]]}, r"`parents` must be ids in \[0, 5\), got 5."),
        ({"parents": [[-1, 0]]}, r"`parents` must be ids in \[0, 5\), got -1."),
        ({"parents": [[1, 2], [0, 2]]}, r"`parents` must be rows in increasing order, got \[0, 2\] after"),
        ({"parents": [[0, 2], [0, 2]]}, r"increasing order, got \[0, 2\] after \[0, 2\]."),
        (
            {"labels": ["ann", "bob", "eve", "dan", "kim"]},
            "`labels` must be in .* order, got 'dan' after 'eve'",
        ),
        (
            {"labels": ["ann", "bob", "bob", "dan", "kim"]},
            "`labels` must be in .* order, got 'bob' after 'bob'",
        ),
        ({"labels": ["ann", "bob", "c\td", "eve", "kim"]}, r"`labels` must be text without tabs .*'c\\td'"),
        ({"labels": [" ", "bob", "dan", "eve", "kim"]}, "`labels` must be text"),
        ({"labels": ["ann", None, "dan", "eve", "kim"]}, "`labels` must be text .* got None."),
        ({"labels": [1, 2, 3, 4, 5]}, "`labels` must be a series of text, got"),
        (
            {"female": FEMALE[:4]},
            r"`female` must be an array of bool of shape \(5,\), got bool of shape \(4,\)",
        ),
        ({"female": FEMALE.astype(int)}, r"`female` must be an array of bool of shape \(5,\), got int64"),
        ({"female": [True] * 5}, r"`female` must be an array of bool of shape \(5,\), got \[True"),
    ],
)
def test_people_who_cannot_be(changes, message):
    with pytest.raises(ValueError, match=message):
        people_checked(family(**changes))


TAKERS = {
    "people_checked": people_checked,
    "closure": lambda people: closure(people, "published"),
    "fact_counts": lambda people: fact_counts(people, "published"),
    "closed_graph": lambda people: closed_graph(people, "published"),
    "couples": couples,
    "generations": generations,
    "family_numbers": family_numbers,
    "family": lambda people: one_family(people, 0),
    "write_people": lambda people: write_people(people, "nowhere"),
    "layout": layout,
}


@pytest.mark.parametrize("take", TAKERS.values(), ids=TAKERS)
@pytest.mark.parametrize(
    ("people", "message"),
    [
        (None, "`people` must be People, got None"),
        ((LABELS, FEMALE, EDGES), "`people` must be People, got "),
        (People(LABELS, FEMALE, EDGES), "`labels` must be a series of text"),
        (family()._replace(parents=None), r"`parents` must be an array of int32 .* got None"),
        (
            family()._replace(parents=np.zeros(4, np.int32)),
            r"`parents` must be an array of int32 of shape \(4, 2\)",
        ),
        (family(parents=[[0, 5]]), "`parents` must be ids in"),
        (family(parents=[[0, -1]]), "`parents` must be ids in"),
        (family(parents=[[0, 1], [1, 0]]), "`parents`: 'ann' is their own ancestor"),
        (family(parents=[[0, 4], [1, 4], [2, 4]]), "`parents`: 'kim' has more than two parents"),
    ],
)
def test_whoever_takes_people_refuses_those_who_cannot_be(take, people, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        take(people)
    assert not any(tmp_path.iterdir())


def test_parents_are_int32():
    people = family()
    with pytest.raises(ValueError, match=r"`parents` must be an array of int32 of shape \(4, 2\), got int64"):
        people_checked(people._replace(parents=people.parents.astype(np.int64)))


def test_a_long_cycle_is_shortened():
    labels = [f"p{i}" for i in range(9)]
    edges = [[i, (i + 1) % 9] for i in range(9)]
    with pytest.raises(
        ValueError, match=r"'p0' is their own ancestor: p0 -> p1 -> p2 -> p3 -> \.\.\. -> p0\.$"
    ):
        people_checked(family(labels=labels, female=np.zeros(9, bool), parents=edges))


# --- files


def test_lines_may_come_in_any_order(tmp_path):
    assert same(read(tmp_path), family())


def test_what_is_written_is_sorted_and_read_again(tmp_path):
    write_people(family(), tmp_path / "new")
    folder = tmp_path / "new"
    assert (folder / "people.tsv").read_text() == (
        "person\tgender\nann\tfemale\nbob\tmale\ndan\tmale\neve\tfemale\nkim\tfemale\n"
    )
    assert (folder / "parents.tsv").read_text() == "parent\tchild\nann\tdan\nbob\tdan\ndan\tkim\neve\tkim\n"
    assert same(read_people(folder / "people.tsv", folder / "parents.tsv"), family())
    assert sorted(f.name for f in folder.iterdir()) == ["parents.tsv", "people.tsv"]


def test_a_person_may_be_alone(tmp_path):
    alone = read(tmp_path, "person\tgender\nann\tfemale\n", "parent\tchild\n")
    assert same(alone, family(labels=["ann"], female=np.array([True]), parents=[]))
    write_people(alone, tmp_path / "again")
    assert (tmp_path / "again" / "parents.tsv").read_text() == "parent\tchild\n"


@given(
    st.lists(
        st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1).filter(str.strip),
        min_size=1,
        max_size=8,
        unique=True,
    )
)
def test_any_names_go_there_and_back(tmp_path_factory, names):
    folder = tmp_path_factory.mktemp("names")
    names.sort()
    edges = [[i, i + 1] for i in range(len(names) - 1)]
    people = people_checked(family(labels=names, female=np.arange(len(names)) % 2 == 0, parents=edges))
    write_people(people, folder)
    assert same(read_people(folder / "people.tsv", folder / "parents.tsv"), people)


@pytest.mark.parametrize(
    ("people", "line", "message"),
    [
        ("person,gender\nann,female\n", 1, "must be the header 'person\\\\tgender', got 'person,gender'"),
        ("ann\tfemale\n", 1, "must be the header"),
        ("person\tgender\n", 1, "must be followed by lines, got none"),
        ("", 1, "must hold something, got an empty file"),
        ("person\tgender\nann\n", 2, "must be a person, a tab and a gender, got 1 column, 'ann'"),
        (PEOPLE + "joe\t\n", 7, "must be a person, a tab and a gender, got 2 columns"),
        (PEOPLE + "\tmale\n", 7, "must be a person, a tab and a gender, got 2 columns"),
        (PEOPLE + "  \tmale\n", 7, "must be a person, a tab and a gender, got 2 columns"),
        (PEOPLE + "joe\tmale\t\n", 7, "must be a person, a tab and a gender, got 3 columns"),
        (PEOPLE + "joe\tm\n", 7, "the gender must be female or male, got 'm'"),
        (PEOPLE + "\njoe\tmale\n", 7, "got a blank line"),
        (PEOPLE + "ann\tmale\n", 7, "the person 'ann' is already on line 3"),
    ],
)
def test_bad_people_are_named_with_file_and_line(tmp_path, people, line, message):
    with pytest.raises(ValueError, match=rf"^{tmp_path}/people\.tsv, line {line}: .*{message}"):
        read(tmp_path, people=people)


@pytest.mark.parametrize(
    ("parents", "line", "message"),
    [
        ("child\tparent\ndan\tann\n", 1, "must be the header 'parent\\\\tchild', got 'child\\\\tparent'"),
        ("parent\tchild\nann\n", 2, "must be a parent, a tab and a child, got 1 column, 'ann'"),
        ("parent\tchild\nann\t\n", 2, "must be a parent, a tab and a child, got 2 columns"),
        ("parent\tchild\nann\tdan\nann\tjoe\n", 3, "the child 'joe' is not in .*people.tsv"),
        ("parent\tchild\nann\tdan\njoe\tdan\n", 3, "the parent 'joe' is not in .*people.tsv"),
        (PARENTS + "ann\tdan\n", 6, "the edge 'ann -> dan' is already on line 3"),
        (PARENTS + "ann\tkim\n", 6, "'kim' has more than two parents: eve, dan, ann"),
        ("parent\tchild\neve\tkim\nann\tkim\n", 3, "'kim' has two female parents: eve, ann"),
        ("parent\tchild\nann\tdan\nbob\teve\nbob\tbob\n", 4, "'bob' is their own ancestor: bob -> bob"),
        (PARENTS + "kim\tann\n", 3, "'ann' is their own ancestor: ann -> dan -> kim -> ann"),
    ],
)
def test_bad_parents_are_named_with_file_and_line(tmp_path, parents, line, message):
    with pytest.raises(ValueError, match=rf"^{tmp_path}/parents\.tsv, line {line}: .*{message}"):
        read(tmp_path, parents=parents)


@pytest.mark.parametrize(
    ("people", "parents", "where"),
    [
        (PEOPLE + "jo\re\tmale\n", PARENTS, r"people\.tsv, line 7: .* got a CR in 'jo\\re\\tmale'"),
        (PEOPLE + "joe\tmale\r", PARENTS, r"people\.tsv, line 7: .* got a CR in 'joe\\tmale\\r'"),
        (PEOPLE.replace("\n", "\r"), PARENTS, r"people\.tsv, line 1: .* got a CR in 'person\\tgender\\reve"),
        (PEOPLE, PARENTS + "an\rn\tdan\n", r"parents\.tsv, line 6: .* got a CR in 'an\\rn\\tdan'"),
        (PEOPLE, PARENTS.replace("\n", "\r"), r"parents\.tsv, line 1: .* got a CR in 'parent\\tchild\\reve"),
    ],
)
def test_lines_end_in_lf_or_cr_lf(tmp_path, people, parents, where):
    assert same(read(tmp_path, PEOPLE.replace("\n", "\r\n"), PARENTS.replace("\n", "\r\n")), family())
    with pytest.raises(ValueError, match=where.replace(".*", "must end in LF or CR LF,")):
        read(tmp_path, people, parents)


def test_paths_may_be_text_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_people(family(), "folder")
    assert same(read_people("folder/people.tsv", "folder/parents.tsv"), family())
    for bad in (None, 3, b"folder"):
        with pytest.raises(ValueError, match="`folder` must be a path, got "):
            write_people(family(), bad)
        with pytest.raises(ValueError, match="`people_path` must be a path, got "):
            read_people(bad, "folder/parents.tsv")
        with pytest.raises(ValueError, match="`parents_path` must be a path, got "):
            read_people("folder/people.tsv", bad)


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_people(tmp_path / "people.tsv", tmp_path / "parents.tsv")
