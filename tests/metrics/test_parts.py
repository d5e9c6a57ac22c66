"""Sums over queries, weights of tasks, and PROBE's rank transformer, by hand."""

import numpy as np
import pytest

from owkg.metrics import Ties, evaluate, metric, part_of, probe, tasks, tasks_of
from owkg.metrics.estimate import _error, slopes
from owkg.metrics.measures import Probe, Weighting
from owkg.metrics.query_sums import (
    Products,
    QuerySums,
    _products,
    moments_of,
    query_sums_by_ties,
    task_weight,
)
from owkg.rank_weights import GMR, MR, MRR, hits_at
from owkg.rank_weights.tables import rank_weights

EQUAL = Weighting()


def _score(a, rank, size):
    """PROBE's rank transformer, written out."""
    rank, size = np.asarray(rank, float), np.asarray(size, float)
    with np.errstate(all="ignore"):
        if a == 0:
            found = 1 - np.log(rank) / np.log(size)
        elif a == np.inf:
            found = (rank == 1).astype(float)
        else:
            found = (rank**-a - size**-a) / (1 - size**-a)
    return np.where(size == 1, 1.0, found)


def _by_hand(score, made, weight):
    """The parts of every query; `score` of (rank, candidates) as arrays."""
    rows = []
    for query in range(made.num_queries):
        total = np.zeros(6)
        for i in np.flatnonzero(made.query == query):
            n, w = made.candidates[i], weight[i]
            h = score(np.arange(1, n + 1), np.full(n, n))
            exact = h[made.optimistic[i] - 1 : made.pessimistic[i]].mean()
            total += [w, w * exact, w * h.mean(), w**2 * h.var(), w * h[0], w * h[-1]]
        rows.append(total)
    rows = np.array(rows).T
    return QuerySums(*rows[:5], worst=float(rows[5].sum()))


def _check(found, expected):
    for name in QuerySums._fields:
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-11, atol=1e-12, err_msg=name
        )


@pytest.mark.parametrize("metric", [MR, MRR, GMR, hits_at(3)], ids=str)
def test_parts_of_a_metric(full_table, metric):
    made, _ = tasks_of(full_table)
    expected = _by_hand(lambda rank, _: rank_weights(metric, rank), made, made.weight)
    found = query_sums_by_ties(metric, EQUAL, made, (Ties.EXACT, Ties.OPTIMISTIC), by_query=True)
    _check(found[Ties.EXACT], expected)
    totals = query_sums_by_ties(metric, EQUAL, made, tuple(Ties), by_query=False)
    summed = QuerySums(*(part.sum(keepdims=True) for part in expected[:5]), worst=expected.worst)
    _check(totals[Ties.EXACT], summed)


@pytest.mark.parametrize("a", [0.0, 1e-6, 0.5, 1.0, 3.0, 50.0, np.inf])
def test_parts_of_probe(full_table, a):
    made, _ = tasks_of(full_table)
    weighting = Weighting(popularity=0.75, relation_popularity=0.5)
    weight = made.weight * (made.popularity + 1.0) ** -0.75 * (made.relation_popularity + 1.0) ** -0.5
    np.testing.assert_allclose(task_weight(made, weighting), weight, rtol=1e-13)
    expected = _by_hand(lambda rank, size: _score(a, rank, size), made, weight)
    found = query_sums_by_ties(Probe(a), weighting, made, (Ties.EXACT,), by_query=True)[Ties.EXACT]
    rtol = 1e-6 if a == 1e-6 else 1e-11  # the formula written out loses digits there, not ours
    for name in QuerySums._fields:
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=rtol, atol=1e-9 if a == 1e-6 else 1e-12
        )


