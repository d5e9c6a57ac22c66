"""In which order relations are computed: what a relation needs comes first."""

from collections.abc import Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from family_tree.matrices import Expression
from family_tree.plan import planned
from family_tree.rules import Rule

Rules = Mapping[str, Sequence[Rule]]


class Step(NamedTuple):
    """One rule, planned.

    Attributes:
        relation: that it derives.
        matrix: of the pairs that it derives.
        linear: whether one atom at most names a relation of its own stratum: then new pairs come of new
            pairs alone.
    """

    relation: str
    matrix: Expression
    linear: bool


class Stratum(NamedTuple):
    """Relations that need each other, or a single one.

    Attributes:
        relations: of the stratum.
        start: rules that name none of them.
        grow: the other rules, taken again until they add nothing.
    """

    relations: tuple[str, ...]
    start: tuple[Step, ...]
    grow: tuple[Step, ...]


def groups(rules: Rules) -> Iterator[tuple[str, ...]]:
    """Relations that need each other, as names; each group after those that it needs.

    Args:
        rules: of each relation that has any.
    """
    names = list(rules)
    needs = {name: {atom.name for rule in rules[name] for atom in rule.body} & set(names) for name in names}
    matrix = np.array([[other in needs[name] for other in names] for name in names], bool).reshape(
        -1, len(names)
    )
    _, label = connected_components(csr_array(matrix), directed=True, connection="strong")
    group_of = dict(zip(names, label.tolist(), strict=True))
    order = TopologicalSorter({group: set() for group in group_of.values()})
    for name in names:
        order.add(group_of[name], *({group_of[other] for other in needs[name]} - {group_of[name]}))
    for group in order.static_order():
        yield tuple(name for name in names if group_of[name] == group)


def stratum(group: tuple[str, ...], rules: Rules) -> Stratum:
    """The rules of relations that need each other, planned.

    Raises:
        ValueError: if one needs the negation of another, or no rule could start them.
    """
    start, grow = [], []
    for rule in (rule for name in group for rule in rules[name]):
        own = [atom for atom in rule.body if atom.name in group]
        if denied := [atom.name for atom in own if atom.negated]:
            others = " and ".join(dict.fromkeys((rule.head, *denied)))
            need = f"{others} must not need {'each other' if {*denied} - {rule.head} else 'itself'}"
            raise ValueError(f"{need} through not, got {str(rule)!r}.")
        (grow if own else start).append(Step(rule.head, planned(rule), len(own) <= 1))
    if not start:
        names = ", ".join(group)
        raise ValueError(f"there must be a rule to start {names} from, one that does not need {names}.")
    return Stratum(group, tuple(start), tuple(grow))
