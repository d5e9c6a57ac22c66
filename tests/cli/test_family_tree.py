"""`owkg family-tree close`, `relations` and `verify` as their users meet them."""

import json
from functools import partial

import pytest

from family_tree import ontology
from family_tree.ontology import SHIPPED

PEOPLE = "person\tgender\nbob\tmale\nann\tfemale\neve\tfemale\nmax\tmale\n"
PARENTS = "parent\tchild\nann\teve\nann\tmax\nbob\teve\n"


@pytest.fixture
def call(call):
    """As `call`, of `owkg family-tree`."""
    return partial(call, "family-tree")


@pytest.fixture
def given(tmp_path):
    (tmp_path / "people.tsv").write_text(PEOPLE)
    (tmp_path / "parents.tsv").write_text(PARENTS)
    return ("--people", tmp_path / "people.tsv", "--parents", tmp_path / "parents.tsv")


def test_close_writes_sorted_facts(done, given, tmp_path):
    out = done("close", *given, tmp_path / "world")
    assert "4 people, " in out
    assert ", 18 facts" in out
    assert ["siblingOf", "2"] in [line.split() for line in out.splitlines()]
    assert (tmp_path / "world" / "facts.tsv").read_text() == (
        "ann\tmotherOf\teve\nann\tmotherOf\tmax\nann\tparentOf\teve\nann\tparentOf\tmax\nann\twifeOf\tbob\n"
        "bob\tfatherOf\teve\nbob\thusbandOf\tann\nbob\tparentOf\teve\n"
        "eve\tchildOf\tann\neve\tchildOf\tbob\neve\tdaughterOf\tann\neve\tdaughterOf\tbob\n"
        "eve\tsiblingOf\tmax\neve\tsisterOf\tmax\n"
        "max\tbrotherOf\teve\nmax\tchildOf\tann\nmax\tsiblingOf\teve\nmax\tsonOf\tann\n"
    )


def test_close_as_json_is_the_metadata(call, given, tmp_path):
    out = tmp_path / "world"
    found = json.loads(call("close", *given, out, "--relations", "hohenecker", "--format", "json")[1])
    assert found == {"out": str(out)} | json.loads((out / "metadata.json").read_text())
    assert found["relations"].keys() == set(ontology("hohenecker").relations)


def test_close_by_rules_of_ones_own_into_parquet(call, given, tmp_path):
    rules = tmp_path / "mine.toml"
    rules.write_text(
        '[bloodOf]\nrules = ["parentOf(X, Y)", "bloodOf(Y, X)", "bloodOf(X, Z), bloodOf(Z, Y)"]\n'
    )
    options = ("--relations", rules, "--facts-format", "parquet")
    code, out, _ = call("close", *given, tmp_path / "world", *options)
    assert code == 0
    assert ["bloodOf", "16"] in [line.split() for line in out.splitlines()]
    assert call("verify", tmp_path / "world")[0] == 0


def test_verify_says_what_differs(call, given, tmp_path):
    world = tmp_path / "world"
    call("close", *given, world)
    assert call("verify", world) == (0, f"{world}: closed, and unchanged since it was written\n", "")
    (world / "facts.tsv").write_text("")
    code, out, err = call("verify", world)
    assert (code, err) == (1, "")
    assert "facts.tsv, line 1: must be 'ann\\tmotherOf\\teve\\n', got the end" in out


def test_verify_of_damaged_files_says_which(call, given, tmp_path):
    world = tmp_path / "world"
    call("close", *given, world, "--facts-format", "parquet")
    (world / "facts.parquet").write_bytes((world / "facts.parquet").read_bytes()[:-9])
    (world / "people.tsv").write_text("person\n")
    code, out, err = call("verify", world)
    assert (code, err) == (1, "")
    assert out.splitlines()[:2] == [
        f"{world}: {name}: does not have the checksum in metadata.json"
        for name in ("facts.parquet", "people.tsv")
    ]
    assert out.splitlines()[2].startswith(f"{world}: people.tsv, line 1: must be the header")


@pytest.mark.parametrize(
    ("people", "parents", "message"),
    [
        (PEOPLE, PARENTS + "max\tnobody\n", "parents.tsv, line 5: the child 'nobody' is not in"),
        (PEOPLE, PARENTS + "eve\tann\n", "parents.tsv, line "),
        (PEOPLE + "kim\n", PARENTS, "people.tsv, line 6: must be"),
        (
            PEOPLE + "kim\tmale\n",
            PARENTS + "kim\teve\n",
            "parents.tsv, line 5: 'eve' has more than two parents",
        ),
    ],
)
def test_people_that_cannot_be_leave_nothing(refused, given, tmp_path, people, parents, message):
    (tmp_path / "people.tsv").write_text(people)
    (tmp_path / "parents.tsv").write_text(parents)
    err = refused("close", *given, tmp_path / "world")
    assert message in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parents.tsv", "people.tsv"]


def test_an_out_that_is_there_is_refused(call, refused, given, tmp_path):
    (tmp_path / "world").mkdir()
    err = refused("close", *given, tmp_path / "world")
    assert "is there already; --overwrite replaces it" in err
    assert call("close", *given, tmp_path / "world", "--overwrite")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("relations", "nobody"),
            "error: NAME|FILE must be published, hohenecker or a TOML file, got 'nobody'",
        ),
        (("verify", "nowhere"), "nowhere: holds no metadata.json"),
        (
            ("generate", "world", "--relations", "nobody"),
            "error: --relations must be published, hohenecker or a TOML file, got 'nobody'",
        ),
        (("close", "world"), "Missing option '--people'"),
    ],
)
def test_bad_arguments(refused, arguments, message):
    err = refused(*arguments)
    assert message in err


def test_a_rule_that_cannot_be(refused, tmp_path):
    (tmp_path / "mine.toml").write_text('[auntOf]\nrules = ["sisterOf(X, Z), parentOf(Z, Y)"]\n')
    err = refused("relations", tmp_path / "mine.toml")
    assert (
        "mine.toml, line 2: auntOf, rule 'sisterOf(X, Z), parentOf(Z, Y)': there is no relation sisterOf"
        in err
    )


@pytest.mark.parametrize("name", SHIPPED)
def test_relations_in_three_forms(call, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    shown, found, page = (
        call("relations", name, "--format", form)[1] for form in ("table", "json", "markdown")
    )
    relations = json.loads(found)["relations"]
    assert {row["relation"] for row in relations if not row["hidden"]} == set(ontology(name).relations)
    for row in relations:
        for text in (row["relation"], row["meaning"], *row["rules"]):
            assert text in shown
            assert text in page
    assert len(page.splitlines()) == len(relations) + 2
    assert (
        page.count("(not written)") == shown.count("(not written)") == sum(row["hidden"] for row in relations)
    )


def test_meanings_are_shown_as_they_are(call, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[kinOf]\nmeaning = "X [bold]is[/bold] a|b"\nrules = ["parentOf(X, Y)"]\n')
    assert "X [bold]is[/bold] a|b" in call("relations", path)[1]
    assert r"| X [bold]is[/bold] a\|b |" in call("relations", path, "--format", "markdown")[1]
