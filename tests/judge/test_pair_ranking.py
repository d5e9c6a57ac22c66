"""Entity-pair ranking against lists that are written out, and trec_eval."""

import itertools

import numpy as np
import polars as pl
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from owkg.judge import pair_ranking
from owkg.kg import KnowledgeGraph

ENTITIES, RELATIONS = ("a", "b", "c"), ("r", "s", "t")
PAIRS = list(itertools.product(range(3), range(3)))


def graph_of(**splits):
    """A graph from lists of (head, relation, tail) by ids."""
    return KnowledgeGraph(
        ENTITIES, RELATIONS, {name: np.array(rows, np.int32).reshape(-1, 3) for name, rows in splits.items()}
    )


def frame_of(rows):
    """Scored pairs from (head, relation, tail, score)."""
    columns = [(ENTITIES[h], RELATIONS[r], ENTITIES[t], float(score)) for h, r, t, score in rows]
    return pl.DataFrame(columns, schema=["head", "relation", "tail", "score"], orient="row")


def ap_of(order, true, count):
    """AP of one list; `true` of each pair in it."""
    hits, total = 0, 0.0
    for place, pair in enumerate(order, start=1):
        if pair in true:
            hits += 1
            total += hits / place
    return total / count


def orders(scores):
    """Every order of the pairs that the scores allow."""
    blocks = [[p for p in scores if scores[p] == level] for level in sorted({*scores.values()}, reverse=True)]
    for parts in itertools.product(*(itertools.permutations(block) for block in blocks)):
        yield [pair for part in parts for pair in part]


@settings(max_examples=60)
@given(data=st.data())
def test_by_writing_out_all_orders(data):
    pair_sets = st.sets(st.sampled_from(PAIRS), max_size=4)
    test = {r: data.draw(pair_sets) for r in range(3)}
    if not any(test.values()):
        return
    train = {r: data.draw(pair_sets) for r in range(3)}
    scores = {
        r: {pair: data.draw(st.integers(0, 2)) for pair in data.draw(st.permutations(PAIRS))[:6]}
        for r in range(3)
    }
    splits = {
        name: [(h, r, t) for r, own in of.items() for h, t in own]
        for name, of in (("test", test), ("train", train))
    }
    scored = frame_of([(h, r, t, s) for r, own in scores.items() for (h, t), s in own.items()])
    found = pair_ranking(scored, graph_of(**splits))
    expected = {}
    for r, true in test.items():
        listed = {p: s for p, s in scores[r].items() if p in true or p not in train[r]}
        if true:
            expected[RELATIONS[r]] = np.mean([ap_of(order, true, len(true)) for order in orders(listed)])
            row = found.relations.filter(relation=RELATIONS[r]).row(0, named=True)
            assert (row["triples"], row["pairs"]) == (len(true), len(listed))
            assert row["found"] == len(true & listed.keys())
    assert found.relations["relation"].to_list() == sorted(expected)
    np.testing.assert_allclose(found.relations["ap"], list(expected.values()), rtol=1e-12)
    weights = [len(own) for own in test.values() if own]
    assert found.weighted == pytest.approx(np.average(list(expected.values()), weights=weights))
    assert found.mean == pytest.approx(np.mean(list(expected.values())))


def test_against_trec_eval():
    rng = np.random.default_rng(0)
    labels = tuple(f"e{i}" for i in range(12))
    pairs = list(itertools.product(range(12), range(12)))
    run, qrel, rows, test = {}, {}, [], []
    for r in range(2):
        scores = rng.permutation(144)
        true = set(rng.choice(144, 20, replace=False).tolist())
        listed = rng.choice(144, 100, replace=False)
        rows += [(labels[pairs[i][0]], RELATIONS[r], labels[pairs[i][1]], float(scores[i])) for i in listed]
        test += [(pairs[i][0], r, pairs[i][1]) for i in true]
        run[RELATIONS[r]] = {str(i): float(scores[i]) for i in listed}
        qrel[RELATIONS[r]] = {str(i): int(i in true) for i in range(144)}
    graph = KnowledgeGraph(labels, RELATIONS, {"test": np.array(test, np.int32)})
    scored = pl.DataFrame(rows, schema=["head", "relation", "tail", "score"], orient="row")
    found = pair_ranking(scored, graph)
    by_query = pytrec_eval.RelevanceEvaluator(qrel, {"map"}).evaluate(run)
    expected = [by_query[relation]["map"] for relation in ("r", "s")]
    np.testing.assert_allclose(found.relations["ap"], expected, rtol=1e-9)


def test_limits():
    test = [(0, 0, 1), (1, 0, 2), (2, 1, 0)]
    graph = graph_of(train=[(0, 0, 0)], valid=[(0, 0, 1)], test=test)
    perfect = [(h, r, t, 1.0 * ((h, r, t) in test)) for r in range(2) for h, t in PAIRS]
    assert pair_ranking(frame_of(perfect), graph)[1:] == (1.0, 1.0)
    # A relation of which no pair is ranked, and one of which no triple is found.
    none = pair_ranking(frame_of([(0, 0, 2, 1.0)]), graph)
    assert none.relations.rows() == [("r", 2, 1, 0, 0.0), ("s", 1, 0, 0, 0.0)]
    half = pair_ranking(frame_of([(0, 0, 1, 2.0), (1, 0, 2, 1.0)]), graph)
    assert (half.weighted, half.mean) == pytest.approx((2 / 3, 1 / 2))
    # What train knows leaves the list, what the split holds does not.
    row = pair_ranking(frame_of([(0, 0, 0, 3.0), (0, 0, 1, 2.0)]), graph).relations.row(0, named=True)
    assert (row["pairs"], row["found"], row["ap"]) == (1, 1, 0.5)
    raw = pair_ranking(frame_of([(0, 0, 0, 3.0), (0, 0, 1, 2.0)]), graph, filter_splits=())
    assert raw.relations["ap"][0] == 0.25


@pytest.mark.parametrize(
    ("change", "split", "shown"),
    [
        (lambda f: f, "valid", "`split` must be a split with triples .*test.*, got 'valid'"),
        (lambda f: f, "empty", "`split` must be a split with triples"),
        (lambda f: pl.concat([f, f]), "test", "`scored` must score each pair of a relation once"),
        (lambda f: f.drop("score"), "test", "`scored` must have the columns .*; score is missing"),
        (lambda f: f.with_columns(head=pl.lit("x")), "test", "labels of the graph, got the head 'x'"),
        (lambda f: f.with_columns(score=pl.lit(float("nan"))), "test", "scores that are numbers, got NaN"),
    ],
)
def test_bad_input(change, split, shown):
    graph = graph_of(test=[(0, 0, 1)], empty=[])
    with pytest.raises(ValueError, match=shown):
        pair_ranking(change(frame_of([(0, 0, 1, 1.0)])), graph, split)
