"""RNNLogic and pLogicNet against loops, enumeration and differences."""

from itertools import permutations, product

import jax
import numpy as np
import pytest

from owkg.kg import KnowledgeGraph
from owkg.rules import mine, queries_of
from owkg.rules import plogicnet as mln
from owkg.rules import rnnlogic as rnn
from owkg.train.config import training

N, R = 7, 2


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    rng = np.random.default_rng(5)
    rows = np.stack([rng.integers(N, size=40), rng.integers(R, size=40), rng.integers(N, size=40)], axis=1)
    names = tuple(f"e{i}" for i in range(N)), tuple(f"r{i}" for i in range(R))
    return KnowledgeGraph(*names, {"train": np.unique(rows, axis=0).astype(np.int32)})


def paths_of(graph: KnowledgeGraph, body: list[int]) -> np.ndarray:
    """Paths of different entities along a body, [from, to]."""
    facts = {(h, r, t) for h, r, t in graph.splits["train"].tolist() if h != t}
    facts |= {(t, r + R, h) for h, r, t in facts}
    body = [one for one in body if one >= 0]
    found = np.zeros((N, N))
    for path in permutations(range(N), len(body) + 1):
        found[path[0], path[-1]] += all(
            (a, r, b) in facts for a, r, b in zip(path, body, path[1:], strict=False)
        )
    return found


def test_predictor_and_worth_are_as_defined(graph):
    rules, asked = mine(graph, constants=False), queries_of(graph, ["train"])
    features = rnn.features_of(graph, rules, asked)
    target = rnn.targets(graph, asked, features)
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(2, len(rules.head)))
    paths = [paths_of(graph, body) for body in rules.body.tolist()]
    loss, weighed, gain = 0.0, 0.0, np.zeros(len(rules.head))
    train = graph.splits["train"].tolist()
    for (h, r, t), side in product(train, (0, 1)):
        given, own = ((h, t), (t, h))[side]
        answers = [(a, b)[1 - side] for a, q, b in train if q == r and (a, b)[side] == given]
        counts = np.array([
            (p if side == 0 else p.T)[given] if head == r else np.zeros(N)
            for p, head in zip(paths, rules.head.tolist(), strict=True)
        ])  # fmt: skip
        reached = counts.sum(0) > 0
        score = weight[side] @ counts
        log = score - np.log(np.exp(score).sum())
        goal = np.zeros(N)
        goal[answers] += 0.2
        goal[own] += 0.8
        loss -= (goal * log)[reached].sum()
        weighed += goal[reached].sum()
        if reached.any():
            gain += (
                weight[side]
                * (counts[:, own] - counts[:, reached].mean(1))
                / sum(q == r for _, q, _ in train)
            )
    got, _ = rnn.gradient(features, target, weight.ravel(), N)
    assert got == pytest.approx(loss / weighed)
    assert rnn.worths(graph, rules, asked, features, weight) == pytest.approx(gain, abs=1e-5)


def test_gradients_are_differences(graph):
    rules, asked = mine(graph, constants=False), queries_of(graph, ["train"])
    features = rnn.features_of(graph, rules, asked)
    target = rnn.targets(graph, asked, features)
    hidden = mln.hidden_of(graph, rules)
    rng = np.random.default_rng(1)
    annotated = rng.uniform(size=len(hidden.key))

    def of_rules(weight: np.ndarray) -> float:
        p = 1 / (1 + np.exp(-(hidden.share @ weight)))
        return float(-(annotated * np.log(p) + (1 - annotated) * np.log(1 - p)).sum())

    cases = [
        (lambda w: rnn.gradient(features, target, w, N)[0], rnn.gradient, 2 * len(rules.head)),
        (of_rules, None, len(rules.head)),
    ]
    for value, exact, size in cases:
        weight, way = rng.normal(size=(2, size))
        found = exact(features, target, weight, N)[1] if exact else mln.gradient(hidden, weight, annotated)
        step = 1e-5
        moved = (value(weight + step * way) - value(weight - step * way)) / (2 * step)
        assert found @ way == pytest.approx(moved, rel=1e-4)


