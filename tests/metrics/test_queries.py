"""Macro metrics against full ranked lists, enumeration of random orders, and trec_eval."""

import itertools
import math

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from owkg.metrics import Ties, evaluate, macro, macro_map, macro_ndcg, metric, tasks
from owkg.metrics import queries as q
from owkg.metrics.list_gains import GAINS
from owkg.metrics.measures import AveragePrecision, BestAnswer, DiscountedGain, macro_gain
from owkg.rank_weights import MR, MRR, hits_at
from owkg.rank_weights.tables import rank_weights

MEASURES = {
    **{f"map@{k}": AveragePrecision(k) for k in (1, 2, 3, 20)},
    **{f"ndcg@{k}": DiscountedGain(k) for k in (1, 2, 3, 20)},
    **{
        f"{name}@{k}": DiscountedGain(k, name)
        for name in ("recall", "precision", "f1")
        for k in (1, 2, 3, 20)
    },
    **{metric.name: BestAnswer(metric) for metric in (MRR, MR, hits_at(2))},
}


def _of_list(measure, is_answer):
    """The measure of one list, written out; `is_answer` from the top down."""
    places = [i + 1 for i, answer in enumerate(is_answer) if answer]
    if isinstance(measure, BestAnswer):
        return rank_weights(measure.metric, np.array([float(places[0])]))[0]
    k = measure.cutoff
    if isinstance(measure, AveragePrecision):
        return sum((i + 1) / p for i, p in enumerate(places) if p <= k) / len(places)
    if measure.gain != "ndcg":
        hits = sum(p <= k for p in places)
        precision, recall = hits / k, hits / len(places)
        f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
        return {"precision": precision, "recall": recall, "f1": f1}[measure.gain]
    ideal = sum(1 / math.log2(1 + p) for p in range(1, min(k, len(places)) + 1))
    return sum(1 / math.log2(1 + p) for p in places if p <= k) / ideal


def _filtered(levels, is_answer):
    """Optimistic and pessimistic filtered ranks of the answers; equal levels are ties, larger are better."""
    levels, is_answer = np.array(levels), np.array(is_answer, bool)
    others = levels[~is_answer]
    own = levels[is_answer][:, None]
    low = (others > own).sum(axis=1) + 1
    return low, low + (others == own).sum(axis=1)


def _lists(low, high, others):
    made = tasks(low, high, others + 1, query=np.zeros(len(low), int))
    found = q.answers_of(made)
    assert found is not None
    return found


@st.composite
def scored(draw):
    """(level, is answer) of the entities of one query, at least one an answer."""
    rows = draw(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=6))
    if not any(answer for _, answer in rows):
        rows[0] = (rows[0][0], True)
    return [a for a, _ in rows], [b for _, b in rows]


