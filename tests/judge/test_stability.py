"""Rankings on parts of the queries, against a loop over draws and every part of a small set."""

import sys
from collections import Counter

import numpy as np
import polars as pl
import pytest
from scipy import stats

from owkg import metrics
from owkg.judge.scores import Scores, scores
from owkg.judge.stability import stability, stability_by_triple
from owkg.keys import generator
from owkg.stats.rank_correlation import tau_ap

KEY = 7


def made(value, weight=None, larger=None):
    value = np.asarray(value, np.float64)
    metrics, systems, queries = value.shape
    asked = pl.DataFrame({"side": "tail", "entity": [f"e{i}" for i in range(queries)], "relation": "r"})
    return Scores(
        tuple(f"s{i}" for i in range(systems)),
        tuple(f"m{i}" for i in range(metrics)),
        larger or (True,) * metrics,
        asked,
        value,
        np.ones((metrics, queries)) if weight is None else np.asarray(weight, np.float64),
    )


def random_scores(seed=0, metrics=2, systems=5, queries=40, gap=0.02):
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 6, (metrics, queries)).astype(float)
    value = weight[:, None] * rng.random((metrics, systems, queries)) + gap * np.arange(systems)[:, None]
    return made(value, weight, (True, False)[:metrics])


def parts(key, queries, draws):
    """The order of the queries in each draw."""
    return np.argsort(generator(key).integers(0, 2**64, (draws, queries), np.uint64), axis=1)


def test_a_loop_over_draws_agrees():
    scores = random_scores()
    found = stability(KEY, scores, [0.1, 0.5, 0.9], 12)
    assert found.queries.tolist() == [4, 20, 36]
    for draw, order in enumerate(parts(KEY, 40, 12)):
        for size, count in enumerate(found.queries):
            chosen = order[:count]
            for metric in range(2):
                read = scores.value[metric][:, chosen].sum(1) / scores.weight[metric][chosen].sum()
                whole = scores.value[metric].sum(1)
                assert found.tau[metric, size, draw] == pytest.approx(
                    stats.kendalltau(read, whole).statistic, abs=1e-12
                )
    assert found.mean == pytest.approx(found.tau.mean(-1))
    assert found.standard_deviation == pytest.approx(found.tau.std(-1, ddof=1))
    assert found.quantiles == pytest.approx(np.quantile(found.tau, found.at, axis=-1))


def test_every_part_of_a_small_set_is_equally_likely():
    # Systems whose order shows which queries were drawn: one query in two tells 10 parts of 5 apart.
    queries, draws = 5, 4000
    order = parts(KEY, queries, draws)
    counts = Counter(tuple(sorted(row[:2])) for row in order.tolist())
    assert len(counts) == 10
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3
    # The mean over all parts is the expectation of the draws.
    scores = random_scores(3, metrics=1, queries=queries, gap=0)
    whole = scores.value[0].sum(1)
    every = [
        stats.kendalltau(scores.value[0][:, [a, b]].sum(1) / scores.weight[0, [a, b]].sum(), whole).statistic
        for a in range(5)
        for b in range(a)
    ]
    found = stability(KEY, scores, [0.4], draws)
    error = found.standard_deviation.item() / np.sqrt(draws)
    assert abs(found.mean.item() - np.mean(every)) < 4 * error
    assert found.standard_deviation.item() == pytest.approx(np.std(every), rel=0.1)


def test_draws_do_not_depend_on_calls_sizes_or_how_many(monkeypatch):
    scores = random_scores()
    whole = stability(KEY, scores, [0.2, 0.6], 9)
    assert (stability(KEY, scores, [0.2, 0.6], 5).tau == whole.tau[..., :5]).all()
    assert (stability(KEY, scores, [0.6], 9).tau == whole.tau[:, 1:]).all()
    monkeypatch.setattr(sys.modules["owkg.judge.stability"], "_ENTRIES", 1)
    steps = []
    apart = stability(KEY, scores, [0.2, 0.6], 9, on_progress=lambda *step: steps.append(step))
    assert (apart.tau == whole.tau).all()
    assert steps == [(i, 9) for i in range(1, 10)]
    assert (stability(8, scores, [0.2, 0.6], 9).tau != whole.tau).any()


def test_more_queries_more_agreement():
    found = stability(KEY, random_scores(queries=300, gap=0.1), [0.02, 0.2, 0.98], 200)
    assert (np.diff(found.mean, axis=1) > 0).all()
    assert (found.standard_deviation[:, 2] < found.standard_deviation[:, 0]).all()
    assert found.mean[:, 2] == pytest.approx([1, 1], abs=0.15)
    clear = made(np.arange(4.0)[None, :, None] * np.ones((1, 4, 20)))
    assert (stability(KEY, clear, [0.05, 0.5], 10).tau == 1).all()


def test_other_coefficients_and_quantiles():
    scores = random_scores()
    found = stability(KEY, scores, [0.5], 6, coefficient="tau-ap", quantiles=[0.0, 1.0])
    order = parts(KEY, 40, 6)[3][:20]
    read = scores.value[1][:, order].sum(1) / scores.weight[1][order].sum()
    assert found.tau[1, 0, 3] == pytest.approx(tau_ap(-scores.mean[1], -read), abs=1e-12)
    assert found.at == (0.0, 1.0)
    assert (found.quantiles[0] == found.tau.min(-1)).all()


