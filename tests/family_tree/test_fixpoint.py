"""The least fixed point: nothing is left to derive, and recursion comes to its end."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from family_tree import People, matrices, ontology
from family_tree import fixpoint as fixpoints
from family_tree.closure import base
from family_tree.fixpoint import fixpoint
from family_tree.matrices import value, without
from family_tree.ontology import read_ontology

ANCESTORS = {
    "to the right": ["parentOf(X, Y)", "parentOf(X, Z), ancestorOf(Z, Y)"],
    "to the left": ["parentOf(X, Y)", "ancestorOf(X, Z), parentOf(Z, Y)"],
    "both": ["parentOf(X, Y)", "ancestorOf(X, Z), ancestorOf(Z, Y)"],
    "more than needed": ["ancestorOf(X, Z), ancestorOf(Z, Y)", "parentOf(X, Y)", "ancestorOf(X, Y)"],
}


@pytest.fixture
def derive(tmp_path):
    """Derives all relations of an ontology given as rules by relation; gives dense matrices."""

    def run(people, rules):
        path = tmp_path / "rules.toml"
        path.write_text("".join(f"[{name}]\nrules = {body}\n" for name, body in rules.items()))
        known = fixpoint(read_ontology(path).strata, base(people, 0, len(people.labels)))
        return {name: known[name].toarray() for name in ["parentOf", *rules]}

    return run


def reachable(parents: np.ndarray) -> np.ndarray:
    paths = parents
    for _ in range(len(parents)):
        paths = paths | (paths.astype(int) @ parents > 0)
    return paths


@pytest.mark.parametrize("rules", ANCESTORS.values(), ids=ANCESTORS)
def test_ancestors_are_the_transitive_closure(rules, make_people, derive):
    for seed in range(5):
        found = derive(make_people(seed, 40, reach=6), {"ancestorOf": rules})
        np.testing.assert_array_equal(found["ancestorOf"], reachable(found["parentOf"]))
        assert found["ancestorOf"].sum() > found["parentOf"].sum()


def test_relations_may_need_each_other(make_people, derive):
    found = derive(
        make_people(1, 60, reach=5),
        {
            "evenOf": ["oddOf(X, Z), parentOf(Z, Y)"],
            "oddOf": ["parentOf(X, Y)", "evenOf(X, Z), parentOf(Z, Y)"],
            "lineOf": ["evenOf(X, Y)", "oddOf(X, Y)"],
        },
    )
    np.testing.assert_array_equal(found["lineOf"], reachable(found["parentOf"]))
    power = odd = found["parentOf"].astype(int)
    for _ in range(60):
        power = (power @ found["parentOf"] @ found["parentOf"] > 0).astype(int)
        odd = odd | power
    np.testing.assert_array_equal(found["oddOf"], odd)


def test_a_relation_may_be_made_symmetric(make_people, derive):
    found = derive(make_people(2, 40), {"kinOf": ["parentOf(X, Y)", "kinOf(Y, X)"]})
    np.testing.assert_array_equal(found["kinOf"], found["parentOf"] | found["parentOf"].T)


def test_not_looks_at_what_is_complete(make_people, derive):
    found = derive(
        make_people(3, 40),
        {"laterOf": ["ancestorOf(X, Y), not parentOf(X, Y)"], "ancestorOf": ANCESTORS["both"]},
    )
    np.testing.assert_array_equal(found["laterOf"], reachable(found["parentOf"]) & ~found["parentOf"])


@pytest.mark.parametrize("name", ["published", "hohenecker"])
@given(seed=st.integers(0, 2**32 - 1))
def test_the_rules_add_nothing_to_their_closure(name, seed, make_people):
    people = make_people(seed, 50)
    relations = ontology(name)
    known = fixpoint(relations.strata, base(people, 0, len(people.labels)))
    names = ["parentOf", "female", "male", "=", *(relation.name for relation in relations.definitions)]
    facts = {name: known[name] for name in names}  # and nothing that was computed on the way
    derived = dict.fromkeys(names[4:], 0)
    for stratum in relations.strata:
        for step in (*stratum.start, *stratum.grow):
            matrix = value(step.matrix, dict(facts))
            assert without(matrix, facts[step.relation]).nnz == 0
            derived[step.relation] = max(derived[step.relation], matrix.nnz)
    assert all(derived[name] > 0 for name in names[4:] if facts[name].nnz and name != "parentOf")


ATOMS = ["parentOf({0}, {1})", "aOf({0}, {1})", "bOf({0}, {1})", "fixedOf({0}, {1})"]
RULES = st.lists(
    st.builds(
        lambda head, first, last, more: (
            head,
            ", ".join([first.format("X", "Z"), last.format("Z", "Y"), *more]),
        ),
        st.sampled_from(["aOf", "bOf"]),
        st.sampled_from(ATOMS),
        st.sampled_from(ATOMS),
        st.lists(st.sampled_from(["female(Z)", "X != Y", "not fixedOf(Y, X)", "fixedOf(X, Z)"]), max_size=2),
    ),
    min_size=1,
    max_size=5,
)


@given(rules=RULES, seed=st.integers(0, 2**32 - 1), size=st.integers(2, 30), few=st.sampled_from([0, 1, 64]))
def test_any_recursion_gives_what_taking_all_rules_again_gives(
    rules, seed, size, few, make_people, tmp_path_factory
):
    bodies = {"fixedOf": ["parentOf(X, Y)", "parentOf(X, Z), parentOf(Z, Y)"]}
    bodies |= {
        name: ["parentOf(Y, X)", *(body for head, body in rules if head == name)] for name in ("aOf", "bOf")
    }
    path = tmp_path_factory.mktemp("rules") / "rules.toml"
    path.write_text("".join(f"[{name}]\nrules = {body}\n" for name, body in bodies.items()))
    relations, people = read_ontology(path), make_people(seed, size, reach=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrices, "_FEW", few)
        found = fixpoint(relations.strata, base(people, 0, size))
    again = base(people, 0, size) | dict.fromkeys(bodies, csr_array((size, size), dtype=bool))
    steps = [step for stratum in relations.strata for step in (*stratum.start, *stratum.grow)]
    # `not` looks at fixedOf alone, which is complete after two rounds without the others.
    for name in ("fixedOf", None):
        before = -1
        while before != (before := sum(again[relation].nnz for relation in bodies)):
            for step in steps:
                if name in (step.relation, None):
                    again[step.relation] = again[step.relation] + value(step.matrix, dict(again))
    for relation in bodies:
        np.testing.assert_array_equal(found[relation].toarray(), again[relation].toarray())


def test_a_round_looks_at_new_pairs_only(derive, monkeypatch):
    looked_at = []

    def size_of(part):
        return (
            sum(map(size_of, part))
            if isinstance(part, list)
            else part.nnz
            if hasattr(part, "nnz")
            else len(part)
        )

    def counting(operation):
        def counted(*parts):
            looked_at[-1] += sum(map(size_of, parts))
            return operation(*parts)

        return counted

    for name in ("pairs", "either", "without", "_merged"):
        monkeypatch.setattr(fixpoints, name, counting(getattr(fixpoints, name)))
    for size in (100, 400):
        looked_at.append(0)
        line = np.stack([np.arange(size - 1), np.arange(1, size)], 1).astype(np.int32)
        people = People(pl.Series([f"{i:03d}" for i in range(size)]), np.zeros(size, bool), line)
        rules = {
            "evenOf": ["oddOf(X, Z), parentOf(Z, Y)"],
            "oddOf": ["parentOf(X, Y)", "evenOf(X, Z), parentOf(Z, Y)"],
        }
        found = derive(people, rules)
        assert found["evenOf"].sum() + found["oddOf"].sum() == size * (size - 1) // 2
    # Sixteen times as many facts in four times as many rounds.
    assert looked_at[1] < 2 * 16 * looked_at[0]
