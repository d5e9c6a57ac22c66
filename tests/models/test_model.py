"""Scores at the public boundary: shapes and refusals."""

import jax
import jax.numpy as jnp
import pytest

from owkg.models import Trained, model, score, score_all

COMPLEX = model("complex", dim=3)
TRAINED = Trained(COMPLEX, *COMPLEX.init(jax.random.key(0), 5, 2))


def test_triples_of_any_shape():
    got = score(TRAINED, jnp.zeros((2, 1), int), 1, [0, 3, 4])
    assert got.shape == (2, 3)
    assert score(TRAINED, 0, 1, 2).shape == ()
    assert score(TRAINED, 0, 1, 3) == got[1, 1]


def test_scores_are_traced():
    def total(params, head):
        return score(Trained(COMPLEX, params), head, 0, 1).sum()

    slope = jax.jit(jax.grad(total))(TRAINED.params, jnp.array([0, 2]))
    assert float(jnp.abs(slope["entity"][2]).sum()) > 0
    assert float(jnp.abs(slope["entity"][4]).sum()) == 0


@pytest.mark.parametrize(
    ("triple", "message"),
    [
        ((5, 0, 0), "`head` must be ids below 5, got 5"),
        ((0, 2, 0), "`relation` must be ids below 2, got 2"),
        ((0, 0, [1, 9]), r"`tail` must be ids below 5, got 9 at index \(1,\)"),
        ((-1, 0, 0), "`head` must be a whole number of at least 0, got -1"),
        ((0.5, 0, 0), "`head` must be a whole number"),
        (([0, 1], 0, [0, 1, 2]), "do not broadcast"),
    ],
)
def test_ids_that_are_none(triple, message):
    with pytest.raises(ValueError, match=message):
        score(TRAINED, *triple)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (([5], [0], "tail"), "`entity` must be ids below 5"),
        (([0], [2], "head"), "`relation` must be ids below 2"),
        (([0], [0], "both"), "`side` must be head or tail, got 'both'"),
        (([0], [0], "tail", [7]), "`candidates` must be ids below 5, got 7"),
    ],
)
def test_queries_that_are_none(query, message):
    with pytest.raises(ValueError, match=message):
        score_all(TRAINED, *query)
