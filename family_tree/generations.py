"""How deep families go."""

import numpy as np
from jaxtyping import Int64
from scipy.sparse import csr_array

from family_tree.people import People


def generations(people: People) -> Int64[np.ndarray, "people"]:
    """How many generations are known above each person: the longest line of parents.

    Examples:
        >>> from family_tree.trees import sample_people
        >>> int(generations(sample_people(strict_depth=True)).max())
        3
    """
    parent, child = people.parents.T
    size = len(people.labels)
    children = csr_array((np.ones(len(child), np.bool_), (parent, child)), (size, size))
    unknown = np.bincount(child, minlength=size)  # parents of whom the generation is not known yet
    above = np.zeros(size, np.int64)
    last, number = np.flatnonzero(unknown == 0), 0
    while last.size:
        above[last] = number
        born, parents = np.unique(children[last].indices, return_counts=True)
        unknown[born] -= parents
        last, number = born[unknown[born] == 0], number + 1
    return above
