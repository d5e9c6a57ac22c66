"""Estimates from drawn judgements: what they promise, what they refuse."""

import re

import numpy as np
import polars as pl
import pytest

from owkg.estimation import Asked, DrawnPool, ErrorRates, Unit, draw, estimate, free_proxy, population
from owkg.estimation.judged import outside_draw
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
            "`metric` must be a metric that drawn candidates answer, got RR@5, .* queries or prefixes",
        ),
        (
            Asked(Unit.PREFIXES, 60),
            "ap",
            "`metric` must be a metric that drawn prefixes answer, got AP@5, which needs drawn queries",
        ),
        (Asked(Unit.QUERIES, 60), "ap@9", "`metric` must be answered by a pool of depth 5"),
        (Asked(Unit.QUERIES, 9), "rr", "`judged` must cover at least 10 drawn queries, got 9"),
        (Asked(Unit.QUERIES, 15), "mrr", "`judged` must cover at least 20 queries for mrr, got 15"),
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
    with pytest.raises(ValueError, match=r"`judged` must be of drawn units: .* are not, such as"):
        estimate(pool, pl.concat([qrels, judged(pool, true, rest[:2])]), "rr")
    known = pool.known.head(1)
    assert estimate(pool, pl.concat([qrels, known.select(qrels.columns)]), "rr").judged == 30
    with pytest.raises(
        ValueError, match=r"`judged` must agree with the judgements before the draw: .* was relevant"
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


EMPTY = pl.DataFrame()


@pytest.mark.parametrize(
    ("asked", "metric", "options", "message"),
    [
        (
            Asked(Unit.PREFIXES, 60),
            "rr",
            {"errors": ErrorRates(0.1, 0.1)},
            "`errors` must be left out if prefixes",
        ),
        (
            Asked(Unit.QUERIES, 60),
            "ap",
            {"errors": ErrorRates(0.1, 0.1)},
            "`errors` must be used with a metric that is multi",
        ),
        (
            Asked(Unit.QUERIES, 60),
            "rr",
            {"errors": ErrorRates(0, 0.1), "exact": True},
            "`errors` must be left out with exact",
        ),
        (
            Asked(Unit.CANDIDATES, 60),
            "p",
            {"exact": True},
            "`exact` must be left out if candidates are drawn",
        ),
        (
            Asked(Unit.QUERIES, 60),
            "rr",
            {"looks": [30, 90]},
            "`looks` must include the number of judged units, 60, got 30, 90",
        ),
        (
            Asked(Unit.CANDIDATES, 60),
            "p",
            {"expert": EMPTY},
            "`expert` must be left out if candidates are drawn: an expert judges whole queries",
        ),
        (
            Asked(Unit.QUERIES, 60),
            "rr",
            {"expert": EMPTY, "errors": ErrorRates(0.1, 0.1)},
            "`expert` must be left out with `errors`",
        ),
        (
            Asked(Unit.QUERIES, 60),
            "rr",
            {"expert": EMPTY, "exact": True},
            "`expert` must be left out with exact",
        ),
        (
            Asked(Unit.QUERIES, 60),
            "rr",
            {"expert": EMPTY, "looks": [30, 60]},
            "`expert` must be left out with several looks",
        ),
        (Asked(Unit.QUERIES, 60), "rr", {"gaps": "drop"}, "`gaps` must be refuse or bounds, got 'drop'"),
        (
            Asked(Unit.PREFIXES, 60),
            "rr",
            {"gaps": "bounds"},
            "`gaps` must be left out if prefixes are drawn: the labels decide which candidates are judged",
        ),
        (
            Asked(Unit.QUERIES, 60),
            "rr",
            {"gaps": "bounds", "errors": ErrorRates(0.1, 0.1)},
            "`gaps` must be left out with `errors`",
        ),
        (
            Asked(Unit.QUERIES, 60),
            "rr",
            {"gaps": "bounds", "exact": True},
            "`gaps` must be left out with exact limits",
        ),
        (
            Asked(Unit.QUERIES, 60),
            "rr",
            {"gaps": "bounds", "expert": EMPTY},
            "`gaps` must be left out with `expert`",
        ),
        (
            Asked(Unit.PREFIXES, 60),
            "rr",
            {"others": EMPTY},
            "`others` must be left out if prefixes are drawn: only whole queries give bounds",
        ),
        (
            Asked(Unit.QUERIES, 60),
            "rr",
            {"others": EMPTY, "errors": ErrorRates(0.1, 0.1)},
            "`others` must be left out with `errors` or `expert`",
        ),
    ],
    ids=str,
)
def test_options_that_a_design_cannot_have(asked, metric, options, message):
    pool, qrels, _ = drawn_world(asked)
    with pytest.raises(ValueError, match=message):
        estimate(pool, qrels, metric, **options)


def first_of(pool, true, count):
    """The judgements of the first drawn units."""
    return judged(pool, true, pool.drawing.order()[0][:count])


def test_an_experts_labels_are_what_values_are_of():
    pool, qrels, true = drawn_world(Asked(Unit.QUERIES, 120))
    crowd = with_errors(qrels, 0.2, 0.2)
    found = estimate(pool, crowd, ["ap", "ndcg", "p"], expert=first_of(pool, true, 60))
    alone = estimate(pool, first_of(pool, true, 60), ["ap", "ndcg", "p"])
    assert "120 of 120 drawn queries judged, of 200; an expert judged the first 60 of them" in found.design
    for own, other in ((found.metrics, alone.metrics), (found.differences, alone.differences)):
        assert (own["value"] - other["value"]).abs().max() < 0.05
    assert (found.metrics["ci_high"] - found.metrics["ci_low"]).mean() < (
        alone.metrics["ci_high"] - alone.metrics["ci_low"]
    ).mean()
    assert found.metrics["judgements"][0] == len(qrels) + len(first_of(pool, true, 60))
    assert found.metrics["equivalent_judgements"].null_count() == len(found.metrics)
    missing = true[pool.people.unknown].sum()
    assert found.missing.found[1] <= missing <= found.missing.found[2]


def test_an_expert_of_all_queries_is_all_that_counts():
    pool, qrels, _ = drawn_world(Asked(Unit.QUERIES, 60, "size"))
    both = estimate(pool, with_errors(qrels, 0.2, 0.2), ["ap", "mrr"], expert=qrels)
    alone = estimate(pool, qrels, ["ap", "mrr"])
    assert both.metrics.equals(alone.metrics)
    assert both.missing.found == alone.missing.found


def covered(estimated, pool, true, names):
    """Whether each interval of a system holds the value of the completely judged pool."""
    found = []
    for name in names:
        of = measure(name, 5)
        whole = values(of, pool.people, true.astype(float)).mean(1)
        own = estimated.metrics.filter(metric=of.name)
        found.append((own["ci_low"].to_numpy() - 1e-9 <= whole) & (whole <= own["ci_high"].to_numpy() + 1e-9))
    return np.array(found)


def redrawn(pool, seed):
    people = pool.people
    asked = Asked(pool.drawing.unit, int(pool.drawing.counts.sum()))
    return pool._replace(drawing=draw(people, asked, seed=seed, proxy=pool.proxy))


def test_intervals_of_an_expert_cover_where_those_of_annotators_do_not():
    pool, _, true = drawn_world(Asked(Unit.QUERIES, 120), queries=300)
    hit, naive, random = [], [], np.random.default_rng(3)
    for seed in range(40):
        one = redrawn(pool, seed)
        wrong = np.where(random.random(len(true)) < 0.15, 1 - true, true)
        crowd = judged(one, wrong, one.drawing.order()[0])
        said = {"compare": False, "metrics": ["ap", "p"]}
        hit.append(
            covered(estimate(one, crowd, expert=first_of(one, true, 40), **said), one, true, ("ap", "p"))
        )
        naive.append(covered(estimate(one, crowd, **said), one, true, ("ap", "p")))
    # Three intervals of each draw and metric: 4 standard errors of a share of .95 at 40.
    assert np.mean(hit, axis=(0, 2)).min() > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 40)
    assert np.mean(naive, axis=(0, 2)).max() < 0.6


