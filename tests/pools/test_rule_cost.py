"""What rules cost: against a loop, and against facts that are missing as the left out ones are."""

import numpy as np
import polars as pl
import pytest

from owkg.judge.runs import known_pairs
from owkg.kg import KnowledgeGraph
from owkg.pools.rule_cost import rule_cost
from owkg.pools.trivial import trivial

PEOPLE, PARENTS = 600, 2


def _world(known, seed=0):
    """Everybody has two parents, of which a share is known: many have one parent in train."""
    rng = np.random.default_rng(seed)
    child = np.repeat(np.arange(PEOPLE), PARENTS)
    parent = PEOPLE + rng.permutation(PEOPLE * PARENTS) // 2
    facts = np.stack([child, np.zeros_like(child), parent], 1).astype(np.int32)
    split = rng.choice(3, len(facts), p=[known, 0.1, 0.9 - known])
    names = tuple(f"p{i}" for i in range(2 * PEOPLE))
    splits = {"train": facts[split == 0], "valid": facts[split == 1], "test": facts[split == 2]}
    return KnowledgeGraph(names, ("childOf",), splits)


def test_left_out_facts_are_lost_as_missing_ones_are():
    graph = _world(0.45)
    true = known_pairs(graph, ["test"])
    lost = trivial(true, graph, known=["train"], rules=["functional"])["rule"].is_not_null()
    assert lost.mean() > 0.1
    for held in (["valid"], []):
        found = rule_cost(graph, rules=["functional"], held=held, level=0.999).row(0, named=True)
        assert found["lower"] < lost.mean() < found["upper"]
        assert (found["functional"], found["type"]) == (found["rejected"], 0)
        assert found["share"] == found["rejected"] / found["facts"]


def test_only_what_is_asked_for_counts():
    graph = _world(0.45)
    asked = pl.DataFrame({"side": ["tail"], "relation": ["childOf"]})
    found = rule_cost(graph, held=["valid"], asked=asked)
    assert found["facts"].to_list() == [len(graph.splits["valid"])] * 2
    assert rule_cost(graph, held=["valid"], asked=asked[:0]).is_empty()


def test_intervals_hold_the_share_of_all():
    """Of 200 draws of valid, 95 % hold the share of endless facts."""
    held = 0
    for seed in range(200):
        graph = _world(0.45, seed)
        true = known_pairs(graph, ["test"])
        share = trivial(true, graph, known=["train"], rules=["functional"])["rule"].is_not_null().mean()
        row = rule_cost(graph, rules=["functional"], held=["valid"]).row(0, named=True)
        held += row["lower"] < share < row["upper"]
    # The share of the test is a sample too, eight times as large.
    assert held >= 180


def test_refusals():
    graph = _world(0.45)
    with pytest.raises(ValueError, match=r"`held`.*'none'"):
        rule_cost(graph, held=["none"])
    with pytest.raises(ValueError, match="`level`"):
        rule_cost(graph, level=1)
