"""Errors of annotators: all patterns of errors, Monte Carlo, derivatives, and what is refused."""

from itertools import product

import numpy as np
import pytest

from owkg.errors import ArgumentError
from owkg.estimation.annotators import (
    ErrorRates,
    corrected,
    counted_rates,
    judged_now,
    rate_variance,
    require_correctable,
)
from owkg.estimation.measures import measure, values
from owkg.estimation.population import UNKNOWN
from owkg.estimation.regression import Sample
from owkg.estimation.targets import means, of_queries, prepared
from owkg.estimation.two_phase import of_two_phases, two_phase
from tests.estimation.lists import small_population


def annotated(people, truth, fp, fn, random):
    """Labels with errors of the unknown candidates."""
    wrong = random.random(len(truth)) < np.where(truth == 1, fn, fp)
    return np.where(people.label == UNKNOWN, truth ^ wrong, people.label).astype(np.int8)


@pytest.mark.parametrize(("fp", "fn"), [(0.1, 0.2), (0.3, 0.0), (0.0, 0.25)])
@pytest.mark.parametrize("name", ["p@2", "p@3", "rr", "success@3", "success@1", "rbp(p=0.8)"])
def test_over_all_patterns_of_errors_multilinear_metrics_are_unbiased(name, fp, fn):
    people, _ = small_population(queries=1)
    of = measure(name, 3)
    rates = ErrorRates(fp, fn)
    free = np.flatnonzero(people.label == UNKNOWN)
    for true in product((0, 1), repeat=len(free)):
        truth = np.maximum(people.label, 0)
        truth[free] = true
        total, chance = 0.0, 0.0
        for said in product((0, 1), repeat=len(free)):
            labels = people.label.copy()
            labels[free] = said
            wrong, right = np.array(said) != np.array(true), np.array(true) == 1
            p = np.where(right, np.where(wrong, fn, 1 - fn), np.where(wrong, fp, 1 - fp)).prod()
            total = total + p * values(of, people, corrected(people, labels, rates))
            chance += p
        assert chance == pytest.approx(1)
        np.testing.assert_allclose(total, values(of, people, truth.astype(float)), atol=1e-12)


def test_average_precision_would_be_biased():
    """Why it is refused: the same enumeration does not give the truth."""
    people, _ = small_population(queries=1)
    people = people._replace(label=np.full(5, UNKNOWN, np.int8))
    rates, of, total = ErrorRates(0.15, 0.15), measure("ap", 3), 0.0
    truth = np.array([1, 0, 1, 0, 1], np.int8)
    for said in product((0, 1), repeat=5):
        p = np.where(np.array(said) == truth, 0.85, 0.15).prod()
        total = total + p * values(of, people, corrected(people, np.array(said, np.int8), rates))
    assert np.abs(total - values(of, people, truth.astype(float))).max() > 0.02


def test_labels_known_before_stay_and_unjudged_ones_are_zero():
    people, _ = small_population(queries=2)
    labels = np.where(people.label == 1, 1, UNKNOWN).astype(np.int8)
    some = np.flatnonzero(people.label == UNKNOWN)[:2]
    labels[some] = [1, 0]
    found = corrected(people, labels, ErrorRates(0.1, 0.1))
    np.testing.assert_allclose(found[some], [0.9 / 0.8, -0.1 / 0.8])
    assert (found[people.label == 1] == 1).all()
    assert found[~judged_now(people, labels) & (people.label == UNKNOWN)].tolist() == [0.0] * (
        int((people.label == UNKNOWN).sum()) - 2
    )


def test_rates_of_zero_change_nothing():
    people, truth = small_population()
    np.testing.assert_array_equal(corrected(people, truth, ErrorRates(0, 0)), truth)
    require_correctable(measure("ap", 3), ErrorRates(0, 0))


def test_counted_rates_are_shares_of_gold_items():
    truth = np.array([0] * 10 + [1] * 5)
    judged = np.array([1] + [0] * 9 + [1, 1, 1, 0, 0])
    with pytest.warns(UserWarning, match="several times as wide"):
        found = counted_rates(judged, truth)
    assert (found.fp, found.fn) == (0.1, pytest.approx(0.4))
    assert (found.gold_negative, found.gold_positive) == (10, 5)
    assert found.estimated
    known = counted_rates(np.array([1, 1, 1, 0]), np.ones(4, int), fp=0.02)
    assert (known.fp, known.fn, known.gold_negative, known.gold_positive) == (0.02, 0.25, None, 4)


