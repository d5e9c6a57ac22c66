"""Configurations: defaults, files, refusals by name."""

import re

import pytest

from owkg.models import MODELS
from owkg.train import changed, config_text, read_config, training


@pytest.mark.parametrize("model", MODELS)
def test_a_file_says_all(model, tmp_path):
    config = training(model, seed=3, learning_rate=1e-5, shared_negatives=True)
    path = tmp_path / "config.toml"
    path.write_text(config_text(config))
    assert config_text(read_config(path)) == config_text(config)
    assert read_config(path).built() is config.built()


def test_what_a_file_leaves_out_is_as_for_its_model(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text('model = "rotate"\nepochs = 7\n\n[options]\ndim = 10\n')
    assert read_config(path, seed=2) == training("rotate", epochs=7, dim=10, seed=2)


def test_settings_stand_above_the_file(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("epochs = 7\n")
    assert read_config(path, epochs=8, dim=16) == training("complex", epochs=8, dim=16)


def test_options_of_the_model_may_be_changed_too():
    assert changed(training("transe", dim=5), margin=3.0).built().config.margin == 3.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "nothing"}, "`model` must be one of"),
        ({"model": None}, "`model` must be one of"),
        ({"wrong": 1}, "`wrong` is not an option of complex"),
        ({"dim": 0}, "`dim` must be a whole number of at least 1, got 0"),
        ({"training_loop": "all"}, "`training_loop` must be '1vsall' or 'kvsall' or 'negatives', got 'all'"),
        (
            {"loss": "margin"},
            "`loss` must be 'cross_entropy' or 'bce' where the training loop is 1vsall, got 'margin'",
        ),
        (
            {"model": "rotate", "num_negatives": 0},
            "`num_negatives` must be a whole number of at least 1, got 0",
        ),
        ({"model": "rotate", "subsampling": 1}, "`subsampling` must be True or False, got 1"),
        ({"batch_size": 1.5}, "`batch_size` must be a whole number"),
        ({"epochs": 0}, "`epochs` must be"),
        ({"learning_rate": 0}, "`learning_rate` must be finite and above 0, got 0"),
        ({"learning_rate": float("nan")}, "`learning_rate` must be"),
        ({"n3": -1}, "`n3` must be finite and at least 0, got -1"),
        ({"label_smoothing": 1}, "`label_smoothing` must be in [0, 1), got 1"),
        ({"optimiser": "lbfgs"}, "`optimiser` must be 'adagrad' or 'adam' or 'adamax' or 'sgd', got 'lbfgs'"),
        ({"sides": "bernoulli"}, "`sides` must be both without negatives, got 'bernoulli'"),
        ({"sides": "left"}, "`sides` must be 'both' or 'bernoulli', got 'left'"),
        ({"model": "tucker", "answer_frequency": 0.9}, "`answer_frequency` must be 0 where"),
        ({"answer_frequency": 1.0}, "`answer_frequency` must be in [0, 1), got 1.0"),
        ({"gradient_clip": -1}, "`gradient_clip` must be finite and at least 0, got -1"),
        ({"weight_decay": float("nan")}, "`weight_decay` must be finite and at least 0, got nan"),
        ({"schedule": "up"}, "`schedule` must be"),
        ({"precision": "float16"}, "`precision` must be 'float32' or 'bfloat16', got 'float16'"),
        ({"seed": 2**32}, "`seed` must be below 2**32, got 4294967296"),
        (
            {"model": "rgcn", "training_loop": "negatives", "loss": "logistic", "updates": "rows"},
            "`updates` must be dense or auto for rgcn, whose scores depend on neighbours, got 'rows'",
        ),
        ({"decay": 1.1}, "`decay` must be at most 1, got 1.1"),
        ({"seed": -1}, "`seed` must be a whole number of at least 0, got -1"),
    ],
)
def test_refusals(settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        training(**settings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epochs = \n", "must be TOML"),
        ("dim = 3\n", "dim is not a field; the fields are model, training_loop"),
        ("options = 3\n", "options must be a table, got 3"),
        ("[options]\nepochs = 3\n", "epochs must be given above the table [options]"),
        ("a = " + "[" * 5000, "must be TOML that is not nested so deeply"),
        ("valid_metric = ['x']\n", "valid_metric must be the name of a metric, got ['x']"),
        ("[options]\nname = 'x'\n", "name is not an option of complex"),
        ("epochs = -1\n", "epochs must be a whole number of at least 1, got -1"),
    ],
)
def test_a_bad_file_is_named(text, message, tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(str(path)) + ".*" + re.escape(message)):
        read_config(path)


def test_a_file_that_is_none(tmp_path):
    for path in (tmp_path, tmp_path / "no.toml"):
        with pytest.raises(ValueError, match=re.escape(f"{path}: must be a file, and there is none.")):
            read_config(path)


def test_options_are_named_by_themselves_and_not_with_the_file(tmp_path):
    (tmp_path / "run.toml").write_text("epochs = 3\n")
    with pytest.raises(ValueError, match=r"^`epochs` must be"):
        read_config(tmp_path / "run.toml", epochs=-1)


def test_another_training_loop_needs_a_loss():
    with pytest.raises(
        ValueError, match=r"`loss` must be one of margin, .* with the training loop negatives"
    ):
        training("distmult", training_loop="negatives")
