"""Dropout and batch normalisation: laws, and what training changes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from owkg.models import layers, model

pytestmark = pytest.mark.usefixtures("quick_compilation")


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
    query = jnp.arange(9), jnp.zeros(9, int), "tail"
    evaluated, unmoved = built.query(params, statistics, *query)
    assert all((unmoved[key] == statistics[key]).all() for key in statistics)
    drawn = [built.query(params, statistics, *query, key=jax.random.key(seed)) for seed in (1, 1, 2)]
    (first, moved), (again, _), (other, _) = drawn
    assert (first == again).all()
    assert (first != other).any()
    assert moved.keys() == statistics.keys()
    assert any((moved[key] != statistics[key]).any() for key in statistics)
    assert evaluated.shape == first.shape


def test_what_tucker_drops():
    """With ones everywhere, a query counts what was kept of its head, of its matrix, or is kept itself."""

    def query(which):
        rates = dict.fromkeys(("input_dropout", "matrix_dropout", "output_dropout"), 0.0) | {which: 0.5}
        built = model("tucker", dim=16, relation_dim=1, batch_norm=False, **rates)
        params, _ = built.init(jax.random.key(0), 1, 1)
        ones = jax.tree.map(jnp.ones_like, params)
        asked = jnp.zeros(50, int)
        return np.asarray(built.query(ones, {}, asked, asked, "tail", key=jax.random.key(1))[0])

    head, matrix, kept = map(query, ("input_dropout", "matrix_dropout", "output_dropout"))
    for counted in (head, matrix):
        assert (counted % 2 == 0).all()
        assert abs(counted.mean() - 16) < 4 * 4 / 50**0.5
    assert (head == head[:, :1]).all()
    assert (head != head[0]).any()
    assert ((matrix != matrix[:, :1]).sum(1) > 5).all()
    assert set(kept.ravel()) == {0.0, 32.0}
    assert abs((kept == 0).mean() - 0.5) < 4 * 0.5 / kept.size**0.5


def test_conve_drops_whole_channels():
    """The dense layer picks single numbers; what is normalised and not cut tells which of them were 0."""
    rates = {"input_dropout": 0.0, "channel_dropout": 0.5, "output_dropout": 0.0}
    built = model("conve", dim=12, height=3, channels=2, **rates)
    params, statistics = built.init(jax.random.key(0), 60, 1)
    params |= {
        "channel_shift": jnp.full(2, 100.0),
        "dense_weight": jnp.eye(16, 12),
        "dense_bias": jnp.zeros(12),
        "output_shift": jnp.full(12, 100.0),
    }
    queries, _ = built.query(
        params, statistics, jnp.arange(60), jnp.zeros(60, int), "tail", key=jax.random.key(1)
    )
    zero = np.asarray(queries[:, :12] < 100).reshape(60, 6, 2)  # channels last
    assert (zero == zero[:, :1]).all()
    assert (zero[:, 0, 0] != zero[:, 0, 1]).any()
    assert abs(zero[:, 0].mean() - 0.5) < 4 * 0.5 / 120**0.5


@pytest.mark.parametrize(
    ("name", "options"),
    [("tucker", {"dim": 6, "relation_dim": 3}), ("conve", {"dim": 12, "height": 3, "channels": 2})],
)
def test_nothing_is_dropped_without_a_key(name, options):
    built = model(name, **options)
    none = {field: 0.0 for field in vars(built.config) if field.endswith("_dropout")}
    assert len(none) == 3
    params, statistics = built.init(jax.random.key(0), 9, 2)
    for side in ("head", "tail"):
        query = jnp.arange(9), jnp.ones(9, int), side
        dropping, _ = built.query(params, statistics, *query)
        whole, _ = model(name, **(options | none)).query(params, statistics, *query)
        assert (dropping == whole).all()


@pytest.mark.parametrize("name", ["transe", "complex", "betae"])
def test_models_without_dropout_train_as_they_score(name):
    built = model(name, dim=4)
    params, statistics = built.init(jax.random.key(0), 9, 2)
    assert statistics == {}
    query = jnp.arange(9), jnp.zeros(9, int), "head"
    plain, _ = built.query(params, statistics, *query)
    trained, _ = built.query(params, statistics, *query, key=jax.random.key(1))
    assert (plain == trained).all()
