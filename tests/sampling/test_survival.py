"""Probabilities of survival: their mean is the density, they follow their law, they rise with the density."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg.openworld import INDEPENDENT, NodeBased, PopularityBased
from owkg.sampling import RelationBased, survival

MODELS = [INDEPENDENT, NodeBased(0.2), RelationBased(0.2), PopularityBased(1.0)]
PARAMETRISED = st.one_of(
    st.floats(1e-3, 5).map(NodeBased),
    st.floats(1e-3, 5).map(RelationBased),
    st.floats(-3, 3).map(PopularityBased),
)


def _survival(facts, density, model, seed=0):
    sizes = {"num_entities": int(facts[:, [0, 2]].max()) + 1, "num_relations": int(facts[:, 1].max()) + 1}
    return survival(facts, density, model, np.random.default_rng(seed), **sizes)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("density", [1e-6, 0.05, 0.65, 0.75, 0.85, 0.95, 1 - 1e-6, 1])
def test_the_mean_over_the_facts_is_the_density(density, model, closed):
    found = _survival(closed.splits["facts"], density, model)
    assert found.shape == closed.splits["facts"].shape[:1]
    assert ((found >= 0) & (found <= 1)).all()
    assert found.mean() == pytest.approx(density, rel=0, abs=1e-12)


@given(density=st.floats(0.01, 0.99), model=PARAMETRISED, seed=st.integers(0, 5), data=st.data())
def test_it_is_so_on_any_graph(density, model, seed, data):
    triple = st.tuples(st.integers(0, 6), st.integers(0, 2), st.integers(0, 6))
    facts = np.array(data.draw(st.lists(triple, min_size=1, max_size=20, unique=True)), np.int32)
    assert _survival(facts, density, model, seed).mean() == pytest.approx(density, rel=0, abs=1e-9)


@given(densities=st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)).map(sorted), model=PARAMETRISED)
def test_a_higher_density_raises_every_probability(densities, model):
    facts = np.array([[h, (h + t) % 3, t] for h in range(9) for t in range(h + 1)], np.int32)
    low, high = (_survival(facts, density, model) for density in densities)
    assert (low <= high + 1e-12).all()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_that_share_of_the_facts_survives(model, closed):
    found = _survival(closed.splits["facts"], 0.75, model)
    draws = np.random.default_rng(1).random((200, len(found))) < found
    deviation = np.sqrt((found * (1 - found)).sum() / 200) / len(found)
    assert abs(draws.mean() - 0.75) < 4 * deviation


@pytest.mark.parametrize("model", [NodeBased(1e-6), RelationBased(1e-6), PopularityBased(0.0)])
def test_without_spread_all_facts_are_alike(model, closed):
    found = _survival(closed.splits["facts"], 0.75, model)
    np.testing.assert_allclose(found, 0.75, rtol=0, atol=1e-5)


def test_node_based_is_a_product_over_head_and_tail():
    facts = np.array([[h, 0, 5 + t] for h in range(5) for t in range(5)], np.int32)
    found = _survival(facts, 0.6, NodeBased(0.2)).reshape(5, 5)
    assert min(np.ptp(found, axis=0).min(), np.ptp(found, axis=1).min()) > 0.1
    np.testing.assert_allclose(np.linalg.svd(found)[1][1:], 0, atol=1e-12)


def test_relation_based_is_one_probability_a_relation():
    facts = np.array([[h, h % 4, t] for h in range(8) for t in range(5)], np.int32)
    found = _survival(facts, 0.6, RelationBased(0.3))
    assert len(np.unique(found)) == 4
    assert all(np.ptp(found[facts[:, 1] == r]) == 0 for r in range(4))


@pytest.mark.parametrize("exponent", [-1.0, 0.5, 2.0])
def test_popular_entities_are_written_down_first(exponent):
    # Entity 0 is in three facts, 1 and 2 in two, 3 in one.
    facts = np.array([[0, 0, 1], [0, 0, 2], [0, 0, 3], [1, 0, 2]], np.int32)
    found = _survival(facts, 0.6, PopularityBased(exponent))
    odds = found / (1 - found)
    np.testing.assert_allclose(odds / odds[2], (np.array([6, 6, 3, 4]) / 3) ** exponent, rtol=1e-9)


def test_the_published_location_misses_the_density(closed):
    facts = closed.splits["facts"]
    probability = np.clip(np.sqrt(0.95) + 0.2 * np.random.default_rng(0).standard_normal(120), 0, 1)
    assert abs((probability[facts[:, 0]] * probability[facts[:, 2]]).mean() - 0.95) > 0.05


@pytest.mark.parametrize("spread", [0, -1, 11, float("nan")])
def test_spreads_out_of_range(spread):
    with pytest.raises(ValueError, match=r"`spread` must be in \[1e-06, 10\]"):
        RelationBased(spread)


@pytest.mark.parametrize("density", [0, -0.1, 1.1, float("nan"), "half"])
def test_densities_out_of_range(closed, density):
    with pytest.raises(ValueError, match="`density` must be"):
        _survival(closed.splits["facts"], density, INDEPENDENT)


def test_no_facts_cannot_survive():
    with pytest.raises(ValueError, match="`facts` must hold at least one fact"):
        survival(
            np.empty((0, 3), np.int32),
            0.5,
            NodeBased(0.2),
            np.random.default_rng(0),
            num_entities=3,
            num_relations=1,
        )