@pytest.mark.parametrize(
    ("units", "message"),
    [
        (slice(0, 19), "`expert` must judge at least the first 20 queries, got 19"),
        ([*range(10), *range(12, 40)], "`expert` must leave no gap: the query .* is not completely judged"),
        (slice(0, 60), "`expert` must judge queries that annotators judged: the query .* is not"),
    ],
    ids=str,
)
def test_an_expert_judges_the_first_queries(units, message):
    pool, _, true = drawn_world(Asked(Unit.QUERIES, 60), answers=60)
    order, _ = pool.drawing.order()
    with pytest.raises(ValueError, match=message):
        estimate(pool, first_of(pool, true, 50), "ap", expert=judged(pool, true, order[units]))


def test_an_expert_judges_whole_queries():
    pool, qrels, true = drawn_world(Asked(Unit.QUERIES, 60))
    order, _ = pool.drawing.order()
    few = first_of(pool, true, 30)
    last = judged(pool, true, order[29:30])
    gone = few.join(last[1:], on=["query", "answer"], how="anti")
    assert len(last) > 1
    with pytest.raises(
        ValueError,
        match=rf"`expert` must judge queries completely: {len(last) - 1} of {len(last)} candidates of the qu",
    ):
        estimate(pool, qrels, "ap", expert=gone)


