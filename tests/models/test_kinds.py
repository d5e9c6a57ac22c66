"""Models by name: their options, and what is refused."""

import jax
import pytest

from owkg.models import MODELS, model


@pytest.mark.parametrize("name", MODELS)
def test_equal_options_are_one_model_and_its_configuration_builds_it_again(name):
    built = model(name)
    assert built.name == name
    assert built is model(name, **MODELS[name].options)
    assert hash(built) == hash(model(name, **vars(built.config)))
    assert built != model(name, dim=2 * built.config.dim)


@pytest.mark.parametrize("name", MODELS)
def test_dim_counts_what_the_table_says(name):
    built = model(name)
    params, _ = jax.eval_shape(lambda key: built.init(key, 11, 3), jax.random.key(0))
    assert params["entity"].shape == (11, MODELS[name].columns * built.config.dim)
    assert params["relation"].shape[0] == (6 if built.config.reciprocal else 3)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dim", [0, -3, 2.5, "8", None, True, [3, 4]])
def test_dim_is_a_whole_number(name, dim):
    with pytest.raises(ValueError, match="`dim` must be"):
        model(name, dim=dim)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ghost", {}, "`model` must be one of transe, .*, got 'ghost'"),
        (3, {}, "`model` must be one of .*, got 3"),
        ("complex", {"norm": 1}, "`norm` is not an option of complex; its options are dim, reciprocal"),
        ("rgcn", {"dim": 10, "blocks": 4}, "`blocks` must divide `dim` 10, got 4"),
        (
            "compgcn",
            {"decoder": "complex"},
            "`decoder` must be 'conve' or 'distmult' or 'transe', got 'compl",
        ),
        ("compgcn", {"decoder": "conve", "height": 30}, "`height` must divide `encoded_dim` 200 into a pict"),
        (
            "compgcn",
            {"decoder": "conve", "reciprocal": False},
            "`reciprocal` must be True for the decoder con",
        ),
        ("transe", {"norm": 3}, "`norm` must be 1 or 2, got 3"),
        ("transe", {"norm": True}, "`norm` must be 1 or 2, got True"),
        ("transe", {"margin": -1.0}, "`margin` must be finite and at least 0, got -1"),
        ("transe", {"reciprocal": 1}, "`reciprocal` must be True or False, got 1"),
        ("complex", {"init_law": "cauchy"}, "`init_law` must be 'normal' or 'uniform', got 'cauchy'"),
        ("complex", {"init_scale": 0.0}, "`init_scale` must be finite and above 0, got 0"),
        ("rotate", {"margin": 0}, "`margin` must be finite and above 0, got 0"),
        ("rotate", {"margin": float("nan")}, "`margin` must be finite and above 0, got nan"),
        ("protate", {"half_angle": "no"}, "`half_angle` must be True or False, got 'no'"),
        ("tucker", {"reciprocal": False}, "`reciprocal` must be True for tucker"),
        ("tucker", {"input_dropout": 1.0}, r"`input_dropout` must be in \[0, 1\), got 1.0"),
        ("tucker", {"matrix_dropout": -0.1}, r"`matrix_dropout` must be in \[0, 1\], got -0.1"),
        ("conve", {"dim": 200, "height": 30}, "`height` must divide `dim` into rows .*, got 30 for 200"),
        ("conve", {"dim": 40, "height": 20}, "`height` must divide `dim` into rows of at least 3, got 20"),
        ("conve", {"reciprocal": False}, "`reciprocal` must be True for conve"),
        ("betae", {"hidden_layers": 0}, "`hidden_layers` must be a whole number of at least 1, got 0"),
        ("betae", {"reciprocal": False}, "`reciprocal` must be True for betae"),
    ],
)
def test_bad_options_are_named(name, options, message):
    with pytest.raises(ValueError, match=message):
        model(name, **options)


def test_whole_numbers_of_any_type_are_equal_options():
    import numpy as np

    assert model("rescal", dim=np.int64(8)) is model("rescal", dim=8)
    assert type(model("rescal", dim=np.int32(8)).config.dim) is int
