"""Updates of rows alone: what dense updates give, where they must, and nothing else of the tables."""

import jax
import numpy as np
import pytest

from owkg.kg import KnowledgeGraph
from owkg.train import training
from owkg.train.queries import queries
from owkg.train.step import advance, init_state, ordered, rates

pytestmark = pytest.mark.usefixtures("quick_compilation")

SAMPLED = {
    "training_loop": "negatives", "loss": "self_adversarial", "num_negatives": 3, "batch_size": 8,
    "n3": 0.0, "valid_every": 0, "learning_rate": 0.1, "dim": 4,
}  # fmt: skip


def scattered(num_entities, num_facts, seed=0):
    """A graph of random facts."""
    facts = np.random.default_rng(seed).integers(0, [num_entities, 3, num_entities], (num_facts, 3))
    labels = (tuple(map(str, range(n))) for n in (num_entities, 3))
    return KnowledgeGraph(*labels, {"train": facts.astype(np.int32)})


def end(graph, config, steps=7):
    """The state after some steps, as arrays of NumPy."""
    parts, sizes = queries(graph, config)
    numbers = rates(config)
    state, run = init_state(config, sizes, numbers), advance(config, sizes)
    for epoch in range(-(-steps // sizes.per_epoch)):
        first, last = epoch * sizes.per_epoch, min(steps, (epoch + 1) * sizes.per_epoch)
        state = run(state, first, last, ordered(numbers, epoch, asked=sizes.queries), parts, numbers)
    return jax.tree.map(np.array, state)


def both(graph, model, **settings):
    config = SAMPLED | settings
    return (end(graph, training(model, **config, updates=how)) for how in ("dense", "rows"))


def assert_equal(one, other, rtol=1e-4, atol=1e-6):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=rtol, atol=atol), one, other)


@pytest.mark.parametrize("optimiser", ["adagrad", "sgd"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"shared_negatives": True},
        {"n3": 0.1, "l2": 0.05, "filtered_negatives": False},
        {"shared_negatives": True, "n3": 0.1, "subsampling": True, "reciprocal": False},
        {"loss": "margin", "num_negatives": 40},
    ],
)
def test_what_forgets_nothing_is_as_dense(optimiser, settings):
    """Rows that no gradient reaches do not move, so that the whole state is that of dense updates."""
    settings = {"init_scale": 0.5, "optimiser": optimiser, **settings}
    dense, rows = both(scattered(60, 24), "complex", **settings)
    assert_equal(dense, rows)
    assert dense.loss > 0
