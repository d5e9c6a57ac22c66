"""The index of known answers against sets in a dictionary."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg.kg import answer_ranges, is_known, known_answers, num_candidates, read_graph


@st.composite
def worlds(draw):
    """(triples, other triples, entities, relations): small, with many collisions."""
    entities, relations = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    entity, relation = st.integers(0, entities - 1), st.integers(0, relations - 1)
    triples = st.lists(st.tuples(entity, relation, entity), max_size=30)
    return draw(triples), draw(triples), entities, relations


SIDES = pytest.mark.parametrize("side", ["head", "tail"])


def _index(world, side):
    triples, _, entities, relations = world
    return known_answers(triples, side, num_entities=entities, num_relations=relations)


def _parts(triple, side):
    head, relation, tail = triple
    return (head, relation, tail) if side == "tail" else (tail, relation, head)


def _oracle(triples, side):
    answers = {}
    for triple in triples:
        entity, relation, answer = _parts(triple, side)
        answers.setdefault((entity, relation), set()).add(answer)
    return answers


@SIDES
@given(world=worlds())
def test_every_query_has_its_answers(side, world):
    known, oracle = _index(world, side), _oracle(world[0], side)
    relations = world[3]
    queries = [(int(key) // relations, int(key) % relations) for key in known.keys]
    assert queries == sorted(oracle)
    bounds = zip(known.offsets[:-1], known.offsets[1:], strict=True)
    assert [known.answers[a:b].tolist() for a, b in bounds] == [sorted(oracle[q]) for q in queries]
    assert (known.keys.dtype, known.offsets.dtype, known.answers.dtype) == (np.int64, np.int64, np.int32)
    assert known.offsets[0] == 0


@SIDES
@given(world=worlds())
def test_ranges_are_those_of_the_query(side, world):
    known, oracle = _index(world, side), _oracle(world[0], side)
    _, _, entities, relations = world
    entity, relation = np.divmod(np.arange(entities * relations), relations)
    start, stop = answer_ranges(known, entity, relation)
    for e, r, a, b in zip(entity, relation, start, stop, strict=True):
        assert known.answers[a:b].tolist() == sorted(oracle.get((e, r), ()))
    assert start.dtype == stop.dtype == np.int64


@SIDES
@given(world=worlds())
def test_queries_that_are_asked_have_all_their_answers(side, world):
    triples, asked, entities, relations = world
    sizes = {"num_entities": entities, "num_relations": relations}
    whole, part = _index(world, side), known_answers(triples, side, **sizes, asked=asked)
    assert set(part.keys) <= set(whole.keys)
    for triple in asked:
        entity, relation, _ = _parts(triple, side)
        ranges = (slice(*answer_ranges(one, entity, relation)) for one in (whole, part))
        here, there = (one.answers[own].tolist() for one, own in zip((whole, part), ranges, strict=True))
        assert here == there
    np.testing.assert_array_equal(num_candidates(part, asked), num_candidates(whole, asked))
    np.testing.assert_array_equal(is_known(part, asked), is_known(whole, asked))


def test_most_queries_that_nobody_asks_are_left_out():
    rng = np.random.default_rng(0)
    facts = np.stack([rng.integers(0, n, 20_000) for n in (5000, 7, 5000)], axis=1)
    sizes = {"num_entities": 5000, "num_relations": 7}
    asked = facts[:50]
    part = known_answers(facts, "tail", **sizes, asked=asked)
    queries = len(np.unique(asked[:, :2], axis=0))
    others = len(np.unique(facts[:, :2], axis=0)) - queries
    assert queries <= len(part.keys) < queries + others / 30
    assert not len(known_answers(facts, "tail", **sizes, asked=facts[:0]).keys)


@SIDES
@given(world=worlds())
def test_candidates_by_brute_force(side, world):
    known, oracle = _index(world, side), _oracle(world[0], side)
    triples = world[0] + world[1]
    expected, facts = [], []
    for triple in triples:
        entity, relation, answer = _parts(triple, side)
        answers = oracle.get((entity, relation), set())
        expected.append(len([c for c in range(world[2]) if c == answer or c not in answers]))
        facts.append(answer in answers)
    assert num_candidates(known, triples).tolist() == expected
    assert is_known(known, triples).tolist() == facts


@given(world=worlds())
def test_order_and_repetition_do_not_matter(world):
    triples, others, entities, relations = world
    one, two = (_index((t, others, entities, relations), "tail") for t in (triples, triples[::-1] * 2))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_single_query_gives_a_range_without_axis():
    known = known_answers([[2, 1, 0], [2, 1, 1]], "tail", num_entities=3, num_relations=2)
    start, stop = answer_ranges(known, 2, 1)
    assert (start.shape, int(start), int(stop)) == ((), 0, 2)


def test_an_entity_and_many_relations_broadcast():
    known = known_answers([[2, 1, 0], [2, 1, 1]], "tail", num_entities=3, num_relations=2)
    start, stop = answer_ranges(known, 2, [0, 1, 0])
    assert (stop - start).tolist() == [0, 2, 0]


def test_the_largest_ids_do_not_overflow():
    most = 2**31 - 1
    last = most - 1
    triples = np.array([[last, last, last], [5, last, last], [last, last, 0], [5, last, last]])
    known = known_answers(triples, "head", num_entities=most, num_relations=most)
    assert known.keys.tolist() == [last, last * most + last]
    assert known.offsets.tolist() == [0, 1, 3]
    assert known.answers.tolist() == [last, 5, last]
    assert num_candidates(known, triples).tolist() == [last, last, most, last]


def test_without_triples_nothing_is_known():
    known = known_answers(np.empty((0, 3), np.int32), "head", num_entities=4, num_relations=1)
    assert num_candidates(known, [[0, 0, 1]]).tolist() == [4]
    assert num_candidates(known, []).tolist() == []
    start, stop = answer_ranges(known, [1, 2], [0, 0])
    assert start.tolist() == stop.tolist() == [0, 0]


def test_memory_is_linear_in_the_triples():
    triples = np.random.default_rng(0).integers(0, 1000, (5000, 3))
    known = known_answers(triples, "tail", num_entities=1000, num_relations=1000)
    stored = known.keys.nbytes + known.offsets.nbytes + known.answers.nbytes
    assert stored <= 8 * 5000 + 8 * 5001 + 4 * 5000


def test_wrong_input_is_named():
    sizes = {"num_entities": 3, "num_relations": 2}
    known = known_answers([[0, 0, 1]], "tail", **sizes)
    bad = [
        (lambda: known_answers([[0, 0, 1]], "both", **sizes), "`side` must be .*'both'"),
        (lambda: known_answers([[0, 0, 1]], None, **sizes), "`side` must be .*None"),
        (lambda: known_answers([[0, 0, 3]], "tail", **sizes), r"`triples` .* tail ids in \[0, 3\), got 3"),
        (lambda: known_answers([[0, 1, 2], [0, 2, 0]], "tail", **sizes), "relation ids .* got 2 in row 1"),
        (lambda: known_answers([[-1, 0, 0]], "tail", **sizes), "head ids .* got -1"),
        (lambda: known_answers([[0.0, 0, 1]], "tail", **sizes), "`triples` must be whole numbers"),
        (lambda: known_answers([[0, 1], [0, 1, 2]], "tail", **sizes), "`triples` must be whole numbers"),
        (lambda: known_answers([[0, 1]], "tail", **sizes), r"\[triples, 3\], got \(1, 2\)"),
        (lambda: known_answers([[0, 0, 1]], "tail", num_entities=0, num_relations=1), "`num_entities`"),
        (lambda: known_answers([[0, 0, 1]], "tail", num_entities=3, num_relations=1.5), "`num_relations`"),
        (lambda: known_answers([[0, 0, 1]], "tail", num_entities=2**31, num_relations=1), "`num_entities`"),
        (lambda: known_answers([], "tail", **sizes, asked=[[0, 0, 3]]), r"`asked` .* tail ids .* got 3"),
        (lambda: answer_ranges(known, [3], [0]), r"`entity` must be an id in \[0, 3\), got 3"),
        (lambda: answer_ranges(known, [0], [-1]), "`relation` .* got -1"),
        (lambda: answer_ranges(known, [0, 1], [0, 1, 0]), "broadcast"),
        (lambda: answer_ranges(known, ["a"], [0]), "`entity`"),
        (lambda: num_candidates(known, [[0, 0, 3]]), "`triples`"),
    ]
    for call, message in bad:
        with pytest.raises(ValueError, match=message):
            call()


def test_candidates_of_nations(owkg_data):
    graph = read_graph(owkg_data / "nations")
    facts = np.concatenate(list(graph.splits.values()))
    sizes = {"num_entities": graph.num_entities, "num_relations": graph.num_relations}
    for side in ("head", "tail"):
        found = num_candidates(known_answers(facts, side, **sizes), graph.splits["test"])
        oracle = _oracle(facts.tolist(), side)
        test = graph.splits["test"].tolist()
        assert found.tolist() == [14 + 1 - len(oracle[_parts(triple, side)[:2]]) for triple in test]
