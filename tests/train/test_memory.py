"""Memory that training takes at least: sums by hand, and what is refused."""

import pytest

from owkg.train import train, train_many, training
from owkg.train.memory import kept_bytes, least_bytes
from owkg.train.queries import queries


@pytest.mark.parametrize(
    ("options", "copies"),
    [
        ({"optimiser": "sgd"}, 2),
        ({"optimiser": "adagrad"}, 3),
        ({"optimiser": "adam"}, 4),
        ({"optimiser": "adagrad", "training_loop": "negatives", "loss": "logistic", "updates": "rows"}, 2),
        ({"optimiser": "adagrad", "training_loop": "negatives", "loss": "logistic", "updates": "dense"}, 3),
    ],
)
def test_parameters_optimiser_gradients(ring, options, copies):
    config = training("distmult", dim=7, reciprocal=True, batch_size=4, **options)
    found, numbers = least_bytes(config, queries(ring, config)[1]), 7 * (20 + 2 * 3)
    assert copies * 4 * numbers <= found <= copies * 4 * numbers + 64
    assert least_bytes(config, queries(ring, config)[1], runs=5) == 5 * found


@pytest.mark.parametrize(
    ("name", "options", "messages"),
    [
        # Of 2 x 60 edges: 40 numbers each, once a layer, a block, or a spectrum of 21 complex numbers.
        ("rgcn", {"dim": 40}, 40),
        ("rgcn", {"dim": 40, "layers": 3}, 3 * 40),
        ("rgcn", {"dim": 40, "blocks": 8}, 5 * 40),
        ("compgcn", {"dim": 40, "encoded_dim": 40}, 2 * 42),
        ("compgcn", {"dim": 40, "encoded_dim": 40, "composition": "mult"}, 2 * 40),
        ("distmult", {"dim": 40}, 0),
    ],
)
def test_messages_of_encoders(ring, name, options, messages):
    """At least those, and beside them some numbers of an entity or an edge."""
    config = training(name, **options, batch_size=4)
    facts = queries(ring, config)[1]._replace(num_facts=10_000)
    found, least = kept_bytes(config, facts), 4 * 20_000 * messages
    assert least <= found <= 1.5 * least
    assert least_bytes(config, facts, runs=3) > 3 * found


def test_too_little_memory_is_told_before_anything_is_written(ring, tmp_path, monkeypatch):
    config = training("distmult", dim=1000, steps=2)
    monkeypatch.setattr("owkg.train.memory.free_bytes", lambda device: 100_000)
    for call in (
        lambda: train(ring, config, tmp_path / "run"),
        lambda: train_many(ring, config, seed=[1, 2]),
    ):
        with pytest.raises(
            ValueError, match=r"`model` must leave memory for parameters and optimiser of 20 .*: 0\.00 GiB"
        ):
            call()
    assert not (tmp_path / "run").exists()
    with pytest.raises(ValueError, match=r"20 entities, and messages along 120 edges \(fewer .*: 0\.01 GiB"):
        train(ring, training("rgcn", dim=400, steps=2), tmp_path / "run")
    monkeypatch.setattr("owkg.train.memory.free_bytes", lambda device: None)
    assert train(ring, config, tmp_path / "run").step == 2
