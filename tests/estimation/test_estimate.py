"""Estimates from drawn judgements: what they promise, what they refuse."""

import re

import numpy as np
import polars as pl
import pytest

from owkg.estimation import Asked, DrawnPool, ErrorRates, Unit, draw, estimate, free_proxy, population
from owkg.estimation.measures import measure, values
from tests.estimation.worlds import world


def drawn_world(asked, *, queries=200, seed=0, depth=5, reach=None, **options):
    """(pool, its judgements in draw order, true labels of the candidates)."""
    run, before, truth = world(seed, queries=queries, depth=reach or depth, **options)
    people = population(run, reach or depth, before)
    proxy = free_proxy(people)
    drawing = draw(people, asked, seed=11, proxy=proxy, below=depth)
    pool = DrawnPool(people, drawing, proxy, before, depth)
    true = np.where(people.label == 1, 1, np.maximum(people.labelled(truth), 0))
    return pool, judged(pool, true, drawing.order()[0]), true


def judged(pool, true, units):
    chosen = np.flatnonzero(pool.drawing.candidates(pool.people, pool.people.label, units))
    rows = pool.people.pairs(chosen)
    return rows.with_columns(relevance=pl.Series(true[chosen].astype(np.int64)))


def test_whole_queries_answer_all_metrics():
    pool, qrels, true = drawn_world(Asked(Unit.QUERIES, 60))
    found = estimate(pool, qrels, ["rr", "ap", "p", "mrr"])
    assert found.metrics["metric"].unique(maintain_order=True).to_list() == ["RR@5", "AP@5", "P@5", "mrr"]
    assert len(found.differences) == 4 * 3
    for name in ("rr", "ap", "p"):
        of = measure(name, 5)
        whole = values(of, pool.people, true.astype(float)).mean(1)
        own = found.metrics.filter(metric=of.name)
        assert own["model"].to_list() == ["m0", "m1", "m2"]
        assert (own["ci_low"].to_numpy() <= whole).all()
        assert (own["ci_high"].to_numpy() >= whole).all()
    missing = true[pool.people.unknown].sum()
    assert found.missing.found[1] <= missing <= found.missing.found[2]
    assert found.missing.value == pytest.approx(
        found.missing.found[0] / (found.missing.found[0] + found.missing.known)
    )
    assert (found.judged, found.unjudged) == (60, 0)
    assert found.metrics["judgements"].unique().to_list() == [len(qrels)]


def test_what_a_pair_says_is_the_difference_of_its_systems():
    pool, qrels, _ = drawn_world(Asked(Unit.CANDIDATES, 150))
    found = estimate(pool, qrels, "p")
    value = dict(found.metrics.select("model", "value").rows())
    for first, second, *_, difference in found.differences.select(
        "first", "second", "metric", "value"
    ).rows():
        # Slopes differ, so that they agree within a small part of the interval.
        assert difference == pytest.approx(value[first] - value[second], abs=0.02)


def test_everything_judged_gives_the_truth():
    pool, qrels, true = drawn_world(Asked(Unit.CANDIDATES, 40), queries=20)
    every = pool._replace(drawing=pool.drawing.more(len(pool.people.unknown) - 40))
    qrels = judged(every, true, every.drawing.order()[0])
    found = estimate(every, qrels, "p")
    whole = values(measure("p", 5), pool.people, true.astype(float)).mean(1)
    np.testing.assert_allclose(found.metrics["value"], whole, atol=1e-12)
    np.testing.assert_allclose(found.metrics["ci_high"] - found.metrics["ci_low"], 0, atol=1e-12)


def test_a_first_part_of_the_draw_is_a_sample():
    pool, _, true = drawn_world(Asked(Unit.QUERIES, 60, "size"))
    order, _ = pool.drawing.order()
    found = estimate(pool, judged(pool, true, order[:35]), "mrr")
    assert (found.judged, found.unjudged) == (35, 25)
    assert any("25 drawn queries are not judged yet" in note for note in found.notes)


def test_a_gap_is_named():
    pool, _, true = drawn_world(Asked(Unit.QUERIES, 30))
    order, _ = pool.drawing.order()
    name = pool.people.queries["query"][int(pool.drawing.frame[order[3]])]
    with pytest.raises(ValueError, match="`judged` must leave no gap: the query " + re.escape(repr(name))):
        estimate(pool, judged(pool, true, np.delete(order, 3)), "rr")


