"""Growth of family trees by one person or couple at a time, in many trees at once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64

# Draws of each attempt: the person, parents or child, the child's gender.
DRAWS = 3
# Attempts per person of `max_tree_size`, as published.
_ATTEMPTS = 10
# Attempts drawn at once.
_CHUNK = 64


class Limits(NamedTuple):
    """Limits of a tree; see `sample_people`."""

    max_tree_size: int
    max_depth: int
    max_branching: int
    strict_depth: bool


class Trees(NamedTuple):
    """Trees side by side: person p of tree t is entry t * max_tree_size + p; -1 means nobody.

    Attributes:
        size: number of people in each tree.
        low, high: lowest and highest level of each tree. The level of a child is its parents' level plus 1.
        female, level, spouse, mother, father: attributes of each person.
        children: number of children of each person.
    """

    size: Int64[np.ndarray, "trees"]
    low: Int32[np.ndarray, "trees"]
    high: Int32[np.ndarray, "trees"]
    female: Bool[np.ndarray, "entries"]
    level: Int32[np.ndarray, "entries"]
    spouse: Int64[np.ndarray, "entries"]
    mother: Int64[np.ndarray, "entries"]
    father: Int64[np.ndarray, "entries"]
    children: Int32[np.ndarray, "entries"]


def grow(streams: Sequence[np.random.Generator], limits: Limits) -> Trees:
    """Trees grown from streams, one from each stream and independent of all other streams.

    A stream is consumed in rows of `DRAWS` numbers: one row for the first person, and one for each attempt.
    """
    trees = _first_people(len(streams), limits.max_tree_size)
    draws = np.empty((len(streams), _CHUNK, DRAWS))
    trees.female[:: limits.max_tree_size] = [stream.random(DRAWS)[2] < 0.5 for stream in streams]
    growing = np.arange(len(streams))
    for attempt in range(_ATTEMPTS * limits.max_tree_size):
        growing = growing[trees.size[growing] < limits.max_tree_size]
        if not growing.size:
            break
        if attempt % _CHUNK == 0:
            for tree in growing:
                streams[tree].random(out=draws[tree])
        _attempt(trees, growing, draws[growing, attempt % _CHUNK], limits)
    return trees


def _first_people(num_trees: int, max_tree_size: int) -> Trees:
    entries = num_trees * max_tree_size
    return Trees(
        size=np.ones(num_trees, np.int64),
        low=np.zeros(num_trees, np.int32),
        high=np.zeros(num_trees, np.int32),
        female=np.zeros(entries, np.bool_),
        level=np.zeros(entries, np.int32),
        spouse=np.full(entries, -1),
        mother=np.full(entries, -1),
        father=np.full(entries, -1),
        children=np.zeros(entries, np.int32),
    )


def _attempt(
    trees: Trees, tree: Int64[np.ndarray, "n"], draws: Float64[np.ndarray, "n draws"], limits: Limits
) -> None:
    """Picks a person of each `tree` and adds parents or a child if possible."""
    picked, coin, gender = draws.T
    size, low, high = trees.size[tree], trees.low[tree], trees.high[tree]
    person = tree * limits.max_tree_size + (picked * size).astype(np.int64)
    level = trees.level[person]
    flat = high - low < limits.max_depth
    places = limits.max_tree_size - size
    single = trees.spouse[person] < 0
    above = (trees.mother[person] < 0) & (flat | (level > low)) & (places >= 2)
    below = (trees.children[person] < limits.max_branching) & (flat | (level < high)) & (places > single)
    above &= ~below | (coin < 0.5)
    below &= ~above
    _add_parents(trees, tree[above], person[above], limits)
    _add_spouse(trees, tree[below & single], person[below & single], limits)
    _add_child(trees, tree[below], person[below], gender[below] < 0.5, limits)


def _add_parents(trees: Trees, tree: np.ndarray, person: np.ndarray, limits: Limits) -> None:
    level = trees.level[person] - 1
    mother = _new(trees, tree, level, True, limits)
    father = _new(trees, tree, level, False, limits)
    trees.mother[person], trees.father[person] = mother, father
    trees.spouse[mother], trees.spouse[father] = father, mother
    trees.children[mother] = trees.children[father] = 1
    trees.low[tree] = np.minimum(trees.low[tree], level)


def _add_spouse(trees: Trees, tree: np.ndarray, person: np.ndarray, limits: Limits) -> None:
    # The published process puts a spouse on the level of the couple's children.
    level = trees.level[person] + (not limits.strict_depth)
    spouse = _new(trees, tree, level, ~trees.female[person], limits)
    trees.spouse[person], trees.spouse[spouse] = spouse, person


def _add_child(
    trees: Trees, tree: np.ndarray, person: np.ndarray, female: np.ndarray, limits: Limits
) -> None:
    level = trees.level[person] + 1
    child = _new(trees, tree, level, female, limits)
    spouse = trees.spouse[person]
    trees.mother[child] = np.where(trees.female[person], person, spouse)
    trees.father[child] = np.where(trees.female[person], spouse, person)
    trees.children[person] += 1
    trees.children[spouse] += 1
    trees.high[tree] = np.maximum(trees.high[tree], level)


def _new(
    trees: Trees, tree: np.ndarray, level: np.ndarray, female: np.ndarray | bool, limits: Limits
) -> np.ndarray:
    """Entries of one more person in each `tree`."""
    entry = tree * limits.max_tree_size + trees.size[tree]
    trees.size[tree] += 1
    trees.level[entry] = level
    trees.female[entry] = female
    return entry
