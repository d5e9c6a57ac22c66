"""Every query once an epoch; graphs that cannot be learned."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg.kg import KnowledgeGraph
from owkg.train import training
from owkg.train.loop import snapshots
from owkg.train.queries import queries


def test_a_query_a_fact_or_each_once(ring):
    _, facts = queries(ring, training("complex", batch_size=50, epochs=3))
    assert (facts.queries, facts.per_epoch, facts.total) == ((60, 60), 3, 9)
    parts, distinct = queries(ring, training("tucker", batch_size=50, steps=7))
    assert distinct.total == 7
    asked = {(int(e), int(r)) for e, r in zip(parts[1].entity, parts[1].relation, strict=True)}
    assert len(asked) == distinct.queries[1] < 60
    assert asked == {(int(h), int(r)) for h, r, _ in ring.splits["train"]}


def test_both_sides_hold_the_facts_once(ring):
    (heads, tails), _ = queries(ring, training("complex"))
    triples = np.asarray(ring.splits["train"])
    for column, one, two in zip(
        triples.T, (heads.answer, heads.relation, heads.entity), (tails.entity, tails.relation, tails.answer),
        strict=True,
    ):  # fmt: skip
        assert one is two
        np.testing.assert_array_equal(one, column)
    assert [part.weight.tolist() for part in (heads, tails)] == [[1.0], [1.0]]
    weighed, _ = queries(ring, training("complex", subsampling=True))
    assert weighed[0].weight.shape == (len(triples),)


def test_weights_of_sides_and_of_answers(ring):
    """Wang et al. 2014, section 4: heads are corrupted in tph / (tph + hpt); BiQUE: w = .9 f / max f + .1."""
    facts = np.array([[0, 0, 1], [0, 0, 2], [0, 0, 3], [4, 0, 3], [1, 1, 2]], np.int32)
    graph = KnowledgeGraph(tuple("abcde"), ("r", "s"), {"train": facts})
    tph, hpt = 4 / 2, 4 / 3
    share = np.array([tph / (tph + hpt)] * 4 + [0.5])
    (heads, tails), _ = queries(graph, training("transe", subsampling=False, sides="bernoulli"))
    np.testing.assert_allclose([heads.weight, tails.weight], [share, 1 - share], rtol=1e-6)
    of_entity = 0.9 * np.array([3, 2, 2, 2, 1]) / 3 + 0.1
    (heads, tails), _ = queries(graph, training("complex", answer_frequency=0.9))
    np.testing.assert_allclose([heads.weight, tails.weight], of_entity[facts[:, [0, 2]].T], rtol=1e-6)
    both = {"sides": "bernoulli", "answer_frequency": 0.9, "subsampling": True}
    (heads, _), _ = queries(graph, training("transe", **both))
    (once, _), _ = queries(graph, training("transe"))
    np.testing.assert_allclose(heads.weight, once.weight * share * of_entity[facts[:, 0]], rtol=1e-6)


@pytest.mark.parametrize("training_loop", ["1vsall", "kvsall"])
@given(batch_size=st.integers(1, 150))
def test_batches_of_an_epoch_hold_all_queries_and_none_is_empty(ring, training_loop, batch_size):
    _, sizes = queries(ring, training("complex", training_loop=training_loop, batch_size=batch_size))
    assert sum(sizes.batch) <= batch_size + 1
    begins = [batch * (sizes.per_epoch - 1) for batch in sizes.batch]
    for asked, batch in zip(sizes.queries, sizes.batch, strict=True):
        assert asked <= batch * sizes.per_epoch
    # The last step asks something.
    assert any(begin < asked for begin, asked in zip(begins, sizes.queries, strict=True))


@pytest.mark.parametrize(("training_loop", "batch_size"), [("1vsall", 7), ("1vsall", 1), ("kvsall", 7)])
def test_an_epoch_of_an_awkward_batch_has_a_finite_loss(ring, training_loop, batch_size):
    config = training(
        "distmult", dim=2, training_loop=training_loop, batch_size=batch_size, epochs=1, valid_every=0
    )
    *_, last = snapshots(ring, config)
    assert np.isfinite(last.rows[-1]["loss"])


@pytest.mark.parametrize(
    "splits", [{"train": np.empty((0, 3), np.int32)}, {"test": np.zeros((1, 3), np.int32)}]
)
def test_nothing_to_learn(splits):
    graph = KnowledgeGraph(("a", "b"), ("r",), splits)
    with pytest.raises(ValueError, match="train"):
        queries(graph, training("complex"))


def test_nothing_to_draw_from():
    facts = np.array([[0, 0, 0], [0, 0, 1]], np.int32)
    graph = KnowledgeGraph(("a", "b"), ("r",), {"train": facts})
    with pytest.raises(
        ValueError, match="`filtered_negatives` must be False: every entity is a tail of 'a' and 'r'"
    ):
        queries(graph, training("rotate"))
    queries(graph, training("rotate", filtered_negatives=False))


@pytest.mark.parametrize("length", [{"epochs": 10**9}, {"steps": 2**31}])
def test_more_steps_than_can_be_counted(ring, length):
    with pytest.raises(ValueError, match=f"`{next(iter(length))}` must make fewer than"):
        queries(ring, training("complex", batch_size=32, **length))
