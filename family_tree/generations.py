"""How deep families go."""

from typing import Any

import numpy as np
from jaxtyping import Int64

from family_tree.families import children_of
from family_tree.people import People, people_checked


def generations(people: Any) -> Int64[np.ndarray, "people"]:
    """How many generations are known above each person: the longest line of parents.

    Raises:
        ValueError: if there cannot be such people.

    Examples:
        >>> from family_tree.trees import sample_people
        >>> int(generations(sample_people(strict_depth=True)).max())
        3
    """
    return generations_of(people_checked(people))


def generations_of(people: People) -> Int64[np.ndarray, "people"]:
    """`generations` of people who have been checked."""
    size, children = len(people.labels), children_of(people)
    unknown = np.bincount(
        people.parents[:, 1], minlength=size
    )  # parents of whom the generation is not known yet
    above = np.zeros(size, np.int64)
    last, number = np.flatnonzero(unknown == 0), 0
    while last.size:
        above[last] = number
        born, parents = np.unique(children[last].indices, return_counts=True)
        unknown[born] -= parents
        last, number = born[unknown[born] == 0], number + 1
    return above
