"""Drawn negatives: never a known fact, drawn as they should be."""

import numpy as np
import pytest
from scipy.stats import chisquare

from owkg.classification import drawn_negatives
from owkg.errors import ArgumentError
from owkg.kg import KnowledgeGraph


def graph(test, train=((0, 0, 1),), n=6):
    splits = {"train": np.array(train, np.int32), "test": np.array(test, np.int32)}
    return KnowledgeGraph(tuple("abcdefghij"[:n]), ("r", "s"), splits)


def test_one_side_is_replaced_and_nothing_known_comes_out(rng):
    facts = np.unique(rng.integers(0, [6, 2, 6], (40, 3)), axis=0).astype(np.int32)
    world = graph(facts[::2], facts[1::2])
    for seed in range(20):
        found = drawn_negatives(world, "test", seed=seed)
        assert ((found == facts[::2]).sum(1) == 2).all()
        assert not {*map(tuple, found)} & {*map(tuple, facts)}
    assert (drawn_negatives(world, "test", seed=3) == drawn_negatives(world, "test", seed=3)).all()


def test_all_are_distinct_and_none_is_to_be_avoided(rng):
    facts = np.unique(rng.integers(0, [6, 2, 6], (30, 3)), axis=0).astype(np.int32)
    world = graph(facts[::2], facts[1::2])
    first = drawn_negatives(world, "test", seed=1)
    second = drawn_negatives(world, "test", seed=1, avoid=first)
    both = np.concatenate([first, second])
    assert len(np.unique(both, axis=0)) == len(both)


def test_uniform_over_both_sides_and_what_is_left():
    world = graph([(0, 0, 1)])
    drawn = np.concatenate([drawn_negatives(world, "test", seed=s) for s in range(3000)])
    heads = drawn[drawn[:, 2] == 1][:, 0]
    assert abs(len(heads) / 3000 - 0.5) < 0.04
    counts = np.bincount(heads, minlength=6)
    assert counts[0] == 0
    assert chisquare(counts[1:]).pvalue > 1e-3


def test_by_frequency():
    world = graph([(0, 1, 1)], train=[(2, 0, 3), (2, 0, 4), (2, 0, 5), (0, 0, 1)])
    drawn = np.concatenate([drawn_negatives(world, "test", "frequency", seed=s) for s in range(3000)])
    tails = np.bincount(drawn[drawn[:, 0] == 0][:, 2], minlength=6)
    # Counts in train: 1, 1, 3, 1, 1, 1; the known tail 1 is drawn again.
    left = np.array([1, 3, 1, 1, 1])
    assert tails[1] == 0
    assert chisquare(tails[[0, 2, 3, 4, 5]], left / left.sum() * tails.sum()).pvalue > 1e-3


def test_bad_arguments():
    world = graph([(0, 0, 1)])
    with pytest.raises(ArgumentError, match="`how` must be one of uniform, frequency, got 'hard'"):
        drawn_negatives(world, "test", "hard")
    with pytest.raises(ValueError, match="valid"):
        drawn_negatives(world, "valid")
    every = np.array([(a, 0, b) for a in (0, 1) for b in (0, 1)], np.int32)
    with pytest.raises(ArgumentError, match="`graph` must have an entity to corrupt 'a r a' with"):
        drawn_negatives(graph(every, n=2), "test")
