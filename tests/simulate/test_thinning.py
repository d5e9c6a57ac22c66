"""Thinned ranks against ranks of full score matrices, resamples against all subsets and against theory."""

import itertools

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from owkg import theory
from owkg.openworld import INDEPENDENT, NodeBased, PopularityBased, RelationBased
from owkg.rank_weights import GMR, LOG_MRR, MR, MRR, RankWeight, hits_at, p_mrr, tie_expectation
from owkg.ranks import ranks_from_scores
from owkg.simulate import Correlated, full_test, inversions, quantiles, resample, thin

pytestmark = pytest.mark.usefixtures("quick_compilation")
METRICS = (MRR, LOG_MRR, MR, hits_at(2), p_mrr(0.25))
KEY = jax.random.key(3)
ENTITIES = 9


def ranked(scores, query, entity, filtered):
    """(optimistic, pessimistic) of answers when those in `filtered` leave the candidates."""
    known = np.zeros_like(scores, bool)
    known[query[filtered], entity[filtered]] = True
    ranks = ranks_from_scores(scores[query], entity, known=known[query])
    return ranks.optimistic, ranks.pessimistic


def world(rng, levels, queries=4, models=2):
    """A full test of small whole scores, and what it was made of; the answers in random order."""
    answers = rng.random((queries, ENTITIES)) < 0.5
    answers[:, 0] = True
    query, entity = rng.permutation(np.argwhere(answers)).T
    scores = rng.integers(0, levels, (models, queries, ENTITIES)).astype(np.float32)
    everything = np.ones(len(query), bool)
    ranks = np.array([ranked(s, query, entity, everything) for s in scores])
    full = full_test(query, ranks[:, 0], ranks[:, 1], scores[:, query, entity])
    return full, scores, query, entity


def measured(full, present, weights=METRICS):
    """The mean over queries of the mean over present answers, [models, metrics], by loops."""
    ranks, query = thin(full, present), full.query[present]
    values = np.stack([tie_expectation(m, *ranks) for m in weights], axis=-1)  # [models, present, metrics]
    return np.mean([values[:, query == q].mean(1) for q in set(query)], axis=0)


@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3, 8, 10**6]))
def test_thinned_ranks_are_those_of_the_score_matrix(seed, levels):
    rng = np.random.default_rng(seed)
    full, scores, query, entity = world(rng, levels)
    present = rng.random(len(query)) < rng.random()
    present[rng.integers(len(query))] = True
    low, high = thin(full, present)
    for model, matrix in enumerate(scores):
        optimistic, pessimistic = ranked(matrix, query, entity, present)
        np.testing.assert_array_equal(low[model], optimistic[present])
        np.testing.assert_array_equal(high[model], pessimistic[present])


def test_nothing_missing_leaves_the_ranks():
    full, *_ = world(np.random.default_rng(0), 3)
    low, high = thin(full, np.ones(len(full.query), bool))
    np.testing.assert_array_equal(low, full.optimistic)
    np.testing.assert_array_equal(high, full.pessimistic)


def small(levels, seed):
    """A full test with few enough answers for all subsets."""
    return world(np.random.default_rng(seed), levels, queries=2)[0]


@pytest.fixture(scope="module", params=[2, 10**6], ids=["ties", "untied"])
def all_subsets(request):
    """A full test, and which answers each subset has and what it reads."""
    full = small(request.param, 1)
    size = len(full.query)
    assert size <= 12
    if request.param == 2:
        assert (full.optimistic < full.pessimistic).any()
    present = np.array(list(itertools.product((False, True), repeat=size))[1:])
    return full, present, np.array([measured(full, subset) for subset in present])


@pytest.mark.parametrize("sparsity", [0.3, 0.8])
def test_resamples_have_the_mean_and_spread_of_all_subsets(all_subsets, sparsity):
    full, present, values = all_subsets
    size = len(full.query)
    chances = np.prod(np.where(present, 1 - sparsity, sparsity), axis=1)
    chances /= chances.sum()
    exact = np.tensordot(chances, values, 1)
    spread = np.sqrt(np.tensordot(chances, (values - exact) ** 2, 1))
    result = resample(KEY, full, METRICS, sparsity=sparsity, draws=20_000)
    draws = (result.queries > 0).sum()
    error = result.standard_deviation / np.sqrt(draws)
    assert np.all(np.abs(result.mean - exact) <= 4.5 * error + 1e-6 * np.abs(exact))
    np.testing.assert_allclose(result.standard_deviation, spread, rtol=0.05, atol=1e-6)
    none = sparsity**size
    assert stats.binomtest(int((result.queries == 0).sum()), 20_000, none).pvalue > 1e-5
    assert np.isnan(result.values[result.queries == 0]).all()
    assert np.isfinite(result.values[result.queries > 0]).all()
    np.testing.assert_allclose(
        result.full, measured(full, np.ones(size, bool)), rtol=1e-12, err_msg="on the full test"
    )


