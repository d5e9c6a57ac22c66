"""Families sampled by the published process, each tree reproducible on its own."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from family_tree.growth import Limits, Trees, grow
from family_tree.people import People
from owkg import checks
from owkg.errors import ArgumentError

# A label has six digits for the number of its tree.
_MOST_TREES = 1_000_000
# Approximate number of people sampled at once: whole trees, and at least one.
_BLOCK = 50_000


def sample_people(
    *,
    num_trees: int = 20,
    max_tree_size: int = 300,
    max_depth: int = 3,
    max_branching: int = 20,
    strict_depth: bool = False,
    first_tree: int = 0,
    seed: int = 0,
) -> People:
    """People of several families, each grown from one person by the published process.

    A tree begins with one person on level 0. Each attempt picks one of its people uniformly and adds either
    parents or a child. A person without parents gets a mother and a father, one level above. A person with
    fewer than `max_branching` children gets a child, one level below, and first a spouse of the other gender
    if there is none. If both are possible, a fair coin decides. Neither may lead to people more than
    `max_depth` levels apart, or to more than `max_tree_size` people. A fair coin also gives the gender of the
    first person and of children. A tree is complete when it is full, or after `10 max_tree_size` attempts.

    As published, a spouse counts as one level below the person they marry, like their children. Therefore a
    line of descent may have `max_depth + 2` generations: the parents of a person who married in have
    grandchildren on the level of their children. With `strict_depth`, spouses are on one level, and no line
    has more than `max_depth + 1` generations.

    Tree i depends only on `seed`, i and the limits, not on the other trees.

    Args:
        num_trees: number of families, at least 1. Default 20.
        max_tree_size: maximum number of people in a tree, at least 1. Default 300.
        max_depth: maximum number of levels between two people of a tree, at least 1. Default 3.
        max_branching: maximum number of children of a person, at least 1. Default 20.
        strict_depth: whether spouses are on one level. Default False, as published.
        first_tree: number of the first tree; the last one may be at most 999,999. Default 0.
        seed: integer of at least 0, however large; other seeds give other families. Default 0.

    Returns:
        The people, labelled by the number of the tree and the order of their appearance in it, from 0, such
        as `t000012_034`.

    Raises:
        ValueError: naming the argument that is out of range.

    Examples:
        >>> people = sample_people(num_trees=2, max_tree_size=4, seed=1)
        >>> people.labels.to_list()[3:5]
        ['t000000_3', 't000001_0']
    """
    blocks = people_blocks(
        num_trees=num_trees,
        max_tree_size=max_tree_size,
        max_depth=max_depth,
        max_branching=max_branching,
        strict_depth=strict_depth,
        first_tree=first_tree,
        seed=seed,
    )
    labels, female, parents, before = [], [], [], 0
    for people in blocks:
        labels.append(people.labels)
        female.append(people.female)
        parents.append(people.parents + np.int32(before))
        before += len(people.labels)
    return People(pl.concat(labels), np.concatenate(female), np.concatenate(parents))


def people_blocks(
    *,
    num_trees: int = 20,
    max_tree_size: int = 300,
    max_depth: int = 3,
    max_branching: int = 20,
    strict_depth: bool = False,
    first_tree: int = 0,
    seed: int = 0,
    block_size: int = _BLOCK,
) -> Iterator[People]:
    """People of `sample_people` in blocks of whole trees with ids from 0, so that memory is bounded.

    `block_size` is the maximum number of people in a block with more than one tree. The other arguments are
    as in `sample_people`, and are checked before the first block.
    """
    trees, first = checks.whole("num_trees", num_trees, 1), checks.whole("first_tree", first_tree, 0)
    if first + trees > _MOST_TREES:
        got = f"{trees} with `first_tree` {first}"
        raise ArgumentError("num_trees", f"must leave the last tree a number of six digits, got {got}.")
    limits = Limits(
        checks.whole("max_tree_size", max_tree_size, 1),
        checks.whole("max_depth", max_depth, 1),
        checks.whole("max_branching", max_branching, 1),
        checks.flag("strict_depth", strict_depth),
    )
    root = checks.seed("seed", seed)
    at_once = max(1, checks.whole("block_size", block_size, 1) // limits.max_tree_size)
    last = first + trees
    return (_block(root, range(i, min(i + at_once, last)), limits) for i in range(first, last, at_once))


def _block(seed: int, numbers: range, limits: Limits) -> People:
    streams = [
        np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(i,)))) for i in numbers
    ]
    return _people(grow(streams, limits), numbers, limits.max_tree_size)


def _people(trees: Trees, numbers: range, max_tree_size: int) -> People:
    """People of all trees, without the empty entries."""
    there = np.arange(max_tree_size) < trees.size[:, None]
    tree, person = np.nonzero(there)
    entries = np.flatnonzero(there)
    ids = np.cumsum(there, dtype=np.int32) - 1  # id of every entry with a person
    child = entries[trees.mother[entries] >= 0]
    parent = np.concatenate([trees.mother[child], trees.father[child]])
    parents = np.stack([ids[parent], ids[np.tile(child, 2)]], axis=1)
    return People(
        _labels(tree + numbers.start, person, max_tree_size),
        trees.female[entries],
        parents[np.lexsort(parents.T[::-1])],
    )


def _labels(tree: np.ndarray, person: np.ndarray, max_tree_size: int) -> pl.Series:
    digits = len(str(max_tree_size - 1))
    numbers = pl.DataFrame({"tree": tree, "person": person}).select(
        pl.col("tree").cast(pl.String).str.zfill(6), pl.col("person").cast(pl.String).str.zfill(digits)
    )
    return numbers.select(pl.format("t{}_{}", "tree", "person").alias("person")).to_series()