def test_probe_of_single_ranks():
    """Its value at both ends, its limits, and Hits@1 and MRR as special cases."""
    size = 50
    for a in (0.0, 0.1, 1.0, 4.0, np.inf):
        name = probe(a).name
        for rank, value in ((1, 1.0), (size, 0.0)):
            found = evaluate(tasks([rank], candidates=size), [probe(a)], level=None)[Ties.EXACT][name]
            np.testing.assert_allclose(found.value, value, atol=1e-15)
    ranks = np.array([1, 2, 7, 49, 50, 1])
    made = tasks(ranks, candidates=size)
    found = evaluate(made, [probe(x) for x in (0, 1e-8, 1, 60, np.inf)], level=None)[Ties.EXACT]
    np.testing.assert_allclose(found["probe@0,0"].value, 1 - np.log(ranks).mean() / np.log(size), rtol=1e-13)
    np.testing.assert_allclose(found["probe@1e-08,0"].value, found["probe@0,0"].value, rtol=1e-6)
    mrr = np.mean(1 / ranks)
    np.testing.assert_allclose(found["probe@1,0"].value, (mrr - 1 / size) / (1 - 1 / size), rtol=1e-13)
    np.testing.assert_allclose(found["probe@60,0"].value, (ranks == 1).mean(), rtol=1e-13)
    assert found["probe@inf,0"].value == (ranks == 1).mean()


def test_probe_of_sharpness_minus_one_is_the_mean_rank():
    ranks, size = np.array([1, 2, 7, 49, 50, 1]), 50
    names = ["probe@-1,0", "mr", "amri"]
    found = evaluate(tasks(ranks, candidates=size), [metric(name) for name in names], level=None)[Ties.EXACT]
    probed = found["probe@-1,0"]
    assert probed.value == pytest.approx(1 - (found["mr"].value - 1) / (size - 1), rel=1e-13)
    assert probed.value == pytest.approx((1 + found["amri"].value) / 2, rel=1e-13)
    assert probed.expectation == pytest.approx(0.5, rel=1e-13)
    half = evaluate(tasks(ranks, candidates=size), [probe(-0.5)], level=None)[Ties.EXACT]["probe@-0.5,0"]
    assert half.value == pytest.approx(_score(-0.5, ranks, size).mean(), rel=1e-13)


def test_probe_of_a_task_without_choice_is_one():
    found = evaluate(tasks([1, 4], candidates=[1, 4]), [probe(0.5)], level=None)[Ties.EXACT]["probe@0.5,0"]
    np.testing.assert_allclose(found.value, 0.5, rtol=1e-14)
    h = _score(0.5, np.arange(1, 5), 4)
    np.testing.assert_allclose(found.expectation, (1 + h.mean()) / 2, rtol=1e-13)
    np.testing.assert_allclose(found.variance, h.var() / 4, rtol=1e-12)


def test_robustness_weighs_by_popularity():
    made = tasks([1, 2, 8], candidates=[9, 9, 8], popularity=[0, 3, 99], relation_popularity=[0, 1, 15])
    h = _score(1.0, made.optimistic, made.candidates)
    for b, c in ((0.0, 0.0), (0.5, 0.0), (2.0, 0.0), (0.0, 0.5), (1.0, 0.25)):
        weight = (made.popularity + 1.0) ** -b * (made.relation_popularity + 1.0) ** -c
        made_metric = probe(1, b, c)
        found = evaluate(made, [made_metric], level=None)[Ties.EXACT][made_metric.name]
        np.testing.assert_allclose(found.value, np.average(h, weights=weight), rtol=1e-13)
    small = evaluate(made, [probe(1, 0.5, 0, 0.01)], level=None)[Ties.EXACT]["probe@1,0.5,0,0.01"]
    own = (made.popularity + 0.01) ** -0.5
    np.testing.assert_allclose(small.value, np.average(h, weights=own), rtol=1e-13)
    strat = evaluate(made, [metric("strat-mrr@0.5")], level=None)[Ties.EXACT]["strat-mrr@0.5"]
    np.testing.assert_allclose(
        strat.value, np.average(1 / made.optimistic, weights=(made.popularity + 1) ** -0.5), rtol=1e-13
    )


def test_num_entities():
    made = tasks([1, 2, 8], candidates=[9, 9, 8], popularity=[0, 3, 99])
    found = evaluate(made, [probe(0.5, 1)], level=0.9, num_entities=40)[Ties.EXACT]["probe@0.5,1"]
    weight = 1 / (made.popularity + 1.0)
    expected = np.average(_score(0.5, made.optimistic, 40), weights=weight)
    np.testing.assert_allclose(found.value, expected, rtol=1e-13)
    chance = [_score(0.5, np.arange(1, n + 1), 40).mean() for n in made.candidates]
    np.testing.assert_allclose(found.expectation, np.average(chance, weights=weight), rtol=1e-12)
    # It changes nothing else.
    plain = evaluate(made, [metric("mrr")], level=None, num_entities=40)
    assert plain == evaluate(made, [metric("mrr")], level=None)


