"""Steps of training: against the same in NumPy, and by what they leave in the parameters."""

from itertools import pairwise

import jax
import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from owkg.kg import KnowledgeGraph
from owkg.train import loop, train_many, training
from owkg.train.loop import call_steps, snapshots
from owkg.train.queries import queries
from owkg.train.state import init_state, rates
from owkg.train.step import advance, orders_of

pytestmark = pytest.mark.usefixtures("quick_compilation")

# Nothing moves, so that losses tell what was drawn and how they are added up.
STILL = {"optimiser": "sgd", "learning_rate": 1e-30, "n3": 0.0, "valid_every": 0}


def graph_of(facts, *, num_entities, num_relations):
    labels = (
        tuple(f"{kind}{i}" for i in range(n)) for kind, n in (("e", num_entities), ("r", num_relations))
    )
    return KnowledgeGraph(*labels, {"train": np.array(facts, np.int32)})


def walked(graph, config, stops):
    """The states, as arrays of NumPy, before step 0 and before each of `stops`."""
    parts, sizes = queries(graph, config)
    numbers = rates(config)
    state = init_state(config, sizes, numbers)
    run, found = advance(config, sizes), [jax.tree.map(np.array, state)]
    for start, stop in pairwise([0, *stops]):
        for step in range(start, stop):
            orders = orders_of(numbers, step // sizes.per_epoch, asked=sizes.queries)
            state = run(state, step, step + 1, orders, parts, numbers)
        found.append(jax.tree.map(np.array, state))
    return found


@pytest.mark.parametrize("updates", ["dense", "rows"])
def test_a_step_is_as_long_as_the_gradients_are_cut_to(updates):
    """A long one is cut, of all parameters together; a short one is left."""
    graph = graph_of([(0, 0, 1), (0, 1, 1), (2, 0, 1)], num_entities=4, num_relations=2)
    options = {"dim": 3, "optimiser": "sgd", "learning_rate": 1.0, "valid_every": 0, "updates": updates}
    options |= {"training_loop": "negatives", "loss": "binary", "init_scale": 1.0, "n3": 0.0}

    def moved(clip):
        first, second = walked(graph, training("complex", **options, gradient_clip=clip), [1])
        return np.concatenate([(second.params[k] - first.params[k]).ravel() for k in first.params])

    free = moved(0.0)
    length = np.linalg.norm(free)
    np.testing.assert_allclose(moved(length / 3), free / 3, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(moved(length * 3), free, rtol=1e-6)


# --- which queries a step asks

SEED, FACTS, BATCH = 9, 11, 8  # 4 queries a side and step, 3 in the last of the three steps of an epoch
STEPS = [8, 8, 6] * 3


@pytest.fixture(scope="module")
def shares():
    """The share of each query in each step, [steps, side, fact]: by how far its embedding shrinks.

    Every fact has a relation of its own, reciprocal; embeddings so small that only their squares are learned.
    """
    config = training(
        "complex", dim=8, init_scale=1e-5, n3=0.0, l2=1.0, optimiser="sgd", learning_rate=0.1, seed=SEED,
        batch_size=BATCH, epochs=3, valid_every=0,
    )  # fmt: skip
    graph = graph_of([(0, i, 1) for i in range(FACTS)], num_entities=2, num_relations=FACTS)
    states = walked(graph, config, range(1, 10))
    length = np.array([np.linalg.norm(state.params["relation"], axis=1) for state in states])
    tails, heads = np.split((1 - length[1:] / length[:-1]) / 0.2, 2, axis=1)
    return np.stack([heads, tails], axis=1)


def test_every_query_counts_once_an_epoch(shares):
    counted = shares * np.array(STEPS)[:, None, None]
    np.testing.assert_allclose(counted, np.round(counted), atol=0.01)
    once = np.round(counted).reshape(3, 3, 2, FACTS)
    np.testing.assert_array_equal(once.sum(1), np.ones((3, 2, FACTS)))
    np.testing.assert_array_equal(once.sum(3), np.broadcast_to([[4, 4], [4, 4], [3, 3]], (3, 3, 2)))


def test_every_epoch_and_side_has_an_order_of_its_own(shares):
    epochs = (shares > 0.05).reshape(3, 3, 2, FACTS)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert (epochs[one] != epochs[other]).any((0, 2)).all()
    assert (epochs[:, :, 0] != epochs[:, :, 1]).any((1, 2)).all()


# --- what a step learns


def complex_by_hand(facts, num_relations, params, steps):
    """ComplEx with inverse relations in float64: (entities, relations, sum of the losses) after `steps`.

    Derivatives are d/d(real part) + i d/d(imaginary part), so that of Re sum z conj(t) by z is t.

    Args:
        facts: [facts, 3].
        num_relations: without the inverse ones.
        params: entities and relations to begin with, complex.
        steps: which facts each asks, [steps, side, fact].
    """
    sums, total = [np.zeros((*x.shape[:1], 2 * x.shape[1])) for x in params], 0.0
    for step, asked in enumerate(steps):
        entity, relation = params
        gradients = [np.zeros_like(x) for x in params]
        for side, chosen in enumerate(asked):
            h, r, t = facts[chosen].T
            given, answer, r = (t, h, r + num_relations) if side == 0 else (h, t, r)
            query = entity[given] * relation[r]
            scores = (query @ entity.conj().T).real
            target = 0.9 * np.eye(len(entity))[answer] + 0.1 / len(entity)
            total += (logsumexp(scores, axis=1) - (target * scores).sum(1)).sum() / asked.sum()
            slope = (softmax(scores, axis=1) - target) / asked.sum()
            of_query = slope @ entity
            gradients[0] += slope.T @ query
            np.add.at(gradients[0], given, of_query * relation[r].conj())
            np.add.at(gradients[1], r, of_query * entity[given].conj())
            for which, rows in ((0, given), (1, r), (0, answer)):
                x = params[which][rows]
                total += (0.02 * abs(x) ** 3 + 0.01 * abs(x) ** 2).sum() / asked.sum()
                np.add.at(gradients[which], rows, (0.06 * abs(x) * x + 0.02 * x) / asked.sum())
        rate = 0.05 * min(1, (step + 1) / 4) * (1 - step / len(steps))
        for x, gradient, squares in zip(params, gradients, sums, strict=True):
            g = gradient.view(np.float64)  # Adagrad knows no complex numbers
            squares += g**2
            x.view(np.float64)[:] -= rate * np.divide(g, np.sqrt(squares), where=g != 0, out=np.zeros_like(g))
    return *params, total


def test_three_epochs_are_those_written_by_hand(shares):
    """Seed, batches and number of facts are those of `shares`, and so are the orders."""
    facts = np.unique(np.random.default_rng(5).integers(0, [7, 2, 7], (40, 3)), axis=0)[::3][:FACTS]
    assert len(facts) == FACTS
    config = training(
        "complex", dim=3, init_scale=0.5, seed=SEED, batch_size=BATCH, epochs=3, valid_every=0, n3=0.02,
        l2=0.01, label_smoothing=0.1, schedule="linear", warmup_steps=4, learning_rate=0.05,
    )  # fmt: skip
    begin, end = walked(graph_of(facts, num_entities=7, num_relations=2), config, [9])
    start = [begin.params[name].astype(np.float64) for name in ("entity", "relation")]
    start = [x[:, :3] + 1j * x[:, 3:] for x in start]
    *expected, loss = complex_by_hand(facts, 2, start, shares > 0.05)
    for name, x in zip(("entity", "relation"), expected, strict=True):
        np.testing.assert_allclose(end.params[name], np.hstack([x.real, x.imag]), rtol=1e-4, atol=1e-5)
        assert abs(end.params[name] - begin.params[name]).max() > 0.05
    assert end.loss == pytest.approx(loss, rel=1e-5)


# --- what a step draws


@pytest.mark.parametrize(("shared", "a_side"), [(False, 2 * 3), (True, 3)])
def test_negatives_are_drawn_anew_on_each_side_and_step(shared, a_side):
    """Of so many entities, none is drawn twice: as many rows change as were drawn, beside those of facts."""
    config = training(
        "complex", dim=2, init_scale=1.0, reciprocal=False, n3=0.0, training_loop="negatives",
        loss="logistic",
        num_negatives=3, shared_negatives=shared, optimiser="sgd", learning_rate=1.0,
    )  # fmt: skip
    graph = graph_of([(0, 0, 1), (2, 1, 3)], num_entities=20_000, num_relations=2)
    begin, *after = (state.params["entity"] for state in walked(graph, config, [1, 2, 3]))
    changed = [(entity != begin).any(1).sum() for entity in after]
    assert changed == [4 + 2 * a_side * steps for steps in (1, 2, 3)]


def test_dropout_is_drawn_anew_on_each_side_and_step():
    """An entity that no fact holds moves along what was kept of a query: half of it on each side and step."""
    config = training(
        "tucker", dim=400, relation_dim=1, input_dropout=0.0, matrix_dropout=0.0, output_dropout=0.5,
        batch_norm=False, training_loop="1vsall", loss="cross_entropy", optimiser="sgd", learning_rate=1.0,
    )  # fmt: skip
    graph = graph_of([(0, 0, 1)], num_entities=3, num_relations=1)
    begin, *after = (state.params["entity"][2] for state in walked(graph, config, [1, 2]))
    for entity, share in zip(after, (1 / 4, 1 / 16), strict=True):
        assert abs((entity == begin).mean() - share) < 4 * (share * (1 - share) / 400) ** 0.5


# --- what a step keeps


def test_running_statistics_go_through_both_sides_of_every_step():
    config = training("tucker", dim=3, relation_dim=2, training_loop="1vsall", loss="cross_entropy", **STILL)
    facts = np.array([(0, 0, 1), (0, 1, 2), (3, 0, 3), (4, 1, 1)])
    begin, end = walked(graph_of(facts, num_entities=5, num_relations=2), config, [2])
    entity = begin.params["entity"].astype(np.float64)
    mean, variance = np.zeros(3), np.ones(3)
    for given in (facts[:, 2], facts[:, 0]) * 2:
        mean = 0.9 * mean + 0.1 * entity[given].mean(0)
        variance = 0.9 * variance + 0.1 * entity[given].var(0, ddof=1)
    np.testing.assert_allclose(end.statistics["input_mean"], mean, rtol=1e-5)
    np.testing.assert_allclose(end.statistics["input_variance"], variance, rtol=1e-5)
    for name in ("output_mean", "output_variance"):
        assert (end.statistics[name] != begin.statistics[name]).all()


RECORDS = training("distmult", dim=2, epochs=4, record_every=2, batch_size=40, **STILL)  # 3 steps an epoch


def test_every_record_has_the_mean_loss_since_the_one_before(ring):
    *_, last = snapshots(ring, RECORDS)
    assert [row["step"] for row in last.rows] == [6, 12]
    first, second = (row["loss"] for row in last.rows)
    assert first == pytest.approx(np.log(20), abs=0.2)  # small embeddings know nothing
    assert second == pytest.approx(first, rel=1e-5)


def test_every_record_of_many_has_too(ring):
    (run,) = train_many(ring, RECORDS, seed=[0])
    assert run.path["step"].to_list() == [6, 12]
    first, second = run.path["loss"]
    assert first == pytest.approx(np.log(20), abs=0.2)
    assert second == pytest.approx(first, rel=1e-5)


# --- how many steps a call takes


@pytest.mark.parametrize("model", ["complex", "rotate"])
def test_no_step_puts_queries_in_order(ring, model):
    """What an epoch asks is permuted once, and not by every call, which may take few steps of many."""
    config = training(model, dim=2, num_negatives=2)
    parts, sizes = queries(ring, config)
    numbers = rates(config)
    orders = orders_of(numbers, 0, asked=sizes.queries)
    state = init_state(config, sizes, numbers)
    assert "stablehlo.sort" in orders_of.lower(numbers, 0, asked=sizes.queries).as_text()
    assert "stablehlo.sort" not in advance(config, sizes).lower(state, 0, 1, orders, parts, numbers).as_text()


@pytest.mark.parametrize("shared", [False, True])
def test_negatives_are_drawn_once_and_not_by_every_kernel_that_reads_them(ring, shared):
    """Compilers copy cheap work into all kernels that need it, but not beyond a barrier."""
    config = training(
        "complex", dim=2, num_negatives=2, training_loop="negatives", loss="logistic", shared_negatives=shared
    )
    parts, sizes = queries(ring, config)
    numbers = rates(config)
    orders, state = orders_of(numbers, 0, asked=sizes.queries), init_state(config, sizes, numbers)
    program = advance(config, sizes).lower(state, 0, 1, orders, parts, numbers).as_text()
    assert program.count("stablehlo.optimization_barrier") == len(parts)


@pytest.mark.parametrize(("epochs", "record_every"), [(3, 1), (5, 5)])
def test_an_epoch_is_put_in_order_once(ring, monkeypatch, epochs, record_every):
    asked = []

    def counted(numbers, epoch, **sizes):
        asked.append(epoch)
        return orders_of(numbers, epoch, **sizes)

    monkeypatch.setattr(loop, "orders_of", counted)
    config = training("distmult", dim=2, epochs=epochs, record_every=record_every, batch_size=8, **STILL)
    list(snapshots(ring, config, chunk_steps=2))
    assert asked == [*range(epochs)]


@pytest.mark.parametrize("empty", [0.0, 0.001, 0.46, 3.0])
@pytest.mark.parametrize("each", [1e-5, 0.02, 0.4, 2.0])
def test_calls_grow_whatever_each_of_them_costs(empty, each):
    """A fixed cost of half a second does not keep a call at one step; it takes at most half of the time."""
    steps = 1
    for _ in range(20):
        steps = call_steps(steps, empty + each * steps, empty)
    assert steps == pytest.approx(max(0.5, empty, each) / each, rel=0.05, abs=1)
    assert call_steps(steps, empty + 8 * each * steps, empty) < max(2, steps / 4)  # a slower machine
    assert call_steps(1, empty / 2, empty) > 1  # a call quicker than an empty one was