def test_a_query_that_is_judged_by_half_is_not_judged():
    pool, _, true = drawn_world(Asked(Unit.QUERIES, 30))
    order, _ = pool.drawing.order()
    last = judged(pool, true, order[-1:])
    assert len(last) > 1
    qrels = pl.concat([judged(pool, true, order[:-1]), last[:1]])
    assert estimate(pool, qrels, "rr").judged == 29
    everything = pl.concat([qrels, last[1:].with_columns(relevance=pl.lit(-1, pl.Int64))])
    assert estimate(pool, everything, "rr").judged == 29


def test_prefixes_need_no_labels_behind_the_first_relevant_answer():
    pool, qrels, true = drawn_world(Asked(Unit.PREFIXES, 60))
    people = pool.people
    labels = np.where(people.label >= 0, people.label, -1)
    seen = set()
    for s in range(3):
        for row in people.slot[s]:
            for c in row:
                if c < len(labels):
                    seen.add(int(c))
                    if true[c]:
                        break
    at = {
        pair: c
        for c, pair in enumerate(people.pairs(np.arange(len(labels))).select("query", "answer").rows())
    }
    few = qrels.filter(pl.Series([at[pair] in seen for pair in qrels.select("query", "answer").rows()]))
    assert len(few) < len(qrels)
    for metric in ("rr", "success"):
        one, other = (
            estimate(pool, frame, metric).metrics.drop("judgements", "equivalent_judgements")
            for frame in (few, qrels)
        )
        assert one.equals(other)


def test_answers_below_the_pool_are_counted():
    pool, qrels, true = drawn_world(Asked(Unit.BELOW, 400), depth=3, reach=9, queries=300)
    found = estimate(pool, qrels)
    missing = true[pool.drawing.frame].sum()
    assert found.missing.found[1] <= missing <= found.missing.found[2]
    assert found.metrics.is_empty()
    assert found.missing.scope == "ranks 4 to 9, with known answers"


@pytest.mark.parametrize(
    ("asked", "metric", "message"),
    [
        (
            Asked(Unit.CANDIDATES, 60),
            "rr",
            "`metric` must be answered by drawn candidates, and RR@5 is not: .* queries or prefixes",
        ),
        (
            Asked(Unit.PREFIXES, 60),
            "ap",
            "`metric` must be answered by drawn prefixes, and AP@5 is not: it needs drawn queries",
        ),
        (Asked(Unit.QUERIES, 60), "ap@9", "`metric` must be answered by a pool of depth 5"),
        (Asked(Unit.QUERIES, 9), "rr", "`judged` must be of at least 10 drawn queries, got 9"),
        (Asked(Unit.QUERIES, 15), "mrr", "`judged` must be of at least 20 queries for mrr, got 15"),
    ],
    ids=str,
)
def test_what_a_design_does_not_answer_is_refused(asked, metric, message):
    pool, qrels, _ = drawn_world(asked)
    with pytest.raises(ValueError, match=message):
        estimate(pool, qrels, metric)


def test_judgements_outside_the_draw_are_refused():
    pool, qrels, true = drawn_world(Asked(Unit.QUERIES, 30))
    order, _ = pool.drawing.order()
    rest = np.setdiff1d(np.arange(200), order)
    with pytest.raises(ValueError, match=r"`judged` must be of what was drawn: .* are not, such as"):
        estimate(pool, pl.concat([qrels, judged(pool, true, rest[:2])]), "rr")
    known = pool.known.head(1)
    assert estimate(pool, pl.concat([qrels, known.select(qrels.columns)]), "rr").judged == 30
    with pytest.raises(
        ValueError, match=r"`judged` must agree with what was known before the draw: .* was relevant"
    ):
        estimate(
            pool,
            pl.concat([qrels, known.select(qrels.columns).with_columns(relevance=pl.lit(0, pl.Int64))]),
            "rr",
        )


def test_a_better_proxy_makes_intervals_narrower_and_a_useless_one_does_not_hurt():
    pool, qrels, true = drawn_world(Asked(Unit.CANDIDATES, 150), queries=300)
    people = pool.people
    pairs = people.pairs(people.unknown).select("query", "answer")

    def width(probabilities):
        frame = pairs.with_columns(probability=pl.Series(probabilities))
        own = estimate(pool, qrels, "p", proxies={"other": frame}, compare=False).metrics
        return (own["ci_high"] - own["ci_low"]).mean()

    plain = estimate(pool, qrels, "p", compare=False).metrics
    free = (plain["ci_high"] - plain["ci_low"]).mean()
    assert width(np.where(true[people.unknown] == 1, 0.9, 0.05)) < 0.6 * free
    assert width(np.random.default_rng(0).random(len(pairs))) < 1.3 * free


