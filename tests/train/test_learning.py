"""Every model learns what it is shown, and half precision learns the same."""

import numpy as np
import pytest

from owkg.evaluation import rank_arrays
from owkg.kg import known_answers
from owkg.models import MODELS
from owkg.train import training
from owkg.train.loop import snapshots

pytestmark = pytest.mark.usefixtures("quick_compilation")


@pytest.mark.parametrize("name", [name for name, kind in MODELS.items() if not kind.made_by])
def test_every_model_learns_its_facts_by_heart(chain, name):
    small = {"height": 4, "kernel": 3, "channels": 8}
    sizes = {"conve": {"height": 4}, "tucker": {"relation_dim": 8}, "interacte": small}
    sizes["hitter"] = {"heads": 2, "hidden": 32, "triple_layers": 1, "context_layers": 1, "masked": 0.0}
    size = {"dim": 32} | sizes.get(name, {})
    dropout = {option: 0.0 for option in MODELS[name].options if option.endswith("dropout")}
    hidden = {"hidden": 64} if name == "betae" else {}
    rate = {"learning_rate": 0.01} if training(name).optimiser == "adam" else {}
    settings = size | dropout | hidden | rate | {"n3": 0.0, "label_smoothing": 0.0, "batch_size": 120}
    settings |= {
        "filtered_negatives": True,
        "num_negatives": 16,
        "epochs": 400,
        "valid_every": 0,
        "record_every": 400,
    }
    if name == "hitter":  # what it is asked in training is not among what it reads, as it is afterwards
        settings |= {"context_dropout": 0.5, "learning_rate": 0.003}
    *_, last = snapshots(chain, training(name, **settings))
    facts = chain.splits["train"]
    for side in ("head", "tail"):
        known = known_answers(facts, side, num_entities=18, num_relations=3)
        model = training(name, **settings).built()
        ranks = rank_arrays(last.state.trained(model), facts, side, known=known)
        assert np.mean(1 / ranks.pessimistic) > 0.95


def test_half_precision_learns_the_same(ring):
    losses = {}
    for precision in ("float32", "bfloat16"):
        *_, last = snapshots(
            ring, training("complex", dim=16, epochs=30, valid_every=0, n3=0.0, precision=precision)
        )
        assert {x.dtype for x in last.state.params.values()} == {np.dtype("float32")}
        losses[precision] = last.rows[-1]["loss"]
    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=0.02)
    assert losses["bfloat16"] != losses["float32"]
