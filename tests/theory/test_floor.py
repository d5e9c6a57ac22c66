"""The least queries over all rank weights, of each focus: held against moments, metrics and simulation."""

import jax
import numpy as np
import pytest

from owkg.openworld import NodeBased, grid
from owkg.rank_weights import binned_weight, focus_of, hits_at, rank_weight
from owkg.simulate import estimate_pair
from owkg.theory import best_weight, covariance, focus_curve, moments, query_floor, required_queries
from owkg.theory.floor import rank_count_moments

WORLD = {"sparsity": 0.35, "num_answers": 12, "num_entities": 300}
PAIR = {"strength": 0.5, "other_strength": 0.6} | WORLD


def hits(k):
    return (np.arange(13) < k) * 1.0


@pytest.mark.parametrize("k", [1, 2, 5, 12])
@pytest.mark.parametrize("correlation", [0.0, 0.2])
@pytest.mark.parametrize("missing", [NodeBased(0.2), None])
def test_moments_of_hits_are_those_of_the_theory(k, correlation, missing):
    model = {} if missing is None else {"missing": missing}
    setting = {"strength": 0.5, "correlation": correlation} | WORLD
    found = rank_count_moments(grid(**setting), *model.values())
    expected = moments(f"hits@{k}", **model, **setting)
    assert hits(k) @ found.mean == pytest.approx(expected.expectation, abs=1e-12)
    assert hits(k) @ found.covariance @ hits(k) == pytest.approx(expected.variance, abs=1e-12)


def test_covariance_of_two_models_is_that_of_the_theory():
    settings = [grid(strength=s, **WORLD) for s in (0.5, 0.6)]
    one, two = (rank_count_moments(setting) for setting in settings)
    shared = ((one.given - one.mean) * one.chances[:, None]).T @ (two.given - two.mean)
    assert hits(3) @ shared @ hits(3) == pytest.approx(covariance("hits@3", **PAIR), abs=1e-12)


@pytest.mark.parametrize("paired", [False, True])
def test_no_metric_needs_fewer(paired):
    found = query_floor(inconsistency=0.05, paired=paired, **PAIR)
    assert 1 < found.queries <= found.decreasing_queries
    names = ["mrr", "log-mrr", "p-mrr@1/2", *(f"hits@{k}" for k in (1, 2, 3, 5, 8, 10, 12))]
    each = {name: required_queries(name, inconsistency=0.05, paired=paired, **PAIR) for name in names}
    assert min(each.values()) >= found.decreasing_queries
    assert (np.diff(found.decreasing_weight) <= 1e-9).all()


def test_the_weight_attains_the_floor_and_others_do_not():
    found, rng = query_floor(inconsistency=0.05, **PAIR), np.random.default_rng(0)
    one, two = (rank_count_moments(grid(strength=s, **WORLD)) for s in (0.5, 0.6))
    change, spread = two.mean - one.mean, one.covariance + two.covariance

    def needed(weight):
        return 1.6448536269514722**2 * (weight @ spread @ weight) / (weight @ change) ** 2

    assert np.ceil(needed(found.weight)) == found.queries
    assert np.ceil(needed(found.decreasing_weight)) == found.decreasing_queries
    for _ in range(300):
        near = found.weight + 0.1 * rng.normal(size=13)
        assert needed(near) >= needed(found.weight) - 1e-9
        falling = np.sort(rng.random(13))[::-1] ** rng.uniform(0.2, 5)
        assert needed(falling) >= needed(found.decreasing_weight) - 1e-9


@pytest.mark.parametrize("sparsity", [0.35, 0.95])
def test_few_entities_whose_ranks_are_all_reached(sparsity):
    pair = {"strength": 0.7, "other_strength": 0.5, "sparsity": sparsity, "inconsistency": 0.05}
    pair |= {"num_answers": 60, "num_entities": 61, "paired": True}
    found = query_floor(**pair)
    assert (
        found.queries <= found.decreasing_queries <= min(required_queries(n, **pair) for n in ("mrr", "mr"))
    )
    better = binned_weight("floor", np.arange(1, 62), found.weight)
    assert required_queries(better, **pair) == found.queries


def test_the_setting_of_the_readme():
    """MRR needs 1,692 queries, p-MRR at 1/2 150, the best weight 14."""
    setting = {
        "sparsity": 0.35,
        "num_answers": 43,
        "num_entities": 14505,
        "strength": 0.7,
        "other_strength": 0.75,
    }
    found = query_floor(inconsistency=0.05, **setting)
    assert (found.queries, found.decreasing_queries) == (14, 16)
    swapped = setting | {"strength": 0.75, "other_strength": 0.7}
    assert query_floor(inconsistency=0.05, **swapped).queries == found.queries


