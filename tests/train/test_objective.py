"""A step's objective against the same written out for each query in NumPy; optimisers; penalties."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_expit, log_softmax

from owkg.kg import KnowledgeGraph
from owkg.models import SIDES
from owkg.train import training
from owkg.train.objective import objective, powers
from owkg.train.queries import queries, some_queries
from owkg.train.state import direction, init_state, rate_factor, rates

pytestmark = pytest.mark.usefixtures("quick_compilation")


def stepped(ring, config, *, rows):
    """(objective of queries `rows` of each side, the scores of all entities for them, batches)."""
    parts, sizes = queries(ring, config)
    numbers = rates(config)
    state = init_state(config, sizes, numbers)
    counts = (jnp.ones(len(rows), bool),) * 2
    batches = tuple(
        some_queries(part, jnp.asarray(list(rows)), count) for part, count in zip(parts, counts, strict=True)
    )
    model = config.built()
    key = jax.random.key(7)
    value, _ = objective(model, config, sizes, state.params, state.statistics, batches, counts, key, numbers)
    scores = [
        model.similarity.all(
            model.query(state.params, {}, batch.entity, batch.relation, side)[0],
            model.candidates(state.params),
        )
        for side, batch in zip(SIDES, batches, strict=True)
    ]
    return float(value), [np.asarray(s, np.float64) for s in scores], batches, state.params


def answers_of(ring, side, batch):
    """The known answers of each query of a batch, found the slow way."""
    given, asked = (2, 0) if side == "head" else (0, 2)
    train = ring.splits["train"]
    return [
        sorted({int(t[asked]) for t in train if t[given] == e and t[1] == r})
        for e, r in zip(batch.entity.tolist(), batch.relation.tolist(), strict=True)
    ]


def test_one_against_all(ring):
    config = training("distmult", dim=4, n3=0.0, label_smoothing=0.2)
    value, scores, batches, _ = stepped(ring, config, rows=[0, 5, 7])
    target = 0.8 * np.eye(20)[np.concatenate([b.answer for b in batches])] + 0.01
    expected = -(target * log_softmax(np.concatenate(scores), axis=1)).sum(1).mean()
    assert value == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("loss", ["cross_entropy", "bce"])
def test_all_answers_against_all(ring, loss):
    config = training("distmult", dim=4, n3=0.0, training_loop="kvsall", loss=loss, label_smoothing=0.2)
    value, scores, batches, _ = stepped(ring, config, rows=range(30))
    labels = np.zeros((60, 20))
    known = [a for side, b in zip(SIDES, batches, strict=True) for a in answers_of(ring, side, b)]
    for row, answers in zip(labels, known, strict=True):
        row[answers] = 1
    assert labels.sum(1).max() > 1
    s = np.concatenate(scores)
    if loss == "bce":
        target = 0.8 * labels + 0.01
        expected = -(target * log_expit(s) + (1 - target) * log_expit(-s)).mean()
    else:
        target = 0.8 * labels / labels.sum(1, keepdims=True) + 0.01
        expected = -(target * log_softmax(s, axis=1)).sum(1).mean()
    assert value == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("shared", [False, True])
def test_subsampling_weighs_queries(ring, shared):
    """So many negatives are drawn that their mean loss is known within its standard error."""
    config = training(
        "rotate", dim=4, num_negatives=200_000, shared_negatives=shared, loss="logistic", subsampling=True
    )
    value, scores, batches, _ = stepped(ring, config, rows=range(0, 60, 4))
    losses, errors, weights = [], [], []
    train = ring.splits["train"]
    for side, s, batch in zip(SIDES, scores, batches, strict=True):
        for row, known, answer, entity, relation in zip(
            s, answers_of(ring, side, batch), batch.answer.tolist(), *map(np.asarray, batch[:2]), strict=True
        ):
            other = np.delete(row, known)
            losses.append((-log_expit(row[answer]) - log_expit(-other).mean()) / 2)
            errors.append(log_expit(-other).std() / 2 / np.sqrt(200_000))
            h, t = (answer, entity) if side == "head" else (entity, answer)
            tails = ((train[:, 0] == h) & (train[:, 1] == relation)).sum()
            heads = ((train[:, 2] == t) & (train[:, 1] == relation)).sum()
            weights.append(1 / np.sqrt(tails + 3 + heads + 3))
    assert len(set(weights)) > 1
    expected, error = (np.average(x, weights=weights) for x in (losses, errors))
    assert value == pytest.approx(expected, abs=4 * error)
    assert np.mean(losses) != pytest.approx(expected, abs=8 * error)


@pytest.fixture(scope="module")
def all_but_one():
    """5 entities; tails of h are all but h + 1, heads of t all but t - 1."""
    facts = [(h, 0, t) for h in range(5) for t in range(5) if t != (h + 1) % 5]
    return KnowledgeGraph(tuple("abcde"), ("r",), {"train": np.array(facts, np.int32)})


def scored(graph, **settings):
    """(objective of all queries, [queries] scores of the answers, [queries, 5] of all, wrong ones)."""
    config = training("rotate", dim=3, **settings)
    value, scores, batches, _ = stepped(graph, config, rows=range(20))
    wrong = [(np.asarray(b.entity) + turn) % 5 for b, turn in zip(batches, (-1, 1), strict=True)]
    scores, answer = np.concatenate(scores), np.concatenate([b.answer for b in batches])
    return value, scores[np.arange(40), answer], scores, np.concatenate(wrong)


@pytest.mark.parametrize(("loss", "shared"), [("margin", False), ("logistic", True), ("logistic", False)])
def test_no_known_answer_is_a_negative(all_but_one, loss, shared):
    """Only one is left, whatever is drawn."""
    value, positive, scores, wrong = scored(
        all_but_one, loss=loss, loss_margin=0.7, num_negatives=64, shared_negatives=shared
    )
    negative = scores[np.arange(40), wrong]
    if loss == "margin":
        losses = np.maximum(0, 0.7 + negative - positive)
        assert (losses > 0).any()
        assert (losses == 0).any()
    else:
        losses = -(log_expit(positive) + log_expit(-negative)) / 2
    assert value == pytest.approx(losses.mean(), rel=1e-5)


def test_the_hotter_the_more_the_best_negative_weighs(all_but_one):
    """Of 200 negatives among 5 entities, unfiltered, the best is one; at this temperature it is all."""
    value, positive, scores, wrong = scored(
        all_but_one, temperature=1e3, num_negatives=200, filtered_negatives=False
    )
    best = scores.max(1)
    assert (scores.argmax(1) != wrong).any()
    # A weight is exp of a difference of float32 numbers of this size.
    assert value == pytest.approx(-(log_expit(positive) + log_expit(-best)).mean() / 2, rel=1e-3)


def test_penalties_of_the_embeddings_that_are_used(ring):
    given = {"dim": 4, "init_scale": 1.0}
    plain, *_ = stepped(ring, training("complex", **given, n3=0.0), rows=[1, 2])
    value, _, batches, params = stepped(ring, training("complex", **given, n3=0.5, l2=0.25), rows=[1, 2])
    entity, relation = (np.asarray(params[k]).view() for k in ("entity", "relation"))
    modulus = {k: np.hypot(x[:, :4], x[:, 4:]) for k, x in (("entity", entity), ("relation", relation))}
    penalty = 0
    for side, batch in zip(SIDES, batches, strict=True):
        for e, r, a in zip(*(x.tolist() for x in batch[:3]), strict=True):
            inverse = r + 3 if side == "head" else r
            used = np.stack([modulus["entity"][e], modulus["relation"][inverse], modulus["entity"][a]])
            penalty += (0.5 * used**3 + 0.25 * used**2).sum() / 4
    assert value - plain == pytest.approx(penalty, rel=1e-4)


def test_an_encoder_is_asked_once_and_penalties_are_of_its_rows(ring):
    """Twice the entities, by `encode` or in the parameters; `query` is told the answers if it says so."""
    config = training("complex", dim=4, init_scale=1.0, n3=0.5)
    parts, sizes = queries(ring, config)
    state, told, model = init_state(config, sizes, rates(config)), [], config.built()
    counts = (jnp.ones(3, bool),) * 2
    batches = tuple(
        some_queries(part, jnp.arange(3), count) for part, count in zip(parts, counts, strict=True)
    )

    def doubled(params, statistics, *, key=None):
        told.append(key)
        return params | {"entity": 2 * params["entity"]}, statistics

    def query(*given, key=None, answer):
        told.append(answer)
        return model.query(*given, key=key)

    def value(own, params):
        rest = {}, batches, counts, jax.random.key(7), rates(config)
        return objective(own, config, sizes, params, *rest)[0]

    own = replace(model, encode=doubled, query=query, sees_answers=True)
    assert value(own, state.params) == value(model, doubled(state.params, {})[0])
    assert [told[0] is not None, told[1:3]] == [True, [batch.answer for batch in batches]]


def test_powers_have_a_derivative_at_zero():
    zero = jnp.zeros((1, 4))
    assert jax.grad(lambda x: powers(x, 3, complex_rows=True).sum())(zero).tolist() == [[0.0] * 4]


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [0.5, 1, 1, 1]),
        ("linear", [0.5, 0.9, 0.5, 0.1]),
        ("cosine", [0.5, (1 + np.cos(0.1 * np.pi)) / 2, 0.5, (1 + np.cos(0.9 * np.pi)) / 2]),
        ("exponential", [0.5, 1, 0.9, 0.9**2]),
        ("drop", [0.5, 1, 0.1, 0.1]),
    ],
)
def test_schedules(schedule, expected):
    config = training("complex", schedule=schedule, decay=0.9, warmup_steps=2)
    found = [rate_factor(config, jnp.int32(step), total=10, per_epoch=4) for step in (0, 1, 5, 9)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_optimisers():
    """Against the formulas of Duchi et al. 2011, of Kingma and Ba 2015, and of Loshchilov and Hutter 2019."""
    gradients = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    gradients[0, 0] = 0
    squares, first, second, largest = np.zeros((4, 3))
    names = ("adagrad", "adam", "adamax", "sgd")
    optimisers = {name: direction(training("complex", optimiser=name)) for name in names}
    optimisers["decay"] = direction(training("complex", optimiser="sgd", weight_decay=0.3))
    at = jnp.asarray([1.0, -2.0, 0.5])
    states = {name: optimiser.init(jnp.zeros(3)) for name, optimiser in optimisers.items()}
    for step, g in enumerate(gradients.astype(np.float64), 1):
        squares, first, second = squares + g**2, 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g**2
        adam = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        largest = np.maximum(0.999 * largest, np.abs(g))
        adamax = first / (1 - 0.9**step) / np.where(largest == 0, 1, largest)
        adagrad = g / np.where(g == 0, 1, np.sqrt(squares))
        expected = {"adagrad": adagrad, "adam": adam, "adamax": adamax, "sgd": g, "decay": g + 0.3 * at}
        for name, optimiser in optimisers.items():
            found, states[name] = optimiser.update(jnp.asarray(g, jnp.float32), states[name], at)
            np.testing.assert_allclose(found, expected[name], rtol=1e-4, atol=1e-6)