def test_posterior_is_of_each_relation():
    head, value = np.array([0, 1, 0, 1, 0]), np.log([1.0, 3.0, 2.0, 1.0, 4.0])
    assert rnn.softmax_of_each(head, value) == pytest.approx([1 / 7, 3 / 4, 2 / 7, 1 / 4, 4 / 7])
    assert rnn.best_of_each(head, value, 2).tolist() == [4, 2, 1, 3]


def test_generator_is_a_distribution_that_learns_and_is_drawn_from():
    generator = rnn.Generator(R, 2, seed=0)
    bodies = [body for body in product(range(-1, 2 * R), repeat=2) if body[0] >= 0]
    assert len(bodies) == 20
    body = np.array(bodies)
    one = np.zeros(20, int)
    assert np.exp(generator.log_probability(one, body)).sum() == pytest.approx(1, abs=1e-5)
    generator.learn(one[:3], body[[3, 7, 11]], np.array([0.6, 0.3, 0.1]))
    chance = np.exp(generator.log_probability(one, body))
    assert chance[[3, 7, 11]] == pytest.approx([0.6, 0.3, 0.1], abs=0.02)
    head, likeliest = generator.drawn(3, likeliest=True)
    assert likeliest[head == 0].tolist() == body[[3, 7, 11]].tolist()
    # Of draws of one body, as many as its chance says.
    drawn = [tuple(generator.drawn(1, likeliest=False)[1][0].tolist()) for _ in range(100)]
    assert drawn.count(bodies[3]) / 100 == pytest.approx(0.6, abs=0.15)
    # More than there are: all of them, each once.
    head, every = generator.drawn(50, likeliest=False)
    assert sorted(map(tuple, every[head == 1].tolist())) == sorted(bodies)


def test_hidden_triples_are_all_groundings(graph):
    rules = mine(graph, constants=False).some(np.arange(30))
    train = set(map(tuple, graph.splits["train"].tolist()))
    paths = [paths_of(graph, body) for body in rules.body.tolist()]
    wanted = {}
    for r, h, t in product(range(R), range(N), range(N)):
        counts = np.array([p[h, t] * (head == r) for p, head in zip(paths, rules.head.tolist(), strict=True)])
        if counts.any() and (h, r, t) not in train:
            wanted[(r * N + h) * N + t] = counts / counts.sum()
    hidden = mln.hidden_of(graph, rules)
    assert hidden.key.tolist() == sorted(wanted)
    assert hidden.share.toarray() == pytest.approx(np.array([wanted[key] for key in sorted(wanted)]))


def test_answers_add_the_rules_to_the_embedding(graph):
    config = training("transe", dim=4, epochs=2, batch_size=16, num_negatives=2, valid_every=0)
    rules, learned = mln.plogicnet(graph, precision=0.2, rounds=1, config=config)
    asked = queries_of(graph, None)
    found = mln.joined(graph, rules, learned, asked, balance=3.0, top=N)
    entity = np.asarray(learned.trained.params["entity"], float)
    relation = np.asarray(learned.trained.params["relation"], float)
    train = graph.splits["train"].tolist()
    for number, (given, directed) in enumerate(zip(*map(np.ndarray.tolist, asked), strict=True)):
        r, values = directed % R, {}
        for other in range(N):
            h, t = (given, other) if directed < R else (other, given)
            p = dict(zip(learned.hidden.key.tolist(), learned.probability, strict=True)).get(
                (r * N + h) * N + t, 0.5
            )
            if h != t or any(a == c and b == r for a, b, c in train):
                values[other] = 9 - np.abs(entity[h] + relation[r] - entity[t]).sum() + 3 * p
        own = found.query == number
        got = dict(zip(found.answer[own].tolist(), found.score[own].tolist(), strict=True))
        assert sorted(got, key=lambda e: -got[e]) == sorted(values, key=lambda e: -values[e])


def test_seeds_decide_everything(graph):
    first, again, other = (
        rnn.rnnlogic(graph, per_relation=10, rounds=2, steps=20, seed=s) for s in (3, 3, 4)
    )
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
        assert np.array_equal(a, b)
    assert not np.array_equal(first[1], other[1])
    config = training("transe", dim=4, epochs=2, batch_size=16, num_negatives=2, valid_every=0, seed=3)
    one, two = (mln.plogicnet(graph, precision=0.2, seed=3, config=config)[1] for _ in range(2))
    assert np.array_equal(one.weight, two.weight)
    assert np.array_equal(one.probability, two.probability)
