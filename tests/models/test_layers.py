"""Dropout and batch normalisation: laws, and what training changes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from owkg.models import layers, model


def test_dropout_keeps_the_mean_and_drops_the_share():
    x = jnp.ones((400, 500))
    dropped = layers.dropout(jax.random.key(0), 0.3, x)
    share = float((dropped == 0).mean())
    assert abs(share - 0.3) < 4 * (0.3 * 0.7 / x.size) ** 0.5
    np.testing.assert_allclose(dropped[dropped != 0], 1 / 0.7, rtol=1e-6)


def test_dropout_of_whole_channels():
    dropped = layers.dropout(jax.random.key(0), 0.5, jnp.ones((20, 3, 4, 5)), whole=(1, 2))
    channels = np.asarray(dropped).reshape(20, 12, 5)
    assert (channels == channels[:, :1]).all()
    assert 0 < (channels == 0).mean() < 1


def test_no_key_and_no_rate_leave_all_as_it_is():
    x = jnp.arange(6.0)
    assert layers.dropout(None, 0.9, x) is x
    assert layers.dropout(jax.random.key(0), 0.0, x) is x


def test_a_batch_is_normalised_by_itself_and_moves_the_statistics_by_a_tenth():
    params, statistics = layers.norm_init("n", 3)
    x = jax.random.normal(jax.random.key(0), (50, 7, 3)) * 4 + 2
    trained, moved = layers.norm("n", params, statistics, x, training=True)
    np.testing.assert_allclose(trained.mean((0, 1)), 0, atol=1e-5)
    np.testing.assert_allclose(trained.var((0, 1)), 1, rtol=1e-4)
    exact = np.asarray(x, np.float64)
    np.testing.assert_allclose(moved["n_mean"], 0.1 * exact.mean((0, 1)), rtol=1e-5)
    np.testing.assert_allclose(moved["n_variance"], 0.9 + 0.1 * exact.var((0, 1), ddof=1), rtol=1e-5)
    same, unmoved = layers.norm("n", params, statistics, x, training=False)
    np.testing.assert_allclose(same, x / np.sqrt(1 + 1e-5), rtol=1e-6)
    assert unmoved is statistics


@pytest.mark.parametrize(
    ("name", "options"),
    [("tucker", {"dim": 6, "relation_dim": 3}), ("conve", {"dim": 12, "height": 3, "channels": 2})],
)
def test_a_key_means_training(name, options):
    built = model(name, **options)
    params, statistics = built.init(jax.random.key(0), 9, 2)
    question = jnp.arange(9), jnp.zeros(9, int), "tail"
    evaluated, unmoved = built.query(params, statistics, *question)
    assert all((unmoved[key] == statistics[key]).all() for key in statistics)
    drawn = [built.query(params, statistics, *question, key=jax.random.key(seed)) for seed in (1, 1, 2)]
    (first, moved), (again, _), (other, _) = drawn
    assert (first == again).all()
    assert (first != other).any()
    assert moved.keys() == statistics.keys()
    assert any((moved[key] != statistics[key]).any() for key in statistics)
    assert evaluated.shape == first.shape


@pytest.mark.parametrize("name", ["transe", "complex", "betae"])
def test_models_without_dropout_train_as_they_score(name):
    built = model(name, dim=4)
    params, statistics = built.init(jax.random.key(0), 9, 2)
    assert statistics == {}
    question = jnp.arange(9), jnp.zeros(9, int), "head"
    plain, _ = built.query(params, statistics, *question)
    trained, _ = built.query(params, statistics, *question, key=jax.random.key(1))
    assert (plain == trained).all()
