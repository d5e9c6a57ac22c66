"""Both forms of every similarity: against each other and plain NumPy, in memory and at coincident points."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg.models.betae import entity_features, query_features
from owkg.models.similarity import DOT, minus_l1, minus_l2, minus_moduli, minus_sines


def _halves(x):
    return np.split(x, 2, axis=-1)


def _moduli(q, c):
    (a, b), (d, e) = _halves(q), _halves(c)
    return np.hypot(a - d, b - e).sum(-1)


def _sines(q, c):
    (a, b), (d, e) = _halves(q), _halves(c)
    lengths = np.hypot(a, b) * np.hypot(d, e)
    return np.abs(lengths * np.sin(np.arctan2(b, a) - np.arctan2(e, d))).sum(-1)


SIMILARITIES = {
    "dot": (DOT, lambda q, c: (q * c).sum(-1)),
    "l1": (minus_l1(2.0), lambda q, c: 2 - np.abs(q - c).sum(-1)),
    "l2": (minus_l2(2.0), lambda q, c: 2 - np.sqrt(np.square(q - c).sum(-1))),
    "moduli": (minus_moduli(2.0), lambda q, c: 2 - _moduli(q, c)),
    "sines": (minus_sines(2.0), lambda q, c: 2 - _sines(q, c)),
}
EACH = pytest.mark.parametrize("name", SIMILARITIES)


def _normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


# A few shapes, each compiled once: around the dimensions that are summed together, and many numbers.
@EACH
@given(
    shape=st.sampled_from([(1, 1, 1), (1, 6, 3), (3, 2, 16), (5, 6, 17), (4, 1, 40)]),
    seed=st.integers(0, 2**32),
    scale=st.sampled_from([0.1, 1.0, 3.0]),
)
def test_both_forms_are_the_formula(name, shape, seed, scale):
    similarity, formula = SIMILARITIES[name]
    q, c, half = shape
    queries, candidates = scale * _normal(seed, q, 2 * half), scale * _normal(seed + 1, c, 2 * half)
    expected = formula(queries.astype(np.float64)[:, None], candidates.astype(np.float64)[None])
    jqueries, jcandidates = jnp.asarray(queries), jnp.asarray(candidates)
    np.testing.assert_allclose(similarity.all(jqueries, jcandidates), expected, rtol=1e-5, atol=2e-5)
    one = similarity.one(jqueries[:, None], jcandidates[None])
    np.testing.assert_allclose(one, expected, rtol=1e-5, atol=2e-5)


@EACH
def test_memory_is_a_few_times_the_scores_and_never_their_product_with_the_dimension(name):
    q, c, d = 64, 2000, 512
    shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((q, d), (c, d))]
    every = SIMILARITIES[name][0].all
    slope = jax.jit(jax.grad(lambda *rows: every(*rows).sum(), (0, 1)))
    inputs_and_scores = 4 * (q * c + q * d + c * d)
    for function in (every, slope):
        analysis = function.lower(*shapes).compile().memory_analysis()
        assert analysis.temp_size_in_bytes <= 8 * inputs_and_scores < 4 * q * c * d


@EACH
def test_coincident_vectors_score_the_margin_and_have_finite_slopes(name):
    similarity, _ = SIMILARITIES[name]
    rows = jnp.asarray(_normal(0, 3, 8))
    if name != "dot":
        np.testing.assert_allclose(jnp.diag(similarity.all(rows, rows)), 2, atol=1e-6)
    for point in (rows, jnp.zeros_like(rows)):
        for function in (similarity.all, similarity.one):
            slopes = jax.grad(lambda q, c, f=function: f(q, c).sum(), (0, 1))(point, point)
            assert all(np.isfinite(s).all() for s in slopes)


def test_near_neighbours_keep_their_distance():
    query = jnp.full((1, 64), 100.0)
    candidate = query + 1e-3
    expected = np.linalg.norm(np.asarray(query, np.float64) - np.asarray(candidate, np.float64))
    assert -minus_l2(0.0).all(query, candidate).item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0, 100.0])
def test_the_divergence_of_beta_distributions_as_a_dot_product(spread):
    from scipy.special import betaln, digamma

    rng = np.random.default_rng(1)
    d = 500
    query, entity = (
        np.clip(1 + rng.uniform(-spread, spread, (8, 2 * d)), 0.05, 1e9).astype(np.float32) for _ in range(2)
    )
    entity[:4] = np.clip(query[:4] * (1 + 0.05 * rng.uniform(-1, 1, (4, 2 * d))), 0.05, 1e9)
    (a, b), (A, B) = _halves(entity.astype(np.float64)), _halves(query.astype(np.float64)[:, None])
    exact = betaln(A, B) - betaln(a, b) + (a - A) * digamma(a) + (b - B) * digamma(b)
    exact = (exact + (A - a + B - b) * digamma(a + b)).sum(-1)
    got = -DOT.all(query_features(jnp.asarray(query), 0.0), entity_features(jnp.asarray(entity)))
    # Relative to the largest divergence: those of near pairs are differences of numbers of that size.
    np.testing.assert_allclose(got, exact, rtol=2e-6, atol=1e-4 + 1e-6 * exact.max())


@EACH
def test_tiles_score_as_all_does_to_the_bit(name):
    similarity = SIMILARITIES[name][0]
    queries, tiles = jnp.asarray(_normal(8, 9, 24)), jnp.asarray(_normal(9, 5, 13, 24))
    scores = similarity.tiles(queries, tiles)
    assert scores.shape == (5, 9, 13)
    for tile, score in zip(tiles, scores, strict=True):
        np.testing.assert_array_equal(score, similarity.all(queries, tile))
