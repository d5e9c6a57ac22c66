"""The planned matrix of a rule holds exactly the pairs that trying all bindings finds."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from family_tree.matrices import value
from family_tree.plan import planned
from family_tree.rules import Rule, parse_rule

VARIABLES = "XYZWV"
RELATIONS = ("r", "s")
PAIRS = st.tuples(st.sampled_from(VARIABLES), st.sampled_from(VARIABLES))
RELATED = st.builds("{0}({1[0]}, {1[1]})".format, st.sampled_from((*RELATIONS, "parentOf")), PAIRS)
ATOMS = st.one_of(
    RELATED,
    RELATED,
    st.builds("not {}".format, RELATED),
    st.builds("{}({})".format, st.sampled_from(("female", "male", "not female")), st.sampled_from(VARIABLES)),
    PAIRS.filter(lambda pair: pair[0] != pair[1]).map(" != ".join),
)
WORLDS = st.integers(0, 2**32 - 1)


def world(seed: int, size: int = 4) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    female = rng.random(size) < 0.5
    dense = {name: rng.random((size, size)) < 0.4 for name in (*RELATIONS, "parentOf")}
    return dense | {"female": np.diag(female), "male": np.diag(~female), "=": np.eye(size, dtype=bool)}


def bindings(rule: Rule, dense: dict[str, np.ndarray]) -> np.ndarray:
    """All (X, Y), by trying everybody for every variable."""
    size = len(dense["="])
    names = sorted({variable for atom in rule.body for variable in atom.variables})
    found = np.zeros((size, size), bool)
    for people in product(range(size), repeat=len(names)):
        who = dict(zip(names, people, strict=True))
        if all(
            dense[atom.name][who[atom.variables[0]], who[atom.variables[-1]]] != atom.negated
            for atom in rule.body
        ):
            found[who["X"], who["Y"]] = True
    return found


def matrix(rule: Rule, dense: dict[str, np.ndarray]) -> np.ndarray:
    found = value(planned(rule), {name: csr_array(array) for name, array in dense.items()})
    assert found.data.all()  # nothing that is false is stored, so the number of entries is that of facts
    return found.toarray()


def parsed(text: str) -> Rule:
    return parse_rule("r", text, RELATIONS)


@given(st.lists(ATOMS, min_size=1, max_size=6), WORLDS)
def test_random_rules(atoms, seed):
    text = ", ".join(["r(X, Z)", "s(Y, Z)", *atoms])
    try:
        rule = parsed(text)
        planned(rule)
    except ValueError:
        assume(False)
    dense = world(seed)
    np.testing.assert_array_equal(matrix(rule, dense), bindings(rule, dense))


@pytest.mark.parametrize(
    "text",
    [
        "r(X, Y)",
        "r(Y, X)",
        "r(X, Y), s(X, Y)",
        "r(X, Y), s(Y, X), not parentOf(Y, X)",
        "r(Z, X), r(Z, Y), X != Y",
        "r(X, Y), Y != X",
        "r(X, Y), parentOf(X, Z)",
        "r(X, Y), parentOf(Z, W), s(Z, X), not male(W), female(Z)",
        "r(X, Y), s(X, X)",
        "r(X, Z), s(Z, Z), r(Z, Y), not s(Y, Y)",
        "r(X, Z), s(Z, Y), r(X, W), s(W, Y)",
        "r(X, Z), s(Z, Y), r(X, W), s(W, Y), parentOf(V, Z)",
        "r(X, Z), r(Z, W), r(W, Z), s(W, Y), Z != W",
        "r(X, Z), s(Z, W), s(W, V), r(V, Y), not s(X, Y)",
        "r(X, Z), s(Z, W), r(Z, V), s(V, W), r(W, Y), Z != W",
    ],
)
def test_chosen_rules(text):
    for seed in range(30):
        dense = world(seed)
        np.testing.assert_array_equal(matrix(parsed(text), dense), bindings(parsed(text), dense))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("r(X, Z), s(Y, W)", "X and Y must be joined by relations"),
        ("r(X, X), s(Y, Y)", "X and Y must be joined by relations"),
        ("r(X, Y), s(Z, Z)", "Z must be joined with X or Y by relations"),
        ("r(X, Y), s(Z, W)", "must be joined with X or Y by relations"),
        ("r(X, Z), s(Z, Y), r(Y, W), Z != W", "Z != W: its variables must be joined by relations"),
        ("r(X, Z), s(Z, Y), r(Y, W), not s(W, Z)", "not s(W, Z): its variables must be joined"),
        (
            "r(X, Y), r(X, Z), r(X, W), r(Y, Z), r(Y, W), r(Z, W)",
            "W must be joined with at most two others; it cannot be separated from X, Y, Z",
        ),
    ],
)
def test_what_matrices_cannot_do_is_refused(text, message):
    with pytest.raises(ValueError, match=r".") as caught:
        planned(parsed(text))
    assert message in str(caught.value)


@given(st.permutations(["r(X, Z)", "s(Z, W)", "parentOf(W, Y)", "female(W)", "X != Y", "r(W, V)"]), WORLDS)
def test_the_order_of_atoms_changes_nothing(atoms, seed):
    dense = world(seed)
    usual = matrix(parsed("r(X, Z), s(Z, W), parentOf(W, Y), female(W), X != Y, r(W, V)"), dense)
    np.testing.assert_array_equal(matrix(parsed(", ".join(atoms)), dense), usual)


def test_many_paths_are_one_fact():
    size = 300  # more than a byte counts to
    dense = {
        "r": np.ones((size, size), bool),
        "s": np.ones((size, size), bool),
        "=": np.eye(size, dtype=bool),
    }
    assert matrix(parsed("r(X, Z), s(Z, Y)"), dense).all()
