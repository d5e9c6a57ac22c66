"""Measures of triple classification: held against scikit-learn, enumeration, differences and simulation."""

from itertools import permutations

import numpy as np
import pytest
from scipy import special
from sklearn import metrics as sk

from owkg.classification import METRICS
from owkg.classification.measures import (
    INFLUENCES,
    _average_precision,
    _average_precision_influence,
    _pr_auc,
    _roc_auc_influence,
    curve,
    roc_auc,
)

PEERS = {
    "accuracy": sk.accuracy_score,
    "precision": lambda y, p: sk.precision_score(y, p, average=None, labels=["positive"])[0],
    "recall": lambda y, p: sk.recall_score(y, p, average=None, labels=["positive"])[0],
    "f1": lambda y, p: sk.f1_score(y, p, average=None, labels=["positive"])[0],
    "macro-f1": lambda y, p: sk.f1_score(y, p, average="macro"),
}


def draw(rng, n, labels=("positive", "negative")):
    label = rng.choice(labels, n)
    score = rng.integers(0, 6, n) + 1.5 * (label == "positive")
    return label, score, np.where(score > 3, "positive", "negative")


@pytest.mark.parametrize("labels", [("positive", "negative"), ("positive", "negative", "unknown")])
def test_equal_to_scikit_learn(rng, labels):
    compared = 0
    for _ in range(200):
        label, score, called = draw(rng, int(rng.integers(4, 50)), labels)
        if len(labels) == 3:
            called = rng.choice(labels, len(label))
        positive = label == "positive"
        if not 0 < positive.sum() < len(label) or not (called == "positive").any():
            continue
        found = {name: METRICS[name](label, score, called, None).value for name in METRICS}
        precision, recall, _ = sk.precision_recall_curve(positive, score)
        expected = {name: peer(label, called) for name, peer in PEERS.items()} | {
            "roc-auc": sk.roc_auc_score(positive, score),
            "pr-auc": sk.auc(recall, precision),
            "average-precision": sk.average_precision_score(positive, score),
        }
        assert found == pytest.approx(expected, abs=1e-12, rel=0)
        compared += 1
    assert compared > 150


def test_weights_are_those_of_scikit_learn(rng):
    label, score, _ = draw(rng, 60)
    positive, weight = label == "positive", rng.uniform(0.1, 3, 60)
    found = curve(score, positive, weight)
    precision, recall, _ = sk.precision_recall_curve(positive, score, sample_weight=weight)
    areas = roc_auc(found), _average_precision(found), _pr_auc(found)
    expected = (
        sk.roc_auc_score(positive, score, sample_weight=weight),
        sk.average_precision_score(positive, score, sample_weight=weight),
        sk.auc(recall, precision),
    )
    assert areas == pytest.approx(expected, abs=1e-12, rel=0)


def test_areas_by_their_definitions():
    positive = np.array([True, True, False, False, False])
    score = np.array([3.0, 1.0, 2.0, 1.0, 0.0])
    pairs = [(a > b) + (a == b) / 2 for a in score[positive] for b in score[~positive]]
    found = curve(score, positive)
    assert roc_auc(found) == np.mean(pairs)
    assert _average_precision(found) == pytest.approx((1 + 2 / 4) / 2)
    points = [(0, 1), (0.5, 1), (0.5, 0.5), (1, 0.5), (1, 0.4)]
    assert _pr_auc(found) == pytest.approx(np.trapezoid(*zip(*[(y, x) for x, y in points], strict=True)))


@pytest.mark.parametrize("name", ["roc-auc", "average-precision"])
def test_influences_of_areas_are_derivatives_by_weight(rng, name):
    measure, influence = {
        "roc-auc": (roc_auc, _roc_auc_influence),
        "average-precision": (_average_precision, _average_precision_influence),
    }[name]
    label, score, _ = draw(rng, 25)
    positive = label == "positive"
    found = influence(curve(score, positive), positive)
    for k in range(len(score)):
        up, down = np.ones((2, len(score))) + 1e-5 * np.array([[1.0], [-1.0]]) * np.eye(len(score))[k]
        slope = (measure(curve(score, positive, up)) - measure(curve(score, positive, down))) / 2e-5
        assert found[k] == pytest.approx(slope, abs=1e-8)
    assert found.sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("name", ["accuracy", "precision", "recall", "f1", "macro-f1"])
def test_influences_of_classes_are_what_one_more_triple_does(rng, name):
    label, score, called = draw(rng, 40)
    many = 2000  # so many copies of the sample that one more triple is a derivative
    copies = [np.tile(part, many) for part in (label, score, called)]
    before = METRICS[name](*copies, None).value
    found = INFLUENCES[name](label, score, called)
    for k in range(0, 40, 5):
        more = [np.append(whole, part[k]) for whole, part in zip(copies, (label, score, called), strict=True)]
        assert found[k] == pytest.approx((METRICS[name](*more, None).value - before) * many, abs=1e-3)


def test_expectations_are_means_over_all_orders():
    """The scores, and the classes with them, are dealt out to the triples in every way."""
    label = np.array(["positive"] * 2 + ["negative"] * 4)
    score = np.arange(6.0)
    called = np.where(score >= 3, "positive", "negative")
    orders = [list(order) for order in permutations(range(6))]
    for name, measure in METRICS.items():
        expected = measure(label, score, called, None).expectation
        if name == "pr-auc":
            assert np.isnan(expected)
            continue
        values = [measure(label, score[order], called[order], None).value for order in orders]
        assert expected == pytest.approx(np.mean(values), abs=1e-12), name


def test_what_is_not_defined_is_nan():
    label, score = np.array(["positive", "positive"]), np.array([1.0, 2.0])
    called = np.array(["negative", "negative"])
    for name in ("roc-auc", "precision"):
        assert np.isnan(METRICS[name](label, score, called, 0.95).value)
    assert np.isnan(_average_precision(curve(score, np.zeros(2, bool))))
    assert METRICS["average-precision"](label, score, called, 0.95).value == 1
    assert METRICS["f1"](label, score, called, 0.95).value == 0


@pytest.mark.parametrize(
    ("n", "apart", "share"), [(30, 1.5, 0.5), (30, 3.0, 0.2), (100, 0.5, 0.2), (400, 3.0, 0.5)]
)
def test_coverage(rng, n, apart, share):
    """Intervals of 95 % hold the value of the population in 92 % of samples or more."""

    def sample(size):
        positive = rng.random(size) < share
        score = rng.normal(size=size) + apart * positive
        called = np.where(score > apart / 2, "positive", "negative")
        return np.where(positive, "positive", "negative"), score, called

    whole = sample(300_000)
    drawn = [sample(n) for _ in range(400)]
    for name, measure in METRICS.items():
        if name == "pr-auc":
            continue
        truth = measure(*whole, None).value
        found = [measure(*part, 0.95) for part in drawn]
        held = [one.low <= truth <= one.high for one in found if np.isfinite(one.value)]
        assert np.mean(held) > 0.92, name
    area = METRICS["roc-auc"](*whole, None).value
    assert area == pytest.approx(special.ndtr(apart / np.sqrt(2)), abs=0.004)


def test_a_perfect_classifier_of_few_triples_has_a_width():
    label = np.array(["positive"] * 5 + ["negative"] * 5)
    score = np.arange(10.0)[::-1]
    for name, measure in METRICS.items():
        found = measure(label, score, label, 0.95)
        assert found.value == pytest.approx(1)
        if name != "pr-auc":
            assert found.low < 0.98, name
            assert found.high >= found.value, name
