"""The exact moments against enumeration of every world, limits, and their own mixtures."""

import importlib
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from owkg import openworld, simulate, theory
from owkg.openworld import Independent, NodeBased, PopularityBased
from owkg.rank_weights import LOG_MRR, MR, MRR, RankWeight, hits_at, p_mrr, tables
from owkg.theory import grids, missing_counts

sizes_of = importlib.import_module("owkg.theory.moments")  # `owkg.theory.moments` is the function

pytestmark = pytest.mark.usefixtures("quick_compilation")
PLAIN = {
    MRR: lambda r: 1 / r,
    LOG_MRR: lambda r: np.log(2) / np.log(1 + r),
    MR: lambda r: float(r),
    hits_at(2): lambda r: float(r <= 2),
    p_mrr(0.5): lambda r: r**-0.5,
}
PAPER = {"sparsity": 0.35, "num_answers": 43, "num_entities": 14505}


@pytest.mark.parametrize("metric", PLAIN, ids=lambda m: m.name)
@pytest.mark.parametrize(
    ("num_answers", "num_entities", "strength", "sparsity", "correlation"),
    [
        (1, 2, 0.3, 0.4, 0.0),
        (1, 4, 1.0, 0.9, 0.0),
        (2, 3, 0.0, 0.2, 0.0),
        (2, 5, 0.6, 0.5, 0.4),
        (3, 4, 0.25, 0.7, -0.3),
        (3, 6, 0.8, 0.35, 0.2),
    ],
)
def test_moments_equal_enumeration(
    metric, num_answers, num_entities, strength, sparsity, correlation, enumerated
):
    pair = openworld.conditional_strengths(strength, sparsity, correlation)
    mean, variance, _ = enumerated(PLAIN[metric], [pair], [sparsity] * num_answers, num_entities)
    setting = {"sparsity": sparsity, "num_answers": num_answers, "num_entities": num_entities}
    exact = theory.moments(metric, strength=strength, correlation=correlation, **setting)
    given = theory.conditional_moments(metric, missing_strength=pair[0], test_strength=pair[1], **setting)
    np.testing.assert_allclose(exact, [mean[0], variance[0]], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(given, exact, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("metric", PLAIN, ids=lambda m: m.name)
def test_covariance_equals_enumeration(metric, enumerated):
    models = [(0.7, 0.6), (0.3, 0.45)]
    sparsity, rho = 0.4, [openworld.conditional_strengths(0.64, 0.4, 0.1)]
    models = [*rho, openworld.conditional_strengths(0.39, 0.4, -0.2)]
    _, _, covariance = enumerated(PLAIN[metric], models, [sparsity] * 3, 5)
    exact = theory.covariance(
        metric,
        strength=0.64,
        correlation=0.1,
        other_strength=0.39,
        other_correlation=-0.2,
        sparsity=sparsity,
        num_answers=3,
        num_entities=5,
    )
    np.testing.assert_allclose(exact, covariance[0, 1], rtol=1e-11)


def test_popularity_moments_equal_enumeration(enumerated):
    model = openworld.PopularityBased(1.5)
    table = openworld.missing.popularity_probabilities(np.array(0.4), np.array(3), model.exponent, 3)
    mean, variance, _ = enumerated(PLAIN[MRR], [(0.6, 0.6)], list(table), 5)
    exact = theory.moments(MRR, strength=0.6, sparsity=0.4, num_answers=3, num_entities=5, missing=model)
    np.testing.assert_allclose(exact, [mean[0], variance[0]], rtol=1e-9)


def test_node_based_counts_follow_the_integral_over_the_query_entity():
    """With N = 2, P(1 missing) and P(0 missing) by adaptive quadrature over the shared entity."""
    sparsity, spread = 0.5, 0.2
    location = float(openworld.missing.node_location(np.array(sparsity), spread))
    other = np.sqrt(1 - sparsity)

    def average(f):
        inside = integrate.quad(lambda q: f(q) * stats.norm.pdf(q, location, spread), 0, 1, epsabs=1e-13)[0]
        at_ends = f(0.0) * stats.norm.cdf(0, location, spread)
        return inside + at_ends + f(1.0) * stats.norm.sf(1, location, spread)

    none = average(lambda q: (q * other) ** 2)
    one = average(lambda q: 2 * q * other * (1 - q * other))
    # Mean rank with l = 0 on 4 entities: 1 + (others before it)/2 on average, others = 2 + missing.
    mean = (none * (1 + 2 / 2) + one * (1 + 3 / 2)) / (none + one)
    exact = theory.expectation(
        MR,
        strength=0.0,
        sparsity=sparsity,
        num_answers=2,
        num_entities=4,
        missing=openworld.NodeBased(spread),
    )
    np.testing.assert_allclose(exact, mean, rtol=1e-9)


@pytest.mark.parametrize("spread", [1e-6, 1e-4, 1e-3, 2e-3, 1e-2])
def test_node_spread_to_zero_is_independent(spread):
    node = theory.moments(MRR, strength=0.7, missing=openworld.NodeBased(spread), **PAPER)
    independent = theory.moments(MRR, strength=0.7, **PAPER)
    np.testing.assert_allclose(node, independent, rtol=1e-9 + 300 * spread**2)
    assert node.variance > independent.variance


def test_node_based_quadrature_has_converged(monkeypatch):
    setting = {"strength": 0.6, "sparsity": 0.4, "num_answers": [5, 400], "num_entities": 3000}
    for spread in (0.02, 0.2, 2.0):
        model = openworld.NodeBased(spread)
        coarse = theory.moments(MRR, missing=model, **setting)
        with monkeypatch.context() as patch:
            patch.setattr(missing_counts, "_NODES", 1031)
            fine = theory.moments(MRR, missing=model, **setting)
        np.testing.assert_allclose(coarse, fine, rtol=1e-9)


def test_popularity_exponent_zero_is_independent():
    flat = theory.moments(MRR, strength=0.7, missing=openworld.PopularityBased(0.0), **PAPER)
    np.testing.assert_allclose(flat, theory.moments(MRR, strength=0.7, **PAPER), rtol=1e-9)


def test_the_smallest_sparsities_are_numbers():
    """Quotients of numbers below the smallest normal one overflowed."""
    expected = theory.moments(MRR, strength=0.7, **PAPER | {"sparsity": 1e-300})
    for sparsity in (5e-324, 1e-310):
        found = theory.moments(MRR, strength=0.7, **PAPER | {"sparsity": sparsity})
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_published_example():
    mean, variance = theory.moments(MRR, strength=0.7, **PAPER)
    assert round(float(mean), 6) == 0.192762
    assert round(float(variance), 7) == 0.0061811


@pytest.mark.parametrize("answers", [1, 43, 600])
@pytest.mark.parametrize(
    "missing",
    [openworld.Independent(), openworld.NodeBased(0.2), openworld.PopularityBased(1.5)],
    ids=lambda missing: type(missing).__name__,
)
def test_a_setting_by_numpy_is_that_by_jax(missing, answers, monkeypatch):
    setting = {"strength": 0.7, "sparsity": 0.35, "correlation": 0.1}
    setting |= {"num_answers": answers, "num_entities": 2 * answers + 5}

    def found():
        pair = theory.covariance(LOG_MRR, other_strength=0.4, other_metric=MR, missing=missing, **setting)
        lemma = theory.lemma_expectation(LOG_MRR, **setting), theory.lemma_derivative(LOG_MRR, **setting)
        return (*theory.moments(LOG_MRR, missing=missing, **setting), pair, *lemma)

    by_numpy = found()
    assert all(np.ndim(value) == 0 for value in by_numpy)
    monkeypatch.setattr(grids, "ENTRIES_IN_NUMPY", 0)
    np.testing.assert_allclose(by_numpy, found(), rtol=1e-11)


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_certain_settings_by_numpy(strength):
    """Nothing is warned of where logarithms of 0 meet."""
    found = theory.moments(MRR, strength=strength, sparsity=0.5, num_answers=3, num_entities=4)
    both = theory.moments(MRR, strength=[strength] * 2, sparsity=0.5, num_answers=3, num_entities=4)
    np.testing.assert_allclose(both.expectation, found.expectation, rtol=1e-12)


def test_mixed_grid_equals_each_setting_alone():
    strength = np.array([[0.1], [0.9]])
    answers = np.array([1, 7, 60])
    entities = np.array([2, 50, 9000])
    grid = theory.moments(
        LOG_MRR, strength=strength, sparsity=0.3, num_answers=answers, num_entities=entities
    )
    assert grid.expectation.shape == (2, 3)
    for i in range(2):
        for j in range(3):
            alone = theory.moments(
                LOG_MRR,
                strength=strength[i, 0],
                sparsity=0.3,
                num_answers=answers[j],
                num_entities=entities[j],
            )
            np.testing.assert_allclose([grid.expectation[i, j], grid.variance[i, j]], alone)


def test_answer_weights_are_the_law_of_total_variance():
    answers, weights = np.array([2, 5, 40]), np.array([3.0, 1.0, 4.0])
    setting = {"sparsity": 0.3, "num_answers": answers, "num_entities": 1000}
    each = theory.moments(MRR, strength=0.6, **setting)
    mixed = theory.moments(MRR, strength=0.6, answer_weights=weights, **setting)
    p = weights / weights.sum()
    mean = (p * each.expectation).sum()
    np.testing.assert_allclose(mixed.expectation, mean)
    second = (p * (each.variance + each.expectation**2)).sum()
    np.testing.assert_allclose(mixed.variance, second - mean**2, rtol=1e-10)
    same = theory.covariance(MRR, strength=0.6, other_strength=0.6, answer_weights=weights, **setting)
    between = (p * (each.expectation - mean) ** 2).sum()
    assert between < same < mixed.variance


def test_perfect_model_and_dense_test_set_is_perfect():
    mean, variance = theory.moments(MRR, strength=1.0, sparsity=1e-9, num_answers=20, num_entities=500)
    assert mean == pytest.approx(1, abs=1e-7)
    assert variance == pytest.approx(0, abs=1e-7)


def test_metric_that_cannot_vary_has_no_variance():
    mean, variance = theory.moments(hits_at(100), strength=0.4, sparsity=0.5, num_answers=9, num_entities=50)
    assert mean == pytest.approx(1, abs=1e-14)
    assert 0 <= variance < 1e-14


def test_user_given_weight():
    squared = RankWeight("r^-2", lambda rank: rank**-2.0)
    mean, _ = theory.moments(squared, strength=0.0, sparsity=0.5, num_answers=1, num_entities=4)
    assert mean == pytest.approx(np.mean([1, 1 / 4, 1 / 9, 1 / 16]), rel=1e-13)


def test_weight_that_is_not_finite_is_refused():
    bad = RankWeight("bad", lambda rank: 1 / (rank - 1))
    with pytest.raises(ValueError, match=r"`metric` must weigh every rank with a finite number"):
        theory.moments(bad, strength=0.5, sparsity=0.5, num_answers=3, num_entities=9)


def test_gradient_of_the_exact_moments_is_that_of_finite_differences():
    def mean(l):
        return theory.expectation(MRR, strength=l, **PAPER)

    def spread(l):
        return theory.variance(MRR, strength=l, **PAPER)

    with jax.enable_x64(True):
        for f in (mean, spread):
            numeric = (f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6
            np.testing.assert_allclose(jax.grad(f)(0.7), numeric, rtol=1e-6)


def test_result_does_not_depend_on_the_x64_flag():
    plain = theory.moments(MRR, strength=0.7, **PAPER)
    with jax.enable_x64(True):
        double = theory.moments(MRR, strength=0.7, **PAPER)
    assert plain == double


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer_weights": [1.0, 2.0]}, "`answer_weights` must match the last axis"),
        ({"num_answers": [3, 4], "answer_weights": [-1.0, 2.0]}, "`answer_weights` must be finite"),
        ({"num_answers": [3, 4], "answer_weights": [0.0, 0.0]}, "must have an entry above 0"),
        ({"missing": "node"}, "`missing` must be one of the models"),
        ({"strength": 1.2}, "`strength` must be in"),
    ],
)
def test_bad_input_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        theory.moments(MRR, **({"strength": 0.7} | PAPER | change))


def test_other_models_error_says_so():
    with pytest.raises(ValueError, match="`correlation` must be in the feasible"):
        theory.covariance(MRR, strength=0.5, other_strength=0.95, correlation=0.5, **PAPER)
    with pytest.raises(ValueError, match="`missing_strength` must be in"):
        theory.conditional_moments(MRR, missing_strength=1.1, test_strength=0.5, **PAPER)


def test_too_many_entities_for_exact_sums_are_refused():
    with pytest.raises(ValueError, match="`num_entities` must leave memory for exact sums over"):
        theory.moments(MRR, strength=0.7, sparsity=0.3, num_answers=3, num_entities=10**12)


def test_many_answers_need_no_table_of_pairs():
    """N = 5,000: an N x N table of doubles would take 200 MB for each array."""
    mean, variance = theory.moments(MRR, strength=0.5, sparsity=0.4, num_answers=5000, num_entities=20_000)
    lemma = theory.lemma_expectation(MRR, strength=0.5, sparsity=0.4, num_answers=5000, num_entities=20_000)
    assert mean == pytest.approx(lemma, rel=0.15)
    assert 0 < variance < mean**2


def test_traced_and_concrete_calls_do_not_disturb_each_other():
    """JAX must not reuse a table that it has converted to the precision of an earlier trace."""

    def mean(l):
        return theory.expectation(MRR, strength=l, **PAPER)

    exact = mean(0.7)
    assert float(jax.jit(mean)(0.7)) == pytest.approx(exact, rel=1e-5)
    assert mean(0.7) == exact
    with jax.enable_x64(True):
        assert float(jax.jit(mean)(0.7)) == pytest.approx(exact, rel=1e-12)
        jax.grad(mean)(0.7)
    assert float(jax.vmap(mean)(np.array([0.7]))[0]) == pytest.approx(exact, rel=1e-5)
    assert mean(0.7) == exact


def test_great_answer_weights_do_not_overflow():
    setting = {"strength": 0.7, "sparsity": 0.3, "num_answers": [1, 2], "num_entities": 50}
    great = theory.moments(MRR, answer_weights=[1e308, 1e308], **setting)
    assert great == theory.moments(MRR, answer_weights=[1, 1], **setting)


@pytest.mark.parametrize(
    "weight",
    [lambda r: 1.0, lambda r: r[:2], lambda r: r[:, None] * r, np.reciprocal, lambda r: 1j * r],
    ids=["scalar", "short", "square", "numpy", "complex"],
)
def test_weights_that_are_no_rank_weights_are_refused_by_both_witnesses(weight):
    metric = RankWeight("mine", weight)
    with pytest.raises(ValueError, match="`weight` of metric 'mine' must"):
        theory.moments(metric, strength=0.7, **PAPER)
    with pytest.raises(ValueError, match="`weight` of metric 'mine' must"):
        simulate.estimate(jax.random.key(0), metric, trials=10, strength=0.7, **PAPER)


@pytest.mark.parametrize("weight", [lambda r: r <= 2, lambda r: (r <= 2).astype(int)], ids=["bool", "int"])
def test_weights_of_other_real_kinds_are_numbers(weight):
    metric = RankWeight("mine", weight)
    exact = theory.expectation(metric, strength=0.7, **PAPER)
    assert exact == theory.expectation(hits_at(2), strength=0.7, **PAPER)
    drawn = simulate.estimate(jax.random.key(0), metric, trials=5000, strength=0.7, **PAPER)
    assert abs(drawn.mean[0] - exact) < 4 * drawn.standard_error[0]


def test_weight_is_asked_for_ranks_that_exist_only():
    metric = RankWeight("mine", lambda r: jnp.sqrt(1 - r / 14506))
    assert np.isfinite(theory.expectation(metric, strength=0.7, **PAPER))
    few = {"strength": 0.7, "sparsity": 0.3, "num_answers": 9, "num_entities": 10}
    metric = RankWeight("mine", lambda r: jnp.sqrt(1 - r / 11))
    for mean in (theory.expectation, theory.lemma_expectation, theory.lemma_derivative):
        assert np.isfinite(mean(metric, **few))


@pytest.mark.parametrize("metric", [1.0, None])
def test_what_is_no_metric_is_refused(metric):
    with pytest.raises(ValueError, match="`metric` must be a RankWeight"):
        theory.moments(metric, strength=0.7, **PAPER)
    with pytest.raises(ValueError, match="`weight` must be a function"):
        RankWeight("mine", metric)


@pytest.mark.parametrize(
    "missing", [openworld.INDEPENDENT, openworld.NodeBased(), openworld.PopularityBased()]
)
def test_arrays_of_several_sizes_give_the_moments_of_one(missing, monkeypatch):
    sizes = np.array([40, 3, 17, 16, 1, 70, 33])
    world = {"sparsity": 0.4, "num_answers": sizes, "num_entities": 300, "missing": missing}
    strengths = np.array([[0.2], [0.9]])

    def found():
        each = theory.moments("mrr", strength=strengths, **world)
        mixed = theory.covariance(
            "mrr", strength=0.3, other_strength=strengths, answer_weights=sizes, **world
        )
        return *each, mixed

    once = found()
    monkeypatch.setattr(sizes_of, "_WORTH", 1.0)
    assert sizes_of._sizes(sizes) == [16, 32, 64, 128]
    for one, many in zip(once, found(), strict=True):
        np.testing.assert_allclose(many, one, rtol=1e-12, atol=1e-15)


def test_sizes_that_save_less_than_a_compilation_are_none():
    sizes = np.array([3, 30, 300])
    assert sizes_of._sizes(sizes) == [512]
    assert sizes_of._sizes(np.repeat(sizes, 200)) == [32, 512]
    assert sizes_of._sizes(np.append(3, [1000] * 500)) == [1024]


@pytest.mark.parametrize(
    ("missing", "answers", "time"),
    [(Independent(), 1_000_000, "6 hours"), (PopularityBased(1.0), 120_000, "5 minutes")],
)
def test_work_of_minutes_and_hours_is_said_before(missing, answers, time):
    with pytest.warns(UserWarning, match=rf"queries of {answers:,} answers take about {time}"):
        missing_counts.require_feasible(missing, np.array([43, answers]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        missing_counts.require_feasible(missing, np.array([43, 20_000]))


def test_sums_that_do_not_fit_in_memory_are_refused(monkeypatch):
    monkeypatch.setattr(grids, "free_memory", lambda: 2**30)
    monkeypatch.setattr(tables, "free_memory", lambda: 2**30)
    setting = {"strength": 0.7, "sparsity": 0.35, "num_entities": 10**6}
    many = "`num_answers` must leave memory for the exact sums of 100,000 answers"
    with pytest.raises(ValueError, match=many):
        theory.moments("mrr", **setting, num_answers=100_000, missing=NodeBased(0.2))
    with pytest.raises(ValueError, match=many):
        theory.score_expectation("mrr", **setting, num_answers=100_000)
    with pytest.raises(ValueError, match=r"`num_entities` must leave memory .* over 90,000,000 ranks"):
        theory.moments("mrr", **setting | {"num_entities": 90_000_000}, num_answers=43)
