"""Rules as text: what is read, and what is refused, by name."""

import pytest

from family_tree.rules import Atom, parse_rule

RELATIONS = ("auntOf", "siblingOf", "sisterOf")


def test_every_kind_of_atom_is_read():
    rule = parse_rule(
        "auntOf", "parentOf(Z,Y),not  sisterOf( Z , X ), female(X), Z!=X, siblingOf(X, Z)", RELATIONS
    )
    assert rule.body == (
        Atom("parentOf", ("Z", "Y")),
        Atom("sisterOf", ("Z", "X"), negated=True),
        Atom("female", ("X",)),
        Atom("=", ("Z", "X"), negated=True),
        Atom("siblingOf", ("X", "Z")),
    )


@pytest.mark.parametrize(
    "text", ["parentOf(X, Y)", "parentOf(X, Z), not male(Z), parentOf(Z, Y), X != Y", "auntOf(Y, X)"]
)
def test_rules_are_written_as_they_are_read(text):
    assert str(parse_rule("auntOf", text, RELATIONS)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "got ''"),
        ("parentOf(X, Y),", "got ''"),
        ("parentOf(X, Y), , female(X)", "got ''"),
        ("parentOf X Y", "got 'parentOf X Y'"),
        ("parentOf(X, Y", "got 'parentOf(X'"),
        ("parentOf(X, Y) female(X)", "got 'parentOf(X, Y) female(X)'"),
        ("parentOf(X, Y), X = Y", "got 'X = Y'"),
        ("not X != Y, parentOf(X, Y)", "got 'not X != Y'"),
        ("parentOf(f(X), Y)", "got 'parentOf(f(X), Y)'"),
        ("parentOf(x, Y)", "a variable must begin with a capital letter, got 'x' in parentOf(x, Y)"),
        ("parentOf(X, )", "a variable must begin with a capital letter, got ''"),
        ("parentOf(X, ann), parentOf(X, Y)", "got 'ann'"),
        ("parentof(X, Y)", "there is no relation parentof (did you mean parentOf?)"),
        ("parentOf(X, Y), girl(X)", "there is no relation girl."),
        ("sibling(X, Y)", "did you mean siblingOf"),
        ("parentOf(X)", "parentOf takes two variables, got parentOf(X)"),
        ("parentOf(X, Y, Z)", "parentOf takes two variables"),
        ("parentOf(X, Y), female(X, Y)", "female takes one variable, got female(X, Y)"),
        ("parentOf(X, Z)", "Y must occur in a relation"),
        ("parentOf(Z, Y), female(X)", "X must occur in a relation"),
        ("parentOf(X, Y), Z != X", "Z must occur in a relation"),
        ("parentOf(X, Y), not siblingOf(X, Z)", "Z must occur in a relation"),
        ("parentOf(X, Y), female(Z)", "Z must occur in a relation"),
        ("not parentOf(X, Y)", "X must occur in a relation"),
        ("parentOf(X, Y), X != X", "X != X never holds"),
    ],
)
def test_what_is_no_rule_is_refused(text, message):
    with pytest.raises(ValueError, match=r".") as caught:
        parse_rule("auntOf", text, RELATIONS)
    assert message in str(caught.value)