@pytest.mark.parametrize("levels", [2, 10**6], ids=["ties", "untied"])
def test_correlated_resamples_take_the_worst_of_each_query(levels):
    """The number missing is binomial, and decides which; all numbers enumerated by a loop."""
    full = small(levels, 2)
    teacher = np.random.default_rng(5).permutation(len(full.query)).astype(float)
    sparsity, tables = 0.4, []
    for q in np.unique(full.query):
        rows = np.flatnonzero(full.query == q)
        worst_first = rows[np.argsort(teacher[rows])]
        n = len(rows)
        pmf = np.zeros(n)
        for bits in itertools.product((0, 1), repeat=n):
            pmf[min(sum(bits), n - 1)] += sparsity ** sum(bits) * (1 - sparsity) ** (n - sum(bits))
        tables.append([(p, worst_first[:m]) for m, p in enumerate(pmf)])
    exact = 0
    for chosen in itertools.product(*tables):
        present = np.ones(len(full.query), bool)
        present[np.concatenate([gone for _, gone in chosen])] = False
        exact = exact + np.prod([p for p, _ in chosen]) * measured(full, present)
    result = resample(KEY, full, METRICS, sparsity=sparsity, draws=20_000, missing=Correlated(teacher))
    assert np.all(result.queries == len(tables))
    error = result.standard_deviation / np.sqrt(20_000)
    assert np.all(np.abs(result.mean - exact) <= 4.5 * error + 1e-6 * np.abs(exact))


PRESENT = RankWeight("one", lambda rank: rank * 0 + 1)


@pytest.mark.parametrize(
    "missing", [INDEPENDENT, NodeBased(0.3), RelationBased(0.3), PopularityBased(1.0)], ids=str
)
def test_a_fact_goes_missing_with_the_sparsity_as_head_and_as_tail(missing, with_facts):
    """Each answer a query of its own: the queries that are left count the facts that are."""
    full = with_facts(np.random.default_rng(0))
    # The graph has no loops here, whose survival is the square of one entity's probability.
    keep = full.fact[:, 0] != full.fact[:, 2]
    facts = full.fact[keep]
    half = len(facts) // 2
    apart = full_test(
        np.arange(len(facts)), np.ones(len(facts)), np.ones(len(facts)), np.zeros(len(facts)),
        fact=facts, popularity=full.popularity,
    )  # fmt: skip
    assert np.array_equal(facts[:half], facts[half:])
    result = resample(KEY, apart, PRESENT, sparsity=0.3, draws=20_000, missing=missing)
    share = result.queries / len(facts)
    assert np.all(result.queries % 2 == 0)
    assert abs(share.mean() - 0.7) <= 4.5 * share.std() / np.sqrt(20_000)
    independent = np.sqrt(0.3 * 0.7 / half)
    shared = isinstance(missing, NodeBased | RelationBased)
    assert share.std() > 1.3 * independent if shared else share.std() < 1.05 * independent


def test_popular_facts_survive():
    """Two facts, popularities 1 * 1 and 3 * 9, so odds of survival as 1 to 27; the mean is 1 - sparsity."""
    fact, popularity = [[0, 0, 1], [2, 0, 3]], [1, 1, 3, 9]
    # The second reads 2, the first 1: the mean of what is left tells which one it is.
    full = full_test([0, 1], [1, 2], [1, 2], [0.0, 0.0], fact=fact, popularity=popularity)
    result = resample(KEY, full, MR, sparsity=0.5, draws=40_000, missing=PopularityBased(1.0))
    both = result.queries == 2
    first = both | (result.values[:, 0, 0] == 1)
    second = both | (result.values[:, 0, 0] == 2)
    odds = [p / (1 - p) for p in (first.mean(), second.mean())]
    assert odds[1] / odds[0] == pytest.approx(27, rel=0.08)
    assert first.mean() + second.mean() == pytest.approx(1, abs=0.02)


def test_a_metric_does_not_depend_on_the_others_nor_a_model_on_the_others():
    full, *_ = world(np.random.default_rng(4), 3, models=3)
    both = resample(KEY, full, METRICS, sparsity=0.4, draws=500)
    alone = full._replace(
        optimistic=full.optimistic[1:2], pessimistic=full.pessimistic[1:2], score=full.score[1:2]
    )
    one = resample(KEY, alone, LOG_MRR, sparsity=0.4, draws=500)
    np.testing.assert_allclose(one.values[:, 0, 0], both.values[:, 1, 1], rtol=1e-6)


