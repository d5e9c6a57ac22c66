"""How deep families go."""

import numpy as np
from jaxtyping import Int64

from family_tree.people import People


def generations(people: People) -> Int64[np.ndarray, "people"]:
    """How many generations are known above each person: the longest line of parents.

    Examples:
        >>> from family_tree.trees import sample_people
        >>> int(generations(sample_people(strict_depth=True)).max())
        3
    """
    parent, child = people.parents.T
    above = np.zeros(len(people.labels), np.int64)
    while True:
        longer = above.copy()
        np.maximum.at(longer, child, above[parent] + 1)
        if (longer == above).all():
            return above
        above = longer
