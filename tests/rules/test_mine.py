"""Rules and their answers against groundings one by one."""

from itertools import permutations, product

import numpy as np
import pytest

from owkg.errors import ArgumentError
from owkg.kg import KnowledgeGraph
from owkg.rules import Paths, Queries, Rules, mine, predict, queries_of

N, R = 7, 2


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    rng = np.random.default_rng(5)
    triples = np.unique(
        np.stack([rng.integers(N, size=34), rng.integers(R, size=34), rng.integers(N, size=34)], axis=1),
        axis=0,
    ).astype(np.int32)
    entities, relations = tuple(f"e{i}" for i in range(N)), tuple(f"r{i}" for i in range(R))
    return KnowledgeGraph(entities, relations, {"train": triples[:-6], "test": triples[-6:]})


def directed(graph: KnowledgeGraph) -> set[tuple[int, int, int]]:
    found = {(h, r, t) for h, r, t in graph.splits["train"].tolist() if h != t}
    return found | {(t, r + R, h) for h, r, t in found}


def pairs_of(facts: set[tuple[int, int, int]], body: tuple[int, ...]) -> dict[tuple[int, int], int]:
    """Paths of different entities along a body, by their ends."""
    found: dict[tuple[int, int], int] = {}
    for path in permutations(range(N), len(body) + 1):
        if all((a, r, b) in facts for a, r, b in zip(path, body, path[1:], strict=False)):
            found[path[0], path[-1]] = found.get((path[0], path[-1]), 0) + 1
    return found


def held_of(facts: set[tuple[int, int, int]], rule: tuple[int, int, int, int]) -> set[int]:
    """The X of which the body of r(X,c) <- b(X,d) holds; d -1: any; b -1: no body."""
    head, body, c, d = rule
    if body < 0:
        return {x for x in range(N) if x != c and any((x, head, y) in facts for y in range(N))}
    ends = [d] if d >= 0 else [a for a in range(N) if a != c]
    return {x for x in range(N) if x != c and any((x, body, a) in facts for a in ends)}


@pytest.mark.parametrize("length", [1, 2, 3])
def test_counts_are_of_paths_of_different_entities(graph: KnowledgeGraph, length: int) -> None:
    paths, facts = Paths(graph), directed(graph)
    for body in product(range(2 * R), repeat=length):
        counts = paths.counts(body)
        assert dict(zip(zip(*counts.nonzero(), strict=True), counts.data, strict=True)) == pairs_of(
            facts, body
        )
        assert (paths.counts(body, np.array([4, 1])).toarray() == counts.toarray()[[4, 1]]).all()


def test_rules_are_all_that_groundings_allow(graph: KnowledgeGraph) -> None:
    facts, rules = directed(graph), mine(graph, length=3, min_confidence=0.1)
    wanted = {}
    for length, head in product((1, 2, 3), range(R)):
        for body in product(range(2 * R), repeat=length):
            pairs = pairs_of(facts, body)
            support = sum((x, head, y) in facts for x, y in pairs)
            if body != (head,) and support >= 2 and support >= 0.1 * (len(pairs) + 5):
                wanted[head, *body, *(-1,) * (3 - length), -1, -1] = support, len(pairs)
    for head, body, c, d in product(range(2 * R), range(2 * R), range(N), range(-1, N)):
        bodies = held_of(facts, (head, body, c, d))
        support = sum((x, head, c) in facts for x in bodies)
        if (head, c) != (body, d) and support >= 2 and support >= 0.1 * (len(bodies) + 5):
            wanted[head, body, -1, -1, c, d] = support, len(bodies)
    keys = np.column_stack([rules.head, rules.body, rules.constant, rules.end]).tolist()
    got = dict(zip(map(tuple, keys), zip(rules.support, rules.bodies, strict=True), strict=True))
    assert got == wanted
    assert len(got) == len(rules.head) > 50


def test_bodies_of_rules_with_constants_have_groundings(graph: KnowledgeGraph) -> None:
    facts, every, few = directed(graph), mine(graph), mine(graph, min_groundings=4)
    bound = every.constant >= 0
    xs = [
        {x for x, r, y in facts if r == body and end in (y, -1)}
        for body, end in zip(every.body[:, 0].tolist(), every.end.tolist(), strict=True)
    ]
    kept = ~bound | (np.array(list(map(len, xs))) >= 4)
    assert 0 < (~kept).sum() < bound.sum()
    assert all((a == b).all() for a, b in zip(every.some(kept), few, strict=True))