@pytest.mark.parametrize("number", [8, 0, -1, 8.5, "40", float("nan"), [40, 40]])
def test_bad_num_entities(number):
    made = tasks([1, 2, 8], candidates=[9, 9, 8])
    with pytest.raises(ValueError, match="`num_entities`"):
        evaluate(made, [probe(0.5)], num_entities=number)


def test_wgmr():
    made = tasks([1, 2, 8], candidates=[1, 9, 30], weight=[1.0, 2.0, 0.5])
    weight = made.weight * (made.candidates - 1)
    found = evaluate(made, [metric("wgmr")], level=None)[Ties.EXACT]["wgmr"]
    expected = np.exp(np.average(np.log(made.optimistic), weights=weight))
    np.testing.assert_allclose(found.value, expected, rtol=1e-13)
    share = weight / weight.sum()
    first = np.prod([np.mean(np.arange(1, n + 1) ** e) for n, e in zip(made.candidates, share, strict=True)])
    np.testing.assert_allclose(found.expectation, first, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "column"),
    [("probe@1,0.5", "popularity"), ("strat-mrr@1", "popularity"), ("probe@1,0,1", "relation_popularity")],
)
def test_popularity_that_is_not_known(name, column):
    with pytest.raises(ValueError, match=f"column {column} "):
        evaluate(tasks([1, 2], candidates=9), [metric(name)])
    # An exponent of 0 needs none.
    assert evaluate(tasks([1, 2], candidates=9), [metric("strat-mrr@0"), metric("probe@1,0")])


def test_moments_are_sums_and_centred_products(full_table):
    made, _ = tasks_of(full_table)
    by_ties = query_sums_by_ties(MRR, EQUAL, made, tuple(Ties), by_query=True)
    for rule, moments in moments_of(by_ties).items():
        parts = np.stack(by_ties[rule][:5])
        np.testing.assert_allclose(moments.totals, parts.sum(axis=1), rtol=1e-13)
        centred = parts - parts.mean(axis=1, keepdims=True)
        slope = np.array([0.3, -0.2, 0.5, 1.0, 0.7])
        own = moments.centred(slope)
        assert own @ moments.gram @ own == pytest.approx(np.sum((slope @ centred) ** 2), rel=1e-10)
        assert moments.queries == made.num_queries


@pytest.mark.parametrize("weight", [1.0, np.array([1.0, 2.0, 1.0, 3.0, 1.5])], ids=["equal", "weights"])
def test_large_values_that_differ_little_have_the_error_of_small_ones(weight):
    """Also if the queries come in parts, whose means differ."""
    value, weight = np.array([2.0, 9.0, 5.0, 1.0, 8.0]), weight * np.ones(5)

    def errors(more):
        parts = np.array([weight, weight * (value + more), weight * more / 2, weight * more**2 / 12, weight])
        split = [_products({Ties.EXACT: QuerySums(*parts[:, at], 0)}) for at in (slice(3), slice(3, 5))]
        whole = moments_of({Ties.EXACT: QuerySums(*parts, 0)})[Ties.EXACT]
        slope = slopes(whole.totals, None, whole.totals[1] / whole.totals[0])
        of_parts = Products.of([one[Ties.EXACT] for one in split]).moments(0, 5)
        return [_error(moments, slope) for moments in (whole, of_parts)]

    assert errors(1e8) == pytest.approx([errors(0.0)[0]] * 2, rel=1e-6)


def test_a_rule_is_not_mistaken_for_another(full_table):
    made, _ = tasks_of(full_table)
    assert made.tied
    by_query = evaluate(made, [metric("mrr"), metric("gmr"), metric("median_rank")], level=0.5)
    totals = evaluate(made, [metric("mrr"), metric("gmr"), metric("median_rank")], level=None)
    for rule in Ties:
        for name in ("mrr", "gmr", "median_rank"):
            np.testing.assert_allclose(totals[rule][name].value, by_query[rule][name].value, rtol=1e-13)
    assert len({totals[rule]["mrr"].value for rule in Ties}) == 4
    untied = part_of(made, made.optimistic == made.pessimistic)
    assert not untied.tied
