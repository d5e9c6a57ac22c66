"""Monte Carlo against the closed forms, and its promises."""

import jax
import numpy as np
import pytest

from owkg import openworld, simulate, theory
from owkg.rank_weights import LOG_MRR, MR, MRR, RankWeight, hits_at, p_mrr
from owkg.simulate import run as simulate_run

METRICS = (MRR, LOG_MRR, MR, hits_at(3), p_mrr(0.5))
MISSING = (openworld.Independent(), openworld.NodeBased(), openworld.PopularityBased(1.5))
PAPER = {"strength": 0.7, "sparsity": 0.35, "num_answers": 43, "num_entities": 14505}
SETTINGS = [
    PAPER,
    {"strength": 0.6, "sparsity": 0.5, "num_answers": 9, "num_entities": 40, "correlation": 0.4},
    {"strength": 0.2, "sparsity": 0.8, "num_answers": 2, "num_entities": 3, "correlation": -0.2},
    {"strength": 1.0, "sparsity": 0.9, "num_answers": 1, "num_entities": 7},
    {"strength": 0.0, "sparsity": 0.1, "num_answers": 30, "num_entities": 31},
    # Almost everything is missing: drawn without waiting for an answer to be left by chance.
    {"strength": 0.5, "sparsity": 1 - 1e-7, "num_answers": 12, "num_entities": 40},
]
# The same as one grid, [2, 3]: one size, one compilation.
GRID = {name: np.array([s.get(name, 0) for s in SETTINGS]).reshape(2, 3) for name in (*PAPER, "correlation")}


def assert_within(estimate, error, exact, sigmas=4):
    # Values are float32 on the device: 1e-6 of the number is rounding, not chance.
    assert np.all(np.abs(estimate - exact) <= sigmas * error + 1e-6 * np.abs(exact) + 1e-12)


@pytest.mark.parametrize("missing", [*MISSING, openworld.NodeBased(1e-6)], ids=str)
def test_mean_and_variance_agree_with_the_closed_forms(missing):
    result = simulate.estimate(jax.random.key(11), METRICS, trials=60_000, missing=missing, **GRID)
    assert result.mean.shape == (2, 3, 5)
    assert result.covariance.shape == (2, 3, 5, 5)
    exact = [theory.moments(m, missing=missing, **GRID) for m in METRICS]
    assert_within(result.mean, result.standard_error, np.stack([e.expectation for e in exact], -1))
    assert_within(result.variance, result.variance_standard_error, np.stack([e.variance for e in exact], -1))


@pytest.mark.parametrize("missing", MISSING, ids=str)
def test_covariance_of_two_models_agrees(missing):
    setting = PAPER | {"correlation": 0.1}
    other = {"other_strength": 0.5, "other_correlation": -0.1}
    result = simulate.estimate_pair(
        jax.random.key(5), METRICS, trials=100_000, missing=missing, **setting, **other
    )
    exact = [theory.covariance(m, missing=missing, **setting, **other) for m in METRICS]
    estimated = np.array([result.covariance[0, i, 1, i] for i in range(len(METRICS))])
    # Var(sample covariance) <= (variance product + covariance^2) (1 + excess kurtosis) / trials.
    error = np.sqrt(result.variance[0] * result.variance[1] * 2 / result.trials)
    assert_within(estimated, error, exact)
    single = theory.moments(MRR, missing=missing, **setting)
    assert_within(result.mean[0, 0], result.standard_error[0, 0], single.expectation)
    np.testing.assert_allclose(result.variance[1, 2], result.covariance[1, 2, 1, 2])


@pytest.mark.parametrize("missing", MISSING, ids=str)
def test_score_model_agrees_with_quadrature(missing):
    setting = {"strength": 0.5, "sparsity": 0.4, "num_answers": 15, "num_entities": 3000}
    setting |= {"correlation": [0, 0.2], "missing": missing}
    result = simulate.estimate(
        jax.random.key(2), METRICS, trials=8_000, prediction=openworld.Score(), **setting
    )
    exact = np.stack([theory.score_expectation(m, **setting) for m in METRICS], -1)
    assert_within(result.mean, result.standard_error, exact)


def test_scores_far_in_the_tail_do_not_stall():
    """Equal tail probabilities give a chance of -0.0, on which jax.random.binomial never returns."""
    result = simulate.estimate(
        jax.random.key(0), MRR, trials=2000, prediction=openworld.Score(),
        strength=1 - 1e-9, sparsity=0.35, num_answers=43, num_entities=14505,
    )  # fmt: skip
    assert 0 < result.mean[0] < 1


