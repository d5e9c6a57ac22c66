"""Ontologies: the shipped inventories, files of one's own, and bad input by file and line."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from family_tree import People, closure, ontology

PUBLISHED = (
    "parentOf childOf motherOf fatherOf daughterOf sonOf siblingOf sisterOf brotherOf cousinOf girlCousinOf "
    "boyCousinOf grandchildOf granddaughterOf grandsonOf grandmotherOf grandfatherOf auntOf uncleOf nieceOf "
    "nephewOf husbandOf wifeOf"
)
HOHENECKER = (
    "parentOf sisterOf brotherOf motherOf fatherOf grandmotherOf grandfatherOf greatGrandmotherOf "
    "greatGrandfatherOf auntOf uncleOf greatAuntOf greatUncleOf secondAuntOf secondUncleOf girlCousinOf "
    "boyCousinOf girlSecondCousinOf boySecondCousinOf girlFirstCousinOnceRemovedOf "
    "boyFirstCousinOnceRemovedOf daughterOf sonOf granddaughterOf grandsonOf greatGranddaughterOf "
    "greatGrandsonOf nieceOf nephewOf"
)


@pytest.mark.parametrize(
    ("name", "relations", "size"), [("published", PUBLISHED, 23), ("hohenecker", HOHENECKER, 29)]
)
def test_shipped_inventories(name, relations, size):
    found = ontology(name)
    assert found.name == name
    assert found.relations == tuple(sorted(relations.split()))
    assert len(found.relations) == size
    assert all(relation.meaning for relation in found.definitions)
    assert not any(stratum.grow for stratum in found.strata)  # no recursion: one round is enough


def test_a_file_of_ones_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'description = "Grandparents."\n[grandparentOf]\nrules = ["likesOf(X, Z), parentOf(Z, Y)"]\n'
        '[likesOf]\nhidden = true\nmeaning = "X likes Y"\nrules = ["parentOf(X, Y)"]\n'
    )
    found = ontology(path)
    assert found == ontology(str(path)) == ontology(found)
    assert found[:3] == ("mine", "Grandparents.", ("grandparentOf",))
    assert [stratum.relations for stratum in found.strata] == [("likesOf",), ("grandparentOf",)]
    assert found.text == path.read_text()


def test_parents_alone(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[parentOf]\n")
    assert ontology(path).relations == ("parentOf",)
    assert ontology(path).strata == ()


def test_what_is_needed_comes_first():
    done = {"parentOf"}
    for stratum in ontology("hohenecker").strata:
        done |= set(stratum.relations)
        rules = [r.rules for r in ontology("hohenecker").definitions if r.name in stratum.relations]
        assert {a.name for rs in rules for r in rs for a in r.body} <= done | {"female", "male", "="}


@pytest.mark.parametrize("source", ["nowhere.toml", "Published", "", ".", None, 3])
def test_sources_that_are_none(source):
    with pytest.raises(ValueError, match=r"`source` must be published, hohenecker or a TOML file, got"):
        ontology(source)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a", ": must be TOML in UTF-8 ("),
        ('[a]\nrules = ["parentOf(X, Y)"]\n[a]\n', ": must be TOML in UTF-8 ("),
        ("", ": must have a relation that is not hidden"),
        ('[a]\nhidden = true\nrules = ["parentOf(X, Y)"]', ": must have a relation that is not hidden"),
        ("# first\ndescription = 3", ", line 2: description: must be text, got 3"),
        ('\n\naunt = "X"', ", line 3: aunt: must be a table such as [siblingOf], got 'X'"),
        ('["my aunt"]\nrules = ["parentOf(X, Y)"]', ", line 1: my aunt: must be a name of letters"),
        ('[not]\nrules = ["parentOf(X, Y)"]', ", line 1: not: must be a name"),
        (
            '[a.b]\nrules = ["parentOf(X, Y)"]',
            ", line 1: a: must have no key but meaning, rules, hidden, got b",
        ),
        (
            '[a]\nrule = ["parentOf(X, Y)"]',
            ", line 1: a: must have no key but meaning, rules, hidden, got rule",
        ),
        ('[a]\nrule = ["parentOf(X, Y)"]', "did you mean rules?"),
        ('[a]\nrules = "parentOf(X, Y)"', ", line 1: a: must have a list of texts for rules"),
        ("[a]\nrules = [3]", ", line 1: a: must have a list of texts for rules, got [3]"),
        (
            '[a]\nhidden = 1\nrules = ["parentOf(X, Y)"]',
            ", line 1: a: must have true or false for hidden, got 1",
        ),
        ('[a]\nmeaning = 1\nrules = ["parentOf(X, Y)"]', ", line 1: a: must have text for meaning, got 1"),
        ('[a]\nmeaning = "X"', ", line 1: a: must have rules"),
        ("[a]\nrules = []", ", line 1: a: must have rules"),
        ('[female]\nrules = ["parentOf(X, Y)"]', ", line 1: female: describes a person"),
        ('[parentOf]\nrules = ["childOf(Y, X)"]', ", line 1: parentOf: is given with the people"),
        (
            '[a]\nrules = [\n  "parentOf(X, Y)",\n  "b(X, Y)",\n]',
            ", line 4: a, rule 'b(X, Y)': there is no relation b.",
        ),
        (
            '[b]\nrules = ["parentOf(X, Y)"]\n[a]\n\nrules = ["b(X, Y), Z != X"]',
            ", line 5: a, rule 'b(X, Y), Z != X': Z must occur in a relation",
        ),
        (
            '[b]\nrules = ["a(X, Y)"]\n[a]\nrules = ["parentOf(X, Z), parentOf(W, Y)"]',
            ", line 4: a, rule 'parentOf(X, Z), parentOf(W, Y)': X and Y must be joined",
        ),
        (
            '[a]\nrules = ["parentOf(X, \\u0041)"]',
            ", line 1: a, rule 'parentOf(X, A)': Y must occur in a relation",
        ),
        ('[a]\nrules = ["a(Y, X)"]', ", line 1: a: there must be a rule to start a from"),
        (
            '[c]\nrules = ["b(X, Y)"]\n[a]\nrules = ["b(X, Y)"]\n[b]\nrules = ["a(Y, X)"]',
            ", line 3: a: there must be a rule to start a, b from",
        ),
        (
            '[a]\nrules = ["parentOf(X, Y), not b(X, Y)"]\n[b]\nrules = ["parentOf(X, Z), a(Z, Y)"]',
            ", line 1: a: a and b must not need each other through not, got 'parentOf(X, Y), not b(X, Y)'",
        ),
        (
            '[a]\nrules = ["parentOf(X, Y)", "parentOf(X, Y), not a(Y, X)"]',
            ", line 1: a: a must not need itself through not, got",
        ),
    ],
)
def test_what_is_refused(tmp_path, text, message):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r".") as caught:
        ontology(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe[a]")
    with pytest.raises(ValueError, match=r"mine\.toml: must be TOML in UTF-8"):
        ontology(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 20_000 + "]" * 20_000, ": must be TOML that is not nested so deep."),
        ("a = " + "{a = " * 20_000 + "1" + "}" * 20_000, ": must be TOML that is not nested so deep."),
        ("description" + ".a" * 3_000 + " = 1", ", line 1: description: must be text, got {'a': {"),
        ("a.rules" + ".a" * 3_000 + " = 1", ", line 1: a: must have a list of texts for rules, got {'a': {"),
        ("a = [{b" + ".a" * 3_000 + " = 1}]", ", line 1: a: must be a table such as [siblingOf], got [{'b'"),
    ],
)
def test_tables_that_are_nested_too_deep(tmp_path, text, message):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r".") as caught:
        ontology(path)
    assert str(caught.value).startswith(f"{path}{message}")


def test_a_byte_order_mark_is_left_out(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b'\xef\xbb\xbf[childOf]\nrules = ["parentOf(Y, X)"]\n')
    found = ontology(path)
    assert found.relations == ("childOf",)
    path.write_text(found.text, encoding="utf-8")
    assert ontology(path) == found


def line(length: int) -> str:
    names = ["X", *(f"V{i}" for i in range(1, length)), "Y"]
    return ", ".join(f"parentOf({one}, {other})" for one, other in pairwise(names))


def test_rules_have_at_most_64_atoms(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(f'[lineOf]\nrules = [\n  "{line(64)}"\n]\n')
    people = People(
        pl.Series([f"{i:02d}" for i in range(66)]),
        np.zeros(66, bool),
        np.array([[i, i + 1] for i in range(65)], np.int32),
    )
    (facts,) = closure(people, path)
    assert (facts.head.tolist(), facts.tail.tolist()) == ([0, 1], [64, 65])
    path.write_text(f'[lineOf]\nrules = [\n  "{line(65)}"\n]\n')
    message = r"mine\.toml, line 3: lineOf, rule 'parentOf\(X, V1\), .*': must be at most 64 atoms, got 65\.$"
    with pytest.raises(ValueError, match=message) as caught:
        ontology(path)
    assert len(str(caught.value)) < 400
