"""Triples that a model has never seen: left out, or last; against counting by hand."""

import jax
import numpy as np
import pytest

from owkg.evaluation import ranks
from owkg.kg import KnowledgeGraph, seen_part
from owkg.models import Trained, model
from owkg.ranks.unseen import about_unseen

ENTITIES, RELATIONS = tuple("abcdefgh"), ("r", "s")


def drawn(seed, count):
    rng = np.random.default_rng(seed)
    return np.unique(
        np.stack([rng.integers(0, n, count) for n in (8, 2, 8)], axis=1).astype(np.int32), axis=0
    )


GRAPH = KnowledgeGraph(
    ENTITIES, RELATIONS, {"train": drawn(0, 30), "valid": drawn(1, 9), "test": drawn(2, 40)}
)
MODEL = model("transe", dim=3, reciprocal=True)


def known(graph, side, triple, filters):
    """The labels of the other known answers to the query of a triple, counted by hand."""
    h, r, t = triple
    facts = {tuple(map(int, fact)) for name in filters for fact in graph.splits[name]}
    if side == "tail":
        return {graph.entities[c] for a, b, c in facts if (a, b) == (h, r) and c != t}
    return {graph.entities[a] for a, b, c in facts if (b, c) == (r, t) and a != h}


@pytest.mark.parametrize("filters", [["train", "valid", "test"], ["train"], []])
@pytest.mark.parametrize("labels", [("gbead", "rs"), ("hgfedcba", "r"), ("cab", "s")])
def test_drop_and_last(labels, filters):
    entities, relations = labels
    seen = seen_part(GRAPH, entities, relations)
    assert seen.entities == tuple(entities)
    trained = Trained(MODEL, *MODEL.init(jax.random.key(0), len(entities), len(relations)))
    dropped = ranks(trained, seen, filter_splits=filters, score=True)
    last = ranks(trained, GRAPH, seen=seen, filter_splits=filters, score=True)
    triple = ["head", "relation", "tail", "side"]
    # What the model has seen has the same ranks, and stands in the order of the graph.
    is_seen = last["head"].is_in(list(entities)) & last["tail"].is_in(list(entities))
    is_seen &= last["relation"].is_in(list(relations))
    assert 0 < is_seen.sum() < len(last)
    inside = last.filter(is_seen).drop("filtered")
    assert inside.equals(dropped.drop("filtered"))
    test = GRAPH.splits["test"].tolist()
    named = [(ENTITIES[h], RELATIONS[r], ENTITIES[t]) for h, r, t in test]
    assert last.select(triple).rows() == [(*one, side) for side in ("head", "tail") for one in named]
    for row, one in zip(last.rows(named=True), test * 2, strict=True):
        others = known(GRAPH, row["side"], one, filters)
        candidates = (set(entities) - others) | {row[row["side"]]}
        assert row["candidates"] == len(candidates)
    outside = last.filter(~is_seen)
    assert (outside["optimistic"] == outside["candidates"]).all()
    assert (outside["pessimistic"] == outside["candidates"]).all()
    assert (outside["score"] == -np.inf).all()
    assert about_unseen(GRAPH, seen, GRAPH.splits["test"], "drop") == {
        "policy": "drop",
        "entities": 8 - len(entities),
        "relations": 2 - len(relations),
        "triples": len(outside) // 2,
        "candidates": len(entities),
    }


def test_a_model_that_has_seen_no_triple_of_the_split():
    one = GRAPH._replace(splits=GRAPH.splits | {"test": np.array([[7, 0, 7]], np.int32)})
    seen = seen_part(one, "ab", "rs")
    trained = Trained(MODEL, *MODEL.init(jax.random.key(0), 2, 2))
    table = ranks(trained, one, seen=seen, filter_splits=[])
    assert table.select("optimistic", "pessimistic", "candidates").rows() == [(3, 3, 3)] * 2
    with pytest.raises(ValueError, match="`split` must have triples to rank, got 'test', which has none"):
        ranks(trained, seen)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (("abx", "rs"), "`entities` must be in the graph, got 'x', which is not"),
        (("ab", "rq"), "`relations` must be in the graph, got 'q', which is not"),
        (("aba", "rs"), "`entities` must be distinct labels, got one twice"),
    ],
)
def test_labels_that_are_no_part_of_the_graph(labels, words):
    with pytest.raises(ValueError, match=words):
        seen_part(GRAPH, *labels)
