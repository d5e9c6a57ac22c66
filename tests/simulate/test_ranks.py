"""The order drawn at a cost of O(answers) is exactly that of a shuffled list of all candidates."""

import itertools
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from owkg import openworld
from owkg.rank_weights import RankWeight
from owkg.simulate.classification import classification_ranks
from owkg.simulate.exchangeable import exchangeable_metrics
from owkg.simulate.missing import _not_all_missing
from owkg.simulate.numerics import pairwise_sum

TRIALS = 60_000


def law_of_ranks(num_missing_ahead, num_test_positives, num_test_negatives, num_other_negatives):
    """P(sorted filtered ranks) by enumeration of all orders of the two classes."""
    law = Counter()

    def class_ranks(tests, others):
        ranks = Counter()
        items = "t" * tests + "o" * others
        places = list(itertools.combinations(range(len(items)), tests))
        for place in places:
            ranks[tuple(1 + p - i for i, p in enumerate(place))] += 1 / len(places)
        return ranks

    for front, p in class_ranks(num_test_positives, num_missing_ahead).items():
        for back, q in class_ranks(num_test_negatives, num_other_negatives).items():
            law[front + tuple(r + num_missing_ahead for r in back)] += p * q
    return law


@pytest.mark.parametrize("counts", [(2, 3, 0, 4), (0, 1, 2, 3), (1, 2, 2, 2), (3, 2, 1, 1)])
def test_joint_law_of_the_ranks(counts):
    missing_ahead, positives, negatives, others = counts
    # l1 = 1 and l2 in {0, 1} by slot: the counts of every kind are fixed, only the order is random.
    num_answers = missing_ahead + positives + negatives
    missing = jnp.arange(num_answers) < missing_ahead
    strength = jnp.where(jnp.arange(num_answers) < missing_ahead + positives, 1.0, 0.0)

    def ranks(key):
        return classification_ranks(
            key,
            missing,
            jnp.float32(1),
            strength.astype(jnp.float32),
            jnp.int32(num_answers),
            jnp.int32(num_answers + others),
        )

    with jax.enable_x64(True):
        drawn = jax.jit(jax.vmap(ranks))(jax.random.split(jax.random.key(9), TRIALS))
    drawn = np.asarray(drawn)[:, : positives + negatives]
    seen = Counter(tuple(np.sort(row[:positives])) + tuple(np.sort(row[positives:])) for row in drawn)
    law = law_of_ranks(missing_ahead, positives, negatives, others)
    assert set(seen) == set(law)
    expected = np.array([law[r] * TRIALS for r in law])
    assert stats.chisquare([seen[r] for r in law], expected).pvalue > 1e-4


@pytest.mark.parametrize("probability", [[0.9], [0.2, 0.95, 0.5], [0.999, 0.999]])
def test_at_least_one_answer_is_left(probability):
    p = np.array(probability)
    draw = jax.jit(jax.vmap(lambda key: _not_all_missing(key, jnp.asarray(p, jnp.float32))))
    with jax.enable_x64(True):
        missing = np.asarray(draw(jax.random.split(jax.random.key(4), TRIALS)))
    assert not missing.all(axis=1).any()
    seen = Counter(map(tuple, missing))
    law = {
        bits: np.prod(np.where(bits, p, 1 - p)) / (1 - p.prod())
        for bits in itertools.product((False, True), repeat=len(p))
        if not all(bits)
    }
    frequent = [bits for bits in law if law[bits] * TRIALS > 10]
    for bits in frequent:
        error = np.sqrt(law[bits] * (1 - law[bits]) * TRIALS)
        assert abs(seen[bits] - law[bits] * TRIALS) <= 4.5 * error


@pytest.mark.parametrize("n", [1, 2, 3, 43, 1024])
def test_pairwise_sum(n):
    values = np.random.default_rng(0).normal(size=(n, 3))
    with jax.enable_x64(True):
        np.testing.assert_allclose(pairwise_sum(jnp.asarray(values)), values.sum(0), rtol=1e-11)


def law_of_queries(probability, missing_strength, test_strength, num_answers, num_entities):
    """P(number of test answers, their sorted filtered ranks) by enumeration of kinds and orders."""
    law = Counter()
    for kind in itertools.product([(m, p) for m in (True, False) for p in (True, False)], repeat=num_answers):
        chance = 1.0
        for is_missing, positive in kind:
            strength = missing_strength if is_missing else test_strength
            chance *= probability if is_missing else 1 - probability
            chance *= strength if positive else 1 - strength
        ahead, positives, behind, negatives = (
            kind.count(one) for one in ((True, True), (False, True), (True, False), (False, False))
        )
        if positives + negatives == 0 or chance == 0:
            continue
        chance /= 1 - probability**num_answers
        others = num_entities - num_answers + behind
        for ranks, share in law_of_ranks(ahead, positives, negatives, others).items():
            law[tuple(sorted(ranks))] += chance * share
    return law


@pytest.mark.parametrize(
    ("probability", "missing_strength", "test_strength", "others"),
    [
        *((0.4, 0.7, 0.5, 2), (0.9, 0.2, 0.6, 1), (0.0, 0.5, 0.8, 3), (0.5, 1.0, 0.0, 1), (0.3, 0.0, 1.0, 2)),
        (1 - 2**-24, 0.2, 0.6, 1),
    ],
)
def test_joint_law_of_exchangeable_answers(probability, missing_strength, test_strength, others):
    num_answers = 3
    powers = [RankWeight(f"w{base}", lambda rank, base=base: base**-rank) for base in (2.0, 3.0)]
    rows = (np.full(4, missing_strength, np.float32), np.full(4, test_strength, np.float32))
    rows += (np.full(4, probability, np.float32), np.full(4, num_answers), np.full(4, num_answers + others))

    def of(ranks):
        return tuple(round(float(np.mean(base ** -np.array(ranks, float))), 5) for base in (2.0, 3.0))

    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(2), 4)
        drawn = exchangeable_metrics(
            keys, TRIALS // 4, powers, openworld.INDEPENDENT, 4, True, *map(jnp.asarray, rows)
        )
    seen = Counter(tuple(round(float(x), 5) for x in pair) for pair in np.asarray(drawn).reshape(2, -1).T)
    law = Counter()
    for ranks, chance in law_of_queries(
        probability, missing_strength, test_strength, num_answers, num_answers + others
    ).items():
        law[of(ranks)] += chance
    assert sum(law.values()) == pytest.approx(1)
    assert set(seen) <= set(law)
    frequent = [value for value in law if law[value] * TRIALS > 10]
    expected = np.array([law[value] * TRIALS for value in frequent])
    counts = np.array([seen[value] for value in frequent])
    assert np.sum((counts - expected) ** 2 / expected) < stats.chi2.isf(1e-4, len(frequent))
