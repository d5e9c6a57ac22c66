"""The rank table of scores over a graph."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg.kg import KnowledgeGraph, known_answers, num_candidates
from owkg.ranks import rank_table
from owkg.ranks.build import rank

SPLITS = ("train", "valid", "test")


def random_graph(seed: int, entities: int = 5, relations: int = 2) -> KnowledgeGraph:
    rng = np.random.default_rng(seed)
    splits = {
        name: np.stack([rng.integers(n, size=6) for n in (entities, relations, entities)], 1).astype(np.int32)
        for name in SPLITS
    }
    names = tuple(f"e{i}" for i in range(entities)), tuple(f"r{i}" for i in range(relations))
    return KnowledgeGraph(*names, splits)


@given(
    seed=st.integers(0, 10**6),
    side=st.sampled_from(["head", "tail"]),
    splits=st.sets(st.sampled_from(SPLITS)),
)
def test_against_sets_of_facts(seed, side, splits):
    graph = random_graph(seed)
    triples = graph.splits["test"]
    scores = np.random.default_rng(seed).integers(0, 4, (len(triples), graph.num_entities)).astype(float)
    table = rank_table(graph, scores, triples, side, filter_splits=sorted(splits), model="m")
    facts = {tuple(t) for name in splits for t in graph.splits[name].tolist()}
    train = graph.splits["train"].tolist()
    for row, own, (h, r, t) in zip(table.iter_rows(named=True), scores, triples.tolist(), strict=True):
        answer = h if side == "head" else t
        others = [
            own[e]
            for e in range(graph.num_entities)
            if e != answer and ((e, r, t) if side == "head" else (h, r, e)) not in facts
        ]
        assert row["optimistic"] == 1 + sum(s > own[answer] for s in others)
        assert row["pessimistic"] == 1 + sum(s >= own[answer] for s in others)
        assert row["candidates"] == 1 + len(others)
        assert (row["head"], row["relation"], row["tail"]) == (f"e{h}", f"r{r}", f"e{t}")
        assert (row["side"], row["model"]) == (side, "m")
        assert row["popularity"] == sum(answer in (a, b) for a, _, b in train)
        assert row["relation_popularity"] == sum(answer in (a, b) and q == r for a, q, b in train)


def test_candidates_are_those_that_the_graph_counts():
    graph = random_graph(1)
    triples = graph.splits["test"]
    facts = np.concatenate(list(graph.splits.values()))
    for side in ("head", "tail"):
        known = known_answers(facts, side, num_entities=5, num_relations=2)
        table = rank_table(graph, np.zeros((6, 5)), triples, side)
        assert table["candidates"].to_list() == num_candidates(known, triples).tolist()
        assert table["pessimistic"].to_list() == table["candidates"].to_list()


def test_columns_are_left_out_when_not_asked_for():
    graph = random_graph(0)
    table = rank_table(graph, np.zeros((6, 5)), graph.splits["test"], "tail", popularity=False)
    triple = ["head", "relation", "tail", "side"]
    assert table.columns == [*triple, "optimistic", "pessimistic", "candidates", "filtered"]


@pytest.mark.parametrize("side", ["head", "tail", ["head", "tail"] * 3])
@pytest.mark.parametrize(
    ("splits", "filtered"), [(SPLITS, True), (["test"], True), (["train", "valid"], False), ([], False)]
)
def test_filtered_says_whether_the_filter_knows_every_triple(side, splits, filtered):
    graph = random_graph(3)
    test = graph.splits["test"]
    others = {tuple(t) for name in ("train", "valid") for t in graph.splits[name].tolist()}
    assert not {tuple(t) for t in test.tolist()} <= others
    table = rank_table(graph, np.zeros((6, 5)), test, side, filter_splits=splits)
    assert table["filtered"].to_list() == [filtered] * 6


def test_filtered_is_false_if_the_filter_does_not_know_one_triple():
    graph = random_graph(3)
    facts = {tuple(t) for triples in graph.splits.values() for t in triples.tolist()}
    unknown = next((h, 0, t) for h in range(5) for t in range(5) if (h, 0, t) not in facts)
    triples = np.concatenate([graph.splits["test"], [unknown]])
    assert not rank_table(graph, np.zeros((7, 5)), triples, "tail")["filtered"].any()


def test_tolerance_and_chunk_are_passed_on():
    graph = random_graph(0)
    scores = np.arange(30.0).reshape(6, 5)
    for chunk in (None, 1, 4):
        table = rank_table(graph, scores, graph.splits["test"], "tail", tolerance=100, chunk=chunk)
        assert table["pessimistic"].to_list() == table["candidates"].to_list()
        assert set(table["optimistic"]) == {1}


@pytest.mark.parametrize("of", [np.float32, np.float64, np.float16, jnp.bfloat16])
def test_the_score_of_each_answer(of):
    graph = random_graph(0)
    test = graph.splits["test"]
    scores = np.random.default_rng(1).normal(size=(6, 5)).astype(of)
    side = np.array(["head", "tail"] * 3)
    table = rank_table(graph, scores, test, side, score=True)
    answer = [row[0] if one == "head" else row[2] for row, one in zip(test, side, strict=True)]
    assert table["score"].to_list() == [float(scores[i, e]) for i, e in enumerate(answer)]
    assert table.drop("score").equals(rank_table(graph, scores, test, side))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"scores": np.zeros((6, 4))},
            r"`scores` must be of shape \[triples, entities\], \(6, 5\), got shape",
        ),
        ({"side": "both"}, '`side` must be "head" or "tail", got \'both\''),
        ({"side": ["head", "tail"]}, r"`side` must be one string, or one for each of 6 triples, got <U4 of"),
        ({"side": None}, "`side` must be one string, or one for each of 6 triples, got object"),
        ({"side": ["tail"] * 5 + ["x"]}, r"`side` must be \"head\" or \"tail\", got 'x' at index \(5,\)"),
        ({"triples": [[0, 0, 5]] * 6}, "`triples` must hold tail ids"),
        ({"score": "no"}, "`score` must be True or False, got 'no'"),
        ({"score": True, "tolerance": 0.1}, "`tolerance` must be 0 with it, got 0.1"),
        ({"filter_splits": ["dev"]}, "`filter_splits` must be among train, valid, test, got 'dev'"),
        (
            {"scores": np.full((6, 5), np.nan), "triples": [[3, 1, 4]] * 6},
            r"`scores` must not be NaN, got NaN for query 0 \(the tail of 'e3', 'r1', 'e4'\), entity 0",
        ),
    ],
)
def test_bad_input_is_named(change, message):
    graph = random_graph(0)
    call = {"scores": np.zeros((6, 5)), "triples": graph.splits["test"], "side": "tail"} | change
    with pytest.raises(ValueError, match=message):
        rank_table(graph, **call)


@pytest.mark.parametrize("graph", [None, "graph", ((), (), {})])
def test_anything_but_a_graph_is_refused(graph):
    with pytest.raises(ValueError, match="`graph` must be a KnowledgeGraph, got"):
        rank_table(graph, np.zeros((1, 5)), [[0, 0, 1]], "tail")


def test_false_triples_are_no_filter_and_popularity_needs_train():
    graph = random_graph(0)
    graph.splits["test_negatives"] = graph.splits.pop("train")
    call = {"scores": np.zeros((6, 5)), "triples": graph.splits["test"], "side": "tail"}
    with pytest.raises(ValueError, match="`filter_splits` must be among valid, test, got 'test_negatives'"):
        rank_table(graph, **call, filter_splits=["test_negatives"])
    with pytest.raises(ValueError, match="`popularity` needs a split train, got valid, test, test_negatives"):
        rank_table(graph, **call, filter_splits=["valid"])


def test_columns_of_another_order_are_named_by_their_labels():
    graph = random_graph(3, entities=7, relations=3)
    rng = np.random.default_rng(1)
    test = graph.splits["test"]
    scores = {side: rng.normal(size=(len(test), 7)) for side in ("head", "tail")}
    scores["relation"] = rng.normal(size=(len(test), 3))
    order, swap = rng.permutation(7), rng.permutation(3)
    moved = {side: of[:, swap if side == "relation" else order] for side, of in scores.items()}
    labels = {"entities": np.array(graph.entities)[order], "relations": [graph.relations[i] for i in swap]}
    assert rank(moved, graph, **labels).frame.equals(rank(scores, graph).frame)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"entities": "abcde"}, "`entities` must be labels, got 'abcde'"),
        ({"entities": ["e0", "e1"]}, r"`entities` must be all labels of .* no column for 3 of 5, such as"),
        ({"entities": [*(f"e{i}" for i in range(5)), "x"]}, "`entities` must be in the graph, got 'x'"),
        ({"entities": [*(f"e{i}" for i in range(5)), "e1"]}, "`entities` must be distinct labels"),
        ({"relations": ["r0"]}, r"`relations` must be all labels of .* 1 of 2, such as 'r1'"),
    ],
)
def test_labels_of_columns_are_those_of_the_graph(labels, message):
    graph = random_graph(0)
    with pytest.raises(ValueError, match=message):
        rank(np.zeros((len(graph.splits["test"]), 5)), graph, **labels)