def test_variance_of_counted_rates_is_the_delta_method_for_precision():
    """P@k of judged labels is (mean y - fp) / (1 - fp - fn): derivatives by hand."""
    people, truth = small_population()
    people = people._replace(label=np.full_like(people.label, UNKNOWN))
    of, fp, fn = measure("p@3", 3), 0.1, 0.15
    rates = ErrorRates(fp, fn, 200, 100)
    found = rate_variance(lambda labels: values(of, people, labels).mean(1), people, truth, rates)
    share = values(of, people, truth.astype(float)).mean(1)
    scale = 1 - fp - fn
    by_fp, by_fn = (share - fp) / scale**2 - 1 / scale, (share - fp) / scale**2
    p, q = 21 / 202, 16 / 102
    expected = by_fp**2 * p * (1 - p) / 200 + by_fn**2 * q * (1 - q) / 100
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_variance_of_known_rates_is_zero_and_of_gold_without_errors_is_not():
    people, truth = small_population()

    def estimate(labels):
        return values(measure("rr", 3), people, labels).mean(1)

    assert rate_variance(estimate, people, truth, ErrorRates(0.1, 0.1)).tolist() == [0, 0]
    assert (rate_variance(estimate, people, truth, ErrorRates(0.0, 0.1, gold_negative=50)) > 0).all()


@pytest.mark.parametrize("counted", [False, True])
def test_corrected_intervals_cover_where_naive_ones_do_not(counted):
    people, truth = small_population(queries=300)
    random = np.random.default_rng(5)
    of, fp, fn = measure("p@3", 3), 0.12, 0.05
    guess = np.where(people.label == 1, 1.0, 0.25 + 0.3 * truth)
    ready = prepared(of, people, [guess])
    true = values(of, people, truth.astype(float)).mean(1)
    true = np.append(true, true[0] - true[1])
    hit = naive = 0
    for _ in range(200):
        sample = Sample(random.choice(300, 80, replace=False), np.zeros(80, int), np.array([300]))
        labels = annotated(people, truth, fp, fn, random)
        rates = ErrorRates(fp, fn)
        if counted:
            rates = ErrorRates(random.binomial(150, fp) / 150, random.binomial(150, fn) / 150, 150, 150)
        noise = rate_variance(
            lambda one, sample=sample: means(ready, people, one, sample).mean, people, labels, rates
        )
        found = of_queries(ready, people, corrected(people, labels, rates), sample, noise=noise)
        hit = hit + ((found.low <= true) & (true <= found.high))
        plain = of_queries(ready, people, labels, sample)
        naive = naive + ((plain.low <= true) & (true <= plain.high))
    # 4.5 standard errors of a share of .95; without a finite population's correction, so often above.
    assert (hit / 200 > 0.88).all()
    assert (naive[:2] / 200 < 0.8).all()


def test_corrected_limits_of_a_metric_at_its_end_are_not_a_point():
    people, truth = small_population()
    of = measure("success@3", 3)
    guess = np.where(people.label == 1, 1.0, 0.5)
    labels = np.ones(len(truth), np.int8)
    sample = Sample(np.arange(30), np.zeros(30, int), np.array([60]))
    labels[people.slot[0, :3].ravel()] = 0  # some lists say nothing, so that values scatter
    labels = np.where(people.label == 1, 1, labels).astype(np.int8)
    found = of_queries(
        prepared(of, people, [guess]),
        people,
        corrected(people, labels, ErrorRates(0.05, 0.2)),
        sample,
        noise=np.zeros(3),
    )
    assert (found.high[:2] - found.low[:2] > 0.05).all()
    assert (found.low >= found.least).all()
    assert (found.high <= found.most).all()


@pytest.mark.parametrize("name", ["ap", "ndcg", "mrr", "hits@2", "macro-mrr", "macro-hits@2"])
def test_metrics_that_are_not_multilinear_are_refused(name):
    with pytest.raises(ArgumentError, match="two-phase"):
        require_correctable(measure(name, 3), ErrorRates(0.01, 0.01))


def test_success_is_refused_where_false_positives_decide_it():
    with pytest.raises(ArgumentError, match="Success@3"):
        require_correctable(measure("success@3", 3), ErrorRates(0.06, 0.0))
    for name, fp in (("success@3", 0.05), ("success@1", 0.2), ("rr", 0.2), ("p@3", 0.2)):
        require_correctable(measure(name, 3), ErrorRates(fp, 0.05))


def test_bad_rates_are_named():
    for fp, fn, name in ((0.5, 0.5, "fp"), (-0.1, 0, "fp"), (0, 1.0, "fn"), (np.nan, 0, "fp")):
        with pytest.raises(ArgumentError, match=f"`{name}`"):
            ErrorRates(fp, fn)
    with pytest.raises(ArgumentError, match="gold_negative"):
        ErrorRates(0.1, 0.1, gold_negative=0)
    with pytest.warns(UserWarning, match="majority"):
        ErrorRates(0.2, 0.15)
    with pytest.raises(ArgumentError, match="`fp` must be given"):
        counted_rates(np.array([1, 1]), np.array([1, 1]))
    with pytest.raises(ArgumentError, match="0 or 1"):
        counted_rates(np.array([1, 2]), np.array([1, 0]))
    with pytest.raises(ArgumentError, match="as many labels"):
        counted_rates(np.array([1, 0, 1]), np.array([1, 0]))


