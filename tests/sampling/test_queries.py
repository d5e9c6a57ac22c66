"""Queries are counted right, drawn alike, and their answers found."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from owkg.sampling import PARTS, SampledQueries, answers
from owkg.sampling.facts import sorted_facts
from owkg.sampling.queries import all_queries, drawn, eligible

TRIPLES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 4), st.integers(0, 3)),
    min_size=1,
    max_size=25,
    unique_by=lambda row: row[:3],
)


def _facts(rows):
    rows = np.array(sorted(rows), np.int32)
    return np.ascontiguousarray(rows[:, :3]), rows[:, 3].astype(np.int8)


def _made(full, sparse):
    size = len(full)
    ids = np.arange(size, dtype=np.int32)
    columns = (np.array(column, np.int32) for column in (full, sparse, [0] * size))
    return SampledQueries(np.ones(size, bool), ids, np.zeros(size, np.int32), *columns)


@given(rows=TRIPLES, both_sides=st.booleans())
def test_answers_are_counted_by_part(rows, both_sides):
    facts, part = _facts(rows)
    found = all_queries(facts, part, 3, both_sides=both_sides)
    counted = {}
    for h, r, t, p in rows:
        for key in [(True, h, r), (False, t, r)][: 1 + both_sides]:
            counted.setdefault(key, []).append(PARTS[p])
    assert list(zip(*(c.tolist() for c in found[:3]), strict=True)) == sorted(
        counted, key=lambda key: (not key[0], *key[1:])
    )
    for key, full, sparse, train in zip(
        zip(*(c.tolist() for c in found[:3]), strict=True), found.full, found.sparse, found.train, strict=True
    ):
        parts = counted[key]
        assert sparse == parts.count("test_sparse")
        assert full == sparse + parts.count("missing")
        assert train == parts.count("train")


@given(rows=TRIPLES, both_sides=st.booleans(), picked=st.randoms(use_true_random=False))
def test_the_answers_to_drawn_queries_are_found(rows, both_sides, picked):
    facts, part = _facts(rows)
    every = all_queries(facts, part, 3, both_sides=both_sides)
    size = len(every.entity)
    chosen = sorted(picked.sample(range(size), picked.randint(1, size)))
    queries = SampledQueries(*(column[chosen] for column in every))
    query, fact = answers(facts, queries, 3)
    expected = [
        (q, f)
        for q, f in itertools.product(range(len(chosen)), range(len(facts)))
        if facts[f, 0 if queries.asks_tail[q] else 2] == queries.entity[q]
        and facts[f, 1] == queries.relation[q]
    ]
    assert list(zip(query.tolist(), fact.tolist(), strict=True)) == expected


def test_eligible_queries_have_answers_enough_and_a_sparse_one():
    queries = _made([10, 10, 9, 30], [1, 0, 9, 30])
    assert eligible(queries, 10).tolist() == [True, False, False, True]


def test_every_eligible_query_is_drawn_as_often():
    full = np.where(np.arange(30) % 3, 10, 5)  # 20 of 30
    queries = _made(full, np.ones(30))
    rng, times, picked = np.random.default_rng(0), 4000, np.zeros(30)
    for _ in range(times):
        found = drawn(queries, rng.random(30), min_answers=10, num_queries=5)
        assert (np.diff(found.entity) > 0).all()
        picked[found.entity] += 1
    assert (picked[full < 10] == 0).all()
    share = 5 / 20
    # Without replacement: 5 of 20 at a time.
    gap = ((picked[full == 10] - times * share) ** 2).sum() / (times * share * (1 - share)) * 19 / 20
    assert 0.001 < stats.chi2.sf(gap, 19) < 0.999


def test_all_may_be_drawn():
    queries = _made([3, 2, 1], [1, 1, 0])
    found = drawn(queries, np.array([0.9, 0.1, 0.5]), min_answers=2, num_queries=None)
    assert found.entity.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("wanted", "min_answers", "message"),
    [
        (3, 10, "at most 2, .* at least 10 full-test .* got 3; with `min_answers` 7 there are 4"),
        (5, 10, "at most 2, .* got 5; whatever `min_answers` there are 4"),
        (None, 50, "at most 0, .* got all; with `min_answers` 12 there are 1"),
    ],
)
def test_too_few_are_told_and_what_would_help(wanted, min_answers, message):
    queries = _made([12, 10, 7, 7, 30], [1, 2, 3, 4, 0])
    with pytest.raises(ValueError, match=message):
        drawn(queries, np.arange(5.0), min_answers=min_answers, num_queries=wanted)


def test_facts_keep_their_query_apart_whatever_the_ids():
    facts = sorted_facts(np.array([[0, 1, 1], [1, 0, 0]], np.int32), 2, 2)
    found = all_queries(facts, np.zeros(2, np.int8), 2, both_sides=True)
    assert len(found.entity) == 4


def test_no_queries_have_no_answers():
    query, fact = answers(np.array([[0, 0, 1]], np.int32), _made([], []), 1)
    assert query.tolist() == fact.tolist() == []