def _orders(levels):
    """Every order of the entities, best first, that the levels allow; ties in all ways."""
    blocks = [[i for i, x in enumerate(levels) if x == level] for level in sorted(set(levels), reverse=True)]
    for parts in itertools.product(*(itertools.permutations(block) for block in blocks)):
        yield [i for part in parts for i in part]


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
@given(query=scored())
def test_the_tie_rules_by_writing_out_all_orders(measure, query):
    levels, is_answer = query
    found = _lists(*_filtered(levels, is_answer), sum(not x for x in is_answer))
    assert found.candidates.tolist() == [len(levels)]
    every = [_of_list(measure, [is_answer[i] for i in order]) for order in _orders(levels)]
    np.testing.assert_allclose(q.values(measure, found, Ties.EXACT), [np.mean(every)], rtol=1e-11)
    sign = -1 if measure == BestAnswer(MR) else 1
    best, worst = max(every, key=lambda x: sign * x), min(every, key=lambda x: sign * x)
    np.testing.assert_allclose(q.values(measure, found, Ties.OPTIMISTIC), [best], rtol=1e-12)
    np.testing.assert_allclose(q.values(measure, found, Ties.PESSIMISTIC), [worst], rtol=1e-12, atol=1e-15)
    middle = q.values(measure, found, Ties.REALISTIC)[0]
    assert min(best, worst) - 1e-12 <= middle <= max(best, worst) + 1e-12
    if len(every) == 1:
        np.testing.assert_allclose(middle, every, rtol=1e-12)


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
@pytest.mark.parametrize("answers", [1, 2, 3, 5])
@pytest.mark.parametrize("others", [0, 1, 2, 5])
def test_chance_best_and_worst_by_writing_out_all_lists(measure, answers, others):
    total = answers + others
    lists = [[i in chosen for i in range(total)] for chosen in itertools.combinations(range(total), answers)]
    every = np.array([_of_list(measure, one) for one in lists])
    low = np.ones(answers, int)
    found = _lists(low, low, others)
    mean, variance = q.list_chance(measure, found.cases)
    np.testing.assert_allclose(mean, [every.mean()], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(variance, [every.var()], rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(q.best_value(measure, found.cases), [every[0]], rtol=1e-12)
    np.testing.assert_allclose(q.worst_value(measure, found.cases), [every[-1]], rtol=1e-12, atol=1e-15)
    # A list that is one tie is a random list.
    tied = _lists(low, np.full(answers, others + 1), others)
    np.testing.assert_allclose(q.values(measure, tied, Ties.EXACT), [every.mean()], rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("measure", list(MEASURES.values())[:20], ids=list(MEASURES)[:20])
def test_chance_of_long_lists_against_drawn_ones(measure):
    rng = np.random.default_rng(8)
    answers, total = 7, 60
    places = np.sort(np.argsort(rng.random((40_000, total)), axis=1)[:, :answers] + 1, axis=1)
    rows = [_of_list(measure, np.isin(np.arange(1, total + 1), one)) for one in places[:8000]]
    found = _lists(np.ones(answers, int), np.ones(answers, int), total - answers)
    (mean,), (variance,) = q.list_chance(measure, found.cases)
    values = np.array(rows)
    assert abs(mean - values.mean()) < 4 * values.std() / np.sqrt(len(values))
    centred = (values - values.mean()) ** 2
    assert abs(variance - centred.mean()) < 4 * centred.std() / np.sqrt(len(values))


def test_the_first_place_in_a_long_block():
    n, k = 5000, 37
    found = q.first_place(MRR, np.array([0, 9, 9]), np.array([n, n, 1]), np.array([k, k, 1]))
    j = np.arange(n - k + 1)
    probability = np.cumprod(np.concatenate([[k / n], (n - j[1:] - k + 1) / (n - j[1:])]))
    np.testing.assert_allclose(probability.sum(), 1, rtol=1e-10)
    for row, ahead in ((0, 0), (1, 9)):
        for power in (1, 2):
            expected = np.dot(probability, (1.0 / (ahead + j + 1)) ** power)
            np.testing.assert_allclose(found[power - 1, row], expected, rtol=1e-10)
    np.testing.assert_allclose(found[:, 2], [0.1, 0.01], rtol=1e-12)
    mean = q.first_place(MR, np.array([0]), np.array([n]), np.array([k]))[0, 0]
    np.testing.assert_allclose(mean, (n + 1) / (k + 1), rtol=1e-10)


def test_the_first_place_where_no_later_position_has_a_weight():
    n, k, cutoff = 5000, 37, 10
    ahead = np.array([0, 4, 9, 10, 3000])
    found = q.first_place(hits_at(cutoff), ahead, np.full(5, n), np.full(5, k))
    none = stats.hypergeom(n, k, np.maximum(cutoff - ahead, 0)).pmf(0)
    np.testing.assert_allclose(found, [1 - none, 1 - none], rtol=1e-12)


# --- several queries


def _world(seed, count=30):
    """Scores without ties: filtered ranks as tasks, and the lists for trec_eval."""
    rng = np.random.default_rng(seed)
    ranks, candidates, query, run, qrel = [], [], [], {}, {}
    for number in range(count):
        total = int(rng.integers(5, 60))
        answers = int(rng.integers(1, min(total, 30)))
        scores = rng.permutation(total).astype(float)
        is_answer = np.arange(total) < answers
        low, _ = _filtered(scores, is_answer)
        ranks += low.tolist()
        candidates += [total - answers + 1] * answers
        query += [number] * answers
        run[str(number)] = {f"e{i}": float(x) for i, x in enumerate(scores)}
        qrel[str(number)] = {f"e{i}": int(is_answer[i]) for i in range(total)}
    order = rng.permutation(len(ranks))
    made = tasks(*(np.array(x)[order] for x in (ranks, ranks, candidates)), query=np.array(query)[order])
    return made, run, qrel


@pytest.mark.parametrize("seed", [0, 1])
def test_against_trec_eval(seed):
    made, run, qrel = _world(seed)
    evaluator = pytrec_eval.RelevanceEvaluator(
        qrel, {"map_cut.1,5,20", "ndcg_cut.1,5,20", "recip_rank", "success.1,10", "recall.1,5,20", "P.1,5,20"}
    )
    by_query = evaluator.evaluate(run)
    means = {key: np.mean([row[key] for row in by_query.values()]) for key in by_query["0"]}
    names = [f"macro-{kind}@{k}" for kind in ("map", "ndcg", "recall", "precision", "f1") for k in (1, 5, 20)]
    names += ["macro-mrr", "macro-hits@1", "macro-hits@10"]
    found = evaluate(made, [metric(name) for name in names], level=None)[Ties.EXACT]
    for k in (1, 5, 20):
        np.testing.assert_allclose(found[f"macro-map@{k}"].value, means[f"map_cut_{k}"], rtol=1e-9)
        np.testing.assert_allclose(found[f"macro-ndcg@{k}"].value, means[f"ndcg_cut_{k}"], rtol=1e-9)
        np.testing.assert_allclose(found[f"macro-recall@{k}"].value, means[f"recall_{k}"], rtol=1e-9)
        np.testing.assert_allclose(found[f"macro-precision@{k}"].value, means[f"P_{k}"], rtol=1e-9)
        both = [(row[f"P_{k}"], row[f"recall_{k}"]) for row in by_query.values()]
        f1 = np.mean([2 * p * r / (p + r) if p else 0 for p, r in both])
        np.testing.assert_allclose(found[f"macro-f1@{k}"].value, f1, rtol=1e-9)
    np.testing.assert_allclose(found["macro-mrr"].value, means["recip_rank"], rtol=1e-9)
    for k in (1, 10):
        np.testing.assert_allclose(found[f"macro-hits@{k}"].value, means[f"success_{k}"], rtol=1e-9)


def test_queries_weigh_the_mean_weight_of_their_tasks():
    made = tasks([1, 4, 2], candidates=9, weight=[1.0, 2.0, 6.0], query=[5, 5, 2])
    found = evaluate(made, [macro(MRR)], level=None)[Ties.EXACT]["macro-mrr"]
    np.testing.assert_allclose(found.value, (1.5 * 1 + 6 * 0.5) / 7.5, rtol=1e-14)


def test_the_chance_level_is_that_of_the_weighted_mean():
    made = tasks([1, 1, 2], candidates=[3, 3, 4], weight=[1.0, 1.0, 3.0], query=[0, 0, 1])
    found = evaluate(made, [macro_map(2)], level=None)[Ties.EXACT]["macro-map@2"]
    first = [
        _of_list(AveragePrecision(2), [i in c for i in range(4)]) for c in itertools.combinations(range(4), 2)
    ]
    second = [1.0, 0.5, 0.0, 0.0]
    np.testing.assert_allclose(found.expectation, (np.mean(first) + 3 * np.mean(second)) / 4, rtol=1e-12)
    np.testing.assert_allclose(found.variance, (np.var(first) + 9 * np.var(second)) / 16, rtol=1e-12)


def test_queries_without_one_list_are_left_out():
    made = tasks([1, 1, 2], candidates=[3, 4, 4], query=[0, 0, 1])
    names = ["macro-mrr", "mrr", "zmacro-map@3"]
    for interval in ("analytic", "percentile"):
        found = evaluate(made, [metric(name) for name in names], interval=interval, replicates=10)
        assert all(list(by) == ["mrr"] for by in found.values())
    assert q.answers_of(made) is None
    alone = tasks([1, 1, 2], candidates=[3, 4, 4])
    assert list(evaluate(alone, [macro(MRR)])[Ties.EXACT]) == ["macro-mrr"]


def test_a_query_of_one_answer_is_a_task():
    made = tasks([1, 4, 2], [3, 4, 5], [5, 9, 7])
    found = evaluate(made, [metric(name) for name in ("mrr", "macro-mrr", "macro-map@9", "macro-ndcg@9")])
    for rule in Ties:
        by = found[rule]
        assert by["mrr"]._replace(value=0) == pytest.approx(
            by["macro-mrr"]._replace(value=0), rel=1e-12, nan_ok=True
        )
        np.testing.assert_allclose(by["macro-mrr"].value, by["mrr"].value, rtol=1e-13)
        np.testing.assert_allclose(by["macro-map@9"].value, by["mrr"].value, rtol=1e-12)
    for measure in (macro_map(9), macro_ndcg(9)):
        assert 0 < found[Ties.EXACT][measure.name].value < 1


def test_a_new_entry_is_a_new_metric(monkeypatch):
    """The number of hits from one entry: its name, value, chance level, listing of near names."""
    entry = GAINS["recall"]._replace(name="top", ideal=lambda added, answers, cutoff: np.ones(len(answers)))
    monkeypatch.setitem(GAINS, "top", entry)
    made = tasks([1, 4], candidates=9, query=[0, 0])  # positions 1 and 5 of a list of 10
    found = evaluate(made, [macro_gain("top", 4)])[Ties.EXACT]["macro-top@4"]
    assert (found.value, found.expectation) == pytest.approx((1, 8 / 10))
    monkeypatch.delitem(GAINS, "top")
    with pytest.raises(ValueError, match="`gain` must be one of ndcg, recall, precision, f1, got 'top'"):
        macro_gain("top", 4)
    names = {metric(name).name for name in ("macro-recall@7", "MACRO_R_at_7", "amacro-recall@7")}
    assert names == {"macro-recall@7", "amacro-recall@7"}
    names = {metric(name).name for name in ("macro-p@7", "Macro_Precision_at_7", "macro-f1@7", "zmacro-F1@7")}
    assert names == {"macro-precision@7", "macro-f1@7", "zmacro-f1@7"}


@pytest.mark.parametrize("cutoff", [4, 10, 11, 1000, 10**8])
def test_max_k_by_hand(cutoff):
    """Positions 1 and 5 of a list of 10: K candidates are given, however many there are."""
    made = tasks([1, 4], candidates=9, query=[0, 0])
    names = [f"macro-{name}@{cutoff}" for name in ("precision", "recall", "f1")]
    found = evaluate(made, [metric(name) for name in names])[Ties.EXACT]
    hits = 1 + (cutoff >= 5)
    precision, recall = hits / cutoff, hits / 2
    f1 = 2 * precision * recall / (precision + recall)
    assert [found[name].value for name in names] == pytest.approx([precision, recall, f1])
    by_chance = 2 * min(cutoff, 10) / 10
    expected = [by_chance / cutoff, by_chance / 2, 2 * by_chance / (cutoff + 2)]
    assert [found[name].expectation for name in names] == pytest.approx(expected)


def test_precision_recall_and_f1_where_they_are_equal():
    """At as many candidates as a query has answers, and with one answer each at the first position."""
    made, *_ = _world(2)
    names = [f"macro-{name}@1" for name in ("precision", "recall", "f1")]
    measures = [metric(name) for name in (*names, "macro-hits@1")]
    found = evaluate(made, measures, level=None)[Ties.EXACT]
    assert found["macro-precision@1"].value == pytest.approx(found["macro-hits@1"].value)
    assert found["macro-recall@1"].value < found["macro-f1@1"].value < found["macro-precision@1"].value
    single = tasks([1, 4, 2], candidates=9, query=[5, 9, 7])
    found = evaluate(single, measures, level=None)[Ties.EXACT]
    assert [one.value for one in found.values()] == pytest.approx([1 / 3] * 4)