def test_seed_decides_and_x64_flag_does_not_and_progress_is_reported_to_the_end():
    def run(seed, on_progress=None):
        run = {"trials": 3000, "on_progress": on_progress}
        return simulate.estimate(jax.random.key(seed), MRR, **run, **PAPER).mean

    seen = []
    with jax.enable_x64(True):
        double = run(7)
    assert run(7, lambda done, total: seen.append((done, total))) == run(7) == double
    assert run(7) != run(8)
    assert (seen[0], seen[-1]) == ((0, 3000), (3000, 3000))


def test_progress_of_great_queries_is_told_between_them(monkeypatch):
    monkeypatch.setattr(simulate_run, "_BLOCK", 1)
    monkeypatch.setattr(simulate_run, "_ANSWERS_PER_CALL", 100)
    seen = []
    simulate.estimate(
        jax.random.key(0), MRR, trials=6, chunk=1, on_progress=lambda *told: seen.append(told), **PAPER
    )
    assert seen == [(0, 6), (2, 6), (4, 6), (6, 6)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trials": 1}, "`trials` must be a whole number of at least 2"),
        ({"trials": [10, 20]}, "`trials` must be a single number"),
        ({"chunk": 0}, "`chunk` must be a whole number"),
        ({"strength": float("nan")}, "`strength` must be in"),
        ({"missing": "node"}, "`missing` must be one of the models"),
        ({"prediction": "score"}, "`prediction` must be one of the models"),
        ({"num_entities": 43}, "`num_entities` must exceed `num_answers`"),
        ({"prediction": openworld.Score(), "strength": 1.0}, "`strength` must be in"),
    ],
)
def test_bad_input_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        simulate.estimate(jax.random.key(0), MRR, **({"trials": 10} | PAPER | change))


@pytest.mark.parametrize("key", [-1, None, np.zeros(2, np.uint32)])
def test_bad_key_is_named(key):
    with pytest.raises(ValueError, match="`key` must be one key"):
        simulate.estimate(key, MRR, trials=10, **PAPER)


@pytest.mark.parametrize("chosen", [(), None, (1.0,)])
def test_bad_metrics_are_named(chosen):
    with pytest.raises(ValueError, match="`metrics` must be one or more metrics"):
        simulate.estimate(jax.random.key(0), chosen, trials=10, **PAPER)


def test_more_entities_than_a_rank_can_count_are_refused():
    with pytest.raises(ValueError, match=r"`num_entities` must be below 2\*\*31"):
        simulate.estimate(jax.random.key(0), MRR, trials=10, **(PAPER | {"num_entities": 2**31}))


def test_many_answers_stay_within_memory():
    """Blocks and chunks shrink with the answers: 20,000 answers, 500 trials."""
    l, s, n, entities = 0.5, 0.4, 20_000, 30_000
    setting = {"strength": l, "sparsity": s, "num_answers": n, "num_entities": entities}
    result = simulate.estimate(jax.random.key(0), MR, trials=500, **setting)
    # Linear in the number of missing answers, some n s: half of those of its own class precede an answer.
    behind = n * s * l + (entities - n + n * s * (1 - l)) / 2
    assert_within(result.mean, result.standard_error, 1 + l * n * s * l / 2 + (1 - l) * behind)


@pytest.mark.parametrize("trials", [2, 3, 50, 1025, 3000])
def test_estimates_of_zeros_and_ones_are_the_textbook_formulas(trials):
    """One answer and Hits@1: every draw is 0 or 1, so the mean tells the whole sample.

    The mean of a constant is 1 where every trial counts once: 1, 2 and 3 blocks, full and partly filled.
    """
    setting = {"strength": 0.5, "sparsity": 0.5, "num_answers": 1, "num_entities": 4}
    constant = RankWeight("one", lambda rank: rank**0)
    both = (hits_at(1), constant)
    result = simulate.estimate(jax.random.key(6), both, trials=trials, **setting)
    assert (result.mean[1], result.variance[1]) == (1, 0)
    ones = round(float(result.mean[0]) * trials)
    sample = np.repeat([1.0, 0.0], [ones, trials - ones])
    assert 0 < ones < trials
    np.testing.assert_allclose(result.variance[0], np.var(sample, ddof=1), rtol=1e-12)
    np.testing.assert_allclose(result.standard_error[0], np.std(sample, ddof=1) / np.sqrt(trials))
    fourth = np.mean((sample - sample.mean()) ** 4)
    spread = fourth - np.var(sample, ddof=1) ** 2 * (trials - 3) / (trials - 1)
    np.testing.assert_allclose(
        result.variance_standard_error[0], np.sqrt(max(spread, 0) / trials), rtol=1e-12
    )


def test_weight_that_is_not_finite_is_refused():
    metric = RankWeight("mine", lambda rank: 1 / (rank - 3))
    with pytest.raises(ValueError, match="`metrics` must weigh every rank with a finite number"):
        simulate.estimate(jax.random.key(0), metric, trials=500, **PAPER)
