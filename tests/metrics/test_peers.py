"""Where other tools praise, crash or miscount, each held against what is right."""

import json
from pathlib import Path

import numpy as np
import pytest

from owkg.kg import known_answers, num_candidates
from owkg.metrics import Ties, default_metrics, evaluate, metric, tasks
from owkg.ranks import ranks_from_scores

SCORERS = json.loads((Path(__file__).parent / "data" / "pykeen.json").read_text(encoding="utf-8"))["scorers"]
QUERIES, ENTITIES = 5, 14
TARGET = np.zeros(QUERIES, np.int64)


def test_nan_scores_are_praised_by_pykeen_and_refused_here():
    assert SCORERS["nan"] == {"inverse_harmonic_mean_rank": 2.0, "hits_at_10": 1.0}
    with pytest.raises(ValueError, match="NaN"):
        ranks_from_scores(np.full((QUERIES, ENTITIES), np.nan), TARGET)


def test_a_constant_scorer_is_worth_what_chance_is():
    found = ranks_from_scores(np.zeros((QUERIES, ENTITIES)), TARGET)
    by_ties = evaluate(
        tasks(*found), [metric(name) for name in ("mrr", "hits@10", "amrr", "ahits@10", "zmrr", "zmr")]
    )
    realistic, exact = by_ties[Ties.REALISTIC], by_ties[Ties.EXACT]
    # Under realistic ranks: a full score in Hits@10, below chance in MRR, as PyKEEN has it.
    assert realistic["hits@10"].value == SCORERS["constant"]["hits_at_10"] == 1.0
    assert realistic["amrr"].value == pytest.approx(
        SCORERS["constant"]["adjusted_inverse_harmonic_mean_rank"], rel=1e-6
    )
    assert exact["hits@10"].value == pytest.approx(10 / 14, rel=1e-15)
    for name in ("amrr", "ahits@10", "zmrr", "zmr"):
        assert exact[name].value == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("count", [1, 2, 100, 14_541])
def test_every_adjusted_metric_of_a_constant_scorer_is_nearly_zero(count):
    candidates = np.full(300, count)
    ranks = tasks(np.ones(300, np.int64), candidates, candidates, popularity=np.arange(300) % 17)
    found = evaluate(ranks, default_metrics(popularity=True), level=None)[Ties.EXACT]
    for name, estimate in found.items():
        if name[0] in "az" and name not in ("amr",):
            hits = name.partition("@")[2]
            if count == 1 or ("hits" in name and int(hits) >= count):  # nothing to rank
                assert np.isnan(estimate.value), name
            else:
                assert abs(estimate.value) <= 4 * np.sqrt(estimate.variance), name


def test_candidates_are_counted_once_for_ranking_and_for_chance():
    rng = np.random.default_rng(0)
    triples = np.unique(rng.integers(0, [9, 2, 9], (60, 3)), axis=0)
    known = known_answers(triples, "tail", num_entities=9, num_relations=2)
    from owkg.ranks import known_sets

    scores = rng.normal(size=(len(triples), 9))
    found = ranks_from_scores(scores, triples[:, 2], known=known_sets(known, triples[:, 0], triples[:, 1]))
    np.testing.assert_array_equal(found.candidates, num_candidates(known, triples))


def test_thirty_two_bit_candidates_do_not_overflow():
    narrow = tasks(np.full(10, 5, np.int32), candidates=np.full(10, 100_000, np.int32))
    wide = tasks(np.full(10, 5), candidates=np.full(10, 100_000))
    names = [metric(name) for name in ("mr", "zmr", "gmr", "wgmr", "imr", "median_rank")]
    assert evaluate(narrow, names) == evaluate(wide, names)
    variance = evaluate(narrow, names)[Ties.EXACT]["mr"].variance
    assert variance == pytest.approx((100_000**2 - 1) / 12 / 10, rel=1e-10)


def test_a_ninety_percent_interval_holds_ninety_percent():
    """Not the 45th to the 55th percentile: the share of resampled values inside is the level."""
    rng = np.random.default_rng(0)
    ranks = tasks(rng.integers(1, 100, 400), candidates=100)
    wide, narrow = (
        evaluate(ranks, [metric("mrr")], level=level, interval="percentile", replicates=4000)[Ties.EXACT][
            "mrr"
        ]
        for level in (0.9, 0.1)
    )
    ratio = (wide.ci_high - wide.ci_low) / (narrow.ci_high - narrow.ci_low)
    assert ratio == pytest.approx(1.6449 / 0.1257, rel=0.1)  # normal quantiles of 95% and 55%