def drawn_values(random, *, noise):
    """A finite population of an expert's values, cheap ones with some noise and bias, and a covariate."""
    size = 300
    x = random.normal(size=size)
    x -= x.mean()
    y = 0.5 + 0.1 * x + 0.1 * random.normal(size=size)
    return y, y * 0.6 + 0.3 + noise * random.normal(size=size), x


@pytest.mark.parametrize("noise", [0.02, 0.2])
def test_two_phases_have_the_variance_that_they_say(noise):
    random = np.random.default_rng(1)
    y, cheap, x = drawn_values(random, noise=noise)
    none = np.zeros(1)
    error, said, expert = [], [], []
    for _ in range(600):
        rows = random.permutation(300)[:120]
        sample = Sample(rows, np.zeros(120, int), np.array([300]))
        found = two_phase(y[None, rows[:40]], cheap[None, rows], x[None, None, rows], sample, none)
        error.append(found.mean[0] - y.mean())
        said.append(found.variance[0])
        expert.append(y[rows[:40]].mean() - y.mean())
    assert abs(np.mean(error)) < 4 * np.std(error) / np.sqrt(600)
    assert np.mean(said) == pytest.approx(np.var(error), rel=0.25)
    assert np.var(error) < np.var(expert) * (0.5 if noise < 0.1 else 0.8)


def test_cheap_labels_without_errors_are_worth_as_much_as_an_experts():
    random = np.random.default_rng(2)
    y, _, x = drawn_values(random, noise=0)
    rows = random.permutation(300)[:120]
    sample = Sample(rows, np.zeros(120, int), np.array([300]))
    none = np.zeros(1)
    found = two_phase(y[None, rows[:40]], y[None, rows], x[None, None, rows], sample, none)
    rest = y[rows] - np.polyval(np.polyfit(x[rows], y[rows], 1), x[rows])
    # Less the ridge of the slopes, a few per cent.
    assert found.variance[0] == pytest.approx(rest.var(ddof=1) * (1 / 120 - 1 / 300), rel=0.15)


@pytest.mark.parametrize("name", ["ap", "p@3", "mrr"])
def test_an_expert_on_a_part_covers_the_truth_of_any_metric(name):
    people, truth = small_population(queries=300)
    random = np.random.default_rng(7)
    of = measure(name, 3)
    guess = np.where(people.label == 1, 1.0, 0.25 + 0.3 * truth)
    ready = prepared(of, people, [guess])
    total = values(of, people, truth.astype(float))
    true = total.sum(1) / people.relevant(truth.astype(float)).sum() if of.micro else total.mean(1)
    hit, wide, alone = 0, [], []
    for _ in range(200):
        rows = random.permutation(300)[:150]
        sample = Sample(rows, np.zeros(150, int), np.array([300]))
        cheap = annotated(people, truth, 0.05, 0.05, random)
        found = of_two_phases(ready, people, cheap, truth, sample, 50, pairs=False)
        hit = hit + (np.abs(found.mean - true) <= 2 * np.sqrt(found.variance))
        wide.append(found.variance)
        expert = Sample(rows[:50], np.zeros(50, int), np.array([300]))
        alone.append(means(ready, people, truth, expert, pairs=False).variance)
    assert (hit / 200 > 0.89).all()
    assert (np.mean(wide, 0) < 0.8 * np.mean(alone, 0)).all()


def test_strata_of_two_phases_add_up():
    """One slope and equal strata of one population: the same mean as without strata."""
    random = np.random.default_rng(3)
    y, cheap, x = drawn_values(random, noise=0.05)
    rows = np.arange(120)
    one = Sample(rows, np.zeros(120, int), np.array([300]))
    two = Sample(rows, rows % 2, np.array([150, 150]))
    none = np.zeros(1)
    found = [two_phase(y[None, :40], cheap[None, :120], x[None, None, :120], s, none) for s in (one, two)]
    assert found[0].mean == pytest.approx(found[1].mean)
    assert found[0].variance == pytest.approx(found[1].variance, rel=0.2)


def test_two_phases_refuse_too_few_and_too_many():
    people, truth = small_population()
    ready = prepared(measure("ap", 3), people, [np.where(people.label == 1, 1.0, 0.5)])
    sample = Sample(np.arange(30), np.zeros(30, int), np.array([60]))
    for count in (19, 31):
        with pytest.raises(ArgumentError, match="`count`"):
            of_two_phases(ready, people, truth, truth, sample, count)
    strata = Sample(np.arange(30), np.repeat([0, 1], [29, 1]), np.array([30, 30]))
    with pytest.raises(ArgumentError, match="two queries in each stratum"):
        of_two_phases(ready, people, truth, truth, strata, 25)
