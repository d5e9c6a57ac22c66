"""Order of the people in each row of a drawn family, so that few lines cross.

A walk over the family meets units: people in one row who have children in common. All people who are reached
through a unit go to one side of it, and a search decides to which.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from family_tree.people import People

# People of one row, each next to a partner if there is one.
Unit = tuple[int, ...]


class Parentage(NamedTuple):
    """Children, as ids, of the same one or two parents."""

    parents: tuple[int, ...]
    children: tuple[int, ...]


class _Choice(NamedTuple):
    """Decisions of the search.

    Attributes:
        order: order of the children of each family, by the number of the family.
        left: people whose ancestors are to the left of their descendants.
    """

    order: tuple[tuple[int, ...], ...]
    left: frozenset[int]


class _Kin(NamedTuple):
    """Relations between families (by number) and units (by person)."""

    families: list[Parentage]
    birth: dict[int, int]
    own: dict[Unit, list[int]]
    units: dict[int, Unit]
    row: np.ndarray


def parentage(people: People) -> list[Parentage]:
    """All children with their parents."""
    parents = defaultdict(list)
    for parent, child in people.parents.tolist():
        parents[child].append(parent)
    children = defaultdict(list)
    for child, both in sorted(parents.items()):
        children[tuple(both)].append(child)
    return [Parentage(both, tuple(born)) for both, born in children.items()]


def generations_in_order(families: list[Parentage], row: np.ndarray) -> list[list[int]]:
    """People of each row from left to right; all are joined by lines of parents and children."""
    kin = _kin(families, row)
    choice = _Choice(tuple(family.children for family in families), frozenset())
    best = _walked(kin, choice)
    cost = _cost(kin, best)
    improved = True
    while improved:
        improved = False
        for person in kin.birth:
            for other in _moves(kin, choice, person):
                rows = _walked(kin, other)
                if (found := _cost(kin, rows)) < cost:
                    choice, best, cost, improved = other, rows, found, True
    return best


def _moves(kin: _Kin, choice: _Choice, person: int) -> Iterator[_Choice]:
    """Neighbouring choices: the person first or last among siblings, or other sides for ancestors."""
    family, unit = kin.birth[person], frozenset(kin.units[person])
    now = choice.order[family]
    siblings = tuple(child for child in now if child != person)
    lefts = {choice.left: None}
    if len(unit) > 1:
        lefts |= dict.fromkeys(
            [choice.left | unit & kin.birth.keys(), choice.left - unit, choice.left ^ {person}]
        )
    for children, left in product(dict.fromkeys([now, (person, *siblings), (*siblings, person)]), lefts):
        if children != now or left != choice.left:
            yield _Choice((*choice.order[:family], children, *choice.order[family + 1 :]), left)


def _walked(kin: _Kin, choice: _Choice) -> list[list[int]]:
    """Rows in the order of a walk over the whole family."""
    rows: list[list[int]] = [[] for _ in range(int(kin.row.max()) + 1)]
    seen: set[Unit] = set()
    for start in kin.own:
        for unit in _walk(kin, choice, seen, start, None):
            rows[int(kin.row[unit[0]])] += unit
    return rows


def _walk(kin: _Kin, choice: _Choice, seen: set[Unit], unit: Unit, came: int | None) -> Iterator[Unit]:
    """Units reached through a unit, from left to right in each row, except through the family `came`."""
    if unit in seen:
        return
    seen.add(unit)
    above = [(p, kin.birth[p]) for p in unit if kin.birth.get(p, came) != came]
    parents = [(p in choice.left, (kin.units[kin.families[f].parents[0]], f)) for p, f in above]
    before = [step for left, step in parents if left]
    after = []
    for family in kin.own[unit]:
        children = choice.order[family]
        # Parents of a child's spouse are in the row of this unit; if they go left, they are left of it.
        first = max(
            (i + 1 for i, c in enumerate(children) if choice.left.intersection(kin.units[c])), default=0
        )
        steps = [(kin.units[child], family) for child in children]
        before += steps[:first]
        after += steps[first:]
    after += [step for left, step in parents if not left]
    for step in before:
        yield from _walk(kin, choice, seen, *step)
    ends = [(p not in choice.left, any(p == q for q, _ in above)) for p in (unit[0], unit[-1])]
    yield unit if ends[0] <= ends[1] else unit[::-1]
    for step in after:
        yield from _walk(kin, choice, seen, *step)


def _cost(kin: _Kin, rows: list[list[int]]) -> tuple[int, float]:
    """Number of crossings of straight lines from parents to children, and the length of the lines."""
    place = np.empty(len(kin.row))
    for people in rows:
        place[people] = np.arange(len(people)) - (len(people) - 1) / 2
    gaps = defaultdict(list)
    for parents, children in kin.families:
        top = sum(place[p] for p in parents) / len(parents)
        gaps[kin.row[children[0]]] += [(top, place[c]) for c in children]
    crossings, length = 0, 0.0
    for lines in gaps.values():
        top, bottom = np.array(lines).T
        crossed = (top[:, None] < top) & (bottom[:, None] > bottom)
        crossings += int(crossed.sum())
        length += float(np.abs(top - bottom).sum())
    return crossings, round(length, 6)


def _kin(families: list[Parentage], row: np.ndarray) -> _Kin:
    units = _units(families, row)
    birth = {child: number for number, (_, children) in enumerate(families) for child in children}
    own: dict[Unit, list[int]] = {unit: [] for unit in units.values()}
    for number, (parents, _) in enumerate(families):
        for unit in dict.fromkeys(units[parent] for parent in parents):
            own[unit].append(number)
    # The walk begins with the founders who have the most children; it reaches nearly all other units.
    start = sorted(
        own, key=lambda u: (any(p in birth for p in u), -sum(len(families[f].children) for f in own[u]))
    )
    return _Kin(families, birth, {unit: own[unit] for unit in start}, units, row)


def _units(families: list[Parentage], row: np.ndarray) -> dict[int, Unit]:
    """Unit of each person."""
    partners = defaultdict(list)
    for parents, _ in families:
        if len(parents) == 2 and row[parents[0]] == row[parents[1]]:
            for person, other in (parents, parents[::-1]):
                partners[person].append(other)
    units: dict[int, Unit] = {}
    # People with few partners first, so that people with many partners come between them.
    for person in sorted(range(len(row)), key=lambda p: len(partners[p])):
        if person not in units:
            line = _side_by_side(person, partners)
            units |= dict.fromkeys(line, line)
    return units


def _side_by_side(person: int, partners: dict[int, list[int]]) -> Unit:
    line, waiting = [person], [*partners[person]]
    while waiting:
        new = waiting.pop(0)
        if new in line:
            continue
        line.insert(0 if line[0] in partners[new] and line[-1] not in partners[new] else len(line), new)
        waiting = partners[new] + waiting
    return tuple(line)
