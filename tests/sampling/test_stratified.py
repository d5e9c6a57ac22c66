"""A share of a split's triples that keeps the distribution of its relations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg.kg import KnowledgeGraph, read_graph
from owkg.sampling import stratified_sample
from owkg.stats import divergence


def graph_of(counts, seed=0, **more):
    """A graph whose test split has so many triples of each relation, in random order."""
    relation = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    triples = np.stack([np.arange(len(relation)), relation, 0 * relation], axis=1).astype(np.int32)
    entities = tuple(map(str, range(max(1, len(triples)))))
    relations = tuple(f"r{i}" for i in range(len(counts)))
    return KnowledgeGraph(entities, relations, {"test": triples, **more})


@given(
    counts=st.lists(st.integers(0, 40), min_size=1, max_size=8),
    share=st.floats(0.01, 1),
    seed=st.integers(0, 2**32),
)
def test_each_relation_gives_its_share_to_less_than_one(counts, share, seed):
    total = sum(counts)
    graph = graph_of(counts)
    if not total:
        return
    if not round(share * total):
        with pytest.raises(ValueError, match="`share` must leave a triple"):
            stratified_sample(graph, share=share, seed=seed)
        return
    found = stratified_sample(graph, share=share, seed=seed)
    assert len(found) == round(share * total)
    drawn = np.bincount(found[:, 1], minlength=len(counts))
    assert (np.abs(drawn - share * np.array(counts)) < 1).all()
    # Rows of the split, each once, in its order.
    assert (np.diff(found[:, 0]) > 0).all()
    np.testing.assert_array_equal(found, graph.splits["test"][found[:, 0]])
    np.testing.assert_array_equal(found, stratified_sample(graph, share=share, seed=seed))


def test_every_triple_of_a_relation_is_as_likely():
    graph = graph_of([6, 3, 1])
    draws = [stratified_sample(graph, share=0.5, seed=seed) for seed in range(3000)]
    times = np.bincount(np.concatenate(draws)[:, 0], minlength=10) / 3000
    relation = graph.splits["test"][:, 1]
    # 3 of 6; of the others, one of two equal remainders: 1 or 2 of 3, and 0 or 1 of 1.
    assert abs(times - 0.5).max() < 4 * 0.5 / np.sqrt(3000)
    assert {tuple(np.bincount(one[:, 1], minlength=3)) for one in draws} == {(3, 1, 1), (3, 2, 0)}
    assert (relation == 2).sum() == 1


def test_all_and_other_columns():
    graph = graph_of([3, 2])
    np.testing.assert_array_equal(stratified_sample(graph, share=1, seed=0), graph.splits["test"])
    by_head = stratified_sample(graph, share=0.4, seed=0, by="head")
    assert len(by_head) == 2


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"share": 0}, r"`share` must be in \(0, 1\], got 0"),
        ({"share": 1.01}, r"`share` must be in \(0, 1\], got 1.01"),
        ({"share": -0.1}, "`share`"),
        ({"share": float("nan")}, "`share`"),
        ({"share": 0.05}, "`share` must leave a triple"),
        ({"split": "valid"}, r"`split` must be a split with triples \(test\), got 'valid'"),
        ({"split": "empty"}, "`split` must be a split with triples"),
        ({"split": "test_negatives"}, "`split` must be a split with triples"),
        ({"by": "score"}, "`by` must be one of head, relation, tail"),
        ({"seed": -1}, "`seed`"),
        ({"graph": "here"}, "`graph` must be a KnowledgeGraph"),
    ],
)
def test_bad_input(change, shown):
    more = {"empty": np.zeros((0, 3), np.int32), "test_negatives": np.array([[0, 0, 0]], np.int32)}
    arguments = {"graph": graph_of([3, 2], **more), "split": "test", "share": 0.5, "seed": 0} | change
    with pytest.raises(ValueError, match=shown):
        stratified_sample(arguments.pop("graph"), arguments.pop("split"), **arguments)


def test_the_published_sample_diverges_as_one_without_strata(owkg_data):
    """1,023 of 20,466 triples, relations "maintained by random sampling" (section 3.2), divergence .0889.

    A stratified sample has half of that; of samples without strata, more than half have less.
    """
    graph = read_graph(owkg_data / "fb15k237")
    test = graph.splits["test"]
    relations = [test[:, 1], stratified_sample(graph, share=0.05, seed=0)[:, 1]]
    rng = np.random.default_rng(0)
    relations += [rng.permutation(test[:, 1])[:1023] for _ in range(400)]
    counts = [np.bincount(part, minlength=graph.num_relations) for part in relations]
    assert (counts[0].sum(), counts[1].sum()) == (20_466, 1_023)
    stratified, *drawn = (divergence(counts[0], part) for part in counts[1:])
    assert stratified == pytest.approx(0.0451, abs=5e-5)
    low, median, high = np.quantile(drawn, [0.025, 0.5, 0.975])
    assert low < 0.0889 < high
    assert abs(median - 0.0889) < 0.005
