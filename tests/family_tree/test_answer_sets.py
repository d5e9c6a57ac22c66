"""The closure equals the answer set of rules written as ASP text, found by clingo."""

from pathlib import Path

import clingo
import pytest

from family_tree import Ontology, People, closure, ontology, sample_people

HERE = Path(__file__).parent
INVENTORIES = ("published", "hohenecker")
NUM_TREES = 200


def answer_set(people: People, program: str) -> set[tuple[int, str, int]]:
    """Every shown atom as (head, relation, tail), of the one answer set."""
    facts = [f"{'female' if woman else 'male'}({i})." for i, woman in enumerate(people.female)]
    facts += [f"parentOf({parent}, {child})." for parent, child in people.parents]
    control = clingo.Control(["--warn=none"])
    control.add("base", [], program + "".join(facts))
    control.ground([("base", [])])
    found = []
    control.solve(
        on_model=lambda model: found.append(
            {(a.arguments[0].number, a.name, a.arguments[1].number) for a in model.symbols(shown=True)}
        )
    )
    (only,) = found
    return only


def closed(people: People, relations: Ontology) -> list[tuple[int, str, int]]:
    return [
        (head, relations.relations[relation], tail)
        for facts in closure(people, relations)
        for head, relation, tail in zip(*(ids.tolist() for ids in facts), strict=True)
    ]


@pytest.mark.parametrize("name", INVENTORIES)
def test_sampled_trees(name):
    relations, program = ontology(name), (HERE / f"{name}.lp").read_text()
    derived = set()
    for tree in range(NUM_TREES):
        size, depth = 20 + tree % 5 * 25, 2 + tree % 4
        people = sample_people(
            num_trees=1, max_tree_size=size, max_depth=depth, first_tree=tree, strict_depth=tree % 2 == 0
        )
        facts = closed(people, relations)
        assert len(set(facts)) == len(facts)
        assert set(facts) == answer_set(people, program)
        derived |= {relation for _, relation, _ in facts}
    assert derived == set(relations.relations)  # no relation that is right because it is empty


@pytest.mark.parametrize("name", INVENTORIES)
def test_half_siblings_single_parents_and_kin_who_marry(name, make_people):
    relations, program = ontology(name), (HERE / f"{name}.lp").read_text()
    for seed in range(40):
        people = make_people(seed, 10 + seed, reach=5 + seed % 10)
        assert set(closed(people, relations)) == answer_set(people, program)
