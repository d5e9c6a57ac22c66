"""Presets: published recipes, which are whole trainings and can be changed."""

import numpy as np
import pytest

from owkg.models import MODELS
from owkg.train import changed, config_text, read_config, training
from owkg.train.loop import snapshots

PRESETS = [(model, preset) for model, kind in MODELS.items() for preset in kind.presets]
# What makes a model small, where it has the option.
SMALL = {"dim": 12, "relation_dim": 4, "height": 2, "kernel": 3, "channels": 2, "hidden": 5, "blocks": 3}
SMALL |= {"heads": 2, "triple_layers": 1, "context_layers": 1, "neighbours": 3}


@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.parametrize(("model", "preset"), PRESETS)
def test_every_preset_trains(ring, model, preset):
    config = training(model, preset=preset)
    assert (
        dict(MODELS[model].presets[preset]).items()
        <= {**config.__dict__, **config.built().config.__dict__}.items()
    )
    small = {name: value for name, value in SMALL.items() if name in MODELS[model].options}
    few = {"batch_size": min(config.batch_size, 16), "num_negatives": 4, "valid_every": 0, "steps": 2}
    *_, last = snapshots(ring, changed(config, **small, **few))
    assert last.step == 2
    assert np.isfinite(last.rows[-1]["loss"])


def test_what_is_given_stands_above_a_preset(tmp_path):
    config = training("rotate", preset="wn18rr", dim=8, epochs=3)
    assert (config.steps, config.epochs, config.num_negatives, config.temperature) == (0, 3, 1024, 0.5)
    assert dict(config.options) == {"dim": 8, "margin": 6.0}
    assert training("rotate", preset="wn18rr", steps=7, epochs=3).steps == 7
    (path := tmp_path / "a.toml").write_text(config_text(config))
    assert read_config(path).built() is config.built()
    assert read_config(path).num_negatives == 1024


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda path: training("rotate", preset="fb15k"),
            "`preset` must be fb15k-237 or wn18rr or small for rotate, got 'fb15k'",
        ),
        (lambda path: training("betae", preset="wn18rr"), "`preset` must be small for betae, got 'wn18rr'"),
        (lambda path: training("rotate", preset=[]), r"`preset` must be .* got \[\]"),
        (lambda path: read_config(path, preset="wn18rr"), "`preset` cannot be given with a file or a run"),
        (
            lambda path: training("rotate", preset="wn18rr", training_loop="1vsall"),
            "`loss` must be one of cross_entropy, bce with",
        ),
    ],
)
def test_refusals(tmp_path, call, message):
    with pytest.raises(ValueError, match=message):
        call(tmp_path / "a.toml")