def test_without_missing_facts_every_draw_reads_the_full_test(with_facts):
    full, *_ = world(np.random.default_rng(6), 3)
    for law in (INDEPENDENT, Correlated(np.arange(len(full.query)))):
        result = resample(KEY, full, METRICS[:2], sparsity=0, draws=100, missing=law)
        np.testing.assert_allclose(
            result.values, np.broadcast_to(result.full, result.values.shape), rtol=1e-6
        )
    facts = with_facts(np.random.default_rng(6))
    for law in (NodeBased(), RelationBased(), PopularityBased()):
        result = resample(KEY, facts, METRICS[:2], sparsity=0, draws=100, missing=law)
        np.testing.assert_allclose(
            result.values, np.broadcast_to(result.full, result.values.shape), rtol=1e-6
        )


def test_one_answer_a_query_keeps_its_rank():
    ranks = np.arange(1, 41)
    full = full_test(np.arange(40), ranks, ranks, -ranks)
    result = resample(KEY, full, MR, sparsity=0.5, draws=2000)
    total = result.values[:, 0, 0] * result.queries
    np.testing.assert_allclose(total, np.round(total), rtol=1e-6)
    error = result.standard_deviation / np.sqrt(2000)
    assert np.all(np.abs(result.mean - result.full) <= 4.5 * error)
    result = resample(KEY, full, MR, sparsity=0.5, draws=2000, missing=Correlated(-ranks))
    assert np.all(result.values == result.full.astype(np.float32))


def test_great_ranks_and_long_queries():
    """Ranks far apart, and a query longer than any stretch of rows summed at a time."""
    rng = np.random.default_rng(8)
    size = 1000
    query = np.repeat([0, 1, 2], [700, 1, 299])
    ranks = np.empty(size, np.int64)
    for q in range(3):
        rows = query == q
        ranks[rows] = np.sort(rng.integers(1, 500_000, rows.sum()))
    full = full_test(query, ranks, ranks, -np.arange(size))
    result = resample(KEY, full, METRICS, sparsity=0.5, draws=300)
    draws = []
    for _ in range(100):
        present = rng.random(size) < 0.5
        present[700] = True
        draws.append(measured(full, present)[0])
    draws = np.array(draws)
    some = result.queries == 3
    mean, error = result.values[some, 0].mean(0), draws.std(0) * np.sqrt(1 / some.sum() + 1 / 100)
    assert np.all(np.abs(mean - draws.mean(0)) <= 4.5 * error + 1e-6 * np.abs(mean))


def classified(rng, strength, num_answers, num_entities, queries):
    """Full-test ranks and scores of queries of the paper's classification model."""
    positive = rng.random((queries, num_answers)) < strength
    score = rng.random((queries, num_answers)) + positive
    others = np.where(positive[..., None], 0, rng.random((queries, 1, num_entities - num_answers)))
    ranks = 1 + np.sum(others > score[..., None], axis=-1)
    query = np.repeat(np.arange(queries), num_answers)
    return query, ranks.reshape(-1), score.reshape(-1)


def test_resamples_of_the_classification_model_agree_with_theory():
    rng = np.random.default_rng(0)
    setting = {"strength": 0.6, "num_answers": 12, "num_entities": 80}
    query, ranks, score = classified(rng, **setting, queries=4000)
    full = full_test(query, ranks, ranks, score)
    result = resample(KEY, full, METRICS, sparsity=0.35, draws=200)
    for i, metric in enumerate(METRICS):
        exact = theory.moments(metric, sparsity=0.35, **setting)
        # Over the queries of the full test, which are drawn once; the variance is at most that of a draw.
        error = np.sqrt(exact.variance / 4000)
        assert abs(result.mean[0, i] - exact.expectation) <= 4 * error


def test_pairs_are_inversions_as_often_as_the_draws_say():
    rng = np.random.default_rng(2)
    parts = [classified(rng, l, 10, 60, 40) for l in (0.5, 0.52, 0.8)]
    query = parts[0][0]
    ranks, scores = (np.array([part[i] for part in parts]) for i in (1, 2))
    full = full_test(query, ranks, ranks, scores)
    result = resample(KEY, full, (MRR, hits_at(1)), sparsity=0.5, draws=4000)
    found = inversions(result)
    for m in range(2):
        for a, b in itertools.combinations(range(3), 2):
            gaps = result.values[:, a, m] - result.values[:, b, m]
            sign = np.sign(result.full[a, m] - result.full[b, m])
            share = np.mean(gaps * sign < -1e-5)
            assert found.probability[m, a, b] == pytest.approx(share, abs=1e-3)
            assert found.probability[m, b, a] == found.probability[m, a, b]
        assert np.isnan(np.diagonal(found.probability[m])).all()
    assert 0 < found.probability[0, 0, 1] < 1
    assert np.all(found.standard_error[:, ~np.eye(3, dtype=bool)] > 0)


