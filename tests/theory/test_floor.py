"""The least queries over all rank weights: held against the theory's moments and every metric."""

import numpy as np
import pytest

from owkg.openworld import NodeBased, grid
from owkg.theory import covariance, moments, query_floor, required_queries
from owkg.theory.floor import rank_moments

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
    found = rank_moments(grid(**setting), *model.values())
    expected = moments(f"hits@{k}", **model, **setting)
    assert hits(k) @ found.mean == pytest.approx(expected.expectation, abs=1e-12)
    assert hits(k) @ found.covariance @ hits(k) == pytest.approx(expected.variance, abs=1e-12)


def test_covariance_of_two_models_is_that_of_the_theory():
    settings = [grid(strength=s, **WORLD) for s in (0.5, 0.6)]
    one, two = (rank_moments(setting) for setting in settings)
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
    one, two = (rank_moments(grid(strength=s, **WORLD)) for s in (0.5, 0.6))
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


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"strength": [0.4, 0.5]}, "must be one setting"),
        ({"other_strength": 0.5}, "`other_strength` must differ from `strength`"),
        ({"inconsistency": 0.5}, "`inconsistency` must be in"),
    ],
)
def test_bad_arguments(changed, message):
    with pytest.raises(ValueError, match=message):
        query_floor(**({"inconsistency": 0.05} | PAIR | changed))