def with_errors(qrels, fp, fn, seed=0):
    """The judgements of somebody who errs."""
    drawn = np.random.default_rng(seed).random(len(qrels))
    true = qrels["relevance"].to_numpy()
    return qrels.with_columns(
        relevance=pl.Series(np.where(true == 1, drawn >= fn, drawn < fp).astype(np.int64))
    )


@pytest.mark.parametrize("unit", [Unit.QUERIES, Unit.CANDIDATES])
def test_labels_are_corrected_for_errors(unit):
    """Over 20 annotators the mean of the corrected estimates is that of labels without errors."""
    pool, qrels, _ = drawn_world(Asked(unit, 60 if unit is Unit.QUERIES else 300))
    right = estimate(pool, qrels, "p", compare=False).metrics["value"].to_numpy()
    rates = ErrorRates(0.1, 0.1)
    found = np.array(
        [
            estimate(pool, with_errors(qrels, 0.1, 0.1, i), "p", compare=False, errors=rates).metrics["value"]
            for i in range(20)
        ]
    )
    plain = estimate(pool, with_errors(qrels, 0.1, 0.1), "p", compare=False).metrics["value"].to_numpy()
    assert abs(found.mean(0) - right).max() < 4 * found.std(0).max() / np.sqrt(20)
    assert abs(found.mean(0) - right).max() < 0.5 * abs(plain - right).max()
    own = estimate(pool, qrels, "p", compare=False, errors=rates).metrics
    free = estimate(pool, qrels, "p", compare=False).metrics
    if unit is Unit.QUERIES:
        assert ((own["ci_high"] - own["ci_low"]) > (free["ci_high"] - free["ci_low"])).all()


def test_exact_limits_hold_for_few_queries():
    pool, _, true = drawn_world(Asked(Unit.QUERIES, 12))
    found = estimate(pool, judged(pool, true, pool.drawing.order()[0]), "rr")
    assert set(found.metrics["method"]) == {"betting"}
    pool, qrels, _ = drawn_world(Asked(Unit.QUERIES, 60))
    wide, usual = (estimate(pool, qrels, "p", exact=exact, compare=False).metrics for exact in (True, False))
    assert ((wide["ci_high"] - wide["ci_low"]) > (usual["ci_high"] - usual["ci_low"])).all()


def test_several_looks_have_wider_intervals():
    pool, qrels, true = drawn_world(Asked(Unit.QUERIES, 60))
    looks = [20, 40, 60]
    order, _ = pool.drawing.order()
    last, one = (estimate(pool, qrels, "p", looks=given, compare=False).metrics for given in (looks, None))
    assert ((last["ci_high"] - last["ci_low"]) >= (one["ci_high"] - one["ci_low"])).all()
    early = judged(pool, true, order[:20])
    first, alone = (estimate(pool, early, "p", looks=given, compare=False).metrics for given in (looks, None))
    assert ((first["ci_high"] - first["ci_low"]) > 1.5 * (alone["ci_high"] - alone["ci_low"])).all()


@pytest.mark.parametrize(
    ("asked", "metric", "options", "message"),
    [
        (
            Asked(Unit.PREFIXES, 60),
            "rr",
            {"errors": ErrorRates(0.1, 0.1)},
            "`errors` must be absent where prefixes",
        ),
        (
            Asked(Unit.QUERIES, 60),
            "ap",
            {"errors": ErrorRates(0.1, 0.1)},
            "`errors` must be of a metric that is multi",
        ),
        (
            Asked(Unit.QUERIES, 60),
            "rr",
            {"errors": ErrorRates(0, 0.1), "exact": True},
            "`errors` must be absent with exact",
        ),
        (
            Asked(Unit.CANDIDATES, 60),
            "p",
            {"exact": True},
            "`exact` must be absent where candidates are drawn",
        ),
        (
            Asked(Unit.QUERIES, 60),
            "rr",
            {"looks": [30, 90]},
            "`looks` must be where the judged units are, 60, got 30, 90",
        ),
    ],
    ids=str,
)
def test_options_that_a_design_cannot_have(asked, metric, options, message):
    pool, qrels, _ = drawn_world(asked)
    with pytest.raises(ValueError, match=message):
        estimate(pool, qrels, metric, **options)
