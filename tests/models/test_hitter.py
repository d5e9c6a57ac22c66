"""What HittER sees of the neighbours of the given entity."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from owkg.models import hitter, model

FACTS = np.array([[0, 0, 1], [0, 1, 2], [3, 0, 0], [0, 0, 4], [5, 1, 3]], np.int32)
N, M = 7, 2
BUILT = model("hitter", dim=4, heads=2, hidden=4, triple_layers=1, context_layers=1, neighbours=5)


@pytest.fixture(scope="module")
def begun():
    return BUILT.begun(jax.random.key(0), N, M, FACTS)


def _rows(found, entity):
    return {tuple(row) for row in found[entity].tolist() if row[0] >= 0}


def test_neighbours_are_the_facts_on_both_sides():
    found = hitter.neighbours(FACTS, N, M, 5)
    assert _rows(found, 0) == {(1, 0), (2, 1), (3, 0 + M), (4, 0)}
    assert _rows(found, 3) == {(0, 0), (5, 1 + M)}
    assert _rows(found, 6) == set()


def test_of_many_neighbours_some_are_drawn():
    found = hitter.neighbours(FACTS, N, M, 2)
    assert found.shape == (N, 2, 2)
    assert len(_rows(found, 0)) == 2
    assert _rows(found, 0) < _rows(hitter.neighbours(FACTS, N, M, 5), 0)


def test_the_order_of_neighbours_is_nothing(begun):
    params, statistics = begun
    turned = {"neighbours": statistics["neighbours"][:, ::-1]}
    one, other = (
        BUILT.query(params, s, jnp.array([0, 3]), jnp.array([0, 1]), "tail")[0] for s in (statistics, turned)
    )
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("side", "entity", "answer"), [("tail", 0, 1), ("head", 0, 3)])
def test_the_fact_that_is_asked_is_no_neighbour(begun, side, entity, answer):
    params, statistics = begun
    asked = jnp.array([entity]), jnp.array([0]), side
    fact = (answer, 0 + M * (side == "head"))
    at = next(i for i, row in enumerate(statistics["neighbours"][entity].tolist()) if tuple(row) == fact)
    without = {"neighbours": statistics["neighbours"].at[entity, at].set(-1)}

    def vector(of, **seen):
        return np.asarray(BUILT.query(params, of, *asked, **seen)[0])

    masked = vector(statistics, answer=jnp.array([answer]))
    np.testing.assert_allclose(masked, vector(without), rtol=1e-5, atol=1e-7)
    assert np.abs(masked - vector(statistics)).max() > 1e-6


def test_dim_is_shared_out_among_heads():
    with pytest.raises(ValueError, match="`dim` must be a multiple of `heads`, 3, got 10"):
        model("hitter", dim=10, heads=3)


def test_a_graph_without_facts_is_refused():
    with pytest.raises(ValueError, match="must have triples in train"):
        BUILT.begun(jax.random.key(0), N, M, FACTS[:0])
