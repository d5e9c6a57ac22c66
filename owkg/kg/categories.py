"""Relation categories: whether a relation gives a head one tail or many, and a tail one head or many."""

import numpy as np
from numpy.typing import ArrayLike

from owkg import checks
from owkg.kg.triples import distinct_triples, size, triples_checked
from owkg.ordered import changes

CATEGORIES = ("1-1", "1-N", "N-1", "N-N")


def relation_categories(triples: ArrayLike, num_relations: int, *, threshold: float = 1.5) -> np.ndarray:
    """The category of each relation, head side first: "1-1", "1-N", "N-1" or "N-N"; "" without triples.

    A side is N if its average is at least `threshold`, which is at least 1: for the tail side the distinct
    tails of a head, averaged over the heads that the relation has; for the head side the distinct heads of a
    tail. So "1-N" gives a head many tails, each of which has about one head (Bordes et al. 2013, section 4.3,
    where an average below 1.5 makes a side 1). The literature counts training triples, some of it all splits;
    repeated triples count once.

    Raises:
        ValueError: if an id is out of range or `threshold` is below 1.

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
    """How many entities each relation has in a column."""
    below = int(facts[:, column].max(initial=0)) + 1
    pairs = facts[:, 1].astype(np.int64)
    pairs *= below
    pairs += facts[:, column]
    pairs.sort()
    pairs = pairs[changes(pairs)]
    return np.diff(np.searchsorted(pairs, np.arange(relations + 1) * below))