def test_an_expert_judges_two_queries_of_each_stratum():
    pool, qrels, true = drawn_world(Asked(Unit.QUERIES, 120, "size"), queries=300)
    order, _ = pool.drawing.order()
    rare = order[pool.drawing.stratum[order] == 0]
    common = order[pool.drawing.stratum[order] != 0]
    expert = judged(pool, true, np.concatenate([rare[:1], common]))
    with pytest.raises(ValueError, match="`expert` must judge two queries in each of 4 strata, got 1 in one"):
        estimate(pool, qrels, "ap", expert=expert)


def skipped(pool, true, units):
    """The judgements without those of some drawn units."""
    order, _ = pool.drawing.order()
    return judged(pool, true, np.setdiff1d(order, units))


def test_bounds_of_gaps_hold_where_skipped_queries_are_the_hard_ones():
    pool, _, true = drawn_world(Asked(Unit.QUERIES, 60), queries=300)
    names, hit, dropped = ("ap", "p", "rr"), [], []
    people = pool.people
    unknown = np.bincount(people.query[people.unknown], true[people.unknown], len(people.queries))
    for seed in range(40):
        one = redrawn(pool, seed)
        order, _ = one.drawing.order()
        hard = order[:-1][unknown[one.drawing.frame[order[:-1]]] >= 3]
        found = estimate(one, skipped(one, true, hard), names, gaps="bounds")
        assert set(found.metrics["method"]) | set(found.differences["method"]) == {"bounds"}
        hit.append(covered(found, one, true, names))
        missing = true[people.unknown].sum()
        assert found.missing.value is None
        assert found.missing.found[1] <= missing <= found.missing.found[2]
        # What complete queries alone would say: the others leave the draw.
        kept = np.setdiff1d(order, hard)
        few = one.drawing._replace(
            frame=one.drawing.frame[kept],
            stratum=one.drawing.stratum[kept],
            place=one.drawing.place[kept],
            batches=(np.array([len(kept)]),),
        )
        dropped.append(true[np.isin(people.query, few.frame) & (people.label == -1)].sum() / len(kept))
    assert np.mean(hit, axis=(0, 2)).min() > 0.95
    # Without bounds the number of missing answers would be too small.
    assert np.mean(dropped) < 0.85 * missing / len(people.queries)


def test_bounds_are_between_what_wrong_and_true_open_labels_give():
    pool, _, true = drawn_world(Asked(Unit.CANDIDATES, 200))
    order, _ = pool.drawing.order()
    gap = order[[3, 60, 100]]
    found = estimate(pool, skipped(pool, true, gap), "p", gaps="bounds")
    assert (found.judged, found.unjudged) == (197, 3)
    assert found.metrics["value"].null_count() == found.differences["p_value"].null_count() == 3
    assert any("3 candidates before the last judged one have open labels" in note for note in found.notes)
    for label in (0, 1):
        said = true.copy()
        said[pool.drawing.frame[gap]] = label
        own = estimate(pool, judged(pool, said, order), "p")
        for bounds, one in ((found.metrics, own.metrics), (found.differences, own.differences)):
            assert (bounds["ci_low"] <= one["ci_low"] + 2e-3).all()
            assert (bounds["ci_high"] >= one["ci_high"] - 2e-3).all()


