"""Strength measured and predicted: round trips, limits, and ranks drawn from the model of theory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg import theory
from owkg.rank_weights import GMR, LOG_MRR, MR, MRR, RankWeight, hits_at, p_mrr, tie_expectation
from owkg.simulate import full_test, thin
from simulations.yang2022.predicted import _over_queries, measured_strength, predicted, predicted_inversions

METRICS = (MRR, LOG_MRR, MR, hits_at(3), p_mrr(0.5))
ANSWERS = np.array([1, 2, 2, 7, 20])
ENTITIES = 60


@pytest.mark.parametrize("metric", METRICS, ids=str)
@given(strength=st.floats(0, 1))
def test_a_strength_survives_the_way_to_the_full_test_and_back(metric, strength):
    """The full test is the limit of a sparsity of 0, where theory averages over all queries."""
    full = np.mean(
        theory.expectation(
            metric, strength=strength, sparsity=1e-13, num_answers=ANSWERS, num_entities=ENTITIES
        )
    )
    assert measured_strength(metric, full, ANSWERS, ENTITIES) == pytest.approx(strength, abs=1e-9)


def test_chance_is_no_strength_and_the_best_is_all():
    for metric in METRICS:
        n = ENTITIES - ANSWERS + 1
        chance = tie_expectation(metric, np.ones_like(n), n).mean()
        best = float(metric.weight(np.ones(1))[0])
        found = measured_strength(metric, [chance, best, 2 * chance - best], ANSWERS, ENTITIES)
        np.testing.assert_allclose(found, [0, 1, -1], atol=1e-12)


@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_little_sparsity_reads_the_full_test(metric):
    value = {"mr": 9.0}.get(metric.name, 0.6)
    strength = measured_strength(metric, value, ANSWERS, ENTITIES)
    assert predicted(metric, strength, 1e-12, ANSWERS, ENTITIES).mean == pytest.approx(value, rel=1e-9)


def test_one_number_of_answers_is_theory_of_the_queries_left():
    one = theory.moments(MRR, strength=0.4, sparsity=0.3, num_answers=6, num_entities=ENTITIES)
    found = predicted(MRR, [[0.4]], 0.3, np.full(50, 6), ENTITIES)
    assert found.mean.shape == (1, 1)
    np.testing.assert_allclose(found.mean, one.expectation)
    np.testing.assert_allclose(found.variance, one.variance / (50 * (1 - 0.3**6)))
    chance = predicted_inversions(MRR, 0.4, 0.45, 0.3, np.full(5000, 6), ENTITIES)
    exact = theory.inconsistency_probability(
        MRR,
        num_queries=4996,  # 5000 (1 - .3^6)
        paired=True,
        strength=0.4,
        other_strength=0.45,
        sparsity=0.3,
        num_answers=6,
        num_entities=ENTITIES,
    )
    assert chance == pytest.approx(exact, rel=1e-3)


def drawn(rng, strengths, queries, sparsity):
    """What models read on each of many sparse tests of the classification model, [tests, models, metrics].

    Args:
        rng: consumed.
        strengths: of the models.
        queries: how many tests, and in each, queries for each entry of ANSWERS.
        sparsity: of all tests, which are thinned at once.
    """
    tests, many = queries
    counts = np.tile(np.repeat(ANSWERS, many), tests)
    query = np.repeat(np.arange(len(counts)), counts)
    score, ranks = [], []
    for strength in strengths:
        mine = rng.random(len(query)) + (rng.random(len(query)) < strength)
        # The candidates that are no answers score uniformly, in every query anew.
        kept = rng.random((len(counts), ENTITIES))
        kept[np.arange(ENTITIES) >= (ENTITIES - counts)[:, None]] = -1
        above = (kept[query] > mine[:, None]).sum(1)
        score.append(mine)
        ranks.append(1 + above)
    full = full_test(query, ranks, ranks, score)
    present = rng.random(len(query)) >= sparsity
    found = thin(full, present)[0]
    left, size = query[present], len(counts)
    tests_of = np.arange(size) // (size // tests)
    number = np.bincount(left, minlength=size)
    some = np.bincount(tests_of[number > 0], minlength=tests)
    share = 1 / (number[left] * some[tests_of[left]])
    return np.array(
        [
            [
                np.bincount(tests_of[left], tie_expectation(m, row, row) * share, minlength=tests)
                for m in METRICS
            ]
            for row in found
        ]
    ).transpose(2, 0, 1)


def test_predictions_agree_with_ranks_drawn_from_the_model():
    rng = np.random.default_rng(0)
    strengths, sparsity, tests = (0.45, 0.5), 0.4, 2000
    values = drawn(rng, strengths, (tests, 10), sparsity)
    answers = np.repeat(ANSWERS, 10)
    for i, metric in enumerate(METRICS):
        found = predicted(metric, np.array(strengths), sparsity, answers, ENTITIES)
        error = values[:, :, i].std(0) / np.sqrt(tests)
        # A ratio of two sums over 50 queries is off by a share of its spread of about 1 / 50.
        assert np.all(
            np.abs(values[:, :, i].mean(0) - found.mean) <= 4 * error + 0.02 * np.sqrt(found.variance)
        )
        # The standard error of a variance of 2000 is a thirtieth of it.
        np.testing.assert_allclose(values[:, :, i].var(0), found.variance, rtol=0.15)
        better = np.sign(values[:, 1, i] - values[:, 0, i]) * (1 if metric.larger_is_better else -1)
        exact = predicted_inversions(metric, *strengths, sparsity, answers, ENTITIES)
        wrong = np.mean(better < 0) + np.mean(better == 0) / 2
        assert abs(wrong - exact) <= 4 * np.sqrt(exact * (1 - exact) / tests) + 0.02


def test_pairs_of_models():
    strengths = np.array([0.2, 0.5, 0.55])
    found = predicted_inversions(MRR, strengths[:, None], strengths, 0.3, ANSWERS, ENTITIES)
    assert np.isnan(np.diagonal(found)).all()
    np.testing.assert_allclose(found, found.T)
    assert 0 < found[0, 2] < found[0, 1] < found[1, 2] < 0.5


def test_bad_arguments_are_refused():
    good = {"metric": MRR, "strength": 0.5, "sparsity": 0.3, "num_answers": [3], "num_entities": 9}
    for change, named in (
        ({"metric": GMR}, "metric"),
        ({"strength": -0.1}, "strength"),
        ({"sparsity": 0.0}, "sparsity"),
        ({"num_answers": [0]}, "num_answers"),
        ({"num_answers": [9]}, "num_answers"),
        ({"num_entities": 1}, "num_entities"),
    ):
        with pytest.raises(ValueError, match=rf"^`{named}` "):
            predicted(**(good | change))
    with pytest.raises(ValueError, match=r"^`other_strength` "):
        predicted_inversions(MRR, 0.5, 1.5, 0.3, [3], 9)
    with pytest.raises(ValueError, match=r"^`value` "):
        measured_strength(MRR, np.nan, [3], 9)
    flat = RankWeight("flat", lambda rank: rank * 0 + 1)
    with pytest.raises(ValueError, match=r"^`metric` must tell"):
        measured_strength(flat, 1.0, [3], 9)


def test_queries_that_are_left_by_chance_move_the_mean():
    """Two kinds of queries that read 0.9 and 0.2 whenever they are left: only who is left varies."""
    answers, counts, beta = np.array([1, 3]), np.array([400, 300]), np.array(0.6)
    found = _over_queries(np.array([0.9, 0.2]), np.zeros(2), beta, answers, counts)
    left = np.random.default_rng(0).binomial(counts, 1 - beta**answers, (200_000, 2))
    read = left @ [0.9, 0.2] / left.sum(1)
    assert found.mean == pytest.approx(read.mean(), abs=5 * read.std() / 200_000**0.5 + 1e-4)
    assert found.variance == pytest.approx(read.var(), rel=0.02)
