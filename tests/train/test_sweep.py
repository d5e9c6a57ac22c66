"""Runs trained together are what they are by themselves."""

import jax
import numpy as np
import pytest

from owkg.train import train_many, training
from owkg.train.loop import snapshots


@pytest.mark.parametrize("model", ["complex", "rotate", "rgcn"])
def test_together_as_apart(ring, model):
    config = training(model, dim=8, epochs=4, valid_every=0, batch_size=32, num_negatives=5)
    varied = {"seed": [0, 1, 2], "learning_rate": [0.01, 0.02, 0.03], "n3": [0.01, 0.05, 0.1]}
    for run in train_many(ring, config, **varied):
        *_, last = snapshots(ring, run.config)
        assert run.step == last.step
        for name, array in last.state.params.items():
            np.testing.assert_allclose(run.trained.params[name], array, rtol=2e-3, atol=2e-5)
        np.testing.assert_allclose(run.path["loss"], [row["loss"] for row in last.rows], rtol=1e-4)


def test_the_best_of_each_is_kept(ring):
    config = training("distmult", dim=8, epochs=6, valid_every=2, n3=0.0)
    for run in train_many(ring, config, learning_rate=[0.05, 0.5]):
        rows = run.path.drop_nulls("valid_mrr")
        best = rows.filter(rows["valid_mrr"] == rows["valid_mrr"].max())["step"][0]
        assert (run.step, run.failed) == (best, None)


def test_one_that_fails_stops_no_other(ring):
    config = training("complex", dim=8, epochs=6, valid_every=2, optimiser="sgd", init_scale=1.0, n3=0.0)
    good, bad = train_many(ring, config, learning_rate=[0.1, 1e30])
    assert good.failed is None
    assert len(good.path) == 6
    assert bad.failed is not None
    assert 0 < bad.failed < 6
    assert len(bad.path) <= bad.failed
    assert all(bool(np.isfinite(x).all()) for x in jax.tree.leaves(good.trained.params))


@pytest.mark.parametrize("rate", [1e10, 1e18, 1e30])
def test_one_whose_parameters_fail_before_its_loss_stops_no_other(ring, rate):
    options = {"optimiser": "sgd", "init_scale": 1.0, "n3": 0.0, "batch_size": 1000}
    good, bad = train_many(
        ring, training("complex", dim=8, epochs=4, valid_every=1, **options), learning_rate=[0.1, rate]
    )
    assert (good.failed, good.path["valid_mrr"].null_count(), len(good.path)) == (None, 0, 4)
    assert bad.failed is not None
    assert len(bad.path) <= bad.failed + 1


def test_when_all_fail_it_ends(ring):
    told = []
    config = training("complex", dim=8, epochs=50, optimiser="sgd", init_scale=1.0, n3=0.0, valid_every=0)
    runs = train_many(ring, config, learning_rate=[1e30, 1e30], on_progress=lambda *now: told.append(now))
    assert [run.failed is None for run in runs] == [False, False]
    assert all("nan" not in text for *_, text in told)
    assert len(told) < 50
    assert all(run.path.columns == ["step", "epoch", "loss"] for run in runs)


@pytest.mark.parametrize(
    ("varied", "message"),
    [
        ({}, "`varied` must name some of seed"),
        ({"dim": [1, 2]}, "`dim` cannot differ"),
        ({"seed": [1, 2], "n3": [0.1]}, "as many values"),
        ({"seed": 1}, "`seed` must be a list with one value per run"),
        ({"seed": []}, "`seed` must be a list with one value per run"),
        ({"n3": [-1.0]}, "`n3` must be"),
    ],
)
def test_refusals(ring, varied, message):
    with pytest.raises(ValueError, match=message):
        train_many(ring, training("complex", dim=2), **varied)
