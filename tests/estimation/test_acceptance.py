"""Acceptance at a precision: tests by enumeration of all draws, their levels, replays, bad arguments."""

from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise
from math import comb, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from owkg.errors import ArgumentError
from owkg.estimation import acceptance
from owkg.estimation.acceptance import (
    State,
    allowed_errors,
    boundary,
    evidence,
    lower_limit,
    one_set,
    outlook,
)
from owkg.estimation.nested_sets import (
    chain,
    nested,
    nested_p_values,
    nested_sizes,
    pilot_places,
    piloted,
    predicted_size,
    region_size,
)
from owkg.estimation.relation_sets import by_relation, nested_by_relation
from simulations.accepted_predictions import nested_replays, one_set_replays


def _likelihood(size, bad, judged, errors):
    return comb(bad, errors) * comb(size - bad, judged - errors) if judged - errors <= size - bad else 0


def _evidence(size, bad, judged, errors):
    """The definition, term by term in whole numbers."""
    below = sum(_likelihood(size, b, judged, errors) for b in range(bad) if b >= errors)
    at = _likelihood(size, bad, judged, errors)
    if below == 0:
        return 0.0
    return float(Fraction(below, bad * at)) if at else inf


@given(st.integers(1, 400), st.data())
def test_evidence_is_the_mean_likelihood_ratio(size, data):
    bad = data.draw(st.integers(1, size))
    judged = data.draw(st.integers(0, size))
    errors = data.draw(st.integers(0, judged))
    expected = _evidence(size, bad, judged, errors)
    assert float(evidence(size, bad, judged, errors)) == pytest.approx(expected, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize(("size", "bad"), [(7, 2), (9, 4), (12, 12), (12, 1)])
def test_evidence_is_a_martingale_at_the_limit_and_falls_beyond(size, bad):
    for errors in range(bad, size + 1):
        for judged in range(size):
            for seen in range(max(0, judged - size + errors), min(judged, errors) + 1):
                now = float(evidence(size, bad, judged, seen))
                wrong = (errors - seen) / (size - judged)
                after = wrong * float(evidence(size, bad, judged + 1, seen + 1)) if wrong else 0.0
                if wrong < 1:
                    after += (1 - wrong) * float(evidence(size, bad, judged + 1, seen))
                assert after <= now + 1e-9
                if errors == bad and judged - seen < size - bad:
                    assert after == pytest.approx(now, rel=1e-9)
    assert float(evidence(size, bad, 0, 0)) == pytest.approx(1)


def test_rejected_numbers_of_errors_are_all_above_one():
    """What `lower_limit` rests on: evidence that reaches 1 / alpha >= e grows with the number of errors."""
    for size in (5, 13, 40, 83):
        judged, errors, bad = np.meshgrid(*[np.arange(size + 1)] * 2, np.arange(1, size + 1), indexing="ij")
        possible = (errors <= judged)[..., 0]
        rejected = evidence(size, bad, judged, np.minimum(errors, judged))[possible] >= 1 / 0.35
        assert rejected.any()
        assert (rejected[:, 1:] >= rejected[:, :-1]).all()


@pytest.mark.parametrize("precision", [0.5, 0.7, 0.9, 1.0])
@pytest.mark.parametrize("level", [0.7, 0.95])
def test_one_set_over_all_orders(precision, level):
    """Every order of every set of 8: acceptance and limits are wrong in at most 1 - level of the orders."""
    size = 8

    @cache
    def after(seen):
        shown = np.full(size, -1)
        shown[: len(seen)] = seen
        return one_set(shown, np.arange(size), precision=precision, level=level)

    for errors in range(size + 1):
        false = low = 0
        positions = list(combinations(range(size), errors))
        for wrong in positions:
            labels = np.ones(size, int)
            labels[list(wrong)] = 0
            # Limits only rise and acceptance is kept until it is refused, so any time is the worst one.
            ever = lowest = False
            for judged in range(size + 1):
                found = after(tuple(labels[:judged]))
                ever |= found.state is State.ACCEPTED
                lowest |= found.lower > 1 - errors / size + 1e-12
            holds = errors <= allowed_errors(precision, size)
            assert found.state is (State.ACCEPTED if holds else State.REFUSED)
            assert found.lower == pytest.approx(1 - errors / size)
            assert found.next is None
            false += ever and not holds
            low += lowest
        assert false <= (1 - level) * len(positions) + 1e-9
        assert low <= (1 - level) * len(positions) + 1e-9


def test_allowed_errors_are_exact():
    assert [allowed_errors(p, 10) for p in (0.9, 0.7, 0.3, 1.0, 0.05)] == [1, 3, 7, 0, 9]
    for hundredths in range(1, 101):
        for size in (1, 7, 100, 999):
            assert allowed_errors(hundredths / 100, size) == (100 - hundredths) * size // 100
    assert allowed_errors(np.float64(0.9), np.int64(10)) == 1


@pytest.mark.parametrize(("size", "precision"), [(1, 0.5), (30, 0.9), (200, 0.8), (57, 1.0)])
def test_boundary_is_where_evidence_suffices(size, precision):
    limits = boundary(size, precision)
    bad = allowed_errors(precision, size) + 1
    for judged in range(1, size + 1):
        enough = [e for e in range(judged + 1) if _evidence(size, bad, judged, e) >= 20]
        assert limits[judged - 1] == max(enough, default=-1)
    assert (boundary(size, precision, most=20) == limits[:20]).all()


def test_acceptance_agrees_with_the_boundary_and_resumes():
    rng = np.random.default_rng(4)
    order = rng.permutation(300)
    truth = (rng.random(300) < 0.93).astype(int)
    limits = boundary(300, 0.85)
    errors = np.cumsum(truth[order] == 0)
    first = int(np.flatnonzero(errors <= limits)[0]) + 1
    labels = np.full(300, -1)
    lower = 0.0
    for judged in range(first + 3):
        found = one_set(labels, order, precision=0.85)
        assert (found.state is State.ACCEPTED) == (judged >= first)
        assert found.decided == (first if judged >= first else None)
        assert found.judged == judged
        assert found.next == (None if judged >= first else order[judged])
        assert found.lower >= lower - 1e-12
        assert (found.lower >= 0.85) == (found.state is State.ACCEPTED)
        if found.fewest is not None:
            more = labels.copy()
            more[order[judged : judged + found.fewest]] = 1
            assert one_set(more, order, precision=0.85).state is State.ACCEPTED
            more[order[judged + found.fewest - 1]] = -1
            assert one_set(more, order, precision=0.85).state is State.OPEN
        lower = found.lower
        labels[order[judged]] = truth[order[judged]]


def test_the_limit_is_the_largest_precision_accepted():
    rng = np.random.default_rng(6)
    order = rng.permutation(150)
    labels = np.full(150, -1)
    labels[order[:60]] = rng.random(60) < 0.9
    lower = one_set(labels, order, precision=0.5).lower
    assert 0.5 < lower < 0.9
    below, above = lower - 1e-6, lower + 1e-6
    assert one_set(labels, order, precision=below).state is State.ACCEPTED
    assert one_set(labels, order, precision=above).state is State.OPEN
    nothing = one_set(np.full(9, -1), np.arange(9), precision=0.5)
    assert (nothing.lower, nothing.evidence, nothing.judged) == (0.0, 1.0, 0)


def test_too_many_errors_refuse_for_certain():
    labels = np.full(100, -1)
    labels[:10] = 0
    found = one_set(labels, np.arange(100), precision=0.9)
    assert (found.state, found.fewest) == (State.OPEN, 90)
    labels[10:14] = [1, 0, 1, 1]
    found = one_set(labels, np.arange(100), precision=0.9)
    assert (found.state, found.decided, found.next, found.certain) == (State.REFUSED, 12, None, True)
    assert "allows 10" in found.statement
    # Accepted too early, and then known to be wrong: the labels win.
    labels = np.ones(300, int)
    labels[60:] = 0
    assert (
        one_set(np.where(np.arange(300) < 60, 1, -1), np.arange(300), precision=0.9).state is State.ACCEPTED
    )
    found = one_set(labels, np.arange(300), precision=0.9)
    assert (found.state, found.decided, found.lower) == (State.REFUSED, 91, pytest.approx(0.2))


def test_certainty_waits_for_the_last_label_that_matters():
    labels = np.full(20, -1)
    for judged in range(18):
        labels[:judged] = 1
        found = one_set(labels, np.arange(20), precision=0.9, certainty=True)
        assert (found.state, found.fewest) == (State.OPEN, 18 - judged)
        assert found.lower == pytest.approx(judged / 20)
    labels[17] = 1
    found = one_set(labels, np.arange(20), precision=0.9, certainty=True)
    assert (found.state, found.certain) == (State.ACCEPTED, True)
    assert "for certain" in found.statement
    # Likelihoods that are too small for a float are no certainty.
    big = np.full(20_000, -1)
    big[:6_000] = 1
    assert one_set(big, np.arange(20_000), precision=0.8, certainty=True).state is State.OPEN


def test_outlook_over_all_orders():
    """Exact by its own recursion against all C(12, 3) orders."""
    size, errors, precision, level = 12, 3, 0.6, 0.8
    limits = boundary(size, precision, level=level)
    turns = []
    for wrong in combinations(range(size), errors):
        seen = np.cumsum(np.isin(np.arange(size), wrong))
        turns.append(int(np.flatnonzero(seen <= limits)[0]) + 1)
    found = outlook(size, precision, 1 - errors / size, level=level)
    assert found.accepted == pytest.approx(1)
    assert found.mean == pytest.approx(np.mean(turns))
    assert found.stops == pytest.approx(np.bincount(turns, minlength=size + 1)[1:] / len(turns))
    assert found.median == int(np.quantile(turns, 0.5, method="inverted_cdf"))
    short = outlook(size, precision, 1 - errors / size, level=level, most=4)
    assert short.accepted == pytest.approx(np.mean(np.array(turns) <= 4))
    assert short.mean == pytest.approx(np.minimum(turns, 4).mean())


@pytest.mark.parametrize("precision", [0.7, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("size", [40, 300, 1000])
def test_false_acceptance_is_at_most_alpha(size, precision):
    """Exact: a set with one error more than allowed, looked at after each judgement until the end."""
    bad = allowed_errors(precision, size) + 1
    found = outlook(size, precision, 1 - bad / size, most=size)
    assert 0.005 < found.accepted <= 0.05
    assert found.accepted + found.refused == pytest.approx(1)


def test_mean_judgements_are_at_most_two_hundred():
    found = outlook(1000, 0.9, 0.95, most=1000)
    assert found.accepted == pytest.approx(1)
    assert found.mean == pytest.approx(161.6, abs=0.1)
    assert outlook(3000, 0.9, 0.95).mean == pytest.approx(189.9, abs=0.1)
    truth = np.ones(1000, int)
    truth[:50] = 0
    replayed = one_set_replays(truth, precision=0.9, most=1000, replays=1_000, seed=3)
    assert replayed.judgements == pytest.approx(found.mean, abs=4 * 95 / np.sqrt(1_000))
    assert replayed.share == 1


def test_nested_p_values_over_all_draws():
    """Of all draws of 5 from a region of 10: given n_j, P(p_j <= u) <= u if the set has too many errors."""
    region, drawn, precision = 10, 5, 0.7
    sizes = nested_sizes(region, 5)
    assert sizes.tolist() == [2, 4, 6, 8, 10]
    wrong = np.zeros(region, int)
    wrong[[0, 2, 3, 5, 7, 9]] = 1  # every set lacks the precision
    draws = np.array(list(combinations(range(region), drawn)))
    counts = (draws[:, :, None] < sizes).sum(1)
    errors = ((draws[:, :, None] < sizes) * wrong[draws][:, :, None]).sum(1)
    p = nested_p_values(sizes, counts, errors, precision)
    for j, size in enumerate(sizes):
        bad = allowed_errors(precision, int(size)) + 1
        assert wrong[:size].sum() >= bad
        for n in np.unique(counts[:, j]):
            of = p[counts[:, j] == n, j]
            for u in np.unique(of):
                assert (of <= u + 1e-12).mean() <= u + 1e-9
            # One error too many: exact, so that equality holds.
            exact = stats.hypergeom(size, bad, n)
            at = nested_p_values(sizes[j : j + 1], np.array([n]), np.array([min(n, bad)]), precision)
            assert at[0] == pytest.approx(exact.cdf(min(n, bad)))
    rejected, _ = chain(p, 0.3)
    assert rejected.any(1).mean() <= 0.3


def test_nested_over_all_draws_keeps_its_promise():
    """Every draw of 5 of 10: a set without the precision is accepted in at most alpha of them."""
    rng = np.random.default_rng(0)
    violations = []
    for _ in range(6):
        truth = (rng.random(10) < rng.uniform(0.4, 0.9)).astype(int)
        false = total = 0
        for draw in combinations(range(10), 5):
            order = np.concatenate([draw, np.setdiff1d(np.arange(10), draw)])
            labels = np.full(10, -1)
            labels[list(draw)] = truth[list(draw)]
            found = nested(labels, order, 5, precision=0.7, level=0.65)
            good = truth[: found.accepted].sum()
            false += good < 0.7 * found.accepted - 1e-9
            total += 1
        violations.append(false / total)
    assert 0 < max(violations) <= 0.35


def _graphical(p, alpha, starts):
    """The definition: any set that can be rejected is, and hands its alpha to the next larger one left."""
    weight = np.zeros(len(p))
    for one in starts:
        weight[one - 1] += alpha / len(starts)
    rejected = np.zeros(len(p), bool)
    while (able := np.flatnonzero(~rejected & (weight > 0) & (p <= weight))).size:
        one = able[-1]
        rejected[one] = True
        left = [j for j in range(one + 1, len(p)) if not rejected[j]]
        if left:
            weight[left[0]] += weight[one]
        weight[one] = 0
    return rejected


@given(st.lists(st.sampled_from([0.0, 0.01, 0.03, 0.05, 0.2]), min_size=10, max_size=10))
def test_the_chain_is_the_graphical_procedure(p):
    rejected, spent = chain(np.array(p), 0.06, (2, 5, 8))
    assert (rejected == _graphical(np.array(p), 0.06, (2, 5, 8))).all()
    assert (rejected <= (np.array(p) <= spent)).all()
    assert spent[-1] <= 0.06 + 1e-12


def test_the_chain_by_hand():
    p = np.array([[0.5, 0.01, 0.01, 0.9, 0.03, 0.01, 0.01, 0.02, 0.03, 0.05], [0.0] * 10, [0.0] + [0.9] * 9])
    rejected, spent = chain(p, 0.06)
    assert rejected[0].tolist() == [False, True, True, False, False, False, False, True, False, False]
    assert spent[0] == pytest.approx([0, 0.02, 0.02, 0.02, 0.02, 0, 0, 0.02, 0.02, 0])
    assert rejected[1].tolist() == [False] + [True] * 9
    assert spent[1, [1, 4, 9]] == pytest.approx([0.02, 0.04, 0.06])
    assert not rejected[2].any()


def test_regions():
    probabilities = np.array([1.0, 0.9, 0.2, 1.0, 0.9, 0.1, 0.1, 0.1])
    assert predicted_size(probabilities, 0.8) == 5
    assert region_size(probabilities, 0.8) == 7
    assert region_size(probabilities, 0.8, spare=3) == 8
    assert region_size(probabilities / 2, 0.8) == 0
    assert nested_sizes(7).tolist() == [1, 2, 3, 3, 4, 5, 5, 6, 7, 7]
    assert predicted_size(np.full(1000, 0.9), 0.9) == 1000


def test_pilots_find_the_region():
    size, precision = 8_000, 0.9
    curve = 1 / (1 + (np.arange(1, size + 1) / 2_000) ** 1.5)
    truth = (np.random.default_rng(1).random(size) < curve).astype(int)
    right = predicted_size(curve, precision)
    found = []
    for seed in range(20):
        places = pilot_places(size, 60, seed=seed)
        assert 50 <= len(places) <= 60
        assert (np.diff(places) > 0).all()
        assert (places[0] >= 29, places[-1] < size) == (True, True)
        fitted = piloted(size, places, truth[places])
        assert (np.diff(fitted) <= 0).all()
        found.append(predicted_size(fitted, precision))
    assert 0.6 * right < np.median(found) < 1.6 * right
    # With all labels it is the curve itself, and with labels of one kind it stays a curve.
    every = np.arange(size)
    assert piloted(size, every, truth) == pytest.approx(curve, abs=0.05)
    assert piloted(100, np.arange(10), np.ones(10, int)).min() > 0.5
    assert np.ptp(piloted(100, np.array([5, 50]), np.array([0, 1]))) < 0.9
    assert pilot_places(5, 5).max() < 5


def test_nested_waits_for_the_whole_draw_and_knows_a_whole_region():
    rng = np.random.default_rng(2)
    order = rng.permutation(200)
    labels = np.full(200, -1)
    labels[order[:99]] = 1
    found = nested(labels, order, 100, precision=0.9)
    assert (found.state, found.next, found.accepted) == (State.OPEN, order[99], 0)
    labels[order[99]] = 1
    found = nested(labels, order, 100, precision=0.9)
    assert (found.state, found.next, found.accepted, found.judged) == (State.ACCEPTED, None, 200, 100)
    assert found.drawn[-1] == 100
    assert found.drawn.tolist() == [(order[:100] < size).sum() for size in found.sizes]
    labels[:] = np.arange(200) < 123
    found = nested(labels, order, 200, precision=0.9)
    assert (found.exact, found.accepted) == (True, 136)  # 123 / 136 = 0.904, 123 / 137 = 0.898
    labels[:] = 0
    assert nested(labels, order, 200, precision=0.9).state is State.REFUSED


def test_nested_replays_are_the_function():
    rng = np.random.default_rng(5)
    truth = (rng.random(300) < np.linspace(1, 0.6, 300)).astype(int)
    found = nested_replays(truth, 250, 80, precision=0.8, replays=400, seed=9)
    accepted = []
    rng = np.random.default_rng(9)
    for u in rng.random((400, 250)):
        order = np.argsort(u)
        labels = np.full(250, -1)
        labels[order[:80]] = truth[order[:80]]
        accepted.append(nested(labels, order, 80, precision=0.8).accepted)
    good = np.array([truth[:k].sum() for k in accepted])
    accepted = np.array(accepted)
    best = max(k for k in range(1, 301) if truth[:k].sum() >= 0.8 * k - 1e-9)
    assert found.nothing == (accepted == 0).mean()
    assert found.violated == (good < 0.8 * accepted - 1e-9).mean()
    assert found.share == pytest.approx(accepted.mean() / best)
    assert 0 < found.share < 1


@pytest.mark.parametrize("precision", [0.7, 0.9])
def test_nested_replays_violate_rarely(precision):
    """A set of the grid has one error too many: the worst place for the chain."""
    size = 800
    truth = np.ones(size, int)
    truth[np.linspace(0, 639, allowed_errors(precision, 640) + 1).astype(int)] = 0
    truth[640:] = 0
    found = nested_replays(truth, size, 200, precision=precision, replays=2_000)
    assert 0.001 < found.violated <= 0.05


def test_each_relation_is_a_set_of_its_own():
    rng = np.random.default_rng(1)
    relations = rng.integers(0, 3, 300) * 5
    relations[:12] = 7
    order = rng.permutation(300)
    labels = np.full(300, -1)
    for one, good in ((0, 1), (5, 0)):
        places = order[relations[order] == one]
        labels[places[:60]] = good
    labels[order[relations[order] == 7][:11]] = 1
    found = {one.relation: one for one in by_relation(labels, order, relations, precision=0.9)}
    assert list(found) == [0, 5, 7, 10]
    assert [found[one].state for one in (0, 5, 7, 10)] == [
        State.ACCEPTED,
        State.REFUSED,
        State.ACCEPTED,
        State.OPEN,
    ]
    alone = order[relations[order] == 0]
    assert found[0].found == one_set(labels, alone, precision=0.9)
    assert found[10].found.next == order[relations[order] == 10][0]
    # Fewer than 30 are accepted only for certain: 0.9 of 12 are 11.
    labels[order[relations[order] == 7][10]] = -1
    small = by_relation(labels, order, relations, precision=0.9)[2]
    assert (small.state, small.found.fewest, small.found.needed) == (State.OPEN, 1, inf)


def test_relations_together_by_holm():
    order = np.arange(400)
    relations = np.repeat([0, 1, 2, 3], 100)
    labels = np.full(400, -1)
    for one, judged in ((0, 100), (1, 40), (2, 32)):
        labels[100 * one : 100 * one + judged] = 1
    single = by_relation(labels, order, relations, precision=0.9)
    assert [one.state for one in single] == [State.ACCEPTED] * 3 + [State.OPEN]
    both = by_relation(labels, order, relations, precision=0.9, simultaneous=True)
    p = np.array([0.0, *(1 / _evidence(100, 11, judged, 0) for judged in (40, 32)), 1.0])
    stepped = np.maximum.accumulate(np.minimum(p * [4, 3, 2, 1], 1))
    assert [one.p_value for one in both] == pytest.approx(stepped)
    assert [one.state is State.ACCEPTED for one in both] == (stepped <= 0.05).tolist()
    assert [one.found.needed for one in both] == pytest.approx([80] * 4)
    assert both[1].found.lower <= single[1].found.lower


def test_holm_promises_all_relations_together():
    """Six relations with one error too many each: alone any is accepted in more than 5 % of replays."""
    rng = np.random.default_rng(8)
    relations = np.repeat(np.arange(6), 40)
    alone = together = 0
    for _ in range(100):
        truth = np.ones((6, 40), int)
        for row in truth:
            row[rng.choice(40, 9, replace=False)] = 0
        labels = truth.copy()
        labels[:, 34:] = -1  # most of each is judged, then somebody stops
        found = [
            by_relation(labels.ravel(), np.arange(240), relations, precision=0.8, simultaneous=both)
            for both in (False, True)
        ]
        alone += any(one.state is State.ACCEPTED for one in found[0])
        together += any(one.state is State.ACCEPTED for one in found[1])
    assert together <= 0.05 * 100 < alone


def test_nested_by_relation():
    rng = np.random.default_rng(3)
    relations = np.repeat([2, 4, 9], [100, 80, 20])[rng.permutation(200)]
    order = rng.permutation(200)
    labels = np.full(200, -1)
    for one, count in ((2, 50), (4, 40), (9, 20)):
        labels[order[relations[order] == one][:count]] = 1
    drawn = {2: 50, 4: 41, 9: 1}
    found = nested_by_relation(labels, order, relations, drawn, precision=0.9)
    assert [one.state for one in found] == [State.ACCEPTED, State.OPEN, State.ACCEPTED]
    assert found[1].found.next == order[relations[order] == 4][40]
    assert (found[2].found.exact, found[2].found.accepted) == (True, 20)
    own = np.flatnonzero(relations == 2)
    local = np.searchsorted(own, order[relations[order] == 2])
    alone = nested(labels[own], local, 50, precision=0.9)
    assert found[0].found.accepted == alone.accepted
    assert found[0].found.p_values == pytest.approx(alone.p_values)
    both = nested_by_relation(labels, order, relations, drawn, precision=0.9, simultaneous=True)
    assert both[0].found.spent.max() == pytest.approx(found[0].found.spent.max() / 2)


def test_statements_are_sentences():
    labels = np.full(60, -1)
    labels[:20] = 1
    found = one_set(labels, np.arange(60), precision=0.9)
    assert found.statement.startswith("Open: 0 of 20 judged candidates are wrong; at least ")
    labels[:50] = 1
    assert "holds with 95 % confidence" in one_set(labels, np.arange(60), precision=0.9).statement
    for drawn, start in ((50, "Accepted: the first 60"), (60, "Open: 50")):
        assert nested(labels, np.arange(60), drawn, precision=0.8).statement.startswith(start)
    labels[:50] = 0
    assert nested(labels, np.arange(60), 50, precision=0.8).statement.startswith("None accepted")


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("precision", lambda: one_set([1], [0], precision=0)),
        ("precision", lambda: one_set([1], [0], precision=1.1)),
        ("level", lambda: one_set([1], [0], precision=0.9, level=0.6)),
        ("level", lambda: one_set([1], [0], precision=0.9, level=1)),
        ("labels", lambda: one_set([2], [0], precision=0.9)),
        ("labels", lambda: one_set([[1]], [0], precision=0.9)),
        ("labels", lambda: one_set([-1, 1], [0, 1], precision=0.9)),
        ("order", lambda: one_set([1, 1], [0, 0], precision=0.9)),
        ("order", lambda: one_set([1, 1], [2], precision=0.9)),
        ("order", lambda: one_set([1, 1], [], precision=0.9)),
        ("order", lambda: nested([1, 1], [1], 1, precision=0.9)),
        ("drawn", lambda: nested([1, 1], [1, 0], 3, precision=0.9)),
        ("drawn", lambda: nested([1, 1], [1, 0], 0, precision=0.9)),
        ("labels", lambda: nested([1, 1], [1, 0], 1, precision=0.9)),
        ("relations", lambda: by_relation([1, 1], [1, 0], [3], precision=0.9)),
        ("simultaneous", lambda: by_relation([1, 1], [1, 0], [3, 3], precision=0.9, simultaneous="yes")),
        ("drawn", lambda: nested_by_relation([1, 1], [1, 0], [3, 3], {}, precision=0.9)),
        ("drawn", lambda: nested_by_relation([1] * 40, range(40), [3] * 40, {3: 39}, precision=0.9)),
        ("size", lambda: boundary(0, 0.9)),
        ("most", lambda: boundary(10, 0.9, most=0)),
        ("truth", lambda: outlook(10, 0.9, 1.2)),
        ("truth", lambda: nested_replays([2], 1, 1, precision=0.9)),
        ("region", lambda: nested_replays([1], 2, 1, precision=0.9)),
        ("replays", lambda: one_set_replays([1], precision=0.9, replays=0)),
        ("probabilities", lambda: predicted_size(np.array([1.2]), 0.9)),
        ("judgements", lambda: pilot_places(3, 4)),
        ("candidates", lambda: pilot_places(0, 4)),
        ("places", lambda: piloted(3, np.array([3]), np.array([1]))),
        ("labels", lambda: piloted(3, np.array([1]), np.array([2]))),
        ("labels", lambda: piloted(3, np.array([1]), np.array([1, 0]))),
        ("spare", lambda: region_size(np.array([1.0]), 0.9, spare=0.5)),
    ],
)
def test_bad_arguments_are_named(name, call):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert caught.value.name == name


def test_the_turn_that_was_skipped_is_named():
    with pytest.raises(ArgumentError, match="none at turn 2 and one at turn 3"):
        one_set([1, 1, -1], [0, 2, 1], precision=0.9)


def test_lower_limits_rise_with_judgements():
    limits = [lower_limit(100, np.array([t]), np.array([0]), 20.0) for t in range(101)]
    assert all(low <= high for low, high in pairwise(limits))
    assert (limits[0], limits[100]) == (0, 1)
    assert acceptance.MOST == 2_000