FOCUSES = np.append(0, 1 / np.geomspace(13, 1, 12))


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("correlation", [0.0, 0.2])
def test_more_focus_needs_more_queries(paired, correlation):
    pair = PAIR | {"correlation": correlation, "inconsistency": 0.01, "paired": paired}
    found = focus_curve(focus=FOCUSES, **pair)
    assert (np.diff(found.queries) >= 0).all()
    assert found.queries[-1] > 3 * found.queries[0]
    assert (found.focus >= FOCUSES - 1e-9).all()
    assert (np.diff(found.weight) <= 1e-9).all()
    floor = query_floor(**pair)
    assert found.queries[0] == floor.decreasing_queries
    np.testing.assert_allclose(found.weight[0], floor.decreasing_weight)


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("name", ["mrr", "log-mrr", "p-mrr@1/2", *(f"hits@{k}" for k in (1, 2, 3, 5, 12))])
def test_no_metric_of_that_focus_needs_fewer(name, paired):
    pair = PAIR | {"inconsistency": 0.05, "paired": paired}
    own = focus_of(rank_weight(name), WORLD["num_entities"])
    found = best_weight(focus=own, **pair)
    needed = required_queries(name, **pair)
    assert found.queries <= needed
    if name == "hits@1":  # the one weight of focus 1
        assert found.queries == needed
        np.testing.assert_allclose(found.weight, hits(1))


@pytest.mark.parametrize("focus", [0.0, 0.2, 0.4])
def test_the_weight_is_a_metric_of_so_many_queries(focus):
    found = best_weight(focus=focus, inconsistency=0.05, **PAIR)
    metric = binned_weight("best", np.arange(1, 14), found.weight)
    assert required_queries(metric, inconsistency=0.05, **PAIR) == found.queries
    assert focus_of(metric, 300) == pytest.approx(found.focus)


def test_as_many_queries_show_the_wrong_order_as_often_as_asked_for():
    """Simulated: 5 % of 3,000 comparisons on shared test sets, to four standard errors."""
    models = {"strength": 0.5, "other_strength": 0.55} | WORLD
    found = best_weight(focus=0.3, inconsistency=0.05, paired=True, **models)
    metric = binned_weight("best", np.arange(1, 14), found.weight)
    assert 100 < found.queries < required_queries("mrr", inconsistency=0.05, paired=True, **models)
    many = models | {"strength": np.full(3000, 0.5)}
    drawn = estimate_pair(jax.random.key(5), metric, trials=int(found.queries), **many)
    wrong = (drawn.mean[:, 0, 0] >= drawn.mean[:, 1, 0]).mean()
    assert wrong == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 3000))


def test_at_the_focus_of_mrr_33_queries_do_what_mrr_needs_1692_for():
    setting = {"sparsity": 0.35, "num_answers": 43, "num_entities": 14505}
    setting |= {"strength": 0.7, "other_strength": 0.75, "inconsistency": 0.05}
    found = best_weight(focus=focus_of(rank_weight("mrr"), 14505), **setting)
    assert (found.queries, required_queries("mrr", **setting)) == (33, 1692)
    swapped = setting | {"strength": 0.75, "other_strength": 0.7}
    assert best_weight(focus=found.focus, **swapped).queries == 33


def test_no_focus_helps_where_correlation_turns_the_order():
    pair = {"strength": 0.7, "other_strength": 0.701, "other_correlation": 0.3}
    pair |= {"sparsity": 0.35, "num_answers": 1, "num_entities": 40, "inconsistency": 0.05}
    assert required_queries(hits_at(2), **pair) == np.inf
    found = focus_curve(focus=[0.0, 0.5, 1.0], **pair)
    assert np.isinf(found.queries).all()
    assert np.isnan(found.focus).all()
    assert not found.weight.any()
    assert query_floor(**pair).decreasing_queries == np.inf


@pytest.mark.parametrize(
    ("function", "focus", "message"),
    [
        (best_weight, 1.1, r"`focus` must be in \[0, 1\], got 1.1"),
        (focus_curve, 0.1, "`focus` must have one axis"),
        (focus_curve, [0.1, -1], "`focus` must be in"),
    ],
)
def test_bad_focuses(function, focus, message):
    with pytest.raises(ValueError, match=message):
        function(focus=focus, inconsistency=0.05, **PAIR)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"strength": [0.4, 0.5]}, "must be single numbers"),
        ({"other_strength": 0.5}, "`other_strength` must differ from `strength`"),
        ({"inconsistency": 0.5}, "`inconsistency` must be in"),
    ],
)
def test_bad_arguments(changed, message):
    with pytest.raises(ValueError, match=message):
        query_floor(**({"inconsistency": 0.05} | PAIR | changed))
