"""Positions of the people of one family in a drawing: rows of generations, with children under parents."""

from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64
from scipy.optimize import linprog
from scipy.sparse import csr_array

from family_tree.families import numbers_of
from family_tree.order import Parentage, generations_in_order, parentage
from family_tree.people import People, people_checked
from owkg.errors import ArgumentError

# Maximum number of people: the time grows with its square, and a larger figure would not be legible.
_MOST_PEOPLE = 400
# Minimum distances along a row, between spouses and between other people.
_SPOUSES, _OTHERS = 1.0, 1.2
# Cost of the distance between spouses and between siblings; a child's offset from its parents costs 1.
_TOGETHER, _SIBLINGS = 0.45, 0.1
# Horizontal lines with a gap below `_CLEAR` are drawn at heights that differ by `_TRACK` of a row.
_CLEAR, _TRACK = 0.4, 0.12


class Family(NamedTuple):
    """Lines between children and their parents.

    Attributes:
        parents: ids of one or two parents.
        children: ids of the children.
        drops: (x, row) where lines begin to run down: between parents side by side, otherwise at each parent.
        bar: vertical position, between two rows, of the horizontal line above the children.
    """

    parents: tuple[int, ...]
    children: tuple[int, ...]
    drops: tuple[tuple[float, float], ...]
    bar: float


class FamilyLayout(NamedTuple):
    """Positions of a family in the plane.

    Attributes:
        x: horizontal position of each person; people in one row are at least 1 apart.
        row: row of each person, from 0; children are in rows with larger numbers than their parents.
        families: lines between parents and children.
    """

    x: Float64[np.ndarray, "people"]
    row: Int64[np.ndarray, "people"]
    families: tuple[Family, ...]


def layout(people: People) -> FamilyLayout:
    """Positions of the people of one family, and the lines between them.

    Parents of a child are side by side, as far as other partners and their ancestors allow. Few lines cross;
    some must cross if the spouses of several siblings have relatives as well.

    Raises:
        ValueError: if the people are not one family, are more than 400, or are invalid.
    """
    people_checked(people)
    if len(people.labels) > _MOST_PEOPLE:
        raise ValueError(
            f"a family of {len(people.labels)} people cannot be drawn; it must have at most {_MOST_PEOPLE}."
        )
    number = int(numbers_of(people).max(initial=-1)) + 1
    if number != 1:
        raise ArgumentError("people", f"must be one family, got {number}.")
    families, row = parentage(people), _rows(people)
    order = generations_in_order(families, row)
    x = _places(families, order)
    neighbours = {frozenset(pair) for line in order for pair in pairwise(line)}
    return FamilyLayout(x, row, _apart([_lines(one, neighbours, x, row) for one in families], x))


def _rows(people: People) -> Int64[np.ndarray, "people"]:
    """Rows with all children below their parents, and with the smallest total length of lines of descent."""
    (parent, child), edges = people.parents.T, np.arange(len(people.parents))
    if not edges.size:
        return np.zeros(len(people.labels), np.int64)
    ends = (np.tile(edges, 2), np.concatenate([parent, child]))
    above = csr_array((np.repeat([1.0, -1.0], len(edges)), ends), (len(edges), len(people.labels)))
    # The matrix is totally unimodular, so the simplex method ends in integers.
    found = linprog(-above.sum(axis=0), A_ub=above, b_ub=-np.ones(len(edges)), method="highs-ds")
    row = np.rint(found.x).astype(np.int64)
    return row - row.min()


def _places(families: list[Parentage], order: list[list[int]]) -> Float64[np.ndarray, "people"]:
    """x of each person, given the order in each row, at the least cost.

    Costs are distances, not squared distances: then most lines run straight down, and few make a detour.
    """
    couples = {frozenset(parents) for parents, _ in families}
    pairs = [pair for line in order for pair in pairwise(line)]
    married = np.array([frozenset(pair) in couples for pair in pairs], bool)
    each = np.eye(sum(map(len, order)))
    apart = _differences(each, pairs)
    siblings = [pair for _, children in families for line in order for pair in _within(line, children)]
    cost = _TOGETHER * apart[married].sum(axis=0) + _SIBLINGS * _differences(each, siblings).sum(axis=0)
    astray = np.zeros((len(families), len(each)))
    for family, (parents, children) in enumerate(families):
        astray[family] = each[list(children)].mean(axis=0) - each[list(parents)].mean(axis=0)
    # Each family adds an unknown: the offset of its children from their parents, to either side.
    far = np.eye(len(families))
    bounds = np.block([[-apart, np.zeros((len(apart), len(far)))], [astray, -far], [-astray, -far]])
    least = np.concatenate([np.where(married, -_SPOUSES, -_OTHERS), np.zeros(2 * len(far))])
    return linprog(np.concatenate([cost, np.ones(len(far))]), A_ub=bounds, b_ub=least).x[: len(each)]


def _differences(each: np.ndarray, pairs: list[tuple[int, int]]) -> np.ndarray:
    """Second x minus first x of each pair, as rows of coefficients."""
    first, second = np.array(pairs, np.int64).reshape(-1, 2).T
    return each[second] - each[first]


def _within(line: list[int], children: tuple[int, ...]) -> list[tuple[int, int]]:
    """First and last child in a row."""
    placed = [person for person in line if person in children]
    return [(placed[0], placed[-1])] if len(placed) > 1 else []


def _lines(family: Parentage, neighbours: set[frozenset[int]], x: np.ndarray, row: np.ndarray) -> Family:
    places = [(float(x[p]), float(row[p])) for p in family.parents]
    if frozenset(family.parents) in neighbours:
        places = [(float(np.mean([at for at, _ in places])), places[0][1])]
    return Family(*family, tuple(places), float(row[list(family.children)].min()) - 0.5)


def _apart(families: list[Family], x: np.ndarray) -> tuple[Family, ...]:
    """Families with overlapping bars moved to different heights."""
    result = []
    gaps = defaultdict(list)
    for family in families:
        ends = [*(at for at, _ in family.drops), *x[list(family.children)].tolist()]
        gaps[family.bar].append((min(ends), max(ends), family))
    for bar, spans in gaps.items():
        ends_of: list[float] = []  # end of the last bar at each height
        heights = []
        for left, right, family in sorted(spans, key=lambda span: span[:2]):
            height = next((i for i, end in enumerate(ends_of) if end + _CLEAR < left), len(ends_of))
            ends_of[height : height + 1] = [right]
            heights.append((height, family))
        step = min(_TRACK, 0.5 / len(ends_of))
        middle = (len(ends_of) - 1) / 2
        result += [family._replace(bar=bar + (height - middle) * step) for height, family in heights]
    return tuple(result)
