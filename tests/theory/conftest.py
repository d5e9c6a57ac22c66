"""An exact witness that shares nothing with the closed forms: every world, every order, one by one."""

import itertools
import math

import numpy as np
import pytest


def _orders(positives: tuple[int, ...], negatives: tuple[int, ...]):
    for front in itertools.permutations(positives):
        for back in itertools.permutations(negatives):
            yield front + back


def _metric_values(weight, missing, positives, num_answers, num_entities):
    """M for every order of the candidates, all equally likely."""
    tests = [a for a in range(num_answers) if a not in missing]
    negatives = tuple(e for e in range(num_entities) if e not in positives)
    values = []
    for order in _orders(positives, negatives):
        place = {entity: i for i, entity in enumerate(order)}
        ranks = [1 + sum(place[e] < place[t] for e in order if e not in tests) for t in tests]
        values.append(np.mean([weight(r) for r in ranks]))
    return np.array(values)


def _given_missing(weight, missing, l1, l2, num_answers, num_entities):
    """E[M | which answers are missing] and E[M^2 | ...]."""
    first = second = 0.0
    for bits in itertools.product((False, True), repeat=num_answers):
        positives = tuple(a for a in range(num_answers) if bits[a])
        chance = math.prod(
            p if bits[a] else 1 - p for a in range(num_answers) for p in [l1 if a in missing else l2]
        )
        if chance == 0:
            continue
        values = _metric_values(weight, missing, positives, num_answers, num_entities)
        first += chance * values.mean()
        second += chance * (values**2).mean()
    return first, second


def enumerate_world(weight, models, missing_probability, num_entities):
    """Means, variances and the covariance matrix of several models (l1, l2) that share missing facts.

    `weight` is a plain function of an integer rank; `missing_probability` is one number per answer.
    """
    num_answers = len(missing_probability)
    total = 0.0
    first = np.zeros(len(models))
    second = np.zeros(len(models))
    product = np.zeros((len(models), len(models)))
    for bits in itertools.product((False, True), repeat=num_answers):
        if all(bits):
            continue
        missing = {a for a in range(num_answers) if bits[a]}
        chance = math.prod(p if b else 1 - p for p, b in zip(missing_probability, bits, strict=True))
        given = np.array([_given_missing(weight, missing, *m, num_answers, num_entities) for m in models])
        total += chance
        first += chance * given[:, 0]
        second += chance * given[:, 1]
        product += chance * np.outer(given[:, 0], given[:, 0])
    first, second, product = first / total, second / total, product / total
    return first, second - first**2, product - np.outer(first, first)


@pytest.fixture(scope="session")
def enumerated():
    return enumerate_world