def test_equal_models_are_never_inversions():
    full, *_ = world(np.random.default_rng(9), 10**6, models=1)
    twice = full._replace(
        optimistic=np.repeat(full.optimistic, 2, 0),
        pessimistic=np.repeat(full.pessimistic, 2, 0),
        score=np.repeat(full.score, 2, 0),
    )
    result = resample(KEY, twice, METRICS, sparsity=0.3, draws=100)
    assert np.isnan(inversions(result).probability).all()


def test_quantiles_are_those_of_the_draws():
    full, *_ = world(np.random.default_rng(9), 10**6)
    result = resample(KEY, full, METRICS, sparsity=0.2, draws=1001)
    found = quantiles(result, [0, 0.5, 1])
    np.testing.assert_array_equal(found[0], result.values.min(0))
    np.testing.assert_array_equal(found[1], np.median(result.values, 0))
    np.testing.assert_array_equal(found[2], result.values.max(0))


def test_progress_is_told():
    full, *_ = world(np.random.default_rng(9), 10**6)
    seen = []
    resample(KEY, full, MRR, sparsity=0.2, draws=3000, chunk=1024, on_progress=lambda *a: seen.append(a))
    assert seen == [(1024, 3000), (2048, 3000), (3000, 3000)]


GOOD = {"query": [0, 0, 1], "optimistic": [1, 4, 2], "pessimistic": [1, 5, 2], "score": [3.0, 2.0, 1.0]}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"query": []}, "query"),
        ({"query": [[0, 0, 1]]}, "query"),
        ({"query": [0, 0.5, 1]}, "query"),
        ({"score": [3.0, np.nan, 1.0]}, "score"),
        ({"score": ["a", "b", "c"]}, "score"),
        ({"score": [3.0, 2.0]}, "score"),
        ({"score": [2.0, 3.0, 1.0]}, "score"),
        ({"score": [-np.inf, np.inf, 1.0]}, "score"),
        ({"optimistic": [0, 4, 2]}, "optimistic"),
        ({"optimistic": [1, 6, 2]}, "pessimistic"),
        ({"optimistic": [[1, 4, 2], [1, 4, 2]]}, "pessimistic"),
        ({"fact": [[0, 0, 1], [0, 0, 2]]}, "fact"),
        ({"fact": [[0, 0, 1], [0, 0, 1], [0, 1, 1]]}, "fact"),
        ({"popularity": [1, 1]}, "popularity"),
        ({"fact": [[0, 0, 1], [0, 0, 2], [0, 1, 1]], "popularity": [1, 1]}, "popularity"),
    ],
)
def test_a_bad_full_test_is_refused(change, named):
    with pytest.raises(ValueError, match=rf"^`{named}` "):
        full_test(**(GOOD | change))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"key": -1}, "key"),
        ({"full": 1}, "full"),
        ({"metrics": None}, "metrics"),
        ({"metrics": GMR}, "metrics"),
        ({"sparsity": 1}, "sparsity"),
        ({"sparsity": -0.1}, "sparsity"),
        ({"draws": 1}, "draws"),
        ({"draws": 2.5}, "draws"),
        ({"draws": 2**32}, "draws"),
        ({"chunk": 0}, "chunk"),
        ({"missing": "node"}, "missing"),
        ({"missing": NodeBased()}, "full"),
        ({"missing": PopularityBased()}, "full"),
        ({"missing": Correlated([1.0, 2.0])}, "missing"),
    ],
)
def test_a_bad_resample_is_refused(change, named):
    arguments = {
        "key": KEY, "full": full_test(**GOOD), "metrics": MRR, "sparsity": 0.5, "draws": 10,
    }  # fmt: skip
    with pytest.raises(ValueError, match=rf"^`{named}` "):
        resample(**(arguments | change))


def test_other_bad_arguments_are_refused():
    full = full_test(**GOOD)
    with pytest.raises(ValueError, match=r"^`present` .* bool of shape \(2,\)"):
        thin(full, np.ones(2, bool))
    with pytest.raises(ValueError, match=r"^`present` must be true for at least one answer"):
        thin(full, np.zeros(3, bool))
    with pytest.raises(ValueError, match=r"^`score` must be finite"):
        Correlated([np.nan])
    with pytest.raises(ValueError, match=r"^`score` must have one axis"):
        Correlated([[1.0]])
    result = resample(KEY, full, MRR, sparsity=0.1, draws=5)
    with pytest.raises(ValueError, match=r"^`at` "):
        quantiles(result, 1.5)
    nothing = result._replace(queries=np.zeros_like(result.queries))
    with pytest.raises(ValueError, match=r"^`resampled` "):
        quantiles(nothing, 0.5)
    with pytest.raises(ValueError, match=r"^`resampled` "):
        inversions(nothing)
