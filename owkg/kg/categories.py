"""Relation categories: whether a relation has one or many tails for a head, and heads for a tail."""

import numpy as np
from numpy.typing import ArrayLike

from owkg import checks
from owkg.kg.triples import distinct_triples, size, triples_checked
from owkg.ordered import changes

CATEGORIES = ("1-1", "1-N", "N-1", "N-N")


def relation_categories(triples: ArrayLike, num_relations: int, *, threshold: float = 1.5) -> np.ndarray:
    """Category of each relation, head side first: "1-1", "1-N", "N-1" or "N-N"; "" without triples.

    A side is N if its average is at least `threshold`. The average of the tail side is the mean number of
    distinct tails over the heads of the relation; the average of the head side is the mean number of distinct
    heads over its tails. A relation "1-N" therefore gives a head many tails, each of which has about one head
    (Bordes et al. 2013, section 4.3, where an average below 1.5 makes a side 1). The literature counts
    training triples, some papers all splits. Repeated triples count once.

    Args:
        triples: head, relation and tail ids, int [triples, 3].
        num_relations: number of relations.
        threshold: smallest average of a side N, at least 1. Default 1.5.

    Raises:
        ValueError: if an id is out of range, or `threshold` is below 1.

    Examples:
        >>> relation_categories([[0, 0, 1], [0, 0, 2], [3, 1, 4]], 3).tolist()
        ['1-N', '1-1', '']
    """
    relations = size("num_relations", num_relations)
    limit = checks.real_number("threshold", threshold, 1, np.inf)
    facts = distinct_triples(triples_checked(triples, None, relations))
    count = np.bincount(facts[:, 1], minlength=relations)
    head_side, tail_side = (
        np.where(count / np.maximum(_entities(facts, column, relations), 1) >= limit, "N", "1")
        for column in (2, 0)
    )
    joined = np.strings.add(np.strings.add(head_side, "-"), tail_side)
    return np.where(count > 0, joined, "").astype("<U3")


def _entities(facts: np.ndarray, column: int, relations: int) -> np.ndarray:
    """Number of distinct entities of each relation in a column."""
    below = int(facts[:, column].max(initial=0)) + 1
    pairs = facts[:, 1].astype(np.int64)
    pairs *= below
    pairs += facts[:, column]
    pairs.sort()
    pairs = pairs[changes(pairs)]
    return np.diff(np.searchsorted(pairs, np.arange(relations + 1) * below))
