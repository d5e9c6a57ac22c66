"""Correlations of missing and retrieved answers from drawn queries: by hand, by all labels, coverage."""

from itertools import product

import numpy as np
import pytest

from owkg.estimation.correlation import judged_correlations, retrieved_answers
from owkg.estimation.population import UNKNOWN
from owkg.estimation.regression import Sample
from tests.estimation.worlds import populated


def test_retrieved_answers_lead_their_list():
    people, truth = populated(queries=8)
    found = retrieved_answers(people, truth, np.arange(8))
    for s, lists in enumerate(people.slot):
        for q, own in enumerate(lists):
            led = {True: 0, False: 0}
            for candidate in own:
                if candidate == len(truth) or not truth[candidate]:
                    break
                led[bool(people.label[candidate] == UNKNOWN)] += 1
            assert found[:, s, q].tolist() == [led[True], led[False]]


def test_they_are_expectations_under_probabilities():
    people, _ = populated(queries=2, depth=3)
    rng = np.random.default_rng(0)
    is_open = np.flatnonzero(people.label == UNKNOWN)
    p = np.where(people.label == UNKNOWN, rng.random(len(people.label)), people.label).astype(float)
    rows, mean = np.arange(2), 0.0
    for labels in product((0.0, 1.0), repeat=len(is_open)):
        drawn = p.copy()
        drawn[is_open] = labels
        chance = np.prod(np.where(np.array(labels) == 1, p[is_open], 1 - p[is_open]))
        mean = mean + chance * retrieved_answers(people, drawn, rows)
    np.testing.assert_allclose(retrieved_answers(people, p, rows), mean, atol=1e-12)


@pytest.mark.parametrize("below", [1.0, 1.5])
def test_coverage(below):
    """Missing answers below the pool change the sparsity, and with it the correlation, in both alike."""
    people, truth = populated(3, queries=400, depth=8)
    labels = truth.astype(np.int64)
    known = float((people.label == 1).sum() + people.outside.sum())
    missing = below * truth[people.label == UNKNOWN].sum()
    beta = np.array([missing / (missing + known)])
    l1, l2 = retrieved_answers(people, truth, np.arange(400)).sum(-1) / np.array([[missing], [known]])
    both = beta * l1 + (1 - beta) * l2
    true = (l1 - l2) * np.sqrt(beta * (1 - beta) / (both * (1 - both)))
    rng, held, draws = np.random.default_rng(1), 0.0, 400
    for _ in range(draws):
        rows = np.sort(rng.choice(400, 60, replace=False))
        sample = Sample(rows, np.zeros(60, np.int64), np.array([400]))
        found = judged_correlations(people, labels, sample, beta)
        held = held + ((found.low[:, 0] <= true) & (true <= found.high[:, 0])) / draws
    # Four standard errors below .95, less .01 for a variance that is estimated from sixty queries.
    assert (held > 0.94 - 4 * np.sqrt(0.95 * 0.05 / draws)).all()
    whole = Sample(np.arange(400), np.zeros(400, np.int64), np.array([400]))
    np.testing.assert_allclose(judged_correlations(people, labels, whole, beta).value[:, 0], true, atol=1e-9)
