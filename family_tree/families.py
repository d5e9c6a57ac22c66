"""Families: people joined by lines of parents and children, with their couples and generations."""

import numpy as np
from jaxtyping import Int32, Int64
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from family_tree.people import People, people_checked
from owkg import checks
from owkg.errors import ArgumentError
from owkg.ordered import distinct


def family_numbers(people: People) -> Int32[np.ndarray, "people"]:
    """Number of each person's family, counted from 0 in the order of the families' first labels.

    Raises:
        ValueError: if `people` are invalid.

    Examples:
        >>> from family_tree.trees import sample_people
        >>> family_numbers(sample_people(num_trees=2, max_tree_size=3))
        array([0, 0, 0, 1, 1, 1], dtype=int32)
    """
    return numbers_of(people_checked(people))


def numbers_of(people: People) -> Int32[np.ndarray, "people"]:
    """`family_numbers` of checked people."""
    # Components are numbered in the order in which a scan over the ids meets them.
    return connected_components(_children_of(people), directed=False)[1]


def _children_of(people: People) -> csr_array:
    """Matrix with parents as rows and their children as columns."""
    parent, child = people.parents.T
    size = len(people.labels)
    return csr_array((np.ones(len(child), np.bool_), (parent, child)), (size, size))


def couples(people: People) -> Int32[np.ndarray, "couples 2"]:
    """Pairs of people with a common child, in increasing order.

    Raises:
        ValueError: if `people` are invalid.

    Examples:
        >>> from family_tree.trees import sample_people
        >>> couples(sample_people(num_trees=2, max_tree_size=3))
        array([[1, 2],
               [3, 4]], dtype=int32)
    """
    return couples_of(people_checked(people))


def couples_of(people: People) -> Int32[np.ndarray, "couples 2"]:
    """`couples` of checked people."""
    parent, child = people.parents.T
    order = np.argsort(child, kind="stable")
    second = np.flatnonzero(child[order[1:]] == child[order[:-1]]) + 1
    keys = parent[order[second - 1]].astype(np.int64) * len(people.labels) + parent[order[second]]
    return np.stack(np.divmod(distinct(keys), len(people.labels)), axis=1).astype(np.int32)


def family(people: People, tree: int) -> People:
    """People of one family; `tree` is its number in `family_numbers`.

    Raises:
        ValueError: if the family does not exist, or `people` are invalid.
    """
    numbers = family_numbers(people)
    if not numbers.size:
        raise ArgumentError("people", "must hold at least one person, got none.")
    count, chosen = int(numbers.max()) + 1, checks.whole("tree", tree, -(2**53))
    if not 0 <= chosen < count:
        raise ArgumentError("tree", f"must be the number of a family, in [0, {count}), got {chosen}.")
    mine = numbers == chosen
    ids = np.cumsum(mine, dtype=np.int32) - 1
    return People(
        people.labels.filter(mine), people.female[mine], ids[people.parents[mine[people.parents[:, 0]]]]
    )


def generations(people: People) -> Int64[np.ndarray, "people"]:
    """Number of known generations above each person: the length of the longest line of ancestors.

    Raises:
        ValueError: if `people` are invalid.

    Examples:
        >>> from family_tree.trees import sample_people
        >>> int(generations(sample_people(strict_depth=True)).max())
        3
    """
    return generations_of(people_checked(people))


def generations_of(people: People) -> Int64[np.ndarray, "people"]:
    """`generations` of checked people."""
    size, children = len(people.labels), _children_of(people)
    unknown = np.bincount(people.parents[:, 1], minlength=size)  # parents with a generation still unknown
    above = np.zeros(size, np.int64)
    last, number = np.flatnonzero(unknown == 0), 0
    while last.size:
        above[last] = number
        born, parents = np.unique(children[last].indices, return_counts=True)
        unknown[born] -= parents
        last, number = born[unknown[born] == 0], number + 1
    return above
