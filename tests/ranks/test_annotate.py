"""What a graph adds to a rank table."""

import numpy as np
import polars as pl
import pytest

from owkg.kg import KnowledgeGraph
from owkg.kg.popularity import half_links
from owkg.ranks import annotated, other_candidates, rank_table, triple_ids

GRAPH = KnowledgeGraph(
    ("a", "b", "c", "d"),
    ("r", "s"),
    {
        "train": np.array([[0, 0, 1], [0, 0, 2], [3, 1, 1], [1, 1, 1]], np.int32),
        "valid": np.array([[0, 0, 3]], np.int32),
        "test": np.array([[2, 0, 1], [0, 1, 1]], np.int32),
    },
)
TEST = GRAPH.splits["test"]
TABLE = pl.concat([rank_table(GRAPH, np.zeros((2, 4)), TEST, side) for side in ("head", "tail")])
BARE = TABLE.drop("popularity", "relation_popularity", "category")
IDS = BARE.with_columns(
    head=pl.Series([2, 0, 2, 0]), relation=pl.Series([0, 1, 0, 1]), tail=pl.Series([1, 1, 1, 1])
)


@pytest.mark.parametrize("table", [BARE, IDS], ids=["labels", "ids"])
def test_popularity_and_category_are_counted_in_train(table):
    found = annotated(table, GRAPH)
    # Answers: c, a (heads), b, b (tails); a loop counts once.
    assert found["popularity"].to_list() == [1, 2, 3, 3]
    assert found["relation_popularity"].to_list() == [1, 0, 1, 2]
    assert found["category"].to_list() == ["1-N", "N-1", "1-N", "N-1"]
    # (c, r) is in no training triple, (r, b) is; (a, s) is not, (s, b) is.
    assert found["half_link"].to_list() == ["(r, t) seen"] * 4
    assert found.drop("popularity", "relation_popularity", "category", "half_link").equals(table)


def test_what_the_table_says_is_kept():
    table = BARE.with_columns(popularity=pl.lit(77), category=pl.lit("mine"))
    found = annotated(table, GRAPH)
    assert found["popularity"].to_list() == [77] * 4
    assert found["category"].to_list() == ["mine"] * 4
    assert found["relation_popularity"].to_list() == [1, 0, 1, 2]


def test_the_same_as_rank_table_gives():
    assert annotated(BARE, GRAPH).select(TABLE.columns).equals(TABLE)


def test_half_links_are_what_counting_gives():
    rng = np.random.default_rng(0)
    facts, triples = (np.stack([rng.integers(n, size=m) for n in (9, 4, 9)], 1) for m in (12, 500))
    heads = {(h, r) for h, r, _ in facts.tolist()}
    tails = {(r, t) for _, r, t in facts.tolist()}
    names = {(True, True): "both seen", (True, False): "(h, r) seen", (False, True): "(r, t) seen"}
    expected = [names.get(((h, r) in heads, (r, t) in tails), "neither seen") for h, r, t in triples.tolist()]
    assert half_links(facts, triples, 4).to_list() == expected
    assert len(set(expected)) == 4
    assert half_links(facts[:0], triples, 4).unique().to_list() == ["neither seen"]


def test_triple_ids():
    np.testing.assert_array_equal(triple_ids(BARE, GRAPH), np.concatenate([TEST, TEST]))
    np.testing.assert_array_equal(triple_ids(IDS, GRAPH), np.concatenate([TEST, TEST]))


def test_labels_that_are_numbers_are_labels():
    graph = KnowledgeGraph(("10", "20", "3", "4"), ("7", "8"), GRAPH.splits)
    table = BARE.with_columns(head=pl.lit(3), relation=pl.lit(7), tail=pl.lit(20))
    np.testing.assert_array_equal(triple_ids(table, graph), np.tile([2, 0, 1], (4, 1)))


def test_candidates_of_the_graph():
    assert other_candidates(BARE, GRAPH) == 0
    off = BARE.with_columns(candidates=pl.Series([4, *BARE["candidates"].to_list()[1:]]))
    assert other_candidates(off, GRAPH) == int(BARE["candidates"][0] != 4)
    assert other_candidates(BARE, GRAPH, filter_splits=["valid"]) > 0


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [("head", "nobody", "row 1: the graph has no entity 'nobody'"), ("relation", "q", "no relation 'q'")],
)
def test_unknown_labels(column, value, shown):
    with pytest.raises(ValueError, match=shown):
        annotated(BARE.with_columns(pl.lit(value).alias(column)), GRAPH)


@pytest.mark.parametrize("value", [4, 2**40])
def test_ids_out_of_range(value):
    with pytest.raises(ValueError, match=f"no entity {value}"):
        annotated(IDS.with_columns(head=pl.lit(value)), GRAPH)


def test_a_graph_without_the_split():
    with pytest.raises(ValueError, match="train"):
        annotated(BARE, GRAPH, train="training")
    with pytest.raises(ValueError, match="filter_splits"):
        other_candidates(BARE, GRAPH, filter_splits=["all"])


@pytest.mark.parametrize("function", [annotated, other_candidates, triple_ids])
def test_what_is_no_graph_or_no_table(function):
    with pytest.raises(ValueError, match="`graph`"):
        function(BARE, None)
    with pytest.raises(ValueError, match="`table`"):
        function(None, GRAPH)


def test_ids_of_another_order_are_an_error():
    triples = np.random.default_rng(0).permutation(np.indices((10, 2, 10)).reshape(3, -1).T)[:60]
    splits = {"train": triples[:40].astype(np.int32), "test": triples[40:].astype(np.int32)}
    names = tuple(f"e{i}" for i in range(10))
    graph = KnowledgeGraph(names, ("r", "s"), splits)
    columns = dict(zip(("head", "relation", "tail"), splits["test"].T, strict=True))
    row = {"side": "tail", "optimistic": 1, "pessimistic": 1, "candidates": 10}
    own = pl.DataFrame(columns).with_columns(**{key: pl.lit(value) for key, value in row.items()})
    assert "popularity" in annotated(own, graph).columns
    turned = own.with_columns(head=9 - pl.col("head"), tail=9 - pl.col("tail"))
    by_number = KnowledgeGraph(tuple(map(str, range(10))), ("r0", "r1"), splits)
    as_text = turned.with_columns(relation=pl.format("r{}", "relation"))
    for other, whose in ((turned, graph), (as_text, by_number)):
        with pytest.raises(ValueError, match="of 20 triples are in no split of the graph, such as"):
            annotated(other, whose)
    # Nothing is known of the test where there is none, and what labels say is what is meant.
    annotated(turned, graph._replace(splits={"train": splits["train"]}))
    labels = [pl.format("e{}", name).alias(name) for name in ("head", "tail")]
    labelled = turned.with_columns(*labels, pl.Series("relation", ["r", "s"]).gather(turned["relation"]))
    annotated(labelled, graph)