def test_without_gaps_bounds_are_the_usual_intervals():
    pool, _, true = drawn_world(Asked(Unit.QUERIES, 60))
    said = first_of(pool, true, 40)
    one, other = (estimate(pool, said, ["ap", "mrr"], gaps=gaps) for gaps in ("bounds", "refuse"))
    assert one.metrics.equals(other.metrics)


def test_gaps_below_the_pool_widen_the_number_of_answers():
    pool, qrels, true = drawn_world(Asked(Unit.BELOW, 300), depth=3, reach=9, queries=300)
    order, _ = pool.drawing.order()
    found = estimate(pool, skipped(pool, true, order[5:8]), gaps="bounds").missing
    usual = estimate(pool, qrels).missing
    assert found.value is None
    assert found.low <= usual.low < usual.high < found.high


CATEGORIES = {"r0": "1-1", "r1": "1-N", "r2": "N-N"}


@pytest.mark.parametrize("unit", [Unit.QUERIES, Unit.CANDIDATES])
def test_missing_answers_by_category_cover_the_truth(unit):
    pool, _, true = drawn_world(Asked(unit, 90 if unit is Unit.QUERIES else 250), queries=240)
    people, hit = pool.people, []
    inside = people.queries["relation"].replace_strict(CATEGORIES).to_numpy()[people.query]
    known = {name: int((people.label[inside == name] == 1).sum()) for name in ("1-1", "1-N", "N-N")}
    for seed in range(60):
        one = redrawn(pool, seed)._replace(categories=CATEGORIES)
        found = estimate(one, judged(one, true, one.drawing.order()[0]), "p", compare=False)
        by = found.missing.by_category
        assert by["category"].to_list() == ["1-1", "1-N", "N-N"]
        assert by["judged"].sum() == found.judged
        for row in by.drop_nulls().to_dicts():
            missing = true[(people.label == -1) & (inside == row["category"])].sum()
            assert row["known"] >= known[row["category"]]
            share = missing / (missing + row["known"])
            hit.append(row["low"] <= share <= row["high"])
    assert len(hit) > 150
    assert np.mean(hit) > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 60)


def test_categories_with_few_judged_units_or_without_facts_say_so():
    pool, _, true = drawn_world(Asked(Unit.QUERIES, 60))
    pool = pool._replace(categories={"r0": "1-1", "r1": "1-1"})
    by = estimate(pool, first_of(pool, true, 45), "p").missing.by_category
    assert by["category"].to_list() == ["1-1", "no training facts"]
    assert by["judged"].sum() == 45
    assert by["value"].is_null().to_list() == [False, by["judged"][1] < 20] == [False, True]


def test_designs_of_ranks_have_no_categories():
    for asked, reach in ((Asked(Unit.PREFIXES, 60), None), (Asked(Unit.BELOW, 300), 9)):
        pool, qrels, _ = drawn_world(asked, depth=3, reach=reach, queries=300)
        missing = estimate(pool._replace(categories=CATEGORIES), qrels).missing
        assert missing is None or missing.by_category is None


def test_a_system_that_was_not_pooled_has_bounds_that_hold():
    pool, qrels, _ = drawn_world(Asked(Unit.QUERIES, 60), queries=120)
    run, _, truth = world(0, queries=120)
    # Its lists are those of a pooled system from below, so that its values are known.
    turned = run.filter(model="m1").with_columns(model=pl.lit("new"), score=-pl.col("score"))
    names = ["rr", "ap", "p", "mrr"]
    found = estimate(pool, qrels, names, others=turned)
    rows = found.metrics.filter(model="new")
    assert rows["metric"].to_list() == ["RR@5", "AP@5", "P@5", "mrr"]
    assert set(rows["method"]) == {"bounds"}
    assert rows["value"].null_count() == rows["ci_low"].null_count() == rows["r"].null_count() == 4
    assert "new" not in set(found.differences["first"]) | set(found.differences["second"])
    people = population(pl.concat([run, turned]), 5, pool.known)
    label = np.where(people.label == 1, 1, np.maximum(people.labelled(truth), 0)).astype(float)
    for name, least, most in rows.select("metric", "least", "most").rows():
        of = measure(name, 5)
        whole = values(of, people, label)[people.models.index("new")]
        value = whole.sum() / people.relevant(label).sum() if of.micro else whole.mean()
        assert least <= value <= most
    # Of P the bounds are the labels that are known, and those with what is open.
    of = measure("p", 5)
    judged_too = population(
        pl.concat([run, turned]), 5, pl.concat([pool.known, qrels.select(pool.known.columns)])
    )
    known = [(judged_too.label == 1), (judged_too.label != 0)]
    ends = [values(of, judged_too, one.astype(float))[people.models.index("new")].mean() for one in known]
    assert rows.filter(metric="P@5").select("least", "most").row(0) == pytest.approx(ends)


