"""Rules as people write them: `auntOf(X, Y)` holds if `sisterOf(X, Z), parentOf(Z, Y)` does."""

import re
from collections.abc import Collection
from difflib import get_close_matches
from itertools import chain
from typing import NamedTuple

# Predicates given by the people themselves; every other predicate needs rules.
PARENT = "parentOf"
GENDERS = ("female", "male")
# X != Y is the negation of a predicate that holds between each person and themselves.
SAME = "="
# Variables between which the relation of a rule holds.
HEAD = ("X", "Y")

_NAME = r"[^\W\d]\w*"
_UNEQUAL = re.compile(rf"({_NAME})\s*!=\s*({_NAME})")
_HOLDS = re.compile(rf"(not\s+)?({_NAME})\s*\(([^()]*)\)")
# Limit far above usual rules; without it, a rule's matrices could be nested deeper than Python allows.
_MOST_ATOMS = 64
# Commas between atoms, not commas inside parentheses.
_COMMA = re.compile(r",(?![^()]*\))")


class Atom(NamedTuple):
    """Condition of a rule: a predicate of one or two variables, or its negation."""

    name: str
    variables: tuple[str, ...]
    negated: bool = False

    def __str__(self) -> str:
        if self.name == SAME:
            return " != ".join(self.variables)
        return f"{'not ' if self.negated else ''}{self.name}({', '.join(self.variables)})"


class Rule(NamedTuple):
    """Rule: the relation `head` holds of X and Y if all atoms of the body hold for some other people."""

    head: str
    body: tuple[Atom, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.body))


def is_name(text: str) -> bool:
    """Whether `text` may name a relation: letters, digits and underscores, not beginning with a digit."""
    return re.fullmatch(_NAME, text) is not None and text != "not"


def near(word: str, known: Collection[str]) -> str:
    """Suggestion of names similar to `word`, in parentheses; empty if no name is similar."""
    found = get_close_matches(word, sorted(known))
    return f" (did you mean {' or '.join(found)}?)" if found else ""


def parse_rule(head: str, text: str, relations: Collection[str]) -> Rule:
    """Rule of `head` that `text` describes.

    Args:
        head: relation that the rule derives.
        text: atoms separated by commas: `relation(A, B)`, `female(A)`, `male(A)`, `A != B`, or `not` and
            one of the first three. Variables begin with a capital letter.
        relations: names of the relations that exist, in addition to `parentOf`.

    Raises:
        ValueError: naming the text that cannot be parsed, the predicate that does not exist, or the variable
            that no relation binds; or if there are more than 64 atoms.

    Examples:
        >>> parse_rule("auntOf", "sisterOf(X, Z), parentOf(Z, Y)", ["auntOf", "sisterOf"]).body[1]
        Atom(name='parentOf', variables=('Z', 'Y'), negated=False)
    """
    arity = dict.fromkeys(relations, 2) | {PARENT: 2} | dict.fromkeys(GENDERS, 1)
    parts = _COMMA.split(text)
    if len(parts) > _MOST_ATOMS:
        raise ValueError(f"must be at most {_MOST_ATOMS} atoms, got {len(parts)}.")
    rule = Rule(head, tuple(_atom(part.strip()) for part in parts))
    for atom in rule.body:
        _check(atom, arity)
    binding = [a.variables for a in rule.body if len(a.variables) == 2 and not a.negated]
    for variable in chain(HEAD, *(atom.variables for atom in rule.body)):
        if variable not in chain(*binding):
            raise ValueError(f"{variable} must occur in a relation that is not negated.")
    return rule


def _atom(text: str) -> Atom:
    if found := _UNEQUAL.fullmatch(text):
        return Atom(SAME, (found[1], found[2]), negated=True)
    if found := _HOLDS.fullmatch(text):
        return Atom(found[2], tuple(v.strip() for v in found[3].split(",")), bool(found[1]))
    forms = "relation(A, B), female(A), male(A), A != B or not relation(A, B)"
    raise ValueError(f"must be {forms}, or several of them separated by commas, got {text!r}.")


def _check(atom: Atom, arity: dict[str, int]) -> None:
    for variable in atom.variables:
        if not (is_name(variable) and variable[0].isupper()):
            raise ValueError(f"a variable must begin with a capital letter, got {variable!r} in {atom}.")
    if atom.name == SAME:
        if len(set(atom.variables)) == 1:
            raise ValueError(f"{atom} never holds.")
    elif atom.name not in arity:
        raise ValueError(f"there is no relation {atom.name}{near(atom.name, arity)}.")
    elif len(atom.variables) != arity[atom.name]:
        count = "one variable" if arity[atom.name] == 1 else "two variables"
        raise ValueError(f"{atom.name} takes {count}, got {atom}.")
