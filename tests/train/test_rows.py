"""Updates of rows alone: what dense updates give, where they must, and nothing else of the tables."""

import jax
import numpy as np
import pytest

from owkg.kg import KnowledgeGraph
from owkg.models import MODELS
from owkg.train import rows, train_many, training, updates_of
from owkg.train.loop import snapshots
from owkg.train.queries import queries
from owkg.train.state import init_state, rates
from owkg.train.step import advance, orders_of

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
        state = run(state, first, last, orders_of(numbers, epoch, asked=sizes.queries), parts, numbers)
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
        {"n3": 0.1, "l2": 0.05, "filtered_negatives": False, "loss": "margin", "num_negatives": 40},
        {"shared_negatives": True, "n3": 0.1, "subsampling": True, "reciprocal": False},
        {"loss": "binary", "gradient_clip": 0.02, "answer_frequency": 0.9, "sides": "bernoulli"},
    ],
)
def test_what_forgets_nothing_is_as_dense(optimiser, settings):
    """Rows that no gradient reaches do not move, so that the whole state is that of dense updates."""
    settings = {"init_scale": 0.5, "optimiser": optimiser, **settings}
    dense, by_rows = both(scattered(60, 24), "complex", **settings)
    assert_equal(dense, by_rows)
    assert dense.loss > 0


@pytest.mark.parametrize("model", [name for name in MODELS if not training(name).built().of_neighbours])
def test_every_model_has_rows(model):
    """Layers, relations, biases of entities and running statistics too."""
    small = {"conve": {"dim": 12, "height": 4, "channels": 2}, "betae": {"hidden": 5}}
    small |= {"interacte": {"dim": 12, "height": 2, "kernel": 3, "channels": 2}}
    dropped = {"tucker": ("input", "matrix", "output"), "conve": ("input", "channel", "output")}
    dropped |= {"interacte": dropped["conve"]}
    settings = small.get(model, {}) | {f"{name}_dropout": 0.0 for name in dropped.get(model, ())}
    dense, by_rows = both(scattered(40, 24), model, **settings, optimiser="sgd", n3=0.01)
    assert_equal(dense, by_rows, rtol=1e-3, atol=1e-4)
    begin = end(scattered(40, 24), training(model, **SAMPLED | settings), steps=0)
    for name in training(model, **SAMPLED | settings).built().entity_params:
        assert (by_rows.params[name] != begin.params[name]).any()