def test_a_pooled_system_is_not_one_that_was_not_pooled():
    pool, qrels, _ = drawn_world(Asked(Unit.QUERIES, 60))
    run, *_ = world(0, queries=200)
    with pytest.raises(ValueError, match="`others` must hold systems that were not pooled, got m1"):
        estimate(pool, qrels, "rr", others=run.filter(model="m1"))
    other = run.filter(model="m1").with_columns(query=pl.lit("x|y|?"), model=pl.lit("new"))
    with pytest.raises(ValueError, match="`others` must answer queries of the pool"):
        estimate(pool, qrels, "rr", others=other)


def test_several_proxies_are_averaged_where_few_are_judged():
    pool, _, true = drawn_world(Asked(Unit.QUERIES, 100), queries=300)
    pairs = pool.people.pairs(pool.people.unknown).select("query", "answer")
    random = np.random.default_rng(0)
    good = pairs.with_columns(probability=pl.Series(np.where(true[pool.people.unknown] == 1, 0.9, 0.1)))
    noise = pairs.with_columns(probability=pl.Series(random.random(len(pairs))))
    width = {}
    for count in (40, 100):
        said = first_of(pool, true, count)
        for name, proxies in (("none", {}), ("both", {"good": good, "noise": noise})):
            found = estimate(pool, said, "ap", proxies=proxies, compare=False)
            width[count, name] = (found.metrics["ci_high"] - found.metrics["ci_low"]).mean()
            averaged = [note for note in found.notes if "are averaged" in note]
            assert bool(averaged) == (count < 50 and bool(proxies))
    assert width[40, "both"] < width[40, "none"]
    # With slopes of their own the good one counts and the noise does not.
    assert width[100, "both"] < 0.8 * width[100, "none"]


def test_proxies_that_lack_a_query_are_refused():
    pool, qrels, _ = drawn_world(Asked(Unit.QUERIES, 60))
    pairs = pool.people.pairs(pool.people.unknown).with_columns(probability=pl.lit(0.5))
    lacking = pairs.filter(pl.col("query") != pairs["query"][0])
    with pytest.raises(
        ValueError, match="`proxy` other: must have a probability for every unjudged candidate"
    ):
        estimate(pool, qrels, "rr", proxies={"good": pairs, "other": lacking})


def test_a_stratum_with_one_judged_query_is_refused():
    pool, _, true = drawn_world(Asked(Unit.QUERIES, 60, "size"))
    order, _ = pool.drawing.order()
    rare = order[pool.drawing.stratum[order] == 0]
    with pytest.raises(ValueError, match="`judged` must cover two drawn queries in each of 4 strata, got 1"):
        estimate(pool, judged(pool, true, np.setdiff1d(order, rare[1:])), "rr")


@pytest.mark.parametrize("unit", [Unit.QUERIES, Unit.PREFIXES, Unit.CANDIDATES])
def test_equal_lists_have_no_difference(unit):
    pool, qrels, _ = drawn_world(Asked(unit, 40 if unit is not Unit.CANDIDATES else 120))
    people = pool.people
    slot = np.concatenate([people.slot[:1], people.slot[:1], people.slot[2:]])
    same = pool._replace(people=people._replace(slot=slot))
    qrels = qrels.join(outside_draw(same, qrels), on=["query", "answer"], how="anti")
    found = estimate(same, qrels, "p" if unit is Unit.CANDIDATES else "rr").differences
    first = found.row(0, named=True)
    assert (first["value"], first["ci_low"], first["ci_high"], first["method"]) == (0.0, 0.0, 0.0, "exact")
    assert found["ci_high"][1] > found["ci_low"][1]
