"""Non-deterministic ranks: what a sort happens to give."""

import numpy as np
import pytest

import owkg
from owkg.errors import ArgumentError
from owkg.kg import KnowledgeGraph
from owkg.ranks import ranks_from_scores
from owkg.ranks.sorting import SORTS

KINDS = (*SORTS, *(f"reversed-{name}" for name in SORTS))


@pytest.mark.parametrize("kind", KINDS)
def test_between_the_optimistic_and_the_pessimistic_rank(kind):
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 5, (60, 40)).astype(np.float32)
    target = rng.integers(0, 40, 60)
    known = rng.random((60, 40)) < 0.3
    bounds = ranks_from_scores(scores, target, known=known)
    found = ranks_from_scores(scores, target, known=known, sort=kind)
    assert (found.optimistic == found.pessimistic).all()
    assert (found.candidates == bounds.candidates).all()
    assert (bounds.optimistic <= found.optimistic).all()
    assert (found.optimistic <= bounds.pessimistic).all()
    # By a list, one query at a time.
    for i in range(60):
        order = np.argsort(
            scores[i] if "reversed" in kind else -scores[i], kind=kind.removeprefix("reversed-")
        )
        ranked = [
            e for e in (order[::-1] if "reversed" in kind else order) if e == target[i] or not known[i, e]
        ]
        assert found.optimistic[i] == 1 + ranked.index(target[i])


def test_without_ties_it_is_the_rank():
    rng = np.random.default_rng(4)
    scores, target = rng.normal(size=(30, 50)), rng.integers(0, 50, 30)
    rank = ranks_from_scores(scores, target).optimistic
    for kind in KINDS:
        assert (ranks_from_scores(scores, target, sort=kind).optimistic == rank).all()


def test_a_constant_scorer_gets_the_order_of_the_entities():
    scores, target = np.zeros((2, 9)), [0, 6]
    assert ranks_from_scores(scores, target, sort="stable").optimistic.tolist() == [1, 7]
    assert ranks_from_scores(scores, target, sort="reversed-stable").optimistic.tolist() == [9, 3]


def test_bad_arguments():
    with pytest.raises(
        ArgumentError, match="`sort` must be one of stable, quicksort, heapsort, or reversed-"
    ):
        ranks_from_scores([[0.0]], [0], sort="bogosort")
    with pytest.raises(ArgumentError, match="`sort` must be None with `candidates` or a tolerance"):
        ranks_from_scores([[0.0]], [0], sort="stable", tolerance=0.1)
    with pytest.raises(ValueError, match="NaN"):
        ranks_from_scores([[0.0, np.nan]], [0], sort="stable")


def test_of_a_graph():
    triples = np.array([[0, 0, 1], [2, 0, 0]], np.int32)
    graph = KnowledgeGraph(tuple("abc"), ("r",), {"train": triples[:0], "test": triples})
    table = owkg.rank(np.zeros((2, 3)), graph, sort="stable").frame
    assert table["optimistic"].to_list() == table["pessimistic"].to_list() == [2, 1]