def test_draws_that_order_nothing_are_left_out():
    # One query tells the systems apart; without it all tie. On another metric, all tie always.
    value = np.zeros((2, 3, 10))
    value[0, :, 4] = [1, 2, 3]
    weight = np.ones((2, 10))
    weight[1, 1:] = 0
    found = stability(KEY, made(value, weight), [0.5], 40)
    drawn = [4 in row[:5] for row in parts(KEY, 10, 40).tolist()]
    assert (found.tau[0, 0] == 1).tolist() == drawn
    assert np.isnan(found.tau[0, 0]).tolist() == [not one for one in drawn]
    assert found.mean[0, 0] == 1
    assert found.standard_deviation[0, 0] == 0
    assert np.isnan(found.mean[1, 0])
    assert np.isnan(found.standard_deviation[1, 0])
    assert np.isnan(found.quantiles[:, 1, 0]).all()


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({"key": -1}, "`key`"),
        ({"scores": 3}, "`scores` must be Scores, the first result of owkg.judge.scores, got int"),
        ({"scores": random_scores(systems=1)}, "at least two systems, got 1"),
        ({"scores": made(np.ones((1, 2, 3)), np.zeros((1, 3)))}, "a positive weight, got none for m0"),
        ({"sizes": [0.5, 1.0]}, r"`sizes` must be in \(0, 1\), got 1.0"),
        ({"sizes": [0.01]}, "large enough for one of the 40 queries, got 0.01"),
        ({"sizes": [np.nan]}, "`sizes` .* got nan"),
        ({"draws": 1}, "`draws` must be a whole number of at least 2, got 1"),
        ({"coefficient": "pearson"}, "tau, tau-ap, spearman, got 'pearson'"),
        ({"coefficient": ["tau"]}, "`coefficient`"),
        ({"quantiles": 2}, "`quantiles`"),
    ],
)
def test_bad_input(changed, shown):
    arguments = {"key": KEY, "scores": random_scores(), "sizes": [0.5], "draws": 3} | changed
    with pytest.raises(ValueError, match=shown):
        stability(**arguments)


METRICS = [metrics.metric(name) for name in ("mrr", "mr", "amri", "macro-mrr", "macro-map@20")]
TRIPLE = ["head", "relation", "tail"]


def ranked(seed=0, systems=4, triples=30):
    """Rank tables of both sides of triples, in which queries have several answers; not in their order."""
    rng = np.random.default_rng(seed)
    facts = pl.DataFrame({"head": rng.integers(0, 5, 90), "relation": 0, "tail": rng.integers(0, 9, 90)})
    facts = facts.unique(maintain_order=True).head(triples).cast(pl.String)
    tables = {}
    for system in range(systems):
        sides = []
        for side, known in (("head", "tail"), ("tail", "head")):
            ranks = rng.integers(1, 8 + system, len(facts))
            found = facts.with_columns(side=pl.lit(side), optimistic=ranks, pessimistic=ranks + ranks % 2)
            sides.append(found.with_columns(candidates=40 - pl.len().over(known)))
        tables[f"s{system}"] = pl.concat(sides).sample(fraction=1, shuffle=True, seed=system)
    return tables


def test_triples_are_drawn_with_both_sides():
    tables = ranked()
    found = stability_by_triple(KEY, tables, METRICS, [0.2, 0.7], 6)
    assert (found.unit, found.queries.tolist(), found.tau.shape) == ("triple", [6, 21], (5, 2, 6))
    distinct = tables["s0"].select(TRIPLE).unique().sort(TRIPLE)
    whole = scores(tables, METRICS)[0].strength
    for draw, order in enumerate(parts(KEY, 30, 6)):
        for size, count in enumerate(found.queries):
            kept = {name: one.join(distinct[order[:count]], on=TRIPLE) for name, one in tables.items()}
            assert all(len(one) == 2 * count for one in kept.values())
            strength = scores(kept, METRICS)[0].strength
            for at in range(len(METRICS)):
                tau = stats.kendalltau(np.round(strength[at], 12), np.round(whole[at], 12)).statistic
                assert found.tau[at, size, draw] == pytest.approx(tau, abs=1e-12, nan_ok=True)
    steps = []
    again = stability_by_triple(KEY, tables, METRICS, [0.7], 4, on_progress=lambda *step: steps.append(step))
    np.testing.assert_array_equal(again.tau, found.tau[:, 1:, :4])
    assert steps == [(i, 4) for i in range(1, 5)]


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({"tables": 3}, "`tables` must hold rank tables of at least two systems, got 3"),
        ({"tables": ranked(systems=1)}, "at least two systems"),
        ({"sizes": [0.01]}, "large enough for one of the 30 triples, got 0.01"),
        ({"metrics": [metrics.metric("zmrr")]}, "`metrics` must be means"),
        ({"ties": "random"}, "`ties`"),
        ({"draws": 1}, "`draws`"),
    ],
)
def test_bad_input_of_triples(changed, shown):
    arguments = {"key": KEY, "tables": ranked(), "metrics": METRICS, "sizes": [0.5], "draws": 3} | changed
    with pytest.raises(ValueError, match=shown):
        stability_by_triple(**arguments)
