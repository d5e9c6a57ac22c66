"""Scores in float32 against float64, near the edge of the ball too, and gradients there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from owkg.models import MODELS, Trained, model, score_all

pytestmark = pytest.mark.usefixtures("quick_compilation")

N, M, DIMS = 9, 3, (8, 32)
HYPERBOLIC = ("murp", "roth", "refh", "atth")
# Where a model has the option.
SMALL = {"relation_dim": 4, "height": 2, "kernel": 3, "channels": 2, "hidden": 5, "heads": 2}
SMALL |= {"triple_layers": 1, "context_layers": 1, "neighbours": 3}
ASKED = np.array([0, 3, 8, 5]), np.array([0, 1, 2, 0])
FACTS = np.array([[0, 0, 1], [3, 1, 4], [8, 2, 0], [5, 0, 3], [6, 1, 6], [2, 2, 7]], np.int32)


def begun(name, dim):
    """A model with parameters and statistics that are neither 0 nor alike; rows have lengths of about 0.4."""
    own = MODELS[name].options
    chosen = {option: value for option, value in SMALL.items() if option in own}
    built = model(name, dim=dim, **chosen, **({"encoded_dim": dim} if "encoded_dim" in own else {}))
    rng = np.random.default_rng(dim)

    def moved(array):
        if not jnp.issubdtype(array.dtype, jnp.floating):
            return array
        return array + jnp.asarray(rng.uniform(0.1, 0.6, array.shape) / dim**0.5, jnp.float32)

    return Trained(built, *jax.tree.map(moved, built.begun(jax.random.key(dim), N, M, FACTS)))


def with_lengths(trained, length):
    """All entities at one distance from the origin; relations of MuRP do not shrink it."""
    entity, relation = (trained.params[name] for name in ("entity", "relation"))
    own = {"entity": length * entity / jnp.linalg.norm(entity, axis=1, keepdims=True)}
    if trained.model.name == "murp":
        own["relation"] = relation.at[:, trained.model.config.dim :].set(1.0)
    return Trained(trained.model, trained.params | own, trained.statistics)


def room(trained):
    """1 - c |x|^2 of the points that queries are; of MuRP, of their first half."""
    both = [trained.queries(*ASKED, side) for side in ("head", "tail")]
    rows = np.concatenate(both).astype(np.float64)
    dim = trained.model.config.dim
    curvature = 1.0 if trained.model.name == "murp" else rows[:, dim]
    return 1 - curvature * (rows[:, :dim] ** 2).sum(1)


def require_like_float64(trained, tolerance):
    """Differences of at most `tolerance` of the largest score, of both sides."""

    def wide(array):
        return jnp.asarray(array, jnp.float64 if jnp.issubdtype(array.dtype, jnp.floating) else array.dtype)

    scored = jax.jit(lambda own: [score_all(own, *ASKED, side) for side in ("head", "tail")])
    with jax.enable_x64(True):
        expected = scored(jax.tree.map(wide, trained))
    for got, exact in zip(scored(trained), expected, strict=True):
        assert (got.dtype, exact.dtype) == (np.float32, np.float64)
        np.testing.assert_allclose(got, exact, rtol=0, atol=tolerance * np.abs(exact).max())


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("name", [name for name, kind in MODELS.items() if not kind.made_by])
def test_scores_in_float32_are_those_in_float64(name, dim):
    require_like_float64(begun(name, dim), 1e-5)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("name", HYPERBOLIC)
def test_scores_near_the_edge_of_the_ball(name, dim):
    """As near as float32 goes: queries that are nearer are moved to 1 - c |x|^2 = 0.008."""
    own = begun(name, dim)
    near = next(
        one for one in (with_lengths(own, x) for x in np.arange(6, 1, -0.2)) if room(one).min() > 0.009
    )
    assert room(near).min() < 0.03
    require_like_float64(near, 1e-3)


@pytest.mark.parametrize("name", HYPERBOLIC)
@pytest.mark.parametrize("length", [2.0, 10.0, 1e4])
def test_gradients_are_finite_at_the_edge_of_the_ball_and_beyond(name, length):
    far = with_lengths(begun(name, 8), length)

    def total(params):
        return score_all(Trained(far.model, params, {}), *ASKED, "tail").sum()

    found, gradients = jax.jit(jax.value_and_grad(total))(far.params)
    assert np.isfinite(found)
    assert all(np.isfinite(gradient).all() for gradient in gradients.values())
    assert np.abs(gradients["relation"]).max() > 0
