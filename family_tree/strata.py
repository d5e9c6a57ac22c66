"""Order in which relations are computed: a relation comes after the relations that it needs."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from family_tree.matrices import Expression
from family_tree.plan import planned
from family_tree.rules import Rule

Rules = Mapping[str, Sequence[Rule]]


class Step(NamedTuple):
    """Planned rule.

    Attributes:
        relation: relation that the rule derives.
        matrix: expression of the pairs that the rule derives.
        linear: whether at most one atom names a relation of the rule's own stratum. New pairs then come only
            from new pairs.
    """

    relation: str
    matrix: Expression
    linear: bool


class Stratum(NamedTuple):
    """Relations that need each other, or a single relation.

    Attributes:
        relations: names of the relations.
        start: rules that name none of these relations.
        grow: other rules, applied repeatedly until they add nothing.
    """

    relations: tuple[str, ...]
    start: tuple[Step, ...]
    grow: tuple[Step, ...]


def groups(rules: Rules) -> list[tuple[str, ...]]:
    """Names of relations that need each other; each group comes after the groups that it needs.

    Examples:
        >>> from family_tree.rules import Atom
        >>> needs = {"a": "b", "b": "c", "c": "b", "d": "d"}
        >>> groups({name: [Rule(name, (Atom(other, ("X", "Y")),))] for name, other in needs.items()})
        [('d',), ('b', 'c'), ('a',)]
    """
    needed = {name: {name, *(a.name for rule in rules[name] for a in rule.body)} & {*rules} for name in rules}
    for _ in range(len(rules).bit_length()):  # each round doubles the length of the paths
        needed = {name: set().union(*(needed[other] for other in others)) for name, others in needed.items()}
    # If one relation needs another and is not needed by it, it needs more relations.
    order = sorted(rules, key=lambda name: len(needed[name]))
    return list(dict.fromkeys(tuple(o for o in rules if needed[o] == needed[name]) for name in order))


def stratum(group: tuple[str, ...], rules: Rules) -> Stratum:
    """Planned rules of relations that need each other.

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
        raise ValueError(f"there must be a rule to start {names} from, which does not need {names}.")
    return Stratum(group, tuple(start), tuple(grow))