def test_rule_without_body_orders_all_queries() -> None:
    # 110 heads have the tail 0, and 10 the tail 1: of 120 facts.
    triples = [(x, 0, 0) for x in range(2, 112)] + [(x, 0, 1) for x in range(112, 122)]
    graph = KnowledgeGraph(tuple(f"e{i}" for i in range(123)), ("r",), {"train": np.array(triples, np.int32)})
    rules = mine(graph)
    bare = rules.some((rules.constant >= 0) & (rules.body[:, 0] < 0))
    assert [column.tolist() for column in (bare.head, bare.constant, bare.support, bare.bodies)] == [
        [0], [0], [110], [120],
    ]  # fmt: skip
    assert bare.confidence.tolist() == [pytest.approx(0.01 * 110 / 125)]
    found = predict(graph, bare, Queries(np.array([122]), np.array([0])))
    assert (found.query.tolist(), found.answer.tolist(), found.score.tolist()) == ([0], [0], [1])


def lists_of(graph: KnowledgeGraph, rules: Rules, entity: int, relation: int) -> dict[int, list[int]]:
    """The rules that give each answer to a query, by groundings."""
    facts, found = directed(graph), {}
    for i in range(len(rules.head)):
        head, constant, end = (int(x[i]) for x in (rules.head, rules.constant, rules.end))
        body = tuple(b for b in rules.body[i].tolist() if b >= 0)
        if constant < 0:
            pairs = pairs_of(facts, body)
            held = {(head, x, y) for x, y in pairs} | {(head + R, y, x) for x, y in pairs}
        else:
            xs = held_of(facts, (head, body[0] if body else -1, constant, end))
            held = {(head, x, constant) for x in xs} | {((head + R) % (2 * R), constant, x) for x in xs}
        for answer in range(N):
            if answer != entity and (relation, entity, answer) in held:
                found.setdefault(answer, []).append(i)
    return found


@pytest.mark.parametrize("aggregate", ["maximum", "noisy-or", "non-redundant-noisy-or"])
def test_answers_are_ordered_as_defined(graph: KnowledgeGraph, aggregate: str) -> None:
    rules, queries = mine(graph, length=2), queries_of(graph, None)
    found = predict(graph, rules, queries, aggregate=aggregate, top=N)
    frequency = np.bincount([t for _, _, t in directed(graph)], minlength=N)
    confidence = rules.confidence.tolist()
    for number, (entity, relation) in enumerate(zip(*map(np.ndarray.tolist, queries), strict=True)):
        values = {}
        for answer, own in lists_of(graph, rules, entity, relation).items():
            listed = sorted((confidence[i] for i in own), reverse=True)
            if aggregate == "maximum":
                values[answer] = (listed, frequency[answer])
                continue
            if aggregate != "noisy-or":
                best: dict[int, float] = {}
                for i in own:
                    best[int(rules.cluster[i])] = max(best.get(int(rules.cluster[i]), 0), confidence[i])
                listed = sorted(best.values(), reverse=True)
            values[answer] = round(1 - float(np.prod([1 - one for one in listed])), 12)
        levels = sorted({repr(value): value for value in values.values()}.values())
        at = found.query == number
        scores = dict(zip(found.answer[at].tolist(), found.score[at].tolist(), strict=True))
        assert scores == {answer: levels.index(value) + 1 for answer, value in values.items()}


def test_only_the_best_are_kept_and_facts_beside_them(graph: KnowledgeGraph) -> None:
    rules, queries = mine(graph, length=2), queries_of(graph, None)
    every, few = (predict(graph, rules, queries, top=top) for top in (N, 1))
    facts = directed(graph)
    for number, (entity, relation) in enumerate(zip(*map(np.ndarray.tolist, queries), strict=True)):
        at = every.query == number
        new = [
            score
            for answer, score in zip(every.answer[at].tolist(), every.score[at].tolist(), strict=True)
            if (entity, relation, answer) not in facts
        ]
        wanted = every.answer[at][every.score[at] >= max(new, default=0)]
        assert sorted(few.answer[few.query == number].tolist()) == sorted(wanted.tolist())


def test_the_same_seed_draws_the_same_bodies(graph: KnowledgeGraph) -> None:
    one, again = (mine(graph, length=3, max_bodies=15, seed=3) for _ in range(2))
    every = mine(graph, length=3)
    assert all((a == b).all() for a, b in zip(one, again, strict=True))
    kept = set(map(tuple, np.column_stack([one.head, one.body, one.support, one.bodies])[one.constant < 0]))
    whole = set(map(tuple, np.column_stack([every.head, every.body, every.support, every.bodies])))
    assert kept < whole


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("length", 4, "1, 2 or 3"),
        ("min_support", 0, "at least 1"),
        ("min_confidence", float("nan"), r"in \[0, 1\]"),
        ("min_groundings", 0, "at least 1"),
        ("max_bodies", 0, "at least 1"),
    ],
)
def test_arguments_out_of_range_are_named(graph: KnowledgeGraph, name: str, value: object, text: str) -> None:
    with pytest.raises(ArgumentError, match=f"`{name}` must be .*{text}"):
        mine(graph, **{name: value})  # pyright: ignore[reportArgumentType]
