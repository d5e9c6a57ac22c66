"""Gamma: all vertices of the weights on small worlds, draws on a larger one, limits."""

from itertools import product

import numpy as np
import pytest

from owkg.auditing import Pair, sensitivity
from owkg.auditing.breakdown import single_changes

WEIGHTS = 1 / np.maximum(np.arange(200.0), 1)


def world(rng, queries, answers, candidates):
    """Random orders of answers and unlabelled candidates by two systems; whole lists."""
    known, place = np.zeros((2, queries, answers), int), np.zeros((2, queries, candidates), int)
    for x, q in product(range(2), range(queries)):
        score, of_answers = rng.normal(size=candidates), rng.normal(size=answers) + 0.4 * (1 - x)
        known[x, q] = 1 + (score[None] > of_answers[:, None]).sum(1)
        place[x, q] = np.argsort(np.argsort(-score)) + 1
    largest = np.full(queries, candidates)
    return Pair(known, place, place, np.zeros((2, queries), int), largest)


def difference(pair, facts, macro=False):
    """A less B when facts, [queries, candidates], are true."""
    total = 0.0
    for q in range(pair.known.shape[1]):
        sums = []
        for x in (0, 1):
            known, place = pair.known[x, q], pair.low[x, q]
            true = place[facts[q]]
            ranks = [r - (true < r).sum() for r in known] + [p - (true < p).sum() for p in true]
            sums.append(WEIGHTS[np.array(ranks, int)].sum() / (len(ranks) if macro else 1))
        total += sums[0] - sums[1]
    return total


@pytest.mark.parametrize("macro", [False, True])
def test_changes_by_enumeration(macro):
    pair = world(np.random.default_rng(0), 3, 2, 5)
    none = np.zeros((3, 5), bool)
    found = single_changes(pair, WEIGHTS, macro=macro)
    for q, c in product(range(3), range(5)):
        one = none.copy()
        one[q, c] = True
        assert found[q, c] == pytest.approx(difference(pair, one, macro) - difference(pair, none, macro))


@pytest.mark.parametrize("macro", [False, True])
def test_worst_weights_by_enumeration(macro):
    """The expectation is least at a vertex: every candidate has weight 1 or Gamma."""
    for seed in range(20):
        pair = world(np.random.default_rng(seed), 2, 2, 5)
        own = single_changes(pair, WEIGHTS, macro=macro).ravel()
        vertices = np.array(list(product([0, 1], repeat=10)))
        for gamma in (1.0, 1.5, 4.0):
            weights = 1 + (gamma - 1) * vertices
            worst = (weights @ own / weights.sum(1)).min()
            found = sensitivity(pair, WEIGHTS, gamma, macro=macro)
            assert found.change[0] == pytest.approx(worst)
        found = sensitivity(pair, WEIGHTS, macro=macro)
        if 1.02 < found.gamma < np.inf:
            around = sensitivity(pair, WEIGHTS, [found.gamma * 0.99, found.gamma * 1.01], macro=macro).change
            assert around[0] > 0 > around[1]


def test_facts_by_drawing():
    """Facts drawn with the worst weights change the sum by as much as is expected."""
    rng = np.random.default_rng(3)
    pair = world(rng, 300, 2, 40)
    own = single_changes(pair, WEIGHTS)
    found = sensitivity(pair, WEIGHTS, 3.0)
    order = np.argsort(own, axis=None)
    total = np.cumsum(own.ravel()[order])
    count = np.arange(1, own.size + 1)
    best = int(np.argmin((total[-1] + 2 * total) / (own.size + 2 * count)))
    weights = np.ones(own.size)
    weights[order[: best + 1]] = 3.0
    number, changes = 30, []
    start = difference(pair, np.zeros((300, 40), bool))
    for _ in range(200):
        facts = np.zeros(own.size, bool)
        facts[rng.choice(own.size, number, replace=False, p=weights / weights.sum())] = True
        changes.append(difference(pair, facts.reshape(300, 40)) - start)
    error = np.std(changes) / np.sqrt(len(changes))
    assert np.mean(changes) == pytest.approx(number * found.change[0], abs=4 * error)


def test_limits():
    pair = world(np.random.default_rng(5), 4, 2, 6)
    own = single_changes(pair, WEIGHTS)
    found = sensitivity(pair, WEIGHTS, [1, 1e12])
    assert found.change[0] == pytest.approx(own.mean())
    assert found.change[1] == pytest.approx(own.min(), rel=1e-6)
    assert (np.diff(found.facts) <= 0).all()


def test_without_candidates_and_bad_odds():
    pair = world(np.random.default_rng(6), 2, 1, 4)
    alone = pair._replace(low=pair.low[:, :, :0], high=pair.high[:, :, :0])
    assert np.isnan(sensitivity(alone, WEIGHTS).gamma)
    with pytest.raises(ValueError, match="odds"):
        sensitivity(pair, WEIGHTS, 0.5)