def test_adam_is_dense_where_every_row_is_touched():
    """Four entities among 200 negatives: each is drawn, but with a chance of 1e-24."""
    settings = {"num_negatives": 200, "optimiser": "adam", "filtered_negatives": False, "init_scale": 0.5}
    dense, by_rows = both(scattered(4, 12), "complex", **settings, shared_negatives=True)
    assert_equal(dense, by_rows, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("model", ["hole", "transh"])
def test_rows_are_allowed_after_each_step(model):
    """Entities in the ball and unit normals, by rows as by whole tables, and where no step came."""
    settings = {"optimiser": "sgd", "learning_rate": 50.0} | ({"bounded": True} if model == "hole" else {})
    dense, by_rows = both(scattered(60, 24), model, **settings)
    assert_equal(dense, by_rows, rtol=1e-3, atol=1e-4)
    length = np.linalg.norm(by_rows.params["entity"], axis=1)
    normal = np.linalg.norm(by_rows.params["relation"][:, 4:], axis=1)
    assert (length.max() == pytest.approx(1, abs=1e-6)) if model == "hole" else (length.max() > 1)
    np.testing.assert_allclose(normal if model == "transh" else 1.0, 1.0, atol=1e-6)


def test_adam_leaves_the_rows_that_a_step_does_not_touch():
    """Neither do they move along old means, nor do these decay; the count of steps is of all rows."""
    graph, sgd = scattered(3000, 400), {"optimiser": "sgd", "learning_rate": 1.0, "init_scale": 0.5}
    config = SAMPLED | {"updates": "rows", "init_scale": 0.5}
    one, two = (end(graph, training("complex", **config, optimiser="adam"), steps=n) for n in (1, 2))
    first, second = (
        end(graph, training("complex", **config | sgd), steps=n).params["entity"] for n in (0, 1)
    )
    touched = (first != second).any(1)
    mean, square = one.optimiser.mu["entity"], one.optimiser.nu["entity"]
    assert 8 < touched.sum() < 60
    assert (mean[touched] != 0).any(1).all()
    assert not mean[~touched].any()
    assert not square[~touched].any()
    still = (two.optimiser.mu["entity"] == mean).all(1)
    assert (still & touched).sum() > 20
    assert (two.params["entity"][still] == one.params["entity"][still]).all()
    assert int(two.optimiser.count) == 2


def test_no_copy_of_a_table_is_made():
    """What a step needs beside the tables, which it writes in place, does not grow with them."""

    def memory(num_entities):
        graph = scattered(num_entities, 40)
        config = training("complex", **SAMPLED, optimiser="adam", updates="rows")
        parts, sizes = queries(graph, config)
        numbers = rates(config)
        state, orders = init_state(config, sizes, numbers), orders_of(numbers, 0, asked=sizes.queries)
        lowered = advance(config, sizes).lower(state, 0, 1, orders, parts, numbers)
        return lowered.compile().memory_analysis(), sum(x.nbytes for x in jax.tree.leaves(state))

    (small, _), (large, held) = memory(1000), memory(100_000)
    assert large.alias_size_in_bytes >= 0.99 * held
    # Slots are a number an entity.
    assert large.temp_size_in_bytes - small.temp_size_in_bytes < 1.1 * 4 * 99_000


@pytest.mark.parametrize("chunk", [1, 3])
def test_where_it_is_cut_changes_no_bit(ring, chunk):
    config = training("rotate", **SAMPLED | {"epochs": 2}, optimiser="adam", updates="rows")
    whole, cut = ([*snapshots(ring, config, chunk_steps=n)][-1].state for n in (100, chunk))
    jax.tree.map(np.testing.assert_array_equal, whole, cut)


def test_many_together_are_as_alone(ring):
    config = training("complex", **SAMPLED | {"epochs": 2}, optimiser="adam", updates="rows")
    for one in train_many(ring, config, seed=[0, 1]):
        *_, alone = snapshots(ring, one.config)
        assert_equal(alone.state.params, one.trained.params)


@pytest.mark.parametrize("block_bytes", [1, 200, 10**6])
def test_blocks_of_rows_change_no_bit(block_bytes, monkeypatch):
    """The last block overlaps the one before, where it must not move a row again."""
    k, n = 23, 40
    entity = np.random.default_rng(0).integers(n, size=k).astype(np.int32)
    table = {"entity": jax.random.normal(jax.random.key(0), (n, 3))}
    of_rows, _ = rows.slots_of(jax.numpy.asarray(entity), jax.numpy.zeros(n, jax.numpy.int32))
    gradients = {"entity": jax.random.normal(jax.random.key(1), (k, 3))}
    nothing = {"entity": jax.numpy.zeros((k, 3))}
    sums = rows.added(nothing, of_rows.slot, gradients)
    monkeypatch.setattr(rows, "_CPU_BLOCK", block_bytes)
    params, squares = rows.moved(
        table, table, of_rows, sums, lambda g, _, s: (g, {"entity": s["entity"] + g["entity"] ** 2})
    )
    dense = np.zeros((n, 3), np.float32)
    np.add.at(dense, entity, gradients["entity"])
    np.testing.assert_allclose(params["entity"], table["entity"] + dense, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(squares["entity"], table["entity"] + dense**2, rtol=1e-5, atol=1e-6)


def test_the_size_of_the_graph_chooses():
    config = training("rotate", batch_size=10, num_negatives=4)
    assert [updates_of(config, n).how for n in (119, 120)] == ["dense", "rows"]
    assert updates_of(training("rotate", updates="dense"), 10**9).how == "dense"
    shared = training("rotate", batch_size=10, num_negatives=4, shared_negatives=True)
    assert [updates_of(shared, n).how for n in (55, 56)] == ["dense", "rows"]
    why = updates_of(training("complex"), 10**6).why
    assert why == "dense: a step of 1vsall compares with all entities"


def test_rows_of_a_step_that_compares_with_all_are_refused():
    with pytest.raises(ValueError, match="`updates` must be dense or auto where the training loop is 1vsall"):
        training("complex", updates="rows")


def test_rows_in_bfloat16():
    """Gradients flow through the rows alone, which are narrowed inside the loss."""
    settings = {"precision": "bfloat16", "optimiser": "sgd", "init_scale": 0.5}
    dense, by_rows = both(scattered(60, 24), "complex", **settings)
    assert_equal(dense.params, by_rows.params, rtol=0.05, atol=0.02)
    assert (by_rows.params["entity"] != 0).any()
