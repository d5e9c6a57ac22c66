"""pLogicNet: TransE and rule weights that train each other."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from owkg import checks
from owkg.errors import ArgumentError
from owkg.evaluation import score_triples
from owkg.keys import reproducible
from owkg.kg import KnowledgeGraph
from owkg.models import Trained, score_all
from owkg.rules.mine import Rules, mine
from owkg.rules.rnnlogic import features_of
from owkg.rules.scores import Applied, Predictions, Queries, best_of, known_of
from owkg.train.config import Training, training
from owkg.train.loop import snapshots

_STEPS, _RATE = 1000, 1e-4
# Scores of TransE are logits, because its loss treats each fact and each negative separately.
_TRANSE = {"dim": 64, "margin": 9.0, "batch_size": 512, "num_negatives": 64, "learning_rate": 5e-3}
_TRANSE |= {"subsampling": False, "epochs": 100, "valid_every": 0, "checkpoint_every": 0}
# Number of scores in a block of queries.
_SCORES = 2**24


class Hidden(NamedTuple):
    """Triples that rules predict and train lacks.

    Attributes:
        key: (relation * n + head) * n + tail, increasing.
        share: [triples, rules]: share of each rule in the groundings of the triple.
    """

    key: Int[np.ndarray, "triples"]
    share: sparse.csr_matrix


class Learned(NamedTuple):
    """Result of pLogicNet.

    Attributes:
        trained: trained TransE.
        hidden: triples that rules predict.
        probability: probability of each hidden triple by the rules.
        weight: weights of the rules.
    """

    trained: Trained
    hidden: Hidden
    probability: Float[np.ndarray, "triples"]
    weight: Float[np.ndarray, "rules"]


@reproducible
def plogicnet(
    graph: KnowledgeGraph,
    *,
    precision: float = 0.6,
    threshold: float = 0.7,
    rounds: int = 2,
    seed: int = 0,
    config: Training | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    **mining: object,
) -> tuple[Rules, Learned]:
    """Rules of pLogicNet, and the TransE and weights that it learns with them.

    The rules are compositions of two relations, both in their own direction, and r(X,Y) <- s(X,Y) or s(Y,X).

    Args:
        graph: graph whose split train is learned.
        precision: smallest share of the pairs of a rule's body that are facts, in [0, 1]. Default 0.6.
        threshold: probability by the rules from which a hidden triple joins the training, in [0, 1]. Default
            0.7.
        rounds: rounds of expectation and maximisation. Default 2.
        seed: seed of everything random.
        config: configuration of the training of TransE. None: with self-adversarial negatives.
        on_progress: function called with (rounds done, all rounds).
        **mining: arguments of `mine`.

    Raises:
        ArgumentError: if an argument is out of range, or there are no rules.

    References:
        Qu and Tang 2019, Probabilistic logic neural networks for reasoning, section 4.
    """
    checks.whole("rounds", rounds, 1)
    for name, value in (("precision", precision), ("threshold", threshold)):
        if not 0 <= value <= 1:
            raise ArgumentError(name, f"must be in [0, 1], got {value!r}.")
    config = config or training("transe", **_TRANSE, seed=seed)
    rules = mine(graph, length=2, constants=False, seed=seed, **mining)  # pyright: ignore[reportArgumentType]
    shape = (rules.body[:, 1:] < 0).all(1) | (rules.body < graph.num_relations).all(1)
    rules = rules.some(shape & (rules.support >= precision * rules.bodies))
    if not len(rules.head):
        raise ArgumentError(
            "precision", f"leaves no rule of this graph: make it, {precision}, or `min_support` smaller."
        )
    rules = rules.some(np.argsort(-rules.confidence, kind="stable"))
    *_, learned = _learned(graph, rules, config, threshold, rounds, on_progress)
    return rules, learned


def _learned(
    graph: KnowledgeGraph,
    rules: Rules,
    config: Training,
    threshold: float,
    rounds: int,
    on_progress: Callable[[int, int], None] | None,
) -> Iterator[Learned]:
    """Result of each round."""
    hidden = hidden_of(graph, rules)
    weight, added = rules.support / rules.bodies, np.empty((0, 3), np.int32)
    n = graph.num_entities
    head, tail = hidden.key // n % n, hidden.key % n
    triples = np.stack([head, hidden.key // (n * n), tail], axis=1).astype(np.int32)
    for turn in range(rounds):
        train = np.concatenate([graph.splits["train"], added])
        trained = _transe(KnowledgeGraph(graph.entities, graph.relations, {"train": train}), config)
        annotated = _sigmoid(score_triples(trained, triples))
        for _ in range(_STEPS):
            weight = weight - _RATE * gradient(hidden, weight, annotated)
        probability = _sigmoid(hidden.share @ weight)
        added = triples[probability >= threshold]
        if on_progress is not None:
            on_progress(turn + 1, rounds)
        yield Learned(trained, hidden, probability, weight)


def hidden_of(graph: KnowledgeGraph, rules: Rules) -> Hidden:
    """Triples that rules r(X,Y) predict and that are not facts of train."""
    n, applied = graph.num_entities, Applied(graph, rules)
    heads = np.unique(rules.head)
    queries = Queries(np.tile(np.arange(n), len(heads)), np.repeat(heads, n))
    paths, query, answer, _ = features_of(graph, rules, queries, applied)
    new = ~known_of(applied, queries, query, answer)
    paths = paths[new][:, : len(rules.head)].astype(float)
    share = sparse.diags_array(1 / np.asarray(paths.sum(1)).ravel()) @ paths
    key = (queries.relation[query] * n + queries.entity[query]) * n + answer
    return Hidden(key[new], sparse.csr_matrix(share))


def gradient(hidden: Hidden, weight: np.ndarray, annotated: np.ndarray) -> Float[np.ndarray, "rules"]:
    """Gradient of the cross-entropy of rule probabilities under annotations, summed over hidden triples."""
    return hidden.share.T @ (_sigmoid(hidden.share @ weight) - annotated)


def joined(
    graph: KnowledgeGraph,
    rules: Rules,
    learned: Learned,
    queries: Queries,
    *,
    balance: float = 1.0,
    top: int = 100,
    on_progress: Callable[[int, int], None] | None = None,
) -> Predictions:
    """Best answers by the score of TransE + balance * probability by the rules.

    A triple that no rule predicts has the probability 0.5. The entity of a query can be its answer only if
    train has a fact of the relation from an entity to itself.

    Args:
        graph, rules, learned: graph, and the results of `plogicnet` for it.
        queries: queries, increasing by relation.
        balance: weight of the probability; the score of TransE is the logit of its own probability. Default
            1.
        top, on_progress: arguments of `owkg.rules.predict`.
    """
    n, count, found = graph.num_entities, graph.num_relations, []
    applied = Applied(graph, rules)
    train = graph.splits["train"]
    loops = np.unique(train[train[:, 0] == train[:, 2], 1])
    size = max(1, _SCORES // n)
    for begin in range(0, len(queries.entity), size):
        some = Queries(*(column[begin : begin + size] for column in queries))
        inverse = some.relation >= count
        score = np.empty((len(inverse), n), np.float64)
        for side, own in (("tail", ~inverse), ("head", inverse)):
            if own.any():
                score[own] = score_all(learned.trained, some.entity[own], some.relation[own] % count, side)
        alone = ~np.isin(some.relation % count, loops)
        score[np.flatnonzero(alone), some.entity[alone]] = -np.inf
        query, answer = (one.ravel() for one in np.indices(score.shape))
        known = known_of(applied, some, query, answer).reshape(score.shape)
        unknown = np.where(known, -np.inf, score)
        least = np.partition(unknown, -min(top, n), axis=1)[:, -min(top, n)]
        query, answer = np.nonzero((score >= least[:, None]) & np.isfinite(score))
        heads = np.where(inverse[query], answer, some.entity[query])
        tails = np.where(inverse[query], some.entity[query], answer)
        probability = _looked_up(learned, (some.relation[query] % count * n + heads) * n + tails)
        value = score[query, answer] + balance * probability
        group = np.unique(value, return_inverse=True)[1].ravel()
        query, answer, level = best_of(query * n + answer, group, known[query, answer], n, top)
        found.append((query + begin, answer, level))
        if on_progress is not None:
            on_progress(min(begin + size, len(queries.entity)), len(queries.entity))
    nothing = [(np.empty(0, np.int64),) * 3]
    return Predictions(*map(np.concatenate, zip(*nothing, *found, strict=True)))


def _looked_up(learned: Learned, keys: np.ndarray) -> np.ndarray:
    held = learned.hidden.key
    if not len(held):
        return np.full(len(keys), 0.5)
    place = np.minimum(np.searchsorted(held, keys), len(held) - 1)
    return np.where(held[place] == keys, learned.probability[place], 0.5)


def _transe(graph: KnowledgeGraph, config: Training) -> Trained:
    *_, last = snapshots(graph, config)
    return last.state.trained(config.built())


def _sigmoid(value: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(0.5 * value))
